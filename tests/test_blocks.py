"""Rows in blocks, and pieces of work on threads."""

import time
from threading import Barrier, Event, get_ident

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbsian.backends import threads
from gibbsian.backends.threads import kept_threads, limited_threads, map_ordered, map_slices, n_threads
from gibbsian.resources import row_blocks


@given(st.integers(0, 500), st.integers(1, 50), st.integers(1, 2000), st.integers(1, 20))
def test_blocks_cover_every_row_once_within_their_size(n_rows, n_columns, max_cells, least_rows):
    blocks = list(row_blocks(n_rows, n_columns, max_cells, least_rows))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(n_rows))
    assert all((b.stop - b.start) * n_columns <= max_cells or b.stop - b.start <= least_rows for b in blocks)


def test_results_come_in_order_whatever_the_threads():
    rng = np.random.default_rng(0)
    matrices = [rng.random((k % 7 + 1, 50)) for k in range(40)]
    expected = [matrix @ matrix.T for matrix in matrices]
    for n in (1, 2, 5):
        with limited_threads(n):
            for got, wanted in zip(map_ordered(lambda m: m @ m.T, matrices), expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_an_error_in_a_piece_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(map_ordered(lambda k: 1 / k, [2, 1, 0]))


def test_pieces_get_no_threads_of_their_own(monkeypatch):
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 3)
    with limited_threads(3):
        assert list(map_ordered(lambda _: n_threads(), range(4))) == [1, 1, 1, 1]
        assert n_threads() == 3


def test_a_thread_that_does_not_wake_up_holds_nobody_up():
    busy, begun = Event(), Event()

    def hold() -> None:
        begun.set()
        busy.wait()

    with limited_threads(2), kept_threads():
        held = threads._KEPT.get().submit(hold)
        begun.wait()
        assert list(map_ordered(lambda k: k * k, range(5))) == [0, 1, 4, 9, 16]
        busy.set()
        held.result()


def test_an_error_on_another_thread_ends_the_work():
    both, here, done = Barrier(2), get_ident(), []

    def piece(k: int) -> None:
        if k < 2:
            both.wait()  # one piece for each thread
        if get_ident() != here:
            raise ZeroDivisionError
        done.append(k)
        time.sleep(0.01)

    with limited_threads(2), pytest.raises(ZeroDivisionError):
        list(map_ordered(piece, range(50)))
    assert len(done) < 10


@given(st.integers(0, 300), st.integers(1, 40), st.integers(1, 4), st.sampled_from([0.0, 1e9]))
def test_slices_cover_everything_once_from_multiples_of_the_grain(n, grain, threads, work):
    with limited_threads(threads):
        parts = map_slices(lambda part: part, n, work, grain)
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(n))
    assert all(part.start % grain == 0 for part in parts)
    assert len(parts) >= 1  # what is concatenated must be something
    assert work > 0 or len(parts) == 1
