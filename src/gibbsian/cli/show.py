"""``gibbsian show``: what a model file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gibbsian.cli.guard import guarded, in_flags
from gibbsian.cli.options import Json, Model
from gibbsian.cli.output import coupling_records, print_couplings, print_json, print_table

if TYPE_CHECKING:
    from gibbsian.estimators import BoltzmannMachine


@guarded
def show(
    model: Model,
    top: Annotated[int, typer.Option(min=0, help="How many of the strongest couplings to list.")] = 10,
    json: Json = False,
) -> None:
    """Describe a model: coding, columns, provenance, convergence, biases, strongest couplings."""
    from gibbsian.estimators import load

    machine = load(model)
    if json:
        print_json(_description(machine, top))
        return
    _print_facts(machine)
    if machine.model_.bias:
        print_table("biases", ("column", "bias"), list(machine.biases_.items()))
    print_couplings(machine, top)


def _description(machine: BoltzmannMachine, top: int) -> dict[str, Any]:
    model, coding, result = machine.model_, machine.coding_, machine.result_
    return {
        "kind": "pairwise",
        "coding": {"name": coding.name, "low": coding.low, "high": coding.high, "domain": coding.domain.name},
        "names": machine.names_,
        "edges": model.graph.n_edges,
        "temperature": model.temperature,
        "binarize": machine.binarize,
        "converged": result.converged,
        "reason": result.reason,
        "provenance": result.provenance,
        "biases": machine.biases_.to_dict() if model.bias else None,
        "strongest_couplings": coupling_records(machine, top),
    }


def _print_facts(machine: BoltzmannMachine) -> None:
    model, result = machine.model_, machine.result_
    told = result.provenance
    facts = {
        "model": f"pairwise, {model.n_variables} variables, {model.graph.n_edges} couplings",
        "coding": machine.coding_.describe(),
        "columns": ", ".join(machine.names_),
        "temperature": f"{model.temperature:g}",
        "threshold": "" if machine.binarize is None else f"numbers above {machine.binarize:g} are upper",
        "learner": told.get("learner", ""),
        "data": f"{told['rows']} rows, {told['missing_cells']} missing cells" if "rows" in told else "",
        "fit": in_flags(result.reason),
        "trained": "" if result.moments is None else result.training.describe(),
        "made": f"{told['created']} by gibbsian {told['gibbsian']}" if "created" in told else "",
    }
    for name, fact in facts.items():
        if fact:
            print(f"{name + ':':13}{fact}")
