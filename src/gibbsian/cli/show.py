"""``gibbsian show``: what a model file holds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gibbsian.cli.guard import guarded
from gibbsian.cli.models import MODELS, name_of
from gibbsian.cli.options import Json, Model, Seed
from gibbsian.cli.output import print_facts, print_json, print_sections
from gibbsian.errors import ArgumentError


@guarded
def show(
    model: Model,
    top: Annotated[int, typer.Option(min=0, help="How many of the strongest parameters to list.")] = 10,
    method: Annotated[
        str | None,
        typer.Option(help="Print log Z too: exact, or between two sides by annealed importance sampling (ais)."),
    ] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Describe a model: coding, columns, provenance, convergence, and its strongest parameters by name."""
    from gibbsian.estimators import load

    machine = load(model).set_params(random_state=seed)
    name = name_of(machine)
    kind = MODELS[name]
    found = None if method is None else _log_partition(machine, name, method)
    sections = kind.show(machine, top)
    if json:
        shown = {section.key: section.json for section in sections}
        partition = {} if found is None else {"log_partition": partition_record(found)}
        print_json({"kind": name, **kind.family.record(machine), **partition, **shown})
        return
    said = {} if found is None else {"log Z": f"{found:.6f}" if isinstance(found, float) else found.describe()}
    print_facts({"model": name, **kind.family.facts(machine), **said})
    print_sections(sections)


def _log_partition(machine: Any, name: str, method: str) -> Any:
    if not hasattr(machine, "log_partition"):
        raise ArgumentError(f"a {name} model has no log Z to print: leave --method out")
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
