"""Deep machines layer by layer: each restricted machine learns from the hidden units of the one below (YK15, stacking).

A stack of restricted machines is a deep belief network (Hinton, Osindero and Teh 2006), or the start of a deep
Boltzmann machine (Salakhutdinov and Hinton 2009). For the latter every layer but the first and the last will hear from
both sides, so each machine gives half of its energy; the visible layer of the lowest and the top layer of the highest
machine are there twice while it learns, so that half of the energy leaves them all of theirs. After that, all layers
may learn together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gibbsian.data.minibatches import draw_seed, seeded
from gibbsian.errors import ArgumentError
from gibbsian.layered.epochs import EpochLearner, EpochProgress
from gibbsian.layered.filling import Filling, check_rows
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.start import start_model
from gibbsian.layered.training import RestrictedLearner, RestrictedProgress
from gibbsian.learners.base import Learner, LearnerState
from gibbsian.learners.result import FitResult
from gibbsian.learners.run import run
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.joined_layer import joined
from gibbsian.models.layers import Layer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.optimizers import StepInfo

DeepMachine = BeliefNetwork | DeepModel

CARRIED = ("samples", "means")
# Numbers that tell the generators of one seed apart, each with the place of a machine: its start and its chains, the
# rows that go up from it, and learning together.
_START, _UP, _TOGETHER = 0, 1, 2


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
    greedy : RestrictedProgress
        Where it stands.
    joint : EpochProgress or None
        Where learning together stands.
    seed : ndarray
        What all random numbers follow from.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.stacking import Stacking
    >>> from gibbsian.models.belief_network import BeliefNetwork
    >>> from gibbsian.models.layers import BinaryLayer
    >>> network = BeliefNetwork.zeros([BinaryLayer(3), BinaryLayer(2), BinaryLayer(2)])
    >>> Stacking().init(network, LayerRows(np.eye(3)), np.random.default_rng(0)).progress.stage
    0
    """

    theta: np.ndarray
    machines: np.ndarray
    filled: np.ndarray
    stage: int
    greedy: RestrictedProgress
    joint: EpochProgress | None
    seed: np.ndarray


