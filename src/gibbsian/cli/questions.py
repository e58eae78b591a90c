"""Commands that ask a fitted model: ``score``, ``unusual``, ``sample``, ``expect``, ``impute``, ``predict``, ..."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from gibbsian.cli import options
from gibbsian.cli.bars import watched
from gibbsian.cli.guard import Command, tell
from gibbsian.cli.options import OUT_FORMATS, load_model
from gibbsian.cli.output import (
    check_distinct,
    check_target,
    print_json,
    print_tables,
    table_record,
    write_parts,
    write_table,
)
from gibbsian.cli.show import partition_record
from gibbsian.errors import ArgumentError
from gibbsian.startup import numpy as np


def question(of_rows: bool, whole: bool = True) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command that asks a fitted model, about rows of a table or without any.

    The function gets the model and the rows; files are checked and read before. Where the table need not be `whole` in
    memory the function gets its path (or the words of stdin), and how to read it.
    """
    common = [options.out_table, options.seed, options.json]
    common = [options.model_file, *([options.data_file, options.convert] if of_rows else []), *common]

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def ask(model: Path, out: Path | None, seed: int | None, data: Path | None = None, **own: Any) -> None:
            from gibbsian.data.chunks import rereadable

            check_distinct(model=model, out=out)
            check_target(out, OUT_FORMATS)
            check_distinct(data=data, out=out)
            machine = load_model(model, seed)
            how: dict[str, Any] = {name: own.pop(name) for name in ("weights", "convert") if name in own}
            if "columns" in own:  # which are to be predicted, so the table need not have them
                own["columns"] = how["unseen"] = _names_in(own["columns"], machine.names_)
            rows = [] if data is None else [machine.read(data, **how) if whole else rereadable(data)]
            with watched():
                function(machine, *rows, out=out, **own, **({} if whole else how))

        for option in reversed(common):
            ask = option(ask)
        return click.command(cls=Command)(ask)

    return decorate


# -- score ------------------------------------------------------------------------------------------------------------
@question(of_rows=True, whole=False)
@click.option("--per-row", is_flag=True, help="Give the log-likelihood of each row, beside its identifiers.")
@click.option("--pseudo", is_flag=True, help="Log-pseudolikelihood instead, which suits a model of any size.")
@click.option("--method", help="exact, or ais (between two sides by annealed importance sampling); exact if in reach.")
@options.samples
@click.option("--betas", type=int, metavar="K", help="Temperatures of `--method ais`.")
@options.weights
def score(
    machine: Any,
    data: Any,
    per_row: bool,
    pseudo: bool,
    method: str | None,
    n_samples: int | None,
    betas: int | None,
    out: Path | None,
    json: bool,
    **how: Any,
) -> None:
    """Print the mean log-likelihood per row, in nats; missing cells are summed out."""
    from gibbsian.estimators.row_questions import other_columns

    _check_score(per_row, pseudo, method, n_samples, betas, out)
    rows = machine.read(data, **how)
    if pseudo:
        _print_mean("log_pseudolikelihood", machine.pseudo_score(rows), rows.n_rows, json)
        return
    if method == "exact":
        machine.log_partition("exact")
    if not per_row and (method == "ais" or (method is None and not machine.sums_exactly())):
        found = machine.score_interval(rows, n_samples=n_samples, betas=betas, method=method or "auto")
        _print_interval(found, rows.n_rows, json)
        return
    insist = method == "exact" and machine.scores_are_bounds
    found = machine.log_likelihood(rows, exact=True) if insist else None
    kind, sign = ("log_likelihood", 1) if insist else _kind_of_score(machine, annealed=method == "ais")
    if not per_row:
        _print_mean(kind, sign * machine.score(rows) if found is None else found.lower, rows.n_rows, json)
        return
    log_partition = machine.log_partition("ais", n_samples, betas) if method == "ais" else None
    own = {} if log_partition is None else {"log_partition": log_partition}
    each = sign * machine.score_samples(rows, **own) if found is None else found.per_row()
    mean = float((rows.shares * each).sum())
    names = other_columns(machine, data, [how["weights"]])
    _print_each(kind, each, mean, names, out, json, partition_record(log_partition) if own else None)


def _kind_of_score(machine: Any, annealed: bool) -> tuple[str, int]:
    """Say what the scores of a model are, and with which sign it is printed."""
    if not machine.has_density:
        return "energy", -1
    if machine.scores_are_bounds:
        return "log_likelihood_lower_bound", 1
    return "log_likelihood_estimate" if annealed or not machine.sums_exactly() else "log_likelihood", 1


