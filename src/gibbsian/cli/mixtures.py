"""Mixtures and clusterings on the command line: fitted, asked and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gibbsian.cli.families import Family, FitOrder, Rows, Section
from gibbsian.cli.guard import in_flags
from gibbsian.errors import ArgumentError

# Flags and the settings they stand for, where the names differ.
SETTINGS = {"components": "n_components", "epochs": "n_epochs", "no_normalize": "normalize"}
NUMBER_OR_WORD = ("kappa", "variance")
# Weights of columns that are listed for each class.
MOST_CELLS = 12


# -- fitting ----------------------------------------------------------------------------------------------------------
def fit_mixture(order: FitOrder) -> Any:
    """Read the table and fit the mixture to it."""
    flags = {name: value for name, value in order.flags.items() if name not in ("drop", "weights")}
    settings = {SETTINGS.get(name, name): _value(name, value) for name, value in flags.items()}
    estimator = order.estimator(**settings, random_state=order.seed)
    rows = _read(order.data, estimator, None, order.flags.get("weights"), order.flags.get("drop", ()))
    return estimator.fit(rows.table, sample_weight=rows.weights)


def _value(name: str, value: Any) -> Any:
    """A number where one was written, else the word."""
    if name == "no_normalize":
        return not value
    if name not in NUMBER_OR_WORD:
        return value
    try:
        return float(value)
    except ValueError:
        return value


# -- data -------------------------------------------------------------------------------------------------------------
def read_rows(machine: Any, path: Path, weights: str | None = None, convert: bool = False) -> tuple[Any, Rows]:
    """Read data in the mixture's columns; other columns are left aside."""
    if convert:
        raise ArgumentError("--convert rewrites two-valued columns, which a mixture does not have", "leave it out")
    names = getattr(machine, "feature_names_in_", None)
    return machine, _read(path, machine, None if names is None else names.tolist(), weights)


def _read(path: Path, estimator: Any, names: list[str] | None, weights: str | None, drop: Any = ()) -> Rows:
    from gibbsian.estimators import mixture_files

    words = estimator.__sklearn_tags__().input_tags.string
    frame, row_weights = mixture_files.read_rows(path, words, names=names, drop=drop, weights=weights)
    return Rows(frame, len(frame), row_weights)


def sample_rows(machine: Any, n: int, method: str) -> tuple[list[str], Any]:
    """Draw rows, with the class of each in a last column."""
    import numpy as np

    if method not in ("auto", "exact"):
        raise ArgumentError(
            "is not known", "a mixture is sampled exactly, leave it out", argument="method", value=method
        )
    rows, classes = machine.sample(n)
    # as objects the classes stay whole numbers beside real ones
    return [*_names(machine), "class"], np.column_stack([rows.astype(object), classes.astype(object)])


def _names(machine: Any) -> list[str]:
    names = getattr(machine, "feature_names_in_", None)
    return [f"x{j}" for j in range(machine.n_features_in_)] if names is None else [str(name) for name in names]


# -- what is said -----------------------------------------------------------------------------------------------------
def mixture_facts(machine: Any) -> dict[str, str]:
    """Say what a mixture is and how its fit ended."""
    result = machine.result_
    return {
        "size": f"{machine.n_components} classes of {machine.n_features_in_} columns",
        "columns": ", ".join(_names(machine)),
        "energy" if hasattr(machine, "energy_") else "free energy": f"{result.free_energy:.6g}",
        "fit": in_flags(result.reason),
        "beware": result.degenerate,
    }


def mixture_record(machine: Any) -> dict[str, Any]:
    """The same for JSON."""
    result = machine.result_
    return {
        "converged": result.converged,
        "reason": result.reason,
        "free_energy": result.free_energy,
        "steps": result.n_steps,
        "seconds": result.seconds,
        "degenerate": result.degenerate,
        "names": _names(machine),
        "classes": machine.n_components,
    }


def class_sections(machine: Any, top: int) -> list[Section]:
    """The classes: weight, concentration or variance, and the columns with the largest means."""
    import numpy as np

    names, mixture = _names(machine), machine.mixture_
    parts = [part for part in ("weights", "concentrations", "variances") if hasattr(mixture, part)]
    numbers = {part.removesuffix("s"): np.broadcast_to(getattr(mixture, part), machine.n_components) for part in parts}
    rows, records = [], []
    for a, mean in enumerate(mixture.means):
        order = np.argsort(-np.abs(mean), kind="stable")[: min(top, MOST_CELLS)]
        own = [float(values[a]) for values in numbers.values()]
        rows.append((a, *own, ", ".join(f"{names[j]} {mean[j]:.3g}" for j in order)))
        records.append({"class": a, **dict(zip(numbers, own, strict=True)), "mean": mean})
    return [Section("class_parameters", "classes", ("class", *numbers, "largest means"), rows, record=records)]


def label_sections(machine: Any, top: int) -> list[Section]:
    """The classes of a mixture of labels: for each the values that set it apart most."""
    import numpy as np

    names, mixture = _names(machine), machine.mixture_
    values = [
        (name, value) for name, known in zip(names, mixture.levels.values, strict=True) for value in known.tolist()
    ]
    shares = mixture.weights @ mixture.probabilities
    rows = []
    for a, probabilities in enumerate(mixture.probabilities):
        for j in np.argsort(-(probabilities - shares), kind="stable")[:top]:
            rows.append((a, float(mixture.weights[a]), *values[j], float(probabilities[j])))
    columns = ("class", "weight", "column", "value", "probability")
    return [Section("class_parameters", "what sets the classes apart", columns, rows)]


CLUSTERINGS = Family(fit_mixture, read_rows, sample_rows, mixture_facts, mixture_record, frozenset({"score"}))
DENSITIES = Family(fit_mixture, read_rows, sample_rows, mixture_facts, mixture_record, frozenset({"score", "sample"}))
