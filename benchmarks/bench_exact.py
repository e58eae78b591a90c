"""Exact inference: times, memory and ratios to a plain NumPy exponential in the same run.

Run with ``python benchmarks/bench_exact.py``. Every time is the best of a few runs after a first one that compiles;
planning an elimination order is timed by itself, because it is done once per graph.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

import gibbsian as gb
from gibbsian.inference import Elimination, Engine, Enumeration
from gibbsian.inference.ordering import plan_elimination


def best_time(run: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def random_model(graph: gb.Graph, scale: float) -> gb.Model:
    rng = np.random.default_rng(0)
    return gb.PairwiseFamily.model(graph, rng.normal(0, scale, graph.n_nodes), rng.normal(0, scale, graph.n_edges))


def random_tree(n_nodes: int) -> gb.Graph:
    parents = (np.random.default_rng(0).random(n_nodes - 1) * np.arange(1, n_nodes)).astype(int)
    return gb.graphs.from_edges(list(zip(parents.tolist(), range(1, n_nodes), strict=True)), n_nodes)


def all_moments(engine: Engine, theta: np.ndarray) -> None:
    answers = engine.at(theta)
    answers.moments  # noqa: B018
    if isinstance(engine, Enumeration):
        answers.second_moments  # noqa: B018


def plan_time(graph: gb.Graph) -> float:
    start = time.perf_counter()
    plan_elimination(graph)
    return time.perf_counter() - start


def main() -> None:
    exponents = -20 * np.random.default_rng(0).random(2**20)
    reference = best_time(lambda: np.exp(exponents), 20)
    print(f"np.exp on 2^20 float64: {1e3 * reference:.2f} ms (= 1 in the column 'ratio')\n")
    print(f"{'log Z and all moments of':34s}{'plan':>10s}{'moments':>12s}{'ratio':>9s}{'predicted':>12s}")
    small = random_model(gb.graphs.grid(3, 3), 1.0)
    all_moments(Elimination(small.family), small.theta)  # compiles
    plan_time(small.family.graph)
    for n in (10, 15, 20, 25):
        model = random_model(gb.graphs.complete(n), 0.3)
        engine = Enumeration(model.family)
        seconds = best_time(lambda engine=engine, theta=model.theta: all_moments(engine, theta))
        report(f"complete {n}, enumeration", 0.0, seconds, reference, engine.cost.seconds)
    for name, graph in {
        "grid 10x10": gb.graphs.grid(10, 10),
        "grid 16x16": gb.graphs.grid(16, 16),
        "chain of 100,000": gb.graphs.grid(1, 100_000),
        "random tree of 100,000": random_tree(100_000),
    }.items():
        model = random_model(graph, 1.0)
        planning = plan_time(graph)
        engine = Elimination(model.family)
        seconds = best_time(lambda engine=engine, theta=model.theta: all_moments(engine, theta))
        report(f"{name}, elimination", planning, seconds, reference, engine.cost.seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory of the whole run, interpreter included: {peak:.0f} MiB")


def report(name: str, planning: float, seconds: float, reference: float, predicted: float) -> None:
    plan = f"{1e3 * planning:.1f} ms" if planning else "-"
    print(f"{name:34s}{plan:>10s}{1e3 * seconds:>9.2f} ms{seconds / reference:>9.2f}{1e3 * predicted:>9.2f} ms")


if __name__ == "__main__":
    main()
