"""Missing cells of the rows, filled by draws that are renewed whenever a row is visited."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gibbsian.errors import DataError
from gibbsian.layered.rows import LayerRows
from gibbsian.models.restricted import RestrictedModel


class Filling:
    """Rows with something in every cell.

    What stands in the missing cells is one flat array of states, row by row, that the learner keeps: a Markov chain for
    every row, clamped at what was observed.

    Parameters
    ----------
    rows : LayerRows
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.filling import Filling
    >>> from gibbsian.layered.rows import LayerRows
    >>> missing = np.array([[False, True], [True, True]])
    >>> filling = Filling(LayerRows(np.zeros((2, 2), np.int8), missing=missing))
    >>> filling.states(np.array([1, 0]), np.array([5, 6, 7], np.int8)).tolist()
    [[6, 7], [0, 5]]
    """

    def __init__(self, rows: LayerRows):
        self.rows = rows

    @cached_property
    def _first(self) -> np.ndarray | None:
        """Place of the first missing cell of each row in the flat array, and the end."""
        if self.rows.missing is None or not self.rows.missing.any():
            return None
        return np.concatenate([[0], np.cumsum(self.rows.missing.sum(axis=1))])

    def start(self, model: RestrictedModel, rng: np.random.Generator) -> np.ndarray:
        """Draw the cells from the visible biases alone."""
        if self._first is None:
            return np.empty(0, self.rows.states.dtype)
        mask = self.rows.missing
        assert mask is not None
        filled = np.empty(self._first[-1], self.rows.states.dtype)
        fields = np.asarray(model.visible_biases / model.temperature)
        for start in range(0, self.rows.n_rows, 4096):
            places = np.arange(start, min(start + 4096, self.rows.n_rows))
            drawn = model.visible.decode(model.draw_visible_at(np.tile(fields, (len(places), 1)), rng))
            filled[self._cells(places)] = drawn[mask[places]]
        return filled

    def states(self, places: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """Return rows with their missing cells filled in."""
        states = self.rows.states[places]
        if self._first is not None and self.rows.missing is not None:
            states[self.rows.missing[places]] = filled[self._cells(places)]
        return states

    def values(self, model: RestrictedModel, places: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """Return the values of rows, in the precision of the model."""
        return model.visible.encode(self.states(places, filled)).astype(model.theta.dtype, copy=False)

    def renew(
        self, model: RestrictedModel, places: np.ndarray, filled: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw hidden units, then the missing cells given them, in place; return the values of the rows."""
        values = self.values(model, places, filled)
        if self._first is None or self.rows.missing is None:
            return values
        mask = self.rows.missing[places]
        holed = np.flatnonzero(mask.any(axis=1))
        if len(holed):
            drawn = model.visible.decode(model.draw_visible(model.draw_hidden(values[holed], rng), rng))
            filled[self._cells(places[holed])] = drawn[mask[holed]]
            values[holed] = self.values(model, places[holed], filled)
        return values

    def _cells(self, places: np.ndarray) -> np.ndarray:
        """Places in the flat array of the missing cells of rows, in their order."""
        assert self._first is not None
        counts = np.diff(self._first)[places]
        starts = self._first[places] - (np.cumsum(counts) - counts)
        return np.repeat(starts, counts) + np.arange(counts.sum())


def check_rows(model: RestrictedModel, rows: LayerRows) -> None:
    """Refuse rows that the visible layer cannot take, naming the first column where something is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.filling import check_rows
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> check_rows(RestrictedModel.build(BinaryLayer(2), BinaryLayer(1)), LayerRows(np.array([[0, 2]])))
    Traceback (most recent call last):
        ...
    gibbsian.errors.DataError: column 1 has the value 2, but binary units take numbers from 0 to 1
    """
    if rows.n_units != model.visible.n_units:
        raise DataError(f"the model has {model.visible.n_units} visible units but the rows have {rows.n_units} columns")
    bad, allowed = _refused(model, rows.states)
    if rows.missing is not None:
        bad &= ~rows.missing
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"column {column} has the value {rows.states[row, column]}, but {model.visible.kind} units take {allowed}"
        )


def _refused(model: RestrictedModel, states: np.ndarray) -> tuple[np.ndarray, str]:
    kind = model.visible.kind
    if kind == "binary":
        return ~((states >= 0) & (states <= 1)), "numbers from 0 to 1"
    if kind == "spin":
        return ~((states == -1) | (states == 1)), "-1 and 1"
    if kind == "categorical":
        sizes = np.asarray(model.visible.sizes)  # type: ignore[attr-defined]
        return ~((states >= 0) & (states < sizes) & (states == np.floor(states))), "codes 0 .. q - 1"
    return ~np.isfinite(states), "finite numbers"


__all__ = ["Filling", "check_rows"]
