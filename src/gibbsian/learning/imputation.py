"""The rows of data in their order, with their missing cells imputed: what minibatches are made of."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.data import Dataset
from gibbsian.errors import DataError
from gibbsian.models.base import StackParts, Units
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import codes_of, refused, spread

# float64 or float32
Precision = np.dtype[np.float64]

# Rows that are imputed together.
BLOCK = 4096


class BatchRows:
    """The rows of positive weight, in their order.

    Imputed cells are one flat array of codes, row by row, in the state of a fit: a Markov chain for every row, clamped
    at what was observed.
    """

    def __init__(self, data: Dataset):
        self.data = data.effective()
        self.n_rows = self.data.n_rows

    def missing(self, places: Integers) -> Mask | None:
        """Return the missing cells of rows; None where the data are complete."""
        return None if self.data.missing is None else self.data.missing[self.data.row_of[places]]

    def states(self, places: Integers, imputed: States) -> States:
        """Return rows with their missing cells imputed."""
        states, mask = self.data.rows(places)
        if mask is not None:
            states[mask] = imputed[self._cells(places)]
        return states

    def values(self, layer: Units, places: Integers, imputed: States, dtype: Precision) -> Floats:
        """Return the values of rows, in some precision."""
        return layer.encode(self.states(places, imputed)).astype(dtype, copy=False)

    def with_missing(self, layer: Units, places: Integers, dtype: Precision) -> tuple[Floats, Mask | None]:
        """Return the values of rows, zeros in missing cells, and which columns of values are missing."""
        states, missing = self.data.rows(places)
        if missing is None:
            return layer.encode(states).astype(dtype, copy=False), None
        values = layer.encode(np.where(missing, states.dtype.type(0), states))
        return values.astype(dtype, copy=False), spread(layer, missing)

    def distinct_values(self, layer: Units, some: Slice) -> Floats:
        """Return the values of some distinct rows, none of whose cells is missing."""
        return layer.encode(self.data.states[some])

    def missing_columns(self, layer: Units) -> Mask:
        """Return which columns of values the rows lack."""
        assert self.data.missing is not None
        return spread(layer, self.data.missing[self.data.row_of])

    def imputed_from(self, layer: Units, values: Floats) -> States:
        """Return the imputed cells of values of all rows."""
        assert self.data.missing is not None
        missing = self.data.missing[self.data.row_of]
        imputed: States = codes_of(layer, values)[missing]
        return imputed

    def start(self, family: StackFamily, parts: StackParts, rng: np.random.Generator, n_sweeps: int = 0) -> States:
        """Draw the missing cells from the visible biases alone, then sweep over them given their rows."""
        imputed: States = np.empty(0 if self._first is None else self._first[-1], np.int8)
        if self._first is None:
            return imputed
        blocks = np.array_split(np.arange(self.n_rows), 1 + self.n_rows // BLOCK)
        layer, fields = family.layers[0], parts.biases[0]
        for places in blocks:
            drawn = codes_of(layer, layer.draw(np.tile(fields, (len(places), 1)), rng))
            imputed[self._cells(places)] = drawn[self.missing(places)]
        for places in n_sweeps * blocks:
            self.impute(family, parts, places, imputed, rng)
        return imputed

    def impute(
        self, family: StackFamily, parts: StackParts, places: Integers, imputed: States, rng: np.random.Generator
    ) -> Floats:
        """Draw hidden units, then the missing cells given them, in place; return the values of the rows."""
        layer, dtype = family.layers[0], parts.biases[0].dtype
        values, mask = self.values(layer, places, imputed, dtype), self.missing(places)
        if mask is None:
            return values
        incomplete = np.flatnonzero(mask.any(axis=1))
        if len(incomplete):
            both = family.draw_side(parts, 1, [values[incomplete], None], rng)
            drawn = codes_of(layer, family.draw(parts, 0, both, rng))
            imputed[self._cells(places[incomplete])] = drawn[mask[incomplete]]
            values[incomplete] = self.values(layer, places[incomplete], imputed, dtype)
        return values

    @cached_property
    def _first(self) -> Integers | None:
        """Place of the first missing cell of each row in the flat array, and the end."""
        if self.data.missing is None:
            return None
        return np.concatenate([[0], np.cumsum(self.data.missing.sum(axis=1)[self.data.row_of])])

    def _cells(self, places: Integers) -> Integers:
        """Return the places of the missing cells of rows in the flat array, in their order."""
        assert self._first is not None
        counts = np.diff(self._first)[places]
        starts = self._first[places] - (np.cumsum(counts) - counts)
        return np.repeat(starts, counts) + np.arange(counts.sum())


def complete_rows(states: States, weights: Floats | None = None) -> Dataset:
    """Return complete rows of a layer as data, each as it is."""
    return Dataset.of_states(states, "real", sample_weight=weights, distinct=False)


def check_states(layer: Units, data: Dataset) -> None:
    """Refuse data that a visible layer cannot take, naming the first column where something is wrong."""
    if data.n_variables != layer.n_units:
        raise DataError(f"the model has {layer.n_units} visible units but the rows have {data.n_variables} columns")
    bad, allowed = refused(layer, data.states)
    if data.missing is not None:
        bad &= ~data.missing
    if bad.any():
        row, column = np.argwhere(bad)[0]
        value = data.states[row, column]
        raise DataError(f"column {data.names[column]!r} has the value {value}, but {layer.kind} units take {allowed}")
