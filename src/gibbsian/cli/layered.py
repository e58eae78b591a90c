"""Machines of layers on the command line: fitted, asked, shown and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gibbsian.cli.families import Family, FitOrder, Rows, Section
from gibbsian.cli.fit_machine import checkpoint_of
from gibbsian.cli.guard import in_flags
from gibbsian.cli.interrupts import Stoppable, stopping_on_interrupt
from gibbsian.cli.options import parse_coding, parse_hidden
from gibbsian.cli.progress import fit_progress
from gibbsian.errors import ArgumentError, DataError

# Flags that are settings of the machine under another name, or under their own.
OTHER_NAME = {"rate": "learning_rate", "epochs": "n_iter", "chain_steps": "n_steps", "chains": "n_chains"}
SAME_NAME = (
    "visible", "free_phase", "batch_size", "momentum", "schedule", "l1", "l2", "temperature", "held_out", "binarize",
    "pretrain", "fine_tune",
)  # fmt: skip
# Columns that are listed for each hidden unit.
MOST_COLUMNS = 6
DRAWINGS = ("filters", "samples", "curves")


# -- fitting ----------------------------------------------------------------------------------------------------------
def fit_layered(order: FitOrder) -> Any:
    """Read the table and fit the machine to it; Ctrl-C ends the fit after the epoch it is in."""
    machine = order.estimator(**layered_settings(order), checkpoint=checkpoint_of(order.flags), random_state=order.seed)
    table = _read_to_fit(machine, order)
    with (
        fit_progress("fitting", machine.total_epochs, 1e-300, show=order.show_progress) as callback,
        stopping_on_interrupt() as stop,
    ):
        machine.set_params(callback=callback)
        machine._guard = lambda learner: Stoppable(learner, stop)
        try:
            machine.fit(table)
        finally:
            del machine._guard
    return machine.set_params(callback=None)


def layered_settings(order: FitOrder) -> dict[str, Any]:
    """Return the settings of the machine that the flags ask for.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gibbsian as gb
    >>> from gibbsian.cli.families import FitOrder
    >>> from gibbsian.cli.layered import layered_settings
    >>> layered_settings(FitOrder(Path("x.npy"), gb.RestrictedBoltzmannMachine, {"hidden": "64", "epochs": 5}))
    {'n_components': 64, 'n_iter': 5}
    """
    flags = order.flags
    settings: dict[str, Any] = {}
    if "hidden" in flags:
        layers = parse_hidden(flags["hidden"])
        if order.estimator.many_layers:
            settings["n_components"] = tuple(layers)
        elif len(layers) > 1:
            raise ArgumentError(f"--hidden {flags['hidden']} gives {len(layers)} layers, but this model has one")
        else:
            settings["n_components"] = layers[0]
    settings |= {name: flags[name] for name in SAME_NAME if name in flags}
    settings |= {setting: flags[flag] for flag, setting in OTHER_NAME.items() if flag in flags}
    if "coding" in flags:
        settings["coding"] = parse_coding(flags["coding"])
    if "plain" in flags:
        settings["centred"] = False
    return settings


def _read_to_fit(machine: Any, order: FitOrder) -> Any:
    from dataclasses import replace

    import numpy as np

    from gibbsian.estimators.layered_data import read_visible

    flags = order.flags
    try:
        table = read_visible(
            order.data,
            machine.visible,
            machine.coding,
            binarize=machine.binarize,
            drop=flags.get("drop", ()),
            weight_column=flags.get("weights"),
        )
    except DataError as error:
        others = _other_arrays(order.data)
        if not others:
            raise
        raise type(error)(f"{error}; or name another array of the file, as in {order.data.name}:{others[0]}") from None
    if "complete_rows" not in flags or table.rows.missing is None:
        return table
    whole = np.flatnonzero(~table.rows.missing.any(axis=1))
    if not len(whole):
        raise ArgumentError(f"--complete-rows leaves no row of {order.data}", "leave it out")
    return replace(table, rows=replace(table.rows.take(whole), missing=None))


def _other_arrays(path: Path) -> list[str]:
    """The tables of an .npz file besides the one that is read where none is named."""
    import numpy as np

    from gibbsian.data.files import ARRAY_KEYS

    if path.suffix.lower() != ".npz" or not path.is_file():
        return []
    with np.load(path, allow_pickle=False) as arrays:
        return [key for key in arrays.files if key not in ARRAY_KEYS and arrays[key].ndim == 2]


# -- data and samples -------------------------------------------------------------------------------------------------
def read_rows(machine: Any, path: Path, weights: str | None = None, convert: bool = False) -> tuple[Any, Rows]:
    """Read data in the machine's columns and coding; other columns are left aside."""
    from gibbsian.data import Dataset
    from gibbsian.domain import Coding
    from gibbsian.estimators.layered_data import read_again

    source: Any = path
    options: dict[str, Any] = {"columns": machine.names_, "weight_column": weights, "binarize": machine.binarize}
    if convert:
        if not isinstance(machine.coding_, Coding):
            raise ArgumentError("--convert rewrites two-valued columns, and the model's are others", "leave it out")
        read = Dataset.read(path, columns=machine.names_, weight_column=weights)
        source, options = read.convert(machine.coding_), {}
    data = read_again(source, machine.model_.visible.kind, machine.coding_, **options)
    return machine, Rows(data, data.rows.n_rows, data.rows.weights, data.n_missing)


def sample_rows(machine: Any, n: int, method: str) -> tuple[tuple[str, ...], Any]:
    """Draw rows, in the labels of the data."""
    return machine.names_, machine.sample(n, method=method)


