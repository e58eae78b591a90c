"""``gibbsian structure`` and ``gibbsian intervals``: which columns interact, and how surely."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gibbsian.cli.guard import guarded
from gibbsian.cli.machines import pairwise_sections
from gibbsian.cli.models import require_answer
from gibbsian.cli.options import Data, Json, Model, Quiet, Seed, Weights, parse_coding
from gibbsian.cli.output import check_distinct, check_target, print_json, print_sections
from gibbsian.errors import ArgumentError

if TYPE_CHECKING:
    from gibbsian.structure import StructureResult


@guarded
def structure(
    data: Data,
    method: Annotated[str, typer.Option(help="l1-ebic, l1-ebic-joint, rise, logrise, rple or decimation.")] = "l1-ebic",
    rule: Annotated[
        str | None, typer.Option(help="Keep an edge that both ends ask for (and), or one of them (or).")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="MODEL", help="Write the refitted model.")] = None,
    learner: Annotated[str, typer.Option(help="The learner of the refit on the edges that were kept.")] = "mple",
    l2: Annotated[float, typer.Option(help="Penalty of the refit, (l2/2) sum parameter^2.")] = 0.0,
    coding: Annotated[str, typer.Option(help="auto, spin, binary, yes/no, y/n, true/false, or LOW,HIGH.")] = "auto",
    drop: Annotated[list[str] | None, typer.Option(metavar="COL", help="A column to leave out (repeatable).")] = None,
    weights: Weights = None,
    complete_rows: Annotated[bool, typer.Option("--complete-rows", help="Leave out rows with missing cells.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find which columns interact, and refit a machine on those edges."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.data import Dataset
    from gibbsian.structure import learn_structure

    check_target(out)
    check_distinct(data=data, out=out)
    table = Dataset.read(data, coding=parse_coding(coding), drop=drop or (), weight_column=weights)
    table = table.complete_rows() if complete_rows else table
    if not quiet:
        announce_compilation()
    settings: dict[str, Any] = {} if rule is None else {"rule": rule}
    found = learn_structure(table, method, learner=learner, l2=l2, **settings)
    if out is not None:
        found.machine.save(out)
    if json:
        print_json(_record(found, out))
    elif not quiet:
        _print(found, out)


def _record(found: StructureResult, out: Path | None) -> dict[str, Any]:
    return {
        "method": found.method,
        "edges": found.edges(),
        "couplings": pairwise_sections(found.machine, found.graph.n_edges)[-1].json,
        "model": out,
    }


def _print(found: StructureResult, out: Path | None) -> None:
    n = found.graph.n_nodes
    print(f"{found.method}: {found.graph.n_edges} of {n * (n - 1) // 2} pairs interact")
    print_sections(pairwise_sections(found.machine, found.graph.n_edges)[-1:])
    if out is not None:
        print(f"model written to {out}")


@guarded
def intervals(
    model: Model,
    data: Data,
    level: Annotated[float, typer.Option(help="How often the intervals shall cover the truth.")] = 0.95,
    bootstrap: Annotated[
        int, typer.Option(metavar="N", help="Resample the rows N times instead of using the curvature; 0 does not.")
    ] = 0,
    top: Annotated[int, typer.Option(min=0, help="How many of the strongest couplings to list.")] = 20,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Print confidence intervals of the couplings, from the data that the model was fitted to."""
    from gibbsian.cli.options import load_machine
    from gibbsian.cli.output import print_table

    if not 0 < level < 1:
        raise ArgumentError(f"--level {level} must be between 0 and 1")
    if bootstrap < 0:
        raise ArgumentError(f"--bootstrap {bootstrap} must be zero or positive")
    machine = load_machine(model, seed)
    machine, rows_of = require_answer("intervals", machine).family.read(machine, data)
    _check_same_data(machine, rows_of.table)
    limits, errors = _limits(machine, rows_of.table, level, bootstrap, seed)
    strongest = machine.strongest_couplings(top)
    rows = [
        (
            row.first,
            row.second,
            float(row.coupling),
            float(errors.loc[row.first, row.second]),
            float(limits.couplings_low.loc[row.first, row.second]),
            float(limits.couplings_high.loc[row.first, row.second]),
        )
        for row in strongest.itertuples(index=False)
    ]
    columns = ("first", "second", "coupling", "error", "low", "high")
    if json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(
            f"couplings with {level:.0%} intervals",
            columns,
            [(*row[:2], *(f"{x:.4f}" for x in row[2:])) for row in rows],
        )


def _check_same_data(machine: Any, data: Any) -> None:
    """Refuse data whose moments are not those that the model was fitted to."""
    import numpy as np

    from gibbsian.diagnostics import data_moments

    fitted = machine.result_.moments
    if fitted is None or machine.held_out:  # rows that were held out are in the file but not in the moments
        return
    given = data_moments(machine.model_, data)
    same = np.allclose(given.mean, fitted.mean, rtol=0, atol=1e-9, equal_nan=True)
    if not (same and np.allclose(given.count, fitted.count)):
        raise ArgumentError(
            "the data is not that which the model was fitted to (its means differ)", "intervals need the same rows"
        )


def _limits(machine: Any, table: Any, level: float, n_replicates: int, seed: int | None) -> tuple[Any, Any]:
    from gibbsian import uncertainty

    if n_replicates:
        resampled = uncertainty.bootstrap(machine, table, n_replicates, random_state=seed)
        return resampled.intervals(level), resampled.couplings
    errors = uncertainty.standard_errors(machine, table)
    return errors.intervals(level), errors.couplings
