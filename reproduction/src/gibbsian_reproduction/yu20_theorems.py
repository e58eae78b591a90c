"""YU20 theorems 1 and 2: the variance of spatial Monte Carlo integration falls as the region grows.

The systems are small enough for a table of all probabilities, from which variances follow exactly (eq. 12); sums over
a region are sums over axes of that table. Estimates from drawn samples then show the same variances.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gibbsian.expectations import ForestAround, IndependentNeighbours, Neighbourhood
from gibbsian.expectations.regions import Region, Target, edge_strengths
from gibbsian.graphs import grid, random
from gibbsian.models import Model, PairwiseFamily, ProductsFamily
from gibbsian_reproduction.drawing import lines, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.systems import all_states, distribution_of, stacked
from gibbsian_reproduction.tables import Table, mean_columns, mean_table
from gibbsian_reproduction.yu20 import LARGEST_BIAS, LARGEST_COUPLING

N = 12
KINDS = ("3x4 grid", "random graph, p = 0.4", "triples")
ORDERS = (0, 1, 2, 3, 4)
# sets of N_SAMPLES samples whose estimates give the measured variances
N_SAMPLES, N_SETS = 10, 400
# targets of theorem 2 in each system, and how many variables each has at most
N_TARGETS, LARGEST_TARGET = 10, 3
RULES: dict[str, Any] = {
    "1-SMCI": Neighbourhood(1),
    "s2-SMCI": IndependentNeighbours(),
    "2-SMCI": Neighbourhood(2),
    "forest": ForestAround(),
}
# rounding in sums of 4096 numbers of the size of one
ROUNDING = 1e-13
# variable 0 changes slowest, as the axes of a table do
STATES = all_states(N)[:, ::-1]
SPINS = 2 * STATES - 1

System: TypeAlias = Model[PairwiseFamily] | Model[ProductsFamily]


def draw_system(kind: str, rng: np.random.Generator) -> System:
    """Draw a small machine: pairs on a grid or a random graph, or all biases and 12 triples."""
    biases = rng.uniform(-LARGEST_BIAS, LARGEST_BIAS, N)
    if kind == "triples":
        chosen = {tuple(sorted(rng.choice(N, 3, replace=False).tolist())) for _ in range(N)}
        cliques = [(i,) for i in range(N)] + sorted(chosen)
        strengths = rng.uniform(-2 * LARGEST_COUPLING, 2 * LARGEST_COUPLING, len(chosen))
        return ProductsFamily.model(dict(zip(cliques, [*biases, *strengths], strict=True)), N)
    graph = grid(3, 4) if kind == "3x4 grid" else random(N, 0.4, random_state=rng)
    return PairwiseFamily.model(graph, biases, rng.uniform(-LARGEST_COUPLING, LARGEST_COUPLING, graph.n_edges))


def conditional_means(table: np.ndarray, values: np.ndarray, region: Region) -> np.ndarray:
    """Return E[f | x outside the region] at every state (YU20 eq. 13), from tables over all states."""
    weights = table.sum(axis=region, keepdims=True)
    return np.broadcast_to((table * values).sum(axis=region, keepdims=True) / weights, table.shape)


def variances(table: np.ndarray, values: np.ndarray, regions: Iterable[Region]) -> np.ndarray:
    """Return M times the variance of the estimate of E[f] for each region (YU20 eq. 12)."""
    truth = float((table * values).sum())
    return np.array([float((table * (conditional_means(table, values, r) - truth) ** 2).sum()) for r in regions])


def _table_of(model: System) -> np.ndarray:
    return distribution_of(model, STATES).reshape((2,) * N)


def _product(target: Sequence[int]) -> np.ndarray:
    return np.prod(SPINS[:, list(target)], axis=1, dtype=np.float64).reshape((2,) * N)


def _by_kind(key: str) -> list[Series]:
    return [Series(key, kind, method=kind, place=(place,)) for place, kind in enumerate(KINDS)]


def _in_all_systems(rises: np.ndarray, numbers: str) -> Verdict:
    count = int((rises <= ROUNDING).sum())
    return Verdict(count == rises.size, f"in {count} of {rises.size} systems{numbers}")


def _means_in_words(means: np.ndarray) -> str:
    """Write the mean variances of each kind of system, those that are rounding as zero."""
    rows = (", ".join(f"{value:.2g}" if value > ROUNDING else "0" for value in row) for row in means)
    return "; ".join(f"{kind}: {row}" for kind, row in zip(KINDS, rows, strict=True))


# -- theorem 1 --------------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("yu20-theorem1")
def theorem_1() -> Experiment:
    """Return YU20 theorem 1: v >= v(1) >= v(2) >= ... >= 0 for the orders of SMCI."""
    return Experiment(
        "YU20",
        "Theorem 1",
        "variance of k-SMCI by order; k = 0 is plain Monte Carlo",
        _orders_trial,
        (_table_of_orders,),
        panels(lines(ORDERS, _by_kind("exact"), "order k", "M v", log="y", least=ROUNDING)),
        (_never_rises, _measured_falls, _measured_as_exact),
        scale=f"three systems of {N} variables, every statistic, {N_SETS} sets of {N_SAMPLES} samples",
    )


def _orders_trial(rng: np.random.Generator) -> Trial:
    found = [_orders_of(draw_system(kind, rng), rng) for kind in KINDS]
    exact, measured, rises = (np.array(part) for part in zip(*found, strict=True))
    return {"exact": exact, "measured": measured, "rise": rises}


def _orders_of(model: System, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Exact and measured variances by order, averaged over targets, and the largest rise from one order to the next."""
    table, targets = _table_of(model), model.family.scopes
    drawn = rng.choice(table.size, (N_SETS, N_SAMPLES), p=table.ravel())
    regions = [Neighbourhood(k).regions(model.family.graph, targets, None) for k in ORDERS]
    exact, measured = np.empty((len(targets), len(ORDERS))), np.empty((len(targets), len(ORDERS)))
    for place, target in enumerate(targets):
        values = _product(target)
        own = [chosen[place] for chosen in regions]
        exact[place] = variances(table, values, own)
        for k, region in enumerate(own):
            estimates = conditional_means(table, values, region).ravel()[drawn].mean(axis=1)
            measured[place, k] = N_SAMPLES * estimates.var(ddof=1)
    return exact.mean(axis=0), measured.mean(axis=0), float(np.diff(exact, axis=1).max())


