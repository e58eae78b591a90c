"""Exact inference for any model by listing all states: mixed numbers of values, interactions of any order."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.inference.base import ENGINES, Cost, has_fast_transform
from gibbsian.inference.factor_answers import FactorAnswers, needs_factors, table_seconds
from gibbsian.inference.log_tables import Axes, add_up, digits, marginals
from gibbsian.models import Model

SECONDS_PER_STATE = 4e-8
# Predictions stop growing here, well before a float64 overflows.
LARGEST_EXPONENT = 900.0
# Log-weights closer than this, relative to the sum of the factors' largest, differ by rounding only.
TIE = 1e-14


def log_n_states(model: Model) -> tuple[float, bool]:
    """Return the logarithm to the base two of the number of states, and whether it was cut to what a float holds."""
    exponent = float(np.log2(model.domain.cardinalities(model.n_variables)).sum())
    return min(exponent, LARGEST_EXPONENT), exponent > LARGEST_EXPONENT


def _price(model: Model) -> Cost:
    """Predict what listing all states of a model costs."""
    exponent, bound = log_n_states(model)
    n_states = 2.0**exponent
    seconds = table_seconds(model) + SECONDS_PER_STATE * n_states
    # the table of states, and while it is built or summed up halves, quarters ... of it
    n_bytes = 8.0 * (2 * n_states + 4 * model.theta.size)
    return Cost("enumeration", seconds, n_bytes, lower_bound=bound)


@ENGINES.register("factor-enumeration")
class FactorEnumeration(FactorAnswers):
    """Exact answers by one table of the probabilities of all states.

    States are numbered as in a C-ordered table: the last variable changes fastest.

    Parameters
    ----------
    model : Model
        Any model with up to about 10^9 states; `exact` checks what that costs.
    max_seconds : float
        Not needed: nothing takes longer than the table.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(3), [0.5, 0.0, 0.0], [1.0, 1.0, 1.0])
    >>> engine = gb.inference.FactorEnumeration(model)
    >>> engine.log_partition()
    3.86...
    >>> engine.most_probable()[0]
    array([1, 1, 1], dtype=int8)
    """

    @classmethod
    def price(cls, model: Any) -> Cost | None:
        """Predict the cost for models that are known by their factors alone."""
        return _price(model) if needs_factors(model) and not has_fast_transform(model) else None

    def _log_weights(self) -> np.ndarray:
        """Log-weights of all states without the constant, an axis for each variable."""
        return add_up(self._tables.cardinalities, list(self._tables.tables.items()))

    def _scale(self) -> float:
        """The largest that a log-weight may be, which sets its rounding."""
        return sum(float(np.abs(part).max()) for part in self._tables.tables.values())

    @cached_property
    def _distribution(self) -> tuple[np.ndarray, float, int]:
        """Probabilities of all states, log Z without the constant, and the first of the most probable states."""
        table = self._log_weights()
        top = float(table.max())
        best = int(np.argmax(table >= top - TIE * self._scale()))
        table -= top
        np.exp(table, out=table)
        total = float(table.sum())
        table /= total
        return table, top + float(np.log(total)), best

    @cached_property
    def _known(self) -> dict[Axes, np.ndarray]:
        singles: list[Axes] = [(variable,) for variable in range(len(self._tables.cardinalities))]
        return marginals(self._distribution[0], [*singles, *self._tables.tables])

    def _joint(self, scope: Axes) -> np.ndarray:
        return marginals(self._distribution[0], [scope])[scope]

    def log_partition(self) -> float:
        """Return log Z."""
        return self._distribution[1] + self._tables.constant

    def _second_moments(self, levels: list[np.ndarray]) -> np.ndarray:
        pairs: list[Axes] = list(itertools.combinations(range(len(levels)), 2))
        second = np.empty((len(levels), len(levels)))
        for (i, j), joint in marginals(self._distribution[0], pairs).items():
            second[i, j] = second[j, i] = levels[i] @ joint @ levels[j]
        return second

    def _most_probable(self) -> tuple[np.ndarray, float]:
        table, _, best = self._distribution
        return digits(np.array([best]), table.shape)[0], float(np.log(table.flat[best]))

    def _sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw a row of the table by its mass, then the column within the row."""
        shape = self._tables.cardinalities
        half = int(np.searchsorted(np.cumsum(np.log2(shape)), np.log2(shape).sum() / 2))
        rows = self._distribution[0].reshape(int(np.prod(shape[:half], dtype=np.int64)), -1)
        uniforms = rng.random((2, n_samples))
        drawn = _place(np.cumsum(rows.sum(axis=1)), uniforms[0])
        by_row = np.argsort(drawn, kind="stable")
        present, starts = np.unique(drawn[by_row], return_index=True)
        columns = np.empty(n_samples, np.int64)
        for row, start, stop in zip(present, starts, np.append(starts, n_samples)[1:], strict=True):
            members = by_row[start:stop]
            columns[members] = _place(np.cumsum(rows[row]), uniforms[1][members])
        return digits(drawn * rows.shape[1] + columns, shape)


def _place(cumulative: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Where uniform numbers fall among cumulative masses."""
    found = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.minimum(found, len(cumulative) - 1)
