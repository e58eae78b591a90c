"""The exact clamped phase of machines of two layers, whatever their units are.

Given a row the hidden units are summed in closed form. Rows that lack the same cells are summed together, over all
values of these; real numbers must be present, and then need no distribution of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.errors import TooExpensiveError
from gibbsian.expectations.base import Estimate, Rebuilt
from gibbsian.inference.layer_missing import check_discrete
from gibbsian.settings import check, declared, number

# Seconds for one weight of one listed completion of a row.
WEIGHT_SECONDS = 2e-9


class Alike(NamedTuple):
    """Rows that lack the same cells: their values, their shares, and what the missing ones may be."""

    values: np.ndarray
    shares: np.ndarray
    holes: np.ndarray
    listed: np.ndarray


@declared(frozen=True)
class ClampedLayers:
    """The expected statistics of a machine of two layers given the present cells, with the mean log-evidence.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.clamped_layers import ClampedLayers
    >>> model = gb.models.RestrictedModel.build(gb.models.SpinLayer(2), gb.models.SpinLayer(1), weights=[[1.0], [1.0]])
    >>> clamped = ClampedLayers()
    >>> rows = clamped.init(model, gb.Dataset.read([[1, float("nan")]], coding="spin"), np.random.default_rng(0))
    >>> clamped(model, rows)[0].mean.round(3).tolist()           # v1, v2, h and their products
    [1.0, 0.58, 0.762, 0.762, 0.762]
    """

    max_seconds: float = number(10.0, "Refuse when all rows are predicted to take longer.", above=0, kw_only=False)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> Rebuilt[list[Alike]]:
        """Put the rows together that lack the same cells."""
        return Rebuilt(list(self._alike(model, data)))

    def _alike(self, model: Any, data: Dataset) -> Iterator[Alike]:
        used, shares = np.flatnonzero(data.weights > 0), data.weights / data.total_weight
        missing = np.zeros(data.states.shape, bool) if data.missing is None else data.missing
        patterns, which = np.unique(missing[used], axis=0, return_inverse=True)
        for number_, pattern in enumerate(patterns):
            rows, part = used[which.ravel() == number_], model.visible.part(pattern)
            check_discrete(part)
            seconds = WEIGHT_SECONDS * len(rows) * part.n_states * model.theta.size
            if seconds > self.max_seconds:
                raise TooExpensiveError(
                    f"{len(rows)} rows lack {int(pattern.sum())} cells, whose values would take about {seconds:.2g} s "
                    f"to sum over, but `max_seconds={self.max_seconds:g}`",
                    "raise it, or fill cells first",
                )
            states = np.where(pattern, data.states.dtype.type(0), data.states[rows])
            listed = part.enumerate(0, int(part.n_states)) if pattern.any() else np.zeros((1, 0))
            yield Alike(model.visible.encode(states), shares[rows], model.visible.spread(pattern), listed)

    def __call__(self, model: Any, state: Rebuilt[list[Alike]]) -> tuple[Estimate, Rebuilt[list[Alike]]]:
        """Return the expectation; `log_partition` is the mean log-evidence of the rows."""
        mean, value = np.zeros_like(model.theta), 0.0
        for rows in state.value:
            for block in row_blocks(len(rows.values), len(rows.listed) * sum(layer.width for layer in model.layers)):
                v = np.repeat(rows.values[block], len(rows.listed), axis=0)
                v[:, rows.holes] = np.tile(rows.listed, (len(rows.values[block]), 1))
                logs = model.value_log_weights(v).reshape(-1, len(rows.listed))
                evidence, shares = np.logaddexp.reduce(logs, axis=1), rows.shares[block]
                posterior = (np.exp(logs - evidence[:, None]) * shares[:, None]).ravel()
                value += float(shares @ evidence)
                mean += posterior.sum() * model.mean_statistics(v, model.hidden_means(v), posterior)
        return Estimate(mean, np.zeros_like(mean), value), state
