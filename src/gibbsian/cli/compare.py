"""``gibbsian compare``: several learners on the same rows, one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gibbsian.cli import options
from gibbsian.cli.fit import prepared, split_flags
from gibbsian.cli.flags import BriefOption, ModelCommand, begun_with, registry_of
from gibbsian.cli.guard import say
from gibbsian.cli.output import print_json, print_table
from gibbsian.cli.verdict import warn
from gibbsian.errors import ArgumentError

if TYPE_CHECKING:
    from gibbsian.comparison import Comparison


class CompareCommand(ModelCommand):
    """How a model is learned is what the command compares: it has the flags of the model alone."""

    roles = ()
    left_out = ("learner", "checkpoint")


@click.command(cls=CompareCommand)
@options.data_file
@click.option(
    "--learners",
    default="mle,mple",
    metavar="A,B,...",
    help="Learners, with commas between.",
    cls=BriefOption,
    shell_complete=lambda ctx, param, begun: begun_with(begun, registry_of("learner").names()),
)
@options.kind_of_model
@click.option(
    "--validation-fraction", type=float, default=0.2, metavar="SHARE", help="Of the rows to score on.", cls=BriefOption
)
@options.fits_on_cluster
@options.seed
@options.json
@options.quiet
@options.reading
@click.pass_context
def compare(
    ctx: click.Context,
    data: Path,
    learners: str,
    model: str | None,
    validation_fraction: float,
    cluster: str | None,
    seed: int | None,
    json: bool,
    quiet: bool,
    **flags: object,
) -> None:
    """Fit the same rows with several learners: held-out score, distance to exact likelihood, time, steps."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.cluster.connection import fits_on
    from gibbsian.comparison import compare as run

    names = [name.strip() for name in learners.split(",") if name.strip()]
    if not names:
        raise ArgumentError("--learners names none", "give at least one")
    for name in names:
        registry_of("learner").factory(name)  # a wrong name is refused before anything is fitted
    reading, settings = split_flags(flags)
    estimator, table, _ = prepared(ctx, model, settings, reading, data)
    if "learner" not in estimator.get_params():
        kind = estimator.registered_name
        raise ArgumentError("has no choice of learners", "use another", argument="model", value=kind)
    if not quiet:
        announce_compilation()
    with fits_on(cluster):
        rows = run(
            table,
            names,
            machine=estimator,
            validation_fraction=validation_fraction,
            random_state=0 if seed is None else seed,
            callback=None if quiet else lambda name: say(f"fitting {name} ..."),
        )
    records = [_record(row) for row in rows]
    if json:
        print_json({"learners": records})
    else:
        _print(records)
    for row in rows:
        if row.machine is not None:
            warn(row.machine.result_, row.learner)
    if all(row.machine is None for row in rows):
        raise ArgumentError("no learner could fit these data", "see the reasons above")


def _record(row: Comparison) -> dict[str, Any]:
    return {
        "learner": row.learner,
        "score": None if row.held_out is None else row.held_out.score,
        "score_kind": None if row.held_out is None else row.held_out.kind,
        "distance_to_mle": row.distance,
        "largest_z": row.largest_z,
        "seconds": row.seconds,
        "steps": row.n_steps,
        "converged": row.machine is not None and row.machine.result_.converged,
        "verdict": row.verdict,
    }


def _print(records: list[dict[str, Any]]) -> None:
    kinds = {record["score_kind"] for record in records} - {None}
    columns = [name for name in records[0] if name not in ("score_kind", "converged")]
    print_table(
        f"held-out {' / '.join(sorted(kinds)) or 'score'} in nats a row (higher is better)",
        [name.replace("_", " ") for name in columns],
        [[record[name] for name in columns] for record in records],
    )
