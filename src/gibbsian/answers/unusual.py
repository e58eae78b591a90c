"""How probable the cells of rows are given the rest of their row: what makes a row unusual."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gibbsian.answers.decisions import column_probabilities
from gibbsian.data import Dataset


def shown_probabilities(answers: Any, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return ``P(cell | other present cells of its row)`` of the distinct rows, and the number of the likeliest value.

    A missing cell has NaN. Complete rows go through the model's flip costs, in which all else cancels; of others each
    column is hidden in turn and the missing cells are summed out with it.
    """
    own, likelier = np.full(data.states.shape, np.nan), np.zeros(data.states.shape, np.int64)
    holes = np.zeros(data.states.shape, bool) if data.missing is None else data.missing
    left = np.ones(data.n_states, bool)
    if getattr(answers, "flips_rows", False) and data.states.dtype.kind == "i":
        left = holes.any(axis=1)
        if not left.all():
            own[~left], likelier[~left] = _by_flips(answers.model, data.states[~left], data.codes[~left])
    for j in range(data.n_variables):
        rows = np.flatnonzero(left & ~holes[:, j])
        if rows.size:
            hidden = holes[rows].copy()
            hidden[:, j] = True
            part = replace(
                data, states=data.states[rows], missing=hidden, weights=data.weights[rows], row_of=np.arange(rows.size)
            )
            found = column_probabilities(answers, part, np.array([j]), rng)[0]
            own[rows, j] = found[np.arange(rows.size), data.codes[rows, j]]
            likelier[rows, j] = found.argmax(axis=1)
    return own, likelier


def _by_flips(model: Any, states: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of complete rows: a flip cost is the log-odds of a cell against another value."""
    costs, columns = model.flip_costs(states), model.flip_columns
    if columns is None:
        return 1.0 / (1.0 + np.exp(-costs)), np.where(costs < 0, 1 - codes, codes)
    own = 1.0 / np.add.reduceat(np.exp(-costs), columns[:-1], axis=1)
    ends = zip(columns[:-1], columns[1:], strict=True)
    return own, np.column_stack([costs[:, a:b].argmin(axis=1) for a, b in ends])
