"""Y18 figure 3: learning curves by plain ascent, and whether the problems are convex."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.data import Dataset
from gibbsian.models import PairwiseModel
from gibbsian.objectives import OBJECTIVES
from gibbsian.papers.drawing import legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.verdicts import ratio_of_means, told, trials_below
from gibbsian.papers.y18 import (
    GRID,
    LABELS,
    OURS,
    PAPERS,
    draw_data,
    draw_errors,
    draw_network,
    error_table,
    path_of,
    solve,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_STEPS = 100
METHODS = (*PAPERS, *OURS)
SHOWN = (0, 5, 10, 20, 30, 50, 70, 100)
SOURCE = "Y18 section 5"
# "almost the same values": the largest of three final errors over the smallest
ALMOST_THE_SAME = 1.25
# a curve has converged where it stays this close to its end, as a share of it
CLOSE = 0.05
OBJECTIVE_OF = {"mple": "pseudolikelihood", "rm": "ratio-matching", "mpf": "probability-flow"}
# lines along which curvature is looked for, through points with couplings of this size
N_LINES, REACH = 20, 2.0


@EXPERIMENTS.register("y18-fig3a")
def figure_3a() -> Experiment:
    """Return Y18 Fig. 3a: 200 rows.

    Examples
    --------
    >>> from gibbsian.papers.y18_figure_3 import figure_3a
    >>> figure_3a().title
    'learning curves, N = 200'
    """
    return _experiment("Fig. 3a", 200)


@EXPERIMENTS.register("y18-fig3b")
def figure_3b() -> Experiment:
    """Return Y18 Fig. 3b: 2000 rows.

    Examples
    --------
    >>> from gibbsian.papers.y18_figure_3 import figure_3b
    >>> figure_3b().title
    'learning curves, N = 2000'
    """
    return _experiment("Fig. 3b", 2000)


def _experiment(item: str, n_rows: int) -> Experiment:
    claims = (
        Claim("MPF converges fastest", SOURCE, _flow_is_fastest, trials=4),
        Claim("MPLE, RM and MPF end at almost the same error", SOURCE, _three_end_alike, trials=20),
        *(
            Claim(f"1-SMCI ends below {LABELS[other]}", SOURCE, partial(_ends_below, "1-smci", other), trials=2)
            for other in ("mple", "rm", "mpf")
        ),
        Claim("MPLE and MPF are convex problems", SOURCE, partial(_convex, ("mple", "mpf")), trials=2),
        Claim("RM is a convex problem", SOURCE, partial(_convex, ("rm",)), trials=2, misprint=True),
        Claim("s2-SMCI ends below 1-SMCI", "ours", partial(_ends_below, "s2-smci", "1-smci"), trials=4, ours=True),
        Claim("forest SMCI ends below s2-SMCI", "ours", partial(_ends_below, "forest-smci", "s2-smci"), 10, ours=True),
    )
    title = f"learning curves, N = {n_rows}"
    return Experiment("Y18", item, title, partial(_trial, n_rows=n_rows), _tables, _draw, claims)


def _trial(rng: np.random.Generator, n_rows: int) -> Trial:
    data = draw_data(draw_network(rng), n_rows, rng)
    best = solve("mle", data)
    found: Trial = {method: np.abs(path_of(method, data, N_STEPS) - best).mean(axis=1) for method in METHODS}
    curvatures = least_curvatures(data, rng)
    return found | {f"{method} curvature": value for method, value in curvatures.items()}


def least_curvatures(data: Dataset, rng: np.random.Generator) -> dict[str, float]:
    """Return the least second difference of each objective along random lines: a convex one has none below zero.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.y18 import draw_data, draw_network
    >>> from gibbsian.papers.y18_figure_3 import least_curvatures
    >>> rng = np.random.default_rng(0)
    >>> least = least_curvatures(draw_data(draw_network(rng), 200, rng), rng)
    >>> least["mple"] > 0, least["rm"] < 0
    (True, True)
    """
    model = PairwiseModel.zeros(GRID, bias=False)
    bound = {method: OBJECTIVES.create(name).bind(model, data) for method, name in OBJECTIVE_OF.items()}
    least = dict.fromkeys(OBJECTIVE_OF, np.inf)
    for _ in range(N_LINES):
        middle, step = rng.normal(0.0, REACH, GRID.n_edges), rng.normal(0.0, 0.5, GRID.n_edges)
        for method, function in bound.items():
            low, centre, high = (function(middle + shift * step)[0] for shift in (-1.0, 0.0, 1.0))
            least[method] = min(least[method], (low - 2.0 * centre + high) / abs(centre))
    return {method: float(value) for method, value in least.items()}


def steps_to_converge(curve: np.ndarray) -> int:
    """Return after how many steps a curve stays near its end.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.y18_figure_3 import steps_to_converge
    >>> steps_to_converge(np.array([3.0, 2.0, 1.01, 1.0]))
    2
    """
    far = np.flatnonzero(np.abs(curve - curve[-1]) > CLOSE * curve[-1])
    return int(far[-1]) + 1 if far.size else 0


def _tables(results: Results) -> list[Table]:
    steps = list(SHOWN)
    shown = Results({method: results[method][:, steps] for method in METHODS}, results.seed)
    return [error_table(shown, METHODS, steps, "step", "mean absolute error of the couplings to the MLE")]


def _draw(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    draw_errors(axes, results, METHODS, np.arange(N_STEPS + 1))
    log_axes(axes, "step", "MAE", log_x=False)
    legend(axes)


def _flow_is_fastest(results: Results) -> Verdict:
    steps = {method: steps_to_converge(results.mean(method)) for method in PAPERS}
    numbers = ", ".join(f"{LABELS[method]} {count}" for method, count in steps.items())
    others = min(count for method, count in steps.items() if method != "mpf")
    return Verdict(steps["mpf"] < others, f"steps until the mean error stays within 5% of its end: {numbers}")


def _ends(results: Results) -> Results:
    return Results({method: results[method][:, -1] for method in METHODS}, results.seed)


def _three_end_alike(results: Results) -> Verdict:
    ends = _ends(results)
    means = [float(ends.mean(method)) for method in ("mple", "rm", "mpf")]
    numbers = ", ".join(
        f"{LABELS[method]} {told(float(ends.mean(method)), float(ends.stderr(method)))}"
        for method in ("mple", "rm", "mpf")
    )
    return Verdict(max(means) < ALMOST_THE_SAME * min(means), f"{numbers}; largest over smallest below 1.25")


def _ends_below(lower: str, upper: str, results: Results) -> Verdict:
    ends = _ends(results)
    ratio, error = ratio_of_means(ends, upper, lower)
    count, total = trials_below(ends, lower, upper)
    return Verdict(bool(ratio > 1), f"in {count} of {total} trials; ratio {told(float(ratio), float(error))}")


def _convex(methods: tuple[str, ...], results: Results) -> Verdict:
    # rounding makes second differences of flat stretches a little negative
    bent = {method: int((results[f"{method} curvature"] < -1e-10).sum()) for method in methods}
    numbers = ", ".join(
        f"{LABELS[method]} bends downwards in {count} of {results.n_trials} trials" for method, count in bent.items()
    )
    return Verdict(not any(bent.values()), f"along {N_LINES} random lines each: {numbers}")
