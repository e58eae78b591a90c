"""Answers about full-span models: probabilities of rows, samples, most probable states; all exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gibbsian.answers.about import ANSWERS
from gibbsian.answers.base import Answers, by_value
from gibbsian.answers.draws import watched_draws
from gibbsian.data import Dataset
from gibbsian.errors import TooExpensiveError
from gibbsian.estimate import Estimate
from gibbsian.expectations import Expectation
from gibbsian.inference.span_posterior import SpanRows
from gibbsian.models.base import Array, Model
from gibbsian.models.families.full_span import FullSpanFamily, SpanTable
from gibbsian.resources import row_blocks
from gibbsian.startup import logsumexp

# States of a table looked at together.
STATES_AT_ONCE = 2**18
# A table of all states up to this size (2^23 states) is kept between two questions about a model; a larger one is made
# for each question that needs it, and let go: 2^27 states take 1 GiB.
MAX_KEPT_BYTES = 2**26


class Known(NamedTuple):
    """What was found out of a model and is kept."""

    log_partition: float | None = None
    probabilities: SpanTable | None = None
    log_weights: Array | None = None


# Of models that are still there.
_KNOWN: WeakKeyDictionary[Model[FullSpanFamily], Known] = WeakKeyDictionary()


@ANSWERS.register("full-span")
class SpanAnswers(Answers[FullSpanFamily]):
    """Answers about one full-span model; questions that need all states share its tables.

    Parameters
    ----------
    model : Model
        The model. Its last ``n_hidden`` variables are columns that no row shows.
    """

    # -- tables -------------------------------------------------------------------------------------------------------
    def _known(self) -> Known:
        return _KNOWN.get(self.model, Known())

    def _keep(self, found: Known) -> None:
        _KNOWN[self.model] = found

    def _probabilities(self) -> SpanTable:
        """The probabilities of all states, not to be written to."""
        table = self._known().probabilities
        if table is None:
            table = self.model.family.probabilities(self.model.theta)
            self._keep(self._known()._replace(log_partition=table.log_partition))
            if table.values.nbytes <= MAX_KEPT_BYTES:
                self._keep(self._known()._replace(probabilities=table))
        return table

    def _log_weights(self, n_rows: int) -> Array | None:
        """The log-weights of all states, not to be written to, where they pay for so many rows."""
        family, table = self.model.family, self._known().log_weights
        if not family.basis.table_pays(n_rows, family.n_parameters):
            return None
        if table is None:
            table = family.log_weight_table(self.model.theta)
            if table.nbytes <= MAX_KEPT_BYTES:
                self._keep(self._known()._replace(log_weights=table))
        return table

    # -- log Z --------------------------------------------------------------------------------------------------------
    def log_partition(self) -> float:
        """Return log Z, exactly."""
        found = self._known().log_partition
        return self._probabilities().log_partition if found is None else found

    # -- rows, with missing cells -------------------------------------------------------------------------------------
    def log_evidence(self, data: Dataset) -> Array:
        """Return ``log P + log Z`` of the present cells of each distinct row."""
        return self._rows(data.states, data.missing).log_evidence(self.model.theta)

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator | None = None) -> Array:
        """Return the probabilities of the values of each cell given the present cells of its distinct row.

        An array of shape (rows, columns) with the probability of the upper value where columns have two, else of shape
        (rows, columns, values) with zeros after the last value of a column that has fewer.
        """
        every = self._value_probabilities(data)[:, : data.n_variables]
        return every[:, :, 1] if data.coding.domain.two_valued else every

    def hidden_probabilities(self, data: Dataset, rng: np.random.Generator | None = None) -> Array:
        """Return the probabilities of the values of the hidden variables given the present cells of a distinct row."""
        every, n = self._value_probabilities(data), data.n_variables
        return np.concatenate([every[:, n + k, :q] for k, q in enumerate(self.model.variables.sizes[n:])], axis=1)

    def _rows(self, codes: Array, missing: Array | None) -> SpanRows:
        return SpanRows.of(self.model.family, codes, missing, self._log_weights(len(codes)))

    def _value_probabilities(self, data: Dataset) -> Array:
        """Return the probability of each value of each cell, of shape (rows, variables, values)."""
        flat = self._rows(data.states, data.missing).cell_probabilities(self.model.theta)
        variables = self.model.variables
        return np.stack([1.0 - flat, flat], axis=2) if variables.two_valued else by_value(flat, variables.sizes)

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Return the mean of ``sum_i log P(x_i | the other columns)``; needs no partition function."""
        data.require_complete("the pseudolikelihood", "")
        family, codes, total = self.model.family, data.states.astype(np.intp), np.zeros(data.n_states)
        table = self._log_weights(len(codes))
        for i in range(data.n_variables):
            missing = np.zeros(codes.shape, bool)
            missing[:, i] = True
            bound = SpanRows.of(family, data.states, missing, table)
            for rows, _, logs in bound.completions(self.model.theta):
                values = logsumexp(logs.reshape(len(logs), family.variables.sizes[i], -1), axis=2)
                own = np.take_along_axis(values, codes[rows, i, None], axis=1)[:, 0]
                total[rows] += own - logsumexp(values, axis=1)
        return float(np.average(total, weights=data.weights))

    # -- the whole distribution ---------------------------------------------------------------------------------------
    def expect(
        self, rng: np.random.Generator, method: str | Expectation = "auto", n_samples: int | None = None
    ) -> Estimate:
        """Return the means of the model's functions, in the layout of theta; exactly, where nothing else is asked."""
        if method not in ("auto", "exact") or n_samples is not None:
            return super().expect(rng, method, n_samples)
        return Estimate(self.means())

    def means(self) -> Array:
        """Return ``<Phi_y>`` of the model's own functions, in the order of its theta."""
        return self.model.family.dual(self.model.theta).values[self.model.family.functions]

    def _drawn(self, n_samples: int, rng: np.random.Generator, method: str) -> Array:
        """Draw independent states from the table of all, or by chains where it does not fit or they are asked for."""
        if method not in ("auto", "exact"):
            return super()._drawn(n_samples, rng, method)
        try:
            table = self._probabilities().values
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
        return self.model.family.basis.digits(drawn).astype(np.int8)


def losses_without(theta: Array, means: Array, data_means: Array) -> Array:
    """Return by how much the divergence from the data would grow without each function, all other parameters kept."""
    size, signed = np.abs(theta), np.sign(theta) * means
    # ln(cosh t - m sinh t), with the larger exponential taken out
    spread = size + np.log(0.5 * ((1 - signed) + (1 + signed) * np.exp(-2 * size)))
    return theta * data_means + spread


def _blocks(size: int) -> Iterator[slice]:
    return row_blocks(size, 1, max_cells=STATES_AT_ONCE)
