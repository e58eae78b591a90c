"""Most probable states: annealing against exact engines on 1,000 random machines (share found, time a machine), and
spin glasses beyond exact reach against the simulated annealing of dwave-samplers at equal time on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

import gibbsian as gb
from gibbsian.models.variables import VariablesOf
from gibbsian.rng import Key
from gibbsian.sampling.cooling import annealed, cooled_states

N_MACHINES, N_GLASSES, SWEEPS = 1000, 50, 200
BUDGETS = (0.003, 0.01, 0.03, 0.1)
SAME = 1e-9


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"annealing against exact engines, {N_MACHINES} machines in all")
    print(f"  {'':28s}{'machines':>10s}{'found':>9s}{'annealing':>12s}{'exact':>10s}")
    for coding, variables in {"spin": gb.Variables.spins, "binary": gb.Variables.binary}.items():
        for n in (16, 18, 20):
            against_exact(f"complete n = {n}, {coding}", lambda n=n: gb.graphs.complete(n), variables, 100, rng)
        against_exact(f"4x5 grid, {coding}", lambda: gb.graphs.grid(4, 5), variables, 100, rng)
        against_exact(f"12x12 grid, {coding}", lambda: gb.graphs.grid(12, 12), variables, 100, rng)
    sampler = dwave()
    if sampler is None:
        print("\nspin glasses beside dwave-samplers: left out, the package is not installed")
        return
    print(f"\nshare of {N_GLASSES} glasses whose best known state was found, {SWEEPS} sweeps a read, one thread")
    print(f"  {'':20s}" + "".join(f"{f'{budget * 1e3:g} ms':>24s}" for budget in BUDGETS))
    print(f"  {'':20s}" + "".join(f"{'gibbsian':>14s}{'dwave':>10s}" for _ in BUDGETS))
    for n in (60, 200):
        beside(f"complete n = {n}", lambda n=n: gb.graphs.complete(n), sampler, rng)
        beside(f"3-regular n = {n}", lambda n=n: regular(n, rng), sampler, rng)


def glass(graph: gb.Graph, variables: VariablesOf, rng: np.random.Generator) -> gb.Model:
    """A Sherrington-Kirkpatrick glass, or its kin on another graph, with weak biases against ties."""
    couplings = rng.normal(size=graph.n_edges) / np.sqrt(graph.degrees.mean())
    spins = gb.PairwiseFamily.model(graph, 0.1 * rng.normal(size=graph.n_nodes), couplings)
    return spins.family.recode(spins.theta, variables)[0]


def regular(n: int, rng: np.random.Generator) -> gb.Graph:
    return gb.graphs.from_edges(list(nx.random_regular_graph(3, n, seed=int(rng.integers(2**31))).edges), n)


def against_exact(
    name: str, graph: Callable[[], Any], variables: VariablesOf, n_machines: int, rng: np.random.Generator
) -> None:
    found, seconds = 0, np.zeros(2)
    for number in range(n_machines + 1):
        model = glass(graph(), variables, rng)
        begun = time.perf_counter()
        key = Key.of(rng)
        _, log_weight, _ = annealed(lambda *sizes, m=model, key=key: cooled_states(m, *sizes, key), model.log_weights)
        between = time.perf_counter()
        best, _ = gb.inference.exact(model).mode
        if number:  # the first may compile
            seconds += (between - begun, time.perf_counter() - between)
            found += log_weight >= model.log_weights(best[None])[0] - SAME
    times = "".join(f"{1e3 * each / n_machines:8.1f} ms" for each in seconds)
    print(f"  {name:28s}{n_machines:10d}{found / n_machines:9.1%} {times}")


def dwave() -> Any:
    """Return the sampler of dwave-samplers as a function of a model, reads and a seed, or None where it is absent."""
    try:
        from dwave.samplers import SimulatedAnnealingSampler
    except ImportError:
        return None

    def run(model: gb.Model, n_reads: int, seed: int) -> tuple[float, float]:
        fields = dict(enumerate((-model.parts.biases).tolist()))
        edges = map(tuple, model.family.graph.edges.tolist())
        couplings = dict(zip(edges, (-model.parts.couplings).tolist(), strict=True))
        begun = time.perf_counter()  # the model is theirs already
        answer = SimulatedAnnealingSampler().sample_ising(
            fields, couplings, num_reads=n_reads, num_sweeps=SWEEPS, seed=seed
        )
        return float(-answer.record.energy.min()), time.perf_counter() - begun

    return run


def ours(model: gb.Model, n_reads: int, seed: int) -> tuple[float, float]:
    begun = time.perf_counter()
    states = cooled_states(model, n_reads, SWEEPS, Key.of(seed))
    best = float(model.log_weights(states).max())
    return best, time.perf_counter() - begun


def reads_for(run: Any, model: gb.Model, budget: float) -> int:
    """How many reads a budget of seconds has room for, one at least."""
    few, many = (min(run(model, n, 0)[1] for _ in range(3)) for n in (1, 41))
    return max(1, 1 + int((budget - few) / ((many - few) / 40)))


def beside(name: str, graph: Callable[[], Any], sampler: Any, rng: np.random.Generator) -> None:
    models = [glass(graph(), gb.Variables.spins, rng) for _ in range(N_GLASSES)]
    runs, cells = {"gibbsian": ours, "dwave": sampler}, []
    best = np.array([ours(model, 1000, 1)[0] for model in models])
    found: dict[tuple[float, str], np.ndarray] = {}
    for budget in BUDGETS:
        for who, run in runs.items():
            n_reads = reads_for(run, models[0], budget)
            found[budget, who] = np.array([run(model, n_reads, 2)[0] for model in models])
            best = np.maximum(best, found[budget, who])
    for budget in BUDGETS:
        shares = [(found[budget, who] >= best - 1e-6).mean() for who in runs]
        cells.append(f"{shares[0]:14.0%}{shares[1]:10.0%}")
    print(f"  {name:20s}" + "".join(cells))


if __name__ == "__main__":
    main()
