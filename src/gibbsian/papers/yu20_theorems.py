"""YU20 theorems 1 and 2: the variance of spatial Monte Carlo integration falls as the region grows.

The systems are small enough for a table of all probabilities, from which variances follow exactly (eq. 12); sums over
a region are sums over axes of that table. Estimates from drawn samples then show the same variances.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.expectations import ForestAround, IndependentNeighbours, Neighbourhood
from gibbsian.expectations.regions import Region, Target
from gibbsian.graphs import grid, random
from gibbsian.models.higher_order import HigherOrderModel
from gibbsian.models.pairwise import PairwiseModel
from gibbsian.papers.drawing import curve, legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.yu20 import LARGEST_BIAS, LARGEST_COUPLING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N = 12
KINDS = ("3x4 grid", "random graph, p = 0.4", "triples")
ORDERS = (0, 1, 2, 3, 4)
# sets of N_SAMPLES samples whose estimates give the measured variances
N_SAMPLES, N_SETS = 10, 400
# targets of theorem 2 in each system, and how many variables each has at most
N_TARGETS, LARGEST_TARGET = 10, 3
NAMES = ("1-SMCI", "s2-SMCI", "2-SMCI", "forest")
# rounding in sums of 4096 numbers of the size of one
ROUNDING = 1e-13

System = PairwiseModel | HigherOrderModel


def draw_system(kind: str, rng: np.random.Generator) -> System:
    """Draw a small machine: pairs on a grid or a random graph, or all biases and 12 triples.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.yu20_theorems import draw_system
    >>> draw_system("triples", np.random.default_rng(0)).order
    3
    """
    biases = rng.uniform(-LARGEST_BIAS, LARGEST_BIAS, N)
    if kind == "triples":
        chosen = {tuple(sorted(rng.choice(N, 3, replace=False).tolist())) for _ in range(N)}
        cliques = [(i,) for i in range(N)] + sorted(chosen)
        strengths = rng.uniform(-2 * LARGEST_COUPLING, 2 * LARGEST_COUPLING, len(chosen))
        return HigherOrderModel.build(dict(zip(cliques, [*biases, *strengths], strict=True)), N)
    graph = grid(3, 4) if kind == "3x4 grid" else random(N, 0.4, random_state=rng)
    return PairwiseModel.build(graph, biases, rng.uniform(-LARGEST_COUPLING, LARGEST_COUPLING, graph.n_edges))


def all_states() -> np.ndarray:
    """List the states of N spins, variable 0 changing slowest, as the axes of a table do.

    Examples
    --------
    >>> from gibbsian.papers.yu20_theorems import all_states
    >>> all_states()[1, -2:].tolist()
    [-1, 1]
    """
    return (2 * ((np.arange(2**N)[:, None] >> np.arange(N - 1, -1, -1)) & 1) - 1).astype(np.int8)


def conditional_means(table: np.ndarray, values: np.ndarray, region: Region) -> np.ndarray:
    """Return E[f | x outside the region] at every state (YU20 eq. 13), from tables over all states.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.yu20_theorems import conditional_means
    >>> table, spin = np.full((2, 2), 0.25), np.array([[-1.0, -1.0], [1.0, 1.0]])
    >>> conditional_means(table, spin, (0,)).tolist(), conditional_means(table, spin, ()).tolist()
    ([[0.0, 0.0], [0.0, 0.0]], [[-1.0, -1.0], [1.0, 1.0]])
    """
    weights = table.sum(axis=region, keepdims=True)
    return np.broadcast_to((table * values).sum(axis=region, keepdims=True) / weights, table.shape)


def variances(table: np.ndarray, values: np.ndarray, regions: Iterable[Region]) -> np.ndarray:
    """Return M times the variance of the estimate of E[f] for each region (YU20 eq. 12).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.yu20_theorems import variances
    >>> table, spin = np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([[-1.0, -1.0], [1.0, 1.0]])
    >>> variances(table, spin, [(), (0,), (0, 1)]).round(2)
    array([1.  , 0.36, 0.  ])
    """
    truth = float((table * values).sum())
    return np.array([float((table * (conditional_means(table, values, r) - truth) ** 2).sum()) for r in regions])


def _law_of(model: System) -> np.ndarray:
    log_weights = model.log_weights(all_states())
    law = np.exp(log_weights - log_weights.max())
    return (law / law.sum()).reshape((2,) * N)


def _product(states: np.ndarray, target: Sequence[int]) -> np.ndarray:
    return np.prod(states[:, list(target)], axis=1, dtype=np.float64).reshape((2,) * N)


# -- theorem 1 --------------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("yu20-theorem1")
def theorem_1() -> Experiment:
    """Return YU20 theorem 1: v >= v(1) >= v(2) >= ... >= 0 for the orders of SMCI.

    Examples
    --------
    >>> from gibbsian.papers.yu20_theorems import theorem_1
    >>> theorem_1().item
    'Theorem 1'
    """
    source = "YU20 section 2.4"
    claims = (
        Claim("the variance never rises with the order k", source, _never_rises, trials=1),
        Claim("nor, in the mean over targets, does the measured one", source, _measured_falls, trials=2),
        Claim("measured variances are the exact ones", source, _measured_as_exact, trials=4),
    )
    title = "variance of k-SMCI by order; k = 0 is plain Monte Carlo"
    scale = f"three systems of {N} variables, every statistic, {N_SETS} sets of {N_SAMPLES} samples"
    return Experiment("YU20", "Theorem 1", title, _orders_trial, _orders_tables, _draw_orders, claims, scale=scale)


def _orders_trial(rng: np.random.Generator) -> Trial:
    found = [_orders_of(draw_system(kind, rng), rng) for kind in KINDS]
    exact, measured, rises = (np.array(part) for part in zip(*found, strict=True))
    return {"exact": exact, "measured": measured, "rise": rises}


def _orders_of(model: System, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Exact and measured variances by order, averaged over targets, and the largest rise from one order to the next."""
    states, table = all_states(), _law_of(model)
    targets = model.products
    drawn = rng.choice(table.size, (N_SETS, N_SAMPLES), p=table.ravel())
    regions = [Neighbourhood(k).regions(model.graph, targets, None) for k in ORDERS]
    exact, measured = np.empty((len(targets), len(ORDERS))), np.empty((len(targets), len(ORDERS)))
    for place, target in enumerate(targets):
        values = _product(states, target)
        own = [chosen[place] for chosen in regions]
        exact[place] = variances(table, values, own)
        for k, region in enumerate(own):
            estimates = conditional_means(table, values, region).ravel()[drawn].mean(axis=1)
            measured[place, k] = N_SAMPLES * estimates.var(ddof=1)
    return exact.mean(axis=0), measured.mean(axis=0), float(np.diff(exact, axis=1).max())


