"""Yasuda 2018: learning on a 4x4 grid without biases, against the exact maximum likelihood (figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.graphs import complete, grid
from gibbsian.inference import exact
from gibbsian.learning import Learner, MomentMatching, as_learner, run
from gibbsian.learning.moment_matching import SOLVER
from gibbsian.learning.objectives import OBJECTIVES
from gibbsian.learning.optimizers import Ascent
from gibbsian.models import Model, PairwiseFamily
from gibbsian.rng import Key
from gibbsian_reproduction.drawing import BESIDE, lines, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.tables import Table, mean_columns
from gibbsian_reproduction.verdicts import (
    below_everywhere,
    ends_below,
    mean_with_error,
    ratio_of_means,
    slope,
    trials_below,
)
from gibbsian_reproduction.y18_forests import FixedForests

GRID = grid(4, 4)
ZERO = Model.zeros(PairwiseFamily(GRID, bias=False))
LABELS = {"mle": "MLE", "mple": "MPLE", "rm": "RM", "mpf": "MPF", "1-smci": "1-SMCI"}
PAPERS = ("mple", "rm", "mpf", "1-smci")
SERIES = {method: Series(method, LABELS[method]) for method in PAPERS}
SERIES["s2-smci"] = Series("s2-smci", "s2-SMCI", ours=True)
SERIES["forest-smci"] = Series("forest-smci", "forest SMCI", ours=True)
METHODS = tuple(SERIES)
# The paper halves the gradient of the pseudolikelihood so that its size is that of the likelihood (eq. 13); ratio
# matching and probability flow follow their own gradients, the latter twice as long at w = 0.
GRADIENT_SCALE = {"mple": 0.5}
# One discordant row in 10,000 makes a coupling of 4.6; beyond, the solution is on its way to infinity.
LARGEST = 6.0
ERROR = "mean absolute error of the couplings to the MLE"
NOTE = "s2-SMCI and forest SMCI are ours"


def draw_network(rng: np.random.Generator, matched: bool = True) -> Model[PairwiseFamily]:
    """Draw the generating machine: the grid with couplings in [-0.3, 0.3], or all pairs of 16 with [-0.2, 0.2]."""
    graph, largest = (GRID, 0.3) if matched else (complete(GRID.n_nodes), 0.2)
    return PairwiseFamily.model(graph, None, rng.uniform(-largest, largest, graph.n_edges))


def draw_data(network: Model[PairwiseFamily], n_rows: int, rng: np.random.Generator) -> Dataset:
    """Draw independent rows from a machine."""
    return Dataset.of_states(exact(network).sample(n_rows, rng), "spin")


def learner_of(method: str, **settings: Any) -> Learner:
    """Return the learner of a method: SMCI with its regions, or the one of that name."""
    region = {"1-smci": 1, "s2-smci": "s2"}.get(method)
    return as_learner(method, **settings) if region is None else as_learner("smci", region=region, **settings)


def solve(method: str, data: Dataset, guide: Model[PairwiseFamily] | None = None) -> np.ndarray:
    """Return the couplings that a method learns (forests by those of the guide), NaN where none are finite."""
    learner = learner_of(method) if method != "forest-smci" else MomentMatching(FixedForests(guide), optimizer=SOLVER)
    fitted = run(learner, ZERO, data, np.random.default_rng(0), tol=1e-8, max_iter=300)
    found = np.abs(fitted.model.theta).max() < LARGEST and (fitted.converged or fitted.trace.rows[-1][2] < 1e-6)
    return fitted.model.theta if found else np.full(GRID.n_edges, np.nan)


def path_of(method: str, data: Dataset, n_steps: int) -> np.ndarray:
    """Return the couplings after each step of plain ascent from zero, as the paper learns (section 5)."""
    optimizer = Ascent(learning_rate=0.2 * GRADIENT_SCALE.get(method, 1.0))
    if method == "forest-smci":
        guide = ZERO.replace(solve("mple", data))
        learner: Learner = MomentMatching(FixedForests(guide), optimizer=optimizer)
    else:
        settings = {"centred": False} if method.endswith("-smci") else {}
        learner = learner_of(method, optimizer=optimizer, **settings)
    fit = learner.bind(ZERO, data)
    state, _ = fit.init(Key.of(0))
    path = [fit.model(state).theta]
    for _ in range(n_steps):
        state, _ = fit.step(state)
        path.append(fit.model(state).theta)
    return np.array(path)


# -- figure 2: how far the solutions are from that of the likelihood, against N ---------------------------------------
SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000)
SECTION_4 = "Y18 section 4.2"
# An error like 1/sqrt(N) has the slope -1/2 on logarithmic axes, and ends at 0.32 of that at a tenth of the rows.
STEEP, LEVEL_ABOVE = -0.4, 0.6


@EXPERIMENTS.register("y18-fig2a")
def figure_2a() -> Experiment:
    """Return Y18 Fig. 2a: data from a grid of the same shape, where there is no model error."""
    title = "distance to the MLE without model error"
    return _figure_2("Fig. 2a", title, _matched_trial, _approach, _spatial_below(2))


@EXPERIMENTS.register("y18-fig2b")
def figure_2b() -> Experiment:
    """Return Y18 Fig. 2b: data from a machine with all pairs, learned on the grid."""
    title = "distance to the MLE with model error"
    return _figure_2("Fig. 2b", title, _mismatched_trial, _level_off, _spatial_below(3), _worse_than_matched)


def _figure_2(item: str, title: str, trial: Callable[[np.random.Generator], Trial], *claims: Claim) -> Experiment:
    return Experiment(
        "Y18",
        item,
        title,
        trial,
        (_table_of_sizes,),
        panels(lines(SIZES, list(SERIES.values()), "N", "MAE", legend_at=BESIDE)),
        (
            *claims,
            below_everywhere(SERIES["s2-smci"], SERIES["1-smci"], "N", SIZES, "ours", 3),
            below_everywhere(SERIES["forest-smci"], SERIES["s2-smci"], "N", SIZES, "ours", 10),
        ),
        size=(5.6, 3.6),
        scale="a network, and a data set for every N",
    )


def _spatial_below(trials: int) -> Claim:
    return below_everywhere(SERIES["1-smci"], SERIES["mple"], "N", SIZES, SECTION_4, trials)


def _matched_trial(rng: np.random.Generator) -> Trial:
    return _errors(draw_network(rng), rng)


def _mismatched_trial(rng: np.random.Generator) -> Trial:
    found = _errors(draw_network(rng, matched=False), rng)
    matched = draw_data(draw_network(rng), SIZES[-1], rng)
    found["1-smci matched"] = np.abs(solve("1-smci", matched) - solve("mle", matched)).mean()
    return found


def _errors(network: Model[PairwiseFamily], rng: np.random.Generator) -> Trial:
    errors = np.array([_errors_at(network, n_rows, rng) for n_rows in SIZES])
    return dict(zip(METHODS, errors.T, strict=True))


def _errors_at(network: Model[PairwiseFamily], n_rows: int, rng: np.random.Generator) -> list[float]:
    data = draw_data(network, n_rows, rng)
    best = solve("mle", data)
    if np.isnan(best).any():
        return [np.nan] * len(METHODS)
    guide = ZERO.replace(best)
    return [float(np.abs(solve(method, data, guide) - best).mean()) for method in METHODS]


def _table_of_sizes(results: Results) -> Table:
    columns = {"N": SIZES} | mean_columns(results, list(SERIES.values())) | {"trials": results.count("mple")}
    return Table(ERROR, columns, NOTE)


@claim("MPLE and 1-SMCI approach the MLE as N grows", SECTION_4, trials=3)
def _approach(results: Results) -> Verdict:
    means = {LABELS[method]: results.mean(method) for method in ("mple", "1-smci")}
    slopes = {label: float(slope(SIZES, mean)) for label, mean in means.items()}
    ends = ", ".join(f"{m} {mean[0]:.2g} to {mean[-1]:.2g}, like N^{slopes[m]:.2f}" for m, mean in means.items())
    return Verdict(max(slopes.values()) < STEEP, f"from N = {SIZES[0]} to {SIZES[-1]}: {ends}")


@claim("MPLE and 1-SMCI do not converge to the MLE", SECTION_4, trials=3)
def _level_off(results: Results) -> Verdict:
    tenth = SIZES.index(SIZES[-1] // 10)
    falls = {m: ratio_of_means(results[m][:, -1], results[m][:, tenth]) for m in ("mple", "1-smci")}
    numbers = ", ".join(f"{LABELS[method]} {fall}" for method, fall in falls.items())
    holds = all(fall.value > LEVEL_ABOVE for fall in falls.values())
    return Verdict(holds, f"error at N = 10000 over that at 1000: {numbers}; convergence would give 0.316")


@claim("1-SMCI is further from the MLE than without model error", SECTION_4, trials=3)
def _worse_than_matched(results: Results) -> Verdict:
    matched, mismatched = results["1-smci matched"], results["1-smci"][:, -1]
    ratio = ratio_of_means(mismatched, matched)
    return Verdict(ratio.value > 1, f"{ratio} times at N = 10000; in {trials_below(matched, mismatched)}")


# -- figure 3: learning curves by plain ascent, and whether the problems are convex -----------------------------------
N_STEPS = 100
SHOWN = (0, 5, 10, 20, 30, 50, 70, 100)
SECTION_5 = "Y18 section 5"
# "almost the same values": the largest of three final errors over the smallest
ALMOST_THE_SAME = 1.25
# a curve has converged where it stays this close to its end, as a share of it
CLOSE = 0.05
OBJECTIVE_OF = {"mple": "pseudolikelihood", "rm": "ratio-matching", "mpf": "probability-flow"}
# lines along which curvature is looked for, through points with couplings of this size
N_LINES, REACH = 20, 2.0


@EXPERIMENTS.register("y18-fig3a")
def figure_3a() -> Experiment:
    """Return Y18 Fig. 3a: 200 rows."""
    return _figure_3("Fig. 3a", 200)


@EXPERIMENTS.register("y18-fig3b")
def figure_3b() -> Experiment:
    """Return Y18 Fig. 3b: 2000 rows."""
    return _figure_3("Fig. 3b", 2000)


def _figure_3(item: str, n_rows: int) -> Experiment:
    series = list(SERIES.values())
    return Experiment(
        "Y18",
        item,
        f"learning curves, N = {n_rows}",
        partial(_learning_trial, n_rows=n_rows),
        (_table_of_steps,),
        panels(lines(np.arange(N_STEPS + 1), series, "step", "MAE", log="y")),
        (
            _flow_is_fastest,
            _three_end_alike,
            *(ends_below(SERIES["1-smci"], SERIES[other], SECTION_5, 2) for other in OBJECTIVE_OF),
            Claim("MPLE and MPF are convex problems", SECTION_5, partial(_convex, ("mple", "mpf")), trials=2),
            Claim("RM is a convex problem", SECTION_5, partial(_convex, ("rm",)), trials=2, misprint=True),
            ends_below(SERIES["s2-smci"], SERIES["1-smci"], "ours", 4, ours=True),
            ends_below(SERIES["forest-smci"], SERIES["s2-smci"], "ours", 10, ours=True),
        ),
    )


def _learning_trial(rng: np.random.Generator, n_rows: int) -> Trial:
    data = draw_data(draw_network(rng), n_rows, rng)
    best = solve("mle", data)
    found: Trial = {method: np.abs(path_of(method, data, N_STEPS) - best).mean(axis=1) for method in METHODS}
    curvatures = least_curvatures(data, rng)
    return found | {f"{method} curvature": value for method, value in curvatures.items()}


def least_curvatures(data: Dataset, rng: np.random.Generator) -> dict[str, float]:
    """Return the least second difference of each objective along random lines: a convex one has none below zero."""
    bound = {method: OBJECTIVES.create(name).bind(ZERO, data) for method, name in OBJECTIVE_OF.items()}
    least = dict.fromkeys(OBJECTIVE_OF, np.inf)
    for _ in range(N_LINES):
        middle, step = rng.normal(0.0, REACH, GRID.n_edges), rng.normal(0.0, 0.5, GRID.n_edges)
        for method, function in bound.items():
            low, centre, high = (function(middle + shift * step)[0] for shift in (-1.0, 0.0, 1.0))
            least[method] = min(least[method], float(low - 2.0 * centre + high) / abs(centre))
    return least


def steps_to_converge(curve: np.ndarray) -> int:
    """Return after how many steps a curve stays near its end."""
    far = np.flatnonzero(np.abs(curve - curve[-1]) > CLOSE * curve[-1])
    return int(far[-1]) + 1 if far.size else 0


def _table_of_steps(results: Results) -> Table:
    columns = {"step": SHOWN} | mean_columns(results, list(SERIES.values()), list(SHOWN))
    return Table(ERROR, columns | {"trials": results.count("mple")[list(SHOWN)]}, NOTE)


@claim("MPF converges fastest", SECTION_5, trials=4)
def _flow_is_fastest(results: Results) -> Verdict:
    steps = {method: steps_to_converge(results.mean(method)) for method in PAPERS}
    numbers = ", ".join(f"{LABELS[method]} {count}" for method, count in steps.items())
    others = min(count for method, count in steps.items() if method != "mpf")
    return Verdict(steps["mpf"] < others, f"steps until the mean error stays within 5% of its end: {numbers}")


@claim("MPLE, RM and MPF end at almost the same error", SECTION_5, trials=20)
def _three_end_alike(results: Results) -> Verdict:
    ends = {LABELS[method]: mean_with_error(results[method][:, -1]) for method in OBJECTIVE_OF}
    means = [end.value for end in ends.values()]
    numbers = ", ".join(f"{label} {end}" for label, end in ends.items())
    return Verdict(max(means) < ALMOST_THE_SAME * min(means), f"{numbers}; largest over smallest below 1.25")


def _convex(methods: tuple[str, ...], results: Results) -> Verdict:
    # rounding makes second differences of flat stretches a little negative
    bent = {method: int((results[f"{method} curvature"] < -1e-10).sum()) for method in methods}
    numbers = ", ".join(
        f"{LABELS[method]} bends downwards in {count} of {results.n_trials} trials" for method, count in bent.items()
    )
    return Verdict(not any(bent.values()), f"along {N_LINES} random lines each: {numbers}")
