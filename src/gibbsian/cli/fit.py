"""``gibbsian fit``: from a data file to a model file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from gibbsian.cli import options
from gibbsian.cli.flags import BriefOption, ModelCommand, Owner, assembled, parts_in
from gibbsian.cli.guard import INTERRUPTED, say, tell
from gibbsian.cli.output import (
    STANDARD,
    check_distinct,
    check_target,
    print_facts,
    print_json,
    print_tables,
    table_record,
)
from gibbsian.cli.show import facts_of, record_of, trained
from gibbsian.cli.table import Reading, from_files
from gibbsian.cli.verdict import exit_if_strict, leave_endings_to_verdict, strict, verdict_record, warn
from gibbsian.errors import ArgumentError
from gibbsian.estimators.known import ESTIMATORS

N_STRONGEST = 10


@click.command(cls=ModelCommand)
@options.data_file
@click.option(
    "--out",
    "-o",
    type=options.PATH,
    metavar="MODEL",
    help="Where to write the model; DATA.gibbs if not given.",
    cls=BriefOption,
)
@options.kind_of_model
@options.seed
@options.json
@options.quiet
@strict
@options.reading
@click.option("--memory", metavar="SIZE", help="Leave the rows on disk and learn by minibatches within SIZE.")
@options.cluster
@click.option("--checkpoint", type=options.PATH, metavar="FILE", help="Keep the progress in FILE.", cls=BriefOption)
@click.option("--every", type=int, metavar="K", help="Steps between two checkpoints; 50 if not given.")
@click.option("--resume", is_flag=True, help="Continue from the checkpoint if there is one.")
@click.pass_context
def fit(
    ctx: click.Context,
    data: Path,
    out: Path | None,
    model: str | None,
    seed: int | None,
    json: bool,
    quiet: bool,
    strict: bool,
    memory: str | None,
    cluster: str | None,
    checkpoint: Path | None,
    every: int | None,
    resume: bool,
    **flags: object,
) -> None:
    """Learn a model from DATA.

    A table: .csv, .tsv, .txt (also .gz, .bz2, .xz, .zst), .parquet, .feather, .npy, .npz, .xlsx, .sav, .sas7bdat
    or .dta; - is text on stdin.
    """
    from gibbsian.cli.compilation import announce_compilation

    reading, settings = split_flags(flags)
    unnamed = data == STANDARD or any(sign in data.name for sign in "*?[")
    out = Path(f"{'model' if unnamed else data.name.split('.')[0]}.gibbs") if out is None else out
    check_target(out)
    files = {name: Path(settings[name]) for name in ("graph", "cliques") if isinstance(settings.get(name), str)}
    check_distinct(
        data=data, **{name: path for name, path in files.items() if path.is_file()}, out=out, checkpoint=checkpoint
    )
    settings.setdefault("validation_fraction", "auto")
    settings["checkpoint"] = _checkpoint(checkpoint, every, resume)
    leave_endings_to_verdict()
    if not quiet:
        announce_compilation()
    reading.check_cluster(cluster, memory)
    client = None if cluster is None else on_cluster(ctx, cluster, quiet)
    estimator, table, choice = prepared(ctx, model, settings, reading, data, memory, client)
    estimator.set_params(random_state=seed, callbacks=_progress(show=not quiet))
    estimator.fit(table)
    if choice is not None:
        from gibbsian.estimators.choice import chosen_by

        chosen_by(choice, estimator)
    for keep in (trained, verdict_record):  # in the file, so that `show` need not compute it
        keep(estimator.result_)
    # biases are for `show`: here the strongest of what was found is enough
    tables = {title: found for title, found in estimator.tables(N_STRONGEST).items() if title != "biases"}
    estimator.save(out)  # after all that may fail: no file is left of a fit that ended wrong
    if json:
        print_json({"model": out, "kind": estimator.registered_name, **record_of(estimator), **table_record(tables)})
    elif not quiet:
        print_tables(tables)
        instead = {} if choice is None else {"chosen": f"{choice.sentence} (--model {choice.other} to change)"}
        print_facts({**facts_of(estimator), **instead}, leave_out=("columns", "temperature", "made"))
        tell(f"model written to {out}")
    warn(estimator.result_)
    if "interrupted_at_step" in estimator.result_.provenance:
        ctx.exit(INTERRUPTED)
    exit_if_strict(ctx, estimator.result_, strict)


def split_flags(flags: dict[str, Any]) -> tuple[Reading, dict[str, Any]]:
    """Owner the flags that say how a table is read from those that are settings and were given."""
    reading = Reading(**{field.name: flags.pop(field.name) for field in fields(Reading)})
    return reading, {name: value for name, value in flags.items() if value is not None}


def prepared(
    ctx: click.Context,
    model: str | None,
    settings: dict[str, Any],
    reading: Reading,
    data: Path,
    memory: str | None = None,
    client: object = None,
) -> tuple[Any, Any, Any]:
    """Return the estimator that flags ask for or the columns suggest, the rows, and why it was chosen, where it was."""
    parts, table, choice = parts_in(ctx), None, None
    if model is None and memory is None and client is None:
        from gibbsian.data.readers import read_table
        from gibbsian.estimators.choice import choose_model

        table = read_table(data)
        unused = [*reading.left_out, *(name for name in table.names if name == reading.weights)]
        choice = choose_model(table, reading.declared().get("coding"), unused)
        chosen = Owner("model", choice.name, ESTIMATORS.factory(choice.name))
        foreign = [name for name in settings if name in parts[0].settings and name not in chosen.settings]
        if foreign:
            raise ArgumentError(
                f"--{foreign[0].replace('_', '-')} belongs to --model {parts[0].name}, but there are {choice.sentence}",
                "leave it out",
            )
        parts = [chosen, *parts[1:]]
    owner, coding = parts[0], reading.declared()
    if coding and "coding" not in owner.settings:
        raise ArgumentError(
            f"--model {owner.name} has a coding of its own",
            "leave --column, --coding, --binarize, --categories, --values and --one-hot out",
        )
    estimator = owner.factory(**assembled(parts, settings), **coding)
    rows = reading.read(estimator, data, memory, table, client)
    return estimator.set_params(**from_files(settings, rows.names)), rows, choice


def on_cluster(ctx: click.Context, cluster: str, quiet: bool) -> Any:
    """Return the client of a cluster for as long as the command runs, and say where its dashboard is."""
    from gibbsian.cluster.connection import connected

    client = ctx.with_resource(connected(cluster))
    if not quiet:
        say(f"dashboard: {client.dashboard_link}")
    return client


def _progress(show: bool) -> list[Any]:
    from gibbsian.cli.bars import is_watched
    from gibbsian.cli.progress import Bar

    return [Bar("fitting")] if show and is_watched() else []


def _checkpoint(path: Path | None, every: int | None, resume: bool) -> Any:
    """Return the checkpoint that the flags ask for, or None."""
    from gibbsian.storage import Checkpoint

    if path is None:
        if resume or every is not None:
            flag = "--resume" if resume else "--every"
            raise ArgumentError(f"{flag} needs --checkpoint FILE, the file of the progress")
        return None
    check_target(path, flag="--checkpoint")
    if path.exists() and not _is_checkpoint(path):
        raise ArgumentError(f"--checkpoint {path} exists and is no checkpoint", "give another name")
    return Checkpoint(path, **({} if every is None else {"every": every}), resume=resume)


def _is_checkpoint(path: Path) -> bool:
    """Whether a file holds progress, and nothing else that would be written over."""
    from gibbsian.errors import FileFormatError
    from gibbsian.storage import kind_of

    try:
        return kind_of(path) == "checkpoint"
    except FileFormatError:
        return False
