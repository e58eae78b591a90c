"""Commands that ask a fitted model: ``score``, ``sample``, ``expect``, ``impute``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gibbsian.cli.guard import guarded
from gibbsian.cli.options import Convert, Data, Json, Model, Seed, Weights, load_machine, read_for
from gibbsian.cli.output import TABLE_FORMATS, check_target, print_json, print_table, write_table

if TYPE_CHECKING:
    from gibbsian.estimators import BoltzmannMachine
    from gibbsian.expectations import Estimate

OutTable = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help=f"A file ending in {', '.join(TABLE_FORMATS)}; CSV on stdout without it."
    ),
]


@guarded
def score(
    model: Model,
    data: Data,
    per_row: Annotated[bool, typer.Option("--per-row", help="Give the log-likelihood of each row.")] = False,
    pseudo: Annotated[
        bool, typer.Option("--pseudo", help="Log-pseudolikelihood instead, which suits a model of any size.")
    ] = False,
    out: OutTable = None,
    weights: Weights = None,
    convert: Convert = False,
    json: Json = False,
) -> None:
    """Print the mean log-likelihood per row, in nats; missing cells are summed out."""
    import numpy as np

    from gibbsian.errors import ArgumentError

    if pseudo and per_row:
        raise ArgumentError("--per-row gives exact log-likelihoods: leave --pseudo out")
    if out is not None and not per_row:
        raise ArgumentError("--out writes the log-likelihood of each row: add --per-row")
    check_target(out, TABLE_FORMATS)
    machine, table = read_for(load_machine(model), data, weights, convert)
    if pseudo:
        mean, rows = machine.pseudo_score(table), None
    elif per_row:
        rows = machine.score_samples(table)
        mean = float(np.average(rows, weights=table.row_weights))
    else:
        mean, rows = machine.score(table), None
    kind = "log_pseudolikelihood" if pseudo else "log_likelihood"
    if rows is not None and (out is not None or not json):
        write_table(out, ["log_likelihood"], rows[:, None])
    if json:
        each = {} if rows is None else {"per_row": rows}
        print_json({f"mean_{kind}": mean, "rows": table.n_rows, **each})
    elif rows is None or out is not None:
        print(f"mean {kind.replace('_', '-')} per row: {mean:.6f} nats over {table.n_rows} rows")


@guarded
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", "--n-samples", help="How many rows.")] = 1,
    out: OutTable = None,
    method: Annotated[
        str, typer.Option(help="auto, exact, or a sampler by name (gibbs, ...); a wrong name lists them all.")
    ] = "auto",
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Draw rows from a model, in the coding of the data it was fitted on."""
    check_target(out, TABLE_FORMATS)
    machine = load_machine(model, seed)
    rows = machine.sample(n, method=method)
    if out is not None or not json:
        write_table(out, machine.names_, rows)
    _report_rows(json, out, machine, rows)


@guarded
def impute(
    model: Model,
    data: Data,
    out: OutTable = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write the probability of the upper value of each cell instead.")
    ] = False,
    convert: Convert = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Fill the missing cells given the present ones of their row; the model's columns, all rows in order."""
    check_target(out, TABLE_FORMATS)
    machine, table = read_for(load_machine(model, seed), data, convert=convert)
    rows = machine.predict_proba(table) if probabilities else machine.impute(table)
    filled = 0 if table.missing is None else int(table.missing[table.row_of].sum())
    if out is not None or not json:
        write_table(out, machine.names_, rows)
    _report_rows(json, out, machine, rows, filled=filled)


def _report_rows(json: bool, out: Path | None, machine: BoltzmannMachine, rows: Any, filled: int | None = None) -> None:
    """Say what was written; the rows themselves are in the JSON unless they went to a file."""
    if json:
        count = {} if filled is None else {"filled_cells": filled}
        where = {"columns": machine.names_, "values": rows} if out is None else {"out": out}
        print_json({"rows": len(rows), **count, **where})
    elif out is not None:
        note = "" if filled is None else f", {filled} cells filled"
        print(f"{len(rows)} rows{note}: written to {out}")


@guarded
def expect(
    model: Model,
    method: Annotated[str, typer.Option(help="auto, exact, monte-carlo, ...; a wrong name lists them all.")] = "auto",
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Print the model's expected values of columns and of products of pairs, with standard errors (0 when exact)."""
    machine = load_machine(model, seed)
    estimate = machine.expect(method)
    means, pairs = _labelled(machine, estimate)
    if json:
        columns = ("mean", "standard_error")
        print_json(
            {
                "domain": machine.model_.domain.name,
                "means": [dict(zip(("column", *columns), row, strict=True)) for row in means],
                "pairs": [dict(zip(("first", "second", *columns), row, strict=True)) for row in pairs],
            }
        )
        return
    low, high = machine.model_.domain.low, machine.model_.domain.high
    print(f"values are {low} for {machine.coding_.low!r} and {high} for {machine.coding_.high!r}")
    if means:
        print_table("columns", ("column", "mean", "standard error"), means)
    if pairs:
        print_table("pairs", ("first", "second", "mean of product", "standard error"), pairs)


def _labelled(machine: BoltzmannMachine, estimate: Estimate) -> tuple[list[tuple], list[tuple]]:
    """Name the entries of the parameter layout: columns (unless there are no biases), then edges."""
    model, names = machine.model_, machine.names_
    numbers = list(zip(estimate.mean.tolist(), estimate.stderr.tolist(), strict=True))
    columns = [(name,) for name in names[: model.n_biases]]
    edges = [(names[i], names[j]) for i, j in model.graph.edges]
    labelled = [(*label, *pair) for label, pair in zip([*columns, *edges], numbers, strict=True)]
    return labelled[: len(columns)], labelled[len(columns) :]
