"""How probable the cells of rows are given the rest of their row: what makes a row unusual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gibbsian.answers.base import Answers
from gibbsian.answers.decisions import CellAnswers, column_probabilities
from gibbsian.data import Dataset
from gibbsian.inference.completions import count_completions, enumerate_completions
from gibbsian.models.base import Family

# Up to so many completions of a row are listed, and so many of all rows at a time.
MOST_LISTED, LISTED_AT_ONCE = 2**6, 2**15
# Odds beyond are all alike, and stay finite.
LARGEST_EXPONENT = 700.0


def shown_probabilities(answers: CellAnswers, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return ``P(cell | other present cells of its row)`` of the distinct rows, and the number of the likeliest value.

    A missing cell has NaN. Rows with few missing cells go through the costs d of the model's conditionals, in which all
    else cancels: the odds of another value are the mean of ``exp(-d)`` over the completions of the row. Of other rows,
    and of models without conditionals, each column is hidden in turn, and the missing cells are summed out with it.
    """
    own, likelier = np.full(data.states.shape, np.nan), np.zeros(data.states.shape, np.int64)
    holes = data.holes
    left = np.ones(data.n_states, dtype=bool)
    if isinstance(answers, Answers) and answers.has_conditionals and data.states.dtype.kind == "i":
        counts = count_completions(data.variables, data.missing, data.n_states)
        left = counts > MOST_LISTED
        for rows in _blocks(np.flatnonzero(~left), counts):
            own[rows], likelier[rows] = _by_odds(answers, data, rows)
    for j in range(data.n_variables if left.any() else 0):
        rows = np.flatnonzero(left & ~holes[:, j])
        if rows.size:
            hidden = holes[rows].copy()
            hidden[:, j] = True
            part = replace(
                data, states=data.states[rows], missing=hidden, weights=data.weights[rows], row_of=np.arange(rows.size)
            )
            found = column_probabilities(answers, part, np.array([j]), rng)[0]
            own[rows, j] = found[np.arange(rows.size), data.states[rows, j].astype(np.intp)]
            likelier[rows, j] = found.argmax(axis=1)
    own[holes] = np.nan
    return own, likelier


def _blocks(rows: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
    """Cut rows into parts with about as many completions each."""
    numbers = np.cumsum(counts[rows]) // LISTED_AT_ONCE
    yield from np.split(rows, np.flatnonzero(np.diff(numbers)) + 1) if rows.size else ()


def _by_odds(answers: Answers[Family], data: Dataset, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of some rows, by the odds of other values over their completions."""
    missing = None if data.missing is None else data.missing[rows]
    codes = data.states[rows]
    completions = enumerate_completions(data.variables, codes, missing)
    columns, costs, log_weights = answers.conditional_costs(completions.states)
    odds = np.exp(np.minimum(-costs, LARGEST_EXPONENT))
    odds *= completions.posterior(log_weights)[1][:, None]
    odds = np.add.reduceat(odds, completions.starts, axis=0)
    if columns is None:
        return 1.0 / (1.0 + odds), np.where(odds > 1.0, 1 - codes, codes)
    own = 1.0 / np.add.reduceat(odds, columns[:-1], axis=1)
    return own, np.column_stack([odds[:, start:stop].argmax(axis=1) for start, stop in pairwise(columns)])
