"""Rows on disk learned in one pass of minibatches: seconds, peak memory, distance to the known truth.

``python benchmarks/bench_online.py --rows 20000000`` is the full run: a file of 1 GB, within 2 GB of memory. The rows
are drawn exactly from a chain of spins with known couplings; the machine that learns has all pairs. Each run is a
process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gibbsian as gb
from gibbsian.data.stream import DataStream
from gibbsian.learning import Online

N_COLUMNS = 50
STEPS = 2000
MEMORY = "1GB"
LIMIT_GB = 2.0
PIECE = 250_000


def main(n_rows: int = 2_000_000) -> None:
    print(f"Online pseudolikelihood of {N_COLUMNS} columns, one pass in {STEPS} minibatches")
    with tempfile.TemporaryDirectory() as folder:
        for path, rows in ((Path(folder) / "rows.npy", n_rows), (Path(folder) / "rows.parquet", n_rows // 10)):
            write_rows(path, rows)
            report(path, rows)
            path.unlink()


# -- data with a known truth ------------------------------------------------------------------------------------------
def true_couplings() -> np.ndarray:
    return np.random.default_rng(1).normal(0, 0.5, N_COLUMNS - 1)


def chain_rows(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Draw from the chain as 0/1: a spin agrees with the one before it with probability sigmoid(2 J)."""
    agree = 1.0 / (1.0 + np.exp(-2.0 * true_couplings()))
    differs = rng.random((n_rows, N_COLUMNS), dtype=np.float32) >= np.append(0.5, agree).astype(np.float32)
    return np.bitwise_xor.accumulate(differs.view(np.uint8), axis=1)


def write_rows(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(2)
    sizes = [min(PIECE, n_rows - start) for start in range(0, n_rows, PIECE)]
    if path.suffix == ".npy":
        array = np.lib.format.open_memmap(path, "w+", np.uint8, (n_rows, N_COLUMNS))
        for k, size in enumerate(sizes):
            array[k * PIECE : k * PIECE + size] = chain_rows(size, rng)
        array.flush()
        return
    import pyarrow as pa
    from pyarrow import parquet

    names = [f"x{j}" for j in range(N_COLUMNS)]
    schema = pa.schema([(name, pa.uint8()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for size in sizes:
            rows = chain_rows(size, rng)
            table = pa.table([np.ascontiguousarray(column) for column in rows.T], schema=schema)
            writer.write_table(table, row_group_size=50_000)


# -- one run in a process of its own ----------------------------------------------------------------------------------
def report(path: Path, n_rows: int) -> None:
    command = [sys.executable, __file__, "--learn", str(path)]
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # a minibatch's products are too small to share
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=alone).stdout
    told = json.loads(printed.splitlines()[-1])
    fits = "within" if told["peak_gb"] <= LIMIT_GB else "BEYOND"
    rate = n_rows / told["seconds"] / 1e6
    print(
        f"  {path.suffix[1:]:8s}{n_rows:>11,d} rows {told['seconds']:7.1f} s {rate:6.2f} M rows/s"
        f"  peak {told['peak_gb']:.2f} GB ({fits} {LIMIT_GB:.0f} GB)  couplings' error {told['error']:.5f} rms"
        f" ({told['ratio']:.1f} / sqrt(rows))"
    )


def learn(path: Path) -> None:
    compile_kernels()
    started = time.perf_counter()
    stream = DataStream.open(path, memory=MEMORY)
    graph = gb.graphs.complete(N_COLUMNS)
    model = gb.Model.zeros(gb.PairwiseFamily(graph, stream.variables))
    learner = Online(batch_size=max(1, stream.n_rows // STEPS))
    rng = np.random.default_rng(0)
    result = gb.learning.run(learner, model, stream, rng, max_iter=1)  # type: ignore[arg-type]
    seconds = time.perf_counter() - started
    spins, _ = result.model.family.recode(result.model.theta, gb.Variables.spins)
    truth = np.zeros(graph.n_edges)
    truth[np.flatnonzero(graph.edges[:, 1] - graph.edges[:, 0] == 1)] = true_couplings()
    error = float(np.sqrt(np.mean((spins.parts.couplings - truth) ** 2)))
    ratio = error * np.sqrt(stream.n_rows)  # for independent spins the full fit has 1
    print(
        json.dumps(
            {
                "seconds": seconds,
                "peak_gb": peak_memory() / 1e9,
                "error": error,
                "ratio": ratio,
                "reason": result.reason,
            }
        )
    )


def peak_memory() -> int:
    """Bytes this process had at most; `getrusage` would count what its parent held when it started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def compile_kernels() -> None:
    data = gb.Dataset.read(np.random.default_rng(0).integers(0, 2, (100, 3)))
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3), data.variables))
    gb.learning.run(gb.learning.as_learner("mple"), model, data, np.random.default_rng(0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--learn", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.learn:
        learn(arguments.learn)
    else:
        main(arguments.rows)
