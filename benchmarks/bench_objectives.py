"""Objectives on conditionals beside what they cannot do without, all as ratios within one run.

Dense: two BLAS products for an evaluation. Sparse: one transcendental function of every cell, `np.tanh`.
"""

from __future__ import annotations

import numpy as np

import gibbsian as gb
from gibbsian.learning import Descend, run
from gibbsian.learning.objectives import OBJECTIVES, ConditionalsObjective, Pseudolikelihood
from gibbsian.models.conditionals import WeightedRows
from timing import asked, interleaved

DENSE_TARGETS = {"pseudolikelihood": 1.4, "ratio-matching": 1.6, "probability-flow": 1.6}
SPARSE_TARGET = 2.0
FIT_TARGET = 120


def main() -> None:
    dense_evaluations(n=500, n_rows=20_000)
    print()
    sparse_evaluation(side=100, n_rows=10_000)
    print()
    dense_fit(n=100, n_rows=20_000)
    print()
    around_the_kernels(n=500, n_rows=20_000, side=300)
    print()
    small_fits(side=4, n_rows=2_000)


def dense_evaluations(n: int, n_rows: int) -> None:
    """Every registered objective that sees the model through its conditionals alone."""
    rng = np.random.default_rng(0)
    data = gb.Dataset.read(coin_tosses(n_rows, n, rng))
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(n)))
    theta = rng.normal(scale=0.05, size=model.theta.size)
    objectives = {name: OBJECTIVES.create(name) for name in OBJECTIVES}
    functions = {name: o.bind(model, data) for name, o in objectives.items() if isinstance(o, ConditionalsObjective)}
    runs = {name: lambda function=function: function(theta) for name, function in functions.items()}
    best = interleaved({"products": two_products(model.replace(theta), data), **runs})
    print(f"value and gradient, dense n = {n}, N = {n_rows:,}")
    print(f"  {'two BLAS products':24s}{best['products'] * 1e3:8.1f} ms")
    for name in functions:
        ratio, target = best[name] / best["products"], DENSE_TARGETS.get(name)
        words = f"ratio {ratio:.2f}" if target is None else asked(f"{name}, dense", ratio, target)
        print(f"  {name:24s}{best[name] * 1e3:8.1f} ms   {words}")


def sparse_evaluation(side: int, n_rows: int) -> None:
    """Pseudolikelihood on a grid: through local states, counted once, and through the rows, as a minibatch goes.

    `np.tanh` takes as many cells in pieces of a million, into memory that is reused.
    """
    rng = np.random.default_rng(0)
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(side, side)))
    data = gb.Dataset.read(coin_tosses(n_rows, model.n_variables, rng))
    theta = rng.normal(scale=0.3, size=model.theta.size)
    function = Pseudolikelihood().bind(model, data)
    by_rows = model.family.conditionals(WeightedRows.of(data.states, data.weights, by_row=True))
    piece = rng.normal(size=10**6)
    results = np.empty_like(piece)

    def tanh() -> None:
        for _ in range(data.states.size // piece.size):
            np.tanh(piece, out=results)

    runs = {
        "np.tanh of every cell": tanh,
        "evaluation": lambda: function(theta),
        "counting, once in a fit": lambda: Pseudolikelihood().bind(model, data),
        "evaluation over rows": lambda: by_rows.evaluate(theta, Pseudolikelihood.loss),
    }
    best = interleaved(runs, repeats=5)
    print(f"pseudolikelihood, value and gradient, {side}x{side} grid, N = {n_rows:,}")
    for name, seconds in best.items():
        ratio = seconds / best["np.tanh of every cell"]
        evaluation = name.startswith("evaluation")
        words = asked(f"{name}, sparse", ratio, SPARSE_TARGET) if evaluation else f"ratio {ratio:.2f}"
        print(f"  {name:24s}{seconds * 1e3:8.1f} ms   {words}")


def dense_fit(n: int, n_rows: int) -> None:
    """Pseudolikelihood to a gradient of 1e-5, from zero, on correlated data."""
    rng = np.random.default_rng(0)
    data = gb.Dataset.read(correlated(n_rows, n, rng))
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(n)))
    learner = Descend(Pseudolikelihood())
    steps = []

    def fit() -> None:
        result = run(learner, model, data, rng, tol=1e-5)
        assert result.converged, result.reason
        steps.append(int(result.trace.column("evaluations")[-1]))

    best = interleaved({"products": two_products(model, data), "fit": fit}, repeats=5)
    ratio = best["fit"] / best["products"]
    print(f"pseudolikelihood to gradient 1e-5, dense n = {n}, N = {n_rows:,}")
    print(f"  {'two BLAS products':24s}{best['products'] * 1e3:8.1f} ms")
    words = asked(f"fit of pseudolikelihood, n = {n}", ratio, FIT_TARGET, 0)
    print(f"  {f'fit, {steps[-1]} evaluations':24s}{best['fit'] * 1e3:8.1f} ms   {words}")


