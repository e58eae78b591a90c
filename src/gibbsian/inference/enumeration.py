"""Exact inference by summing over all 2^n states, for any graph on few variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers
from gibbsian.backends.device import twin
from gibbsian.backends.numba import enumeration as kernels
from gibbsian.backends.threads import kept_threads
from gibbsian.inference.engine import ENGINES, Cost, check_n_samples, check_nodes
from gibbsian.inference.ising_answers import IsingAnswers, IsingEngine
from gibbsian.inference.log_tables import digits, invert
from gibbsian.models.base import Family
from gibbsian.models.ising import is_ising
from gibbsian.resources import require_memory

# A row of 2^10 log-weights and the columns' sums stay in the first-level cache.
LOW_VARIABLES = 10
SECONDS_PER_STATE = 3e-9
# Predictions stop growing here, well before a float64 overflows.
LARGEST_EXPONENT = 900
# Log-weights closer than this, relative to the sum of all |parameters|, differ by rounding only.
TIE = 1e-14


@dataclass(frozen=True)
class _Table:
    """The 2^n states as 2^n_high rows of 2^n_low columns; variable 0 is the most significant bit."""

    biases: Floats
    couplings: Floats
    n_high: int

    @cached_property
    def parameters(self) -> tuple[Floats, Floats, int, Floats]:
        """The arguments that kernels share; the last one has the log-weights of the low variables alone."""
        return self.biases, self.couplings, self.n_high, kernels.low_energies(self.biases, self.couplings, self.n_high)

    @cached_property
    def maxima(self) -> Floats:
        """Largest log-weight of each row."""
        return np.asarray((twin("enumeration") or kernels).row_maxima(*self.parameters), np.float64)

    @cached_property
    @kept_threads()
    def sums(self) -> tuple[Floats, Floats, Floats]:
        """Row masses, row moments of the low variables and column masses, relative to the largest weight."""
        sums: tuple[Floats, Floats, Floats] = (twin("enumeration") or kernels).row_sums(
            *self.parameters, self.maxima.max()
        )
        return sums


@ENGINES.register("enumeration")
class Enumeration(IsingEngine):
    """Exact answers by enumeration.

    The number of a state has variable 0 as its most significant bit and a zero bit for the lower value, so
    ``marginal`` over all nodes, read in C order, lists the states by number.

    Parameters
    ----------
    family : PairwiseFamily
        At most about 30 variables; `exact` checks what that costs.
    max_seconds : float
        Not used: no question takes longer than the moments.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(3), [0.5, 0.0, 0.0], [1.0, 1.0, 1.0])
    >>> answers = gb.inference.Enumeration(model.family).at(model.theta)
    >>> answers.log_partition
    3.86...
    >>> answers.mode[0]
    array([1, 1, 1], dtype=int8)
    """

    @classmethod
    def price(cls, family: Family) -> Cost | None:
        """Predict the cost for families of spins in some coding."""
        if not is_ising(family):
            return None
        n = family.graph.n_nodes
        n_low = min(n, LOW_VARIABLES)
        n_rows = 2.0 ** min(n - n_low, LARGEST_EXPONENT)
        seconds = 1e-4 + SECONDS_PER_STATE * n_rows * 2**n_low
        # per row: mass, maximum, moments of the low variables, copies while folding; per block: a table of columns
        n_bytes = 8 * (n_rows * (2 * n_low + 6) + kernels.N_BLOCKS * 2**n_low)
        return Cost("enumeration", seconds, n_bytes, lower_bound=n - n_low > LARGEST_EXPONENT)

    def at(self, theta: Floats) -> EnumerationAnswers:
        """Return the answers at some parameters."""
        return EnumerationAnswers(self, theta)


class EnumerationAnswers(IsingAnswers):
    """Answers from the sums of all rows of states."""

    @cached_property
    def _table(self) -> _Table:
        graph, fields, couplings, _ = self.ising
        return _Table(fields, graph.matrix(couplings), max(graph.n_nodes - LOW_VARIABLES, 0))

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        masses, _, _ = self._table.sums
        return float(self._table.maxima.max() + np.log(masses.sum()) + self.ising.constant)

    @cached_property
    def _spin_moments(self) -> tuple[Floats, Floats]:
        """E[s_i] and E[s_i s_j]: within the halves from their own tables, across them from the row moments."""
        masses, row_moments, columns = self._table.sums
        n, n_high = self.ising.graph.n_nodes, self._table.n_high
        first, second = np.empty(n), np.empty((n, n))
        first[:n_high], second[:n_high, :n_high] = kernels.fold_second_moments(masses.copy(), n_high)
        first[n_high:], second[n_high:, n_high:] = kernels.fold_second_moments(columns.copy(), n - n_high)
        if n_high:
            second[n_high:, :n_high] = kernels.fold_cross_moments(row_moments, n_high)
            second[:n_high, n_high:] = second[n_high:, :n_high].T
        total = masses.sum()
        return first / total, second / total

    @cached_property
    def spin_means(self) -> Floats:
        """E[s_i] of each spin."""
        return self._spin_moments[0]

    @cached_property
    def edge_products(self) -> Floats:
        """E[s_i s_j] along each edge."""
        i, j = self.ising.graph.edges.T
        return np.asarray(self._spin_moments[1][i, j], np.float64)

    @cached_property
    def spin_products(self) -> Floats:
        """E[s_i s_j] of all pairs."""
        return self._spin_moments[1]

    def marginal(self, nodes: Iterable[int]) -> Floats:
        """Return the joint probabilities of some variables, shape ``(2,) * k``, axes in the order given.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [1.0])
        >>> gb.inference.exact(model).marginal([0, 1]).round(3)
        array([[0.44, 0.06], [0.06, 0.44]])
        """
        n = self.ising.graph.n_nodes
        nodes = check_nodes(nodes, n)
        # with these variables first, each of their states is a group of complete rows
        order = np.concatenate([nodes, np.setdiff1d(np.arange(n), nodes)])
        n_high = max(n - LOW_VARIABLES, nodes.size)
        n_bytes = 8.0 * 2**n_high * (n - n_high + 3)
        require_memory(n_bytes, f"the joint marginal of {nodes.size} variables", "ask for fewer")
        graph, fields, couplings, _ = self.ising
        matrix = np.ascontiguousarray(graph.matrix(couplings)[np.ix_(order, order)])
        masses = _Table(fields[order], matrix, n_high).sums[0]
        grouped: Floats = masses.reshape(2**nodes.size, -1).sum(axis=1)
        return (grouped / float(grouped.sum())).reshape((2,) * nodes.size)

    @cached_property
    def mode(self) -> tuple[Codes, float]:
        """The state of largest probability (of several, the one of lowest number) and its log-probability."""
        table = self._table
        scale = np.abs(table.biases).sum() + np.abs(table.couplings).sum()
        enough = table.maxima.max() - TIE * scale
        row = int(np.argmax(table.maxima >= enough))
        log_weights: Floats = kernels.row_log_weights(row, *table.parameters)
        column = int(np.argmax(log_weights >= enough))
        log_probability = log_weights[column] + self.ising.constant - self.log_partition
        return self._states(np.array([row * log_weights.size + column]))[0], float(log_probability)

    def sample(self, n_samples: int, rng: np.random.Generator) -> Codes:
        """Draw independent states: first the row by its mass, then the column within the row."""
        n_samples, n = check_n_samples(n_samples), self.ising.graph.n_nodes
        require_memory(n_samples * (64.0 + n), f"{n_samples} samples of {n} variables", "draw fewer at a time")
        uniforms = rng.random((2, n_samples))
        drawn = invert(np.cumsum(self._table.sums[0]), uniforms[0])
        by_row = np.argsort(drawn, kind="stable")
        rows, starts = np.unique(drawn[by_row], return_index=True)
        columns = np.empty(n_samples, np.int64)
        columns[by_row] = kernels.sample_columns(
            rows, np.append(starts, n_samples), uniforms[1][by_row], *self._table.parameters
        )
        return self._states(drawn * 2 ** (n - self._table.n_high) + columns)

    def _states(self, indices: Integers) -> Codes:
        """Return the codes of states by their indices."""
        return digits(indices, (2,) * self.ising.graph.n_nodes)
