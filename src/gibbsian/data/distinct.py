"""Equal rows found fast: few bits per cell, then one sort."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Bits of a number that holds several columns; one is left free against rounding in the sum of logarithms.
BITS = 63


def distinct_rows(high: np.ndarray, missing: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct rows of a two-valued table.

    Parameters
    ----------
    high : bool ndarray of shape (n_rows, n)
        The cells, False where missing.
    missing : bool ndarray of the same shape, or None
        Missing cells, which make rows differ too.

    Returns
    -------
    first : int64 ndarray
        For each distinct row one row that shows it, in lexicographic order of the rows.
    row_of : int64 ndarray of shape (n_rows,)
        Which distinct row each row is.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.data.distinct import distinct_rows
    >>> first, row_of = distinct_rows(np.array([[True, False], [False, False], [True, False]]))
    >>> first.tolist(), row_of.tolist()
    ([1, 0], [1, 0, 1])
    """
    packed = np.packbits(high, axis=1)
    if missing is not None:
        packed = np.concatenate([packed, np.packbits(missing, axis=1)], axis=1)
    _, first, row_of = np.unique(_keys(packed), return_index=True, return_inverse=True)
    return first.astype(np.int64), row_of.astype(np.int64)


def distinct_codes(
    codes: np.ndarray, sizes: Sequence[int], missing: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct rows of a table of codes; as `distinct_rows`, a missing cell standing before every value.

    Parameters
    ----------
    codes : int8 ndarray of shape (n_rows, n)
        The cells, numbers from 0 to one less than their column's size.
    sizes : sequence of int
        Number of values of each column.
    missing : bool ndarray of the same shape, or None
        Missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.data.distinct import distinct_codes
    >>> first, row_of = distinct_codes(np.array([[2, 0], [1, 1], [2, 0]], np.int8), (3, 2))
    >>> first.tolist(), row_of.tolist()
    ([1, 0], [1, 0, 1])
    """
    words: list[np.ndarray] = []
    room = 0.0
    for j, size in enumerate(sizes):  # as many columns as fit are the digits of one 64-bit number
        digit = codes[:, j].astype(np.uint64) + np.uint64(1)
        if missing is not None:
            digit[missing[:, j]] = 0
        room -= np.log2(size + 1)
        if room < 0:
            words.append(digit)
            room = BITS - np.log2(size + 1)
        else:
            words[-1] *= np.uint64(size + 1)
            words[-1] += digit
    keys = words[0]
    if len(words) > 1:
        table = np.stack(words, axis=1).astype(">u8")
        keys = table.view(np.dtype((np.void, table.itemsize * len(words)))).ravel()
    _, first, row_of = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), row_of.astype(np.int64)


def _keys(packed: np.ndarray) -> np.ndarray:
    """One sortable key per row: a 64-bit number where the row fits, else its bytes."""
    n_rows, width = packed.shape
    if width > 8:
        return np.ascontiguousarray(packed).view(np.dtype((np.void, width))).ravel()
    padded = np.zeros((n_rows, 8), np.uint8)
    padded[:, 8 - width :] = packed
    return padded.view(">u8").ravel().astype(np.uint64)
