"""Types of arrays for annotations without `Any`: dtypes that are checked, shapes that are not."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Integers = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
Codes = np.ndarray[tuple[int, ...], np.dtype[np.int8]]
Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
# Rows in the values of a model: int8 of discrete variables, float64 of real ones.
States = np.ndarray[tuple[int, ...], np.dtype[np.int8] | np.dtype[np.float64]]
# Arrays of NumPy or PyTorch, whose shared methods are those of the array API; typed as NumPy's.
Tensor = Floats
# A range of rows or variables: a bare `slice` counts as Any.
Slice: TypeAlias = "slice[int, int, int]"
