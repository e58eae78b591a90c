"""Monte Carlo likelihood against exact likelihood, and the moments of large machines beside persistent chains.

    python benchmarks/bench_mcmle.py complete20 --runs 30     # also grid4x5, grid16x16; --jobs 14 --first 1000
    python benchmarks/bench_mcmle.py simulated100             # n = 100, N = 20,000: moments, time, pcd at equal time
    python benchmarks/bench_mcmle.py spikes.npz               # the same of a table of spikes, the array `x` of a file

A run lands within its stated error when the distance to the exact maximum, in the information's metric, is below the
95% quantile of what the Monte Carlo error of its equations makes it. Seconds are the processor's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

import gibbsian as gb

SYSTEMS = {
    "complete20": (gb.graphs.complete(20), 0.5 / 20**0.5, 2000),
    "grid4x5": (gb.graphs.grid(4, 5), 0.3, 2000),
    "grid16x16": (gb.graphs.grid(16, 16), 0.3, 1000),
}


def machine_of(graph: gb.graphs.Graph, spread: float, rng: np.random.Generator) -> gb.Model:
    """Return a machine with random biases and couplings."""
    return gb.PairwiseFamily.model(graph, rng.normal(0, 0.2, graph.n_nodes), rng.normal(0, spread, graph.n_edges))


def rows_of(model: gb.Model, n_rows: int, seed: int) -> gb.Dataset:
    """Draw rows from a machine."""
    draws = gb.sampling.draw(model, n_rows, seed, n_chains=200, burn_in=1000, thin=20)
    return gb.Dataset.of_states(draws.reshape(-1, model.n_variables)[:n_rows], "spin")


class Landed(NamedTuple):
    """Whether a run is within its stated error, the share of parameters that are, distance, seconds, and its end."""

    inside: bool
    covered: float
    distance: float
    seconds: float
    reason: str


def one_run(name: str, seed: int) -> Landed:
    """Fit both ways to rows of a new machine."""
    graph, spread, n_rows = SYSTEMS[name]
    data = rows_of(machine_of(graph, spread, np.random.default_rng(seed)), n_rows, seed)
    exact = gb.BoltzmannMachine(graph=graph, learner=gb.learning.MLE(max_seconds=60.0)).fit(data)
    began = time.process_time()
    sampled = gb.BoltzmannMachine(graph=graph, learner="mcmle", random_state=seed).fit(data)
    seconds = time.process_time() - began
    equations = gb.learning.as_learner("mcmle").equations(sampled.model_, data)
    moves = np.linalg.solve(equations.jacobian, equations.noise.T)
    away = sampled.model_.theta - exact.model_.theta
    square = away @ equations.jacobian @ away
    shares = np.linalg.eigvalsh(equations.noise @ moves)
    chances = np.random.default_rng(0).chisquare(1, (20_000, shares.size)) @ np.maximum(shares, 0.0)
    covered = np.mean(np.abs(away) <= 1.96 * np.sqrt(np.square(moves).sum(axis=1)))
    distance = np.sqrt(n_rows * square / away.size)
    return Landed(square <= np.quantile(chances, 0.95), covered, distance, seconds, sampled.result_.reason)


def against_exact(name: str, runs: int, first: int, jobs: int) -> None:
    """Fit both ways, again and again, with seeds from the first on."""
    with ProcessPoolExecutor(jobs) as pool:
        found = []
        for seed, landed in enumerate(pool.map(one_run, [name] * runs, range(first, first + runs)), first):
            print(f"  {seed}: {landed.reason}, distance {landed.distance:.3f}, {landed.seconds:.1f} s", flush=True)
            found.append(landed)
    inside, covered, sizes, seconds, _ = zip(*found, strict=True)
    print(
        f"{name}, N = {SYSTEMS[name][2]}: {sum(inside)} of {runs} runs within the stated error; parameters within 1.96 "
        f"Monte Carlo errors {np.mean(covered):.3f}; distance {np.mean(sizes):.3f} of the data's error; "
        f"{np.mean(seconds):.1f} s a fit"
    )


def moments(name: str, data: gb.Dataset) -> None:
    """Fit by Monte Carlo likelihood, by pcd in about the same time, and by pseudolikelihood; compare the moments."""
    began = time.process_time()
    machine = gb.BoltzmannMachine(learner="mcmle", random_state=0).fit(data)
    seconds = time.process_time() - began
    tell(name, "mcmle", machine, data, seconds)
    began, steps = time.process_time(), 50
    gb.BoltzmannMachine(learner="pcd", random_state=0, max_iter=steps).fit(data)
    steps = max(int(steps * seconds / (time.process_time() - began)), 1)
    for learner, how in (("pcd", gb.learning.PCD(min_iter=steps)), ("mple", "mple")):
        began = time.process_time()
        machine = gb.BoltzmannMachine(learner=how, random_state=0, max_iter=steps).fit(data)
        tell(name, learner, machine, data, time.process_time() - began)


def tell(name: str, learner: str, machine: gb.BoltzmannMachine, data: gb.Dataset, seconds: float) -> None:
    """Print how far the moments of a machine, by two million draws, are from those of the data."""
    model = machine.model_
    draws = gb.sampling.draw(model, 2_000_000, 1, n_chains=1000, burn_in=500, thin=3)
    found = model.family.mean_statistics(draws.reshape(-1, model.n_variables))
    wanted, (low, high) = model.family.mean_statistics(data.states, data.weights), model.family.statistic_range
    far = (found - wanted) / np.sqrt((high - wanted) * (wanted - low) / data.total_weight)
    print(
        f"{name}, {learner}: {seconds:.1f} s, {machine.result_.n_steps} steps; moments off by {np.abs(far).max():.2f} "
        f"standard errors at most, {np.sqrt(np.mean(far**2)):.2f} in the root mean square; {machine.result_.reason}",
        flush=True,
    )


def main(given: Sequence[str] = ("grid4x5", "--runs", "5")) -> None:
    """Run what was asked for; with `make bench` a short one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", help=f"{', '.join(SYSTEMS)}, simulated100, or a file with an array x")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first run")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args(given)
    if asked.system in SYSTEMS:
        against_exact(asked.system, asked.runs, asked.first, asked.jobs)
    elif asked.system == "simulated100":
        model = machine_of(gb.graphs.complete(100), 0.08, np.random.default_rng(0))
        moments(asked.system, rows_of(model, 20_000, 1))
    else:
        moments(asked.system, gb.Dataset.read(np.load(asked.system)["x"]))


if __name__ == "__main__":
    main(sys.argv[1:])
