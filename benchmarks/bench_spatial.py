"""Spatial Monte Carlo integration beside `np.tanh` on an array of edges by samples, and its cost as sizes grow."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import gibbsian as gb
from gibbsian.expectations import Samples, plan_regions, spatial_statistics
from gibbsian.models.scopes import Scopes
from timing import asked, best_of, interleaved

TARGETS = {1: 6, "s2": 30}


def main() -> None:
    beside_tanh(side=30, n_samples=1000)
    print()
    dense(n=100, n_samples=1000)
    print()
    third_order(side=20, n_samples=1000)
    print()
    forest_beside_second_order(n_samples=1000)
    print()
    growth()


def beside_tanh(side: int, n_samples: int) -> None:
    """Moments of all variables and edges of a grid, standard errors included."""
    model, samples = grid_and_samples(side, n_samples)
    ratios(f"all moments of a {side}x{side} grid", model, samples, [1, "s2", "forest"])


def dense(n: int, n_samples: int) -> None:
    rng = np.random.default_rng(0)
    graph = gb.graphs.complete(n)
    model = gb.Model(gb.PairwiseFamily(graph), rng.normal(scale=0.05, size=n + graph.n_edges))
    ratios(f"all moments of the complete graph on {n}", model, coin_tosses(n_samples, n, rng), [1, "s2"])


def third_order(side: int, n_samples: int) -> None:
    """Variables, edges and triangles of a grid with one diagonal in each square."""
    rng = np.random.default_rng(0)
    node = np.arange(side * side).reshape(side, side)
    corners = [part.ravel() for part in (node[:-1, :-1], node[:-1, 1:], node[1:, :-1], node[1:, 1:])]
    triangles = [np.column_stack([corners[0], corners[k], corners[3]]) for k in (1, 2)]
    cliques = np.concatenate(triangles)
    sets = [node.ravel()[:, None], *(cliques[:, pair] for pair in ([0, 1], [0, 2], [1, 2])), cliques]
    family = gb.ProductsFamily(Scopes.sorted([tuple(each) for part in sets for each in part.tolist()], side * side))
    model = gb.Model(family, rng.normal(scale=0.3, size=family.n_parameters))
    ratios(
        f"third order on a {side}x{side} triangular grid", model, coin_tosses(n_samples, side * side, rng), [1, "s2"]
    )


def ratios(title: str, model: Any, samples: Samples, regions: list) -> None:
    array = np.random.default_rng(0).normal(size=(model.theta.size - model.n_variables, samples.n_samples))
    results = np.empty_like(array)
    runs = {"tanh": lambda: np.tanh(array, out=results)}
    for region in regions:
        plan = plan_regions(model, region)
        runs[region] = lambda plan=plan: spatial_statistics(model, samples, plan=plan.renewed(model))
    best = interleaved(runs)
    print(f"{title}, {samples.n_samples} samples")
    print(f"  {'np.tanh, edges by samples':28s}{best['tanh'] * 1e3:9.1f} ms")
    for region in regions:
        limited = isinstance(model.family, gb.PairwiseFamily) and region in TARGETS
        ratio = best[region] / best["tanh"]
        words = asked(f"{name(region)}, {title}", ratio, TARGETS[region], 1) if limited else f"ratio {ratio:.1f}"
        print(f"  {name(region):28s}{best[region] * 1e3:9.1f} ms   {words}")


def forest_beside_second_order(n_samples: int) -> None:
    """YU20 figure 5a: forest regions are more accurate than 2-SMCI there; this is what each costs."""
    rng = np.random.default_rng(0)
    graph = gb.graphs.grid(4, 5)
    model = gb.Model(gb.PairwiseFamily(graph), rng.uniform(-0.3, 0.3, size=20 + graph.n_edges))
    samples = coin_tosses(n_samples, 20, rng)
    plans = {region: plan_regions(model, region) for region in ("forest", 2)}
    best = interleaved({r: lambda p=plan: spatial_statistics(model, samples, plan=p) for r, plan in plans.items()})
    print(f"4x5 grid, {n_samples} samples")
    for region, seconds in best.items():
        print(f"  {name(region):28s}{seconds * 1e3:9.1f} ms   ratio {seconds / best[2]:.2f}")


def growth() -> None:
    """Nanoseconds for each edge and sample: constant where the cost is linear."""
    print("cost as sizes grow, ns for each edge and sample")
    for side, n_samples in ((30, 100), (30, 1000), (100, 1000), (300, 1000)):
        model, samples = grid_and_samples(side, n_samples)
        costs = []
        for region in (1, "s2"):
            run = partial(spatial_statistics, model, samples, plan=plan_regions(model, region))
            seconds = best_of(run, repeats=3)
            costs.append(f"{name(region)} {seconds * 1e9 / (model.family.graph.n_edges * n_samples):6.1f}")
        print(f"  {f'{side}x{side} grid, {n_samples} samples':28s}{'   '.join(costs)}")


def name(region) -> str:
    return f"{region}-SMCI"


def grid_and_samples(side: int, n_samples: int) -> tuple[gb.Model, Samples]:
    rng = np.random.default_rng(0)
    graph = gb.graphs.grid(side, side)
    model = gb.Model(gb.PairwiseFamily(graph), rng.normal(scale=0.3, size=graph.n_nodes + graph.n_edges))
    return model, coin_tosses(n_samples, graph.n_nodes, rng)


def coin_tosses(n_samples: int, n: int, rng: np.random.Generator) -> Samples:
    return Samples(rng.integers(0, 2, size=(n_samples, n), dtype=np.int8))


if __name__ == "__main__":
    main()
