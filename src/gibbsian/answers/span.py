"""Answers about full-span models: probabilities of rows, samples, most probable states; all exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gibbsian.answers.about import ANSWERS
from gibbsian.answers.base import Answers
from gibbsian.answers.draws import watched_draws
from gibbsian.data import Dataset
from gibbsian.errors import TooExpensiveError
from gibbsian.estimate import Estimate
from gibbsian.models.span_completions import (
    completion_log_weights,
    log_evidence,
    patterns_of,
    table_for,
    with_hidden_cells,
)
from gibbsian.resources import row_blocks
from gibbsian.startup import logsumexp

# States of a table looked at together.
STATES_AT_ONCE = 2**18


@ANSWERS.register("full-span")
class SpanAnswers(Answers):
    """Answers about one full-span model; questions that need all states share the model's tables.

    Parameters
    ----------
    model : FullSpanModel
        The model. Its last ``n_hidden`` variables are columns that no row shows.
    """

    # -- log Z --------------------------------------------------------------------------------------------------------
    def log_partition(self) -> float:
        """Return log Z, exactly."""
        return self.model.log_partition

    # -- rows, with missing cells -------------------------------------------------------------------------------------
    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return ``log P + log Z`` of the present cells of each distinct row."""
        return log_evidence(self.model, *self._cells(data))

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator | None = None) -> np.ndarray:
        """Return the probabilities of the values of each cell given the present cells of its distinct row.

        An array of shape (rows, columns) with the probability of the upper value where columns have two, else of shape
        (rows, columns, values) with zeros after the last value of a column that has fewer.
        """
        every = self._value_probabilities(*self._cells(data))[:, : data.n_variables]
        return every[:, :, 1] if data.domain.two_valued else every

    def hidden_probabilities(self, data: Dataset, rng: np.random.Generator | None = None) -> np.ndarray:
        """Return the probabilities of the values of the hidden variables given the present cells of a distinct row."""
        every = self._value_probabilities(*self._cells(data))
        hidden = range(data.n_variables, self.model.n_variables)
        return np.concatenate([every[:, i, : self.model.cardinalities[i]] for i in hidden], axis=1)

    def _cells(self, data: Dataset) -> tuple[np.ndarray, np.ndarray | None]:
        return with_hidden_cells(self.model, data.domain.to_codes(data.states), data.missing)

    def _value_probabilities(self, codes: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
        """Return the probability of each value of each cell: (rows, n, values), with a one where a cell is present."""
        cardinalities, table = self.model.cardinalities, table_for(self.model, len(codes))
        every = np.zeros((len(codes), len(cardinalities), max(cardinalities)))
        np.put_along_axis(every, codes.astype(np.intp)[:, :, None], 1.0, axis=2)
        for rows, pattern in patterns_of(codes, missing):
            cells = np.flatnonzero(pattern)
            if cells.size == 0:
                continue
            sizes = [cardinalities[i] for i in cells]
            for part, logs in completion_log_weights(self.model, codes[rows], pattern, table):
                shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
                block = rows[part]
                for place, i in enumerate(cells):
                    before, after = int(np.prod(sizes[:place])), int(np.prod(sizes[place + 1 :]))
                    split = shares.reshape(len(block), before, sizes[place], after)
                    every[block, i] = 0.0
                    every[block, i, : sizes[place]] = split.sum(axis=(1, 3))
        return every

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Return the mean of ``sum_i log P(x_i | the other columns)``; needs no partition function."""
        data.require_complete("the pseudolikelihood", "")
        codes, _ = self._cells(data)
        total, table = np.zeros(len(codes)), table_for(self.model, len(codes))
        for i in range(data.n_variables):
            open_cells = np.arange(self.model.n_variables) >= data.n_variables
            open_cells[i] = True
            for rows, logs in completion_log_weights(self.model, codes, open_cells, table):
                values = logsumexp(logs.reshape(len(logs), self.model.cardinalities[i], -1), axis=2)
                own = np.take_along_axis(values, codes[rows, i].astype(np.intp)[:, None], axis=1)[:, 0]
                total[rows] += own - logsumexp(values, axis=1)
        return float(np.average(total, weights=data.weights))

    # -- the whole distribution ---------------------------------------------------------------------------------------
    def expect(self, rng: np.random.Generator, method: Any = "auto", n_samples: int | None = None) -> Estimate:
        """Return the means of the model's functions, in the layout of theta; exactly, where nothing else is asked."""
        if method not in ("auto", "exact") or n_samples is not None:
            return super().expect(rng, method, n_samples)
        means = self.means()
        return Estimate(means)

    def means(self) -> np.ndarray:
        """Return ``<Phi_y>`` of the model's own functions, in the order of its theta."""
        return self.model.dual()[self.model.indices]

    def _drawn(self, n_samples: int, rng: np.random.Generator, method: str) -> np.ndarray:
        """Draw independent states from the table of all, or by chains where it does not fit or they are asked for."""
        if method not in ("auto", "exact"):
            return super()._drawn(n_samples, rng, method)
        try:
            table = self.model.probability_table()
        except TooExpensiveError:
            if method == "exact":
                raise
            return watched_draws(self.model, n_samples, rng)
        blocks = list(_blocks(table.size))
        ends = np.cumsum([table[block].sum() for block in blocks])
        places = rng.random(n_samples) * ends[-1]
        block_of = np.minimum(np.searchsorted(ends, places, side="right"), len(blocks) - 1)
        drawn = np.empty(n_samples, np.int64)
        for number in np.unique(block_of):
            block, mine = blocks[number], np.flatnonzero(block_of == number)
            within = np.cumsum(table[block])
            start = ends[number] - within[-1]
            found = np.searchsorted(within, places[mine] - start, side="right")
            # rounding may point past the end: the last state that has any probability is meant
            drawn[mine] = block.start + np.minimum(found, np.flatnonzero(table[block]).max(initial=0))
        return self.model.domain.from_codes(self.model.basis.digits(drawn).astype(np.int8))


def losses_without(theta: np.ndarray, means: np.ndarray, data_means: np.ndarray) -> np.ndarray:
    """Return by how much the divergence from the data would grow without each function, all other parameters kept."""
    size, signed = np.abs(theta), np.sign(theta) * means
    # ln(cosh t - m sinh t), with the larger exponential taken out
    spread = size + np.log(0.5 * ((1 - signed) + (1 + signed) * np.exp(-2 * size)))
    return theta * data_means + spread


def _blocks(size: int) -> Iterator[slice]:
    return row_blocks(size, 1, max_cells=STATES_AT_ONCE)
