"""The tables that hold each variable, one layout for compiled sweeps and for those on a device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Entries(NamedTuple):
    """What holds each variable, in the layout of `backends.numba.table_gibbs`; entries may be numbered beyond these."""

    pointers: np.ndarray
    bases: np.ndarray
    strides: np.ndarray
    other_pointers: np.ndarray
    others: np.ndarray
    other_strides: np.ndarray

    def of_sites(self, sites: np.ndarray) -> np.ndarray:
        """Return the entries of each variable as rows of equal length, -1 where there is no more."""
        return _ranges(self.pointers[sites], self.pointers[sites + 1])

    def members(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the other variables of entries, in rows of equal length, and their places; -1 where is no more."""
        places = _ranges(self.other_pointers[entries], self.other_pointers[entries + 1])  # of entry -1: none
        return np.append(self.others, 0)[places], places


def _ranges(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    rows = first[..., None] + np.arange(int((last - first).max(initial=1)))
    return np.where(rows < last[..., None], rows, -1)
