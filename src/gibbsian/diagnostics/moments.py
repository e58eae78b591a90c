"""The data's moments, each over the rows where its cells are present."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from gibbsian.arrays import Floats, Mask, States
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.models.base import DiscreteFamily, ExponentialFamily, Model
from gibbsian.models.variables import checked_weights

E = TypeVar("E", bound=ExponentialFamily)


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
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), gb.Variables.binary))
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


def data_moments(model: Model[E], data: Rows) -> DataMoments | None:
    """Return the means of the model's statistics over the data.

    Under missing cells a mean is over the rows where its cells are present; None where a model does not know these.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.diagnostics.moments import data_moments
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> data_moments(model, gb.Dataset.read([[1, 1], [-1, 1]])).mean.tolist()
    [0.0, 1.0, 0.0]
    """
    moments = data.reduce(functools.partial(_moments_of, model))
    return None if np.isnan(moments.count).any() else moments


def moment_errors(model: Model[E], data: Rows) -> Floats:
    """Return the standard errors of the data's moments; their maximum where no row shows the cells."""
    moments, (low, high) = data_moments(model, data), model.family.statistic_range
    if moments is None:
        errors: Floats = (high - low) / 2 / np.sqrt(data.total_weight)
        return errors
    variance = np.where(np.isnan(moments.mean), (high - low) ** 2 / 4, (high - moments.mean) * (moments.mean - low))
    errors = np.sqrt(np.maximum(variance, 0.0) / np.where(moments.count > 0, moments.count, data.total_weight))
    return errors


@runtime_checkable
class _KnowsPresentSums(Protocol):
    """A family with products that it sums over the rows that show them."""

    def present_sums(self, x: States, present: Mask, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the sums of the statistics over the rows that show their cells, and the weights of these rows."""


def _moments_of(model: Model[E], data: Dataset) -> DataMoments:
    """Return the moments of rows in memory; NaN where the model does not know which rows show them."""
    family, total = model.family, data.total_weight
    if data.missing is None:
        mean = family.mean_statistics(data.states, data.weights)
        return DataMoments(mean, np.full(mean.size, total))
    if isinstance(family, _KnowsPresentSums):
        sums, weights = family.present_sums(data.states, ~data.missing, data.weights)
    elif isinstance(family, DiscreteFamily) and not family.variables.real:
        weights = checked_weights(data.weights, len(data.states))
        sums, weights = _present_sums(family, data.states, ~data.missing, weights)
    else:  # values that cannot be listed
        return DataMoments(*np.full((2, model.theta.size), np.nan))
    return DataMoments(np.divide(sums, weights, out=np.full(sums.size, np.nan), where=weights > 0), weights * total)


def _present_sums(family: DiscreteFamily, codes: States, present: Mask, weights: Floats) -> tuple[Floats, Floats]:
    """Return the sums of the statistics over the rows that show their cells, and the weights of these rows.

    They come from the tables of what the rows show of each factor; the fraction of a parameter of several factors is
    the mean of theirs.
    """
    sizes = np.array(family.variables.sizes)

    def counts_of(nodes: tuple[int, ...]) -> Floats:
        rows, shape = present[:, nodes].all(axis=1), sizes[list(nodes)]
        indices = np.ravel_multi_index(tuple(codes[rows][:, nodes].T.astype(np.intp)), tuple(shape))
        counts = np.bincount(indices, weights[rows], minlength=shape.prod())
        return np.asarray(counts, dtype=np.float64).reshape(shape)

    def uneven(nodes: tuple[int, ...], fraction: float = 1.0) -> Floats:
        # geometric: over an even or a linear one a product of centred scores has mean zero
        shape = sizes[list(nodes)]
        table: Floats = fraction * _normalised(np.exp(np.linspace(0.0, len(nodes), shape.prod()))).reshape(shape)
        return table

    means = family.statistics_from(lambda nodes: _normalised(counts_of(nodes)))
    parts = family.statistics_from(lambda nodes: uneven(nodes, float(counts_of(nodes).sum())))
    complete = family.statistics_from(uneven)
    fraction = np.divide(parts, complete, out=np.zeros_like(complete), where=complete != 0)
    return means * fraction, fraction


def _normalised(table: Floats) -> Floats:
    """Return weights as probabilities; zeros where there are none."""
    return table / (table.sum() or 1.0)
