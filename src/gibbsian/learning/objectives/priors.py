"""Priors of the parameters, for the maximum of the posterior (YK15: ``- sum log P(x_i | theta) - log P(theta)``).

Objectives are means over n rows, so minus the log-prior over n is added: the more rows, the less it says. A prior is a
function of theta that returns its logarithm (up to a constant) and the gradient, or one of the named families on every
parameter by itself, perhaps another for biases than for interactions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from gibbsian.arrays import Floats, Mask
from gibbsian.errors import ArgumentError
from gibbsian.learning.objectives.base import Function
from gibbsian.settings import check, declared, number, positional

KINDS = ("biases", "interactions")


class PriorFamily:
    """A distribution of single parameters: log-density up to a constant, and its slope, entry by entry."""

    corner: float = 0.0  # the slope of minus the log-density to either side of zero, which optimisers treat as L1

    def __post_init__(self) -> None:
        check(self)

    def log_density(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the smooth part of the log-density and its slope."""
        raise NotImplementedError


@declared(frozen=True)
class Normal(PriorFamily):
    """A normal prior: with mean zero and n rows the same as ``l2 = 1 / (n scale^2)``.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    >>> given = gb.BoltzmannMachine(log_prior=gb.learning.objectives.Normal(2.0), tol=1e-9).fit(rows)
    >>> ridge = gb.BoltzmannMachine(l2=1 / (5 * 4), tol=1e-9).fit(rows)
    >>> bool(abs(given.model_.theta - ridge.model_.theta).max() < 1e-12)
    True
    """

    scale: float = positional(kw_only=False, default=number(1.0, "Standard deviation.", above=0))
    mean: float = positional(kw_only=False, default=number(0.0, "Mean."))

    def log_density(self, x: Floats) -> tuple[Floats, Floats]:
        """Return ``-(x - mean)^2 / (2 scale^2)``."""
        slope = (self.mean - x) / self.scale**2
        return 0.5 * slope * (x - self.mean), slope


@declared(frozen=True)
class Laplace(PriorFamily):
    """A Laplace prior about zero: with n rows an L1 penalty of ``1 / (n scale)``, which sets parameters to zero.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> machine = gb.BoltzmannMachine(learner="mple", log_prior="interactions=laplace:0.05").fit(votes)
    >>> bool((machine.model_.parts.couplings == 0).mean() > 0.5)
    True
    """

    scale: float = positional(kw_only=False, default=number(1.0, "Mean distance from zero.", above=0))

    @property
    def corner(self) -> float:  # type: ignore[override]
        """The slope to either side of zero."""
        return 1.0 / self.scale

    def log_density(self, x: Floats) -> tuple[Floats, Floats]:
        """Return zero: all of it is in the corner."""
        return np.zeros_like(x), np.zeros_like(x)


@declared(frozen=True)
class StudentT(PriorFamily):
    """Student's t, whose tails let strong parameters be strong; with one degree of freedom Cauchy's ('cauchy:SCALE').

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1]]                # never (1, 0): without a prior no maximum
    >>> priors = "cauchy:2.5", gb.learning.objectives.StudentT(1.0, 2.5)
    >>> fits = [gb.BoltzmannMachine(log_prior=prior).fit(rows) for prior in priors]
    >>> bool(0 < fits[0].model_.parts.couplings[0] == fits[1].model_.parts.couplings[0] < 20)
    True
    """

    df: float = positional(kw_only=False, default=number(3.0, "Degrees of freedom.", above=0))
    scale: float = positional(kw_only=False, default=number(1.0, "Its width.", above=0))
    mean: float = positional(kw_only=False, default=number(0.0, "Its middle."))

    def log_density(self, x: Floats) -> tuple[Floats, Floats]:
        """Return ``-(df + 1) / 2 log(1 + z^2 / df)`` with ``z = (x - mean) / scale``."""
        z = (x - self.mean) / self.scale
        slope = -(self.df + 1.0) * z / (self.df + z**2) / self.scale
        return -(self.df + 1.0) / 2.0 * np.log1p(z**2 / self.df), slope


@dataclass(frozen=True)
class Rescaled:
    """A prior of ``factor * theta``."""

    prior: Prior
    factor: float


Prior = str | PriorFamily | Rescaled | Function


class NaturalPenalties(TypedDict):
    """Penalties of the parameters that stand in the exponent."""

    l1: float | str
    l2: float
    log_prior: Prior | None


def natural_penalties(l1: float | str, l2: float, log_prior: Prior | None, temperature: float) -> NaturalPenalties:
    """Return penalties of theta in ``P(x) = exp(theta . S(x) / T) / Z`` as penalties of ``theta / T``.

    A strength of L1 that is a word is one that a learner takes from the data, in natural parameters.

    Examples
    --------
    >>> from gibbsian.learning.objectives.priors import natural_penalties
    >>> natural_penalties(0.5, 0.1, None, 2.0)
    {'l1': 1.0, 'l2': 0.4, 'log_prior': None}
    """
    return {
        "l1": l1 if isinstance(l1, str) else temperature * l1,
        "l2": temperature**2 * l2,
        "log_prior": log_prior if log_prior is None or temperature == 1 else Rescaled(log_prior, temperature),
    }


