"""Two-valued machines as the compiled kernels take them: parameters over the temperature, visible units in pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.backends.numba import layer_flips as kernels
from gibbsian.backends.parallel import map_in_order
from gibbsian.models.layers import BinaryLayer, Layer, SpinLayer
from gibbsian.models.restricted import RestrictedModel

# Visible units that one thread takes at a time; with the samples in cache the size matters little.
UNITS_AT_ONCE = 16


def is_two_valued(model: RestrictedModel) -> bool:
    """Say whether both layers have two-valued units."""
    return all(isinstance(layer, BinaryLayer | SpinLayer) for layer in (model.visible, model.hidden))


@dataclass(frozen=True, eq=False)
class FlipSums:
    """Conditional distributions of single visible units and of pairs, at rows of samples.

    Parameters
    ----------
    model : RestrictedModel
        A machine of two-valued units.
    values : ndarray of shape (n_rows, visible.width)
        Visible values.
    """

    model: RestrictedModel
    values: np.ndarray

    @cached_property
    def hidden_fields(self) -> np.ndarray:
        """Hidden fields of each row."""
        return np.asarray(self.model.hidden_fields(self._values), np.float64)

    @cached_property
    def _values(self) -> np.ndarray:
        return np.ascontiguousarray(self.values, dtype=np.float64)

    @cached_property
    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        biases, weights = self.model.visible_biases, self.model.weights
        return biases.astype(np.float64) / self.model.temperature, weights.astype(np.float64) / self.model.temperature

    @property
    def _scales(self) -> tuple[float, float, float, float]:
        """Lower value and distance between the two values, of visible and of hidden units."""
        return (*_low_and_step(self.model.visible), *_low_and_step(self.model.hidden))

    def costs(self) -> np.ndarray:
        """Return ``log P(v) - log P(v with unit i at its other value)``, row by row and unit by unit."""
        log_sums = self.model.hidden.log_normaliser(self.hidden_fields)
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
        log_sums = self.model.hidden.log_normaliser(self.hidden_fields)
        means = self.model.hidden.means(self.hidden_fields)
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
        visible_fields = np.asarray(self.model.visible_fields(hidden), np.float64)
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


def _low_and_step(layer: Layer) -> tuple[float, float]:
    return (-1.0, 2.0) if layer.kind == "spin" else (0.0, 1.0)
