"""What a second thread gains, beside what a second process gains that shares nothing: ``run.py threads``.

Two processes at once are the limit: what they lose against one they lose to the machine (shared caches, memory and
clock), and no way of sharing one piece of work out can do better. Works under ten milliseconds are not asked for 1.7.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

import gibbsian as gb
from bench_full_span import noisy_network
from bench_gibbs import random_model
from gibbsian.backends.parallel import limited_threads
from gibbsian.inference import exact
from gibbsian.learning.bound_mixtures import bound
from gibbsian.models import KMeansFamily
from peer_works import correlated
from timing import asked, interleaved

# Two threads take at most this share of one thread's time: 1.7 times as fast.
MOST = 1 / 1.7
REPEATS = 7
# Made once: to look for libraries takes a millisecond, which no thread shortens.
BLAS = ThreadpoolController()


def loss(name: str, n: int, n_rows: int) -> Callable[[], object]:
    data = gb.Dataset.read(2 * correlated(n_rows, n) - 1)
    model = random_model(gb.graphs.complete(n), 0.5 / n, np.random.default_rng(0))
    function = gb.learning.objectives.OBJECTIVES.create(name).bind(model, data)
    return lambda: function(model.theta)


def gibbs(graph: gb.Graph, scale: float, n_chains: int, n_sweeps: int, name: str = "gibbs") -> Callable[[], object]:
    model = random_model(graph, scale, np.random.default_rng(0))
    kernel = gb.sampling.kernel_for(model.family, name)
    chains, _ = kernel.step(model.theta, kernel.init(n_chains, gb.rng.Key.of(1)), 10)
    return lambda: kernel.step(model.theta, chains, n_sweeps)


def enumeration() -> Callable[[], object]:
    model = random_model(gb.graphs.complete(22), 0.1, np.random.default_rng(0))
    return lambda: exact(model).moments


def greedy() -> Callable[[], object]:
    rows = noisy_network(22, 2000)
    return lambda: gb.FullSpan(learner="span-greedy", max_iter=10).fit(rows)


def k_means(whole: bool) -> Callable[[], object]:
    rows = np.random.default_rng(0).normal(size=(200_000, 50))
    data = gb.Dataset.read(rows, coding="real")
    if whole:
        return lambda: gb.HardKMeans(20, start=rows[:20], max_iter=5, tol=0.0).fit(data)
    steps = bound(KMeansFamily(20, 50), data, hard=True)
    return partial(steps.e_step, steps.from_means(rows[:20]))


WORKS: dict[str, Callable[[], Callable[[], object]]] = {
    "pseudolikelihood, n = 500, 20,000 rows": partial(loss, "pseudolikelihood", 500, 20_000),
    "ratio matching, the same": partial(loss, "ratio-matching", 500, 20_000),
    "probability flow, the same": partial(loss, "probability-flow", 500, 20_000),
    "exact moments, 22 variables": enumeration,
    "Gibbs, 256x256 lattice, 64 chains": partial(gibbs, gb.graphs.grid(256, 256), 0.5, 64, 20),
    "Gibbs, 1024x1024 lattice, 1 chain": partial(gibbs, gb.graphs.grid(1024, 1024), 0.5, 1, 20, "chromatic"),
    "Gibbs, dense n = 100, 1,000 chains": partial(gibbs, gb.graphs.complete(100), 0.1, 1000, 50),
    "Gibbs, dense n = 1,000, 128 chains": partial(gibbs, gb.graphs.complete(1000), 0.03, 128, 5),
    "full-span greedy, 2^22 states, 10 steps": greedy,
    "k-means, 200,000 x 50, k = 20, a step": partial(k_means, False),
    "the same, a fit of 5 steps": partial(k_means, True),
}


def on_threads(work: Callable[[], object], n: int) -> None:
    with limited_threads(n), BLAS.limit(limits=n), warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.errors.ConvergenceWarning)  # few steps are all that is wanted
        work()


def beside(name: str, ready: Any, seconds: Any) -> None:
    """Run a work in a process of its own, at the same time as another, and send the best seconds."""
    work = WORKS[name]()
    on_threads(work, 1)
    times = []
    for _ in range(REPEATS):
        ready.wait()
        start = time.perf_counter()
        on_threads(work, 1)
        times.append(time.perf_counter() - start)
    seconds.put(min(times))


def two_processes(name: str) -> float:
    """Best seconds of one of two processes that do the same work at once."""
    context = multiprocessing.get_context("spawn")
    ready, seconds = context.Barrier(2), context.Queue()
    both = [context.Process(target=beside, args=(name, ready, seconds)) for _ in range(2)]
    for process in both:
        process.start()
    slower = max(seconds.get() for _ in both)
    for process in both:
        process.join()
    return slower


def main() -> None:
    print("Two threads beside one, and beside two processes that do the same work each")
    for name, make in WORKS.items():
        work = make()
        wall = interleaved({"one": partial(on_threads, work, 1), "two": partial(on_threads, work, 2)}, REPEATS)
        limit = 2.0 * wall["one"] / two_processes(name)
        ratio = wall["two"] / wall["one"]
        words = asked(f"{name}, two threads", ratio, MOST) if wall["one"] > 0.01 else f"ratio {ratio:.2f}"
        print(f"  {name:42s}{1e3 * wall['one']:8.1f} ms, {1 / ratio:.2f} times as fast on two threads, "
              f"{limit:.2f} in two processes; {words}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
