"""Posteriors of pairwise models: missing cells summed out exactly for all rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, Mask, Slice, States
from gibbsian.backends.numba import cut_sets as kernels
from gibbsian.backends.numba import pairwise as pairwise_kernels
from gibbsian.backends.threads import WORTH_THREADS, map_slices, sum_in_order
from gibbsian.errors import ArgumentError
from gibbsian.inference.posterior import POSTERIORS, Split
from gibbsian.models.ising import Ising, IsingFamily
from gibbsian.resources import row_blocks

# Rows with larger cut sets go through exact inference one by one, which then costs no more than a sum over the values
# of the cut set.
LARGEST_CUT = 12
# Number of rows in a block, and of rows that a thread sums; constants, so that the order of sums is fixed.
ROWS_AT_ONCE = 2**14
BLOCK = 64
# Seconds for one missing cell and one value of the cut set; the second is for each cell of the cut set.
CELL_SECONDS, CUT_SECONDS = 1.5e-8, 1e-9
# Seconds for one product of a variable with another in one row: the matrix products around the sums.
PRODUCT_SECONDS = 3e-10
# The unit of work for threads.
OPERATIONS_PER_SECOND = 1e3 * WORTH_THREADS


@dataclass(frozen=True, eq=False)
class CutSets:
    """Rows of pairs with cut sets: given the values of its cut set, the missing cells of a row do not interact.

    The hidden units of a restricted machine do not interact, so that complete rows need no cut set.

    Parameters
    ----------
    family : IsingFamily
        The family.
    present : ndarray of shape (n_rows, n_variables)
        The rows as spins, zero where cells are missing.
    pointers, cells : ndarray of int
        The missing cells of row r are ``cells[pointers[r] : pointers[r + 1]]``, the cut set first.
    n_cut : ndarray of shape (n_rows,)
        Sizes of the cut sets.
    """

    family: IsingFamily
    present: Codes
    pointers: Integers
    cells: Integers
    n_cut: Integers

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""
        return self._sum_seconds + PRODUCT_SECONDS * self.present.size * self.present.shape[1]

    @property
    def _sum_seconds(self) -> float:
        cells = np.exp2(self.n_cut) * np.diff(self.pointers)
        return float(cells @ (CELL_SECONDS + CUT_SECONDS * self.n_cut))

    def log_evidence(self, theta: Floats) -> Floats:
        """Return the log of each row's weight, summed over its missing cells."""
        return self._sum_out(self.family.ising(theta), np.zeros(len(self.present)))[0]

    def cell_probabilities(self, theta: Floats) -> Floats:
        """Return the probability of the upper value of each cell given the present cells of its row."""
        return (1.0 + self._sum_out(self.family.ising(theta), np.zeros(len(self.present)))[1]) / 2.0

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics.

        The mean of a product is the product of the means, unless both cells are missing and share an edge.
        """
        family, ising, n_rows = self.family, self.family.ising(theta), len(self.present)
        low, high = family.variables.levels[0]
        log_evidence, statistics = np.empty(n_rows), np.zeros(np.size(theta))
        for start in range(0, n_rows, ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            log_evidence[block], means, extra = self._part(block)._sum_out(ising, weights[block])
            statistics += factorised_statistics(family, means, weights[block])
            # products of 0/1 values change by a quarter of the change of products of spins
            statistics[family.n_parameters - family.graph.n_edges :] += extra * ((high - low) / 2.0) ** 2
        return log_evidence, statistics

    def _part(self, block: Slice) -> CutSets:
        if block.start == 0 and block.stop >= len(self.present):
            return self
        pointers = self.pointers[block.start : block.stop + 1]
        cells = self.cells[pointers[0] : pointers[-1]]
        return CutSets(self.family, self.present[block], pointers - pointers[0], cells, self.n_cut[block])

    def _sum_out(self, ising: Ising, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Log-evidence and means as spins of each row, and the covariances of missing cells that share an edge."""
        means: Floats = self.present.astype(np.float64)
        indptr, neighbours, ids = ising.graph.csr
        couplings: Floats = ising.couplings[ids]
        if self.family.graph.is_dense:
            fields: Floats = means @ ising.graph.matrix(ising.couplings) + ising.fields
        else:
            fields = pairwise_kernels.sparse_fields(means, indptr, neighbours, couplings) + ising.fields
        present: Floats = np.einsum("ri,ri->r", means, fields + ising.fields) / 2.0
        graph = (indptr, neighbours, ids, couplings, BLOCK, ising.graph.n_edges)

        def sum_rows(part: Slice) -> tuple[Floats, Floats]:
            where = (self.pointers[part.start : part.stop + 1], self.cells, self.n_cut[part])
            sums: tuple[Floats, Floats] = kernels.sum_rows(means[part], fields[part], weights[part], *where, *graph)
            return sums

        parts = map_slices(sum_rows, len(means), self._sum_seconds * OPERATIONS_PER_SECOND, grain=BLOCK)
        sums, extra = map(np.concatenate, zip(*parts, strict=True))
        return ising.constant + present + sums, means, extra.sum(axis=0)


@POSTERIORS.register("pairwise")
def split_by_cut(family: IsingFamily, x: States, missing: Mask | None) -> Split:
    """Bind the rows with small cut sets."""
    if x.shape[1] != family.graph.n_nodes:  # kernels do not check
        raise ArgumentError(f"the data has {x.shape[1]} variables but the model has {family.graph.n_nodes}")
    mask: Mask = np.zeros(x.shape, bool) if missing is None else missing
    n_missing = mask.sum(axis=1)
    pointers, cells = np.concatenate([[0], np.cumsum(n_missing)]), np.nonzero(mask)[1].copy()
    indptr, neighbours, _ = family.graph.csr
    n_cut: Integers = kernels.cut_rows(pointers, cells, indptr, neighbours, LARGEST_CUT)
    light = n_cut >= 0
    present = np.where(mask[light], np.int8(0), (2 * x[light] - 1).astype(np.int8))
    starts = np.concatenate([[0], np.cumsum(n_missing[light])])
    together = CutSets(family, present, starts, cells[np.repeat(light, n_missing)], n_cut[light])
    return Split(np.flatnonzero(light), together, np.flatnonzero(~light))


def factorised_statistics(family: IsingFamily, spin_means: Floats, weights: Floats) -> Floats:
    """Return ``sum_r weights[r] E_r[S]`` where the variables of row r are independent with these means as spins."""
    low, high = family.variables.levels[0]
    values: Floats = low + (high - low) * (spin_means + 1.0) / 2.0

    def sums(block: Slice) -> Floats:
        scores = values[block]
        weighted = scores * weights[block, None]
        if family.graph.is_dense:
            pairs = pairwise_kernels.gather_edges(weighted.T @ scores, family.graph.edges, False)
        else:
            pairs = pairwise_kernels.edge_products(weighted, scores, family.graph.edges)
        has_biases = family.n_parameters > family.graph.n_edges
        return np.concatenate([weighted.sum(axis=0), pairs]) if has_biases else pairs

    return sum_in_order(sums, row_blocks(*values.shape), family.n_parameters)
