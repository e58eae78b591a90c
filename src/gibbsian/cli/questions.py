"""Commands that ask a fitted model: ``score``, ``sample``, ``expect``, ``impute``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gibbsian.cli.guard import guarded
from gibbsian.cli.models import require_answer
from gibbsian.cli.options import Convert, Data, Json, Model, Seed, Weights, load_machine
from gibbsian.cli.output import TABLE_FORMATS, check_distinct, check_target, print_json, print_sections, write_table
from gibbsian.cli.show import partition_record
from gibbsian.errors import ArgumentError, MissingValuesError

OutTable = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help=f"A file ending in {', '.join(TABLE_FORMATS)}; CSV on stdout without it."
    ),
]
Samples = Annotated[int | None, typer.Option("-n", "--samples", metavar="N", help="How many samples a method draws.")]


# -- score ------------------------------------------------------------------------------------------------------------
@guarded
def score(
    model: Model,
    data: Data,
    per_row: Annotated[bool, typer.Option("--per-row", help="Give the log-likelihood of each row.")] = False,
    pseudo: Annotated[
        bool, typer.Option("--pseudo", help="Log-pseudolikelihood instead, which suits a model of any size.")
    ] = False,
    method: Annotated[
        str | None,
        typer.Option(
            help="exact, or between two sides by annealed importance sampling (ais); exact by default, if in reach."
        ),
    ] = None,
    samples: Samples = None,
    betas: Annotated[int | None, typer.Option(metavar="K", help="Temperatures of `--method ais`.")] = None,
    out: OutTable = None,
    weights: Weights = None,
    convert: Convert = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Print the mean log-likelihood per row, in nats; missing cells are summed out."""
    _check_score(per_row, pseudo, method, samples, betas, out)
    check_distinct(model=model, out=out)
    check_distinct(data=data, out=out)
    machine = load_machine(model, seed)
    kind = require_answer("score", machine)
    for flag, asked, can in (("--pseudo", pseudo, "pseudo_score"), ("--method", method, "score_interval")):
        if asked and not hasattr(machine, can):
            raise ArgumentError(f"{flag} belongs to machines with a log Z, which this model is not", "leave it out")
    if per_row and not hasattr(machine, "score_samples"):
        raise ArgumentError("--per-row gives log-likelihoods, which a clustering does not have", "leave it out")
    machine, rows = kind.family.read(machine, data, weights, convert)
    if method is None and not (per_row or pseudo) and getattr(machine, "needs_interval", False):
        method = "ais"  # one number would be the optimistic or the pessimistic one
    if pseudo and rows.n_missing:
        raise MissingValuesError(
            f"--pseudo needs complete rows, but {rows.n_missing} cells are missing", "leave it out, or such rows"
        )
    if method == "ais":
        _print_interval(machine.score_interval(rows.table, rows.weights, samples, betas), rows.n_rows, json)
    elif per_row:
        _print_each(*_each(machine, rows, method), rows, out, json)
    elif pseudo:
        _print_mean("log_pseudolikelihood", machine.pseudo_score(rows.table), rows.n_rows, json)
    elif method == "exact" and hasattr(machine, "log_likelihood"):  # its scores may be bounds
        exact = machine.log_likelihood(rows.table, rows.weights, exact=True)
        _print_mean("log_likelihood", exact.lower, rows.n_rows, json)
    elif hasattr(machine, "score_samples"):
        _print_mean(_kind_of_score(machine), machine.score(rows.table, sample_weight=rows.weights), rows.n_rows, json)
    else:
        energy = -machine.score(rows.table, sample_weight=rows.weights)
        said = {"energy": energy, "rows": rows.n_rows}
        print_json(said) if json else print(f"energy: {energy:.6f} over {rows.n_rows} rows")


