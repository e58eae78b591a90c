"""The expectations of a 0/1 model, taken through its spins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from gibbsian.data import Dataset
from gibbsian.domain import BINARY, SPIN
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import Expectation, Rebuilt
from gibbsian.models import Model


class InSpinsState(NamedTuple):
    """The state of the expectation inside, and the map of its means; None where nothing is converted."""

    inner: Any
    mixing: Rebuilt[csr_array | None]


@dataclass(frozen=True)
class InSpins:
    """Take the expectations of a two-valued product model as those of the same distribution over -1/+1.

    An estimator of ``E[x_i x_j]`` over 0/1 is not that over -1/+1 in other words: the latter mixes in its own estimates
    of the means, from regions of their own. Through this, learning by moment matching ends at the same distribution in
    either coding, that of the papers. Standard errors are upper bounds. Models that are not products of 0/1 are left
    alone.

    Parameters
    ----------
    expectation : Expectation
        What takes the expectations over -1/+1.
    """

    expectation: Expectation

    def init(self, model: Any, data: Dataset | None, rng: np.random.Generator) -> InSpinsState:
        """Convert model and data and prepare the expectation inside."""
        inside = _in_spins(model)
        if inside is model:
            return InSpinsState(self.expectation.init(model, data, rng), Rebuilt(None))
        inner = self.expectation.init(inside, None if data is None else data.convert("spin"), rng)
        return InSpinsState(inner, Rebuilt(_mixing(model.products, inside.products)))

    def __call__(self, model: Model, state: InSpinsState) -> tuple[Estimate, InSpinsState]:
        """Return the expected statistics of the model in its own coding."""
        estimate, inner = self.expectation(_in_spins(model), state.inner)
        mixing = state.mixing.value
        if mixing is not None:
            empty = mixing.max(axis=1).toarray().ravel()  # the empty product, one, counts as much as any other
            estimate = Estimate(empty + mixing @ estimate.value, mixing @ estimate.monte_carlo_error)
        return estimate, state._replace(inner=inner)

    @property
    def restarted_at(self) -> Any:
        """How the samples inside are replaced by other rows; None where they do not depend on rows."""
        inside = getattr(self.expectation, "restarted_at", None)
        if inside is None:
            return None

        def restart(model: Model, state: InSpinsState, rows: Dataset) -> InSpinsState:
            own = rows if state.mixing.value is None else rows.convert("spin")
            return state._replace(inner=inside(_in_spins(model), state.inner, own))

        return restart


def _in_spins(model: Any) -> Any:
    """A product model over 0/1 as spins; any other as it is."""
    binary = model.statistics_are_products and model.domain == BINARY
    return model.to_domain(SPIN)[0] if binary else model


def _mixing(wanted: Sequence[tuple[int, ...]], given: Sequence[tuple[int, ...]]) -> csr_array:
    """Return ``2^-k`` at the subsets of each product of k: with ``b = (1 + s) / 2`` it is the mean over them all."""
    place = {product: number for number, product in enumerate(given)}
    subsets = [
        list(chain.from_iterable(combinations(product, k) for k in range(1, len(product) + 1))) for product in wanted
    ]
    columns = [place[subset] for row in subsets for subset in row]
    counts = np.array([len(row) for row in subsets])
    shares = np.repeat(0.5 ** np.array([len(product) for product in wanted]), counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((shares, np.array(columns, dtype=np.int64), indptr), shape=(len(wanted), len(given)))
