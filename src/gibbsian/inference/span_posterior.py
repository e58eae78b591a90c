"""Posteriors of full-span models: all completions of rows with the same missing cells at once, from tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, Mask
from gibbsian.inference.completions import value_columns, value_indicators
from gibbsian.inference.posterior import POSTERIORS, EnumeratedRows, Split
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.models.rows import patterns_of
from gibbsian.resources import require_memory, row_blocks
from gibbsian.startup import logsumexp

# Maximum number of completions whose weights are a matrix product for many rows; more take a transform for each row.
MAX_LISTED = 2**10


def completion_states(basis: SpanBasis, codes: Codes, missing: Mask) -> Integers:
    """Return the numbers of the states of all completions of rows with the same missing cells."""
    offsets = np.zeros(1, np.intp)
    for i in np.flatnonzero(missing):
        offsets = (offsets[:, None] + basis.strides[i] * np.arange(basis.shape[i])).ravel()
    present: Integers = codes.astype(np.intp) * ~missing @ basis.strides
    return present[:, None] + offsets


@POSTERIORS.register("full-span")
def split_span(family: FullSpanFamily, x: Codes, missing: Mask | None) -> Split:
    """Bind all rows."""
    return Split(np.arange(len(x)), SpanRows.of(family, x, missing), np.empty(0, np.intp))


@dataclass(frozen=True, eq=False)
class SpanRows(EnumeratedRows):
    """Rows of a full-span model (see `Posterior`): those with the same missing cells are enumerated together.

    Parameters
    ----------
    family : FullSpanFamily
        The basis functions.
    x : ndarray of shape (n_rows, n_variables)
        The rows.
    missing : ndarray of bool, or None
        Mask of the missing cells.
    table : ndarray, optional
        The log-weights of all states at the theta of later calls, if they are available; else they are computed in each
        call if that is faster than evaluating so many rows.
    """

    family: FullSpanFamily
    x: Codes
    table: Floats | None = None

    @classmethod
    def of(cls, family: FullSpanFamily, x: Codes, missing: Mask | None, table: Floats | None = None) -> SpanRows:
        """Bind rows of the columns; hidden variables are appended as missing cells."""
        n_hidden = len(family.variables) - x.shape[1]
        if n_hidden:
            mask = np.ones((len(x), len(family.variables)), bool)
            mask[:, : x.shape[1]] = False if missing is None else missing
            return cls(family, np.pad(x, ((0, 0), (0, n_hidden))), mask, table)
        return cls(family, x, missing, table)

    def completions(self, theta: Floats) -> Iterator[tuple[Integers, Mask, Floats]]:
        """Yield rows with the same missing cells, the mask of these, and the log-weights of all completions.

        The log-weights are of shape (n_rows, n_completions), with completions in lexicographic order.
        """
        family, table = self.family, self.table
        if table is None and family.basis.table_pays(len(self.x), family.n_parameters):
            table = family.log_weight_table(theta)
        for rows, cells in patterns_of(self.x, self.missing):
            given, free = np.flatnonzero(~cells), np.flatnonzero(cells)
            size = math.prod(family.variables.sizes[i] for i in free)
            what = f"summing {free.size} missing cells out ({size:.3g} completions)"
            require_memory(16.0 * size, what, "give rows with fewer of them")
            width, min_rows = (size, 1) if table is not None else (max(size, family.n_parameters), 16)
            for block in row_blocks(len(rows), width, least_rows=min_rows if size <= MAX_LISTED else 1):
                codes = self.x[rows[block]]
                if table is not None:
                    logs: Floats = table[completion_states(family.basis, codes, cells)]
                elif not free.size:
                    logs = family.log_weights(theta, codes)[:, None]
                else:
                    rest, parameters, constants = family.given_rows(theta, given, codes[:, given])
                    if size <= MAX_LISTED:
                        logs = parameters @ rest.basis.values(rest.functions, rest.basis.digits(np.arange(size))).T
                    else:
                        logs = np.array([rest.log_weight_table(row) for row in parameters])
                    logs = logs + constants[:, None]
                yield rows[block], cells, logs

    def log_evidence(self, theta: Floats) -> Floats:
        """Return the log of each row's weight, summed over its missing cells."""
        evidence: Floats = np.empty(len(self.x))
        for rows, _, logs in self.completions(theta):
            evidence[rows] = logsumexp(logs, axis=1)
        return evidence

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        return self.log_evidence(theta), super().expect(theta, weights)[1]

    def cell_probabilities(self, theta: Floats) -> Floats:
        """Return the probabilities of the cells' values given the present cells."""
        variables, first = self.family.variables, int(self.family.variables.two_valued)
        probabilities = value_indicators(variables, self.x)
        for rows, cells, logs in self.completions(theta):
            if cells.any():
                sizes = [variables.sizes[i] for i in np.flatnonzero(cells)]
                posterior = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
                tables = [
                    posterior.reshape(len(rows), math.prod(sizes[:k]), size, -1).sum(axis=(1, 3))[:, first:]
                    for k, size in enumerate(sizes)
                ]
                probabilities[np.ix_(rows, value_columns(variables, cells))] = np.hstack(tables)
        return probabilities