@dataclass(frozen=True)
class Stacking(Learner):
    """Learn the layers of a deep machine one after the other, then, if asked to, together; one step is one epoch.

    Parameters
    ----------
    greedy : RestrictedLearner
        How each restricted machine learns.
    joint : EpochLearner, optional
        How all layers learn together afterwards: `WakeSleep` for a belief network, `DeepLearner` for a deep Boltzmann
        machine.
    carried : {"samples", "means"}
        What a machine learns from: draws of the hidden units below, one for each row, or their probabilities, which
        only binary units can take.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.stacking import Stacking, train_stack
    >>> from gibbsian.layered.training import RestrictedLearner
    >>> from gibbsian.models.belief_network import BeliefNetwork
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rng = np.random.default_rng(0)
    >>> rows = LayerRows(np.repeat(rng.random((500, 1)) < 0.5, 4, axis=1).astype(np.int8))     # all on or all off
    >>> network = BeliefNetwork.zeros([BinaryLayer(4), BinaryLayer(3), BinaryLayer(2)])
    >>> learner = Stacking(RestrictedLearner(n_epochs=30, batch_size=20))
    >>> fit = train_stack(learner, network, rows, rng)
    >>> fit.reason
    'trained for 30 epochs a layer, 2 layers'
    """

    greedy: RestrictedLearner = field(default_factory=RestrictedLearner)
    joint: EpochLearner | None = None
    carried: str = "samples"

    def __post_init__(self) -> None:
        if self.carried not in CARRIED:
            raise ArgumentError(
                "is not known", f"use one of {', '.join(CARRIED)}", argument="carried", value=self.carried
            )

    def init(self, model: DeepMachine, rows: LayerRows, rng: np.random.Generator) -> LearnerState:
        """Prepare the lowest machine."""
        check_rows(RestrictedModel.build(model.visible, model.layers[1]), rows)
        if self.carried == "means" and any(layer.kind != "binary" for layer in model.layers[1:-1]):
            raise ArgumentError(
                "needs hidden units of 0 and 1, which can be probabilities",
                "use 'samples'",
                argument="carried",
                value="means",
            )
        problem = _Problem(self, model, rows, draw_seed(rng))
        sizes = [problem.blank(place).theta.size for place in range(model.n_hidden_layers)]
        machines = np.zeros(sum(sizes), dtype=self.greedy.dtype)
        joint = None if self.joint is None else problem.joint_state(model, _any_rows(model)).progress
        progress = StackProgress(
            theta=model.theta.astype(self.greedy.dtype),
            machines=machines,
            filled=np.empty(0, rows.states.dtype),
            stage=0,
            greedy=problem.greedy_state(0, machines, np.empty(0)).progress,
            joint=joint,
            seed=problem.seed,
        )
        return LearnerState(problem, progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Learn from every row once."""
        problem, progress = state.problem, state.progress
        problem.seed = progress.seed
        if progress.stage < problem.n_machines:
            progress, info = self._greedy_step(problem, progress)
        else:
            progress, info = self._joint_step(problem, progress)
        return LearnerState(problem, progress), info

    def _greedy_step(self, problem: _Problem, progress: StackProgress) -> tuple[StackProgress, StepInfo]:
        place = progress.stage
        inner = problem.greedy_state(place, progress.machines, progress.filled)
        inner, info = self.greedy.step(LearnerState(inner.problem, progress.greedy))
        progress = replace(progress, greedy=inner.progress)
        if progress.greedy.epoch < self.greedy.n_epochs:
            return progress, info._replace(verdict="")
        return self._next(problem, progress), info._replace(verdict=self._verdict(problem, place))

    def _next(self, problem: _Problem, progress: StackProgress) -> StackProgress:
        """Keep a machine that is trained, and prepare the next, or learning together."""
        place = progress.stage
        machines = progress.machines.copy()
        machines[problem.span(place)] = progress.greedy.theta
        filled = progress.greedy.filled if place == 0 else progress.filled
        stack = [problem.machine(k, machines) for k in range(place + 1)]
        progress = replace(progress, machines=machines, filled=filled, stage=place + 1)
        if place + 1 < problem.n_machines:
            theta = _assembled(problem.model, [*stack, *map(problem.blank, range(place + 1, problem.n_machines))]).theta
            greedy = problem.greedy_state(place + 1, machines, filled).progress
            return replace(progress, theta=theta, greedy=greedy)
        whole = _assembled(problem.model, stack)
        joint = None if self.joint is None else problem.joint_state(whole, problem.together(filled)).progress
        return replace(progress, theta=whole.theta, joint=joint)

    def _joint_step(self, problem: _Problem, progress: StackProgress) -> tuple[StackProgress, StepInfo]:
        """Take an epoch together; a run that is resumed at its end tells what it has without learning more."""
        if self.joint is None:
            told = StepInfo(progress.greedy.value, progress.greedy.gradient_norm, 0.0, progress.greedy.steps)
            return progress, told._replace(verdict=self._verdict(problem, problem.n_machines - 1))
        rows = problem.together(progress.filled)
        state, info = self.joint.step(LearnerState((problem.model, rows), progress.joint))
        ended = f"{self._story(problem)}, then {info.verdict.removeprefix('trained for ')} together"
        progress = replace(progress, joint=state.progress, theta=state.progress.theta)
        return progress, info._replace(verdict=ended if info.verdict else "")

    def _verdict(self, problem: _Problem, place: int) -> str:
        done = place + 1 == problem.n_machines and self.joint is None
        return self._story(problem) if done else ""

    def _story(self, problem: _Problem) -> str:
        epochs, layers = self.greedy.n_epochs, problem.n_machines
        return f"trained for {epochs} epoch{'s' * (epochs != 1)} a layer, {layers} layer{'s' * (layers != 1)}"

    @property
    def joint_epochs(self) -> int:
        """Epochs of learning together."""
        return 0 if self.joint is None else self.joint.n_epochs


def train_stack(
    learner: Stacking,
    model: DeepMachine,
    rows: LayerRows,
    rng: np.random.Generator,
    *,
    callbacks: Sequence[Any] = (),
) -> FitResult:
    """Train a deep machine layer by layer, then together.

    Parameters
    ----------
    learner : Stacking
        How.
    model : BeliefNetwork or DeepModel
        Its layers and temperature; the parameters do not matter.
    rows, rng
        From what, with which randomness.
    callbacks
        As for `gibbsian.learners.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_training import DeepLearner
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.stacking import Stacking, train_stack
    >>> from gibbsian.layered.training import RestrictedLearner
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> dbm = DeepModel.build([BinaryLayer(3), BinaryLayer(2), BinaryLayer(2)])
    >>> learner = Stacking(RestrictedLearner(n_epochs=2), DeepLearner(n_epochs=3))
    >>> fit = train_stack(learner, dbm, LayerRows(np.eye(3)), np.random.default_rng(0))
    >>> len(fit.trace), fit.reason
    (7, 'trained for 2 epochs a layer, 2 layers, then 3 epochs together')
    """
    # one step more than there are epochs: a run that is resumed at its end tells what it has without learning more
    epochs = learner.greedy.n_epochs * model.n_hidden_layers + learner.joint_epochs
    limits = {"max_iter": epochs + 1, "tol": np.finfo(np.float64).tiny}
    return run(learner, model, rows, rng, callbacks=callbacks, **limits)  # type: ignore[arg-type]


@dataclass
class _Problem:
    """The layers and the rows, with the rows of the present stage kept ready."""

    learner: Stacking
    model: DeepMachine
    rows: LayerRows
    seed: np.ndarray
    _ready: tuple[int, LearnerState] | None = None

    @property
    def n_machines(self) -> int:
        return self.model.n_hidden_layers

    @property
    def _doubled(self) -> bool:
        return isinstance(self.model, DeepModel) and self.n_machines > 1

    def sides(self, place: int) -> tuple[Layer, Layer]:
        """The layers of a machine, with the ends of a deep Boltzmann machine twice."""
        lower, upper = self.model.layers[place : place + 2]
        if self._doubled and place == 0:
            lower = joined([lower, lower])
        if self._doubled and place == self.n_machines - 1:
            upper = joined([upper, upper])
        return lower, upper

    def blank(self, place: int) -> RestrictedModel:
        lower, upper = self.sides(place)
        size = lower.width + upper.width + lower.width * upper.width
        return RestrictedModel(lower, upper, np.zeros(size, self.learner.greedy.dtype), self.model.temperature)

    def span(self, place: int) -> slice:
        """Where a machine's parameters lie among all."""
        ends = np.cumsum([0, *(self.blank(k).theta.size for k in range(self.n_machines))])
        return slice(int(ends[place]), int(ends[place + 1]))

    def machine(self, place: int, machines: np.ndarray) -> RestrictedModel:
        return self.blank(place).replace(machines[self.span(place)])

    def greedy_state(self, place: int, machines: np.ndarray, filled: np.ndarray) -> LearnerState:
        """The start of a machine, on what the machines below make of the rows."""
        if self._ready is None or self._ready[0] != place:
            rng = seeded(self.seed, _START, place)
            rows = self._carried(place, machines, filled)
            start = start_model(
                *self.sides(place), rows, rng, temperature=self.model.temperature, dtype=self.learner.greedy.dtype
            )
            start = _tied(start, self._doubled and place == 0, self._doubled and place == self.n_machines - 1)
            self._ready = place, self.learner.greedy.init(start, rows, rng)
        return self._ready[1]

    def joint_state(self, model: DeepMachine, rows: LayerRows) -> LearnerState:
        assert self.learner.joint is not None
        return self.learner.joint.init(model, rows, seeded(self.seed, _TOGETHER))

    def together(self, filled: np.ndarray) -> LayerRows:
        """The rows that all layers learn from: a belief network has no road for missing cells but to fill them."""
        return self.rows if isinstance(self.model, DeepModel) else self._completed(filled)

    def _completed(self, filled: np.ndarray) -> LayerRows:
        if self.rows.missing is None or not self.rows.missing.any():
            return replace(self.rows, missing=None)
        lowest = self._lowest
        states = Filling(lowest).states(np.arange(lowest.n_rows), filled)[:, : self.rows.n_units]
        return LayerRows(states, self.rows.weights)

    @property
    def _lowest(self) -> LayerRows:
        """The rows of the lowest machine."""
        if not self._doubled:
            return self.rows
        missing = None if self.rows.missing is None else np.hstack([self.rows.missing] * 2)
        return LayerRows(np.hstack([self.rows.states] * 2), self.rows.weights, missing)

    def _carried(self, place: int, machines: np.ndarray, filled: np.ndarray) -> LayerRows:
        """The rows as the hidden units below a machine show them."""
        if place == 0:
            return self._lowest
        states = self._completed(filled).states
        states = np.hstack([states, states]) if self._doubled else states
        for k in range(place):
            machine, rng = self.machine(k, machines), seeded(self.seed, _UP, k)
            values = machine.visible.encode(states)
            if self.learner.carried == "means":
                states = machine.hidden_means(values)
            else:
                states = machine.hidden.decode(machine.draw_hidden(values, rng))
        return LayerRows(states, self.rows.weights)


def _any_rows(model: DeepMachine) -> LayerRows:
    """Rows that the visible layer can take, to lay out the progress of learning together before it begins."""
    fields = np.zeros((2, model.visible.width))
    return LayerRows(model.visible.decode(model.visible.draw(fields, np.random.default_rng(0))))


def _tied(machine: RestrictedModel, lower: bool, upper: bool) -> RestrictedModel:
    """Give both copies of a layer the same weights."""
    weights = machine.weights
    if lower:
        half = len(weights) // 2
        weights = np.vstack([weights[:half], weights[:half]])
    if upper:
        half = weights.shape[1] // 2
        weights = np.hstack([weights[:, :half], weights[:, :half]])
    return machine.replace(np.concatenate([machine.visible_biases, machine.hidden_biases, weights.ravel()]))


def _assembled(model: DeepMachine, machines: Sequence[RestrictedModel]) -> Any:
    """Put trained machines together."""
    if isinstance(model, BeliefNetwork):
        return BeliefNetwork.stack(machines)
    return halved_stack(model.layers, machines, model.temperature)


def halved_stack(layers: Sequence[Layer], machines: Sequence[RestrictedModel], temperature: float = 1.0) -> DeepModel:
    """Return the deep Boltzmann machine of half of each machine's energy, the two copies of a layer made one.

    Parameters
    ----------
    layers : sequence of Layer
        Of the deep machine.
    machines : sequence of RestrictedModel
        From the lowest; the first has the visible layer twice and the last the top layer twice, next to each other. A
        single machine, with neither twice, is taken whole.
    temperature : float
        T of YK15.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.stacking import halved_stack
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> lower = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1), [1.0, 1.0], [0.5], [[3.0], [3.0]])
    >>> upper = RestrictedModel.build(BinaryLayer(1), BinaryLayer(2), [0.1], [1.0, 1.0], [[2.0, 2.0]])
    >>> halved_stack([BinaryLayer(1)] * 3, [lower, upper]).theta.tolist()
    [1.0, 0.3, 1.0, 3.0, 2.0]
    """
    share = 0.5 if len(machines) > 1 else 1.0
    dtype = machines[0].theta.dtype
    biases, weights = [np.zeros(layer.width, dtype) for layer in layers], []
    for place, machine in enumerate(machines):
        lower, upper = layers[place].width, layers[place + 1].width
        biases[place] += share * machine.visible_biases.reshape(-1, lower).sum(axis=0)
        biases[place + 1] += share * machine.hidden_biases.reshape(-1, upper).sum(axis=0)
        weights.append(share * machine.weights.reshape(-1, lower, machine.weights.shape[1] // upper, upper).sum((0, 2)))
    return DeepModel.build(layers, biases, [matrix.astype(dtype) for matrix in weights], temperature)


__all__ = ["StackProgress", "Stacking", "halved_stack", "train_stack"]
