"""Questions about rows of any number, a part at a time: missing cells filled in place, unusual rows and cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gibbsian.answers.unusual import shown_probabilities
from gibbsian.data import Dataset
from gibbsian.data.chunks import chunks, count_rows, is_arrow, is_streamed, names_of, values_of, with_cells
from gibbsian.data.rules import OneHot
from gibbsian.errors import DataError
from gibbsian.progress import report
from gibbsian.startup import pandas


def parts(machine: Any, source: Any) -> Iterator[tuple[int, Any, Dataset]]:
    """Yield the number of the first row of each part of a table, the part, and the model's columns of it as data."""
    start, total = 0, count_rows(source)
    for part in chunks(source):
        data = _read(machine, part)
        yield start, part, data
        start += data.n_rows
        report("rows", start, total)
    if start == 0:
        raise DataError("the table has no rows", "give 1 row or more")
    if total is None:
        report("rows", start, start)


def _read(machine: Any, part: Any) -> Dataset:
    """Read the model's columns; other named ones, such as ids, are left aside before they are looked at."""
    known = [name for name in names_of(part) if name in machine.names_]
    labels = getattr(part, "columns", ())
    plain = is_arrow(part) or all(isinstance(label, str) for label in labels)  # not numbers, nor levels
    if len(known) < len(machine.names_) or not plain or isinstance(machine.coding_.rule, OneHot):
        return machine.read(part) if names_of(part) else machine._read(part)
    return machine.read(part.select(known) if is_arrow(part) else part[known])


# -- missing cells ----------------------------------------------------------------------------------------------------
def keeps_columns(machine: Any, names: list[str]) -> bool:
    """Whether cells can be filled in place: each column stands for itself, in the labels of the model."""
    return machine.coding_.rule is None and set(machine.names_) <= set(names)


def fills_file(machine: Any, path: Any) -> bool:
    """Whether the cells of a file, or of the Arrow table of stdin, can be filled in place, a part at a time."""
    return (is_streamed(path) or is_arrow(path)) and keeps_columns(machine, names_of(next(chunks(path), None)))


def filled_parts(machine: Any, source: Any) -> Iterator[tuple[Any, int]]:
    """Yield the parts of a table with the missing cells of the model's columns filled, and how many these were."""
    for _, part, data in parts(machine, source):
        holes = None if data.missing is None else data.missing[data.row_of]
        if holes is None:
            yield part, 0
            continue
        rows = np.flatnonzero(holes.any(axis=1))
        some = data.take(rows)
        states = machine._answers.completed_states(some, machine._rng())[some.row_of]
        labels, holes = machine.coding_.decode(states), holes[rows]
        part = part if is_arrow(part) else part.copy(deep=False)
        for j, name in enumerate(machine.names_):
            at = np.flatnonzero(holes[:, j])
            if at.size:
                part = with_cells(part, name, rows[at], labels[at, j].tolist())
        yield part, int(holes.sum())


def filled_frame(machine: Any, frame: Any) -> Any:
    """Return a pandas frame with the missing cells of the model's columns filled, all else as it is."""
    found = [part for part, _ in filled_parts(machine, frame)]
    return found[0] if len(found) == 1 else pandas.concat(found)


# -- unusual rows and cells -------------------------------------------------------------------------------------------
def unusual_rows(machine: Any, source: Any, n: int) -> Any:
    """Return the rows of least log-weight, the least first, with the least probable cell of each."""
    found, total, count = pandas.DataFrame(), 0.0, 0
    for start, part, data in parts(machine, source):
        logs = machine._log_weights(data)[data.row_of]
        total, count = total + float(logs.sum()), count + logs.size
        rows = _least(logs, n)
        listed = {"row": start + rows, **_others(machine, part, rows), "log_weight": logs[rows]}
        if data.states.dtype.kind == "i":
            some = data.take(rows)
            own, likelier = (of_state[some.row_of] for of_state in _shown(machine, some))
            columns = np.nan_to_num(own, nan=np.inf).argmin(axis=1)
            listed |= _cells(machine, data, rows, columns, own[np.arange(rows.size), columns], likelier)
        found = pandas.concat([found, pandas.DataFrame(listed)]).sort_values("log_weight", kind="stable").head(n)
    place = found.columns.get_loc("log_weight") + 1
    found.insert(place, "below_mean", total / count - found["log_weight"])
    return found.reset_index(drop=True)


def unusual_cells(machine: Any, source: Any, n: int) -> Any:
    """Return the cells that are least probable given the other present cells of their row, the least first."""
    found = pandas.DataFrame()
    for start, part, data in parts(machine, source):
        own, likelier = _shown(machine, data)
        rows, columns = np.divmod(_least(own[data.row_of].ravel(), n), data.n_variables)
        states = data.row_of[rows]
        listed = {"row": start + rows, **_others(machine, part, rows)}
        listed |= _cells(machine, data, rows, columns, own[states, columns], likelier[states])
        found = pandas.concat([found, pandas.DataFrame(listed)]).sort_values("probability", kind="stable").head(n)
    found = found[found["probability"].notna()]  # a missing cell is none
    return found.reset_index(drop=True)


def _shown(machine: Any, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    return shown_probabilities(machine._answers, data, machine._rng())


def _least(values: np.ndarray, n: int) -> np.ndarray:
    """Return the places of the least values, the least first; equal ones in their order."""
    if values.size > n:
        kept = np.flatnonzero(values <= np.partition(values, n - 1)[n - 1])
        return kept[np.argsort(values[kept], kind="stable")][:n]
    return np.argsort(values, kind="stable")


def _others(machine: Any, part: Any, rows: np.ndarray) -> dict[str, list[Any]]:
    """Return what columns that the model does not know hold in some rows."""
    if len(set(machine.names_) & set(names_of(part))) < len(machine.names_):
        return {}
    return {name: values_of(part, name, rows) for name in names_of(part) if name not in machine.names_}


def other_columns(machine: Any, source: Any, leave_out: Any = ()) -> dict[str, list[Any]]:
    """Return the columns of a table that the model does not know, such as identifiers of rows."""
    found: dict[str, list[Any]] = {}
    for part in chunks(source):
        for name, values in _others(machine, part, np.arange(part.shape[0])).items():
            found.setdefault(name, []).extend(values)
    return {name: values for name, values in found.items() if name not in leave_out}


def _cells(
    machine: Any, data: Dataset, rows: np.ndarray, columns: np.ndarray, own: np.ndarray, likelier: np.ndarray
) -> dict[str, object]:
    """Return cells as columns of a table: where they are, what they hold, how probable that is, what is likelier."""
    codes = data.states[data.row_of[rows], columns]
    labels = [machine.coding_.labels_of(j) for j in range(len(machine.names_))]
    best = likelier[np.arange(rows.size), columns]
    return {
        "column": [machine.names_[j] for j in columns],
        "value": [labels[j][code] for j, code in zip(columns, codes, strict=True)],
        "probability": own,
        "likelier": [labels[j][code] for j, code in zip(columns, best, strict=True)],
    }
