"""Exact inference by fast transforms of one table of all states, for models of products of any order."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.inference.base import ENGINES, Cost, Moments, has_fast_transform
from gibbsian.inference.factor_enumeration import FactorEnumeration, log_n_states
from gibbsian.inference.log_tables import LogTables

if TYPE_CHECKING:  # every model asks this engine for its price
    from gibbsian.models import FullSpanModel, HigherOrderModel

SECONDS_PER_STATE = 4e-8
SECONDS_PER_PARAMETER = 1e-7


@ENGINES.register("walsh-tables")
class WalshTables(FactorEnumeration):
    """Exact answers in n 2^n additions, however many parameters there are.

    The model gives the log-weights of all states and takes the moments out of their probabilities by transforms of its
    own: Walsh-Hadamard with spins and in the full span (TA22 section 2.2.3), sums over subsets with 0/1.

    Parameters
    ----------
    model : HigherOrderModel or FullSpanModel
        Of up to about 30 two-valued variables, or as many states.
    max_seconds : float
        Not needed: nothing takes longer than the table.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.models.HigherOrderModel.build({(0, 1, 2): 0.5}, n_variables=3)
    >>> engine = gb.inference.WalshTables(model)
    >>> engine.moments().statistics.round(4)                    # tanh 0.5
    array([0.4621])
    """

    model: HigherOrderModel | FullSpanModel

    @classmethod
    def price(cls, model: Any) -> Cost | None:
        """Predict the cost for models that have a fast transform."""
        if not has_fast_transform(model):
            return None
        exponent, bound = log_n_states(model)
        n_states = 2.0**exponent
        seconds = 1e-4 + SECONDS_PER_STATE * n_states + SECONDS_PER_PARAMETER * model.theta.size
        return Cost("enumeration", seconds, 8.0 * (2 * n_states + 4 * model.theta.size), lower_bound=bound)

    @cached_property
    def _tables(self) -> LogTables:
        cardinalities = self.model.domain.cardinalities(self.model.n_variables)
        return LogTables(tuple(cardinalities.tolist()), {}, 0.0, np.arange(cardinalities.size))

    def _log_weights(self) -> np.ndarray:
        return np.array(self.model.log_weight_table()).reshape(self._tables.cardinalities)

    def _scale(self) -> float:
        return float(np.abs(self.model.theta).sum())

    def moments(self) -> Moments:
        """Return log Z and the expected statistics in the layout of theta."""
        return Moments(self.log_partition(), self.model.statistics_from_table(self._distribution[0].ravel()))
