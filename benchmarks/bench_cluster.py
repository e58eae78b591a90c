"""Rows on the worker processes of a cluster, against the same rows in memory; many small fits on one worker and on two.

    ROWS=20000000 python benchmarks/run.py cluster

prints, for 50 columns, what a fit by pseudolikelihood to 1e-5 takes on 2 workers and in memory on 2 threads; then, with
a twentieth of the rows on 1, 2 and 4 workers in 8, 64 and 512 partitions, what an evaluation takes, and one of a
function that does nothing; then 1,000 bootstrap fits of the house votes. Times of processors are those of all threads
of the workers, or of client and scheduler (one process here); other work on the machine hardly changes them. Without
``ROWS`` there are 2,000,000. Files are Parquet, or .npy where pyarrow is absent.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import gibbsian as gb
from gibbsian.backends.threads import limited_threads
from gibbsian.cluster import DistributedDataset, connect
from gibbsian.cluster.connection import fits_on
from timing import asked

COLUMNS, EVALUATIONS, EMPTY = 50, 5, 10
WORKERS, PARTITIONS = (1, 2, 4), (8, 64, 512)
FORMAT = "parquet" if importlib.util.find_spec("pyarrow") else "npy"
NAMES = [f"c{i}" for i in range(COLUMNS)]


def main() -> None:
    """Measure all."""
    rows = int(os.environ.get("ROWS", "2000000"))
    with tempfile.TemporaryDirectory() as name:
        whole, part = Path(name) / "whole", Path(name) / "part"
        with workers_here(os.cpu_count()) as client:
            _, seconds = timed(lambda: [written(client, whole, rows), written(client, part, rows // 20)])
        print(
            f"{rows:,} and {rows // 20:,} rows of {COLUMNS} columns, written as .{FORMAT} in {seconds:.1f} s",
            flush=True,
        )
        side_by_side(whole, rows)
        grid(part, rows // 20)
    bootstraps()


# -- rows -------------------------------------------------------------------------------------------------------------
def written(client, folder: Path, n_rows: int) -> None:
    """Have the workers write rows of a chain of spins with random couplings, a file for each partition."""
    folder.mkdir()
    sizes = np.diff(np.linspace(0, n_rows, max(PARTITIONS) + 1).astype(int))
    client.gather(client.map(write_file, [folder / f"part-{k:04}.{FORMAT}" for k in range(len(sizes))], sizes))


def write_file(path: Path, size: int) -> None:
    """Write one file; its number is its seed."""
    follow = 1.0 / (1.0 + np.exp(-2.0 * np.random.default_rng(0).uniform(0.2, 0.8, COLUMNS)))
    rng = np.random.default_rng(int(path.stem.split("-")[1]) + 1)
    same = rng.random((size, COLUMNS), np.float32) < np.concatenate([[0.5], follow[1:]]).astype(np.float32)
    states = np.cumprod(2 * same.view(np.int8) - 1, axis=1, dtype=np.int8)
    if FORMAT == "npy":
        np.save(path, states)
        return
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table([pyarrow.array(np.ascontiguousarray(column)) for column in states.T], names=NAMES)
    parquet.write_table(table, path, row_group_size=max(1, size))


def read_here(folder: Path, n_files: int | None = None) -> gb.Dataset:
    """Read the files, or the first of them, into memory."""
    parts = [gb.data.readers.read_table(path).cells for path in sorted(folder.iterdir())[:n_files]]
    return gb.Dataset.of_states((np.concatenate(parts) > 0).view(np.int8), "spin", names=NAMES)


def read_there(folder: Path, client, n_rows: int, n_partitions: int, files: str = "*") -> DistributedDataset:
    """Have the workers read the files."""
    cells = -(-n_rows // n_partitions) * COLUMNS
    return DistributedDataset.read(f"{folder}/{files}", coding="spin", client=client, partition_cells=cells)


# -- one fit, here and there ------------------------------------------------------------------------------------------
def side_by_side(folder: Path, n_rows: int) -> None:
    """Fit in memory on 2 threads, then on 2 workers."""
    with limited_threads(2):
        fitted(read_here(folder, 1))  # everything is loaded
        data, reading = timed(lambda: read_here(folder))
        before = own_seconds()
        here, seconds = timed(lambda: fitted(data))
        work = own_seconds() - before
    del data
    evaluations = n_evaluations(here)
    print(
        f"in memory, 2 threads:       read {reading:6.1f} s, fit {seconds:6.1f} s ({work:.1f} s of processors)",
        flush=True,
    )
    with workers_here(2) as client:
        fitted(read_there(folder, client, n_rows, 512, "part-000?.*"))  # everything is loaded
        empty = most_memory(client)
        data, reading_there = timed(lambda: read_there(folder, client, n_rows, 64))
        nothing = evaluation(data.bind(idle), client, EMPTY)
        before = worker_seconds(client)
        there, seconds_there = timed(lambda: fitted(data))
        work = worker_seconds(client) - before
        apart = np.abs(there.model_.theta - here.model_.theta).max()
        print(
            f"2 workers, {len(data.parts)} partitions: read {reading_there:6.1f} s, fit {seconds_there:6.1f} s "
            f"({work:.1f} s of processors), {evaluations} evaluations, largest difference {apart:.1e}\n"
            f"a worker keeps {data.packed_bytes / n_rows:.2f} bytes a row and took up to "
            f"{(most_memory(client) - empty) / 2**20:.0f} MB more than before; an evaluation of nothing takes "
            f"{1e3 * nothing.wall:.1f} ms",
            flush=True,
        )
    print("fit there / here: " + asked("fit on 2 workers / in memory on 2 threads", seconds_there / seconds, 1.3))
    print(f"with reading:     ratio {(seconds_there + reading_there) / (seconds + reading):.2f}", flush=True)


def fitted(data) -> gb.BoltzmannMachine:
    """Fit by pseudolikelihood."""
    return gb.BoltzmannMachine(learner="mple", tol=1e-5).fit(data)


def n_evaluations(machine: gb.BoltzmannMachine) -> int:
    """Return how often the data were gone through for a gradient."""
    return int(machine.result_.trace.column("evaluations")[-1])


# -- evaluations ------------------------------------------------------------------------------------------------------
class Taken(NamedTuple):
    """Seconds of an evaluation: by the clock, of client and scheduler, of workers."""

    wall: float
    here: float
    there: float


def evaluation(function, client, repeats: int) -> Taken:
    """Take the times of an evaluation."""
    theta = np.full(COLUMNS * (COLUMNS + 1) // 2, 0.01)
    function(theta)
    here, there = own_seconds(), worker_seconds(client)
    walls = [timed(lambda: function(theta))[1] for _ in range(repeats)]
    return Taken(min(walls), (own_seconds() - here) / repeats, (worker_seconds(client) - there) / repeats)


def idle(part):
    """Bind a function that does nothing."""
    return _nothing


def _nothing(theta):
    return 0.0, theta


def grid(folder: Path, n_rows: int) -> None:
    """Evaluate on several numbers of workers and of partitions."""
    print(f"\n{'workers':>7} {'partitions':>10} {'read':>8} {'evaluation':>11} {'of processors':>16} {'empty':>10} "
          f"{'client':>12} {'workers':>12}\n{'':18} {'s':>8} {'ms':>11} {'ns a row':>16} {'ms':>10} "
          f"{'ms/partition':>12} {'ms/partition':>12}", flush=True)  # fmt: skip
    for n_workers in WORKERS:
        with workers_here(n_workers) as client:
            for n_partitions in PARTITIONS:
                data, reading = timed(partial(read_there, folder, client, n_rows, n_partitions))
                model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(COLUMNS)))
                full = evaluation(gb.learning.objectives.Pseudolikelihood().bind(model, data), client, EVALUATIONS)
                none = evaluation(data.bind(idle), client, EMPTY)
                n = len(data.parts)
                print(
                    f"{n_workers:7} {n:10} {reading:8.2f} {1e3 * full.wall:11.1f} {1e9 * full.there / n_rows:16.0f} "
                    f"{1e3 * none.wall:10.1f} {1e3 * none.here / n:12.2f} {1e3 * none.there / n:12.2f}",
                    flush=True,
                )
                del data


# -- many small fits --------------------------------------------------------------------------------------------------
def bootstraps(n_fits: int = 1000) -> None:
    """Refit the house votes on resampled rows, on one worker and on two."""
    votes = gb.datasets.load_house_votes().complete_rows()
    machine = gb.BoltzmannMachine(learner="mple", l2=0.01).fit(votes)
    taken = {}
    for n_workers in (1, 2):
        with workers_here(n_workers) as client, fits_on(client):
            gb.uncertainty.bootstrap(machine, votes, 8 * n_workers, random_state=1)  # all is loaded
            before = worker_seconds(client)
            _, taken[n_workers] = timed(lambda: gb.uncertainty.bootstrap(machine, votes, n_fits, random_state=0))
            print(f"{n_fits} bootstrap fits on {n_workers} workers: {taken[n_workers]:.2f} s, "
                  f"{worker_seconds(client) - before:.2f} s of processors", flush=True)  # fmt: skip
    print("2 workers / 1: " + asked("bootstrap fits on 2 workers / on 1", taken[2] / taken[1], 1 / 1.8))


# -- clocks -----------------------------------------------------------------------------------------------------------
@contextmanager
def workers_here(n: int):
    """Give a client of so many worker processes."""
    client = connect("local", n)
    try:
        yield client
    finally:
        client.shutdown()


def timed(work):
    """Return a result with the seconds it took."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def own_seconds() -> float:
    """Return the processor time of this process, all threads."""
    return sum(os.times()[:2])


def worker_seconds(client) -> float:
    """Return the processor time of all workers."""
    return sum(client.run(own_seconds).values())


def most_memory(client) -> float:
    """Return the most memory that a worker has had, in bytes."""
    return max(client.run(_most_memory).values())


def _most_memory() -> float:
    import resource

    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
