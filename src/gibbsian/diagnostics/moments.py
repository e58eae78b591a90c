"""The data's moments, each over the rows where its cells are present."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
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

    mean: Floats
    count: Floats

    def __add__(self, other: DataMoments) -> DataMoments:
        """Return the moments of both sets of rows together."""
        count = self.count + other.count
        sums = sum(np.where(part.count == 0, 0.0, part.mean * part.count) for part in (self, other))
        return DataMoments(np.divide(sums, count, out=np.full(count.size, np.nan), where=count > 0), count)


def data_moments(model: Model, data: Rows) -> DataMoments | None:
    """Return the means of the model's statistics over the data.

    Under missing cells a mean is over the rows where its cells are present; None where a model does not know these.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.diagnostics.moments import data_moments
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> data_moments(model, gb.Dataset.read([[1, 1], [-1, 1]])).mean.tolist()
    [0.0, 1.0, 0.0]
    """
    moments = data.reduce(functools.partial(_moments_of, model))
    return None if np.isnan(moments.count).any() else moments


def moment_errors(model: Model, data: Rows) -> Floats:
    """Return the standard errors of the data's moments; their maximum where no row shows the cells."""
    moments, (low, high) = data_moments(model, data), model.family.statistic_range
    if moments is None:
        errors: Floats = (high - low) / 2 / np.sqrt(data.total_weight)
        return errors
    variance = np.where(np.isnan(moments.mean), (high - low) ** 2 / 4, (high - moments.mean) * (moments.mean - low))
    errors = np.sqrt(np.maximum(variance, 0.0) / np.where(moments.count > 0, moments.count, data.total_weight))
    return errors


def _moments_of(model: Model, data: Dataset) -> DataMoments:
    """Return the moments of rows in memory; NaN where the model does not know which rows show them."""
    total = data.total_weight
    if data.missing is None:
        mean = model.family.mean_statistics(data.states, data.weights)
        return DataMoments(mean, np.full(mean.size, total))
    present = model.family.present_sums(data.states, ~data.missing, data.weights)
    if present is None:
        return DataMoments(*np.full((2, model.theta.size), np.nan))
    sums, weights = present
    return DataMoments(np.divide(sums, weights, out=np.full(sums.size, np.nan), where=weights > 0), weights * total)
