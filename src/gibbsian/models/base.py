"""The contract every model keeps."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from gibbsian.domain import AnyDomain
from gibbsian.graphs import Graph
from gibbsian.models.factors import FactorGraph, Marginal
from gibbsian.registry import Registry

MODELS = Registry("model", "gibbsian.models", "MODELS")


@runtime_checkable
class Model(Protocol):
    """An exponential family ``P(x) = exp(theta . S(x) / T) / Z`` over discrete states.

    `theta` is one flat vector with a fixed layout; `mean_statistics` and every gradient share that layout. States are
    arrays of shape ``(n_states, n_variables)`` in the values of `domain`; anything else is refused (see
    `gibbsian.models.states.checked_states`).

    Examples
    --------
    >>> import gibbsian as gb
    >>> isinstance(gb.PairwiseModel.zeros(gb.graphs.complete(3)), gb.models.Model)
    True
    """

    @property
    def theta(self) -> np.ndarray:
        """All parameters."""

    @property
    def temperature(self) -> float:
        """T: energies are divided by it."""

    @property
    def domain(self) -> AnyDomain:
        """The values of the variables, and how states write them."""

    @property
    def graph(self) -> Graph:
        """Which variables interact."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""

    @property
    def n_hidden(self) -> int:
        """How many of them, the last ones, are units that no row of data shows."""

    @property
    def sums_present_cells(self) -> bool:
        """Whether `mean_statistics` takes zeros at missing cells, which then add nothing."""

    @property
    def answers(self) -> str:
        """The class that answers questions about the model, as ``"module:Class"``."""

    @property
    def penalised(self) -> np.ndarray:
        """Which entries of theta an L1 penalty may shrink (interactions, not biases)."""

    @property
    def statistic_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each statistic."""

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays that make up the model, for a file."""

    @classmethod
    def from_parts(cls, header: dict[str, Any], tensors: dict[str, np.ndarray], domain: Any) -> Self:
        """Put a model together again; `domain` is that of the columns."""

    def replace(self, theta: np.ndarray) -> Self:
        """Return the same structure with other parameters."""

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return E(x) = -theta . S(x) for each state."""

    def log_weights(self, x: np.ndarray) -> np.ndarray:
        """Return the unnormalised log-probability -E(x)/T of each state."""

    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted mean of S over the states."""

    @property
    def flip_columns(self) -> np.ndarray | None:
        """Where the flip costs of each variable begin and end, or None for one column each.

        Two-valued variables have one other value, so one column. With more values variable i has a column for every
        value, from ``flip_columns[i]`` to ``flip_columns[i + 1]``; the one of its present value is zero.
        """

    def flip_costs(self, x: np.ndarray) -> np.ndarray:
        """Return ``d[m, i] = log P(x_m) - log P(x_m with variable i changed)``, in the columns of `flip_columns`."""

    def flip_costs_vjp(self, x: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the gradient of ``sum(c * flip_costs(x))`` with respect to theta."""

    def factors(self) -> FactorGraph:
        """Return the distribution as a product of small tables over codes, the temperature divided out."""

    def statistics_from(self, marginal: Marginal) -> np.ndarray:
        """Return the expected statistics, given the joint probabilities of any few variables that share a factor."""

    def clamped_statistics(self, nodes: Any, values: Any, free: np.ndarray) -> np.ndarray:
        """Return the expected statistics when `nodes` are fixed and those of the rest, conditioned, are `free`."""

    def condition(self, nodes: Any, values: Any) -> tuple[Self, float]:
        """Return the model of the other variables given `values` at `nodes`, and the log-weight taken out."""
