"""One number per parameter as a table, and for pairwise machines in the shapes of ``biases_`` and ``couplings_``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from gibbsian.arrays import Floats, Mask
from gibbsian.display import Shown
from gibbsian.errors import ArgumentError
from gibbsian.models.base import F, Family, Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.ising import is_ising
from gibbsian.startup import pandas


def parameters_table(model: Model[F], names: tuple[str, ...], **columns: Floats) -> pandas.DataFrame:
    """Return a row for each parameter: its estimate and further columns."""
    return pandas.DataFrame({"estimate": model.theta, **columns}, index=model.parameter_names(names))


def biases_table(family: Family, names: tuple[str, ...], values: Floats) -> pandas.Series:
    """Return the entries of `values` that belong to biases, by name; zeros without biases."""
    pairwise = _pairwise(family)
    entries = pairwise.split(values).biases if pairwise.bias else np.zeros(pairwise.graph.n_nodes)
    return pandas.Series(entries, index=list(names), name="bias")


def couplings_table(family: Family, names: tuple[str, ...], values: Floats) -> pandas.DataFrame:
    """Return the entries of `values` that belong to couplings as a symmetric table; zero off the graph."""
    pairwise = _pairwise(family)
    matrix = pairwise.graph.matrix(pairwise.split(values).couplings)
    return pandas.DataFrame(matrix, index=list(names), columns=list(names))


def _pairwise(family: Family) -> PairwiseFamily:
    if not is_ising(family):
        raise ArgumentError(f"a {type(family).__name__} has more than biases and couplings", "use its `table`")
    return cast(PairwiseFamily, family)


class ErrorTables(Shown):
    """Tables of the standard errors `theta_se` of the parameters of a model."""

    model: Model[Family]
    names: tuple[str, ...]

    @property
    def theta_se(self) -> Floats:
        """Standard errors in the layout of theta."""
        raise NotImplementedError

    @property
    def biases(self) -> pandas.Series:
        """Standard errors of the biases by column name."""
        return biases_table(self.model.family, self.names, self.theta_se)

    @property
    def couplings(self) -> pandas.DataFrame:
        """Standard errors of the couplings, shaped like ``couplings_``; zero off the graph."""
        return couplings_table(self.model.family, self.names, self.theta_se)

    @property
    def table(self) -> pandas.DataFrame:
        """Every parameter with its standard error."""
        return parameters_table(self.model, self.names, standard_error=self.theta_se)


@dataclass(frozen=True, repr=False)
class ConfidenceIntervals(Shown):
    """Lower and upper ends for every parameter.

    Parameters
    ----------
    low, high : ndarray
        The ends in the layout of ``model.theta``; NaN for couplings that an L1 penalty set to zero.
    level : float
        Confidence level: the fraction of intervals that cover the truth, in the long run.
    model : Model
        The fitted model.
    names : tuple of str
        The variables.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> intervals = gb.uncertainty.confidence_intervals(gb.BoltzmannMachine().fit(rows), rows)
    >>> intervals.couplings_low.shape, intervals.biases_high.index.tolist()
    ((2, 2), ['x0', 'x1'])
    """

    low: Floats
    high: Floats
    level: float
    model: Model[Family]
    names: tuple[str, ...]

    def _facts(self) -> dict[str, object]:
        excluding_zero = int(((self.low > 0) | (self.high < 0)).sum())
        return {"level": self.level, "parameters": self.low.size, "without zero": excluding_zero}

    @property
    def biases_low(self) -> pandas.Series:
        """Lower ends of the biases."""
        return biases_table(self.model.family, self.names, self.low)

    @property
    def biases_high(self) -> pandas.Series:
        """Upper ends of the biases."""
        return biases_table(self.model.family, self.names, self.high)

    @property
    def couplings_low(self) -> pandas.DataFrame:
        """Lower ends of the couplings."""
        return couplings_table(self.model.family, self.names, self.low)

    @property
    def couplings_high(self) -> pandas.DataFrame:
        """Upper ends of the couplings."""
        return couplings_table(self.model.family, self.names, self.high)

    @property
    def table(self) -> pandas.DataFrame:
        """Every parameter with the ends of its interval."""
        return parameters_table(self.model, self.names, low=self.low, high=self.high)

    def covers(self, theta: Floats) -> Mask:
        """Return for each parameter whether its interval contains the entry of `theta`."""
        return (self.low <= theta) & (theta <= self.high)


def check_level(level: float) -> None:
    """Refuse levels outside (0, 1)."""
    if not 0 < level < 1:
        raise ArgumentError("must lie between 0 and 1, for example 0.95", argument="level", value=level)