# -- what is said -----------------------------------------------------------------------------------------------------
def layered_facts(machine: Any) -> dict[str, str]:
    """Say what a machine is, what it was learned from and how that ended."""
    model = machine.model_
    visible, hidden = (f"{layer.n_units} {layer.kind}" for layer in (model.visible, model.hidden))
    return facts_of(machine, f"{visible} visible and {hidden} hidden units", "free phase")


def facts_of(machine: Any, units: str, way: str) -> dict[str, str]:
    """Say it of any machine of layers, given its units in words and what its way of learning is called."""
    model, result = machine.model_, machine.result_
    told, scored = result.provenance, result.held_out
    missing = f", {told['missing_cells']} missing cells" if "missing_cells" in told else ""
    return {
        "size": f"{units}, {model.theta.size:,} parameters",
        "temperature": f"{model.temperature:g}",
        "coding": "real numbers" if machine.coding_ is None else machine.coding_.describe(),
        "columns": ", ".join(machine.names_),
        "threshold": "" if machine.binarize is None else f"numbers above {machine.binarize:g} are upper",
        way: told.get("learner", ""),
        "data": f"{told['rows']} rows{missing}" if "rows" in told else "",
        "fit": in_flags(result.reason),
        **_last_figures(machine),
        "held out": ""
        if scored is None
        else f"{scored.kind} of {scored.n_rows} held-out rows: {scored.score:.4f} nats a row",
        "made": f"{told['created']} by gibbsian {told['gibbsian']}" if "created" in told else "",
    }


def _last_figures(machine: Any) -> dict[str, str]:
    """The first and the last of the pseudolikelihood, or of the error of reconstruction."""
    for name, said in (("log_pseudolikelihood", "pseudo"), ("reconstruction_error", "error")):
        values = machine.history_.get(name)
        if values is not None and len(values):
            unit = "nats a row" if said == "pseudo" else "squared, in standard deviations"
            return {said: f"{name.replace('_', '-', 1).replace('_', ' ')} {values[0]:.4f} to {values[-1]:.4f} {unit}"}
    return {}


def layered_record(machine: Any) -> dict[str, Any]:
    """The same for JSON."""
    return record_of(machine, visible=units_of(machine.model_.visible), hidden=units_of(machine.model_.hidden))


def units_of(layer: Any) -> dict[str, Any]:
    """Kind and number of the units of a layer."""
    return {"kind": layer.kind, "units": layer.n_units}


def record_of(machine: Any, **units: Any) -> dict[str, Any]:
    """The same of any machine of layers, given its units."""
    model, result = machine.model_, machine.result_
    return {
        "converged": result.converged,
        "reason": result.reason,
        "epochs": result.n_steps,
        "coding": None if machine.coding_ is None else machine.coding_.name,
        "names": machine.names_,
        **units,
        "parameters": model.theta.size,
        "temperature": model.temperature,
        "binarize": machine.binarize,
        "held_out": None if result.held_out is None else result.held_out._asdict(),
        "provenance": result.provenance,
    }


def unit_sections(machine: Any, top: int) -> list[Section]:
    """The strongest hidden units: bias, size of their weights, and the columns with the largest."""
    import numpy as np

    weights, names = machine.components_, _value_names(machine)
    norms = np.sqrt(np.square(weights).sum(axis=1))
    rows, records = [], []
    for j in np.argsort(-norms, kind="stable")[:top].tolist():
        strongest = np.argsort(-np.abs(weights[j]), kind="stable")[:MOST_COLUMNS].tolist()
        listed = {names[i]: float(weights[j, i]) for i in strongest}
        bias, norm = float(machine.intercept_hidden_[j]), float(norms[j])
        rows.append((f"h{j}", bias, norm, ", ".join(f"{name} {weight:.3g}" for name, weight in listed.items())))
        records.append({"unit": j, "bias": bias, "norm": norm, "largest_weights": listed})
    columns = ("unit", "bias", "norm of weights", "largest weights")
    return [Section("hidden_units", "strongest hidden units", columns, rows, record=records)]


def _value_names(machine: Any) -> list[str]:
    """Names of the columns of weights: a column each, or for categories a value each."""
    if machine.model_.visible.kind != "categorical":
        return list(machine.names_)
    labels = (machine.coding_.labels_of(j) for j in range(len(machine.names_)))
    return [f"{name}={label}" for name, known in zip(machine.names_, labels, strict=True) for label in known]


# -- pictures ---------------------------------------------------------------------------------------------------------
def draw_picture(machine: Any, what: str, shape: str | None) -> Any:
    """Draw filters, samples or training curves of a machine with hidden layers."""
    from gibbsian import plots_layers

    if what == "curves":
        return plots_layers.training_curves(machine)
    size = None if shape is None else parse_shape(shape)
    return plots_layers.filters(machine, size) if what == "filters" else plots_layers.samples(machine, size)


def parse_shape(text: str) -> tuple[int, int]:
    """Turn the value of ``--shape`` into height and width.

    Examples
    --------
    >>> from gibbsian.cli.layered import parse_shape
    >>> parse_shape("28x20")
    (28, 20)
    """
    height, _, width = text.lower().partition("x")
    if not (height.isdigit() and width.isdigit()):
        raise ArgumentError(f"--shape {text} must be HEIGHTxWIDTH, such as 28x28")
    return int(height), int(width)


LAYERED = Family(
    fit_layered, read_rows, sample_rows, layered_facts, layered_record, frozenset({"score", "sample", "impute"})
)
