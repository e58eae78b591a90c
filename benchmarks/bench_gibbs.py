"""Gibbs sampling in million spin updates a second beside what plain compiled loops reach, on one and two threads.

The limits are kernels for one purpose each, with 32 random bits: chains side by side in vectors on a lattice with one
coupling and no fields, so that a table of five thresholds does; the sites of a colour side by side on a lattice with
couplings of its own, and tanh in float32; and dense chains in float32 that keep their fields. Ours take any graph and
couplings, 52 random bits and exact fields.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

import gibbsian as gb
from gibbsian.backends.parallel import limited_threads
from gibbsian.rng import Key
from gibbsian.sampling import Transition
from timing import asked, interleaved

SIDE, LANES = 256, 64
MOST, MOST_OF_ONE_THREAD = 1.5, 1 / 1.7
# A colour of a chain of this size is over before another thread has taken its half.
TOO_SMALL_TO_SHARE = SIDE * SIDE


def main() -> None:
    rng = np.random.default_rng(0)
    print("Gibbs sampling, million spin updates in a second of one processor")
    print(f"{'':42s}{'limit':>8s}{'ours':>8s}")
    grid = random_model(gb.graphs.grid(SIDE, SIDE), 0.5, rng)
    one, many = gb.sampling.ChromaticGibbs(), gb.sampling.Gibbs()
    report(f"{SIDE}x{SIDE} grid, 1 chain, chromatic", grid, one, 1, 100, limit_of_one_chain())
    report(f"{SIDE}x{SIDE} grid, 64 chains", grid, many, 64, 20, limit_of_chains())
    report(f"{SIDE}x{SIDE} grid, 256 chains", grid, many, 256, 10, None)
    for n, scale, n_chains, n_sweeps in ((100, 0.1, 1000, 50), (1000, 0.03, 128, 5)):
        dense = random_model(gb.graphs.complete(n), scale, rng)
        limit = limit_of_dense(dense, n_chains, n_sweeps)
        report(f"dense n = {n:,}, {n_chains:,} chains", dense, many, n_chains, n_sweeps, limit)
    large = random_model(gb.graphs.grid(1024, 1024), 0.5, rng)
    report("1024x1024 grid, 1 chain, chromatic", large, one, 1, 10, None)
    one_sweep_a_call(grid)


def random_model(graph: gb.Graph, scale: float, rng: np.random.Generator) -> gb.Model:
    return gb.PairwiseFamily.model(graph, rng.normal(0, 0.1, graph.n_nodes), rng.normal(0, scale, graph.n_edges))


def report(
    title: str,
    model: gb.Model,
    transition: Transition,
    n_chains: int,
    n_sweeps: int,
    limit: tuple[float, Callable[[], object]] | None,
) -> None:
    """Print updates a second; `limit` is a number of updates and what makes them."""
    kernel = transition.bind(model.family)
    chains, _ = kernel.step(model.theta, kernel.init(n_chains, Key.of(1)), 10)

    def sweeps(threads: int) -> None:
        with limited_threads(threads):
            kernel.step(model.theta, chains, n_sweeps)

    runs: dict[str, Callable[[], object]] = {"one": partial(sweeps, 1)}
    updates = {"one": float(n_chains * model.n_variables * n_sweeps)}
    if limit:
        updates["limit"], runs["limit"] = limit
    processor = interleaved(runs, repeats=9, clock=time.process_time)
    rates = {name: updates[name] / processor[name] / 1e6 for name in runs}
    words = [asked(f"{title}, to the limit", rates["limit"] / rates["one"], MOST)] if limit else []
    if (os.cpu_count() or 1) > 1 and processor["one"] > 0.01 and n_chains * model.n_variables > TOO_SMALL_TO_SHARE:
        wall = interleaved({"one": partial(sweeps, 1), "two": partial(sweeps, 2)}, repeats=9)
        words.append("two threads " + asked(f"{title}, two threads", wall["two"] / wall["one"], MOST_OF_ONE_THREAD))
    shown = f"{rates['limit']:8.0f}" if limit else f"{'':8s}"
    print(f"  {title:40s}{shown}{rates['one']:8.0f}   {'; '.join(words)}")


def one_sweep_a_call(model: gb.Model) -> None:
    """What surrounds the kernel when a chain moves one sweep at a time."""
    kernel = gb.sampling.kernel_for(model.family, "chromatic")
    chains = kernel.init(1, Key.of(1))
    runs = {str(n): partial(kernel.step, model.theta, chains, n) for n in (1, 101)}
    with limited_threads(1):
        seconds = interleaved(runs, repeats=15, clock=time.process_time)
    each = (seconds["101"] - seconds["1"]) / 100
    print(f"  one sweep a call {seconds['1'] * 1e3:.2f} ms, of which the kernel {each * 1e3:.2f}")


def thresholds(coupling: float) -> np.ndarray:
    """32 random bits below the k-th number put a spin up that has k of its four neighbours up."""
    fields = coupling * (2.0 * np.arange(5) - 4.0)
    return (2.0**32 / (1.0 + np.exp(-2.0 * fields))).astype(np.uint32)


@njit
def next_bits(bits):
    """One step of xorshift32 in every lane."""
    for lane in range(LANES):
        word = bits[lane]
        word ^= word << np.uint32(13)
        word ^= word >> np.uint32(17)
        bits[lane] = word ^ (word << np.uint32(5))


@njit
def draw(own, up, down, left, right, bits, t0, t1, t2, t3, t4):
    for lane in range(LANES):
        k = up[lane] + down[lane] + left[lane] + right[lane]
        low = t1 if k == 1 else t0
        high = t4 if k == 4 else t3
        threshold = low if k < 2 else (t2 if k == 2 else high)
        own[lane] = bits[lane] < threshold


@njit(nogil=True)
def chains_in_lanes(x, bits, table, n_sweeps):
    """Sweep a lattice, the first and last rows and columns kept; ``x[row, column]`` holds the spins of all chains."""
    t0, t1, t2, t3, t4 = table[0], table[1], table[2], table[3], table[4]
    for _ in range(n_sweeps):
        for r in range(1, x.shape[0] - 1):
            for c in range(1, x.shape[1] - 1):
                next_bits(bits)
                draw(x[r, c], x[r - 1, c], x[r + 1, c], x[r, c - 1], x[r, c + 1], bits, t0, t1, t2, t3, t4)


@njit(error_model="numpy", fastmath={"contract"})
def draw_by_field(own, up, down, left, right, couplings, biases, bits):
    for lane in range(LANES):
        field = biases[lane] + couplings[0, lane] * up[lane] + couplings[1, lane] * down[lane]
        field += couplings[2, lane] * left[lane] + couplings[3, lane] * right[lane]
        field = max(min(field, np.float32(4.9)), np.float32(-4.9))
        z = field * field
        top = field * (np.float32(135135) + z * (np.float32(17325) + z * (np.float32(378) + z)))
        tanh = top / (np.float32(135135) + z * (np.float32(62370) + z * (np.float32(3150) + z * np.float32(28))))
        own[lane] = 1 if np.float32(np.int32(bits[lane])) < np.float32(2.0**31) * tanh else -1


@njit(nogil=True)
def sites_in_lanes(x, couplings, biases, bits, n_sweeps):
    """The same for one chain of -1 and +1, ``x[colour]`` flat with half a row of the lattice after the other."""
    half = SIDE // 2
    for _ in range(n_sweeps):
        for colour in range(2):
            own, other = x[colour], x[1 - colour]
            for first in range(half, own.size - half, LANES):
                shift = 1 if (first // half + colour) % 2 else -1
                place = (first - half) // LANES
                next_bits(bits)
                draw_by_field(
                    own[first : first + LANES],
                    other[first - half : first - half + LANES],
                    other[first + half : first + half + LANES],
                    other[first : first + LANES],
                    other[first + shift : first + shift + LANES],
                    couplings[colour, place],
                    biases[colour, place],
                    bits,
                )


def limit_of_chains(n_sweeps: int = 20) -> tuple[float, Callable[[], object]]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (SIDE + 2, SIDE + 2, LANES)).astype(np.int8)
    bits = rng.integers(1, 2**32, LANES, dtype=np.uint32)
    return float(SIDE * SIDE * LANES * n_sweeps), partial(chains_in_lanes, x, bits, thresholds(0.3), n_sweeps)


def limit_of_one_chain(n_sweeps: int = 100) -> tuple[float, Callable[[], object]]:
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([-1, 1], np.int8), (2, (SIDE + 2) * SIDE // 2))
    bits = rng.integers(1, 2**32, LANES, dtype=np.uint32)
    n_vectors = SIDE * SIDE // 2 // LANES
    couplings = rng.normal(0, 0.5, (2, n_vectors, 4, LANES)).astype(np.float32)
    biases = rng.normal(0, 0.1, (2, n_vectors, LANES)).astype(np.float32)
    return float(SIDE * SIDE * n_sweeps), partial(sites_in_lanes, x, couplings, biases, bits, n_sweeps)


@njit(nogil=True, error_model="numpy")
def dense_chains(x, fields, doubled, words, n_sweeps):
    """Sweep each chain, which keeps its fields in float32; a flip adds a row of the matrix."""
    n_chains, n = x.shape
    limits = np.empty(n, np.float32)
    for c in range(n_chains):
        field, own, word = fields[c], x[c], words[c]
        for _ in range(n_sweeps):
            for i in range(n):
                word ^= word << np.uint64(13)
                word ^= word >> np.uint64(7)
                word ^= word << np.uint64(17)
                limits[i] = (np.float32(word >> np.uint64(40)) + np.float32(0.5)) * np.float32(2.0**-24)
            for i in range(n):
                limits[i] = np.float32(0.5) * np.log(limits[i] / (np.float32(1.0) - limits[i]))
            for i in range(n):
                up = field[i] > limits[i]
                if up != (own[i] > 0):
                    own[i] = -own[i]
                    step = np.float32(own[i])
                    row = doubled[i]
                    for j in range(n):
                        field[j] += step * row[j]
        words[c] = word


def limit_of_dense(model: gb.Model, n_chains: int, n_sweeps: int) -> tuple[float, Callable[[], object]]:
    rng = np.random.default_rng(0)
    kernel = gb.sampling.kernel_for(model.family)
    chains, _ = kernel.step(model.theta, kernel.init(n_chains, Key.of(rng)), 10)
    (biases, couplings), spins = model.parts, 2 * chains.states - 1
    matrix = model.family.graph.matrix(couplings).astype(np.float32)
    fields = spins.astype(np.float32) @ matrix + biases.astype(np.float32)
    words = rng.integers(1, 2**63, n_chains).astype(np.uint64)
    updates = float(n_chains * model.n_variables * n_sweeps)
    return updates, partial(dense_chains, spins, fields, 2 * matrix, words, n_sweeps)


if __name__ == "__main__":
    main()
