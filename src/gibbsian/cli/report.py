"""``gibbsian report``: from a data file or a model file to a page that people can read."""

from __future__ import annotations

import hashlib
import shlex
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from gibbsian.cli import options
from gibbsian.cli.fit import prepared, split_flags
from gibbsian.cli.flags import BriefOption, ModelCommand
from gibbsian.cli.guard import speller, tell
from gibbsian.cli.output import check_distinct, check_target, print_json
from gibbsian.cli.show import record_of
from gibbsian.cli.verdict import exit_if_strict, leave_endings_to_verdict, strict, warn
from gibbsian.errors import ArgumentError, FileFormatError, GibbsianWarning

PAGES = (".html", ".htm")
DEFAULT = click.core.ParameterSource.DEFAULT


@click.command(cls=ModelCommand)
@click.argument("source", type=options.PATH, metavar="DATA|MODEL")
@click.option("--out", "-o", type=options.PATH, required=True, metavar="PAGE", help="The .html file.", cls=BriefOption)
@click.option("--data", type=options.PATH, metavar="DATA", help="The rows, for a report on a MODEL.", cls=BriefOption)
@options.kind_of_model
@options.seed
@options.json
@options.quiet
@strict
@options.reading
@click.pass_context
def report(
    ctx: click.Context,
    source: Path,
    out: Path,
    data: Path | None,
    seed: int | None,
    json: bool,
    quiet: bool,
    strict: bool,
    **flags: object,
) -> None:
    """Write a report on DATA, after a fit, or on a MODEL file: one page that opens in any browser, offline."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.report import write_report

    check_target(out, PAGES)
    check_distinct(source=source, data=data, out=out)
    if not quiet:
        announce_compilation()
    with warnings.catch_warnings(record=True) as caught:
        leave_endings_to_verdict()
        machine, rows = (
            _loaded(ctx, source, data, seed) if _is_model(source) else _fitted(ctx, source, data, seed, flags)
        )
    for entry in caught:
        warnings.showwarning(entry.message, entry.category, entry.filename, entry.lineno)
    warned = [entry.message.sentence(speller()) for entry in caught if isinstance(entry.message, GibbsianWarning)]
    origin = {"Command": shlex.join(["gibbsian", *sys.argv[1:]])}
    for path in filter(None, (source, data)):
        origin[f"SHA-256 of {path.name}"] = _digest(path)
    write_report(out, machine, rows, origin=origin, warned=warned, seed=seed or 0)
    if json:
        print_json({"report": out, "kind": machine.registered_name, **record_of(machine)})
    elif not quiet:
        tell(f"report written to {out}")
    warn(machine.result_)
    exit_if_strict(ctx, machine.result_, strict)


def _is_model(path: Path) -> bool:
    """Whether a file is one of ours, and so no table."""
    from gibbsian.storage import kind_of

    with suppress(FileFormatError):
        return bool(kind_of(path))
    return False


def _loaded(ctx: click.Context, path: Path, data: Path | None, seed: int | None) -> tuple[Any, Any]:
    """Return the machine of a file, and rows in its coding."""
    where = {name: ctx.params[name] for name in ("device", "precision") if ctx.params.get(name)}
    known = {"source", "out", "data", "seed", "json", "quiet", "strict", *where}
    given = [name for name in ctx.params if name not in known and ctx.get_parameter_source(name) != DEFAULT]
    if given:
        flag = f"--{given[0].replace('_', '-')}"
        raise ArgumentError(f"{flag} is for a fit, and {path} holds a model already", "leave it out")
    ctx.meta[options.WHERE] = where
    machine = options.load_model(path, seed)
    if data is None:
        return machine, None
    from gibbsian.estimators.held_out import measured

    rows = machine.read(data)
    machine.result_ = measured(machine, rows)
    return machine, rows


def _fitted(
    ctx: click.Context, path: Path, data: Path | None, seed: int | None, flags: dict[str, Any]
) -> tuple[Any, Any]:
    """Return a machine fitted to a table, and the table."""
    from gibbsian.estimators.choice import chosen_by

    if data is not None:
        raise ArgumentError(f"--data gives rows for a model file, and {path} is a table", "leave --data out")
    reading, settings = split_flags({name: value for name, value in flags.items() if name != "model"})
    settings.setdefault("validation_fraction", "auto")
    estimator, table, choice = prepared(ctx, flags["model"], settings, reading, path)
    estimator.set_params(random_state=seed).fit(table)
    if choice is not None:
        chosen_by(choice, estimator)
    return estimator, table


def _digest(path: Path) -> str:
    """Return the digest by which a file is known again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
