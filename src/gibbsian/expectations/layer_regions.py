"""Spatial Monte Carlo integration of stacks with any kinds of units (YU20 eq. 8 and its conclusion).

Around two units of neighbouring layers a sum is taken exactly: the values of one unit are listed, and the other, or all
layers next to it, have a formula given their fields. Real numbers are listed as the nodes of a quadrature rule, centred
where the unit lies given the rest and as wide as it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats, Slice
from gibbsian.models.base import StackParts, Units
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import GaussianUnits, columns_of, value_tables

# Nodes of a Gaussian unit, and the widest they are spread, in standard deviations given the other layer.
N_NODES = 32
WIDEST = 4.0


def layer_products(
    family: StackFamily, parts: StackParts, values: Sequence[Floats]
) -> tuple[list[Floats], list[Floats]]:
    """Return the means over rows of ``E[x | other even units]`` of even units x, and of ``x y`` with odd ones y.

    The odd layers are summed out. Means are listed for each even layer, products for each two neighbours, as the
    weights between them are.
    """
    firsts: list[Floats] = []
    products: list[Floats] = [np.zeros(matrix.shape) for matrix in parts.weights]
    odd = {place: family.fields(parts, place, values).astype(np.float64) for place in family.sides[1]}
    for place in family.sides[0]:
        near = [
            (k, parts.weights[place] if k > place else parts.weights[k].T) for k in (place - 1, place + 1) if k in odd
        ]
        here, biases = values[place], parts.biases[place]
        means = np.zeros(family.layers[place].width)
        for columns, unit in _units(family.layers[place]):
            own = np.tile(biases[columns], (len(here), 1))
            others = [
                (family.layers[k], odd[k] - here[:, columns] @ matrix[columns], matrix[columns]) for k, matrix in near
            ]
            means[columns], found = _moments(unit, own, others)
            for (k, _), product in zip(near, found, strict=True):
                if k > place:
                    products[place][columns] = product
                else:
                    products[k][:, columns] = product.T
        firsts.append(means)
    return firsts, products


def pair_products(family: StackFamily, parts: StackParts, values: Sequence[Floats]) -> list[Floats]:
    """Return means over rows of ``E[x y | all other units]`` with x, y of neighbouring layers (1-SMCI, YU20 eq. 15)."""
    fields = [family.fields(parts, place, values).astype(np.float64) for place in range(len(family.layers))]
    sides = [_Side(*side) for side in zip(family.layers, values, fields, strict=True)]
    return [_pairs(lower, upper, matrix) for (lower, upper), matrix in zip(pairwise(sides), parts.weights, strict=True)]


class _Side(NamedTuple):
    """A layer, its values and its fields, row by row."""

    layer: Units
    values: Floats
    fields: Floats


def _pairs(lower: _Side, upper: _Side, matrix: Floats) -> Floats:
    """Return the mean over rows of ``E[x_i y_j | all other units]`` for two neighbouring layers."""
    if lower.layer.variables.real and not upper.layer.variables.real:  # list the unit that has few values
        return _pairs(upper, lower, matrix.T).T
    products = np.zeros(matrix.shape)
    for columns, unit in _units(lower.layer):
        for others, other in _units(upper.layer):
            weights = matrix[columns, others]
            own = lower.fields[:, columns] - upper.values[:, others] @ weights.T
            rest = upper.fields[:, others] - lower.values[:, columns] @ weights
            (products[columns, others],) = _moments(unit, own, [(other, rest, weights)])[1]
    return products


def _moments(unit: Units, own: Floats, others: Sequence[tuple[Units, Floats, Floats]]) -> tuple[Floats, list[Floats]]:
    """Return the means over rows of x and of each ``x y^T``: a unit x with field `own`, units y with ``rest + x W``."""

    def fields(points: Floats) -> Iterator[tuple[Units, Floats]]:
        for other, rest, weights in others:
            yield other, (rest[:, None] + points @ weights).reshape(-1, rest.shape[1])

    def log_weights(points: Floats) -> Floats:
        flat = points.reshape(-1, points.shape[2])
        sums = np.zeros(len(flat)) + unit.log_measure(flat)
        for other, each in fields(points):
            sums = sums + other.log_normaliser(each)
        logs: Floats = (points * own[:, None]).sum(axis=2) + sums.reshape(points.shape[:2])
        return logs

    centre = own + sum(other.means(rest) @ weights.T for other, rest, weights in others)
    points, extra = _listed(unit, log_weights, centre)
    logs = log_weights(points) + extra
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True) * len(own)
    weighted = (points * shares[:, :, None]).reshape(-1, points.shape[2])
    return weighted.sum(axis=0), [weighted.T @ other.means(each) for other, each in fields(points)]


def _listed(unit: Units, log_weights: Callable[[Floats], Floats], fields: Floats) -> tuple[Floats, Floats | float]:
    """Return the values of a unit in each row, shape (rows, values, columns), and log-weights of a quadrature rule."""
    if not isinstance(unit, GaussianUnits):
        (every,) = value_tables(unit)
        return np.broadcast_to(every, (len(fields), *every.shape)), 0.0
    deviation, centres = unit.deviations[0], unit.means(fields)
    bend = log_weights(centres[:, None] + deviation * np.array([[-1.0], [0.0], [1.0]])) @ [-1.0, 2.0, -1.0]
    widths = deviation / np.sqrt(np.maximum(bend, WIDEST**-2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    return centres[:, None] + widths[:, None, None] * nodes[:, None], np.log(weights) + nodes**2 / 2


def _units(layer: Units) -> list[tuple[Slice, Units]]:
    """The units of a layer as layers of one unit, with their columns."""
    return [(at, layer.take(np.array([unit]))) for unit, at in enumerate(columns_of(layer))]