def _orders_tables(results: Results) -> list[Table]:
    import pandas as pd

    rows = []
    for place, kind in enumerate(KINDS):
        for k in ORDERS:
            row: dict[str, object] = {"system": kind, "k": k}
            for name in ("exact", "measured"):
                row[f"M v ({name})"] = results.mean(name)[place, k]
                row[f"M v ({name}) stderr"] = results.stderr(name)[place, k]
            rows.append(row)
    return [Table("variance of one sample's estimate, mean over statistics and systems", pd.DataFrame(rows))]


def _draw_orders(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    for place, kind in enumerate(KINDS):
        shown = results.mean("exact")[place] > ROUNDING
        curve(axes, np.array(ORDERS)[shown], results.mean("exact")[place][shown], None, kind)
    log_axes(axes, "order k", "M v", log_x=False)
    legend(axes)


def _never_rises(results: Results) -> Verdict:
    means = results.mean("exact")
    falls = "; ".join(f"{kind}: {_told_row(means[place])}" for place, kind in enumerate(KINDS))
    return _holds_in_all(results["rise"], f"for all targets; mean M v: {falls}")


def _holds_in_all(values: np.ndarray, numbers: str) -> Verdict:
    count = int((values <= ROUNDING).sum())
    return Verdict(count == values.size, f"in {count} of {values.size} systems, {numbers}")


def _told_row(values: np.ndarray) -> str:
    return ", ".join(f"{value:.2g}" if value > ROUNDING else "0" for value in values)


def _measured_falls(results: Results) -> Verdict:
    rises = np.diff(results["measured"], axis=-1).max(axis=-1)
    return Verdict(bool((rises <= ROUNDING).all()), f"in {int((rises <= ROUNDING).sum())} of {rises.size} systems")


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
    """Return YU20 theorem 2: of two nested regions around any target the larger has the smaller variance.

    Examples
    --------
    >>> from gibbsian.papers.yu20_theorems import theorem_2
    >>> theorem_2().item
    'Theorem 2'
    """
    source = "YU20 section 3"
    claims = (
        Claim("the variance never rises as a region grows", source, _grown_never_rises, trials=1),
        Claim("any region beats plain Monte Carlo", source, _beats_plain, trials=1),
        Claim("v of 1-SMCI >= v of s2-SMCI >= v of 2-SMCI", "YU20 section 4.1", _named_regions_ordered, trials=1),
        Claim("forests lie below 1-SMCI", "ours", _forests_below_first, trials=1, ours=True),
    )
    title = "variance of GSMCI as variables are added to the region at random"
    scale = f"three systems of {N} variables, {N_TARGETS} random targets of up to {LARGEST_TARGET} variables each"
    return Experiment("YU20", "Theorem 2", title, _growing_trial, _growing_tables, _draw_growing, claims, scale=scale)


def _growing_trial(rng: np.random.Generator) -> Trial:
    found = [_growing_of(draw_system(kind, rng), rng) for kind in KINDS]
    names = ("grown", "rise", "over plain", "named", "named rise", "forest over first")
    return {name: np.array(part) for name, part in zip(names, zip(*found, strict=True), strict=True)}


def _growing_of(model: System, rng: np.random.Generator) -> tuple[np.ndarray, float, float, np.ndarray, float, float]:
    """Mean variances by the number of added variables and by named region, with the largest rises among each."""
    states, table = all_states(), _law_of(model)
    grown, plain, named, forests = [], [], [], []
    targets = [tuple(sorted(_few(rng))) for _ in range(N_TARGETS)]
    for target in targets:
        values = _product(states, target)
        chain = _growing_chain(target, rng)
        found = variances(table, values, chain)
        grown.append(np.concatenate([found, np.zeros(N + 1 - len(found))]))
        plain.append(variances(table, values, [()])[0])
    strengths = model.edge_strengths
    rules = (Neighbourhood(1), IndependentNeighbours(), Neighbourhood(2), ForestAround())
    own = model.products
    chosen = [rule.regions(model.graph, own, strengths) for rule in rules]
    for place, target in enumerate(own):
        first, semi, second, forest = variances(table, _product(states, target), [part[place] for part in chosen])
        named.append((first, semi, second))
        forests.append((first, forest))
    by_size, by_name, pairs = np.array(grown), np.array(named), np.array(forests)
    return (
        by_size.mean(axis=0),
        float(np.diff(by_size, axis=1).max()),
        float((by_size[:, 0] - np.array(plain)).max()),
        np.array([*by_name.mean(axis=0), pairs[:, 1].mean()]),
        float(np.diff(by_name, axis=1).max()),
        float((pairs[:, 1] - pairs[:, 0]).max()),
    )


def _few(rng: np.random.Generator) -> list[int]:
    return rng.choice(N, rng.integers(1, LARGEST_TARGET + 1), replace=False).tolist()


def _growing_chain(target: Target, rng: np.random.Generator) -> list[Region]:
    """The target, and then one more variable at a time until the region is everything."""
    others = rng.permutation([i for i in range(N) if i not in target]).tolist()
    return [tuple(sorted((*target, *others[:count]))) for count in range(len(others) + 1)]


def _growing_tables(results: Results) -> list[Table]:
    import pandas as pd

    sizes: dict[str, object] = {"added variables": list(range(N + 1))}
    for place, kind in enumerate(KINDS):
        sizes[kind], sizes[f"{kind} stderr"] = results.mean("grown")[place], results.stderr("grown")[place]
    rows: dict[str, object] = {"region": list(NAMES)}
    for place, kind in enumerate(KINDS):
        rows[kind], rows[f"{kind} stderr"] = results.mean("named")[place], results.stderr("named")[place]
    return [
        Table("M v as a region grows, mean over targets and systems", pd.DataFrame(sizes)),
        Table("M v of the regions with names, mean over statistics", pd.DataFrame(rows), "forest is ours"),
    ]


def _draw_growing(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    for place, kind in enumerate(KINDS):
        mean = results.mean("grown")[place]
        shown = mean > ROUNDING
        curve(axes, np.arange(N + 1)[shown], mean[shown], results.stderr("grown")[place][shown], kind)
    log_axes(axes, "variables added to the target", "M v", log_x=False)
    legend(axes)


def _grown_never_rises(results: Results) -> Verdict:
    return _holds_in_all(results["rise"], f"{N_TARGETS} targets each")


def _beats_plain(results: Results) -> Verdict:
    return _holds_in_all(results["over plain"], f"{N_TARGETS} targets each, the region being the target or more")


def _named_regions_ordered(results: Results) -> Verdict:
    means = results.mean("named")
    falls = "; ".join(f"{kind}: {_told_row(means[place, :3])}" for place, kind in enumerate(KINDS))
    return _holds_in_all(results["named rise"], f"for all statistics; mean M v: {falls}")


def _forests_below_first(results: Results) -> Verdict:
    means = results.mean("named")
    falls = "; ".join(f"{kind}: {_told_row(means[place, 3:])}" for place, kind in enumerate(KINDS))
    return _holds_in_all(results["forest over first"], f"for all statistics; mean M v of forests: {falls}")
