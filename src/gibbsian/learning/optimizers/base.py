"""The contract every optimiser keeps, and what the L1 penalty means to all of them.

Every optimiser minimises ``function(theta) + sum(l1 * |theta|)``: the function is smooth and brings its own gradient,
`l1` is a vector with zeros where nothing is penalised. Vectors are NumPy's, or for L-BFGS tensors on a device.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.backends.device import library_of
from gibbsian.registry import Registry

OPTIMIZERS = Registry("optimizer", "gibbsian.learning.optimizers", "OPTIMIZERS")

Function = Callable[[Floats], tuple[float, Floats]]


class Inverse(Protocol):
    """An approximate inverse of a Hessian."""

    def __call__(self, gradient: Floats) -> Floats:
        """Return the step along a gradient."""


class Renewable(Inverse, Protocol):
    """An inverse that can be made anew at other points."""

    def at(self, numbers: Floats) -> Inverse:
        """Return the inverse at another point, from the numbers that are known of it."""


@dataclass(frozen=True)
class Preconditioned:
    """A function with an approximate inverse of its Hessian, where one is known, and with what renews it elsewhere.

    Parameters
    ----------
    function : callable
        Maps theta to a value and its gradient.
    preconditioner : callable, optional
        Maps a gradient to a step (see `gibbsian.learning.preconditioners`).
    renewed : callable, optional
        Maps theta, for an evaluation's cost, to the numbers of which ``preconditioner.at(numbers)`` is made there.
    """

    function: Function
    preconditioner: Inverse | None = None
    renewed: Callable[[Floats], Floats] | None = None

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        return self.function(theta)


@dataclass(frozen=True)
class OptimizerState:
    """Where an optimiser stands. Subclasses add arrays and numbers only, so that a checkpoint can hold them.

    Parameters
    ----------
    theta, gradient : ndarray
        The point and the gradient of the smooth part there.
    value : float
        The penalised value there.
    evaluations : int
        How often the function was called so far.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.learning.optimizers import Ascent
    >>> Ascent().init(lambda theta: (float(theta @ theta), 2 * theta), np.ones(2), np.zeros(2)).value
    2.0
    """

    theta: Floats
    gradient: Floats
    value: float
    evaluations: int


S = TypeVar("S", bound=OptimizerState)
M = TypeVar("M")  # what a move remembers


@dataclass(frozen=True)
class Running:
    """The fit is not at its end, whatever the gradient is.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import Running
    >>> Running()
    Running()
    """


@dataclass(frozen=True)
class Converged:
    """The fit is at its end.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import Converged
    >>> Converged("converged after 3 steps: gradient 1e-07").reason
    'converged after 3 steps: gradient 1e-07'
    """

    reason: str
    hint: str = ""


@dataclass(frozen=True)
class Stopped:
    """The fit stopped short of its end; the parameters are usable.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import Stopped
    >>> Stopped("stopped at max_iter=10, gradient 0.1", "raise `max_iter`").hint
    'raise `max_iter`'
    """

    reason: str
    hint: str = ""


@dataclass(frozen=True)
class Failed:
    """The fit cannot continue; the parameters are not a fit.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import Failed
    >>> Failed("the parameters have run to infinity", "lower `learning_rate`").hint
    'lower `learning_rate`'
    """

    reason: str
    hint: str = ""


Outcome = Running | Converged | Stopped | Failed


class StepInfo(NamedTuple):
    """What one step did.

    Parameters
    ----------
    value : float
        The penalised value after it.
    gradient_norm : float
        Largest entry of the (sub)gradient after it; zero at the optimum, infinite where it is not finite, NaN where
        there is none.
    step_size : float
        The multiple of the search direction that was taken.
    evaluations : int
        Calls of the function so far.
    noise : float
        A gradient that is no larger is nothing but Monte Carlo error; zero when there is none, or too early to say.
    outcome : Running, Converged, Stopped or Failed, optional
        Whether and how the fit has ended; None where the gradient decides, against the tolerance of the run.
    metrics : mapping
        What the learner measures: the history of a run keeps what `Fit.init` reports too, the trace the rest.
    warning : str
        What is wrong with the solution; empty where nothing is.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import StepInfo
    >>> StepInfo(value=1.0, gradient_norm=1e-7, step_size=1.0, evaluations=12).outcome is None
    True
    """

    value: float = math.nan
    gradient_norm: float = math.nan
    step_size: float = math.nan
    evaluations: int = 0
    noise: float = 0.0
    outcome: Outcome | None = None
    metrics: Mapping[str, float] = MappingProxyType({})
    warning: str = ""

    def figures(self) -> dict[str, float]:
        """Return what is known of the step by name: the value, the gradient, its noise, the learner's own figures."""
        named = {"value": self.value, "gradient": self.gradient_norm, "noise": self.noise or math.nan, **self.metrics}
        return {name: number for name, number in named.items() if math.isfinite(number)}


