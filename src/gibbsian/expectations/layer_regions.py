"""Spatial Monte Carlo integration of restricted machines with any kinds of units (YU20 eq. 8 and its conclusion).

Around a visible and a hidden unit a sum is taken exactly: the values of one unit are listed, and the other, or the
whole hidden layer, has a formula given its field. Real numbers are listed as the nodes of a quadrature rule, centred
where the unit lies given the rest and as wide as it is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.models.family import StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import GaussianUnits, columns_of, value_tables

# Nodes of a Gaussian unit, and the widest they are spread, in standard deviations given the other layer.
N_NODES = 32
WIDEST = 4.0


def layer_products(family: StackFamily, parts: StackParts, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means over rows of ``E[v_i | v_-i]`` and ``E[v_i h_j | v_-i]``, the hidden layer summed out."""
    (lower, upper), ((biases, _), (matrix,)) = family.layers, parts
    fields = family.fields(parts, 1, [values, None]).astype(np.float64)
    visible, products = np.zeros(lower.width), np.zeros(matrix.shape)
    for columns, unit in _units(lower):
        own = np.tile(biases[columns], (len(values), 1))
        rest = fields - values[:, columns] @ matrix[columns]
        visible[columns], products[columns] = _moments(unit, own, upper, rest, matrix[columns])
    return visible, products


def pair_products(family: StackFamily, parts: StackParts, values: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return the mean over rows of ``E[v_i h_j | all other units]`` (1-SMCI, YU20 eq. 15)."""
    (lower, upper), (matrix,) = family.layers, parts.weights
    if lower.variables.real and not upper.variables.real:  # list the unit that has few values
        turned = StackParts(parts.biases[::-1], [matrix.T])
        return pair_products(StackFamily((upper, lower)), turned, hidden, values).T
    both, products = [values, hidden], np.zeros(matrix.shape)
    below, above = (family.fields(parts, place, both).astype(np.float64) for place in (0, 1))
    for columns, unit in _units(lower):
        for others, other in _units(upper):
            weights = matrix[columns, others]
            own = below[:, columns] - hidden[:, others] @ weights.T
            rest = above[:, others] - values[:, columns] @ weights
            products[columns, others] = _moments(unit, own, other, rest, weights)[1]
    return products


def _moments(unit: Any, own: np.ndarray, other: Any, rest: np.ndarray, weights: np.ndarray) -> tuple[Any, Any]:
    """Return the means over rows of x and of ``x y^T``: a unit x with field `own`, and units y with ``rest + x W``."""

    def log_weights(points: np.ndarray) -> np.ndarray:
        flat = points.reshape(-1, points.shape[2])
        sums = other.log_normaliser((rest[:, None] + points @ weights).reshape(-1, rest.shape[1]))
        return (points * own[:, None]).sum(axis=2) + (sums + unit.log_measure(flat)).reshape(points.shape[:2])

    points, extra = _listed(unit, log_weights, own + other.means(rest) @ weights.T)
    logs = log_weights(points) + extra
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True) * len(own)
    means = other.means((rest[:, None] + points @ weights).reshape(-1, rest.shape[1]))
    weighted = (points * shares[:, :, None]).reshape(len(means), -1)
    return weighted.sum(axis=0), weighted.T @ means


def _listed(unit: Any, log_weights: Any, fields: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return the values of a unit in each row, shape (rows, values, columns), and log-weights of a quadrature rule."""
    if not isinstance(unit, GaussianUnits):
        (every,) = value_tables(unit)
        return np.broadcast_to(every, (len(fields), *every.shape)), 0.0
    deviation, centres = unit.deviations[0], unit.means(fields)
    bend = log_weights(centres[:, None] + deviation * np.array([[-1.0], [0.0], [1.0]])) @ [-1.0, 2.0, -1.0]
    widths = deviation / np.sqrt(np.maximum(bend, WIDEST**-2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    return centres[:, None] + widths[:, None, None] * nodes[:, None], np.log(weights) + nodes**2 / 2


def _units(layer: Any) -> list[tuple[slice, Any]]:
    """The units of a layer as layers of one unit, with their columns."""
    return [(at, layer.take(np.array([unit]))) for unit, at in enumerate(columns_of(layer))]
