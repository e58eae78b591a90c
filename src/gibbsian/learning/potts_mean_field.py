"""Naive mean field for variables with many values: couplings from the inverse of the correlations of indicators.

The last value of each variable is left out, because the indicators of all its values sum to one. With C the
correlations of the others, ``J = -C^-1`` between variables, and the biases balance the means: the mean-field form of
direct coupling analysis (Morcos et al. 2011).
"""

from __future__ import annotations

import numpy as np

from gibbsian.arrays import Floats, Integers
from gibbsian.data import Dataset
from gibbsian.errors import DataError, MissingValuesError
from gibbsian.models.families.tables import TablesFamily
from gibbsian.resources import require_memory, row_blocks

# An indicator of which the others leave a smaller share of the variance unexplained counts as determined by them.
MIN_UNEXPLAINED = 1e-10


def solve_potts(family: TablesFamily, data: Dataset, pseudocount: float) -> Floats:
    """Return the mean-field parameters of a Potts family, in the zero-sum gauge.

    Parameters
    ----------
    family : TablesFamily
        The structure. The inverse is taken over all pairs, and couplings are kept on the edges.
    data : Dataset
        Data of its variables; frequencies are over the rows that show both cells.
    pseudocount : float
        Weight of a uniform distribution that is mixed into the data, over that of the data; 1 is usual for proteins.
    """
    starts = family.variables.offsets
    require_memory(
        5 * 8.0 * starts[-1] ** 2,
        f"inverting the correlations of {starts[-1]} values",
        "use `learner='mple'`, which needs no inverse",
    )
    pairs = _pair_frequencies(data, starts, pseudocount)
    singles = np.diag(pairs)
    kept = np.setdiff1d(np.arange(starts[-1]), starts[1:] - 1)
    correlations = pairs - np.outer(singles, singles)
    couplings = np.zeros_like(pairs)
    couplings[np.ix_(kept, kept)] = -_inverse(correlations[np.ix_(kept, kept)], data)
    edges = family.graph.edges.tolist()
    spans = [slice(starts[i], starts[i + 1]) for i in range(len(starts) - 1)]
    biases = [np.log(singles[span]) for span in spans]
    for i, j in edges:
        table = couplings[spans[i], spans[j]]
        biases[i] = biases[i] - table @ singles[spans[j]]
        biases[j] = biases[j] - table.T @ singles[spans[i]]
    tables = (couplings[spans[i], spans[j]].ravel() for i, j in edges)
    return family.canonical(np.concatenate([*biases, *tables]))


def _pair_frequencies(data: Dataset, starts: Integers, pseudocount: float) -> Floats:
    """Frequencies of all pairs of values, those of single values on the diagonal, mixed with a uniform distribution."""
    codes, shares = data.states, data.weights / data.total_weight
    n = len(starts) - 1
    pairs, shown = np.zeros((starts[-1], starts[-1])), np.zeros((n, n))
    for block in row_blocks(len(codes), int(starts[-1])):
        present = np.ones(codes[block].shape) if data.missing is None else 1.0 - data.missing[block]
        indicators = np.zeros((block.stop - block.start, starts[-1]))
        np.put_along_axis(indicators, starts[:-1] + codes[block], present, axis=1)
        pairs += indicators.T @ (indicators * shares[block, None])
        shown += present.T @ (present * shares[block, None])
    if data.missing is not None:
        pairs = _per_row_shown(pairs, shown, np.diff(starts))
    uniform = np.repeat(1.0 / np.diff(starts), np.diff(starts))
    flat = np.outer(uniform, uniform)
    for i in range(n):
        span = slice(starts[i], starts[i + 1])
        flat[span, span] = np.diag(uniform[span])
    mixed = (pairs + pseudocount * flat) / (1.0 + pseudocount)
    if (unseen := np.flatnonzero(np.diag(mixed) <= 0)).size:
        column = int(np.searchsorted(starts, unseen[0], side="right")) - 1
        raise DataError(
            f"column {data.names[column]!r} has a value that never occurs, so its bias has no finite value",
            "give `l2=1`, the usual pseudocount",
        )
    return mixed


def _per_row_shown(pairs: Floats, shown: Floats, sizes: Integers) -> Floats:
    """Divide the counts of pairs of values by the share of the rows that show both columns."""
    if not (shown > 0).all():
        raise MissingValuesError(
            "some pair of columns is never present together", "drop one of them, or use `learner='mple'`"
        )
    return pairs / np.repeat(np.repeat(shown, sizes, axis=0), sizes, axis=1)


def _inverse(correlations: Floats, data: Dataset) -> Floats:
    scale = np.sqrt(np.outer(np.diag(correlations), np.diag(correlations)))
    inverse, determined = inverted(correlations / scale)
    if determined >= 0:
        raise DataError(
            f"the correlations of the values of {data.n_variables} columns have no inverse (too "
            "few rows, or values that determine each other)",
            "give `l2=1`, the usual pseudocount",
        )
    return inverse / scale


def inverted(matrix: Floats) -> tuple[Floats, int]:
    """Invert a correlation matrix of unit diagonal; return also the first column that others determine, else -1."""
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed_at = dpotrf(matrix, lower=1)
    # squared pivots: the share of each column's variance that the columns before it leave unexplained
    determined = np.flatnonzero(np.diag(factor)[: failed_at - 1 if failed_at else None] ** 2 < MIN_UNEXPLAINED)
    if failed_at or len(determined):
        return matrix, int(determined[0]) if len(determined) else failed_at - 1
    lower, _ = dpotri(factor, lower=1)
    return np.tril(lower) + np.tril(lower, -1).T, -1
