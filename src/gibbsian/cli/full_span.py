"""The full-span model on the command line: fitted with a bar of its own, shown as a table of functions."""

from __future__ import annotations

import math
from typing import Any

from gibbsian.cli.families import Family, FitOrder, Section
from gibbsian.cli.fit_machine import checkpoint_of, read_data
from gibbsian.cli.machines import facts_of_fit, read_rows, sample_rows
from gibbsian.cli.progress import span_progress

SAME_SETTING = ("algorithm", "epsilon", "l1", "l2", "l2_growth", "mdl_scale", "max_iter", "held_out")
# Columns of the table of functions that are listed.
SHOWN = ("function", "order", "theta", "dual", "data_dual", "gain", "penalty")


def fit_full_span(order: FitOrder) -> Any:
    """Read the table, build the model and fit it; Ctrl-C ends the fit and leaves the model so far."""
    flags = order.flags
    settings = {name: flags[name] for name in SAME_SETTING if name in flags}
    machine = order.estimator(**settings, checkpoint=checkpoint_of(flags), random_state=order.seed)
    table = _read(order)
    with span_progress("fitting", machine.epsilon, show=order.show_progress) as callback:
        machine.set_params(callback=callback).fit(table)
    # the file keeps them: later data pass the threshold or the separator too
    kept = {name: flags[name] for name in ("binarize", "one_hot") if name in flags}
    return machine.set_params(callback=None, **kept)


def _read(order: FitOrder) -> Any:
    """Read two-valued columns where all are written alike, and otherwise the labels of each."""
    from dataclasses import replace

    from gibbsian.errors import DataError

    try:
        return read_data(order)
    except DataError:
        if order.flags.get("coding", "auto") != "auto":
            raise
        return read_data(replace(order, flags={**order.flags, "coding": "categorical"}))


def span_facts(machine: Any) -> dict[str, str]:
    """Say what a full-span model is, where it came from, and how its fit ended."""
    model = machine.model_
    size = (
        f"{model.n_variables} variables, {model.theta.size} functions of up to {max(model.orders, default=0)} of them"
    )
    cost = f"{machine.cost_:.6f} nats per row"
    if math.isfinite(machine.divergence_):  # with missing cells there is none
        cost += f", of which KL(data || model) {machine.divergence_:.6f}"
    said = {"cost": cost} if math.isfinite(machine.cost_) else {}  # a conditioned model was never fitted
    return {"size": size, **said, **facts_of_fit(machine)}


def span_record(machine: Any) -> dict[str, Any]:
    """The same for JSON."""
    result = machine.result_
    return {
        "converged": result.converged,
        "reason": result.reason,
        "cost": machine.cost_,
        "divergence": machine.divergence_,
        "steps": result.n_steps,
        "labels": machine.labels_,
        "names": machine.names_,
        "variables": machine.model_.n_variables,
        "functions": machine.model_.theta.size,
        "binarize": machine.binarize,
        "held_out": None if result.held_out is None else result.held_out._asdict(),
        "provenance": result.provenance,
    }


def span_sections(machine: Any, top: int) -> list[Section]:
    """The functions that are worth most; in their braces stand the values at which a factor is +1."""
    table = machine.basis_.head(top)
    rows = list(table[list(SHOWN)].itertuples(index=False, name=None))
    title = "functions, +1 at the values in braces (other values of a column: -1)"
    return [Section("basis", title, [name.replace("_", " ") for name in SHOWN], rows, record=table.to_dict("records"))]


def span_expected(machine: Any, estimate: Any) -> list[Section]:
    """Means of the functions in use."""
    from gibbsian.full_span.table import function_text

    labels = list(machine.labels_.values())
    functions = [function_text(machine.model_.basis, index, machine.names_, labels) for index in machine.model_.indices]
    rows = list(zip(functions, estimate.mean.tolist(), estimate.stderr.tolist(), strict=True))
    return [Section("functions", "means of functions", ("function", "mean", "standard error"), rows)]


FULL_SPAN = Family(
    fit_full_span,
    read_rows,
    sample_rows,
    span_facts,
    span_record,
    frozenset({"score", "sample", "expect", "impute"}),
)
