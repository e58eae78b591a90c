"""Products of spins and of 0/1: the same distribution has either for its statistics, and each is a sum of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csr_array

from gibbsian.data import Dataset
from gibbsian.estimate import Estimate
from gibbsian.expectations.legacy import Expectation, Rebuilt
from gibbsian.models.base import Array, DiscreteFamily, ExponentialFamily, Family, Model, keeps
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import Variables, VariablesOf


@runtime_checkable
class Products(Protocol):
    """A family whose statistics are products of the scores of variables."""

    @property
    def scopes(self) -> Scopes:
        """The variables of each product."""

    def recode(self, theta: Array, variables: VariablesOf) -> tuple[Model[DiscreteFamily], float]:
        """Return the same distribution of codes with other scores, and the constant in the log-weight."""


def products_of(family: Family, first: Array, second: Array) -> Array | None:
    """Return the codes of the products of the scores of rows, whose statistics are the products of those of both.

    None where statistics are no products of spins or of 0/1.
    """
    known = keeps(family, Products)
    if known and family.variables == Variables.spins(len(family.variables)):
        return (first == second).view(np.int8)
    return first & second if known and is_binary(family.variables) else None


def is_binary(variables: Variables) -> bool:
    """Say whether all scores are 0 and 1."""
    return variables == Variables.binary(len(variables))


class InSpinsState(NamedTuple):
    """The state of the expectation inside, and the map of its means; None where nothing is converted."""

    inner: object
    mixing: Rebuilt[csr_array | None]


@dataclass(frozen=True)
class InSpins:
    """Take the expectations of products of 0/1 from those of products of spins.

    An estimator of ``E[x_i x_j]`` over 0/1 is not that over -1/+1 in other words: the latter mixes in its own estimates
    of the means, from regions of their own. Through this, learning by moment matching ends at the same distribution in
    either coding, that of the papers. Standard errors are upper bounds. Statistics that are no products of 0/1 are left
    alone.

    Parameters
    ----------
    expectation : Expectation
        What takes the expectations over -1/+1.
    """

    expectation: Expectation

    def init(self, model: Model[DiscreteFamily], data: Dataset | None, rng: np.random.Generator) -> InSpinsState:
        """Prepare the expectation inside, and the map of its means."""
        inside = _in_spins(model)
        mixing = None if inside is model else _mixing(model.family.scopes, inside.family.scopes)
        return InSpinsState(self.expectation.init(inside, data, rng), Rebuilt(mixing))

    def __call__(self, model: Model[ExponentialFamily], state: InSpinsState) -> tuple[Estimate, InSpinsState]:
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

        def restart(model: Model[Family], state: InSpinsState, rows: Dataset) -> InSpinsState:
            return state._replace(inner=inside(_in_spins(model), state.inner, rows))

        return restart


def _in_spins(model: Model[Family]) -> Model[Any]:
    """The same distribution with products of spins for those of 0/1; any other as it is."""
    if keeps(model.family, Products) and is_binary(model.variables):
        return model.family.recode(model.theta, Variables.spins)[0]
    return model


def _mixing(wanted: Sequence[Scope], given: Sequence[Scope]) -> csr_array:
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
