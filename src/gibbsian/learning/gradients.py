"""Estimates of the gradient that learning follows, bound to a model and rows.

Where the loss of a complete row x has the gradient ``g(x, theta)`` and cells are missing, the equations ``mean over
rows of E_theta[g(x, theta) | present cells] = 0`` are solved. Under the true parameters both expectations are over the
true distribution, provided that cells are missing at random, so that the equations are consistent where those of
complete rows are. They are not the gradient of any function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.learning.completing import Completed, completed
from gibbsian.learning.objectives import Function, Objective
from gibbsian.learning.optimizers import OptimizerState
from gibbsian.learning.optimizers.base import penalty
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.rng import Key

S = TypeVar("S")


class Gradient(NamedTuple):
    """A gradient of what is minimised, with the value there and its own Monte Carlo error, where these are known."""

    vector: Floats
    value: float = np.nan
    stderr: Floats | None = None


class GradientEstimator(Protocol[S]):
    """What estimates the gradient at theta; a state of plain arrays holds what it samples with."""

    def init(self, theta: Floats, key: Key) -> S:
        """Return the state before the first call."""

    def __call__(self, theta: Floats, state: S, rows: Dataset, key: Key) -> tuple[Gradient, S]:
        """Return the gradient at theta over `rows`, a minibatch or all rows."""

    def carry(self, theta: Floats, state: S, key: Key) -> S:
        """Return the state of an estimator of other rows as one of this."""


@dataclass(frozen=True, eq=False)
class ObjectiveGradient:
    """The gradient of an objective over minibatches, whose missing cells are completed under the model."""

    objective: Objective[DiscreteFamily]
    model: Model[DiscreteFamily]

    def init(self, theta: Floats, key: Key) -> None:
        """Return no state."""

    def __call__(self, theta: Floats, state: None, rows: Dataset, key: Key) -> tuple[Gradient, None]:
        """Return the gradient over a minibatch."""
        if rows.has_missing and not self.objective.takes_missing:
            rows = completed(self.model.replace(theta), rows, key.generator())
        value, gradient = self.objective.sampled(self.model, rows)(theta)
        return Gradient(gradient, value), None

    def carry(self, theta: Floats, state: None, key: Key) -> None:
        """Return no state."""


class Imputer(Protocol[S]):
    """What completes rows some times over, under a model that may change: clamped chains."""

    @property
    def copies(self) -> int:
        """How many times over."""

    def init(self, model: Model[DiscreteFamily], data: Dataset, rng: np.random.Generator) -> S:
        """Start the chains."""

    def advance(self, model: Model[DiscreteFamily], state: S) -> S:
        """Run the chains on."""

    def completions(self, data: Dataset, state: S, copy: int = 0) -> Dataset:
        """Return the rows as one copy completes them now."""


@dataclass(frozen=True, eq=False)
class SampledCompletions(Generic[S]):
    """The gradient of an objective of complete rows, whose missing cells persistent chains draw under the model."""

    objective: Objective[DiscreteFamily]
    model: Model[DiscreteFamily]
    data: Dataset
    chains: Imputer[S]

    def init(self, theta: Floats, key: Key) -> S:
        """Start the chains."""
        return self.chains.init(self.model.replace(theta), self.data, key.generator())

    def __call__(self, theta: Floats, state: S, rows: Dataset, key: Key) -> tuple[Gradient, S]:
        """Run the chains on, and average over the copies of the data."""
        state = self.chains.advance(self.model.replace(theta), state)
        copies = (self.chains.completions(rows, state, copy) for copy in range(self.chains.copies))
        values, gradients = zip(*(self.objective.bind(self.model, each)(theta) for each in copies), strict=True)
        stderr = np.std(gradients, axis=0, ddof=1) / np.sqrt(len(gradients))
        return Gradient(np.mean(gradients, axis=0), float(np.mean(values)), stderr), state

    def carry(self, theta: Floats, state: S, key: Key) -> S:
        """Start chains for the missing cells of these rows."""
        return self.init(theta, key)


@dataclass(frozen=True, eq=False)
class CompletedObjective:
    """A loss of complete rows where cells are missing: the rows are completed in all ways wherever it is evaluated.

    Its slopes are not those of any function, but nearly: a line search compares the integral of the slope along the
    line, by the trapezoidal rule.

    Parameters
    ----------
    bind : callable
        Maps complete rows to a function of theta.
    completions : Completed
        The rows, completed under a model.
    model_of : callable
        Maps theta to the model under which they are completed.
    l1 : array
        The L1 penalty of each parameter.
    """

    bind: Callable[[Dataset], Function]
    completions: Completed
    model_of: Callable[[Floats], Model[DiscreteFamily]]
    l1: Floats

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and the gradient over the rows as they are completed at theta."""
        return self.bind(self.completions.under(self.model_of(theta)))(theta)

    def along(self, start: OptimizerState) -> tuple[Function, Callable[[Floats, float], float]]:
        """Return the function that a step from `start` searches along, and what gives the value where it has ended."""
        values: dict[bytes, float] = {}
        base = start.value - penalty(start.theta, self.l1)

        def function(theta: Floats) -> tuple[float, Floats]:
            value, gradient = self(theta)
            values[theta.tobytes()] = value
            return base + float((theta - start.theta) @ (start.gradient + gradient)) / 2, gradient

        def value_at(theta: Floats, otherwise: float) -> float:
            value = values.get(theta.tobytes())
            return otherwise if value is None else value + penalty(theta, self.l1)

        return function, value_at
