"""One number per parameter, in tables shaped like ``biases_`` and ``couplings_``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models import PairwiseModel


def biases_table(model: PairwiseModel, names: tuple[str, ...], values: np.ndarray) -> Any:
    """Return the entries of `values` that belong to biases, by name; zeros where the model has none.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.uncertainty.tables import biases_table
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> biases_table(model, ("a", "b"), np.array([1.0, 2.0, 3.0])).to_dict()
    {'a': 1.0, 'b': 2.0}
    """
    import pandas

    entries = values[: model.n_biases] if model.bias else np.zeros(model.n_variables)
    return pandas.Series(entries, index=list(names), name="bias")


def couplings_table(model: PairwiseModel, names: tuple[str, ...], values: np.ndarray) -> Any:
    """Return the entries of `values` that belong to couplings as a symmetric table; zero where there is no edge.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.uncertainty.tables import couplings_table
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> couplings_table(model, ("a", "b"), np.array([1.0, 2.0, 3.0])).loc["a", "b"].item()
    3.0
    """
    import pandas

    matrix = np.zeros((model.n_variables, model.n_variables))
    i, j = model.graph.edges.T
    matrix[i, j] = matrix[j, i] = values[model.n_biases :]
    return pandas.DataFrame(matrix, index=list(names), columns=list(names))


@dataclass(frozen=True)
class ConfidenceIntervals:
    """Lower and upper ends for every parameter.

    Parameters
    ----------
    low, high : ndarray
        The ends in the layout of ``model.theta``; NaN for couplings that an L1 penalty set to zero.
    level : float
        Share of the intervals that cover the truth, in the long run.
    model : PairwiseModel
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

    low: np.ndarray
    high: np.ndarray
    level: float
    model: PairwiseModel
    names: tuple[str, ...]

    @property
    def biases_low(self) -> Any:
        """Lower ends of the biases."""
        return biases_table(self.model, self.names, self.low)

    @property
    def biases_high(self) -> Any:
        """Upper ends of the biases."""
        return biases_table(self.model, self.names, self.high)

    @property
    def couplings_low(self) -> Any:
        """Lower ends of the couplings."""
        return couplings_table(self.model, self.names, self.low)

    @property
    def couplings_high(self) -> Any:
        """Upper ends of the couplings."""
        return couplings_table(self.model, self.names, self.high)

    def covers(self, theta: np.ndarray) -> np.ndarray:
        """Say for each parameter whether `theta` lies in its interval."""
        return (self.low <= theta) & (theta <= self.high)


def check_level(level: float) -> None:
    """Refuse levels outside (0, 1)."""
    if not 0 < level < 1:
        raise ArgumentError("must lie between 0 and 1, for example 0.95", argument="level", value=level)
