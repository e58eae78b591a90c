"""The exact clamped phase of machines of two layers, whatever their units are.

Given a row the hidden units are summed in closed form. Rows that lack the same cells are summed together, over all
values of these; real numbers must be present, and then need no distribution of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.parallel import map_in_order
from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import with_hidden
from gibbsian.domain import DOMAINS
from gibbsian.errors import TooExpensiveError
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import Rebuilt
from gibbsian.expectations.clamped import EXACT_CLAMPED
from gibbsian.expectations.exact import ClampedExact
from gibbsian.inference.layer_missing import check_discrete
from gibbsian.models.layers.units import count_states, enumerate_values, spread, values_of
from gibbsian.resources import row_blocks, spans
from gibbsian.settings import check, declared, number, positional

# Layers whose joint distribution is a pairwise model with the same theta.
TWO_VALUED = [{name} for name in DOMAINS]
# Seconds for one weight of one listed completion of a row.
WEIGHT_SECONDS = 2e-9


class Alike(NamedTuple):
    """Rows that lack the same cells: values with zeros there, shares, and what the missing ones may be."""

    values: np.ndarray
    shares: np.ndarray
    holes: np.ndarray
    listed: np.ndarray


@EXACT_CLAMPED.register("layered")
@declared(frozen=True)
class ClampedLayers:
    """The expected statistics of a machine of two layers given the present cells, with the mean log-evidence.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.clamped_layers import ClampedLayers
    >>> family = gb.models.StackFamily((gb.models.SpinUnits(2), gb.models.SpinUnits(1)))
    >>> model = family.build(weights=[[[1.0], [1.0]]])
    >>> clamped = ClampedLayers()
    >>> rows = clamped.init(model, gb.Dataset.read([[1, float("nan")]], coding="spin"), np.random.default_rng(0))
    >>> clamped(model, rows)[0].value.round(3).tolist()           # v1, v2, h and their products
    [1.0, 0.58, 0.762, 0.762, 0.762]
    """

    max_seconds: float = positional(
        kw_only=False, default=number(10.0, "Refuse when all rows are predicted to take longer.", above=0)
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> Rebuilt[Any]:
        """Put rows together that lack the same cells; for others units of one two-valued kind have compiled sums."""
        used = np.flatnonzero(data.weights > 0)
        missing = np.zeros(data.states.shape, bool) if data.missing is None else data.missing
        patterns, which = np.unique(missing[used], axis=0, return_inverse=True)
        family = model.family
        one_kind = {layer.kind for layer in family.layers} in TWO_VALUED
        if len(patterns) == 1 or data.has_shares or not one_kind:
            return Rebuilt(list(self._alike(family, data, used, patterns, which)))
        joint, rows = family.joint(model.theta), with_hidden(data, family.n_hidden)
        return ClampedExact(max_seconds=self.max_seconds).init(joint, rows, rng)

    def _alike(
        self, family: Any, data: Dataset, used: np.ndarray, patterns: np.ndarray, which: np.ndarray
    ) -> Iterator[Alike]:
        shares, layers = data.weights / data.total_weight, family.shown
        units = spans(layer.n_units for layer in layers)
        for number_, pattern in enumerate(patterns):
            rows = used[which.ravel() == number_]
            unseen = [layer.take(np.flatnonzero(pattern[at])) for layer, at in zip(layers, units, strict=True)]
            unseen = [layer for layer in unseen if layer.n_units]
            for layer in unseen:
                check_discrete(layer)
            n_states = count_states(unseen)
            seconds = WEIGHT_SECONDS * len(rows) * n_states * family.n_parameters
            if seconds > self.max_seconds:
                raise TooExpensiveError(
                    f"{len(rows)} rows lack {int(pattern.sum())} cells, whose values would take about {seconds:.2g} s "
                    f"to sum over, but `max_seconds={self.max_seconds:g}`",
                    "raise it, or fill cells first",
                )
            states = np.where(pattern, data.states.dtype.type(0), data.states[rows])
            each = list(zip(layers, units, strict=True))
            holes = np.concatenate([spread(layer, pattern[at]) for layer, at in each])
            values = np.where(holes, 0.0, np.hstack([values_of(layer, states[:, at]) for layer, at in each]))
            listed = np.hstack([np.zeros((int(n_states), 0)), *enumerate_values(unseen, 0, int(n_states))])
            yield Alike(values, shares[rows], holes, listed)

    def __call__(self, model: Any, state: Rebuilt[Any]) -> tuple[Estimate, Rebuilt[Any]]:
        """Return the expectation; its part `log_partition` is the mean log-evidence of the rows."""
        if not isinstance(state.value, list):
            return ClampedExact(max_seconds=self.max_seconds)(model.family.joint(model.theta), state)
        mean, value = np.zeros_like(model.theta), 0.0
        for rows in state.value:
            cells = len(rows.listed) * max(1, model.family.layers[-1].width) + rows.values.shape[1]
            blocks = [Alike(rows.values[at], rows.shares[at], *rows[2:]) for at in row_blocks(len(rows.values), cells)]
            for part, statistics in map_in_order(lambda block: _summed(model, block), blocks):
                value += part
                mean += statistics
        return Estimate(mean, parts={"log_partition": Estimate(value)}), state


def _summed(model: Any, rows: Alike) -> tuple[float, np.ndarray]:
    """Return the sum of shares times log-evidence, and the statistics with the same weights.

    What the present cells add to fields is found once for a row, what the listed ones add once for all rows.
    """
    family, parts = model.family, model.parts
    hidden, (biases, weights) = family.layers[-1], family.upward(parts)
    listed = np.zeros((len(rows.listed), len(rows.holes)))
    listed[:, rows.holes] = rows.listed
    shape = len(rows.values), len(listed), hidden.width
    constants, slopes = family.slopes(parts, rows.values)
    fields = (rows.values @ weights + biases)[:, None] + listed @ weights
    fields = fields.reshape(shape[0] * shape[1], shape[2])
    linear = constants[:, None] + slopes @ listed.T
    logs = linear + hidden.log_normaliser(fields).reshape(shape[:2])
    evidence = np.logaddexp.reduce(logs, axis=1)
    posterior = np.exp(logs - evidence[:, None]) * rows.shares[:, None]
    weighted = posterior[:, :, None] * hidden.means(fields).reshape(shape)
    shown = rows.values * rows.shares[:, None] + posterior @ listed
    products = rows.values.T @ weighted.sum(axis=1) + listed.T @ weighted.sum(axis=0)
    statistics = family.gathered(rows.values, shown, weighted.sum(axis=(0, 1)), products)
    return float(rows.shares @ evidence), statistics
