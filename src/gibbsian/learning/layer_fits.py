"""What fits of layers share: which models they take, where they begin, and units of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, cast

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import without_hidden
from gibbsian.errors import ArgumentError
from gibbsian.learning.base import Fit, State
from gibbsian.learning.imputation import BatchRows, check_states
from gibbsian.learning.optimizers import StepInfo
from gibbsian.learning.standard_units import ColumnScale
from gibbsian.models.base import Family, Layered, Model, keeps
from gibbsian.models.ising import is_ising
from gibbsian.models.layers.stack import StackFamily, in_layers
from gibbsian.models.layers.units import idle_means, mean_values
from gibbsian.rng import Key


def as_layers(model: Model[Family], data: Dataset) -> tuple[Model[StackFamily], Dataset]:
    """Return a model as a stack, and the data without columns of hidden units; refuse what does not fit."""
    layers = model if keeps(model.family, Layered) else in_layers(model)
    if layers is None:
        reason, remedy = "learning by minibatches of rows is for machines of layers", "use `learner='online'`"
        if is_ising(model.family):
            reason = "learning by layers needs biases, and every column to couple to every hidden unit and nothing else"
            remedy = "set `graph='restricted'`, or learn otherwise" if model.n_hidden else remedy
        raise ArgumentError(reason, remedy)
    if not isinstance(layers.family, StackFamily):
        reason = "the directed layers of a belief network have no gradient that chains know"
        raise ArgumentError(reason, "learn them one by one (`learner='stacking'`)")
    stack = cast("Model[StackFamily]", layers)
    n_columns = stack.family.layers[0].n_units
    if data.n_variables == n_columns + stack.family.n_hidden:  # hidden units are columns of the model and the data
        data = without_hidden(data, stack.family.n_hidden)
    if not data.on_cluster:  # where cells were checked when they were read
        check_states(stack.family.layers[0], data)
    return stack, data


def initial_layers(
    model: Model[Family], data: Dataset, rng: np.random.Generator, scale: float | None = None
) -> Model[Family]:
    """Return where learning begins: visible units with the means of the data, and small random weights.

    One more row, without fields, keeps the biases finite where a column never varies. Weights have a deviation of
    `scale`, or one that their number decides.
    """
    stack, data = as_layers(model, data)
    units = scale_of(stack, data)
    if units is not None:
        stack, data = units.from_data(stack), units.standard(data)
    n_rows = data.n_rows if data.on_cluster else BatchRows(data).n_rows
    visible = stack.family.layers[0]
    means = (n_rows * mean_values(visible, data) + idle_means(visible)) / (n_rows + 1)
    begun = stack.replace(stack.family.initialised(means, rng, scale))
    return model.replace((begun if units is None else units.to_data(begun)).theta)


# -- real numbers in standard units ------------------------------------------------------------------------------------
def scale_of(model: Model[StackFamily], data: Dataset) -> ColumnScale | None:
    """Return the standard units of columns of real numbers; None for discrete ones."""
    return ColumnScale.of(data) if model.family.layers[0].variables.real else None


class ScaledState(NamedTuple, Generic[State]):
    """The state of a fit in standard units, and the units, which stay those of the first rows."""

    inner: State
    scale: ColumnScale


class InStandardUnits(Fit[ScaledState[State]]):
    """A fit of real numbers, whose steps in standard units do not depend on the scale of the columns."""

    def __init__(self, bind: Callable[[Model[Family], Dataset], Fit[State]], model: Model[Family], data: Dataset):
        self.bind, self.given, self.data = bind, model, data
        self._bound: tuple[bytes, Fit[State]] | None = None

    def init(self, key: Key, theta: Floats | None = None) -> tuple[ScaledState[State], StepInfo]:
        """Take the units from the rows, and begin."""
        scale = ColumnScale.of(self.data)
        start = None if theta is None else scale.from_data(self.given.replace(theta)).theta
        inner, info = self._in(scale).init(key, start)
        return ScaledState(inner, scale), info

    def step(self, state: ScaledState[State]) -> tuple[ScaledState[State], StepInfo]:
        """Take a step."""
        inner, info = self._in(state.scale).step(state.inner)
        return state._replace(inner=inner), info

    def model(self, state: ScaledState[State]) -> Model[Family]:
        """Return the model in the units of the data."""
        return state.scale.to_data(self._in(state.scale).model(state.inner))

    def carry(self, state: ScaledState[State]) -> ScaledState[State]:
        """Continue in the units of the first rows."""
        return state._replace(inner=self._in(state.scale).carry(state.inner))

    def handover(self, state: ScaledState[State]) -> ScaledState[State] | None:
        """Return the state at the end of a fit, if another one can continue it."""
        inner = self._in(state.scale).handover(state.inner)
        return None if inner is None else state._replace(inner=inner)

    def _in(self, scale: ColumnScale) -> Fit[State]:
        """Return the fit in some units; it is kept for the next call."""
        name = scale.centres.tobytes() + scale.spreads.tobytes()
        if self._bound is None or self._bound[0] != name:
            self._bound = name, self.bind(scale.from_data(self.given), scale.standard(self.data))
        return self._bound[1]
