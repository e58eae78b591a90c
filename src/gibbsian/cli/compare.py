"""``gibbsian compare``: several learners on the same rows, one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gibbsian.cli.families import FitOrder
from gibbsian.cli.fit_machine import machine_settings, read_data
from gibbsian.cli.flags import given, refuse_foreign, with_flags
from gibbsian.cli.guard import guarded, in_flags, say
from gibbsian.cli.models import ANY_MODEL, MODELS, find, owners_of_flags
from gibbsian.cli.options import Data, Json, Quiet, Seed
from gibbsian.cli.output import print_json, print_table
from gibbsian.errors import ArgumentError

if TYPE_CHECKING:
    from gibbsian.comparison import Comparison


# What a model is, and how its table is read; how it is learned is what the command compares.
COMPARED_FLAGS = (
    "graph", "order", "cliques", "no_bias", "temperature", "l1", "l2", "max_iter", "tol", "coding", "values",
    "categories", "one_hot", "binarize", "complete_rows", "drop", "weights",
)  # fmt: skip
COMPARED_MODELS = [name for name, kind in MODELS.items() if "learner" in kind.flags]


def _compare(
    data: Data,
    learners: Annotated[
        str, typer.Option(metavar="A,B,...", help="Learners by name, separated by commas.")
    ] = "mle,mple",
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help=f"One of {', '.join(COMPARED_MODELS)}.")
    ] = "pairwise",
    held_out: Annotated[float, typer.Option(metavar="SHARE", help="Share of the rows to score on.")] = 0.2,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
    **flags: Any,
) -> None:
    """Fit the same rows with several learners: held-out score, distance to exact likelihood, time, steps."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.comparison import compare as run
    from gibbsian.learners import LEARNERS

    kind, flags = find(model), given(flags)
    if model not in COMPARED_MODELS:
        raise ArgumentError(f"--model {model} has no choice of learners", f"use one of {', '.join(COMPARED_MODELS)}")
    refuse_foreign(flags, model, [flag for flag in COMPARED_FLAGS if flag in (*kind.flags, *ANY_MODEL)])
    names = [name.strip() for name in learners.split(",") if name.strip()]
    if not names:
        raise ArgumentError("--learners names none", "give at least one")
    for name in names:
        LEARNERS.factory(name)  # a wrong name is refused before anything is fitted
    order = FitOrder(data, kind.load(), flags)
    table = read_data(order)
    if not quiet:
        announce_compilation()
    rows = run(
        table,
        names,
        machine=order.estimator,
        held_out=held_out,
        random_state=seed,
        callback=None if quiet else lambda name: say(f"fitting {name} ..."),
        **machine_settings(order, table.names),
    )
    if json:
        print_json([_record(row) for row in rows])
    else:
        _print(rows)
    if all(row.machine is None for row in rows):
        raise ArgumentError("no learner could fit these data", "see the reasons above")


compare = with_flags(guarded(_compare), COMPARED_FLAGS, owners_of_flags())
compare.__name__ = "compare"


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


def _print(rows: list[Comparison]) -> None:
    kinds = {row.held_out.kind for row in rows if row.held_out is not None}
    columns = ("learner", "held-out score", "rms to mle", "largest |z|", "seconds", "steps", "verdict")
    print_table(
        f"held-out {' / '.join(sorted(kinds)) or 'score'} in nats a row (higher is better)",
        columns,
        [
            (
                row.learner,
                "" if row.held_out is None else f"{row.held_out.score:.4f}",
                "" if row.distance is None else f"{row.distance:.4f}",
                "" if row.largest_z is None else f"{row.largest_z:.2f}",
                "" if row.seconds is None else f"{row.seconds:.2f}",
                "" if row.n_steps is None else row.n_steps,
                in_flags(row.verdict),
            )
            for row in rows
        ],
    )