PRIORS: dict[str, Callable[..., PriorFamily]] = {  # type: ignore[explicit-any]
    "normal": Normal,
    "laplace": Laplace,
    "student-t": StudentT,
    "cauchy": lambda scale=1.0, mean=0.0: StudentT(df=1.0, scale=scale, mean=mean),
}


# -- what learners take -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class SmoothPenalty:
    """``(l2 / 2) sum theta^2 - log P(theta) / n_rows``, with its gradient."""

    l2: float
    log_prior: Function | None = None
    n_rows: float = 1.0

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        value, gradient = 0.5 * self.l2 * float(theta @ theta), self.l2 * theta
        if self.log_prior is None:
            return value, gradient
        try:
            log_density, slope = self.log_prior(theta)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                "must return log P(theta) and its gradient", f"it ended in {error}", argument="log_prior",
                value=self.log_prior,
            ) from error  # fmt: skip
        return value - float(log_density) / self.n_rows, gradient - np.asarray(slope) / self.n_rows

    def bend(self, theta: Floats) -> float:
        """Return the mean curvature of a parameter: what L2 would have the same."""
        if self.log_prior is None:
            return self.l2
        step = 1e-4 * (1.0 + np.abs(theta))
        (_, up), (_, down) = self(theta + step), self(theta - step)
        return max(float(np.mean((up - down) / (2.0 * step))), 0.0)

    def added_to(self, function: Function) -> Function:
        """Return a function of theta with the penalty added."""
        if self.l2 == 0 and self.log_prior is None:
            return function

        return _Penalised(function, self)


@dataclass(frozen=True, eq=False)
class _Penalised:
    """A function of theta and a penalty."""

    function: Function
    penalty: SmoothPenalty

    @property
    def takes_tensors(self) -> bool:
        """Whether theta may be a tensor on a device: a prior is of arrays."""
        return getattr(self.function, "takes_tensors", False) and self.penalty.log_prior is None

    @property
    def derivative_sums(self) -> Callable[[Floats], Floats] | None:
        """What a preconditioner is renewed from, where the function has it."""
        return getattr(self.function, "derivative_sums", None)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        (value, gradient), (more, slope) = self.function(theta), self.penalty(theta)
        return value + more, gradient + slope


def bind_prior(given: Prior | None, interactions: Mask) -> tuple[Function | None, Floats]:
    """Return a prior as a function of theta, and the slopes of its corners at zero, one for each parameter.

    Parameters
    ----------
    given : str, PriorFamily, callable, Rescaled or None
        A family on all parameters, families of biases and interactions as text, or a function of theta.
    interactions : ndarray of bool
        Which parameters are interactions.
    """
    corners: Floats = np.zeros(interactions.size)
    if isinstance(given, Rescaled):
        factor, (inner, corners) = given.factor, bind_prior(given.prior, interactions)

        def of_scaled(theta: Floats) -> tuple[float, Floats]:
            density, slope = inner(factor * theta)  # type: ignore[misc]
            return density, factor * np.asarray(slope)

        return of_scaled, factor * corners
    if given is None or not isinstance(given, str | PriorFamily):
        return given, corners
    parts = [(interactions == (kind == KINDS[1]) if kind else np.ones_like(interactions), family)
             for kind, family in as_families(given)]  # fmt: skip
    for mask, family in parts:
        corners[mask] += family.corner

    def log_prior(theta: Floats) -> tuple[float, Floats]:
        value, gradient = 0.0, np.zeros_like(theta)
        for mask, family in parts:
            density, slope = family.log_density(theta[mask])
            value += float(density.sum())
            gradient[mask] += slope
        return value, gradient

    return log_prior, corners


def as_families(given: str | PriorFamily) -> list[tuple[str, PriorFamily]]:
    """Return the families that a text names, each with the kind of parameters that it is of, empty for all."""
    if isinstance(given, PriorFamily):
        return [("", given)]
    found = []
    for text in given.split(","):
        kind, _, named = text.strip().rpartition("=")
        name, *numbers = named.split(":")
        if name not in PRIORS or kind not in ("", *KINDS):
            raise _unreadable(given)
        try:
            found.append((kind, PRIORS[name](*map(float, numbers))))
        except (TypeError, ValueError) as error:
            raise _unreadable(given) from error
    return found


def check_prior(given: object) -> None:
    """Raise `ArgumentError` unless a value is a prior."""
    if isinstance(given, str):
        as_families(given)
    elif (
        given is not None
        and not isinstance(given, PriorFamily | Rescaled)
        and (isinstance(given, type) or not callable(given))
    ):
        raise _unreadable(given)


def _unreadable(given: object) -> ArgumentError:
    return ArgumentError(
        f"is no prior: one is a function of theta or a text such as 'cauchy:2.5', of {', '.join(PRIORS)}",
        "or one for each kind, as in 'biases=normal:10,interactions=laplace:0.5'",
        argument="log_prior",
        value=given,
    )
