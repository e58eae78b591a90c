"""The full-span model: a greedy step and a transform against a plain copy, time by size, memory, whole fits.

Run with ``python benchmarks/run.py full_span``. A copy of 8 MiB is the unit of the first table; all of it
runs on one thread.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gibbsian.backends.numba.walsh import aligned_zeros, walsh_hadamard
from gibbsian.backends.threads import limited_threads
from gibbsian.data import Dataset
from gibbsian.domain import CategoryCoding
from gibbsian.learning import FitResult, as_learner, run
from gibbsian.learning.optimizers import Converged
from gibbsian.models import FullSpanFamily, Model, SpanBasis, Variables
from gibbsian.resources import format_bytes
from gibbsian.rng import Key

FLOATS = {"float64": np.float64, "float32": np.float32}


def noisy_network(n_variables: int, n_samples: int, seed: int = 0, n_parents: int = 3) -> np.ndarray:
    """Rows of a random Bayesian network of binary variables, each with up to three parents (TA22 section 3.4.3)."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n_samples, n_variables), np.int64)
    for i in range(n_variables):
        parents = rng.choice(i, min(i, n_parents), replace=False)
        table = rng.random(2 ** len(parents))
        row = x[:, parents] @ (1 << np.arange(len(parents)))
        x[:, i] = rng.random(n_samples) < table[row]
    return x


def ising_rows(n_samples: int) -> np.ndarray:
    """Rows of the 5 x 4 Ising model with couplings 1/2 (TA22 section 3.4.1)."""
    pairs = [(5 * r + c, 5 * r + c + 1) for r in range(4) for c in range(4)]
    pairs += [(5 * r + c, 5 * r + c + 5) for r in range(3) for c in range(5)]
    model = FullSpanFamily.model({2 ** (19 - i) + 2 ** (19 - j): 0.5 for i, j in pairs}, Variables.binary(20))
    table = model.family.probabilities(model.theta).values
    return model.family.basis.digits(np.random.default_rng(0).choice(table.size, n_samples, p=table))


