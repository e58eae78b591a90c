"""Some columns predicted from the others: their probabilities, and the decision of least expected loss (YK15).

The columns that are asked for are missing in the data that these functions get.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference.log_tables import digits
from gibbsian.startup import softmax

# Combinations of values of several columns that are listed.
MAX_COMBINATIONS = 2**12


class CellAnswers(Protocol):
    """Answers about the cells of rows."""

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probabilities of the values of each cell given the present cells of its distinct row."""

    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return ``log P + log Z`` of the present cells of each distinct row."""


def column_probabilities(
    answers: CellAnswers, data: Dataset, columns: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return for each column the probabilities of its values given the present cells of each distinct row."""
    sizes, cells = _sizes(data, columns), answers.cell_probabilities(data, rng)
    if cells.ndim == 2:
        return [np.column_stack([1.0 - cells[:, j], cells[:, j]]) for j in columns]
    return [cells[:, j, :size] for j, size in zip(columns, sizes, strict=True)]


def joint_probabilities(answers: CellAnswers, data: Dataset, columns: np.ndarray) -> np.ndarray:
    """Return the probabilities of all combinations of values, the last column's changing fastest.

    The log-evidence of a row is asked for with each of them in turn.
    """
    combinations = _digits(data, columns)
    shown = np.asarray(data.missing).copy()
    shown[:, columns] = False
    logs = np.empty((data.n_states, len(combinations)))
    for number, values in enumerate(combinations):
        states = data.states.copy()
        states[:, columns] = values
        logs[:, number] = answers.log_evidence(replace(data, states=states, missing=shown if shown.any() else None))
    return softmax(logs, axis=1)


def decided_codes(
    answers: CellAnswers,
    data: Dataset,
    columns: np.ndarray,
    losses: object,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the numbers of the values that are decided for each column of each distinct row."""
    if isinstance(losses, str):
        if losses != "joint":
            raise ArgumentError("is not known", "give 'joint' or matrices", argument="losses", value=losses)
        return _digits(data, columns)[joint_probabilities(answers, data, columns).argmax(axis=1)]
    found = column_probabilities(answers, data, columns, rng)
    return np.column_stack([bayes_decision(p, loss) for p, loss in zip(found, _each(losses, found), strict=True)])


def bayes_decision(probabilities: np.ndarray, losses: ArrayLike | None = None) -> np.ndarray:
    """Return the decision of least expected loss for each row of probabilities; ties go to the first.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_values)
        How probable each value is.
    losses : array of shape (n_values, n_values), default=None
        The loss ``losses[i, j]`` of deciding j where i is true; by default 0 on the diagonal and 1 elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.answers import bayes_decision
    >>> p = np.array([[0.3, 0.7]])
    >>> bayes_decision(p).tolist(), bayes_decision(p, [[0, 5], [1, 0]]).tolist()
    ([1], [0])
    """
    if losses is None:
        return probabilities.argmax(axis=1)
    matrix, size = np.asarray(losses, dtype=np.float64), probabilities.shape[1]
    if matrix.shape != (size, size) or not np.isfinite(matrix).all():
        reason = f"must be a finite matrix of shape {(size, size)}: true values down, decisions across"
        raise ArgumentError(reason, argument="losses", value=losses)
    return (probabilities @ matrix).argmin(axis=1)


def _each(losses: Any, found: Sequence[np.ndarray]) -> Sequence[ArrayLike | None]:
    """Return a loss for each column; a single matrix belongs to a single column."""
    if losses is None or (len(found) == 1 and np.ndim(losses) == 2):
        return [losses] * len(found)
    if len(losses) != len(found) or any(np.ndim(loss) not in (0, 2) for loss in losses):
        raise ArgumentError(f"must be a list of {len(found)} matrices, one a column", argument="losses", value=losses)
    return losses


def _sizes(data: Dataset, columns: np.ndarray) -> list[int]:
    if data.variables.real:
        raise ArgumentError(
            "columns of real numbers have no values to decide between", "ask `impute` for their means given the others"
        )
    return [len(data.coding.labels_of(j)) for j in columns]


def _digits(data: Dataset, columns: np.ndarray) -> np.ndarray:
    """Return the numbers of the values in every combination, the last column's changing fastest."""
    sizes = _sizes(data, columns)
    count = math.prod(sizes)
    if count > MAX_COMBINATIONS:
        raise TooExpensiveError(
            f"{len(columns)} columns have {count:,} combinations of values, more than {MAX_COMBINATIONS:,}",
            "ask for fewer columns, or for each by itself",
        )
    return digits(np.arange(count), sizes)
