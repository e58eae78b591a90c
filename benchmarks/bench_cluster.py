"""Rows in Parquet on the worker processes of a cluster, against the same rows in memory.

    python benchmarks/bench_cluster.py --rows 2000000 --columns 50 --workers 1 2 --partitions 8 64

prints the time of a fit by pseudolikelihood to 1e-5, processor time a row and evaluation (which other work on the
machine does not change), what an evaluation of a function that does nothing takes of client and scheduler, bytes a row
on the workers, and the largest difference of a parameter to the fit in memory.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

import gibbsian as gb
from gibbsian.backends.parallel import limited_threads
from gibbsian.cluster import DistributedDataset, connect

EVALUATIONS = 5


def written(folder: Path, n_rows: int, n: int, n_files: int) -> None:
    """Write rows of a chain of spins with random couplings, one file after the other."""
    rng = np.random.default_rng(0)
    follow = 1.0 / (1.0 + np.exp(-2.0 * rng.uniform(0.2, 0.8, n)))
    for k, size in enumerate(np.diff(np.linspace(0, n_rows, n_files + 1).astype(int))):
        states = np.empty((size, n), np.int8)
        states[:, 0] = 2 * (rng.random(size) < 0.5) - 1
        for i in range(1, n):
            states[:, i] = np.where(rng.random(size) < follow[i], states[:, i - 1], -states[:, i - 1])
        columns = [pyarrow.array(states[:, i]) for i in range(n)]
        table = pyarrow.table(columns, names=[f"c{i}" for i in range(n)])
        parquet.write_table(table, folder / f"part-{k:04}.parquet", row_group_size=max(1, size))


def timed(work):
    """Return a result with the seconds it took."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def processor_seconds():
    """Return the processor time of this process."""
    return sum(os.times()[:2])


def work_a_row(data, graph, seconds):
    """Return the nanoseconds of all processors for a row of an evaluation."""
    model = gb.PairwiseModel.zeros(gb.graphs.as_graph(graph, data.names))
    function, theta = gb.objectives.Pseudolikelihood().bind(model, data), np.full(model.theta.size, 0.01)
    function(theta)
    before = seconds()
    for _ in range(EVALUATIONS):
        function(theta)
    return 1e9 * (seconds() - before) / EVALUATIONS / data.n_rows


def fitted(data, graph):
    """Fit by pseudolikelihood, and return the machine with its seconds and evaluations."""
    machine, seconds = timed(lambda: gb.BoltzmannMachine(graph, learner="mple", tol=1e-5).fit(data))
    return machine, seconds, int(machine.result_.trace.column("evaluations")[-1])


def idle(part):
    """Bind a function that does nothing."""
    return _nothing


def _nothing(theta):
    return 0.0, theta


def run(folder: Path, options, n_workers: int, n_partitions: int, expected) -> None:
    """Measure one cluster."""
    client = connect("local", n_workers)
    try:
        cells = options.rows * options.columns // n_partitions
        data, reading = timed(
            lambda: DistributedDataset.read(f"{folder}/*.parquet", coding="spin", client=client, partition_cells=cells)
        )
        nothing, theta = data.bound(idle), np.zeros(options.columns * (options.columns + 1) // 2)
        nothing(theta)
        before = processor_seconds()
        overhead = min(timed(lambda: nothing(theta))[1] for _ in range(20))
        dealing = (processor_seconds() - before) / 20
        work = work_a_row(data, options.graph, lambda: sum(client.run(processor_seconds).values()))
        machine, seconds, evaluations = fitted(data, options.graph)
        apart = np.abs(machine.model_.theta - expected.model_.theta).max()
        print(
            f"{n_workers} workers, {len(data.parts):4} partitions: read {reading:7.2f} s, fit {seconds:7.2f} s in "
            f"{evaluations} evaluations, {work:.0f} ns of processors a row; an empty evaluation takes "
            f"{1e3 * overhead:.1f} ms, {1e3 * dealing / len(data.parts):.2f} ms of a processor a partition; "
            f"{data.packed_bytes / data.n_rows:.2f} bytes a row, largest difference {apart:.1e}",
            flush=True,
        )
    finally:
        client.shutdown()


def main() -> None:
    """Measure all that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--partitions", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--graph", default="complete")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, seconds = timed(lambda: written(folder, options.rows, options.columns, max(options.partitions)))
        print(f"{options.rows:,} rows of {options.columns} columns written in {seconds:.1f} s", flush=True)

        def read():
            parts = [gb.data.readers.read_table(path).cells for path in sorted(folder.iterdir())]
            return gb.Dataset.of_states(np.concatenate(parts), "spin", names=[f"c{i}" for i in range(options.columns)])

        rows, reading = timed(read)
        for threads in options.workers:
            with limited_threads(threads):
                machine, seconds, evaluations = fitted(rows, options.graph)
                work = work_a_row(rows, options.graph, processor_seconds)
            print(
                f"in memory, {threads} threads: read {reading:.2f} s, fit {seconds:.2f} s in {evaluations} "
                f"evaluations, {work:.0f} ns of processors a row",
                flush=True,
            )
        del rows
        for n_workers in options.workers:
            for n_partitions in options.partitions:
                run(folder, options, n_workers, n_partitions, machine)


if __name__ == "__main__":
    main()