def _check_score(
    per_row: bool, pseudo: bool, method: str | None, n_samples: int | None, betas: int | None, out: Path | None
) -> None:
    if method not in (None, "exact", "ais"):
        raise ArgumentError("is not known", "use one of exact, ais", argument="method", value=method)
    if pseudo and method is not None:
        raise ArgumentError("--pseudo needs no log Z", "leave --method out")
    if per_row and pseudo:
        raise ArgumentError("--per-row gives log-likelihoods", "leave --pseudo out")
    if method != "ais" and (n_samples is not None or betas is not None):
        raise ArgumentError("--samples and --betas belong to --method ais", "leave them out")
    if out is not None and not per_row:
        raise ArgumentError("--out writes the log-likelihood of each row", "add --per-row")


def _print_mean(kind: str, mean: float, n_rows: int, json: bool) -> None:
    if json:
        print_json({f"mean_{kind}": mean, "rows": n_rows})
    else:
        unit = "" if kind == "energy" else " nats"
        tell(f"mean {kind.replace('_', '-')} per row: {mean:.6f}{unit} over {n_rows} rows")


def _print_each(
    kind: str, each: Any, mean: float, names: dict[str, list[Any]], out: Path | None, json: bool, partition: Any
) -> None:
    """Print or write the scores of rows, after what names the rows."""
    if out is not None or not json:
        table = np.array([*names.values(), each], dtype=object).T if names else each[:, None]
        write_table(out, [*names, kind], table)
    if json:
        known = {} if partition is None else {"log_partition": partition}
        known |= {"identifiers": names} if names else {}
        print_json({f"mean_{kind}": mean, "rows": len(each), "per_row": each, **known})
    elif out is not None:
        _print_mean(kind, mean, len(each), json)


def _print_interval(found: Any, n_rows: int, json: bool) -> None:
    if json:
        sides = {"lower": found.lower, "upper": found.upper}
        partition = partition_record(found.log_partition)
        print_json({"mean_log_likelihood": sides, "rows": n_rows, "log_partition": partition})
        return
    if found.upper == float("inf"):  # a lower bound is all that is known
        tell(f"mean log-likelihood per row: at least {found.lower:.6f} nats over {n_rows} rows, a lower bound")
    else:
        tell(f"mean log-likelihood per row: between {found.lower:.6f} and {found.upper:.6f} nats over {n_rows} rows")
    tell(found.log_partition.describe())


# -- rows -------------------------------------------------------------------------------------------------------------
@question(of_rows=False)
@click.option("--samples", "--n-samples", "-n", "n_samples", type=int, default=1, help="How many rows.")
@click.option("--method", default="auto", help="auto, exact, or a sampler (gibbs, ...); a wrong name lists them all.")
@click.option("--hidden", is_flag=True, help="Add the hidden units, or the class, of each row.")
@click.option("--temperature", type=float, metavar="T", help="Divide energies by this; the model's own if not given.")
def sample(machine: Any, n_samples: int, hidden: bool, out: Path | None, json: bool, **how: Any) -> None:
    """Draw rows from a model, in the coding of the data it was fitted on."""
    names, rows = list(machine.names_), machine.sample(n_samples, return_hidden=hidden, **how)
    if hidden:
        rows, units = rows
        names += ["class"] if units.ndim == 1 else [f"h{j}" for j in range(units.shape[1])]
        rows = beside(rows, units)
    _write_rows(json, out, names, rows)


def beside(rows: Any, hidden: Any) -> Any:
    """Put the hidden values after the columns; as objects each stays of its own kind."""
    return np.column_stack([rows.astype(object), hidden.astype(object)])


@question(of_rows=True, whole=False)
@click.option(
    "--probabilities", is_flag=True, help="Write the probability of each cell's upper value, or of its many values."
)
def impute(machine: Any, data: Path, probabilities: bool, convert: bool, out: Path | None, json: bool) -> None:
    """Fill the missing cells given the present ones of their row; all columns and rows stay where they are."""
    from gibbsian.estimators.row_questions import fills_file

    in_parts = out is not None or not json
    if in_parts and not (probabilities or convert) and fills_file(machine, data):
        _fill_file(machine, data, out, json)
        return
    rows, names = machine.read(data, convert=convert), machine.names_
    if probabilities and rows.coding.domain.name == "real":
        raise ArgumentError("real numbers have densities and no --probabilities", "leave it out")
    if probabilities:
        asked = getattr(machine, "cell_probabilities", machine.predict_proba)
        names, filled = _flat(machine, asked(rows))
    else:
        filled = machine.impute(rows)
    _write_rows(json, out, names, filled, n_filled=int(rows.missing[rows.row_of].sum()) if rows.has_missing else 0)


