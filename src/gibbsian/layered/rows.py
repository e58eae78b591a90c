"""The rows that a layered machine learns from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.data.weights import systematic_draws
from gibbsian.errors import DataError
from gibbsian.models.layers import Layer


@dataclass(frozen=True, eq=False)
class LayerRows:
    """States of the visible layer, one row for each observation.

    Parameters
    ----------
    states : ndarray of shape (n_rows, n_units)
        In the visible layer's states: small integers for binary, spin and categorical units (codes), numbers for
        Gaussian ones; numbers between 0 and 1, probabilities, are allowed for binary units.
    weights : ndarray of shape (n_rows,), optional
        How often each row counts; once each by default.
    missing : bool ndarray of shape (n_rows, n_units), optional
        True where nothing was observed, whatever `states` has there.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> rows = LayerRows(np.array([[0, 1], [1, 1]], np.int8), weights=np.array([3.0, 1.0]))
    >>> rows.n_rows, rows.shares.tolist()
    (2, [0.75, 0.25])
    """

    states: np.ndarray
    weights: np.ndarray | None = None
    missing: np.ndarray | None = None

    def __post_init__(self) -> None:
        states = np.asarray(self.states)
        if states.ndim != 2 or not len(states):
            raise DataError(f"states has shape {states.shape}", "give a table with at least one row")
        object.__setattr__(self, "states", states)
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights, len(states)))
        if self.missing is not None:
            object.__setattr__(self, "missing", _checked_mask(self.missing, states.shape))

    @classmethod
    def of(cls, data: Any) -> LayerRows:
        """Return the rows of a data set, in their order."""
        missing = None if data.missing is None else data.missing[data.row_of]
        return cls(data.states[data.row_of], data.row_weights, missing)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.states)

    @property
    def n_units(self) -> int:
        """Number of visible units."""
        return self.states.shape[1]

    @cached_property
    def shares(self) -> np.ndarray:
        """The weights divided by their sum."""
        if self.weights is None:
            return np.full(self.n_rows, 1.0 / self.n_rows)
        return self.weights / self.weights.sum()

    def take(self, places: np.ndarray) -> LayerRows:
        """Return some of the rows.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.rows import LayerRows
        >>> LayerRows(np.eye(3, dtype=np.int8)).take(np.array([2, 0])).states.tolist()
        [[0, 0, 1], [1, 0, 0]]
        """
        weights = None if self.weights is None else self.weights[places]
        missing = None if self.missing is None else self.missing[places]
        return LayerRows(self.states[places], weights, missing)

    def telling(self) -> LayerRows:
        """Return the rows that count, without weights where these make no row count more than another.

        Equal weights above 1 stay: they stand for repeated rows, and make an epoch longer.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.rows import LayerRows
        >>> rows = LayerRows(np.eye(3), weights=np.array([0.0, 1.0, 1.0])).telling()
        >>> rows.n_rows, rows.weights
        (2, None)
        """
        if self.weights is None:
            return self
        kept = self.weights > 0
        rows = self if kept.all() else self.take(np.flatnonzero(kept))
        weights = self.weights[kept]
        if weights[0] <= 1 and (weights == weights[0]).all():
            return LayerRows(rows.states, None, rows.missing)
        return rows

    def mean_values(self, layer: Layer) -> np.ndarray:
        """Return the weighted mean of each column of values over the cells that were observed.

        A column without any is put where the layer is without fields.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.rows import LayerRows
        >>> from gibbsian.models.layers import BinaryLayer
        >>> rows = LayerRows(np.array([[0, 1], [1, 1]]), missing=np.array([[False, True], [False, True]]))
        >>> rows.mean_values(BinaryLayer(2)).tolist()
        [0.5, 0.5]
        """
        sums, counts = np.zeros(layer.width), np.zeros(layer.width)
        for start in range(0, self.n_rows, 4096):
            block = slice(start, start + 4096)
            values, shares = layer.encode(self.encodable(block)), self.shares[block]
            if self.missing is None:
                sums += shares @ values
                counts += shares.sum()
            else:
                seen = shares[:, None] * ~layer_columns(layer, self.missing[block])
                sums += np.einsum("mi,mi->i", seen, values)
                counts += seen.sum(axis=0)
        nothing = layer.means(np.zeros((1, layer.width)))[0]
        return np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), nothing)

    def encodable(self, block: slice = slice(None)) -> np.ndarray:
        """Return the states of rows, with one that any layer can encode in place of whatever stands in missing cells.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.rows import LayerRows
        >>> LayerRows(np.array([[1, -9]]), missing=np.array([[False, True]])).encodable()
        array([[1, 0]])
        """
        states = self.states[block]
        return states if self.missing is None else np.where(self.missing[block], states.dtype.type(0), states)

    @property
    def n_draws(self) -> int:
        """Rows of an epoch: repeated rows count where the weights stand for them, shares make an epoch no shorter."""
        return self.n_rows if self.weights is None else max(self.n_rows, round(self.weights.sum()))

    def draws(self, rng: np.random.Generator) -> np.ndarray:
        """Return the rows of an epoch, in their order.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.rows import LayerRows
        >>> LayerRows(np.eye(2), weights=np.array([3.0, 1.0])).draws(np.random.default_rng(0)).tolist()
        [0, 0, 0, 1]
        """
        return np.arange(self.n_rows) if self.weights is None else systematic_draws(self.weights, self.n_draws, rng)


def layer_columns(layer: Layer, units: np.ndarray) -> np.ndarray:
    """Spread what is said of units, the last axis, over the columns of their values.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import layer_columns
    >>> from gibbsian.models.layers import CategoricalLayer
    >>> layer_columns(CategoricalLayer((2, 3)), np.array([[True, False]])).tolist()
    [[True, True, False, False, False]]
    """
    columns = getattr(layer, "unit_of_column", None)
    return units if columns is None else units[..., columns]


def _checked_weights(given: np.ndarray, n_rows: int) -> np.ndarray:
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise DataError(f"weights has shape {weights.shape}, but there are {n_rows} rows")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
        raise DataError("weights must be finite, none negative and not all zero")
    return weights


def _checked_mask(given: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    missing = np.asarray(given, dtype=bool)
    if missing.shape != shape:
        raise DataError(f"missing has shape {missing.shape}, but states has {shape}")
    return missing


__all__ = ["LayerRows", "layer_columns"]
