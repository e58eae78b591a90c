"""``gibbsian compare``: several learners on the same rows, one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gibbsian.cli.fit import GRAPHS, read_graph
from gibbsian.cli.guard import guarded, in_flags
from gibbsian.cli.options import Data, Json, Quiet, Seed, Weights, parse_coding
from gibbsian.cli.output import print_json, print_table
from gibbsian.errors import ArgumentError

if TYPE_CHECKING:
    from gibbsian.comparison import Comparison


@guarded
def compare(
    data: Data,
    learners: Annotated[
        str, typer.Option(metavar="A,B,...", help="Learners by name, separated by commas.")
    ] = "mle,mple",
    graph: Annotated[
        str, typer.Option(metavar="|".join((*GRAPHS, "FILE")), help="Which columns interact.")
    ] = "complete",
    l1: Annotated[float, typer.Option(help="Penalty l1 sum|coupling|.")] = 0.0,
    l2: Annotated[float, typer.Option(help="Penalty (l2/2) sum parameter^2.")] = 0.0,
    coding: Annotated[str, typer.Option(help="auto, spin, binary, yes/no, y/n, true/false, or LOW,HIGH.")] = "auto",
    no_bias: Annotated[bool, typer.Option("--no-bias", help="Leave the biases out.")] = False,
    held_out: Annotated[float, typer.Option(metavar="SHARE", help="Share of the rows to score on.")] = 0.2,
    max_iter: Annotated[int, typer.Option(help="Most steps of each learner.")] = 1000,
    tol: Annotated[float, typer.Option(help="Converged when no entry of the gradient is larger.")] = 1e-6,
    drop: Annotated[list[str] | None, typer.Option(metavar="COL", help="A column to leave out (repeatable).")] = None,
    weights: Weights = None,
    complete_rows: Annotated[
        bool, typer.Option("--complete-rows", help="Use only rows without missing cells.")
    ] = False,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit the same rows with several learners: held-out score, distance to exact likelihood, time, steps."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.cli.guard import say
    from gibbsian.comparison import compare as run
    from gibbsian.data import Dataset
    from gibbsian.learners import LEARNERS

    names = [name.strip() for name in learners.split(",") if name.strip()]
    if not names:
        raise ArgumentError("--learners names none: give at least one")
    for name in names:
        LEARNERS.factory(name)  # a wrong name is refused before anything is fitted
    table = Dataset.read(data, coding=parse_coding(coding), drop=drop or (), weight_column=weights)
    table = table.complete_rows() if complete_rows else table
    if not quiet:
        announce_compilation()
    rows = run(
        table,
        names,
        held_out=held_out,
        random_state=seed,
        callback=None if quiet else lambda name: say(f"fitting {name} ..."),
        graph=read_graph(graph, table.names),
        l1=l1,
        l2=l2,
        bias=not no_bias,
        max_iter=max_iter,
        tol=tol,
    )
    if json:
        print_json([_record(row) for row in rows])
    else:
        _print(rows)
    if all(row.machine is None for row in rows):
        raise ArgumentError("no learner could fit these data: see the reasons above")


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
