"""What surrounds a fit: which learner, is the result finite, where did it come from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gibbsian import __version__
from gibbsian.data import Dataset, fit_memory
from gibbsian.diagnostics import DataMoments, data_moments
from gibbsian.diagnostics.existence import maximum_exists
from gibbsian.errors import ArgumentError, MaximumDoesNotExistError, MaximumDoesNotExistWarning, notify
from gibbsian.inference import predict_cost_of
from gibbsian.inference.completions import value_offsets
from gibbsian.inference.missing import PATIENT_SECONDS, clamped_seconds
from gibbsian.learners import FitResult, Learner
from gibbsian.learners.mean_field import warm_start
from gibbsian.models import HigherOrderModel, Model, PairwiseModel
from gibbsian.objectives import Likelihood
from gibbsian.resources import memory_limit, require_memory
from gibbsian.storage import Checkpoint

# "auto" learns by exact likelihood while one evaluation is predicted to take no longer; where cells are missing, when
# chains are the only other way, no longer than PATIENT_SECONDS.
QUICK_SECONDS = 0.05
# A parameter worth log-odds beyond this is looked into, and beyond the other is warned of where nothing can be proved:
# e^6 is one row in 400, e^12 one in 160,000, more rows than most tables have.
SUSPICIOUS_LOG_ODDS = 6.0
ALARMING_LOG_ODDS = 12.0
_REMEDY = "add a penalty such as `l2=0.01`, or drop or merge the columns that determine each other"


def check_numbers(machine: Any) -> None:
    """Refuse settings that are not numbers, by name, before they meet any arithmetic."""
    for name in ("l1", "l2", "temperature", "max_iter", "tol", "held_out"):
        value = getattr(machine, name)
        kind: Any = Integral if name == "max_iter" else Real
        if (name, value) != ("l1", "theory") and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ArgumentError(f"{name}={value!r} must be a {'whole ' * (kind is Integral)}number")


def check_hooks(machine: Any) -> None:
    """Refuse a checkpoint that names no file and a callback that cannot be called, before any work is done."""
    checkpoint = machine.checkpoint
    path = checkpoint.path if isinstance(checkpoint, Checkpoint) else checkpoint
    if checkpoint is not None and not isinstance(path, str | os.PathLike):
        raise ArgumentError(
            "must be None, the path of a file, or a Checkpoint with one", argument="checkpoint", value=checkpoint
        )
    if machine.callback is not None and not callable(machine.callback):
        raise ArgumentError(
            "must be None or a function of a step's number and the step", argument="callback", value=machine.callback
        )


def choose_learner(learner: str | Learner, model: Model, data: Dataset) -> str | Learner:
    """Settle ``"auto"``: exact likelihood where quick, else pseudolikelihood, or chains where cells are missing."""
    if learner != "auto":
        return learner
    seconds = predict_cost_of(model).seconds
    if not data.has_missing:
        return "mle" if seconds <= QUICK_SECONDS else "mple"
    return "mle" if seconds + clamped_seconds(model, data) <= PATIENT_SECONDS else "pcd"


def check_memory(data: Dataset, model: Model, variables: str = "columns", instead: str = "") -> None:
    """Refuse a fit that would not fit the memory, and say how many variables, as they are called here, would."""
    needed = fit_memory(data, model)
    most = int(model.n_variables * min(1.0, memory_limit() / needed) ** 0.5)  # parameters grow with their square
    require_memory(
        needed,
        f"fitting {model.n_variables:,} {variables} with {model.theta.size:,} parameters",
        f"use a sparser graph, or about {most:,} {variables}" + (f": {instead}" if instead else ""),
    )


def start_from(start: Any, model: Any, data: Dataset) -> Any:
    """Return where the learner begins: at zero, at a mean-field solution, or at the parameters of another model."""
    if start is None:
        return model
    if isinstance(start, str):
        if isinstance(model, PairwiseModel):
            return warm_start(start, model, data)
        raise ArgumentError(
            "is for a BoltzmannMachine", "start from a model of the same kind", argument="start", value=start
        )
    given = model_to_start_from(start)
    if type(given) is not type(model):
        raise ArgumentError(
            "must be None, the name of a mean-field learner, a model or a fitted machine", argument="start", value=start
        )
    if given.graph != model.graph:
        raise ArgumentError("start has another graph than the machine", "start from a model on the same graph")
    if isinstance(model, PairwiseModel):
        given, _ = given.to_domain(model.domain)
        parts = [given.biases, given.couplings] if model.bias else [given.couplings]
        return model.replace(np.concatenate(parts) * (model.temperature / given.temperature))
    if _structure(given) != _structure(model):
        raise ArgumentError("start has other cliques or values than the machine", "start from a model of the same ones")
    return model.replace(given.theta * (model.temperature / given.temperature))


def model_to_start_from(start: Any) -> Any:
    """Return the model of a fitted machine, or what else was given; refuse a machine that is not fitted."""
    if isinstance(start, BaseEstimator) and not hasattr(start, "model_"):
        raise ArgumentError(
            f"start is a {type(start).__name__} that is not fitted, as are all that scikit-learn has cloned",
            "fit it, or give the model of a fitted one (start=machine.model_), which clones keep",
        )
    return getattr(start, "model_", start)


def _structure(model: Any) -> tuple[Any, ...]:
    """What a model has besides parameters, temperature and graph."""
    if isinstance(model, PairwiseModel):
        return model.domain, model.bias
    return model.domain, getattr(model, "cliques", None)


def check_runaway(model: Any, data: Dataset, learner: Learner) -> None:
    """Raise or warn where unpenalised parameters have run away because there is no finite maximum.

    Preflight finds single values, pairs and cliques that rule a maximum out, and triples of two-valued columns. What is
    left shows in large parameters; then a linear programme decides, where there is one and it is small enough.
    """
    largest = _largest_log_odds(model)
    if largest < SUSPICIOUS_LOG_ODDS:
        return
    likelihood = isinstance(getattr(learner, "objective", None), Likelihood)
    exists = None
    if not data.has_missing:
        exists = maximum_exists(model, data, "likelihood" if likelihood else "pseudolikelihood")
    if exists is False:
        raise MaximumDoesNotExistError("the likelihood has no finite maximum on these data", _REMEDY)
    if exists is None and largest >= ALARMING_LOG_ODDS:
        notify(
            MaximumDoesNotExistWarning(
                f"parameters have grown to log-odds of {largest:.0f}, so there may be no finite maximum", _REMEDY
            )
        )


def _largest_log_odds(model: Any) -> float:
    """By how much one parameter alone can change a log-probability, at most."""
    if isinstance(model, PairwiseModel):
        model, _ = model.to_domain("spin")
        span: Any = 2.0
    elif isinstance(model, HigherOrderModel):
        low, high = model.statistic_range
        span = high - low
    else:
        model, span = model.zero_sum(), 1.0
    return float((span * np.abs(model.theta)).max(initial=0.0) / model.temperature)


def moments_of(model: Model, data: Dataset) -> DataMoments | None:
    """Return the data's moments, to compare the model's with.

    Where cells are missing a moment is taken over the rows that show it, which is known for products of cells only.
    """
    if data.has_missing and not isinstance(model, PairwiseModel):
        return None
    return data_moments(model, data)


def by_value(flat: np.ndarray, model: Model) -> np.ndarray:
    """Give each variable's values an axis of their own, filled with zeros: (rows, all values) to (rows, n, values)."""
    offsets = value_offsets(model.domain, model.n_variables)
    sizes = np.diff(offsets)
    shaped = np.zeros((len(flat), model.n_variables, int(sizes.max())))
    for i, size in enumerate(sizes):
        shaped[:, i, :size] = flat[:, offsets[i] : offsets[i + 1]]
    return shaped


