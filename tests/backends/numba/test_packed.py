"""Rows in bits, and products with them by tables, against NumPy's own."""

import numpy as np
import pytest

from gibbsian.backends.numba import packed

SIZES = [1, 7, 8, 31, 32, 33, 63, 64, 65, 130]


@pytest.mark.parametrize("n", SIZES)
def test_rows_come_back_from_their_bits(n, rng):
    upper = rng.random((11, n)) < 0.4
    words = packed.pack(upper)
    assert words.shape == (11, -(-n // 64))
    low, high, mark = np.int8([-1, 1, -128])
    assert np.array_equal(packed.unpack(words[None], n, low, high, mark), np.where(upper, high, low))
    hidden = rng.random((11, n)) < 0.2
    found = packed.unpack(np.array([words, packed.pack(hidden)]), n, low, high, mark)
    assert np.array_equal(found, np.where(hidden, mark, np.where(upper, high, low)))
    assert np.array_equal(packed.pack(np.where(upper, 1, -1).astype(np.int8)), words)
    assert np.array_equal(packed.pack(upper[:, ::-1]), packed.pack(upper[:, ::-1].copy()))
    assert np.array_equal(words.view(np.uint8)[:, : -(-n // 8)], np.packbits(upper, axis=1, bitorder="little"))


@pytest.mark.parametrize("n", SIZES)
def test_products_by_tables_are_those_of_matrices(n, rng):
    upper = rng.random((50, n)) < 0.4
    signs, words = np.where(upper, 1.0, -1.0), packed.pack(upper)
    matrix, offset, slopes = (rng.normal(size=size) for size in ((n, n), n, (50, n)))
    tables = packed.tables_of(matrix, offset)
    costs = np.full((50, len(tables), packed.LANES), np.nan, np.float32)
    packed.fill_costs(words, tables, costs)
    found = costs.reshape(50, -1)
    np.testing.assert_allclose(found[:, :n], signs * (offset + upper @ matrix), atol=1e-4)
    assert (found[:, n:] > 50).all()  # lanes without a column
    sums, given = np.zeros_like(tables), np.zeros_like(found)
    given[:, :n] = slopes
    packed.add_slopes(words, given.reshape(costs.shape), sums)
    first, second = packed.products(sums, n)
    np.testing.assert_allclose(first, (signs * slopes).sum(axis=0), atol=1e-4)
    np.testing.assert_allclose(second, upper.T @ (signs * slopes), atol=1e-4)


def test_memory_of_a_use_is_the_same_and_begins_where_vectors_do():
    first, second = packed.kept_lanes("test", 3, 32), packed.kept_lanes("another test", 3, 32)
    assert first is packed.kept_lanes("test", 3, 32)
    assert not np.shares_memory(first, second)
    assert first.ctypes.data % 64 == second.ctypes.data % 64 == 0
