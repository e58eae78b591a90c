"""YU20 figure 5: errors of covariances by Monte Carlo integration, spatial and plain, and by annealing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from gibbsian.expectations import Neighbourhood, spatial_statistics
from gibbsian.expectations.region_sums import conditional_tables, plan_region
from gibbsian.expectations.regions import Target
from gibbsian.graphs import Graph
from gibbsian.inference import exact
from gibbsian.models import PairwiseModel
from gibbsian.papers.drawing import curve, legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.verdicts import below_claim, ratio_of_means, told
from gibbsian.papers.yu20 import draw_network
from gibbsian.samplers import Annealing, variable_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (10, 100, 1000)
REGIONS = {"1-smci": 1, "s2-smci": "s2", "forest-smci": "forest"}
METHODS = ("mci", "1-smci", "s2-smci", "2-smci", "ais", "forest-smci")
LABELS = {
    "mci": "MCI",
    "1-smci": "1-SMCI",
    "s2-smci": "s2-SMCI",
    "2-smci": "2-SMCI",
    "ais": "AIS",
    "forest-smci": "forest SMCI",
}
MARKERS = {"mci": "o", "1-smci": "o", "s2-smci": "s", "2-smci": "s"}
OPEN = ("mci", "s2-smci")
# The paper has 10,000; the couplings are so weak that 500 leave the weights as even (99% of the walkers count).
N_BETAS = 500
SPATIAL = ("1-smci", "s2-smci", "2-smci")
SOURCE = "YU20 section 4.2"
# "almost the same" and "approximately 100 times": within these factors
ALIKE, ROUGHLY = 2.0, 3.0
COMPARED_AT = 1  # the place of M = 100 in SIZES


@EXPERIMENTS.register("yu20-fig5a")
def figure_5a() -> Experiment:
    """Return YU20 Fig. 5a: the 4x5 grid.

    Examples
    --------
    >>> from gibbsian.papers.yu20_figure_5 import figure_5a
    >>> figure_5a().title
    'errors of covariances on a 4x5 grid'
    """
    best = below_claim("forest SMCI below 2-SMCI at every M", "ours", "forest-smci", "2-smci", SIZES, "M", 4, ours=True)
    return _experiment("Fig. 5a", "errors of covariances on a 4x5 grid", "grid", (best,))


@EXPERIMENTS.register("yu20-fig5b")
def figure_5b() -> Experiment:
    """Return YU20 Fig. 5b: random graphs with connection probability 0.2.

    Examples
    --------
    >>> from gibbsian.papers.yu20_figure_5 import figure_5b
    >>> figure_5b().item
    'Fig. 5b'
    """
    return _experiment("Fig. 5b", "errors of covariances on random graphs, p = 0.2", 0.2, ())


@EXPERIMENTS.register("yu20-fig5c")
def figure_5c() -> Experiment:
    """Return YU20 Fig. 5c: random graphs with connection probability 0.4, where regions see less of the system.

    Examples
    --------
    >>> from gibbsian.papers.yu20_figure_5 import figure_5c
    >>> figure_5c().claims[-1].text
    'SMCI methods are less accurate than on the grid and at p = 0.2'
    """
    worse = Claim("SMCI methods are less accurate than on the grid and at p = 0.2", SOURCE, _less_accurate, trials=4)
    return _experiment("Fig. 5c", "errors of covariances on random graphs, p = 0.4", 0.4, (worse,))


def _experiment(item: str, title: str, kind: str | float, more: tuple[Claim, ...]) -> Experiment:
    claims = (
        *(below_claim(f"{LABELS[m]} below MCI at every M", SOURCE, m, "mci", SIZES, "M", 3) for m in SPATIAL),
        below_claim("s2-SMCI below 1-SMCI at every M", SOURCE, "s2-smci", "1-smci", SIZES, "M", 4),
        below_claim("2-SMCI below s2-SMCI at every M", SOURCE, "2-smci", "s2-smci", SIZES, "M", 10),
        Claim("MCI with M = 1000 is about as accurate as 1-SMCI with 10", SOURCE, _thousand_for_ten, trials=10),
        Claim("MCI needs about 100 times the samples of 1-SMCI", SOURCE, _hundred_times),
        Claim("AIS is about as accurate as MCI", SOURCE, _annealing_alike, trials=50),
        below_claim("forest SMCI below s2-SMCI at every M", "ours", "forest-smci", "s2-smci", SIZES, "M", 4, ours=True),
        *more,
    )
    return Experiment(
        "YU20",
        item,
        title,
        partial(_trial, kind=kind),
        _tables,
        _draw,
        claims,
        size=(5.6, 3.6),
        scale=f"a network; independent exact draws in place of Gibbs sampling; AIS with {N_BETAS} temperatures",
    )


def _trial(rng: np.random.Generator, kind: str | float) -> Trial:
    found = errors_on(draw_network(kind, rng), rng, METHODS, SIZES)
    if kind != 0.4:
        return found
    for other in ("grid", 0.2):
        beside = errors_on(draw_network(other, rng), rng, SPATIAL, SIZES[COMPARED_AT : COMPARED_AT + 1])
        found |= {f"{method} {other}": errors[0] for method, errors in beside.items()}
    return found


def errors_on(
    network: PairwiseModel, rng: np.random.Generator, methods: Sequence[str], sizes: Sequence[int]
) -> dict[str, np.ndarray]:
    """Return the mean absolute error of the covariances by method, for each number of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.yu20 import draw_network
    >>> from gibbsian.papers.yu20_figure_5 import errors_on
    >>> rng = np.random.default_rng(0)
    >>> errors = errors_on(draw_network("grid", rng), rng, ["mci", "1-smci"], [10, 100])
    >>> bool((errors["1-smci"] < errors["mci"]).all())
    True
    """
    engine, graph = exact(network), network.graph
    truth = covariances(graph, engine.moments().statistics)
    samples = [engine.sample(size, rng) for size in sizes]
    found = {}
    for method in methods:
        statistics = _statistics(method, network, samples, rng)
        found[method] = np.array([np.abs(covariances(graph, mean) - truth).mean() for mean in statistics])
    return found


def covariances(graph: Graph, statistics: np.ndarray) -> np.ndarray:
    """Return the covariances along the edges from the means of x_i and of x_i x_j.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.papers.yu20_figure_5 import covariances
    >>> covariances(gb.graphs.complete(2), np.array([0.5, 0.5, 0.5]))
    array([0.25])
    """
    means, products = statistics[: graph.n_nodes], statistics[graph.n_nodes :]
    i, j = graph.edges.T
    return products - means[i] * means[j]


def _statistics(
    method: str, network: PairwiseModel, samples: list[np.ndarray], rng: np.random.Generator
) -> list[np.ndarray]:
    """The estimated statistics, one array for each set of samples."""
    if method == "mci":
        return [network.mean_statistics(rows) for rows in samples]
    if method == "2-smci":
        return second_order(network, samples)
    if method == "ais":
        return _annealed(network, [len(rows) for rows in samples], rng)
    return [spatial_statistics(network, rows, REGIONS[method]).mean for rows in samples]


def _annealed(network: PairwiseModel, sizes: Sequence[int], rng: np.random.Generator) -> list[np.ndarray]:
    """One run with walkers for all sizes; each size has its own."""
    run = Annealing(sum(sizes), N_BETAS).forward(variable_path(network, "uniform"), rng)
    found = []
    for last, size in zip(np.cumsum(sizes), sizes, strict=True):
        own = slice(last - size, last)
        weights = np.exp(run.log_weights[own] - logsumexp(run.log_weights[own]))
        found.append(network.mean_statistics(run.states[own], weights))
    return found


def second_order(network: PairwiseModel, samples: list[np.ndarray]) -> list[np.ndarray]:
    """Return 2-SMCI of all statistics for several sets of samples; equal boundaries of a region are summed once.

    On a dense graph little is left outside a region of second order, so that there are few boundaries to tell apart.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.papers.yu20 import draw_network
    >>> from gibbsian.papers.yu20_figure_5 import second_order
    >>> rng = np.random.default_rng(0)
    >>> network = draw_network("grid", rng)
    >>> samples = gb.inference.exact(network).sample(5, rng)
    >>> general = gb.expectations.spatial_statistics(network, samples, 2).mean
    >>> bool(np.allclose(second_order(network, [samples])[0], general))
    True
    """
    graph, factors, rows = network.graph, network.factors(), np.concatenate(samples)
    targets: list[Target] = [(i,) for i in range(graph.n_nodes)] + [(int(i), int(j)) for i, j in graph.edges]
    regions = Neighbourhood(2).regions(graph, targets, None)
    which_set = np.repeat(np.arange(len(samples)), [len(part) for part in samples])
    sizes = np.bincount(which_set)
    means = np.empty((len(samples), len(targets)))
    for place, (target, region) in enumerate(zip(targets, regions, strict=True)):
        outside = sorted({int(j) for i in region for j in graph.neighbours(i)} - set(region))
        numbers = (rows[:, outside] > 0) @ (1 << np.arange(len(outside)))
        _, shown, boundary = np.unique(numbers, return_index=True, return_inverse=True)
        codes = np.ascontiguousarray((rows[shown] > 0).T, dtype=np.intp)
        law = conditional_tables(factors, plan_region(factors, target, region), codes)
        values = (
            law[:, 1] - law[:, 0] if len(target) == 1 else law[:, 0, 0] + law[:, 1, 1] - law[:, 0, 1] - law[:, 1, 0]
        )
        means[:, place] = np.bincount(which_set, values[boundary]) / sizes
    return list(means)


def _tables(results: Results) -> list[Table]:
    import pandas as pd

    columns: dict[str, object] = {"M": list(SIZES)}
    for method in METHODS:
        columns[LABELS[method]] = results.mean(method)
        columns[f"{LABELS[method]} stderr"] = results.stderr(method)
    return [Table("mean absolute error of the covariances", pd.DataFrame(columns), "forest SMCI is ours")]


def _draw(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    for method in METHODS:
        style = {"marker": MARKERS[method]} if method in MARKERS else {}
        style |= {"markerfacecolor": "white"} if method in OPEN else {}
        mean, stderr = results.mean(method), results.stderr(method)
        curve(axes, SIZES, mean, stderr, LABELS[method], ours=method == "forest-smci", method=method, **style)
    log_axes(axes, "M", "MAE")
    legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _thousand_for_ten(results: Results) -> Verdict:
    ends = Results({"many": results["mci"][:, -1], "few": results["1-smci"][:, 0]}, results.seed)
    ratio, error = (float(part) for part in ratio_of_means(ends, "many", "few"))
    numbers = f"error of MCI with 1000 over that of 1-SMCI with 10: {told(ratio, error)}; within a factor {ALIKE:.0f}"
    return Verdict(1.0 / ALIKE < ratio < ALIKE, numbers)


def _hundred_times(results: Results) -> Verdict:
    # errors fall like 1/sqrt(M), so that the squared ratio says how many more samples it takes
    ratio, error = ratio_of_means(results, "mci", "1-smci")
    times, spread = ratio**2, 2.0 * ratio * error
    numbers = ", ".join(f"{told(times[k], spread[k])} at M = {size}" for k, size in enumerate(SIZES))
    holds = bool(np.all((times > 100.0 / ROUGHLY) & (times < 100.0 * ROUGHLY)))
    return Verdict(holds, f"{numbers} times; within a factor {ROUGHLY:.0f}")


def _annealing_alike(results: Results) -> Verdict:
    ratio, error = ratio_of_means(results, "ais", "mci")
    numbers = ", ".join(f"{told(ratio[k], error[k])} at M = {size}" for k, size in enumerate(SIZES))
    return Verdict(bool(np.all(np.abs(np.log(ratio)) < np.log(1.25))), f"error of AIS over that of MCI: {numbers}")


def _less_accurate(results: Results) -> Verdict:
    numbers, holds = [], True
    for method in SPATIAL:
        here = results[method][:, COMPARED_AT]
        for other in ("grid", 0.2):
            pair = Results({"here": here, "there": results[f"{method} {other}"]}, results.seed)
            ratio, error = (float(part) for part in ratio_of_means(pair, "here", "there"))
            holds &= ratio > 1.0
            numbers.append(f"{LABELS[method]} {told(ratio, error)} over {'the grid' if other == 'grid' else 'p = 0.2'}")
    return Verdict(holds, f"errors at M = {SIZES[COMPARED_AT]}: {', '.join(numbers)}")
