"""Commands ``query`` and ``divergence``: probabilities, entropies and how far two models are from each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gibbsian.cli import options
from gibbsian.cli.guard import tell
from gibbsian.cli.options import PATH, load_model
from gibbsian.cli.output import print_json, print_table, write_table
from gibbsian.cli.questions import question
from gibbsian.startup import numpy as np
from gibbsian.startup import pandas

_method = click.option(
    "--method", default="auto", help="auto, exact, or a sampler (gibbs, ...); a wrong name lists them all."
)


@question(of_rows=False)
@click.argument("queries", nargs=-1, required=True, metavar="QUERY...")
@_method
@options.samples
def query(
    machine: Any, queries: tuple[str, ...], method: str, n_samples: int | None, out: Path | None, json: bool
) -> None:
    """Answer queries: 'P(a=1, b | c=0)', 'H(a, b | c)', 'I(a; b | c)', with standard errors (0: exact).

    Columns without a value are listed over their values. Hidden units are called h0, h1, ..., a mixture's class class.
    """
    _give({text: machine.query(text, method, n_samples) for text in queries}, out, json)


@question(of_rows=False)
@click.argument("other", type=PATH, metavar="OTHER")
@_method
@options.samples
def divergence(machine: Any, other: Path, method: str, n_samples: int | None, out: Path | None, json: bool) -> None:
    """Print how far two models of the same columns are from each other, in nats, with standard errors (0: exact)."""
    found = machine.divergence(load_model(other), method=method, n_samples=n_samples)
    kinds = pandas.Index(["KL(model || other)", "KL(other || model)", "Jensen-Shannon"], name="divergence")
    numbers = {"nats": list(map(float, found)), "standard_error": [number.stderr for number in found]}
    _give({"divergence": pandas.DataFrame(numbers, kinds)}, out, json)


def _give(frames: dict[str, Any], out: Path | None, json: bool) -> None:
    """Print frames by title, or write all of them as one table."""
    tables = {title: _columns_and_rows(frame) for title, frame in frames.items()}
    if out is not None:
        rows = [
            (title, ", ".join(f"{name}={label}" for name, label in zip(names[:-2], row[:-2], strict=True)), *row[-2:])
            for title, (names, listed) in tables.items()
            for row in listed
        ]
        write_table(out, ["query", "at", "value", "standard_error"], np.array(rows, dtype=object))
    if json:
        records = {title: {"columns": names, "values": rows} for title, (names, rows) in tables.items()}
        print_json(records if out is None else {"out": out})
    elif out is not None:
        tell(f"{sum(map(len, frames.values()))} numbers: written to {out}")
    else:
        for title, (names, rows) in tables.items():
            print_table(title, names, rows, digits="#.6g")


def _columns_and_rows(frame: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return a frame with the levels of its index as columns; they may be called like one."""
    levels = [name for name in frame.index.names if name is not None]
    keys = frame.index.to_frame().to_numpy(dtype=object)[:, : len(levels)]
    numbers = frame.itertuples(index=False, name=None)
    return [*levels, *frame.columns], [(*key, *row) for key, row in zip(keys.tolist(), numbers, strict=True)]
