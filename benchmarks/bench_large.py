"""A table of two million rows and 60 yes/no columns, end to end: processor seconds and peak memory of each
command.

Run with ``python benchmarks/bench_large.py FOLDER``; the table is made in FOLDER once (a CSV file and a Parquet file,
with an id column and one cell in a hundred missing) and the commands follow one another, each in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROWS_AT_ONCE = 100_000
STRENGTH = 0.8  # how far a hidden trait moves the log-odds of the columns that it moves


def chunks(n_rows: int, n_columns: int, holes: float, seed: int = 0):
    """Yield frames of answers that a few hidden traits move together, with an id and with missing cells."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    biases = rng.normal(0, 1, n_columns)
    loads = rng.normal(0, STRENGTH, (6, n_columns)) * (rng.random((6, n_columns)) < 0.3)
    names = [f"q{j:02d}" for j in range(n_columns)]
    for start in range(0, n_rows, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, n_rows - start)
        traits = rng.choice([-1.0, 1.0], (n, len(loads)))
        codes = (rng.random((n, n_columns)) < 1 / (1 + np.exp(-biases - traits @ loads))).astype(np.int8)
        codes[rng.random(codes.shape) < holes] = -1
        columns = {name: pd.Categorical.from_codes(codes[:, j], ["no", "yes"]) for j, name in enumerate(names)}
        yield pd.DataFrame({"id": [f"r{i:07d}" for i in range(start, start + n)], **columns})


def make(folder: Path, n_rows: int, n_columns: int, holes: float) -> dict[str, Path]:
    """Write the table in both formats, where it is not there yet."""
    import pyarrow as pa
    from pyarrow import parquet

    stem = f"rows-{n_rows}-{n_columns}-{holes:g}"
    files = {kind: folder / f"{stem}.{kind}" for kind in ("csv", "parquet")}
    if all(path.exists() for path in files.values()):
        return files
    folder.mkdir(parents=True, exist_ok=True)
    writer = None
    for k, frame in enumerate(chunks(n_rows, n_columns, holes)):
        frame.to_csv(files["csv"], mode="w" if k == 0 else "a", header=k == 0, index=False)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        writer = writer or parquet.ParquetWriter(files["parquet"], table.schema)
        writer.write_table(table)
    writer.close()
    return files


def measured(*command: str) -> tuple[float, float]:
    """Run a command on one core; return its processor seconds and its peak memory in GB."""
    threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    process = subprocess.Popen([sys.executable, "-m", "gibbsian", *command], env={**os.environ, **threads})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"gibbsian {' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e9


def main() -> None:
    """Make the table, run the commands, print what they took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=60)
    parser.add_argument("--holes", type=float, default=0.01)
    parser.add_argument("--kind", choices=("csv", "parquet"), default="csv")
    parser.add_argument("--commands", default="fit,impute,unusual,report")
    chosen = parser.parse_args()
    table = str(make(chosen.folder, chosen.rows, chosen.columns, chosen.holes)[chosen.kind])
    model, filled = str(chosen.folder / "large.gibbs"), str(chosen.folder / f"filled.{chosen.kind}")
    commands = {
        "fit": ("fit", table, "--drop", "id", "--out", model, "--quiet"),
        "impute": ("impute", model, table, "--out", filled),
        "unusual": ("unusual", model, table),
        "report": ("report", model, "--data", table, "--out", str(chosen.folder / "report.html")),
    }
    for name in chosen.commands.split(","):
        seconds, peak = measured(*commands[name])
        print(f"{name}: {seconds:.1f} processor seconds, peak {peak:.2f} GB", flush=True)


if __name__ == "__main__":
    main()
