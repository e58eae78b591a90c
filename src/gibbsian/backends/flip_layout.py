"""Flip costs as a product with a matrix, for backends that multiply matrices faster than they walk along edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class FlipLayout(NamedTuple):
    """Where states and parameters stand in ``fields = numbers @ matrix``, from which flip costs follow cell by cell.

    Parameters
    ----------
    states : ndarray of shape (n_states, n_variables)
        The states: by codes from 0 where they are `one_hot`, else by their two numbers, of which one is positive.
    n_values : int
        The most values that a variable has. Two are one column of numbers, unless they are `one_hot`; more are a column
        each.
    one_hot : bool
        Whether every value has a column.
    cardinalities : ndarray
        How many values each variable has: columns beyond have an infinite cost.
    gap : float
        How far the two numbers are apart.
    bias_columns : ndarray
        The column of each bias; biases stand first among the parameters.
    sources, targets : ndarray
        The row and the column of the matrix of each coupling.
    tied : bool
        Whether a coupling also stands at its mirror image.
    sparse : bool, default False
        Whether few entries of the matrix are couplings.
    """

    states: np.ndarray
    n_values: int
    one_hot: bool
    cardinalities: np.ndarray
    gap: float
    bias_columns: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    tied: bool
    sparse: bool = False

    @property
    def n_columns(self) -> int:
        """Columns of the numbers and of the fields."""
        return self.states.shape[1] * (self.n_values if self.one_hot else 1)

    def by_value(self, flips: np.ndarray) -> np.ndarray:
        """Return what is said of flips, a column for each of two-valued variables or for each value, by our columns."""
        if not self.one_hot:
            return flips
        wide = np.zeros((len(flips), self.n_columns), bool)
        wide[:, self.bias_columns] = flips.repeat(self.bias_columns.size // flips.shape[1], axis=1)
        np.put_along_axis(wide.reshape(*self.states.shape, -1), self.states[:, :, None].astype(np.intp), False, axis=2)
        return wide

    @property
    def owners(self) -> np.ndarray:
        """The column whose fields each parameter enters, where couplings are not tied."""
        return np.concatenate([self.bias_columns, self.targets])