def around_the_kernels(n: int, n_rows: int, side: int) -> None:
    """Reading and checks: all triangles of columns of a dense graph, and a lattice as wide as an image."""
    rng = np.random.default_rng(0)
    data, dense = gb.Dataset.read(coin_tosses(n_rows, n, rng)), gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(n)))
    rows = coin_tosses(100, side**2, rng)
    wide, lattice = gb.Dataset.read(rows), gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(side, side)))
    best = interleaved(
        {
            f"preflight, dense n = {n}, N = {n_rows:,}": lambda: gb.data.preflight(data, dense),
            f"graphs.grid({side}, {side})": lambda: gb.graphs.grid(side, side),
            f"reading 100 rows of {side}x{side}": lambda: gb.Dataset.read(rows),
            "preflight of them on the grid": lambda: gb.data.preflight(wide, lattice, l2=0.01),
        }
    )
    for name, seconds in best.items():
        print(f"{name:42s}{seconds * 1e3:8.1f} ms")


def small_fits(side: int, n_rows: int) -> None:
    """Whole fits of a small lattice from an array, of which a simulation study makes thousands."""
    rows, graph = correlated(n_rows, side**2, np.random.default_rng(0)), gb.graphs.grid(side, side)
    names = ("mple", "mpf", "rm", "smci", "mle")
    machines = {name: gb.BoltzmannMachine(graph=graph, learner=name, tol=1e-5) for name in names}
    best = interleaved({name: lambda machine=machine: machine.fit(rows) for name, machine in machines.items()}, 50)
    print(f"whole fits from an array, {side}x{side} grid, N = {n_rows:,}")
    for name, seconds in best.items():
        print(f"  {name:24s}{seconds * 1e3:8.1f} ms, {machines[name].n_iter_} steps")


def two_products(model: gb.Model, data: gb.Dataset):
    """What no dense evaluation can do without: the fields and the sums over rows."""
    floats, matrix = data.states.astype(np.float64), model.family.graph.matrix(model.parts.couplings)
    return lambda: floats.T @ (floats @ matrix)


def coin_tosses(n_rows: int, n: int, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.integers(0, 2, size=(n_rows, n), dtype=np.int8), np.int8(1), np.int8(-1))


def correlated(n_rows: int, n: int, rng: np.random.Generator, n_factors: int = 10) -> np.ndarray:
    """Signs of variables that share a few latent factors, each with a threshold of its own."""
    loadings = rng.normal(scale=0.5 / np.sqrt(n_factors), size=(n_factors, n))
    latent = rng.normal(size=(n_rows, n_factors)) @ loadings + rng.normal(size=(n_rows, n))
    return np.where(latent > rng.normal(scale=0.3, size=n), np.int8(1), np.int8(-1))


if __name__ == "__main__":
    main()
