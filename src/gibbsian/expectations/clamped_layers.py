"""The exact clamped phase of machines of two layers, whatever their units are.

Given a row the hidden units are summed in closed form. Rows that lack the same cells are summed together, over all
values of these; real numbers must be present, and then need no distribution of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.parallel import map_in_order
from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import with_hidden
from gibbsian.domain import DOMAINS
from gibbsian.errors import TooExpensiveError
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import Rebuilt
from gibbsian.expectations.clamped import EXACT_CLAMPED
from gibbsian.expectations.exact import ClampedExact
from gibbsian.inference.layer_missing import check_discrete
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
    >>> model = gb.models.RestrictedModel.build(gb.models.SpinLayer(2), gb.models.SpinLayer(1), weights=[[1.0], [1.0]])
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
        alike = len(patterns) == 1 or data.has_shares or {layer.kind for layer in model.layers} not in TWO_VALUED
        if alike:
            return Rebuilt(list(self._alike(model, data, used, patterns, which)))
        return ClampedExact(max_seconds=self.max_seconds).init(model.joint(), with_hidden(data, model.n_hidden), rng)

    def _alike(
        self, model: Any, data: Dataset, used: np.ndarray, patterns: np.ndarray, which: np.ndarray
    ) -> Iterator[Alike]:
        shares = data.weights / data.total_weight
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
            holes, states = (
                model.visible.spread(pattern),
                np.where(pattern, data.states.dtype.type(0), data.states[rows]),
            )
            values = np.where(holes, 0.0, model.visible.encode(states))
            listed = part.enumerate(0, int(part.n_states)) if pattern.any() else np.zeros((1, 0))
            yield Alike(values, shares[rows], holes, listed)

    def __call__(self, model: Any, state: Rebuilt[Any]) -> tuple[Estimate, Rebuilt[Any]]:
        """Return the expectation; its part `log_partition` is the mean log-evidence of the rows."""
        if not isinstance(state.value, list):
            return ClampedExact(max_seconds=self.max_seconds)(model.joint(), state)
        mean, value = np.zeros_like(model.theta), 0.0
        for rows in state.value:
            cells = len(rows.listed) * max(1, model.hidden.width) + model.visible.width
            blocks = [Alike(rows.values[at], rows.shares[at], *rows[2:]) for at in row_blocks(len(rows.values), cells)]
            for part, statistics in map_in_order(lambda block: _summed(model, block), blocks):
                value += part
                mean += statistics
        return Estimate(mean, parts={"log_partition": Estimate(value)}), state


def _summed(model: Any, rows: Alike) -> tuple[float, np.ndarray]:
    """Return the sum of shares times log-evidence, and the statistics with the same weights.

    What the present cells add to fields is found once for a row, what the listed ones add once for all rows.
    """
    listed = np.zeros((len(rows.listed), len(rows.holes)))
    listed[:, rows.holes] = rows.listed
    shape = len(rows.values), len(listed), model.hidden.width
    constants, slopes = model.visible_slopes(rows.values)
    fields = model.hidden_fields(rows.values)[:, None] + model.upward(listed) / model.temperature
    fields = fields.reshape(shape[0] * shape[1], shape[2])
    hidden = model.tempered[1]
    linear = (constants[:, None] + slopes @ listed.T) / model.temperature
    logs = linear + hidden.log_normaliser(fields).reshape(shape[:2])
    evidence = np.logaddexp.reduce(logs, axis=1)
    posterior = np.exp(logs - evidence[:, None]) * rows.shares[:, None]
    weighted = posterior[:, :, None] * hidden.means(fields).reshape(shape)
    visible = rows.values * rows.shares[:, None] + posterior @ listed
    products = rows.values.T @ weighted.sum(axis=1) + listed.T @ weighted.sum(axis=0)
    statistics = model.gathered_statistics(rows.values, visible, weighted.sum(axis=(0, 1)), products)
    return float(rows.shares @ evidence), statistics
