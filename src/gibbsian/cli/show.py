"""``gibbsian show``: what a model file holds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from gibbsian.cli import options
from gibbsian.cli.guard import Command
from gibbsian.cli.output import check_distinct, check_target, print_facts, print_json, print_tables, table_record
from gibbsian.cli.verdict import ending, verdict_record
from gibbsian.errors import ArgumentError

# What can be drawn of models that have this attribute.
DRAWINGS = {
    "network": "interactions",
    "couplings": "interactions",
    "convergence": "result_",
    "filters": "components_",
    "samples": "components_",
    "curves": "components_",
}
LAYOUTS = ("force", "circle")


@click.command(cls=Command)
@options.model_file
@options.top(10)
@click.option("--method", help="Print log Z too: exact, or between two sides by annealed importance sampling (ais).")
@options.picture
@click.option("--draw", help=f"What: {', '.join(DRAWINGS)}; the network, or with --shape the filters of hidden units.")
@click.option("--layout", type=click.Choice(LAYOUTS), help="Of the network: near what they interact with, or round.")
@click.option("--shape", metavar="HxW", help="Of images, where the columns are no square one.")
@options.seed
@options.json
def show(
    model: Path,
    top: int,
    method: str | None,
    picture: Path | None,
    draw: str | None,
    layout: str | None,
    shape: str | None,
    seed: int | None,
    json: bool,
) -> None:
    """Describe a model: coding, columns, provenance, convergence, and its strongest parameters by name."""
    if picture is None and (draw or shape or layout):
        raise ArgumentError("--draw, --layout and --shape belong to a picture", "add --picture FILE")
    check_target(picture, options.PICTURES, "--picture")
    check_distinct(model=model, picture=picture)
    machine = options.load_model(model, seed)
    kind = machine.registered_name
    found = None if method is None else machine.log_partition(method)
    tables = machine.tables(top)
    if picture is not None:
        _write_picture(machine, kind, picture, draw, layout, shape)
    if json:
        partition = {} if found is None else {"log_partition": partition_record(found)}
        print_json({"kind": kind, **record_of(machine), **partition, **table_record(tables)})
        return
    said = {} if found is None else {"log Z": f"{found:.6f}" if isinstance(found, float) else found.describe()}
    print_facts({"model": kind, **facts_of(machine), **said})
    print_tables(tables)


# -- facts ------------------------------------------------------------------------------------------------------------
def facts_of(machine: Any) -> dict[str, str]:
    """Say what a fitted model is, what it was learned from, and how that ended."""
    result, story, scored = machine.result_, machine.result_.provenance, machine.result_.held_out
    return {
        "size": ", ".join(_figure(name, value) for name, value in machine.figures().items()),
        "temperature": f"{machine.temperature:g}",
        "coding": machine.coding_.describe(),
        "columns": ", ".join(machine.names_),
        "left out": ", ".join(machine.dropped_),
        "chosen": story.get("chosen", ""),
        "learner": story.get("learner", ""),
        "penalty": _penalty(story),
        "data": f"{story['rows']} rows, {story['missing_cells']} missing cells" if "rows" in story else "",
        "fit": ending(result),
        **{
            name.replace("_", " "): f"{values[0]:.4f} to {values[-1]:.4f}"
            for name, values in result.history.items()
            if len(values)
        },
        "trained": trained(result)["said"],
        "held out": story.get("held_out", "") if scored is None else scored.describe(),
        "verdict": verdict_record(result)["status"],
        "made": f"{story['created']} by gibbsian {story['gibbsian']}" if "created" in story else "",
    }


def trained(result: Any) -> dict[str, Any]:
    """Say whether a model is trained, as its fit wrote it down; where it did not it does now."""
    if result.moments is None:
        return {"said": "", "is_trained": None, "largest_z": None}
    if "trained" not in result.provenance:
        report = result.training
        z = report.largest_z if math.isfinite(report.largest_z) else None
        result.provenance["trained"] = {"said": report.describe(), "is_trained": report.is_trained, "largest_z": z}
    return result.provenance["trained"]


def _penalty(story: dict[str, Any]) -> str:
    """Say what kept the parameters small, and how the L2 penalty was chosen."""
    found, rule = (
        ", ".join(f"{name} {story[name]:.3g}" for name in ("l1", "l2") if story.get(name)),
        story.get("l2_rule"),
    )
    return f"{found} ({rule})" if found and rule else found or rule or ""


def _figure(name: str, value: object) -> str:
    """Say a count, a number or a word."""
    if isinstance(value, float):
        return f"{name} {value:.6g}"
    return f"{name} {value}" if isinstance(value, str) else f"{value:,} {name}"


def record_of(machine: Any) -> dict[str, Any]:
    """Return the same for JSON, with the last step of the fit."""
    result, coding = machine.result_, machine.coding_
    last = dict(zip(result.trace.columns, result.trace.rows[-1], strict=True)) if result.trace.rows else {}
    training = trained(result)
    return {
        "converged": result.converged,
        "reason": result.reason,
        "steps": result.n_steps,
        "value": last.get("value"),
        "gradient": last.get("gradient_norm"),
        "coding": {"name": coding.name, "domain": coding.domain.name, **_labels(machine)},
        "names": machine.names_,
        **({"hidden": machine.hidden_names_} if hasattr(machine, "hidden_names_") else {}),
        "size": machine.figures(),
        "temperature": machine.temperature,
        "trained": training["is_trained"],
        "largest_z": training["largest_z"],
        "verdict": verdict_record(result),
        "held_out": None if result.held_out is None else result.held_out._asdict(),
        "provenance": result.provenance,
    }


def _labels(machine: Any) -> dict[str, Any]:
    """Return the labels of each column; real numbers have none."""
    if machine.coding_.domain.name == "real":
        return {}
    return {"labels": [machine.coding_.labels_of(j) for j in range(len(machine.names_))]}


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
        "tempered": found.tempered and found.tempered.log_partition,
        "tempered_standard_error": found.tempered and found.tempered.log_partition_stderr,
        "trouble": found.trouble,
    }


# -- pictures ---------------------------------------------------------------------------------------------------------
def _write_picture(
    machine: object, kind: str, path: Path, draw: str | None, layout: str | None, shape: str | None
) -> None:
    from gibbsian import plots

    able = [what for what, attribute in DRAWINGS.items() if hasattr(machine, attribute)]
    what = draw or ("network" if shape is None else "filters")
    if what not in able:
        raise ArgumentError(f"--draw {what} is not known of a {kind} model", f"use one of {', '.join(able)}")
    if layout is not None and what != "network":
        raise ArgumentError("--layout is for the network", "leave it out, or use --draw network")
    how: dict[str, Any] = {"layout": layout or LAYOUTS[0]} if what == "network" else {}
    if what in ("filters", "samples"):
        how = {"shape": None if shape is None else parse_shape(shape)}
    draw_it = getattr(plots, "training_curves" if what == "curves" else what)
    plots.save_figure(draw_it(machine, **how), path)


def parse_shape(text: str) -> tuple[int, int]:
    """Turn the value of ``--shape`` into height and width."""
    height, _, width = text.lower().partition("x")
    if not (height.isdigit() and width.isdigit()):
        raise ArgumentError(f"--shape {text} must be HEIGHTxWIDTH, such as 28x28")
    return int(height), int(width)
