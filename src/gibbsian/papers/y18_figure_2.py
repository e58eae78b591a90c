"""Y18 figure 2: how far the solutions of the approximate methods are from that of the exact likelihood, against N."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.models import PairwiseModel
from gibbsian.papers.drawing import legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.verdicts import below_claim, ratio_of_means, told, trials_below
from gibbsian.papers.y18 import GRID, LABELS, OURS, PAPERS, draw_data, draw_errors, draw_network, error_table, solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000)
METHODS = (*PAPERS, *OURS)
SOURCE = "Y18 section 4.2"
# An error like 1/sqrt(N) has the slope -1/2 on logarithmic axes, and ends at 0.32 of that at a tenth of the rows.
STEEP, LEVEL_ABOVE = -0.4, 0.6


@EXPERIMENTS.register("y18-fig2a")
def figure_2a() -> Experiment:
    """Return Y18 Fig. 2a: data from a grid of the same shape, where there is no model error.

    Examples
    --------
    >>> from gibbsian.papers.y18_figure_2 import figure_2a
    >>> figure_2a().item
    'Fig. 2a'
    """
    claims = (
        Claim("MPLE and 1-SMCI approach the MLE as N grows", SOURCE, _approach, trials=3),
        below_claim("1-SMCI below MPLE at every N", SOURCE, "1-smci", "mple", SIZES, "N", trials=2),
        *_our_claims(),
    )
    return _experiment("Fig. 2a", "distance to the MLE without model error", _matched_trial, claims)


@EXPERIMENTS.register("y18-fig2b")
def figure_2b() -> Experiment:
    """Return Y18 Fig. 2b: data from a machine with all pairs, learned on the grid.

    Examples
    --------
    >>> from gibbsian.papers.y18_figure_2 import figure_2b
    >>> figure_2b().claims[0].text
    'MPLE and 1-SMCI do not converge to the MLE'
    """
    claims = (
        Claim("MPLE and 1-SMCI do not converge to the MLE", SOURCE, _level_off, trials=3),
        below_claim("1-SMCI below MPLE at every N", SOURCE, "1-smci", "mple", SIZES, "N", trials=3),
        Claim("1-SMCI is further from the MLE than without model error", SOURCE, _worse_than_matched, trials=3),
        *_our_claims(),
    )
    return _experiment("Fig. 2b", "distance to the MLE with model error", _mismatched_trial, claims)


def _our_claims() -> tuple[Claim, ...]:
    return (
        below_claim("s2-SMCI below 1-SMCI at every N", "ours", "s2-smci", "1-smci", SIZES, "N", 3, ours=True),
        below_claim(
            "forest SMCI below s2-SMCI at every N", "ours", "forest-smci", "s2-smci", SIZES, "N", 10, ours=True
        ),
    )


def _experiment(
    item: str, title: str, trial: Callable[[np.random.Generator], Trial], claims: tuple[Claim, ...]
) -> Experiment:
    scale = "a network, and a data set for every N"
    return Experiment("Y18", item, title, trial, _tables, _draw, claims, size=(5.6, 3.6), scale=scale)


def _matched_trial(rng: np.random.Generator) -> Trial:
    return _errors(draw_network(rng), rng)


def _mismatched_trial(rng: np.random.Generator) -> Trial:
    found = _errors(draw_network(rng, matched=False), rng)
    matched = draw_data(draw_network(rng), SIZES[-1], rng)
    found["1-smci matched"] = np.abs(solve("1-smci", matched) - solve("mle", matched)).mean()
    found["1-smci mismatched"] = found["1-smci"][-1]
    return found


def _errors(network: PairwiseModel, rng: np.random.Generator) -> Trial:
    errors = np.array([_errors_at(network, n_rows, rng) for n_rows in SIZES])
    return dict(zip(METHODS, errors.T, strict=True))


def _errors_at(network: PairwiseModel, n_rows: int, rng: np.random.Generator) -> list[float]:
    data = draw_data(network, n_rows, rng)
    best = solve("mle", data)
    if np.isnan(best).any():
        return [np.nan] * len(METHODS)
    guide = PairwiseModel(GRID, best, bias=False)
    return [float(np.abs(solve(method, data, guide) - best).mean()) for method in METHODS]


def _tables(results: Results) -> list[Table]:
    return [error_table(results, METHODS, SIZES, "N", "mean absolute error of the couplings to the MLE")]


def _draw(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    draw_errors(axes, results, METHODS, SIZES)
    log_axes(axes, "N", "MAE")
    legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _last_decade(results: Results, method: str) -> tuple[float, float]:
    """The error at the largest N over that at a tenth of it."""
    ends = {"end": results[method][:, -1], "before": results[method][:, SIZES.index(SIZES[-1] // 10)]}
    ratio, error = ratio_of_means(Results(ends, results.seed), "end", "before")
    return float(ratio), float(error)


def _approach(results: Results) -> Verdict:
    slopes = {
        method: float(np.polyfit(np.log(SIZES), np.log(results.mean(method)), 1)[0]) for method in ("mple", "1-smci")
    }
    ends = ", ".join(
        f"{LABELS[method]} {results.mean(method)[0]:.2g} to {results.mean(method)[-1]:.2g}, like N^{slope:.2f}"
        for method, slope in slopes.items()
    )
    return Verdict(all(slope < STEEP for slope in slopes.values()), f"from N = {SIZES[0]} to {SIZES[-1]}: {ends}")


def _level_off(results: Results) -> Verdict:
    falls = {method: _last_decade(results, method) for method in ("mple", "1-smci")}
    numbers = ", ".join(f"{LABELS[method]} {told(*fall)}" for method, fall in falls.items())
    holds = all(ratio > LEVEL_ABOVE for ratio, _ in falls.values())
    return Verdict(holds, f"error at N = 10000 over that at 1000: {numbers}; convergence would give 0.316")


def _worse_than_matched(results: Results) -> Verdict:
    ratio, error = ratio_of_means(results, "1-smci mismatched", "1-smci matched")
    count, total = trials_below(results, "1-smci matched", "1-smci mismatched")
    return Verdict(
        bool(ratio > 1), f"{told(float(ratio), float(error))} times at N = 10000; in {count} of {total} trials"
    )