def _fill_file(machine: object, data: Path, out: Path | None, json: bool) -> None:
    """Write a table with its missing cells filled, a part at a time, and say how many these were."""
    from gibbsian.estimators.row_questions import filled_parts

    n_rows = n_filled = 0

    def written() -> Iterator[Any]:
        nonlocal n_rows, n_filled
        for part, filled in filled_parts(machine, data):
            n_rows, n_filled = n_rows + len(part), n_filled + filled
            yield part

    write_parts(out, written(), as_text=getattr(data, "suffix", "").lower() != ".parquet")
    if json:
        print_json({"rows": n_rows, "filled_cells": n_filled, "out": out})
    elif out is not None:
        tell(f"{n_rows} rows, {n_filled} cells filled: written to {out}")


@question(of_rows=True, whole=False)
@click.option("--top", type=click.IntRange(min=1), default=20, help="How many rows, and how many cells.")
@click.option("--cells", is_flag=True, help="Write the cells to the file of --out, instead of the rows.")
def unusual(machine: Any, data: Path, top: int, cells: bool, convert: bool, out: Path | None, json: bool) -> None:
    """Print the least probable rows, and the cells that are least probable given the rest of their row."""
    rows = machine.read(data, convert=True) if convert else data
    if out is not None:
        found = machine.unusual(rows, top, cells=cells)
        write_table(out, list(found.columns), found.to_numpy())
        tables = {"unusual cells" if cells else "unusual rows": found}
    else:
        tables = {"unusual rows": machine.unusual(rows, top)}
        if "column" in tables["unusual rows"]:  # real numbers have densities and no probabilities
            tables["unusual cells"] = machine.unusual(rows, top, cells=True)
    if json:
        print_json({"out": out} if out is not None else table_record(tables))
    elif out is not None:
        tell(f"{len(found)} {'cells' if cells else 'rows'}: written to {out}")
    else:
        print_tables(tables)


@question(of_rows=True)
@click.option("--columns", required=True, metavar="A,B,...", help="The columns to tell by all others, by name.")
@click.option("--probabilities", is_flag=True, help="Write the probability of each of their values.")
@click.option("--joint", is_flag=True, help="Take them together: the most probable combination, or all probabilities.")
@click.option(
    "--losses", metavar="A,B;C,D", help="What a decision costs: a row for each true value, a number for each decision."
)
def predict(
    machine: Any,
    rows: Any,
    columns: list[str],
    probabilities: bool,
    joint: bool,
    losses: str | None,
    out: Path | None,
    json: bool,
) -> None:
    """Tell columns by all others of their row: the values of least expected loss, or the probabilities of all."""
    if losses is not None and (probabilities or joint):
        raise ArgumentError("--losses is for decisions about single columns", "leave --probabilities and --joint out")
    if not probabilities:
        decided = machine.predict(rows, columns=columns, losses="joint" if joint else _losses(losses, len(columns)))
        _write_rows(json, out, columns, decided)
        return
    found = machine.predict_proba(rows, columns=columns, joint=joint)
    labels = [machine.coding_.labels_of(machine.names_.index(name)) for name in columns]
    values = [[f"{name}={label}" for label in known] for name, known in zip(columns, labels, strict=True)]
    if joint:
        _write_rows(json, out, [" ".join(each) for each in itertools.product(*values)], found)
    else:
        _write_rows(json, out, list(itertools.chain(*values)), np.hstack(found))


def _names_in(text: str, known: Sequence[str]) -> list[str]:
    """Return one name, or several with commas between them; each must be known."""
    names = [text] if text in known else text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise ArgumentError(f"names {unknown[0]!r}, which the model does not have", argument="columns", value=text)
    return names


