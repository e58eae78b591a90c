"""``gibbsian show``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gibbsian.cli.guard import guarded
from gibbsian.cli.models import MODELS, name_of
from gibbsian.cli.options import Json, Model, Seed
from gibbsian.cli.output import check_distinct, check_target, print_facts, print_json, print_sections
from gibbsian.errors import ArgumentError

PICTURES = (".png", ".svg", ".pdf")


@guarded
def show(
    model: Model,
    top: Annotated[int, typer.Option(min=0, help="How many of the strongest parameters to list.")] = 10,
    method: Annotated[
        str | None,
        typer.Option(help="Print log Z too: exact, or between two sides by annealed importance sampling (ais)."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help=f"Draw it too: {', '.join(PICTURES)} by extension.")
    ] = None,
    draw: Annotated[
        str | None,
        typer.Option(
            "--draw", help="What: filters (hidden layers, if not given), samples, curves of the fit, or couplings."
        ),
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", metavar="HxW", help="Of images, where the columns are no square one.")
    ] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Describe a model: coding, columns, provenance, convergence, and its strongest parameters by name."""
    from gibbsian.estimators import load

    if picture is None and (draw or shape):
        raise ArgumentError("--draw and --shape belong to a picture", "add --picture FILE")
    check_target(picture, PICTURES, "--picture")
    check_distinct(model=model, picture=picture)
    machine = load(model).set_params(random_state=seed)
    name = name_of(machine)
    kind = MODELS[name]
    found = None if method is None else _log_partition(machine, name, method)
    sections = kind.show(machine, top)
    if picture is not None:
        _write_picture(machine, name, picture, draw, shape)
    if json:
        shown = {section.key: section.json for section in sections}
        partition = {} if found is None else {"log_partition": partition_record(found)}
        print_json({"kind": name, **kind.family.record(machine), **partition, **shown})
        return
    said = {} if found is None else {"log Z": f"{found:.6f}" if isinstance(found, float) else found.describe()}
    print_facts({"model": name, **kind.family.facts(machine), **said})
    print_sections(sections)


def _write_picture(machine: Any, name: str, path: Path, draw: str | None, shape: str | None) -> None:
    from gibbsian import plots
    from gibbsian.cli.layered import DRAWINGS, draw_picture

    able = [
        *(DRAWINGS if hasattr(machine, "history_") else ()),
        *(["couplings"] if hasattr(machine, "couplings_") else ()),
    ]
    if not able:
        raise ArgumentError(f"a {name} model has no picture here", "leave --picture out, or see gibbsian.plots")
    what = able[0] if draw is None else draw
    if what not in able:
        raise ArgumentError(f"--draw {what} is not known of a {name} model", f"use one of {', '.join(able)}")
    ax = plots.heat_map(machine) if what == "couplings" else draw_picture(machine, what, shape)
    plots.save_figure(ax, path)


def _log_partition(machine: Any, name: str, method: str) -> Any:
    if not hasattr(machine, "log_partition"):
        raise ArgumentError(f"a {name} model has no log Z to print", "leave --method out")
    return machine.log_partition(method)


def partition_record(found: Any) -> dict[str, Any]:
    """Return log Z for JSON: always two sides with their errors, which meet where it is exact."""
    if isinstance(found, float):
        return {"lower": found, "upper": found, "exact": True}
    below, above = found.stderrs
    return {
        "lower": found.lower,
        "upper": found.upper,
        "exact": False,
        "forward": found.forward.log_partition,
        "forward_standard_error": below,
        "reverse": found.reverse.log_partition,
        "reverse_standard_error": above,
        "trouble": found.trouble,
    }
