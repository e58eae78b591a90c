"""All values of the missing cells of rows, enumerated: for any discrete family and few missing cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.errors import CodingError
from gibbsian.models.variables import CUT, Quadrature, Variables
from gibbsian.resources import require_memory

# Largest exponent of counts: powers of two beyond it overflow float64.
LARGEST_EXPONENT = 900.0


@dataclass(frozen=True)
class Completions:
    """All completions of some rows; those of one row are consecutive.

    Parameters
    ----------
    states : ndarray of shape (n_completions, n_variables)
        Complete rows.
    row : ndarray of shape (n_completions,)
        The index of the row that each of them completes, ascending.
    starts : ndarray of shape (n_rows,)
        The index of the first completion of each row.
    log_widths : ndarray of shape (n_completions,), optional
        The log-volume of the nodes that fill the missing cells of each row of real variables.
    """

    states: States
    row: Integers
    starts: Integers
    log_widths: Floats | None = None

    def posterior(self, log_weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence and each completion's probability, given the completions' log-weights."""
        if self.log_widths is not None:
            log_weights = log_weights + self.log_widths
        top = np.maximum.reduceat(log_weights, self.starts)
        weights: Floats = np.exp(log_weights - top[self.row])
        totals = np.add.reduceat(weights, self.starts)
        return top + np.log(totals), weights / totals[self.row]


def value_indicators(variables: Variables, x: States) -> Floats:
    """Return ones where cells have a value and zeros elsewhere.

    A two-valued variable has one column, for the upper value. If any variable has more values, each variable has a
    column for each of its values, from `Variables.offsets` on.
    """
    codes = variables.codes_of(x)
    if variables.two_valued:
        return codes.astype(np.float64)
    indicators: Floats = np.zeros((len(x), variables.offsets[-1]))
    np.put_along_axis(indicators, variables.offsets[:-1] + codes.astype(np.intp), 1.0, axis=1)
    return indicators


def value_columns(variables: Variables, cells: Mask) -> Mask:
    """Return the mask of the columns of `value_indicators` of some variables."""
    return cells if variables.two_valued else np.repeat(cells, variables.sizes)


def count_completions(variables: Variables, missing: Mask | None, n_rows: int, by_nodes: bool = False) -> Floats:
    """Return the number of completions of each row, as floats that do not overflow.

    Real variables have infinitely many values; with `by_nodes`, those of their quadrature rule.
    """
    if missing is None:
        return np.ones(n_rows)
    if isinstance(variables, Quadrature) and not by_nodes:
        return np.where(missing.any(axis=1), np.inf, 1.0)
    if 0 in variables.sizes:
        raise CodingError("this needs discrete values, but the variables are real numbers", CUT)
    exponents = np.einsum("mi,i->m", missing, np.log2(variables.sizes))
    counts: Floats = np.rint(np.exp2(np.minimum(exponents, LARGEST_EXPONENT)))
    return counts


def enumerate_completions(variables: Variables, x: States, missing: Mask | None) -> Completions:
    """Return every completion of every row, of real variables by nodes, after a check of the memory."""
    counts = count_completions(variables, missing, len(x), by_nodes=True)
    total = float(counts.sum())
    require_memory(
        total * (x.shape[1] + 32.0),
        f"listing the {total:.3g} completions of the rows with missing cells",
        "leave out the rows with the most missing cells",
    )
    lengths = counts.astype(np.int64)
    row = np.repeat(np.arange(len(x)), lengths)
    starts = np.cumsum(lengths) - lengths
    states, widths = x[row], np.zeros(row.size) if variables.real else None
    sizes, n_missing = np.array(variables.sizes), np.zeros(len(x), np.int64) if missing is None else missing.sum(axis=1)
    for k in np.unique(n_missing[n_missing > 0]):  # rows with as many missing cells together
        rows = np.flatnonzero(n_missing == k)
        cells = np.nonzero(np.asarray(missing)[rows])[1].reshape(-1, k)
        steps = np.cumprod(sizes[cells], axis=1) // sizes[cells]
        each = np.repeat(np.arange(rows.size), lengths[rows])
        number = np.arange(each.size) - np.repeat(np.cumsum(lengths[rows]) - lengths[rows], lengths[rows])
        # the digits of each completion's number, to the bases of the missing cells
        digits = number[:, None] // steps[each] % sizes[cells[each]]
        indices = starts[rows][each] + number
        if widths is not None and isinstance(variables, Quadrature):
            states[indices[:, None], cells[each]] = variables.support.nodes[digits]
            widths[indices] = variables.log_widths(digits)
        else:
            states[indices[:, None], cells[each]] = digits
    return Completions(states, row, starts, widths)
