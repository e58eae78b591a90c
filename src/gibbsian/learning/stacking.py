"""Deep machines layer by layer: each restricted machine learns from the hidden units of the one below (YK15, stacking).

A stack of restricted machines is a deep belief network (Hinton, Osindero and Teh 2006), or the start of a deep
Boltzmann machine (Salakhutdinov and Hinton 2009), all layers of which may then learn together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.minibatches import draw_seed, seeded
from gibbsian.errors import ArgumentError
from gibbsian.learning.base import LEARNERS, Learner, LearnerState, Penalties
from gibbsian.learning.filling import EpochRows, check_states, plain_rows
from gibbsian.learning.minibatch import COPIES_OF_WEIGHTS, Minibatch, MinibatchProgress, scale_of
from gibbsian.learning.optimizers import Converged, Failed, Outcome, StepInfo
from gibbsian.learning.standard_units import ColumnScale
from gibbsian.models.base import Model, Units
from gibbsian.models.layers.stack import StackFamily, joined
from gibbsian.models.layers.units import codes_of
from gibbsian.registry import Registry
from gibbsian.resources import require_memory
from gibbsian.settings import check, choice, declared, free

DeepMachine = Model[Any]
# by the families whose layers can learn one by one
STACKS = Registry("learning layer by layer", "gibbsian.learning", "STACKS")

# Numbers that tell the generators of one seed apart, each with the place of a machine: its start and its chains, the
# rows that go up from it, and learning together.
_START, _UP, _TOGETHER = 0, 1, 2
# Arrays of the size of the whole machine's weights: as it is learned so far, put together, and learning together.
COPIES_OF_WHOLE = 6


@STACKS.register("belief-network")
@dataclass(frozen=True)
class NetworkStack:
    """The restricted machines of a belief network: those of neighbouring layers, as they are."""

    family: Any
    learns_together = False  # the directed layers have no gradient that chains know

    @cached_property
    def machines(self) -> list[StackFamily]:
        """The machines of a layer and the next while they learn alone."""
        return [StackFamily(self.family.layers[place : place + 2]) for place in range(len(self.family.layers) - 1)]

    @property
    def n_copies(self) -> int:
        """How often the lowest machine has the visible layer."""
        return self.machines[0].layers[0].n_units // self.family.layers[0].n_units

    def tied(self, place: int, theta: np.ndarray) -> np.ndarray:
        """Return theta of a machine with the same weights for all copies of a layer: no layer is there twice."""
        return theta

    def stacked(self, thetas: Sequence[np.ndarray]) -> np.ndarray:
        """Return theta of the whole, given that of the machines."""
        return np.concatenate(thetas)


@STACKS.register("stack")
class BoltzmannStack(NetworkStack):
    """The restricted machines of a deep Boltzmann machine, each of which gives half of its energy.

    Every layer but the first and the last will hear from both sides. The visible layer of the lowest and the top layer
    of the highest machine are there twice, so that half of the energy leaves them all of theirs (Salakhutdinov and
    Hinton 2009).
    """

    learns_together = True

    @cached_property
    def machines(self) -> list[StackFamily]:
        """The machines of a layer and the next while they learn alone."""
        layers, last = self.family.layers, len(self.family.layers) - 2
        twice = last > 0
        return [
            StackFamily(
                (
                    _repeated(layers[place]) if twice and place == 0 else layers[place],
                    _repeated(layers[place + 1]) if twice and place == last else layers[place + 1],
                )
            )
            for place in range(last + 1)
        ]

    def tied(self, place: int, theta: np.ndarray) -> np.ndarray:
        """Return theta of a machine with the same weights for both copies of a layer."""
        biases, (weights,) = self.machines[place].split(theta)
        for axis in (0, 1):
            if len(biases[axis]) > self.family.layers[place + axis].width:
                half = np.split(weights, 2, axis)[0]
                weights = np.concatenate([half, half], axis)
        return joined([*biases, weights])

    def stacked(self, thetas: Sequence[np.ndarray]) -> np.ndarray:
        """Return theta of the whole: half of each machine, the two copies of a layer made one."""
        share, widths = 0.5 if len(thetas) > 1 else 1.0, [layer.width for layer in self.family.layers]
        biases, weights = [np.zeros(width, thetas[0].dtype) for width in widths], []
        for place, (machine, theta) in enumerate(zip(self.machines, thetas, strict=True)):
            lower, upper = widths[place : place + 2]
            own, (matrix,) = machine.split(theta)
            for k, width in enumerate((lower, upper)):
                biases[place + k] += share * own[k].reshape(-1, width).sum(axis=0)
            copies = matrix.reshape(-1, lower, matrix.shape[1] // upper, upper)
            weights.append((share * copies.sum((0, 2))).astype(theta.dtype))
        return joined([*biases, *weights])


def _repeated(layer: Units) -> Units:
    """Return a layer with a copy of its units beside it."""
    return layer.take(np.tile(np.arange(layer.n_units), 2))


@dataclass(frozen=True)
class StackProgress:
    """All that the next epoch needs besides the rows: plain arrays and numbers.

    Parameters
    ----------
    theta : ndarray
        Parameters of the deep machine as far as it is learned.
    machines : ndarray
        Parameters of the restricted machines one after the other; zero for those to come.
    filled : ndarray
        What the lowest machine left in missing cells.
    stage : int
        The machine that learns; the number of machines while all learn together.
    alone : MinibatchProgress
        Where it stands.
    together : MinibatchProgress or None
        Where learning together stands.
    seed : ndarray
        What all random numbers follow from.
    n_machines : int
        How many there are.
    """

    theta: np.ndarray
    machines: np.ndarray
    filled: np.ndarray
    stage: int
    alone: MinibatchProgress = field(metadata={"varies": True})  # other shapes for other layers
    together: MinibatchProgress | None
    seed: np.ndarray
    n_machines: int

    @property
    def verdict(self) -> str:
        """That the machine counts as trained, where it does."""
        if self.stage < self.n_machines:
            return ""
        epochs, layers = self.alone.last, self.n_machines
        words = f"trained for {epochs} epoch{'s' * (epochs != 1)} a layer, {layers} layer{'s' * (layers != 1)}"
        if self.together is None:
            return words
        ended = self.together.verdict.removeprefix("trained for ")
        return f"{words}, then {ended} together" if ended else ""


@declared(frozen=True)
class Stacking(Learner):
    """Learn the layers of a deep machine one after the other, those of a Boltzmann machine then together.

    One step is one epoch.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> X = np.random.default_rng(0).integers(0, 2, (100, 6))
    >>> epochs = {n: gb.learning.Minibatch(max_iter=n) for n in (2, 3)}
    >>> learner = gb.learning.Stacking(alone=epochs[2], together=epochs[3])
    >>> gb.DeepBoltzmannMachine((4, 3), learner=learner, random_state=0).fit(X).result_.reason
    'trained for 2 epochs a layer, 2 layers, then 3 epochs together'
    """

    alone: Minibatch = free(Minibatch(), "How each machine of two layers learns.", doc="Minibatch")
    together: Minibatch | None = free(
        Minibatch(),
        "How all layers of a deep Boltzmann machine learn together afterwards; None for not at all.",
        doc="Minibatch or None",
    )
    carried: str = choice(
        "samples",
        "What a machine learns from: draws of the hidden units below, one for each row, or their probabilities, which "
        "only binary units can take.",
        "samples",
        "means",
    )

    def __post_init__(self) -> None:
        check(self)
        for name in ("alone", "together"):
            value = getattr(self, name)
            if not isinstance(value, Minibatch) and (name == "alone" or value is not None):
                raise ArgumentError("must be a `Minibatch` learner", argument=name, value=value)

    @property
    def penalties(self) -> Penalties:
        """The penalties of the last stage."""
        return (self.together or self.alone).penalties

    counts_rows = True  # what goes up from a layer is kept

    def refusal(self, model: DeepMachine) -> str:
        """Only models of layers in a row can be stacked."""
        return "" if STACKS.name_for(model.family) else "learns layers one by one, and the model has none in a row"

    def most_steps(self, model: DeepMachine, max_iter: int) -> int:
        """Return the epochs of all stages."""
        together = self._together(model)
        last = 0 if together is None else together.max_iter
        return self.alone.max_iter * (len(model.family.layers) - 1) + last

    def at_most(self, epochs: int) -> Stacking:
        """Return the learner with the smaller number of epochs in each stage."""
        together = None if self.together is None else self.together.at_most(epochs)
        return replace(self, alone=self.alone.at_most(epochs), together=together)

    def _together(self, model: DeepMachine) -> Minibatch | None:
        """Return the learner of all layers together; None for the directed layers of a belief network."""
        return self.together if STACKS.of(model.family).learns_together else None

    def start(self, model: DeepMachine, data: Dataset, rng: np.random.Generator) -> DeepMachine:
        """Return the model itself: each machine of the stack starts by itself."""
        return model

    def init(self, model: DeepMachine, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Prepare the lowest machine."""
        check_states(model.family.layers[0], data)
        if self.carried == "means" and any(layer.kind != "binary" for layer in model.family.layers[1:-1]):
            raise ArgumentError(
                "needs hidden units of 0 and 1, which can be probabilities",
                "use 'samples'",
                argument="carried",
                value="means",
            )
        scale = scale_of(model, data)
        if scale is not None:
            model, data = scale.from_data(model), scale.standard(data)
        problem = _Problem(self, model, data, scale, draw_seed(rng))
        problem.require_memory()
        machines = np.zeros(problem.span(problem.n_machines - 1).stop, dtype=self.alone.dtype)
        together = None if problem.together is None else problem.joint_state(model, _any_rows(model)).progress
        progress = StackProgress(
            theta=model.theta.astype(self.alone.dtype),
            machines=machines,
            filled=np.empty(0, data.states.dtype),
            stage=0,
            alone=problem.state_alone(0, machines, np.empty(0)).progress,
            together=together,
            seed=problem.seed,
            n_machines=problem.n_machines,
        )
        return LearnerState(problem, progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Learn from every row once."""
        problem, progress = state.problem, state.progress
        problem.seed = progress.seed
        step = self._step_alone if progress.stage < problem.n_machines else self._step_together
        progress, info = step(problem, progress)
        outcome: Outcome | None = info.outcome if isinstance(info.outcome, Failed) else None
        if progress.verdict:
            outcome = Converged(progress.verdict)
        return LearnerState(problem, progress), info._replace(outcome=outcome)

    def _step_alone(self, problem: _Problem, progress: StackProgress) -> tuple[StackProgress, StepInfo]:
        ready = problem.state_alone(progress.stage, progress.machines, progress.filled)
        state, info = self.alone.step(LearnerState(ready.problem, progress.alone))
        progress = replace(progress, alone=state.progress)
        return (self._next(problem, progress) if state.progress.verdict else progress), info

    def _next(self, problem: _Problem, progress: StackProgress) -> StackProgress:
        """Keep a machine that is trained, and prepare the next, or learning together."""
        place = progress.stage
        machines = progress.machines.copy()
        machines[problem.span(place)] = progress.alone.theta
        filled = progress.alone.filled if place == 0 else progress.filled
        # the machines to come are there without parameters
        theta = problem.stack.stacked([machines[problem.span(k)] for k in range(problem.n_machines)])
        progress = replace(progress, machines=machines, filled=filled, stage=place + 1, theta=theta)
        if place + 1 < problem.n_machines:
            return replace(progress, alone=problem.state_alone(place + 1, machines, filled).progress)
        if problem.together is None:
            return progress
        state = problem.joint_state(problem.model.replace(theta))
        return replace(progress, together=state.progress)

    def _step_together(self, problem: _Problem, progress: StackProgress) -> tuple[StackProgress, StepInfo]:
        assert problem.together is not None
        ready = problem.state_together(progress)
        state, info = problem.together.step(LearnerState(ready.problem, progress.together))
        return replace(progress, together=state.progress, theta=state.progress.theta), info

    # -- results ----------------------------------------------------------------------------------------------------
    def fitted(self, model: DeepMachine, state: LearnerState) -> DeepMachine:
        """Return the machine as a state has it, in the units of the data."""
        learned, scale = state.problem.model.replace(state.progress.theta), state.problem.scale
        return learned if scale is None else scale.to_data(learned)

    def by_chunks(self, batch_size: int) -> Learner:
        """Return what learns from chunks of rows: all layers together, without a stack before."""
        return (self.together or self.alone).by_chunks(batch_size)

    def for_layers(self) -> Stacking:
        """Return the learner itself."""
        return self

    def figures(self, state: LearnerState) -> dict[str, float]:
        """Return what learning together measures after every epoch."""
        together = state.problem.together
        if together is None or state.progress.stage < state.problem.n_machines:
            return {}
        return together.figures(state.problem.together_with(state.progress))


@LEARNERS.register("stacking", models="layers", epochs=True)
def stacking(max_iter: int = 10, l1: float = 0.0, l2: float = 0.0, carried: str = "samples") -> Stacking:
    """Return stacking with as many epochs for each layer alone as for all together."""
    each = Minibatch(max_iter=max_iter, l1=l1, l2=l2)
    return Stacking(alone=each, together=each, carried=carried)


@dataclass
class _Problem:
    """The layers and the rows, with the rows of the present stage kept ready."""

    learner: Stacking
    model: DeepMachine
    data: Dataset
    scale: ColumnScale | None
    seed: np.ndarray
    _ready: tuple[int, LearnerState] | None = None

    @property
    def together(self) -> Minibatch | None:
        return self.learner._together(self.model)

    @cached_property
    def stack(self) -> NetworkStack:
        return STACKS.of(self.model.family)(self.model.family)

    @property
    def n_machines(self) -> int:
        return len(self.stack.machines)

    def span(self, place: int) -> slice:
        """Where a machine's parameters lie among all."""
        ends = np.cumsum([0, *(machine.n_parameters for machine in self.stack.machines)])
        return slice(int(ends[place]), int(ends[place + 1]))

    def require_memory(self) -> None:
        """Ask for the machine that is learned, all of them twice, the whole, and rows that are carried upwards."""
        sizes = [machine.n_parameters for machine in self.stack.machines]
        widths = [layer.width for layer in self.model.family.layers]
        carried = (self.stack.n_copies * widths[0] + 2 * max(widths[1:])) * float(self.data.n_rows) * (len(sizes) > 1)
        kept = COPIES_OF_WEIGHTS * max(sizes) + 2 * sum(sizes) + COPIES_OF_WHOLE * self.model.theta.size
        what = f"fitting layers of {', '.join(f'{width:,}' for width in widths)} columns to {self.data.n_rows:,} rows"
        require_memory(8.0 * (kept + carried), what, "ask for fewer hidden units, or give fewer rows")

    def state_alone(self, place: int, machines: np.ndarray, filled: np.ndarray) -> LearnerState:
        """The start of a machine, on what the machines below make of the rows."""
        if self._ready is None or self._ready[0] != place:
            rng, learner = seeded(self.seed, _START, place), self.learner.alone
            rows = self._carried(place, machines, filled)
            begun = learner.start_here(self.stack.machines[place].build(), rows, rng)
            self._ready = place, learner.begin(begun.replace(self.stack.tied(place, begun.theta)), rows, rng)
        return self._ready[1]

    def joint_state(self, model: DeepMachine, rows: Dataset | None = None) -> LearnerState:
        assert self.together is not None
        return self.together.begin(model, self.data if rows is None else rows, seeded(self.seed, _TOGETHER))

    def state_together(self, progress: StackProgress) -> LearnerState:
        """The start of learning together, whose progress is kept elsewhere."""
        if self._ready is None or self._ready[0] != self.n_machines:
            self._ready = self.n_machines, self.joint_state(self.model.replace(progress.theta))
        return self._ready[1]

    def together_with(self, progress: StackProgress) -> LearnerState:
        return LearnerState(self.state_together(progress).problem, progress.together)

    def _completed(self, filled: np.ndarray) -> Dataset:
        if self.data.missing is None:
            return self.data
        rows = EpochRows(self._lowest)
        states = rows.states(np.arange(rows.n_rows), filled)[:, : self.data.n_variables]
        return plain_rows(states, rows.data.row_weights)

    @property
    def _lowest(self) -> Dataset:
        """The rows of the lowest machine."""
        missing = None if self.data.missing is None else np.hstack([self.data.missing] * self.stack.n_copies)
        states, names = np.hstack([self.data.states] * self.stack.n_copies), self.data.names * self.stack.n_copies
        return replace(self.data, states=states, missing=missing, names=names)

    def _carried(self, place: int, machines: np.ndarray, filled: np.ndarray) -> Dataset:
        """The rows as the hidden units below a machine show them."""
        if place == 0:
            return self._lowest
        rows = EpochRows(self._completed(filled))
        states = np.hstack([rows.states(np.arange(rows.n_rows), np.empty(0))] * self.stack.n_copies)
        for k in range(place):
            family, rng = self.stack.machines[k], seeded(self.seed, _UP, k)
            parts, both = family.split(machines[self.span(k)]), [family.layers[0].encode(states), None]
            if self.learner.carried == "means":
                states = family.means(parts, 1, both)
            else:
                states = codes_of(family.layers[1], family.draw(parts, 1, both, rng))
        return plain_rows(states, rows.data.row_weights)


def _any_rows(model: DeepMachine) -> Dataset:
    """Rows that the visible layer can take, to lay out the progress of learning together before it begins."""
    visible = model.family.layers[0]
    return plain_rows(codes_of(visible, visible.draw(np.zeros((2, visible.width)), np.random.default_rng(0))))
