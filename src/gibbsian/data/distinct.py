"""Equal rows found fast: few bits per cell, then one sort."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.data.table import INSTEAD
from gibbsian.domain import AnyDomain, Categories
from gibbsian.resources import require_memory

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# What gathering takes with its table: of a number a copy, and where the first column does not tell rows apart bytes,
# those sorted and the distinct ones; of a code or a hole itself, as it was compared and once more; and of a row its key
# and its places.
BYTES_PER_NUMBER, BYTES_PER_TIED, BYTES_PER_CODE, BYTES_PER_HOLE, BYTES_PER_ROW = 9, 32, 3, 2, 45
# Bits of a number that holds several columns; one is left free against rounding in the sum of logarithms.
BITS = 63


def distinct(
    codes: np.ndarray | csr_array, domain: AnyDomain, missing: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct rows of a table, whatever kind its cells are of.

    Parameters
    ----------
    codes : ndarray or CSR array of shape (n_rows, n)
        The codes of two values, those of categories, or numbers.
    domain : Domain, Categories or Reals
        Where they come from.
    missing : bool ndarray of the same shape, or None
        Missing cells, which make rows differ too.

    Returns
    -------
    first : int64 ndarray
        For each distinct row one row that shows it, in an order that does not depend on the order of the rows.
    row_of : int64 ndarray of shape (n_rows,)
        Which distinct row each row is.
    """
    if not isinstance(codes, np.ndarray):
        return _distinct_sparse(codes)
    cell = BYTES_PER_NUMBER if codes.dtype.kind == "f" else BYTES_PER_CODE
    _require_memory(codes, cell + BYTES_PER_HOLE * (missing is not None))
    if codes.dtype.kind == "f":
        return distinct_numbers(codes, missing)
    if isinstance(domain, Categories):
        return distinct_codes(codes, domain.sizes, missing)
    return distinct_rows(codes, missing)


def _require_memory(codes: np.ndarray, cell: float) -> None:
    n_rows, n = codes.shape
    needed, what = n_rows * (cell * n + BYTES_PER_ROW), f"gathering the equal rows of {n_rows:,} x {n:,} cells"
    require_memory(needed, what, INSTEAD)


def distinct_rows(codes: np.ndarray, missing: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct rows of a two-valued table, in lexicographic order."""
    packed = np.packbits(codes, axis=1)
    if missing is not None:
        packed = np.concatenate([packed, np.packbits(missing, axis=1)], axis=1)
    return _sorted_by(_keys(packed))


def distinct_codes(
    codes: np.ndarray, sizes: Sequence[int], missing: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct rows of a table of codes, a missing cell standing before every value."""
    words: list[np.ndarray] = []
    free_bits = 0.0
    for j, size in enumerate(sizes):  # as many columns as fit are the digits of one 64-bit number
        digit = codes[:, j].astype(np.uint64) + np.uint64(1)
        if missing is not None:
            digit[missing[:, j]] = 0
        free_bits -= np.log2(size + 1)
        if free_bits < 0:
            words.append(digit)
            free_bits = BITS - np.log2(size + 1)
        else:
            words[-1] *= np.uint64(size + 1)
            words[-1] += digit
    keys = words[0]
    if len(words) > 1:
        keys = np.stack(words, axis=1)
    return _sorted_by(keys)


def distinct_numbers(numbers: np.ndarray, missing: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct rows of a table of numbers, in the order of their bytes.

    The first column sorts them; rows that are equal there are compared in whole.
    """
    if numbers.dtype != np.float64 or not numbers.size:
        return _by_bytes(numbers, missing)
    keys = (numbers[:, 0] + 0.0).view(">u8").astype(np.uint64)
    order = np.argsort(keys)
    ascending = keys[order]
    is_new = np.append(True, ascending[1:] != ascending[:-1])
    tied = ~(is_new & np.append(is_new[1:], True))
    alone, together = order[~tied], np.sort(order[tied])
    if len(together) > len(alone):
        return _by_bytes(numbers, missing)
    first, row_of = np.empty(0, np.int64), np.empty(len(keys), np.int64)
    if len(together):
        first, kind_of = _by_bytes(numbers[together], None if missing is None else missing[together])
        row_of[together] = len(alone) + kind_of
    row_of[alone] = np.arange(len(alone))
    shown = np.concatenate([alone, together[first]])
    places = np.argsort(keys[shown], kind="stable")  # of two ascending parts
    rank = np.empty(len(shown), np.int64)
    rank[places] = np.arange(len(shown))
    return shown[places], rank[row_of]


def _by_bytes(numbers: np.ndarray, missing: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    _require_memory(numbers, BYTES_PER_TIED)
    plain = np.ascontiguousarray(numbers + 0.0)  # minus zero is zero
    if missing is not None:
        holes = np.packbits(missing, axis=1)
        plain = np.concatenate([plain.view(np.uint8), holes], axis=1)
    return _sorted_by(plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel())


def _distinct_sparse(rows: csr_array) -> tuple[np.ndarray, np.ndarray]:
    rows = rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    ends = rows.indptr.tolist()
    keys = [
        rows.indices[start:end].astype(np.int64).tobytes() + rows.data[start:end].tobytes()
        for start, end in pairwise(ends)
    ]
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    row_of = np.array([place[key] for key in keys], np.int64)
    return np.unique(row_of, return_index=True)[1], row_of


def _words(packed: np.ndarray) -> np.ndarray:
    """The bytes of each row as 64-bit numbers in the same order, which sort much faster."""
    padded = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(">u8").astype(np.uint64)


def _sorted_by(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first place of each distinct key, or row of keys, in ascending order, and which of them each is."""
    if keys.ndim == 2:
        order = np.lexsort(keys.T[::-1])
        new = np.append(True, (keys[order[1:]] != keys[order[:-1]]).any(axis=1))
        row_of = np.empty(len(keys), np.int64)
        row_of[order] = np.cumsum(new) - 1
        return order[new], row_of
    _, first, row_of = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), row_of.astype(np.int64)


def _keys(packed: np.ndarray) -> np.ndarray:
    """One sortable key per row: the narrowest number that holds the row, else its bytes; short ones sort by radix."""
    n_rows, width = packed.shape
    if width > 8:
        return _words(packed)
    size = 1 << (width - 1).bit_length()
    padded = np.zeros((n_rows, size), np.uint8)
    padded[:, size - width :] = packed
    return padded.view(f">u{size}").ravel().astype(f"u{size}")