def _losses(text: str | None, n_columns: int) -> Any:
    """Return the matrix that a text stands for, for each column."""
    if text is None:
        return None
    try:
        matrix = [[float(number) for number in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise ArgumentError("must be numbers such as `0,1;5,0`", argument="losses", value=text) from None
    if len({len(row) for row in matrix} | {len(matrix)}) > 1:
        raise ArgumentError("must have as many rows as columns", argument="losses", value=text)
    return [matrix] * n_columns


@question(of_rows=True)
def transform(machine: Any, rows: Any, out: Path | None, json: bool) -> None:
    """Write the probabilities of the hidden units, or of the classes, given each row."""
    if not machine.model_.n_hidden:
        raise ArgumentError(f"a {machine.registered_name} model has no hidden units", "fit one that has")
    _write_rows(json, out, list(machine.get_feature_names_out()), machine.transform(rows))


def _flat(machine: Any, probabilities: Any) -> tuple[Sequence[str], Any]:
    """Give each value of each column a column of its own, called column=value, where columns have many values."""
    if probabilities.ndim == 2:
        return machine.names_, probabilities
    labels = [machine.coding_.labels_of(j) for j in range(len(machine.names_))]
    names = [f"{name}={label}" for name, known in zip(machine.names_, labels, strict=True) for label in known]
    return names, np.hstack([probabilities[:, j, : len(known)] for j, known in enumerate(labels)])


def _write_rows(json: bool, out: Path | None, names: Sequence[str], rows: Any, n_filled: int | None = None) -> None:
    """Write rows to the file or to stdout, and say so; the rows are in the JSON unless they went to a file."""
    if out is not None or not json:
        write_table(out, names, rows)
    if json:
        count = {} if n_filled is None else {"filled_cells": n_filled}
        where = {"columns": names, "values": rows} if out is None else {"out": out}
        print_json({"rows": len(rows), **count, **where})
    elif out is not None:
        note = "" if n_filled is None else f", {n_filled} cells filled"
        tell(f"{len(rows)} rows{note}: written to {out}")


# -- expect -----------------------------------------------------------------------------------------------------------
@question(of_rows=False)
@click.option("--method", default="auto", help="auto, exact, monte-carlo, s2-smci, ...; a wrong name lists them all.")
@options.samples
def expect(machine: Any, method: str, n_samples: int | None, out: Path | None, json: bool) -> None:
    """Print what a model expects of columns and of the pairs or cliques it couples, with standard errors (0: exact)."""
    estimate = machine.expect(method, n_samples)
    rough = estimate.stderr is None
    errors = estimate.monte_carlo_error + (float("nan") if rough else 0.0)  # a zero would say that it is exact
    tables = dict(_with_numbers(machine.statistics(), mean=estimate.value, **{"standard error": errors}))
    if out is not None:
        write_table(out, *_one_table(tables))
    if json:
        where = {"out": out} if out is not None else table_record(tables)
        print_json({"domain": machine.coding_.domain.name, "approximate": rough, **where})
    elif out is not None:
        tell(f"{sum(map(len, tables.values()))} expectations: written to {out}")
    else:
        _print_expected(machine, tables)
        if rough:
            tell(f"{method} is an approximation whose error is not known: compare with exact or monte-carlo")


def _with_numbers(tables: dict[str, Any], **columns: Any) -> Iterator[tuple[str, Any]]:
    """Give tables that name the parameters one after the other columns of numbers in that order."""
    start = 0
    for title, table in tables.items():
        end = start + len(table)
        yield title, table.assign(**{name: values[start:end] for name, values in columns.items()})
        start = end


def _print_expected(machine: Any, tables: dict[str, Any]) -> None:
    domain = machine.coding_.domain
    if domain.two_valued:
        pairs = dict.fromkeys(machine.coding_.labels_of(j) for j in range(len(machine.names_)))
        low, high = (" or ".join(map(repr, dict.fromkeys(labels))) for labels in zip(*pairs, strict=True))
        tell(f"values are {domain.low} for {low} and {domain.high} for {high}")
    print_tables(tables)


def _one_table(tables: dict[str, Any]) -> tuple[list[str], Any]:
    """One row for each expectation: what it is of, part by part, its mean and error."""
    listed = [row for table in tables.values() for row in table.itertuples(index=False, name=None)]
    labels = max((len(row) - 2 for row in listed), default=1)
    names = ["statistic"] if labels == 1 else [f"part_{k + 1}" for k in range(labels)]
    rows = [(*map(_joined, row[:-2]), *[""] * (labels + 2 - len(row)), *row[-2:]) for row in listed]
    return [*names, "mean", "standard_error"], np.array(rows, dtype=object)


def _joined(label: object) -> str:
    return ", ".join(label) if isinstance(label, tuple) else str(label)
