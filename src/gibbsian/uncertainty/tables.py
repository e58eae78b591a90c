"""One number per parameter, as a table, and for pairwise machines shaped like ``biases_`` and ``couplings_``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.display import Shown
from gibbsian.errors import ArgumentError
from gibbsian.models import Model


def parameters_table(model: Model, names: tuple[str, ...], **columns: np.ndarray) -> Any:
    """Return a row for each parameter: its value, and what else is known of it."""
    import pandas

    return pandas.DataFrame({"estimate": model.theta, **columns}, index=model.parameter_names(names))


def _require_couplings(model: Model) -> None:
    if not model.is_pairwise:
        raise ArgumentError(f"a {type(model).__name__} has more than biases and couplings", "ask for its `table`")


def biases_table(model: Any, names: tuple[str, ...], values: np.ndarray) -> Any:
    """Return the entries of `values` that belong to biases, by name; zeros where the model has none."""
    import pandas

    _require_couplings(model)

    entries = values[: model.n_biases] if model.bias else np.zeros(model.n_variables)
    return pandas.Series(entries, index=list(names), name="bias")


def couplings_table(model: Any, names: tuple[str, ...], values: np.ndarray) -> Any:
    """Return the entries of `values` that belong to couplings as a symmetric table; zero where there is no edge."""
    import pandas

    _require_couplings(model)

    matrix = model.graph.matrix(values[model.n_biases :])
    return pandas.DataFrame(matrix, index=list(names), columns=list(names))


class ErrorTables(Shown):
    """Standard errors `theta_se` of the parameters of a `model` with `names`, as tables."""

    model: Any
    names: tuple[str, ...]
    theta_se: Any

    @property
    def biases(self) -> Any:
        """Standard errors of the biases by column name."""
        return biases_table(self.model, self.names, self.theta_se)

    @property
    def couplings(self) -> Any:
        """Standard errors of the couplings, shaped like ``couplings_``; zero where there is no edge."""
        return couplings_table(self.model, self.names, self.theta_se)

    @property
    def table(self) -> Any:
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
        Share of the intervals that cover the truth, in the long run.
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

    low: np.ndarray
    high: np.ndarray
    level: float
    model: Model
    names: tuple[str, ...]

    def _facts(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "parameters": self.low.size,
            "without zero": int(((self.low > 0) | (self.high < 0)).sum()),
        }

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

    @property
    def table(self) -> Any:
        """Every parameter with the ends of its interval."""
        return parameters_table(self.model, self.names, low=self.low, high=self.high)

    def covers(self, theta: np.ndarray) -> np.ndarray:
        """Say for each parameter whether `theta` lies in its interval."""
        return (self.low <= theta) & (theta <= self.high)


def check_level(level: float) -> None:
    """Refuse levels outside (0, 1)."""
    if not 0 < level < 1:
        raise ArgumentError("must lie between 0 and 1, for example 0.95", argument="level", value=level)
