"""The tables that hold each variable, one layout for compiled sweeps and for those on a device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Integers


class Entries(NamedTuple):
    """What holds each variable, in the layout of `backends.numba.table_gibbs`; entries may be numbered beyond these."""

    pointers: Integers
    bases: Integers
    strides: Integers
    other_pointers: Integers
    others: Integers
    other_strides: Integers

    def of_sites(self, sites: Integers) -> Integers:
        """Return the entries of each variable as rows of equal length, -1 where there is no more."""
        return _ranges(self.pointers[sites], self.pointers[sites + 1])

    def members(self, entries: Integers) -> tuple[Integers, Integers]:
        """Return the other variables of entries, in rows of equal length, and their places; -1 where is no more."""
        places = _ranges(self.other_pointers[entries], self.other_pointers[entries + 1])  # of entry -1: none
        return np.append(self.others, 0)[places], places


def _ranges(first: Integers, last: Integers) -> Integers:
    rows = first[..., None] + np.arange(int((last - first).max(initial=1)))
    return np.where(rows < last[..., None], rows, -1)
