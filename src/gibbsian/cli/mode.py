"""The command ``mode``: the most probable row of a model, given some cells or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gibbsian.cli import options
from gibbsian.cli.guard import tell
from gibbsian.cli.output import check_distinct, print_json, write_table
from gibbsian.cli.questions import beside, question
from gibbsian.errors import ArgumentError
from gibbsian.startup import numpy as np


@question(of_rows=False)
@click.option("--given", multiple=True, metavar="COL=VALUE", help="A cell that is known (repeatable).")
@click.option("--rows", type=options.PATH, metavar="FILE", help="Complete the rows of a table instead of one row.")
@click.option("--n-states", type=int, default=1, metavar="N", help="So many rows, from the most probable one on.")
@click.option("--joint", is_flag=True, help="Hidden units, or the class, are part of the state and not summed out.")
@click.option("--method", default="auto", help="auto, exact or annealing.")
@click.option("--restarts", type=int, metavar="N", help="Chains of a round of annealing.")
def mode(
    machine: Any, given: tuple[str, ...], rows: Path | None, joint: bool, out: Path | None, json: bool, **search: Any
) -> None:
    """Print the most probable row, its log-weight, and how far a better one could be above it (0: exact)."""
    check_distinct(rows=rows, out=out)
    evidence = dict(_cell(cell) for cell in given) or None
    table = None if rows is None else machine.read(rows)
    found = machine.most_probable(table, evidence, joint=joint, **search)
    names, values = list(machine.names_), found.rows
    if found.hidden is not None:
        names += ["class"] if found.hidden.ndim == 1 else [f"h{j}" for j in range(found.hidden.shape[1])]
        values = beside(values, found.hidden)
    about = {"log_weight": found.log_weights, "gap": found.gaps, "probability": found.probabilities}
    if out is not None or not json:
        columns = beside(np.column_stack(list(about.values())), np.array(found.methods))
        write_table(out, [*names, *about, "method"], beside(values, columns))
    if json:
        where = {"columns": names, "values": values} if out is None else {"out": out}
        print_json({"exact": found.exact, "bound": found.bounds, **about, "method": found.methods, **where})
    elif out is not None:
        tell(f"{len(values)} rows: written to {out}")


def _cell(written: str) -> tuple[str, str]:
    """Split what is written as column=value."""
    name, sign, value = written.partition("=")
    if not sign or not value:
        raise ArgumentError("must be COLUMN=VALUE", "as in --given party=democrat", argument="given", value=written)
    return name, value
