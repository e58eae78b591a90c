"""Products of spins and of 0/1: the same distribution has either for its statistics, and each is a sum of the other.

SMCI integrates products of spins whatever the scores of the family (Y18, YU20). An estimator of ``E[x_i x_j]`` over 0/1
is not that over -1/+1 in other words: the latter mixes in its own estimates of the means, from regions of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Protocol, Self, runtime_checkable

import numpy as np
from scipy.sparse import csr_array

from gibbsian.arrays import Floats
from gibbsian.estimate import Estimate
from gibbsian.models.base import DiscreteFamily, Family, Model, keeps
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import Variables, VariablesOf


@runtime_checkable
class Products(Family, Protocol):
    """A family whose statistics are products of the scores of variables."""

    @property
    def scopes(self) -> Scopes:
        """The variables of each product."""

    def recode(self, theta: Floats, variables: VariablesOf) -> tuple[Model[DiscreteFamily], float]:
        """Return the same distribution of codes with other scores, and the constant in the log-weight."""


def is_binary(variables: Variables) -> bool:
    """Say whether all scores are 0 and 1."""
    return variables == Variables.binary(len(variables))


@dataclass(frozen=True, eq=False)
class SpinStatistics:
    """The linear map from the expected products of spins to those of 0/1; no map for other families.

    Parameters
    ----------
    family : DiscreteFamily
        The family.
    mixing : sparse array or None
        ``2^-k`` at the subsets of each product of k: with ``b = (1 + s) / 2`` it is the mean over them all. None where
        nothing is converted.
    """

    family: DiscreteFamily
    mixing: csr_array | None

    @classmethod
    def of(cls, family: DiscreteFamily) -> Self:
        """Prepare the map of a family."""
        if not (keeps(family, Products) and is_binary(family.variables)):
            return cls(family, None)
        spins = family.recode(np.zeros(family.n_parameters), Variables.spins)[0].family
        return cls(family, _mixing(family.scopes, spins.scopes))

    def model(self, theta: Floats) -> Model[DiscreteFamily]:
        """Return the same distribution with products of spins for those of 0/1; any other as it is."""
        if self.mixing is None:
            return Model(self.family, theta)
        assert keeps(self.family, Products)
        return self.family.recode(theta, Variables.spins)[0]

    def outward(self, estimate: Estimate) -> Estimate:
        """Return expected statistics of the family from those of spins; standard errors are upper bounds."""
        if self.mixing is None:
            return estimate
        empty = self.mixing.max(axis=1).toarray().ravel()  # the empty product, one, counts as much as any other
        value: Floats = empty + self.mixing @ estimate.value
        return Estimate(value, self.mixing @ estimate.monte_carlo_error, estimate.parts)


def _mixing(wanted: Sequence[Scope], given: Sequence[Scope]) -> csr_array:
    place = {product: number for number, product in enumerate(given)}
    subsets = [
        list(chain.from_iterable(combinations(product, k) for k in range(1, len(product) + 1))) for product in wanted
    ]
    columns = [place[subset] for row in subsets for subset in row]
    counts = np.array([len(row) for row in subsets])
    shares = np.repeat(0.5 ** np.array([len(product) for product in wanted]), counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((shares, np.array(columns, dtype=np.int64), indptr), shape=(len(wanted), len(given)))
