"""Rows in blocks, and pieces of work on threads."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbsian.backends.parallel import map_in_order
from gibbsian.blocks import row_blocks


@given(st.integers(0, 500), st.integers(1, 50), st.integers(1, 2000), st.integers(1, 20))
def test_blocks_cover_every_row_once_within_their_size(n_rows, n_columns, max_cells, least_rows):
    blocks = list(row_blocks(n_rows, n_columns, max_cells, least_rows))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(n_rows))
    assert all((b.stop - b.start) * n_columns <= max_cells or b.stop - b.start <= least_rows for b in blocks)


def test_results_come_in_order_whatever_the_threads():
    rng = np.random.default_rng(0)
    matrices = [rng.random((k % 7 + 1, 50)) for k in range(40)]
    expected = [matrix @ matrix.T for matrix in matrices]
    before = numba.get_num_threads()
    try:
        for threads in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            numba.set_num_threads(threads)
            for got, wanted in zip(map_in_order(lambda m: m @ m.T, matrices), expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-13)
    finally:
        numba.set_num_threads(before)


def test_an_error_in_a_piece_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda k: 1 / k, [2, 1, 0]))
