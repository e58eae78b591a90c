"""How cost grows with columns, rows, states and chains: curves on log axes for ``docs/performance.md``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import bench_online
import gibbsian as gb
import peer_works as works
from bench_full_span import learned, noisy_network
from gibbsian.backends.threads import limited_threads
from gibbsian.data.stream import DataStream
from gibbsian.learning import Online


@dataclass
class Curve:
    """Seconds by size, and the power of the size that the work itself takes."""

    title: str
    axis: str
    file: str
    sizes: list[int]
    seconds: list[float]
    power: float

    def words(self) -> str:
        """Return the sizes with their seconds."""
        return "; ".join(f"{size:,}: {seconds:.3g} s" for size, seconds in zip(self.sizes, self.seconds, strict=True))

    def draw(self, path: Path) -> None:
        """Draw the curve beside a line of its slope."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
        sizes = np.array(self.sizes, float)
        ax.loglog(sizes, self.seconds, "o-", color="#0072b2")
        ax.loglog(sizes, self.seconds[-1] * (sizes / sizes[-1]) ** self.power, "--", color="0.6")
        ax.set(xlabel=self.axis, ylabel="seconds")
        ax.set_title(self.title, fontsize=9)
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, dpi=110)
        plt.close(figure)


def all_curves(quick: bool) -> list[Curve]:
    """Measure every curve; `quick` leaves the largest sizes out."""
    last = -1 if quick else None
    return [
        _curve("Pseudolikelihood by columns (20,000 rows)", "columns", "growth-columns.png",
               [50, 100, 200, 500, 1000, 2000][:last], by_columns, 2.0),
        _curve("Pseudolikelihood by rows (50 columns)", "rows", "growth-rows.png",
               [1000, 10_000, 100_000, 1_000_000][:last], by_rows, 1.0),
        _curve("Pseudolikelihood on a lattice (100 rows)", "nodes", "growth-nodes.png",
               [1024, 10_000, 102_400, 1_000_000][:last], by_nodes, 1.0),
        _curve("Potts pseudolikelihood by states (30 columns, 5,000 rows)", "states", "growth-states.png",
               [2, 4, 8, 21], by_states, 2.0),
        _curve("Gibbs by chains (64x64 lattice, 20 sweeps)", "chains", "growth-chains.png",
               [1, 4, 16, 64, 256, 1024], by_chains, 1.0),
        _curve("Full-span, 20 greedy steps by states (float32)", "states", "growth-full-span.png",
               [2**16, 2**20, 2**24, 2**28][:last], by_table, 1.0),
        _curve("Minibatches from disk by rows (50 columns)", "rows", "growth-disk.png",
               [200_000, 2_000_000, 20_000_000][:last], by_rows_on_disk, 1.0),
    ]  # fmt: skip


def _curve(title: str, axis: str, file: str, sizes: list[int], seconds: Callable[[int], float], power: float) -> Curve:
    with threadpool_limits(1), limited_threads(1):
        seconds(sizes[0])  # compiles
        times = []
        for size in sizes:
            times.append(seconds(size))
            print(f"{title}: {size:,}: {times[-1]:.3g} s", flush=True)
    return Curve(title, axis, file, sizes, times, power)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def by_columns(n: int) -> float:
    rows = works.correlated(20_000, n)
    return _timed(lambda: gb.BoltzmannMachine(learner="mple", l2=1e-4, tol=1e-5).fit(rows))


def by_rows(n_rows: int) -> float:
    rows = works.correlated(n_rows, 50)
    return _timed(lambda: gb.BoltzmannMachine(learner="mple", l2=1e-4, tol=1e-5).fit(rows))


def by_nodes(n: int) -> float:
    side = int(np.sqrt(n))
    rows = works.correlated(100, side * side, 1)
    machine = gb.BoltzmannMachine(learner="mple", graph=f"grid:{side}x{side}", l2=0.01, tol=1e-4)
    return _timed(lambda: machine.fit(rows))


def by_states(q: int) -> float:
    rng = np.random.default_rng(0)
    field = rng.normal(size=(5000, 5)) @ rng.normal(0, 0.5, (5, 30 * q)) + rng.gumbel(size=(5000, 30 * q))
    rows = field.reshape(5000, 30, q).argmax(axis=2)
    return _timed(lambda: gb.PottsMachine(learner="mple", l2=0.01, tol=1e-4).fit(rows))


def by_chains(n_chains: int) -> float:
    _, couplings, biases = works.lattice(64)
    model = gb.PairwiseFamily.model(gb.graphs.grid(64, 64), biases, couplings)
    state = gb.sampling.Gibbs().init(model, n_chains, np.random.default_rng(0))
    return _timed(lambda: gb.sampling.Gibbs().step(model, state, 20))


def by_table(n_states: int) -> float:
    rows = noisy_network(n_states.bit_length() - 1, 2000)
    return _timed(lambda: learned(rows, np.ones(len(rows)), "greedy", max_iter=20, dtype="float32"))


def by_rows_on_disk(n_rows: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        bench_online.write_rows(path, n_rows)
        stream = DataStream.open(path, memory=bench_online.MEMORY)
        model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(bench_online.N_COLUMNS), stream.variables))
        learner = Online(batch_size=max(1, n_rows // bench_online.STEPS))
        rng = np.random.default_rng(0)
        return _timed(lambda: gb.learning.run(learner, model, stream, rng, max_iter=1))  # type: ignore[arg-type]