def in_bursts(functions: dict[str, Callable[[], object]], rounds: int = 15, burst: int = 8) -> dict[str, float]:
    """Best seconds of each, in turns of several calls, so that each finds its own tables in the cache."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            function()
            for _ in range(burst):
                start = time.perf_counter()
                function()
                best[name] = min(best[name], time.perf_counter() - start)
    return best


class Steps:
    """Greedy steps of one fit, started anew when it has converged."""

    def __init__(self, x: np.ndarray, sizes: tuple[int, ...], dtype: type) -> None:
        coding = CategoryCoding.of_labels([range(q) for q in sizes])
        names = tuple(f"x{i}" for i in range(len(sizes)))
        codes, counts = np.unique(x.astype(np.int8), axis=0, return_counts=True)
        data = Dataset(codes, counts.astype(float), None, coding, names, np.arange(len(codes)))
        start = Model.zeros(FullSpanFamily.uniform(Variables.categories(sizes)))
        self.fit = as_learner("span-greedy", dtype=np.dtype(dtype).name).bind(start, data)
        self.state, _ = self.fit.init(Key.of(0))

    def __call__(self) -> None:
        self.state, info = self.fit.step(self.state)
        if isinstance(info.outcome, Converged):
            self.state, _ = self.fit.init(Key.of(0))

    def times(self, n_steps: int) -> np.ndarray:
        """Seconds of each of the next steps."""
        seconds = np.empty(n_steps)
        for k in range(n_steps):
            start = time.perf_counter()
            self()
            seconds[k] = time.perf_counter() - start
        return seconds


def learned(
    x: np.ndarray, counts: np.ndarray, algorithm: str, max_iter: int = 100_000, **settings: object
) -> FitResult:
    """Fit binary rows."""
    data = Dataset.read(x, coding="binary", sample_weight=counts)
    learner = as_learner(f"span-{algorithm}", **settings)
    return run(learner, Model.zeros(FullSpanFamily.uniform(Variables.binary(x.shape[1]))), data, max_iter=max_iter)


def ratios() -> None:
    source, target = np.ones(2**20), np.ones(2**20)
    x = noisy_network(20, 10_000)
    functions: dict[str, Callable[[], object]] = {"copy": lambda: np.copyto(target, source)}
    for name, dtype in FLOATS.items():
        table = aligned_zeros(2**20, dtype)
        functions[f"greedy step, {name}"] = Steps(x, (2,) * 20, dtype)
        functions[f"Walsh-Hadamard transform, {name}"] = lambda table=table: walsh_hadamard(table)
    functions["greedy step, 3^12 2^1 states, float64"] = Steps(
        (np.random.default_rng(0).random((5000, 13)) ** 1.5 * ((3,) * 12 + (2,))).astype(int),
        (3,) * 12 + (2,),
        np.float64,
    )
    best = in_bursts(functions)
    print("2^20 states, one thread; a copy is of 8 MiB")
    for name, seconds in best.items():
        print(f"  {name:42s}{1e3 * seconds:8.3f} ms{seconds / best['copy']:8.2f} copies")


def sizes(largest: int = 26) -> None:
    print("\ntime per greedy step by size, float64, one thread (best and median)")
    print(f"  {'states':>8s}{'best':>12s}{'median':>12s}{'best per state':>18s}")
    for n in range(20, largest + 1):
        steps = Steps(noisy_network(n, 2000), (2,) * n, np.float64)
        seconds = steps.times(max(12, 2 ** (29 - n)))  # a second of each: a busy neighbour spoils less
        best = seconds.min()
        print(f"  {f'2^{n}':>8s}{1e3 * best:>9.2f} ms{1e3 * np.median(seconds):>9.2f} ms{1e9 * best / 2**n:>15.3f} ns")


def memory(n: int = 27) -> None:
    """Measure in a process of its own, so that no earlier table counts."""
    print(f"\nmemory of a fit of 2^{n} states")
    for name in FLOATS:
        printed = subprocess.run(
            [sys.executable, __file__, "memory", str(n), name], capture_output=True, text=True, check=True
        )
        print(f"  {name}: {printed.stdout.strip()}")


def peak_memory() -> float:
    """Bytes; not from getrusage, where a child process starts with the peak of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure_memory(n: int, name: str) -> None:
    x = noisy_network(n, 2000)
    learned(x[:, :10], np.ones(2000), "greedy", dtype=name)  # compiles
    before = peak_memory()
    start = time.perf_counter()
    fit = learned(x, np.ones(2000), "greedy", max_iter=10, dtype=name)
    seconds = time.perf_counter() - start
    used = peak_memory() - before
    predicted = as_learner("span-greedy", dtype=name).memory(SpanBasis(Variables.binary(n)))
    print(
        f"predicted {format_bytes(predicted)}, measured {format_bytes(used)} ({used / predicted:.3f} of it), "
        f"{len(fit.trace)} steps in {seconds:.1f} s"
    )


def fits() -> None:
    print("\nwhole fits of 2^20 states, float64, all threads")
    data = {
        "Ising5x4S": ising_rows(1000),
        "Ising5x4L": ising_rows(100_000),
        "BN20-54S": noisy_network(20, 1000),
        "BN20-54L": noisy_network(20, 100_000),
    }
    for name, x in data.items():
        states, counts = np.unique(x, axis=0, return_counts=True)
        for tol in (1e-4, 1e-6):
            for algorithm in ("greedy", "newton"):
                start = time.perf_counter()
                fit = learned(states, counts, algorithm, tol=tol)
                seconds = time.perf_counter() - start
                data = Dataset.read(states, coding="binary", sample_weight=counts)
                costs = as_learner(f"span-{algorithm}", tol=tol).costs(fit.model, data)
                print(
                    f"  {name:10s} tol {tol:.0e} {algorithm}: cost {costs['cost']:.6f}, "
                    f"divergence {costs['divergence']:.3f}, {fit.model.theta.size} functions, "
                    f"{len(fit.trace)} steps, {seconds:.2f} s"
                )


def main() -> None:
    with limited_threads(1):
        ratios()
        sizes()
    memory()
    fits()


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        measure_memory(int(sys.argv[2]), sys.argv[3])
    else:
        main()
