"""The data's moments, each over the rows where its cells are present."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.models import Model


@dataclass(frozen=True)
class DataMoments:
    """Means of a model's statistics over data, in the layout of theta.

    Parameters
    ----------
    mean : ndarray
        The means; NaN where no row shows all cells of a statistic.
    count : ndarray
        The weight of the rows behind each mean. Weights count as frequencies.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.diagnostics.moments import data_moments
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2), gb.domain.BINARY)
    >>> moments = data_moments(model, gb.Dataset.read([[1, 1], [0, None]]))
    >>> moments.mean.tolist(), moments.count.tolist()
    ([0.5, 1.0, 1.0], [2.0, 1.0, 1.0])
    """

    mean: np.ndarray
    count: np.ndarray

    def __add__(self, other: DataMoments) -> DataMoments:
        """Return the moments of both sets of rows together."""
        count = self.count + other.count
        sums = sum(np.where(part.count == 0, 0.0, part.mean * part.count) for part in (self, other))
        return DataMoments(np.divide(sums, count, out=np.full(count.size, np.nan), where=count > 0), count)


def data_moments(model: Model, data: Any) -> DataMoments | None:
    """Return the moments of the data that the model's statistics ask for.

    Where cells are missing a moment is taken over the rows that show it; None where a model cannot say which do.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.diagnostics.moments import data_moments
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> data_moments(model, gb.Dataset.read([[1, 1], [-1, 1]])).mean.tolist()
    [0.0, 1.0, 0.0]
    """
    found: DataMoments = data.reduce(functools.partial(_moments_of, model))
    return None if np.isnan(found.count).any() else found


def moment_errors(model: Model, data: Any) -> np.ndarray:
    """Return the standard errors of the data's moments; the most they can be where no row shows the cells."""
    found, (low, high) = data_moments(model, data), model.family.statistic_range
    if found is None:
        return (high - low) / 2 / np.sqrt(data.total_weight)
    variance = np.where(np.isnan(found.mean), (high - low) ** 2 / 4, (high - found.mean) * (found.mean - low))
    return np.sqrt(np.maximum(variance, 0.0) / np.where(found.count > 0, found.count, data.total_weight))


def _moments_of(model: Model, data: Dataset) -> DataMoments:
    """The moments of rows in memory; without counts where the model cannot say which rows show them."""
    total = data.total_weight
    if data.missing is None:
        mean = model.family.mean_statistics(data.states, data.weights)
        return DataMoments(mean, np.full(mean.size, total))
    found = model.family.present_sums(data.states, ~data.missing, data.weights)
    if found is None:
        return DataMoments(*np.full((2, model.theta.size), np.nan))
    sums, shares = found
    return DataMoments(np.divide(sums, shares, out=np.full(sums.size, np.nan), where=shares > 0), shares * total)
