"""Yasuda and Uchizawa 2020: networks of 20 variables, and figure 5, errors of their covariances.

Covariances are estimated by Monte Carlo integration, spatial and plain, and by annealing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from gibbsian.expectations import Neighbourhood, spatial_statistics
from gibbsian.expectations.region_sums import conditional_tables, plan_region
from gibbsian.graphs import Graph, complete, grid, random
from gibbsian.inference import exact
from gibbsian.models import Model, PairwiseFamily
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, kernel_for, variable_path
from gibbsian_reproduction.drawing import BESIDE, lines, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.tables import mean_table
from gibbsian_reproduction.verdicts import below_everywhere, listed, ratio_of_means

GRID = grid(4, 5)
LARGEST_BIAS, LARGEST_COUPLING = 0.2, 0.3

SIZES = (10, 100, 1000)
COMPARED_AT = 1  # the place of M = 100 in SIZES
REGIONS = {"1-smci": 1, "s2-smci": "s2", "forest-smci": "forest"}
OPEN = {"markerfacecolor": "white"}
SERIES = {
    "mci": Series("mci", "MCI", style={"marker": "o"} | OPEN),
    "1-smci": Series("1-smci", "1-SMCI", style={"marker": "o"}),
    "s2-smci": Series("s2-smci", "s2-SMCI", style={"marker": "s"} | OPEN),
    "2-smci": Series("2-smci", "2-SMCI", style={"marker": "s"}),
    "ais": Series("ais", "AIS"),
    "forest-smci": Series("forest-smci", "forest SMCI", ours=True),
}
SPATIAL = ("1-smci", "s2-smci", "2-smci")
SOURCE = "YU20 section 4.2"
# "almost the same" and "approximately 100 times": within these factors
ALIKE, ROUGHLY = 2.0, 3.0


def draw_exactly(network: Model[PairwiseFamily], size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw independent rows of codes."""
    return exact(network).sample(size, rng)


