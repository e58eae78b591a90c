"""Verdicts that the claims of several papers share: who is below whom, in how many trials, by how much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbsian.papers.experiment import Claim, Results, Verdict


def ratio_of_means(results: Results, above: str, below: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratios of two means over the trials that have both, with their standard errors (delta method).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.experiment import Results
    >>> from gibbsian.papers.verdicts import ratio_of_means
    >>> results = Results({"a": np.array([2.0, 4.0]), "b": np.array([1.0, 2.0])}, seed=0)
    >>> [float(part) for part in ratio_of_means(results, "a", "b")]            # proportional: no spread
    [2.0, 0.0]
    """
    pairs = Results({"upper": results[above], "lower": results[below]}, results.seed)
    both = np.isfinite(pairs["upper"]) & np.isfinite(pairs["lower"])
    paired = Results({name: np.where(both, values, np.nan) for name, values in pairs.values.items()}, results.seed)
    ratio = paired.mean("upper") / paired.mean("lower")
    leftover = Results({"rest": paired["upper"] - ratio * paired["lower"]}, results.seed)
    return ratio, leftover.stderr("rest") / paired.mean("lower")


def told(value: float, error: float) -> str:
    """Write a number with its standard error.

    Examples
    --------
    >>> from gibbsian.papers.verdicts import told
    >>> told(4.123, 0.051), told(4.123, float("nan"))
    ('4.12 +- 0.051', '4.12')
    """
    return f"{value:.3g} +- {error:.2g}" if np.isfinite(error) else f"{value:.3g}"


def trials_below(results: Results, lower: str, upper: str) -> tuple[int, int]:
    """Count the trials (and points of curves) where one value is below the other, and those that have both.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.experiment import Results
    >>> from gibbsian.papers.verdicts import trials_below
    >>> trials_below(Results({"a": np.array([1.0, 2.0, np.nan]), "b": np.array([2.0, 1.0, 1.0])}, seed=0), "a", "b")
    (1, 2)
    """
    both = np.isfinite(results[lower]) & np.isfinite(results[upper])
    with np.errstate(invalid="ignore"):
        return int((results[lower] < results[upper])[both].sum()), int(both.sum())


def below_everywhere(results: Results, lower: str, upper: str, points: Sequence[object], name: str) -> Verdict:
    """Judge whether one method's mean error is below another's at every point of a curve.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.experiment import Results
    >>> from gibbsian.papers.verdicts import below_everywhere
    >>> results = Results({"a": np.array([[1.0, 1.0]] * 3), "b": np.array([[4.0, 2.0]] * 3)}, seed=0)
    >>> print(below_everywhere(results, "a", "b", [10, 100], "N"))
    holds (in 6 of 6 trials x N; ratio 4 +- 0 at N = 10, 2 +- 0 at N = 100)
    """
    ratio, error = ratio_of_means(results, upper, lower)
    count, total = trials_below(results, lower, upper)
    ends = [f"{told(ratio[k], error[k])} at {name} = {points[k]}" for k in (0, len(points) - 1)]
    return Verdict(bool(np.all(ratio > 1.0)), f"in {count} of {total} trials x {name}; ratio {', '.join(ends)}")


def below_claim(
    text: str, source: str, lower: str, upper: str, points: Sequence[object], name: str, trials: int, ours: bool = False
) -> Claim:
    """Return the claim that `below_everywhere` judges.

    Examples
    --------
    >>> from gibbsian.papers.verdicts import below_claim
    >>> below_claim("1-SMCI below MPLE at every N", "Y18 section 4.2", "1-smci", "mple", [10, 100], "N", 3).trials
    3
    """
    return Claim(text, source, lambda results: below_everywhere(results, lower, upper, points, name), trials, ours)


__all__ = ["below_claim", "below_everywhere", "ratio_of_means", "told", "trials_below"]
