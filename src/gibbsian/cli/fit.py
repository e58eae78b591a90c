"""``gibbsian fit``: from a data file to a model file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from gibbsian.cli.families import FitOrder
from gibbsian.cli.flags import FLAGS, given, refuse_foreign, with_flags
from gibbsian.cli.guard import INTERRUPTED, guarded
from gibbsian.cli.models import ANY_MODEL, MODELS, find, owners_of_flags
from gibbsian.cli.options import Data, Json, Quiet, Seed
from gibbsian.cli.output import check_distinct, check_target, print_facts, print_json, print_sections
from gibbsian.errors import ConvergenceWarning

N_STRONGEST = 10
KINDS = "; ".join(f"{name}: {kind.about}" for name, kind in MODELS.items())


def _fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Where to write the model.")],
    model: Annotated[str, typer.Option("--model", "-m", metavar="NAME", help=f"{KINDS}.")] = "pairwise",
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
    **flags: Any,
) -> None:
    """Learn a model from a table; flags that belong to some models only name them in brackets."""
    from gibbsian.cli.compilation import announce_compilation

    kind, flags = find(model), given(flags)
    refuse_foreign(flags, model, [*kind.flags, *ANY_MODEL])
    check_target(out)
    edges = Path(flags["graph"]) if Path(flags.get("graph", "")).is_file() else None
    check_distinct(data=data, graph=edges, cliques=flags.get("cliques"), out=out, checkpoint=flags.get("checkpoint"))
    if not quiet:
        announce_compilation()
        if not json:  # the last lines say it
            warnings.simplefilter("ignore", ConvergenceWarning)
    machine = kind.family.fit(FitOrder(data, kind.load(), flags, seed, show_progress=not quiet))
    machine.save(out)
    # biases are for `show`: here the strongest of what was found is enough
    sections = [section for section in kind.show(machine, N_STRONGEST) if section.key != "biases"]
    if json:
        shown = {section.key: section.json for section in sections}
        print_json({"model": out, "kind": model, **kind.family.record(machine), **shown})
    elif not quiet:
        print_sections(sections)
        print_facts(kind.family.facts(machine), leave_out=("columns", "temperature", "made"))
        print(f"model written to {out}")
    if machine.result_.reason.startswith("interrupted"):
        raise typer.Exit(INTERRUPTED)


fit = with_flags(guarded(_fit), FLAGS, owners_of_flags())
fit.__name__ = "fit"
