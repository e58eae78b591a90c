"""``gibbsian structure`` and ``gibbsian intervals``: which columns interact, and how surely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gibbsian.cli import options
from gibbsian.cli.bars import watched
from gibbsian.cli.guard import Command, tell
from gibbsian.cli.output import check_distinct, check_target, print_json, print_tables, table_record
from gibbsian.cli.table import Reading
from gibbsian.errors import ArgumentError


@click.command(cls=Command)
@options.data_file
@click.option("--method", default="l1-ebic", help="l1-ebic, rise, logrise, rple or decimation.")
@click.option("--rule", help="Keep an edge that both ends ask for (and), or one of them (or).")
@click.option("--out", "-o", type=options.PATH, metavar="MODEL", help="Write the refitted model.")
@click.option("--learner", default="mple", help="The learner of the refit on the edges that were kept.")
@click.option("--l2", type=float, default=0.0, help="Penalty of the refit, (l2/2) sum parameter^2.")
@click.option("--tol", type=float, help="How exactly the fits on the way are solved.")
@options.json
@options.quiet
@options.reading
def structure(
    data: Path,
    method: str,
    rule: str | None,
    out: Path | None,
    learner: str,
    l2: float,
    tol: float | None,
    json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Find which columns interact, and refit a machine on those edges."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.estimators import BoltzmannMachine
    from gibbsian.structure import learn_structure

    check_target(out)
    check_distinct(data=data, out=out)
    reading = Reading(**flags)
    table = reading.read(BoltzmannMachine(**reading.declared()), data)
    if not quiet:
        announce_compilation()
    given = {"rule": rule, "tol": tol}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with watched():
        found = learn_structure(table, method, learner=learner, l2=l2, **settings)
    if out is not None:
        found.machine.save(out)
    couplings = {"couplings": found.machine.strongest_couplings()}
    if json:
        print_json({"method": found.method, "edges": found.edges(), **table_record(couplings), "model": out})
    elif not quiet:
        n = found.graph.n_nodes
        tell(f"{found.method}: {found.graph.n_edges} of {n * (n - 1) // 2} pairs interact")
        print_tables(couplings)
        if out is not None:
            tell(f"model written to {out}")


@click.command(cls=Command)
@options.model_file
@options.data_file
@click.option("--level", type=float, default=0.95, help="How often the intervals shall cover the truth.")
@click.option(
    "--bootstrap",
    type=int,
    default=0,
    metavar="N",
    help="Resample the rows N times instead of using the curvature; 0 does not.",
)
@options.top(20)
@options.picture
@options.seed
@options.json
def intervals(
    model: Path,
    data: Path,
    level: float,
    bootstrap: int,
    top: int,
    picture: Path | None,
    seed: int | None,
    json: bool,
) -> None:
    """Print confidence intervals of the parameters, from the data that the model was fitted to."""
    from gibbsian import plots, uncertainty

    check_target(picture, options.PICTURES, "--picture")
    check_distinct(model=model, data=data, picture=picture)
    if not 0 < level < 1:
        raise ArgumentError(f"--level {level} must be between 0 and 1")
    if bootstrap < 0:
        raise ArgumentError(f"--bootstrap {bootstrap} must be zero or positive")
    machine = options.load_model(model, seed)
    table = machine.read(data)
    uncertainty.check_same_data(machine, table)
    with watched():
        if bootstrap:
            errors: Any = uncertainty.bootstrap(machine, table, bootstrap, random_state=seed)
        else:
            errors = uncertainty.standard_errors(machine, table)
    listed = _strongest(machine, errors, level, top)
    if picture is not None:
        plots.save_figure(plots.intervals(errors, n=top, level=level), picture)
    if json:
        rows = [row for rows in table_record(listed).values() for row in rows]
        print_json({"level": level, "intervals": rows})
    else:
        tell(f"{level:.0%} intervals")
        print_tables(listed)


def _strongest(machine: Any, errors: Any, level: float, top: int) -> dict[str, Any]:
    """Return the strongest interactions of each kind with their errors and the ends of their intervals."""
    limits, theta, start = errors.intervals(level), errors.model.theta, 0
    tables = {}
    for title, named in machine.statistics().items():
        part = slice(start, start + len(named))
        start = part.stop
        if machine.model_.penalised[part].any():  # biases are not asked about
            found = named.assign(
                estimate=theta[part], error=errors.theta_se[part], low=limits.low[part], high=limits.high[part]
            )
            tables[title] = found.sort_values("estimate", key=abs, ascending=False, kind="stable").head(top)
    return tables
