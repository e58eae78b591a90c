"""Exact inference for products of two-valued variables by fast transforms of one table of all states."""

from __future__ import annotations

from functools import cached_property
from typing import TypeGuard

import numpy as np

from gibbsian.backends.numba.factor_tables import subset_sums, superset_sums
from gibbsian.backends.numba.walsh import aligned_zeros, walsh_hadamard
from gibbsian.domain import SPIN
from gibbsian.inference.base import Cost, Moments
from gibbsian.inference.factor_enumeration import LARGEST_EXPONENT, FactorEnumeration
from gibbsian.inference.log_tables import LogTables
from gibbsian.models import HigherOrderModel, Model

SECONDS_PER_STATE = 4e-8
SECONDS_PER_CLIQUE = 1e-7


def has_fast_transform(model: Model) -> TypeGuard[HigherOrderModel]:
    """Say whether the log-weights of all states are one transform of the parameters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.product_enumeration import has_fast_transform
    >>> has_fast_transform(gb.models.HigherOrderModel.of_order(3, order=3))
    True
    """
    return isinstance(model, HigherOrderModel) and model.domain.two_valued


def product_enumeration_cost(model: HigherOrderModel) -> Cost:
    """Predict what the transforms cost.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.inference.product_enumeration import product_enumeration_cost
    >>> product_enumeration_cost(gb.models.HigherOrderModel.of_order(10, order=10)).seconds < 0.01
    True
    """
    n_states = 2.0 ** min(model.n_variables, LARGEST_EXPONENT)
    seconds = 1e-4 + SECONDS_PER_STATE * n_states + SECONDS_PER_CLIQUE * model.theta.size
    n_bytes = 8.0 * (2 * n_states + 4 * model.theta.size)
    return Cost("enumeration", seconds, n_bytes, lower_bound=model.n_variables > LARGEST_EXPONENT)


class ProductEnumeration(FactorEnumeration):
    """Exact answers for a `HigherOrderModel` of two-valued variables, in n 2^n additions however many cliques it has.

    With spins the log-weights are the Walsh-Hadamard transform of theta, and the moments that of the probabilities
    (TA22 section 2.2.3); with 0/1 they are sums over subsets and over supersets.

    Parameters
    ----------
    model : HigherOrderModel
        Of spins or 0/1 variables, up to about 30.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.models.HigherOrderModel.build({(0, 1, 2): 0.5}, n_variables=3)
    >>> engine = gb.inference.ProductEnumeration(model)
    >>> engine.moments().statistics.round(4)                    # tanh 0.5
    array([0.4621])
    """

    model: HigherOrderModel

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of `moments`."""
        return product_enumeration_cost(self.model)

    @cached_property
    def _tables(self) -> LogTables:
        n = self.model.n_variables
        return LogTables((2,) * n, {}, 0.0, np.arange(n))

    @cached_property
    def _places(self) -> np.ndarray:
        """The number of the state with ones at the variables of a clique: variable 0 is the most significant bit."""
        indptr, members = self.model.clique_csr
        bits = np.left_shift(1, self.model.n_variables - 1 - members)
        return np.add.reduceat(bits, indptr[:-1]) if self.model.theta.size else np.empty(0, np.int64)

    @cached_property
    def _signs(self) -> np.ndarray:
        """The transform reads a one as -1 but a code of one is spin +1: odd cliques change sign."""
        return np.where(np.diff(self.model.clique_csr[0]) % 2 == 1, -1.0, 1.0)

    def _log_weights(self) -> np.ndarray:
        table = aligned_zeros(2**self.model.n_variables)
        natural = self.model.theta / self.model.temperature
        if self.model.domain == SPIN:
            table[self._places] = self._signs * natural
            walsh_hadamard(table)
        else:
            table[self._places] = natural
            subset_sums(table)
        return table.reshape(self._tables.cardinalities)

    def _scale(self) -> float:
        return float(np.abs(self.model.theta).sum() / self.model.temperature)

    def moments(self) -> Moments:
        """Return log Z and the expected statistics in the layout of theta."""
        table = aligned_zeros(2**self.model.n_variables)
        table[:] = self._law[0].ravel()
        if self.model.domain == SPIN:
            walsh_hadamard(table)
            return Moments(self.log_partition(), self._signs * table[self._places])
        superset_sums(table)
        return Moments(self.log_partition(), table[self._places])
