"""What the settings of mixtures may be, each declared once and checked by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError


@dataclass(frozen=True)
class Whole:
    """A whole number, `least` or more.

    Examples
    --------
    >>> from gibbsian.mixtures.settings import Whole
    >>> Whole(1).refusal(0), Whole(1).refusal(1.5), Whole(1).refusal(3)
    ('be at least 1', 'be a whole number', '')
    """

    least: int

    def refusal(self, value: Any) -> str:
        """Say what a value must be; the empty string where it is."""
        if not isinstance(value, Integral) or isinstance(value, bool):
            return "be a whole number"
        return "" if int(value) >= self.least else f"be at least {self.least}"


@dataclass(frozen=True)
class Number:
    """A finite number between two bounds, or one of a few words.

    Parameters
    ----------
    must : str
        What to say of another value.
    low, high : float
        The bounds.
    open_low, open_high : bool
        Whether a bound itself is left out.
    words : tuple of str
        Words that may stand in place of a number.

    Examples
    --------
    >>> from gibbsian.mixtures.settings import Number
    >>> Number("be positive", 0.0, open_low=True).refusal(0.0)
    'be positive'
    """

    must: str
    low: float
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    words: tuple[str, ...] = ()

    def refusal(self, value: Any) -> str:
        """Say what a value must be; the empty string where it is."""
        if isinstance(value, str):
            return "" if value in self.words else self.must
        number = _finite(value)
        if number is None:
            return self.must
        above = number > self.low if self.open_low else number >= self.low
        below = number < self.high if self.open_high else number <= self.high
        return "" if above and below else self.must


def _finite(value: Any) -> float | None:
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond the range of floats
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class OneOf:
    """One of a few values, compared with their kind: 1 is not True.

    Examples
    --------
    >>> from gibbsian.mixtures.settings import OneOf
    >>> OneOf("soft", "hard").refusal("firm")
    "be 'soft' or 'hard'"
    """

    values: tuple[Any, ...]
    hint: str

    def __init__(self, *values: Any, hint: str = ""):
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "hint", hint)

    def refusal(self, value: Any) -> str:
        """Say what a value must be; the empty string where it is."""
        plain = value.item() if isinstance(value, np.generic) else value
        known = any(type(plain) is type(one) and plain == one for one in self.values)
        return "" if known else f"be {' or '.join(map(repr, self.values))}{self.hint}"


Rule = Whole | Number | OneOf

# Beyond these, squares in the densities leave the range of numbers.
LEAST_VARIANCE, LARGEST_KAPPA = 1e-140, 1e140

RULES: dict[str, Rule] = {
    "n_components": Whole(1),
    "n_init": Whole(1),
    "max_iter": Whole(1),
    "n_epochs": Whole(1),
    "n_samples": Whole(1),
    "tol": Number("be a finite number not below zero", 0.0),
    "rate": Number("be above 0 and at most 1", 0.0, 1.0, open_low=True),
    "cooling": Number("lie between 0 and 1", 0.0, 1.0, open_low=True, open_high=True),
    "variance_floor": Number("be a finite positive number", 0.0, open_low=True),
    "smoothing": Number("be a finite number that is not negative", 0.0),
    "kappa": Number(
        "be a number not below zero, 'free' or 'tied' (at most 1e140)", 0.0, LARGEST_KAPPA, words=("free", "tied")
    ),
    "kappa_max": Number("be a positive number, at most 1e140", 0.0, LARGEST_KAPPA, open_low=True),
    "weights": OneOf("free", "equal"),
    "assignment": OneOf("soft", "hard"),
    "criterion": OneOf("bic", "aic"),
    "relative_to": OneOf("area", "uniform"),
    "normalize": OneOf(True, False),
    "anneal": OneOf(True, False),
}
FIXED_VARIANCE = Number("be a number, at least 1e-140; GaussianMixture learns it", LEAST_VARIANCE)
LEARNED_VARIANCE = OneOf("free", "tied", hint="; SoftKMeans takes a fixed one")
ANY_VARIANCE = Number("be a number, at least 1e-140, 'free' or 'tied'", LEAST_VARIANCE, words=("free", "tied"))


def check(name: str, value: Any, rule: Rule | None = None) -> None:
    """Raise `ArgumentError` unless the value is one that the setting may have.

    Examples
    --------
    >>> from gibbsian.mixtures.settings import check
    >>> check("max_iter", 2.5)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: max_iter=2.5 must be a whole number
    """
    refusal = (rule or RULES[name]).refusal(value)
    if refusal:
        raise ArgumentError(f"{name}={value!r} must {refusal}")


def check_settings(settings: Mapping[str, Any], own: Mapping[str, Rule]) -> None:
    """Check all settings of an estimator, by its own rules before the common ones.

    Examples
    --------
    >>> from gibbsian.mixtures.settings import check_settings
    >>> check_settings({"n_components": 2, "random_state": 0}, own={})
    """
    for name, value in settings.items():
        rule = own.get(name, RULES.get(name))
        if rule is not None:
            check(name, value, rule)
