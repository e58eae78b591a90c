"""One question about many files: asked of each, here in turn or by the workers of a cluster, and answered as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from gibbsian.cli.guard import tell
from gibbsian.cli.options import TABLE_FORMATS
from gibbsian.cli.output import SAFE_CSV, check_target, collected, print_json, print_table
from gibbsian.cli.table import source_of
from gibbsian.errors import ArgumentError, GibbsianError
from gibbsian.startup import numpy as np

# What tables of the least probable are sorted by.
LEAST_FIRST = {"unusual_rows": "log_weight", "unusual_cells": "probability"}

# What of an answer's JSON is kept of many files, beside means.
KEPT = ("rows", "filled_cells", "out", *LEAST_FIRST)


def files_in(data: Path | None) -> list[str]:
    """Return the files that a pattern stands for; none where it is a file or stdin."""
    if data is None or not any(sign in str(data) for sign in "*?[") or data.exists():
        return []
    from gibbsian.cluster.sources import files_named

    return files_named(source_of(data))


def targets_in(out: Path, files: Sequence[str]) -> list[Path]:
    """Return the files that answers go to: of the same names in a folder, or by a pattern with their stems in it."""
    names, taken = [Path(file).name for file in files], {Path(file).resolve() for file in files}
    if "*" in out.name:
        found = [out.with_name(out.name.replace("*", name.split(".")[0])) for name in names]
    elif out.is_dir() or not out.suffix:
        out.mkdir(exist_ok=True)
        found = [out / name for name in names]
    else:
        raise ArgumentError(f"--out {out} is one file, but there are many", "give a folder, or a name with a * in it")
    if len(set(found)) < len(found):
        raise ArgumentError(f"--out {out} gives several files one name", "ask about some of them at a time")
    for path in found:
        check_target(path, TABLE_FORMATS)
        if path.resolve() in taken:
            raise ArgumentError(f"--out {path} is a data file", "give another name")
    return found


def ask_each(
    answer: Callable[..., None],
    machine: Any,
    tasks: Sequence[dict[str, Any]],
    cluster: str | None,
    seed: int | None,
) -> list[dict[str, Any]]:
    """Return what a question's JSON says in each task, which has a generator of its own."""
    from gibbsian.backends.processes import map_fits
    from gibbsian.cluster.connection import fits_on
    from gibbsian.progress import counted

    seeds = np.random.SeedSequence(seed).generate_state(len(tasks)).tolist()
    safe = bool(click.get_current_context().meta.get(SAFE_CSV))
    with fits_on(cluster):
        found = map_fits(partial(_record, answer, machine, safe), zip(tasks, seeds, strict=True))
        return list(counted(found, "files", len(tasks)))


def _record(answer: Callable[..., None], machine: Any, safe: bool, task: tuple[dict[str, Any], int]) -> dict[str, Any]:
    """Ask about one file, which on another store is fetched, and return the answer's JSON."""
    from gibbsian.cluster.sources import local_path

    settings, seed = task
    given = settings.get("data")
    own = settings if given is None else {**settings, "data": local_path(given)}
    with click.Context(click.Command("many"), obj=None) as context, collected() as records:
        context.meta[SAFE_CSV] = safe
        try:
            answer(machine.set_params(random_state=seed), **own)
        except GibbsianError as error:
            if given is None or given in error.reason:
                raise
            raise type(error)(f"{given}: {error.reason}", error.remedy) from None
    return {key: value for key, value in records[0].items() if key in KEPT or key.startswith("mean_")}


def tell_together(
    records: Sequence[dict[str, Any]], names: Sequence[str], out: Path | None, top: int, json: bool
) -> None:
    """Print the answers about many files as one: counts added, means by rows, the least probable of all."""
    rows = [record.get("rows", 0) for record in records]
    known: dict[str, Any] = {"files": len(records)}
    for key in records[0]:
        values = [record[key] for record in records]
        if key in ("rows", "filled_cells"):
            known[key] = sum(values)
        elif key.startswith("mean_"):
            known[key] = _mean(values, rows)
        elif key in LEAST_FIRST:
            listed = [{"file": name, **row} for name, value in zip(names, values, strict=True) for row in value]
            known[key] = sorted(listed, key=lambda row: row[LEAST_FIRST[key]])[:top]
        else:
            known[key] = out
    if json:
        print_json(known)
        return
    for key in LEAST_FIRST:
        if listed := known.pop(key, []):
            print_table(key.replace("_", " "), list(listed[0]), [list(row.values()) for row in listed])
    tell(", ".join(f"{key.replace('_', ' ')}: {_shown(value)}" for key, value in known.items()))


def _mean(values: Sequence[Any], rows: Sequence[int]) -> Any:
    """Return the mean of numbers, or of the sides of intervals, by the rows that they are of."""
    if isinstance(values[0], dict):
        return {side: _mean([value[side] for value in values], rows) for side in values[0]}
    if None in values:
        return None
    return sum(value * n for value, n in zip(values, rows, strict=True)) / sum(rows)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " to ".join("?" if side is None else f"{side:.6f}" for side in value.values())
    return f"{value:.6f}" if isinstance(value, float) else str(value)
