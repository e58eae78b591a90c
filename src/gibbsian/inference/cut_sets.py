"""Missing cells of pairwise models summed out exactly for all rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.backends.numba import cut_sets as kernels
from gibbsian.backends.numba import pairwise as pairwise_kernels
from gibbsian.backends.parallel import WORTH_THREADS, in_slices, map_in_order
from gibbsian.domain import SPIN
from gibbsian.errors import ArgumentError
from gibbsian.inference.contract import codes_of, levels_of
from gibbsian.models.ising import Ising
from gibbsian.resources import row_blocks

# Cut sets of more cells are left to exact inference on the one row, which then costs no more than going through their
# values.
LARGEST_CUT = 12
# Rows that are worked on at a time, and rows whose sums one thread takes; constants, so that the order of sums is too.
ROWS_AT_ONCE = 2**14
BLOCK = 64
# Seconds for one missing cell under one value of the cut set, and more for each cell of the cut set.
CELL_SECONDS, CUT_SECONDS = 1.5e-8, 1e-9
# Seconds for one product of a variable with another in one row: the matrix products around the sums.
PRODUCT_SECONDS = 3e-10
# The measure in which work is given to threads.
OPERATIONS_PER_SECOND = 1e3 * WORTH_THREADS


@dataclass(frozen=True, eq=False)
class CutSets:
    """Rows of pairs with cut sets: given the values of its cut set, missing cells do not interact.

    A restricted machine with whole rows needs none; with hidden units that interact, all of them but one.

    Parameters
    ----------
    family : Family
        Of pairs, with a form in spins.
    present : ndarray of shape (n_rows, n_variables)
        The rows as spins, zero where cells are missing.
    pointers, cells : ndarray of int
        The missing cells of row r are ``cells[pointers[r] : pointers[r + 1]]``, the cut set first.
    n_cut : ndarray of shape (n_rows,)
        Sizes of the cut sets.
    """

    family: Any
    present: np.ndarray
    pointers: np.ndarray
    cells: np.ndarray
    n_cut: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.present)

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""
        return self._sum_seconds + PRODUCT_SECONDS * self.present.size * self.present.shape[1]

    @property
    def _sum_seconds(self) -> float:
        cells = np.exp2(self.n_cut) * np.diff(self.pointers)
        return float(cells @ (CELL_SECONDS + CUT_SECONDS * self.n_cut))

    def log_evidence(self, theta: np.ndarray) -> np.ndarray:
        """Return the log of each row's weight, summed over its missing cells."""
        return self._sum_out(self.family.ising(theta), np.zeros(self.n_rows))[0]

    def cell_probabilities(self, theta: np.ndarray) -> np.ndarray:
        """Return the probability of the upper value of each cell given the present cells of its row."""
        return (1.0 + self._sum_out(self.family.ising(theta), np.zeros(self.n_rows))[1]) / 2.0

    def expect(self, theta: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics.

        A product has the product of means for its mean, unless both cells are missing and joined to each other.
        """
        family, ising = self.family, self.family.ising(theta)
        log_evidence, statistics = np.empty(self.n_rows), np.zeros(np.size(theta))
        for start in range(0, self.n_rows, ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            log_evidence[block], means, extra = self._part(block)._sum_out(ising, weights[block])
            statistics += factorised_statistics(family, means, weights[block])
            # products of 0/1 values change by a quarter of what those of spins do
            statistics[family.n_biases :] += extra * (np.ptp(levels_of(family)[0]) / SPIN.gap) ** 2  # type: ignore[index]
        return log_evidence, statistics

    def _part(self, block: slice) -> CutSets:
        if block.start == 0 and block.stop >= self.n_rows:
            return self
        pointers = self.pointers[block.start : block.stop + 1]
        cells = self.cells[pointers[0] : pointers[-1]]
        return CutSets(self.family, self.present[block], pointers - pointers[0], cells, self.n_cut[block])

    def _sum_out(self, ising: Ising, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log-evidence and means as spins of each row, and what joined pairs of missing cells add to products."""
        means, (indptr, heads, ids) = self.present.astype(np.float64), ising.graph.csr
        if self.family.graph.is_dense:
            fields = means @ ising.graph.matrix(ising.couplings) + ising.fields
        else:
            fields = pairwise_kernels.sparse_fields(means, indptr, heads, ising.couplings[ids]) + ising.fields
        present = np.einsum("ri,ri->r", means, fields + ising.fields) / 2.0
        graph = (indptr, heads, ids, ising.couplings[ids], BLOCK, ising.graph.n_edges)

        def sum_rows(part: slice) -> tuple[np.ndarray, np.ndarray]:
            where = (self.pointers[part.start : part.stop + 1], self.cells, self.n_cut[part])
            return kernels.sum_rows(means[part], fields[part], weights[part], *where, *graph)

        parts = in_slices(sum_rows, len(means), self._sum_seconds * OPERATIONS_PER_SECOND, grain=BLOCK)
        sums, extra = map(np.concatenate, zip(*parts, strict=True))
        return ising.constant + present + sums, means, extra.sum(axis=0)


def split_by_cut(family: Any, x: np.ndarray, missing: np.ndarray | None) -> tuple[np.ndarray, CutSets, np.ndarray]:
    """Return the numbers of the rows that a small cut set makes independent, these rows, and the others' numbers."""
    if x.shape[1] != family.graph.n_nodes:  # the kernels do not look
        raise ArgumentError(f"the data has {x.shape[1]} variables but the model has {family.graph.n_nodes}")
    lacking = np.zeros(x.shape, bool) if missing is None else missing
    n_missing = lacking.sum(axis=1)
    pointers, cells = np.concatenate([[0], np.cumsum(n_missing)]), np.nonzero(lacking)[1].copy()
    indptr, heads, _ = family.graph.csr
    n_cut = kernels.cut_rows(pointers, cells, indptr, heads, LARGEST_CUT)
    light = n_cut >= 0
    present = np.where(lacking[light], np.int8(0), to_spins(family, x[light]))
    kept = np.concatenate([[0], np.cumsum(n_missing[light])])
    together = CutSets(family, present, kept, cells[np.repeat(light, n_missing)], n_cut[light])
    return np.flatnonzero(light), together, np.flatnonzero(~light)


def factorised_statistics(family: Any, spin_means: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return ``sum_r shares[r] E_r[S]`` where the variables of row r are independent with these means as spins."""
    low, high = levels_of(family)[0]  # type: ignore[index]  # which families of spins have
    values = low + (high - low) * (spin_means + 1.0) / 2.0

    def sums(block: slice) -> np.ndarray:
        right = values[block]
        left = right * shares[block, None]
        if family.graph.is_dense:
            pairs = pairwise_kernels.gather_edges(left.T @ right, family.graph.edges, False)
        else:
            pairs = pairwise_kernels.edge_products(left, right, family.graph.edges)
        return np.concatenate([left.sum(axis=0), pairs]) if family.bias else pairs

    totals = np.zeros(family.n_parameters)
    for part in map_in_order(sums, row_blocks(*values.shape)):
        totals += part
    return totals


def to_spins(family: Any, x: np.ndarray) -> np.ndarray:
    """Return a copy of rows as -1 and +1."""
    return np.asarray(2 * codes_of(family, x) - 1, dtype=np.int8)
