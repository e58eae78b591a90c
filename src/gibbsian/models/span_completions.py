"""The ways to fill the missing cells of rows, and their weights under a full-span model; no table of all states."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gibbsian.backends.numba.walsh import aligned_zeros
from gibbsian.models.full_span import FullSpanModel, fill_log_weights
from gibbsian.models.span_basis import SpanBasis
from gibbsian.resources import require_memory, row_blocks
from gibbsian.startup import logsumexp

# So many completions are weighed by a matrix product, many rows at a time; more by one transform for each row.
MOST_LISTED = 2**10


def patterns_of(codes: np.ndarray, missing: np.ndarray | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give the rows that miss the same cells, with the mask of those cells."""
    if missing is None:
        yield np.arange(len(codes)), np.zeros(codes.shape[1], bool)
        return
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == number), pattern


def completion_places(basis: SpanBasis, codes: np.ndarray, missing: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Give the indices of all completions of rows that miss the same cells, a block of rows at a time."""
    offsets = np.zeros(1, np.int64)
    for i in np.flatnonzero(missing):
        offsets = (offsets[:, None] + basis.strides[i] * np.arange(basis.cardinalities[i])).ravel()
    present = codes.astype(np.int64) * ~missing @ basis.strides
    for rows in row_blocks(len(codes), offsets.size, least_rows=1):
        yield rows, present[rows, None] + offsets


def completion_log_weights(
    model: FullSpanModel, codes: np.ndarray, missing: np.ndarray, table: np.ndarray | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Give the log-weights of all completions of rows that miss the same cells, a block of rows at a time.

    Parameters
    ----------
    model : FullSpanModel
        The model.
    codes : (m, n) of int
        Rows; what stands in missing cells is not read.
    missing : (n,) of bool
        Which cells are missing, at least one.
    table : (|X|,), optional
        Log-weights of all states to read from, where somebody has them.

    Yields
    ------
    rows : slice
        Which rows.
    log_weights : (rows, completions)
        Completions in the order of the missing cells' own table.
    """
    given, free = np.flatnonzero(~missing), np.flatnonzero(missing)
    size = SpanBasis(tuple(model.cardinalities[i] for i in free)).size
    require_memory(
        16.0 * size, f"summing {free.size} missing cells out ({size:.3g} completions)", "give rows with fewer of them"
    )
    if table is not None:
        for rows, places in completion_places(model.basis, codes, missing):
            yield rows, table[places]
        return
    least_rows = 1 if size > MOST_LISTED else 16
    for rows in row_blocks(len(codes), max(size, len(model.theta)), least_rows=least_rows):
        basis, indices, theta = model.restrict(given, codes[rows][:, given])
        if size <= MOST_LISTED:
            every = basis.digits(np.arange(size))
            yield rows, theta @ basis.values(indices, every).T
        else:
            yield rows, np.array([_transformed(basis, indices, row) for row in theta])


def _transformed(basis: SpanBasis, indices: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Log-weights of all states of the free variables, by one transform."""
    table = aligned_zeros(basis.size)
    fill_log_weights(table, basis, indices, theta)
    return table


def log_evidence(model: FullSpanModel, codes: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    """Return ``log P + log Z`` of the present cells of each row of codes.

    A row with missing cells costs its completions; a table of all states is made where that is cheaper.
    """
    evidence, table = np.empty(len(codes)), table_for(model, len(codes))
    for rows, pattern in patterns_of(codes, missing):
        if not pattern.any():
            here = codes[rows]
            evidence[rows] = model.log_weights_of_codes(here) if table is None else table[model.basis.indices(here)]
            continue
        for part, logs in completion_log_weights(model, codes[rows], pattern, table):
            evidence[rows[part]] = logsumexp(logs, axis=1)
    return evidence


def table_for(model: FullSpanModel, n_rows: int) -> np.ndarray | None:
    """Return the log-weights of all states where that is cheaper than looking at each row by itself."""
    return model.log_weight_table() if model.table_pays(n_rows) else None


def with_hidden_cells(
    model: FullSpanModel, codes: np.ndarray, missing: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return rows of visible codes with the hidden variables after them, missing in every row."""
    if not model.n_hidden:
        return codes, missing
    holes = np.ones((len(codes), model.n_variables), bool)
    holes[:, : codes.shape[1]] = False if missing is None else missing
    return np.pad(codes, ((0, 0), (0, model.n_hidden))), holes