def draw_by_gibbs(network: Model[PairwiseFamily], size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the states of as many chains after `BURN_IN` sweeps from random states."""
    kernel = kernel_for(network.family)
    return kernel.step(network.theta, kernel.init(size, Key.of(rng)), BURN_IN)[0].states


class Protocol(NamedTuple):
    """How samples are drawn, the number of temperatures of annealing, and both in words."""

    draw: Callable[[Model[PairwiseFamily], int, np.random.Generator], np.ndarray]
    n_betas: int
    words: str


# The paper does not say how long its chains ran; couplings are so weak that a few sweeps would do.
BURN_IN = 1000
# The paper has 10,000; the couplings are so weak that 500 leave the weights as even (99% of the walkers count).
N_BETAS = 500
OURS = Protocol(draw_exactly, N_BETAS, f"exact draws in place of Gibbs sampling; AIS with {N_BETAS} temperatures")
PRINTED = Protocol(draw_by_gibbs, 10_000, f"Gibbs chains of {BURN_IN} sweeps; AIS with 10,000 temperatures")


def draw_graph(kind: str | float, rng: np.random.Generator) -> Graph:
    """Return the 4x5 grid, the complete graph, or a random one with this connection probability."""
    if kind == "grid":
        return GRID
    return complete(GRID.n_nodes) if kind == "complete" else random(GRID.n_nodes, float(kind), random_state=rng)


def draw_network(kind: str | float, rng: np.random.Generator) -> Model[PairwiseFamily]:
    """Draw a machine on such a graph with biases in [-0.2, 0.2] and couplings in [-0.3, 0.3]."""
    graph = draw_graph(kind, rng)
    biases = rng.uniform(-LARGEST_BIAS, LARGEST_BIAS, graph.n_nodes)
    return PairwiseFamily.model(graph, biases, rng.uniform(-LARGEST_COUPLING, LARGEST_COUPLING, graph.n_edges))


@EXPERIMENTS.register("yu20-fig5a")
def figure_5a() -> Experiment:
    """Return YU20 Fig. 5a: the 4x5 grid."""
    best = below_everywhere(SERIES["forest-smci"], SERIES["2-smci"], "M", SIZES, "ours", 4)
    return _figure_5("Fig. 5a", "errors of covariances on a 4x5 grid", "grid", best)


@EXPERIMENTS.register("yu20-fig5b")
def figure_5b() -> Experiment:
    """Return YU20 Fig. 5b: random graphs with connection probability 0.2."""
    return _figure_5("Fig. 5b", "errors of covariances on random graphs, p = 0.2", 0.2)


@EXPERIMENTS.register("yu20-fig5c")
def figure_5c() -> Experiment:
    """Return YU20 Fig. 5c: random graphs with connection probability 0.4, where regions see less of the system."""
    return _figure_5("Fig. 5c", "errors of covariances on random graphs, p = 0.4", 0.4, _less_accurate)


@EXPERIMENTS.register("yu20-fig5a-protocol")
def figure_5a_as_printed() -> Experiment:
    """Return YU20 Fig. 5a with samples and temperatures as in the paper."""
    return _figure_5("Fig. 5a", "errors of covariances on a 4x5 grid", "grid", protocol=PRINTED)


@EXPERIMENTS.register("yu20-fig5b-protocol")
def figure_5b_as_printed() -> Experiment:
    """Return YU20 Fig. 5b with samples and temperatures as in the paper."""
    return _figure_5("Fig. 5b", "errors of covariances on random graphs, p = 0.2", 0.2, protocol=PRINTED)


@EXPERIMENTS.register("yu20-fig5c-protocol")
def figure_5c_as_printed() -> Experiment:
    """Return YU20 Fig. 5c with samples and temperatures as in the paper."""
    title = "errors of covariances on random graphs, p = 0.4"
    return _figure_5("Fig. 5c", title, 0.4, _less_accurate, protocol=PRINTED)


def _figure_5(item: str, title: str, kind: str | float, *more: Claim, protocol: Protocol = OURS) -> Experiment:
    def below(lower: str, upper: str, trials: int) -> Claim:
        return below_everywhere(SERIES[lower], SERIES[upper], "M", SIZES, SOURCE, trials)

    series = list(SERIES.values())
    return Experiment(
        "YU20",
        item,
        title if protocol is OURS else f"{title}, by the paper's protocol",
        partial(_trial, kind=kind, protocol=protocol),
        (mean_table("mean absolute error of the covariances", "M", SIZES, series, "forest SMCI is ours"),),
        panels(lines(SIZES, series, "M", "MAE", legend_at=BESIDE)),
        (
            *(below(method, "mci", 3) for method in SPATIAL),
            below("s2-smci", "1-smci", 4),
            below("2-smci", "s2-smci", 10),
            _thousand_for_ten,
            _hundred_times,
            _annealing_alike,
            below("forest-smci", "s2-smci", 4),
            *more,
        ),
        size=(5.6, 3.6),
        scale=f"a network; {protocol.words}",
    )


def _trial(rng: np.random.Generator, kind: str | float, protocol: Protocol) -> Trial:
    found = errors_on(draw_network(kind, rng), rng, tuple(SERIES), SIZES, protocol)
    if kind != 0.4:
        return found
    for other in ("grid", 0.2):
        beside = errors_on(draw_network(other, rng), rng, SPATIAL, SIZES[COMPARED_AT : COMPARED_AT + 1], protocol)
        found |= {f"{method} {other}": errors[0] for method, errors in beside.items()}
    return found


def errors_on(
    network: Model[PairwiseFamily],
    rng: np.random.Generator,
    methods: Sequence[str],
    sizes: Sequence[int],
    protocol: Protocol = OURS,
) -> dict[str, np.ndarray]:
    """Return the mean absolute error of the covariances by method, for each number of samples."""
    graph = network.family.graph
    truth = covariances(graph, exact(network).moments)
    samples = [protocol.draw(network, size, rng) for size in sizes]
    found = {}
    for method in methods:
        statistics = _statistics(method, network, samples, rng, protocol.n_betas)
        found[method] = np.array([np.abs(covariances(graph, mean) - truth).mean() for mean in statistics])
    return found


def covariances(graph: Graph, statistics: np.ndarray) -> np.ndarray:
    """Return the covariances along the edges from the means of x_i and of x_i x_j."""
    means, products = statistics[: graph.n_nodes], statistics[graph.n_nodes :]
    i, j = graph.edges.T
    return products - means[i] * means[j]


def _statistics(
    method: str, network: Model[PairwiseFamily], samples: list[np.ndarray], rng: np.random.Generator, n_betas: int
) -> list[np.ndarray]:
    """Return the estimated statistics, one array for each set of samples."""
    if method == "mci":
        return [network.family.mean_statistics(rows) for rows in samples]
    if method == "2-smci":
        return second_order(network, samples)
    if method == "ais":
        return _annealed(network, [len(rows) for rows in samples], rng, n_betas)
    return [spatial_statistics(network, rows, REGIONS[method]).value for rows in samples]


def _annealed(
    network: Model[PairwiseFamily], sizes: Sequence[int], rng: np.random.Generator, n_betas: int
) -> list[np.ndarray]:
    """Anneal once with walkers for all sizes; each size has its own."""
    walkers = Annealing(sum(sizes), n_betas).forward(variable_path(network, "uniform"), rng)
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return [network.family.mean_statistics(walkers.states[own], softmax(walkers.log_weights[own])) for own in parts]


def second_order(network: Model[PairwiseFamily], samples: list[np.ndarray]) -> list[np.ndarray]:
    """Return 2-SMCI of all statistics for several sets of samples; equal boundaries of a region are summed once.

    On a dense graph little is left outside a region of second order, so that there are few boundaries: the library's
    general estimate, which sums for each sample, takes seven times as long.
    """
    graph, targets, rows = network.family.graph, network.family.scopes, np.concatenate(samples)
    factors, regions = network.family.factors(network.theta), Neighbourhood(2).regions(graph, targets, None)
    which_set = np.repeat(np.arange(len(samples)), [len(part) for part in samples])
    sizes = np.bincount(which_set)
    means = np.empty((len(samples), len(targets)))
    for place, (target, region) in enumerate(zip(targets, regions, strict=True)):
        outside = sorted({int(j) for i in region for j in graph.neighbours(i)} - set(region))
        numbers = rows[:, outside] @ (1 << np.arange(len(outside)))
        _, shown, boundary = np.unique(numbers, return_index=True, return_inverse=True)
        codes = np.ascontiguousarray(rows[shown].T, dtype=np.intp)
        values = conditional_tables(factors, plan_region(factors, target, region), codes)
        for _ in target:  # the mean of the product of spins, variable by variable
            values = values[:, 1] - values[:, 0]
        means[:, place] = np.bincount(which_set, values[boundary]) / sizes
    return list(means)


@claim("MCI with M = 1000 is about as accurate as 1-SMCI with 10", SOURCE, trials=10)
def _thousand_for_ten(results: Results) -> Verdict:
    ratio = ratio_of_means(results["mci"][:, -1], results["1-smci"][:, 0])
    numbers = f"error of MCI with 1000 over that of 1-SMCI with 10: {ratio}; within a factor {ALIKE:.0f}"
    return Verdict(1.0 / ALIKE < ratio.value < ALIKE, numbers)


@claim("MCI needs about 100 times the samples of 1-SMCI", SOURCE)
def _hundred_times(results: Results) -> Verdict:
    # errors fall like 1/sqrt(M), so that the squared ratio says how many more samples it takes
    ratio = ratio_of_means(results["mci"], results["1-smci"])
    times = ratio._replace(value=ratio.value**2, error=2.0 * ratio.value * ratio.error)
    holds = np.all((times.value > 100.0 / ROUGHLY) & (times.value < 100.0 * ROUGHLY))
    return Verdict(holds, f"{listed(times, 'M', SIZES)} times; within a factor {ROUGHLY:.0f}")


@claim("AIS is about as accurate as MCI", SOURCE, trials=50)
def _annealing_alike(results: Results) -> Verdict:
    ratio = ratio_of_means(results["ais"], results["mci"])
    holds = np.all(np.abs(np.log(ratio.value)) < np.log(1.25))
    return Verdict(holds, f"error of AIS over that of MCI: {listed(ratio, 'M', SIZES)}")


@claim("SMCI methods are less accurate than on the grid and at p = 0.2", SOURCE, trials=4)
def _less_accurate(results: Results) -> Verdict:
    numbers, holds = [], True
    for method in SPATIAL:
        for other, words in (("grid", "the grid"), (0.2, "p = 0.2")):
            ratio = ratio_of_means(results[method][:, COMPARED_AT], results[f"{method} {other}"])
            holds &= bool(ratio.value > 1.0)
            numbers.append(f"{SERIES[method].label} {ratio} over {words}")
    return Verdict(holds, f"errors at M = {SIZES[COMPARED_AT]}: {', '.join(numbers)}")
