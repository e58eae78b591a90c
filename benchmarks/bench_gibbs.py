"""Gibbs sampling in million spin updates per second, on one and two threads, beside plain NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

import gibbsian as gb
from gibbsian.samplers import Sampler
from timing import interleaved

SIDE = 256
THREADS = (1, 2)


def main() -> None:
    rng = np.random.default_rng(0)
    print("Gibbs sampling, million spin updates per second")
    print(f"  {'':40s}{'NumPy':>8s}" + "".join(f"{f'{t} thread' + 's' * (t > 1):>12s}" for t in THREADS))
    dense = random_model(gb.graphs.complete(100), 0.1, rng)
    report("dense n = 100, 1000 chains, gibbs", dense, gb.samplers.Gibbs(), 1000, 20, numpy_dense)
    grid = random_model(gb.graphs.grid(SIDE, SIDE), 0.5, rng)
    report(f"{SIDE}x{SIDE} grid, 1 chain, chromatic", grid, gb.samplers.ChromaticGibbs(), 1, 100, numpy_grid)
    report(f"{SIDE}x{SIDE} grid, 64 chains, gibbs", grid, gb.samplers.Gibbs(), 64, 10, numpy_grid)


def random_model(graph: gb.Graph, scale: float, rng: np.random.Generator) -> gb.PairwiseModel:
    return gb.PairwiseModel.build(graph, rng.normal(0, 0.1, graph.n_nodes), rng.normal(0, scale, graph.n_edges))


def report(
    title: str,
    model: gb.PairwiseModel,
    sampler: Sampler,
    n_chains: int,
    n_sweeps: int,
    baseline: Callable[[gb.PairwiseModel, np.ndarray, np.random.Generator], None],
) -> None:
    start = sampler.init(model, n_chains, np.random.default_rng(1))
    state, _ = sampler.step(model, start, 20)  # flips are rarer once the chains have left their random start

    def sweeps(threads: int) -> None:
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        sampler.step(model, state, n_sweeps)

    runs: dict[str, Callable[[], object]] = {"numpy": lambda: baseline(model, state.states, np.random.default_rng(2))}
    runs |= {str(threads): lambda threads=threads: sweeps(threads) for threads in THREADS}
    seconds = interleaved(runs, repeats=5)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    updates = n_chains * model.n_variables / 1e6
    rates = [updates * n_sweeps / seconds[str(threads)] for threads in THREADS]
    print(f"  {title:40s}{updates / seconds['numpy']:8.0f}" + "".join(f"{rate:12.0f}" for rate in rates))


def numpy_dense(model: gb.PairwiseModel, states: np.ndarray, rng: np.random.Generator) -> None:
    """One sweep, all chains at a time: a matrix-vector product gives the fields of one variable in every chain."""
    x = np.ascontiguousarray(states.T, dtype=np.float64)
    logits = rng.logistic(size=x.shape)
    for i, row in enumerate(model.coupling_matrix):
        x[i] = np.where(2.0 * (row @ x + model.biases[i]) > logits[i], 1.0, -1.0)


def numpy_grid(model: gb.PairwiseModel, states: np.ndarray, rng: np.random.Generator) -> None:
    """One sweep over the two colours of the chessboard, all chains and all fields of a colour at a time."""
    right, down = np.zeros((2, SIDE, SIDE))
    i, j = model.graph.edges.T
    right.ravel()[i[j == i + 1]] = model.couplings[j == i + 1]
    down.ravel()[i[j == i + SIDE]] = model.couplings[j == i + SIDE]
    biases = model.biases.reshape(SIDE, SIDE)
    x = states.reshape(-1, SIDE, SIDE).astype(np.float64)
    white = np.add.outer(np.arange(SIDE), np.arange(SIDE)) % 2 == 0
    for colour in (white, ~white):
        field = np.broadcast_to(biases, x.shape).copy()
        field[:, :, :-1] += right[:, :-1] * x[:, :, 1:]
        field[:, :, 1:] += right[:, :-1] * x[:, :, :-1]
        field[:, :-1] += down[:-1] * x[:, 1:]
        field[:, 1:] += down[:-1] * x[:, :-1]
        up = 2.0 * field[:, colour] > rng.logistic(size=(len(x), int(colour.sum())))
        x[:, colour] = np.where(up, 1.0, -1.0)


if __name__ == "__main__":
    main()