def _check_score(
    per_row: bool, pseudo: bool, method: str | None, samples: int | None, betas: int | None, out: Path | None
) -> None:
    if method not in (None, "exact", "ais"):
        raise ArgumentError("is not known", "use one of exact, ais", argument="method", value=method)
    if pseudo and method is not None:
        raise ArgumentError("--pseudo needs no log Z", "leave --method out")
    if per_row and (pseudo or method == "ais"):
        raise ArgumentError(
            "--per-row gives one number for each row", f"leave {'--pseudo' if pseudo else '--method'} out"
        )
    if method != "ais" and (samples is not None or betas is not None):
        raise ArgumentError("--samples and --betas belong to --method ais", "leave them out")
    if out is not None and not per_row:
        raise ArgumentError("--out writes the log-likelihood of each row", "add --per-row")
    check_target(out, TABLE_FORMATS)


def _kind_of_score(machine: Any) -> str:
    """What the scores of a machine are: log-likelihoods, unless it says otherwise."""
    return getattr(machine, "score_kind", "log_likelihood")


def _print_mean(kind: str, mean: float, n_rows: int, json: bool) -> None:
    if json:
        print_json({f"mean_{kind}": mean, "rows": n_rows})
    else:
        print(f"mean {kind.replace('_', '-')} per row: {mean:.6f} nats over {n_rows} rows")


def _each(machine: Any, rows: Any, method: str | None) -> tuple[str, Any]:
    """What the scores of single rows are, and the scores."""
    if method == "exact" and hasattr(machine, "log_likelihood"):
        return "log_likelihood", machine.log_likelihood(rows.table, exact=True).per_row()
    return _kind_of_score(machine), machine.score_samples(rows.table)


def _print_each(kind: str, each: Any, rows: Any, out: Path | None, json: bool) -> None:
    import numpy as np

    mean = float(np.average(each, weights=rows.weights))
    if out is not None or not json:
        write_table(out, [kind], each[:, None])
    if json:
        print_json({f"mean_{kind}": mean, "rows": rows.n_rows, "per_row": each})
    elif out is not None:
        _print_mean(kind, mean, rows.n_rows, json)


def _print_interval(found: Any, n_rows: int, json: bool) -> None:
    if json:
        sides = {"lower": found.lower, "upper": found.upper}
        partition = partition_record(found.log_partition)
        print_json({"mean_log_likelihood": sides, "rows": n_rows, "log_partition": partition})
        return
    if found.upper == float("inf"):  # a lower bound is all that is known
        print(f"mean log-likelihood per row: at least {found.lower:.6f} nats over {n_rows} rows, a lower bound")
    else:
        print(f"mean log-likelihood per row: between {found.lower:.6f} and {found.upper:.6f} nats over {n_rows} rows")
    print(found.log_partition.describe())


# -- rows -------------------------------------------------------------------------------------------------------------
@guarded
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", "--samples", "--n-samples", help="How many rows.")] = 1,
    out: OutTable = None,
    method: Annotated[
        str, typer.Option(help="auto, exact, or a sampler by name (gibbs, ...); a wrong name lists them all.")
    ] = "auto",
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Draw rows from a model, in the coding of the data it was fitted on."""
    check_target(out, TABLE_FORMATS)
    check_distinct(model=model, out=out)
    machine = load_machine(model, seed)
    names, rows = require_answer("sample", machine).family.sample(machine, n, method)
    if out is not None or not json:
        write_table(out, names, rows)
    _report_rows(json, out, names, rows)


@guarded
def impute(
    model: Model,
    data: Data,
    out: OutTable = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Write the probability of the upper value of each cell instead, or of each of its many values.",
        ),
    ] = False,
    convert: Convert = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Fill the missing cells given the present ones of their row; the model's columns, all rows in order."""
    check_target(out, TABLE_FORMATS)
    check_distinct(model=model, out=out)
    check_distinct(data=data, out=out)
    machine = load_machine(model, seed)
    machine, read = require_answer("impute", machine).family.read(machine, data, None, convert)
    names: Sequence[str] = machine.names_
    if probabilities:
        names, rows = _flat(machine, machine.predict_proba(read.table))
    else:
        rows = machine.impute(read.table)
    if out is not None or not json:
        write_table(out, names, rows)
    _report_rows(json, out, names, rows, filled=read.n_missing)


