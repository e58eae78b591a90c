"""Restricted machines of two-valued units as the compiled kernels take them: visible units in pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.backends.numba import layer_flips as kernels
from gibbsian.backends.parallel import map_in_order
from gibbsian.models.family import StackParts
from gibbsian.models.layers.stack import StackFamily

# Visible units that one thread takes at a time; with the samples in cache the size matters little.
UNITS_AT_ONCE = 16


def is_two_valued(family: StackFamily) -> bool:
    """Say whether all layers have two-valued units."""
    return all(layer.kind in ("binary", "spin") for layer in family.layers)


@dataclass(frozen=True, eq=False)
class FlipSums:
    """Conditional distributions of single visible units and of pairs, at rows of samples.

    Parameters
    ----------
    family, parts : StackFamily and StackParts
        A machine of two layers of two-valued units.
    values : ndarray of shape (n_rows, width)
        Visible values.
    """

    family: StackFamily
    parts: StackParts
    values: np.ndarray

    @cached_property
    def hidden_fields(self) -> np.ndarray:
        """Hidden fields of each row."""
        return self._fields(1, [self._values, None])

    @cached_property
    def _values(self) -> np.ndarray:
        return np.ascontiguousarray(self.values, dtype=np.float64)

    @cached_property
    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        biases, weights = self.parts
        return biases[0].astype(np.float64), weights[0].astype(np.float64)

    def _fields(self, place: int, values: list[Any]) -> np.ndarray:
        return np.asarray(self.family.fields(self.parts, place, values), np.float64)

    @property
    def _scales(self) -> tuple[float, float, float, float]:
        """Lower value and distance between the two values, of visible and of hidden units."""
        lows = [-1.0 if layer.kind == "spin" else 0.0 for layer in self.family.layers]
        return lows[0], 1.0 - lows[0], lows[1], 1.0 - lows[1]

    def costs(self) -> np.ndarray:
        """Return ``log P(v) - log P(v with unit i at its other value)``, row by row and unit by unit."""
        log_sums = self.family.layers[1].log_normaliser(self.hidden_fields)
        biases, weights = self._parameters
        costs = np.empty(self._values.shape)

        def work(units: slice) -> None:
            part = np.empty((len(costs), units.stop - units.start))
            values = np.ascontiguousarray(self._values[:, units])
            kernels.costs(values, self.hidden_fields, log_sums, biases[units], weights[units], *self._scales, part)
            costs[:, units] = part

        self._for_units(work)
        return costs

    def layer_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means over rows of ``E[v_i | v_-i]`` and ``E[v_i h_j | v_-i]``, the hidden layer summed out."""
        log_sums = self.family.layers[1].log_normaliser(self.hidden_fields)
        means = self.family.layers[1].means(self.hidden_fields)
        biases, weights = self._parameters
        visible, products = np.zeros(len(biases)), np.zeros(weights.shape)

        def work(units: slice) -> None:
            kernels.layer_region(
                np.ascontiguousarray(self._values[:, units]),
                self.hidden_fields,
                means,
                log_sums,
                biases[units],
                weights[units],
                *self._scales,
                visible[units],
                products[units],
            )

        self._for_units(work)
        return visible / len(self._values), products / len(self._values)

    def pair_products(self, hidden: np.ndarray) -> np.ndarray:
        """Return the mean over rows of ``E[v_i h_j | all other units]``, given hidden values as well (1-SMCI)."""
        visible_fields = self._fields(0, [None, hidden])
        hidden = np.ascontiguousarray(hidden, dtype=np.float64)
        _, weights = self._parameters
        products = np.zeros(weights.shape)

        def work(units: slice) -> None:
            kernels.pair_region(
                np.ascontiguousarray(self._values[:, units]),
                np.ascontiguousarray(visible_fields[:, units]),
                hidden,
                self.hidden_fields,
                weights[units],
                *self._scales,
                products[units],
            )

        self._for_units(work)
        return products / len(self._values)

    def _for_units(self, work: Callable[[slice], None]) -> None:
        n = self._values.shape[1]
        pieces = [slice(start, min(start + UNITS_AT_ONCE, n)) for start in range(0, n, UNITS_AT_ONCE)]
        for _ in map_in_order(work, pieces):
            pass