def provenance(name: str | Learner, learner: Learner, data: Dataset, result: FitResult) -> dict[str, Any]:
    """Return what a later reader of the model wants to know."""
    return {
        **provenance_of(name if isinstance(name, str) else repr(learner), data.n_rows),
        "l1": getattr(learner, "l1", 0.0),
        "l2": getattr(learner, "l2", 0.0),
        "distinct_rows": data.n_states,
        "missing_cells": 0 if data.missing is None else int(data.missing[data.row_of].sum()),
        "steps": result.n_steps,
        "seconds": round(result.seconds, 4),
    }


def provenance_of(learner: str, n_rows: int) -> dict[str, Any]:
    """The part of it that every way of learning has."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return {"gibbsian": __version__, "created": created, "learner": learner, "rows": n_rows, "missing_cells": 0}


def plain_settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Keep the settings that a JSON header can hold; labels and structure stand there as coding and model."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
    if isinstance(plain.get("dtype"), type | np.dtype):
        plain["dtype"] = np.dtype(plain["dtype"]).name
    if any(plain.get(name) is not None for name in ("categories", "values")):
        plain.pop("coding", None)  # the fitted coding holds these labels, and is the setting of a loaded machine
    kept: dict[str, Any] = {name: value for name, value in plain.items() if isinstance(value, str | int | float | bool)}
    if isinstance(plain.get("one_hot"), Mapping):
        kept["one_hot"] = {str(name): list(columns) for name, columns in plain["one_hot"].items()}
    return kept


def like_frame(values: np.ndarray, source: Any, names: Sequence[str]) -> Any:
    """Give `values` the columns and index of `source` where that is a pandas or polars frame.

    Columns keep their types where these can hold the values. A frame of dummies has more columns than variables; then
    the variables' own names are given.
    """
    module = type(source).__module__.partition(".")[0]
    if module not in ("pandas", "polars"):
        return values
    if len(source.columns) != len(names):
        if module == "polars":
            return type(source)(values, schema=list(names))
        return type(source)(values, columns=list(names), index=source.index)
    return _like_pandas(values, source) if module == "pandas" else _like_polars(values, source)


def _like_pandas(values: np.ndarray, source: Any) -> Any:
    """Give values the columns, index and types of a pandas frame."""
    import pandas

    kinds = list(source.dtypes)
    frame = pandas.DataFrame(values, index=source.index)
    if _are_numbers(values.dtype) and _are_numbers(kinds[0]) and len(set(kinds)) == 1:  # all columns at once
        frame = _cast(frame, kinds[0])
    else:
        frame = pandas.concat([_cast(frame[j].infer_objects(), kind) for j, kind in enumerate(kinds)], axis=1)
    frame.columns = source.columns
    return frame


def _are_numbers(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "iuf"


def _cast(column: Any, kind: Any) -> Any:
    """Return a pandas column as another type where that says the same, and else as it is."""
    try:
        cast = column.astype(kind)
        if _are_numbers(kind):
            same = np.asarray(cast) == np.asarray(column)
        else:
            same = np.asarray(cast.astype(object)) == np.asarray(column.astype(object))
    except (TypeError, ValueError, OverflowError):
        return column
    return cast if np.all(same) else column


def _like_polars(values: np.ndarray, source: Any) -> Any:
    """Give values the columns and types of a polars frame."""
    columns = []
    for j, own in enumerate(source.get_columns()):
        filled = values[:, j].tolist()
        try:
            column = type(own)(own.name, filled, dtype=own.dtype)
        except (TypeError, ValueError):
            column = type(own)(own.name, filled)
        columns.append(column if column.to_list() == filled else type(own)(own.name, filled))
    return type(source)(columns)


def distinct_labels(labels: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Write truth values as text where there are numbers as well: pandas would take True and 1 for one value."""
    kinds = {type(label) for column in labels for label in column}
    mixed = bool in kinds and bool(kinds & {int, float})
    return [[str(label) if mixed and isinstance(label, bool) else label for label in column] for column in labels]


def are_chosen(names: tuple[str, ...]) -> bool:
    """Whether the names are the user's, not the x0, x1, ... that unnamed columns get."""
    return names != tuple(f"x{i}" for i in range(len(names)))


def shorten(names: tuple[str, ...], limit: int = 4) -> str:
    """List the first names, for messages."""
    return ", ".join(map(repr, names[:limit])) + (f", ... ({len(names)} in all)" if len(names) > limit else "")