class Optimizer(ABC, Generic[S]):
    """One step at a time.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import LBFGS, Optimizer
    >>> isinstance(LBFGS(), Optimizer)
    True
    """

    # Whether it takes a preconditioner, or tensors on a device; how many vectors as long as theta a step then has.
    takes_preconditioner: ClassVar[bool] = False
    takes_tensors: ClassVar[bool] = False

    @property
    def n_vectors(self) -> int:
        """Vectors as long as theta that a step has at a time."""
        raise NotImplementedError

    @abstractmethod
    def init(self, function: Function, theta: Floats, l1: Floats) -> S:
        """Evaluate the start."""

    @abstractmethod
    def step(self, function: Function, state: S, l1: Floats) -> tuple[S, StepInfo]:
        """Take one step."""


# Outcome of a step that found no lower value.
ROUNDED = Stopped("", "rounding allows no lower value, raise `tol`")


@runtime_checkable
class GradientStep(Protocol[M]):
    """An optimiser that can move by a gradient alone, without a value to compare: all that sampled moments give.

    Its state is made of plain arrays and numbers, as that of `Optimizer`.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import LBFGS, Adam, Ascent, GradientStep
    >>> [isinstance(optimizer, GradientStep) for optimizer in (Ascent(), Adam(), LBFGS())]
    [True, True, False]
    """

    def init_move(self, theta: Floats) -> M:
        """Return the state before the first move."""

    def move(self, theta: Floats, gradient: Floats, l1: Floats, state: M) -> tuple[Floats, M]:
        """Return the next point and the state there."""

    def rate_at(self, t: int) -> float:
        """Return the rate of the move after `t` others."""


@dataclass(frozen=True)
class MovedState(OptimizerState, Generic[M]):
    """Where an optimiser stands that moves by gradients, with what its moves remember."""

    motion: M


class ByMoves(Optimizer[MovedState[M]], GradientStep[M]):
    """Steps of a `GradientStep`: a move, and the function where it ends."""

    def init(self, function: Function, theta: Floats, l1: Floats) -> MovedState[M]:
        """Evaluate the start."""
        return _evaluated(function, theta, l1, 1, self.init_move(theta))

    def step(self, function: Function, state: MovedState[M], l1: Floats) -> tuple[MovedState[M], StepInfo]:
        """Take one step; one evaluation was made at the start, and one after every step since."""
        theta, motion = self.move(state.theta, state.gradient, l1, state.motion)
        new = _evaluated(function, theta, l1, state.evaluations + 1, motion)
        norm = gradient_norm(new.theta, new.gradient, l1)
        return new, StepInfo(new.value, norm, self.rate_at(state.evaluations - 1), new.evaluations)


def _evaluated(function: Function, theta: Floats, l1: Floats, evaluations: int, motion: M) -> MovedState[M]:
    value, gradient = function(theta)
    return MovedState(theta, gradient, value + penalty(theta, l1), evaluations, motion)


def soft_threshold(theta: Floats, threshold: Floats) -> Floats:
    """Move every entry towards zero by its threshold, and stop there: the proximal step of an L1 penalty."""
    # adding zero turns -0.0 into 0.0
    return np.sign(theta) * np.maximum(np.abs(theta) - threshold, 0.0) + 0.0


def penalty(theta: Floats, l1: Floats) -> float:
    """Return ``sum(l1 * |theta|)``."""
    return float(l1 @ abs(theta)) if l1.any() else 0.0


def subgradient(theta: Floats, gradient: Floats, l1: Floats) -> Floats:
    """Return the subgradient of smallest size of the penalised function; zero exactly at its minimum."""
    if not l1.any():
        return gradient
    library = library_of(theta)
    at_zero = library.sign(gradient) * library.clip(abs(gradient) - l1, 0.0, None)
    return library.where(theta == 0, at_zero, gradient + l1 * library.sign(theta))


def gradient_norm(theta: Floats, gradient: Floats, l1: Floats) -> float:
    """Return the largest entry of the smallest subgradient."""
    return largest(subgradient(theta, gradient, l1))


def largest(vector: Floats) -> float:
    """Return the size of the largest entry; infinity where any is NaN."""
    size = float(abs(vector).max()) if len(vector) else 0.0
    return math.inf if math.isnan(size) else size