def _table_of_orders(results: Results) -> Table:
    flat = Results({key: results[key].reshape(results.n_trials, -1) for key in ("exact", "measured")}, results.seed)
    columns = {"system": np.repeat(KINDS, len(ORDERS)), "k": np.tile(ORDERS, len(KINDS))}
    columns |= mean_columns(flat, [Series("exact", "M v (exact)"), Series("measured", "M v (measured)")])
    return Table("variance of one sample's estimate, mean over statistics and systems", columns)


@claim("the variance never rises with the order k", "YU20 section 2.4", trials=1)
def _never_rises(results: Results) -> Verdict:
    means = _means_in_words(results.mean("exact"))
    return _in_all_systems(results["rise"], f", for all targets; mean M v: {means}")


@claim("nor, in the mean over targets, does the measured one", "YU20 section 2.4", trials=2)
def _measured_falls(results: Results) -> Verdict:
    return _in_all_systems(np.diff(results["measured"], axis=-1).max(axis=-1), "")


@claim("measured variances are the exact ones", "YU20 section 2.4", trials=4)
def _measured_as_exact(results: Results) -> Verdict:
    numbers, holds = [], True
    for k in ORDERS[:3]:
        ratios = (results["measured"][..., k] / results["exact"][..., k]).ravel()
        error = ratios.std(ddof=1) / np.sqrt(ratios.size)
        holds &= bool(abs(ratios.mean() - 1.0) < 5.0 * max(error, 0.01))
        numbers.append(f"k = {k} {ratios.mean():.3f} +- {error:.3f}")
    return Verdict(holds, f"measured over exact: {', '.join(numbers)}")


