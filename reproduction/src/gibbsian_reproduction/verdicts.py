"""Claims and verdicts that several papers share: who is below whom, in how many trials, by how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gibbsian_reproduction.experiment import Claim, Results, Series, Verdict, mean_of, stderr_of

ROUNDING = 1e-10  # relative; what a value may rise by rounding


class Measured(NamedTuple):
    """A number, or an array of them, with its standard error."""

    value: Any
    error: Any

    def __str__(self) -> str:
        return f"{self.value:.3g} +- {self.error:.2g}" if np.isfinite(self.error) else f"{self.value:.3g}"

    def at(self, place: int) -> Measured:
        """Return one of several."""
        return Measured(self.value[place], self.error[place])


def mean_with_error(values: np.ndarray) -> Measured:
    """Return a mean over the trials."""
    return Measured(mean_of(values), stderr_of(values))


def ratio_of_means(above: np.ndarray, below: np.ndarray) -> Measured:
    """Return the ratios of two means over the trials that have both (standard errors by the delta method)."""
    both = np.isfinite(above) & np.isfinite(below)
    upper, lower = np.where(both, above, np.nan), np.where(both, below, np.nan)
    ratio = mean_of(upper) / mean_of(lower)
    return Measured(ratio, stderr_of(upper - ratio * lower) / mean_of(lower))


def trials_below(lower: np.ndarray, upper: np.ndarray) -> str:
    """Count the trials (and points of curves) where one value is below the other, of those that have both."""
    both = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        return f"{int((lower < upper)[both].sum())} of {int(both.sum())} trials"


def listed(ratio: Measured, name: str, points: Sequence[object], places: Sequence[int] | None = None) -> str:
    """Write ratios along a curve, by default all of them."""
    chosen = range(len(points)) if places is None else places
    return ", ".join(f"{ratio.at(k)} at {name} = {points[k]}" for k in chosen)


def below_everywhere(
    lower: Series, upper: Series, x_name: str, points: Sequence[object], source: str, trials: int
) -> Claim:
    """Claim that one method's mean error is below another's at every point of a curve."""

    def check(results: Results) -> Verdict:
        below, above = lower.values(results), upper.values(results)
        ratio = ratio_of_means(above, below)
        ends = listed(ratio, x_name, points, (0, len(points) - 1))
        return Verdict(np.all(ratio.value > 1.0), f"in {trials_below(below, above)} x {x_name}; ratio {ends}")

    text = f"{lower.label} below {upper.label} at every {x_name}"
    return Claim(text, "ours" if lower.ours else source, check, trials, lower.ours)


def ends_below(lower: Series, upper: Series, source: str, trials: int, least: float = 1.0, ours: bool = False) -> Claim:
    """Claim that one method's mean error at the end of a curve is below another's, at least so many times."""

    def check(results: Results) -> Verdict:
        below, above = lower.values(results)[:, -1], upper.values(results)[:, -1]
        ratio = ratio_of_means(above, below)
        return Verdict(ratio.value > least, f"in {trials_below(below, above)}; error {ratio} times smaller")

    text = f"{lower.label} ends{' far' * (least > 1)} below {upper.label}"
    return Claim(text, "ours" if ours else source, check, trials, ours)


def at_most(key: str, limit: float, words: str) -> Callable[[Results], Verdict]:
    """Judge that something is no further from zero than a limit in any trial."""

    def check(results: Results) -> Verdict:
        largest = np.abs(results[key]).max()
        return Verdict(largest < limit, f"{words} {largest:.1e} in {results.n_trials} trials")

    return check


def never_rises(key: str, what: str) -> Callable[[Results], Verdict]:
    """Judge that something never rose beyond rounding, from the largest relative rises in each trial."""

    def check(results: Results) -> Verdict:
        rises = np.maximum(results[key].reshape(results.n_trials, -1).max(axis=1), 0.0)
        counted = f"{(rises < ROUNDING).sum()} of {len(rises)} trials"
        return Verdict((rises < ROUNDING).all(), f"{counted}, largest rise of the {what} {rises.max():.1e} of it")

    return check


def in_every_trial(holds: np.ndarray, numbers: str) -> Verdict:
    """Judge something that is to hold throughout every trial; `holds` has one row for each."""
    kept = int(holds.reshape(len(holds), -1).all(axis=1).sum())
    return Verdict(kept == len(holds), f"{kept} of {len(holds)} trials; {numbers}")


def slope(points: Any, values: np.ndarray) -> np.ndarray:
    """Return the exponents of the powers of the points that the rows of values follow."""
    return np.polyfit(np.log(points), np.log(values).T, 1)[0]
