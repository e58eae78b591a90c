"""Several full-span models of the same variables as one distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models.full_span import FullSpanModel
from gibbsian.special import logsumexp


@dataclass(frozen=True, eq=False)
class SpanAverage:
    """The mean of the probabilities of several models, a mixture.

    Parameters
    ----------
    models : tuple of FullSpanModel
        What is averaged.
    weights : tuple of float, optional
        Their shares, which add up to 1; equal ones by default.

    Examples
    --------
    >>> from gibbsian.models import FullSpanModel, SpanAverage
    >>> average = SpanAverage(tuple(FullSpanModel.build((2, 2), [3], [theta]) for theta in (0.2, 0.6)))
    >>> average.probabilities().round(4)
    array([0.3418, 0.1582, 0.1582, 0.3418])
    >>> average.geometric_mean().theta
    array([0.4])
    """

    models: tuple[FullSpanModel, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.models:
            raise ArgumentError("models is empty", "give at least one model")
        if len({model.cardinalities for model in self.models}) > 1:
            raise ArgumentError("models differ in their cardinalities", "average models of the same variables")
        if not self.weights:
            object.__setattr__(self, "weights", (1.0 / len(self.models),) * len(self.models))
        if len(self.weights) != len(self.models):
            raise ArgumentError(f"there are {len(self.weights)} weights for {len(self.models)} models", "give one each")
        if min(self.weights) < 0 or not np.isclose(sum(self.weights), 1.0):
            raise ArgumentError("must be positive and add up to 1", argument="weights", value=self.weights)

    def probabilities(self) -> np.ndarray:
        """Return the mean probability of every state, in the order of their indices."""
        total = np.zeros(self.models[0].basis.size)
        for model, weight in zip(self.models, self.weights, strict=True):
            if weight > 0:
                total += weight * model.probabilities()
        return total

    def log_probabilities(self, x: np.ndarray) -> np.ndarray:
        """Return the logarithm of the mean probability of each state."""
        return logsumexp([model.log_probabilities(x) for model in self.models], axis=0, b=self._column)

    def geometric_mean(self) -> FullSpanModel:
        """Return the normalised geometric mean: its parameters are the means of theirs."""
        first = self.models[0]
        indices = np.unique(np.concatenate([model.indices for model in self.models]))
        theta = np.zeros(indices.size)
        for model, weight in zip(self.models, self.weights, strict=True):
            theta[np.searchsorted(indices, model.indices)] += weight * model.theta
        return FullSpanModel(first.basis, indices, theta, first.domain, first.temperature)

    def to_model(self) -> FullSpanModel:
        """Return the average itself as a full-span model, with a parameter for every function."""
        first = self.models[0]
        tables = [model.log_weight_table() - model.log_partition for model in self.models]
        return FullSpanModel.of_log_weights(first.basis, logsumexp(tables, axis=0, b=self._column), first.domain)

    @property
    def _column(self) -> np.ndarray:
        return np.array(self.weights)[:, None]
