"""Deep machines layer by layer: each restricted machine learns from the hidden units of the one below (YK15, stacking).

A stack of restricted machines is a deep belief network (Hinton, Osindero and Teh 2006), or the start of a deep
Boltzmann machine (Salakhutdinov and Hinton 2009), all layers of which may then learn together.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import cast

import numpy as np

from gibbsian.arrays import Floats, Slice, States
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.learning.base import LEARNERS, Fit, Learner, Penalties
from gibbsian.learning.curves import curve_of
from gibbsian.learning.imputation import BatchRows, check_states, complete_rows
from gibbsian.learning.layer_fits import InStandardUnits, ScaledState, initial_layers
from gibbsian.learning.minibatch import COPIES_OF_WEIGHTS, EpochFit, EpochState, Minibatch
from gibbsian.learning.optimizers import Converged, Failed, Running, StepInfo
from gibbsian.models.base import Family, Layered, Model, Units, keeps
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.layers.stack import StackFamily, joined
from gibbsian.models.layers.units import codes_of
from gibbsian.registry import Registry
from gibbsian.resources import require_memory, spans
from gibbsian.rng import Key
from gibbsian.settings import check, choice, declared, free

# by the families whose layers can learn one by one
STACKS = Registry("learning layer by layer", "gibbsian.learning", "STACKS")

# Arrays of the size of the whole machine's weights: as it is learned so far, put together, and learning together.
COPIES_OF_WHOLE = 6


@STACKS.register("belief-network")
@dataclass(frozen=True)
class NetworkStack:
    """The restricted machines of a belief network: those of neighbouring layers, as they are."""

    family: StackFamily | BeliefNetworkFamily
    learns_together = False  # the directed layers have no gradient that chains know

    @cached_property
    def machines(self) -> list[StackFamily]:
        """The machines of a layer and the next while they learn alone."""
        return [StackFamily(self.family.layers[place : place + 2]) for place in range(len(self.family.layers) - 1)]

    @cached_property
    def spans(self) -> list[Slice]:
        """Where the parameters of each machine lie among all."""
        return spans(machine.n_parameters for machine in self.machines)

    @property
    def n_copies(self) -> int:
        """How often the lowest machine has the visible layer."""
        return self.machines[0].layers[0].n_units // self.family.layers[0].n_units

    def tied(self, place: int, theta: Floats) -> Floats:
        """Return theta of a machine with the same weights for all copies of a layer: no layer is there twice."""
        return theta

    def stacked(self, thetas: Sequence[Floats]) -> Floats:
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

    def tied(self, place: int, theta: Floats) -> Floats:
        """Return theta of a machine with the same weights for both copies of a layer."""
        biases, (weights,) = self.machines[place].split(theta)
        for axis in (0, 1):
            if len(biases[axis]) > self.family.layers[place + axis].width:
                half = np.split(weights, 2, axis)[0]
                weights = np.concatenate([half, half], axis)
        return joined([*biases, weights])

    def stacked(self, thetas: Sequence[Floats]) -> Floats:
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

    def last(self, model: Model[Family]) -> Minibatch | None:
        """Return the learner of all layers together; None for the directed layers of a belief network."""
        return self.together if STACKS.of(model.family).learns_together else None

    def bind(self, model: Model[Family], data: Dataset) -> Fit[StackState] | Fit[ScaledState[StackState]]:
        """Bind to a deep machine and rows."""
        assert keeps(model.family, Layered)
        check_states(model.family.layers[0], data)
        if self.carried == "means" and any(layer.kind != "binary" for layer in model.family.layers[1:-1]):
            reason, remedy = "needs hidden units of 0 and 1, which can be probabilities", "use 'samples'"
            raise ArgumentError(reason, remedy, argument="carried", value="means")
        if model.family.layers[0].variables.real:
            return InStandardUnits(partial(StackFit, self), model, data)
        return StackFit(self, model, data)

    # -- what estimators ask ------------------------------------------------------------------------------------------
    requires = (Layered,)
    takes = frozenset({"chunks"})  # what goes up from a layer is kept here

    def most_steps(self, model: Model[Family], max_iter: int) -> int:
        """Return the epochs of all stages."""
        together = self.last(model)
        n_machines = len(STACKS.of(model.family)(model.family).machines)
        return self.alone.max_iter * n_machines + (0 if together is None else together.max_iter)

    def at_most(self, epochs: int) -> Stacking:
        """Return the learner with the smaller number of epochs in each stage."""
        together = None if self.together is None else self.together.at_most(epochs)
        return replace(self, alone=self.alone.at_most(epochs), together=together)

    def start(self, model: Model[Family], data: Dataset, rng: np.random.Generator) -> Model[Family]:
        """Return the model itself: each machine of the stack starts by itself."""
        return model

    def by_chunks(self, batch_size: int) -> Learner:
        """Return what learns from chunks of rows: all layers together, without a stack before."""
        return (self.together or self.alone).by_chunks(batch_size)


@dataclass(frozen=True)
class StackState:
    """All that the next epoch needs besides the rows.

    Parameters
    ----------
    machines : ndarray
        Parameters of the machines that are trained, one after the other; zero for those to come.
    imputed : ndarray
        Missing cells as the lowest machine has left them.
    stage : int
        The machine that learns; the number of machines while all learn together.
    alone : EpochState
        Where it stands.
    together : EpochState or None
        Where learning together stands.
    key : Key
        Of the whole fit.
    """

    machines: Floats
    imputed: States
    stage: int
    alone: EpochState = field(metadata={"varies": True})  # other shapes for other layers
    together: EpochState | None
    key: Key


class StackFit(Fit[StackState]):
    """Fits in turn: of each machine to the rows as the machines below carry them upwards, then of all together."""

    def __init__(self, learner: Stacking, model: Model[Family], data: Dataset):
        self.learner, self.given, self.data = learner, model, data
        self.stack: NetworkStack = STACKS.of(model.family)(model.family)
        self.layers = self.stack.family.layers
        self.together = learner.last(model)
        self.n_machines = len(self.stack.machines)
        self._require_memory()
        self._bound: tuple[tuple[int, ...], EpochFit] | None = None

    def init(self, key: Key, theta: Floats | None = None) -> tuple[StackState, StepInfo]:
        """Prepare the lowest machine, which starts by itself as all do."""
        machines = np.zeros(self.stack.spans[-1].stop, dtype=self.learner.alone.dtype)
        imputed: States = np.empty(0, np.int8)
        together = None
        if self.together is not None:  # the form of learning together, before it begins
            visible = self.layers[0]
            drawn = codes_of(visible, visible.draw(np.zeros((2, visible.width)), np.random.default_rng(0)))
            together, _ = EpochFit(self.together, self.given, complete_rows(drawn)).init(key)
        state = StackState(machines, imputed, 0, self._begin(0, machines, imputed, key), together, key)
        return state, self._info(StepInfo(), state)

    def step(self, state: StackState) -> tuple[StackState, StepInfo]:
        """Learn from every row once."""
        fit = self._fit(state.stage, state.machines, state.imputed, state.key)
        if state.stage == self.n_machines and state.together is not None:
            together, info = fit.step(state.together)
            return self._told(replace(state, together=together), info)
        alone, info = fit.step(state.alone)
        state = replace(state, alone=alone)
        if isinstance(info.outcome, Converged):
            state = self._next(state)
        return self._told(state, info)

    def _next(self, state: StackState) -> StackState:
        """Keep a machine that is trained, and prepare the next, or learning together."""
        machines, stage = state.machines.copy(), state.stage + 1
        machines[self.stack.spans[state.stage]] = state.alone.theta
        imputed = state.alone.imputed if state.stage == 0 else state.imputed
        state = replace(state, machines=machines, imputed=imputed, stage=stage)
        if stage < self.n_machines:
            return replace(state, alone=self._begin(stage, machines, imputed, state.key))
        if self.together is None:
            return state
        fit = self._fit(stage, machines, imputed, state.key)
        return replace(state, together=fit.init(state.key.fold("together"), self._stacked(machines))[0])

    def _told(self, state: StackState, info: StepInfo) -> tuple[StackState, StepInfo]:
        """Return the state with what the step was, and whether it was the last."""
        outcome, ended = info.outcome, state.stage == self.n_machines
        if not isinstance(outcome, Failed):
            epochs = self.learner.alone.max_iter
            reason = f"trained for {_counted(epochs, 'epoch')} a layer, {_counted(self.n_machines, 'layer')}"
            outcome = Converged(reason) if ended else Running()
            if ended and self.together is not None and state.together is not None:
                whole = f"{reason}, then {_counted(self.together.max_iter, 'epoch')} together"
                outcome = Converged(whole) if state.together.epoch >= self.together.max_iter else Running()
        return state, self._info(info._replace(outcome=outcome), state)

    def _info(self, info: StepInfo, state: StackState) -> StepInfo:
        """Measure what learning together does, once it has begun."""
        if self.together is None or not isinstance(self.stack.family, StackFamily):
            return info._replace(metrics={})
        name, _ = curve_of(self.stack.family)
        began = state.stage == self.n_machines and state.together is not None and state.together.epoch > 0
        followed = self.together.curves or len(self.layers) > 2
        return info._replace(metrics={name: info.metrics[name] if began else np.nan} if followed else {})

    def model(self, state: StackState) -> Model[Family]:
        """Return the machine as far as it is learned: with zeros for machines to come, and for what has run away."""
        if state.stage == self.n_machines and state.together is not None:
            return self.given.replace(np.nan_to_num(state.together.theta))
        machines = state.machines.copy()
        if state.stage < self.n_machines:
            machines[self.stack.spans[state.stage]] = state.alone.theta
        return self.given.replace(np.nan_to_num(self._stacked(machines)))

    # -- the fits in turn ---------------------------------------------------------------------------------------------
    def _begin(self, stage: int, machines: Floats, imputed: States, key: Key) -> EpochState:
        """Return the start of a machine, from small random weights."""
        fit, own = self._fit(stage, machines, imputed, key), key.fold("machine", stage)
        start = initial_layers(self.stack.machines[stage].build(), fit.rows.data, own.fold("theta").generator())
        return fit.init(own, self.stack.tied(stage, start.theta))[0]

    def _fit(self, stage: int, machines: Floats, imputed: States, key: Key) -> EpochFit:
        """Return the fit of a stage; it is kept for the next call, by what its rows depend on."""
        if stage == self.n_machines:
            below: tuple[Floats | States, ...] = ()
        else:
            below = () if stage == 0 else (machines[: self.stack.spans[stage].start], imputed)
        name = (stage, *(zlib.crc32(part.tobytes()) for part in below), *key.words.tolist())
        if self._bound is None or self._bound[0] != name:
            if stage == self.n_machines:
                assert self.together is not None
                fit = EpochFit(self.together, self.given, self.data)
            else:
                model = self.stack.machines[stage].build()
                fit = EpochFit(self.learner.alone, model, self._carried(stage, machines, imputed, key))
            self._bound = name, fit
        return self._bound[1]

    def _carried(self, stage: int, machines: Floats, imputed: States, key: Key) -> Dataset:
        """Return the rows as the hidden units below a machine show them."""
        data, n_copies = self.data, self.stack.n_copies
        missing = None if data.missing is None else np.hstack([data.missing] * n_copies)
        lowest = replace(data, states=np.hstack([data.states] * n_copies), missing=missing, names=data.names * n_copies)
        if stage == 0:
            return lowest
        rows = BatchRows(lowest)
        # all copies of a column as the first one was imputed
        first = rows.states(np.arange(rows.n_rows), imputed)[:, : data.n_variables]
        states = cast("States", np.hstack([first] * n_copies))
        for place, family in enumerate(self.stack.machines[:stage]):
            parts = family.split(machines[self.stack.spans[place]])
            values = [family.layers[0].encode(states), None]
            if self.learner.carried == "means":
                states = family.means(parts, 1, values)
            else:
                rng = key.fold("rows", place).generator()
                states = codes_of(family.layers[1], family.draw(parts, 1, values, rng))
        return complete_rows(states, rows.data.row_weights)

    def _stacked(self, machines: Floats) -> Floats:
        """Return theta of the whole."""
        return self.stack.stacked([machines[span] for span in self.stack.spans])

    def _require_memory(self) -> None:
        """Ask for the machine that is learned, all of them twice, the whole, and rows that are carried upwards."""
        sizes = [machine.n_parameters for machine in self.stack.machines]
        widths = [layer.width for layer in self.layers]
        carried = (self.stack.n_copies * widths[0] + 2 * max(widths[1:])) * float(self.data.n_rows) * (len(sizes) > 1)
        held = COPIES_OF_WEIGHTS * max(sizes) + 2 * sum(sizes) + COPIES_OF_WHOLE * self.given.theta.size
        what = f"fitting layers of {', '.join(f'{width:,}' for width in widths)} columns to {self.data.n_rows:,} rows"
        require_memory(8.0 * (held + carried), what, "ask for fewer hidden units, or give fewer rows")


def _counted(number: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{number} {word}{'s' * (number != 1)}"


@LEARNERS.register("stacking", models="layers", epochs=True)
def stacking(max_iter: int = 10, l1: float = 0.0, l2: float = 0.0, carried: str = "samples") -> Stacking:
    """Return stacking with as many epochs for each layer alone as for all together."""
    each = Minibatch(max_iter=max_iter, l1=l1, l2=l2)
    return Stacking(alone=each, together=each, carried=carried)
