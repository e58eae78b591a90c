"""The rows of data in their order, with something in every cell: what minibatches are made of."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import DataError
from gibbsian.models.base import Model, StackParts, Units
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import codes_of, refused, spread


class EpochRows:
    """The rows that count, in their order.

    What stands in missing cells is one flat array of states, row by row, that a learner keeps: a Markov chain for every
    row, clamped at what was observed.
    """

    def __init__(self, data: Dataset):
        self.data = data.effective()
        self.n_rows = self.data.n_rows

    def missing(self, places: np.ndarray) -> np.ndarray | None:
        """Return where rows have no cell; None where data have all."""
        return None if self.data.missing is None else self.data.missing[self.data.row_of[places]]

    def states(self, places: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """Return rows with their missing cells filled in."""
        states, mask = self.data.rows(places)
        if mask is not None:
            states[mask] = filled[self._cells(places)]
        return states

    def values(self, layer: Units, places: np.ndarray, filled: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Return the values of rows, in some precision."""
        return layer.encode(self.states(places, filled)).astype(dtype, copy=False)

    def distinct_values(self, layer: Units, some: slice) -> np.ndarray:
        """Return the values of some distinct rows, none of whose cells is missing."""
        return layer.encode(self.data.states[some])

    def missing_columns(self, layer: Units) -> np.ndarray:
        """Return the columns of values that the rows lack, as a mask."""
        return spread(layer, self.data.missing[self.data.row_of])  # type: ignore[index]

    def filled_from(self, layer: Units, values: np.ndarray) -> np.ndarray:
        """Return what stands in missing cells, of values of all rows."""
        missing = self.data.missing[self.data.row_of]  # type: ignore[index]
        return codes_of(layer, values)[missing].astype(self.data.states.dtype)

    def start(self, model: Model[StackFamily], rng: np.random.Generator) -> np.ndarray:
        """Draw the missing cells from the visible biases alone."""
        filled = np.empty(0 if self._first is None else self._first[-1], self.data.states.dtype)
        if self._first is None:
            return filled
        layer, fields = model.family.layers[0], model.parts.biases[0]
        for start in range(0, self.n_rows, 4096):
            places = np.arange(start, min(start + 4096, self.n_rows))
            drawn = codes_of(layer, layer.draw(np.tile(fields, (len(places), 1)), rng))
            filled[self._cells(places)] = drawn[self.missing(places)]
        return filled

    def renew(
        self,
        family: StackFamily,
        parts: StackParts,
        places: np.ndarray,
        filled: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw hidden units, then the missing cells given them, in place; return the values of the rows."""
        layer, dtype = family.layers[0], parts.biases[0].dtype
        values, mask = self.values(layer, places, filled, dtype), self.missing(places)
        if mask is None:
            return values
        holed = np.flatnonzero(mask.any(axis=1))
        if len(holed):
            both = family.draw_side(parts, 1, [values[holed], None], rng)
            drawn = codes_of(layer, family.draw(parts, 0, both, rng))
            filled[self._cells(places[holed])] = drawn[mask[holed]]
            values[holed] = self.values(layer, places[holed], filled, dtype)
        return values

    @cached_property
    def _first(self) -> np.ndarray | None:
        """Place of the first missing cell of each row in the flat array, and the end."""
        if self.data.missing is None:
            return None
        return np.concatenate([[0], np.cumsum(self.data.missing.sum(axis=1)[self.data.row_of])])

    def _cells(self, places: np.ndarray) -> np.ndarray:
        """Places in the flat array of the missing cells of rows, in their order."""
        assert self._first is not None
        counts = np.diff(self._first)[places]
        starts = self._first[places] - (np.cumsum(counts) - counts)
        return np.repeat(starts, counts) + np.arange(counts.sum())


def plain_rows(states: np.ndarray, weights: np.ndarray | None = None) -> Dataset:
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