# -- theorem 2 --------------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("yu20-theorem2")
def theorem_2() -> Experiment:
    """Return YU20 theorem 2: of two nested regions around any target the larger has the smaller variance."""
    sizes, grown, named = range(N + 1), _by_kind("grown"), _by_kind("named")
    by_name = "M v of the regions with names, mean over statistics"
    return Experiment(
        "YU20",
        "Theorem 2",
        "variance of GSMCI as variables are added to the region at random",
        _growing_trial,
        (
            mean_table("M v as a region grows, mean over targets and systems", "added variables", sizes, grown),
            mean_table(by_name, "region", RULES, named, "forest is ours"),
        ),
        panels(lines(sizes, grown, "variables added to the target", "M v", log="y", least=ROUNDING)),
        (_grown_never_rises, _beats_plain, _named_regions_ordered, _forests_below_first),
        scale=f"three systems of {N} variables, {N_TARGETS} random targets of up to {LARGEST_TARGET} variables each",
    )


def _growing_trial(rng: np.random.Generator) -> Trial:
    return stacked(_regions_of(draw_system(kind, rng), rng) for kind in KINDS)


def _regions_of(model: System, rng: np.random.Generator) -> Trial:
    table = _table_of(model)
    return _growing_of(table, rng) | _named_of(model, table)


def _growing_of(table: np.ndarray, rng: np.random.Generator) -> Trial:
    """Mean variances by the number of variables added to random targets, with the largest rises."""
    targets = [tuple(sorted(_few(rng))) for _ in range(N_TARGETS)]
    grown, plain = np.zeros((N_TARGETS, N + 1)), np.zeros(N_TARGETS)
    for place, target in enumerate(targets):
        plain[place], *found = variances(table, _product(target), [(), *_growing_chain(target, rng)])
        grown[place, : len(found)] = found
    rise = np.diff(grown, axis=1).max()
    return {"grown": grown.mean(axis=0), "rise": rise, "over plain": (grown[:, 0] - plain).max()}


def _few(rng: np.random.Generator) -> list[int]:
    return rng.choice(N, rng.integers(1, LARGEST_TARGET + 1), replace=False).tolist()


def _growing_chain(target: Target, rng: np.random.Generator) -> list[Region]:
    """Return the target, and then one more variable at a time until the region is everything."""
    others = rng.permutation([i for i in range(N) if i not in target]).tolist()
    return [tuple(sorted((*target, *others[:count]))) for count in range(len(others) + 1)]


def _named_of(model: System, table: np.ndarray) -> Trial:
    """Mean variances of the statistics by region with a name, with the largest rises."""
    family, targets = model.family, model.family.scopes
    strengths = edge_strengths(family, family.factors(model.theta))
    chosen = [rule.regions(family.graph, targets, strengths) for rule in RULES.values()]
    found = np.array([variances(table, _product(t), own) for t, *own in zip(targets, *chosen, strict=True)])
    rise = np.diff(found[:, :3], axis=1).max()
    return {"named": found.mean(axis=0), "named rise": rise, "forest over first": (found[:, 3] - found[:, 0]).max()}


@claim("the variance never rises as a region grows", "YU20 section 3", trials=1)
def _grown_never_rises(results: Results) -> Verdict:
    return _in_all_systems(results["rise"], f", {N_TARGETS} targets each")


@claim("any region beats plain Monte Carlo", "YU20 section 3", trials=1)
def _beats_plain(results: Results) -> Verdict:
    return _in_all_systems(results["over plain"], f", {N_TARGETS} targets each, the region being the target or more")


@claim("v of 1-SMCI >= v of s2-SMCI >= v of 2-SMCI", "YU20 section 4.1", trials=1)
def _named_regions_ordered(results: Results) -> Verdict:
    means = _means_in_words(results.mean("named")[:, :3])
    return _in_all_systems(results["named rise"], f", for all statistics; mean M v: {means}")


@claim("forests lie below 1-SMCI", "ours", trials=1, ours=True)
def _forests_below_first(results: Results) -> Verdict:
    means = _means_in_words(results.mean("named")[:, 3:])
    return _in_all_systems(results["forest over first"], f", for all statistics; mean M v of forests: {means}")
