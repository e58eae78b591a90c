"""Restricted machines with two-valued units in compiled kernels: threads share the visible units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.arrays import Floats, Slice
from gibbsian.backends.numba import layer_flips as kernels
from gibbsian.backends.threads import map_ordered
from gibbsian.models.base import StackParts
from gibbsian.models.layers.stack import StackFamily

# Number of visible units in a piece of work; with the samples in cache the size matters little.
UNITS_AT_ONCE = 16


def is_two_valued(family: StackFamily) -> bool:
    """Return whether all layers have two-valued units."""
    return all(layer.kind in ("binary", "spin") for layer in family.layers)


@dataclass(frozen=True, eq=False)
class FlipSums:
    """Conditional distributions of single visible units and of pairs, at rows of samples.

    Parameters
    ----------
    family, parts : StackFamily and StackParts
        A machine with two layers of two-valued units.
    values : ndarray of shape (n_rows, width)
        Visible values.
    """

    family: StackFamily
    parts: StackParts
    values: Floats

    @cached_property
    def hidden_fields(self) -> Floats:
        """Hidden fields of each row."""
        return np.asarray(self.family.fields(self.parts, 1, [self._values, None]), np.float64)

    @cached_property
    def _values(self) -> Floats:
        return np.ascontiguousarray(self.values, dtype=np.float64)

    @cached_property
    def _parameters(self) -> tuple[Floats, Floats]:
        """Visible biases and weights."""
        return self.parts.biases[0].astype(np.float64), self.parts.weights[0].astype(np.float64)

    @property
    def _log_sums(self) -> Floats:
        return self.family.layers[1].log_normaliser(self.hidden_fields)

    @property
    def _scales(self) -> tuple[float, float, float, float]:
        """Lower value and distance between the two values, of visible and of hidden units."""
        lows = [-1.0 if layer.kind == "spin" else 0.0 for layer in self.family.layers]
        return lows[0], 1.0 - lows[0], lows[1], 1.0 - lows[1]

    def costs(self) -> Floats:
        """Return ``log P(v) - log P(v with unit i at its other value)``, row by row and unit by unit."""
        log_sums, costs, (biases, weights) = self._log_sums, np.empty(self._values.shape), self._parameters

        def work(units: Slice, values: Floats) -> None:
            part = np.empty(values.shape)
            kernels.costs(values, self.hidden_fields, log_sums, biases[units], weights[units], *self._scales, part)
            costs[:, units] = part

        self._for_units(work)
        return costs

    def layer_moments(self) -> tuple[Floats, Floats]:
        """Return the means over rows of ``E[v_i | v_-i]`` and ``E[v_i h_j | v_-i]``, the hidden layer summed out."""
        log_sums, means = self._log_sums, self.family.layers[1].means(self.hidden_fields)
        biases, weights = self._parameters
        visible, products = np.zeros(len(biases)), np.zeros(weights.shape)

        def work(units: Slice, values: Floats) -> None:
            arguments = biases[units], weights[units], *self._scales
            kernels.layer_region(
                values, self.hidden_fields, means, log_sums, *arguments, visible[units], products[units]
            )

        self._for_units(work)
        return visible / len(self._values), products / len(self._values)

    def pair_products(self, hidden: Floats) -> Floats:
        """Return the mean over rows of ``E[v_i h_j | all other units]``, given hidden values as well (1-SMCI)."""
        visible_fields = np.asarray(self.family.fields(self.parts, 0, [None, hidden]), np.float64)
        hidden = np.ascontiguousarray(hidden, dtype=np.float64)
        _, weights = self._parameters
        products = np.zeros(weights.shape)

        def work(units: Slice, values: Floats) -> None:
            fields = np.ascontiguousarray(visible_fields[:, units])
            arguments = weights[units], *self._scales, products[units]
            kernels.pair_region(values, fields, hidden, self.hidden_fields, *arguments)

        self._for_units(work)
        return products / len(self._values)

    def _for_units(self, work: Callable[[Slice, Floats], None]) -> None:
        """Do the work for all visible units, some at a time, with their values."""

        def piece(start: int) -> None:
            units = slice(start, start + UNITS_AT_ONCE)
            work(units, np.ascontiguousarray(self._values[:, units]))

        for _ in map_ordered(piece, range(0, self._values.shape[1], UNITS_AT_ONCE)):
            pass