def _flat(machine: Any, probabilities: Any) -> tuple[Sequence[str], Any]:
    """Give each value of each column a column of its own, called column=value, where columns have many values."""
    import numpy as np

    if probabilities.ndim == 2:
        return machine.names_, probabilities
    labels = [machine.coding_.labels_of(j) for j in range(len(machine.names_))]
    names = [f"{name}={label}" for name, known in zip(machine.names_, labels, strict=True) for label in known]
    return names, np.hstack([probabilities[:, j, : len(known)] for j, known in enumerate(labels)])


def _report_rows(json: bool, out: Path | None, names: Sequence[str], rows: Any, filled: int | None = None) -> None:
    """Say what was written; the rows themselves are in the JSON unless they went to a file."""
    if json:
        count = {} if filled is None else {"filled_cells": filled}
        where = {"columns": names, "values": rows} if out is None else {"out": out}
        print_json({"rows": len(rows), **count, **where})
    elif out is not None:
        note = "" if filled is None else f", {filled} cells filled"
        print(f"{len(rows)} rows{note}: written to {out}")


# -- expect -----------------------------------------------------------------------------------------------------------
@guarded
def expect(
    model: Model,
    method: Annotated[
        str, typer.Option(help="auto, exact, monte-carlo, s2-smci, ...; a wrong name lists them all.")
    ] = "auto",
    samples: Samples = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help=f"Write them to a {', '.join(TABLE_FORMATS)} file."),
    ] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Print what a model expects of columns and of the pairs or cliques it couples, with standard errors (0: exact)."""
    check_target(out, TABLE_FORMATS)
    check_distinct(model=model, out=out)
    machine = load_machine(model, seed)
    kind = require_answer("expect", machine)
    assert kind.expected is not None
    estimate = _estimate(machine, method, samples)
    rough = bool(estimate.diagnostics.get("approximate"))
    if rough:  # a zero would say that it is exact
        estimate = replace(estimate, stderr=estimate.stderr + float("nan"))
    sections = kind.expected(machine, estimate)
    if out is not None:
        write_table(out, *_plain_table(sections))
    domain = machine.coding_.domain
    if json:
        where = {"out": out} if out is not None else {section.key: section.json for section in sections}
        print_json({"domain": domain.name, "approximate": rough, **where})
    elif out is not None:
        print(f"{sum(len(section.rows) for section in sections)} expectations: written to {out}")
    else:
        if domain.two_valued:
            low, high = machine.coding_.low, machine.coding_.high
            print(f"values are {domain.low} for {low!r} and {domain.high} for {high!r}")
        print_sections(sections)
        if rough:
            print(f"{method} is an approximation whose error is not known: compare with exact or monte-carlo")


def _estimate(machine: Any, method: str, samples: int | None) -> Any:
    import inspect

    if samples is None:
        return machine.expect(method)
    if "n_samples" not in inspect.signature(machine.expect).parameters:
        raise ArgumentError("--samples belongs to methods that draw them, but this model is exact", "leave it out")
    return machine.expect(method, n_samples=samples)


def _plain_table(sections: Any) -> tuple[list[str], Any]:
    """One row for each expectation: what it is of, part by part, its mean and error."""
    import numpy as np

    labels = max((len(row) - 2 for section in sections for row in section.rows), default=1)
    names = ["statistic"] if labels == 1 else [f"part_{k + 1}" for k in range(labels)]
    rows = [
        (*map(str, row[:-2]), *[""] * (labels + 2 - len(row)), *row[-2:])
        for section in sections
        for row in section.rows
    ]
    return [*names, "mean", "standard_error"], np.array(rows, dtype=object)
