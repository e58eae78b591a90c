"""Rows in their own order: batches, shares and epochs of weighted rows."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.data.minibatches import check_weights, systematic_draws
from gibbsian.errors import CodingError, DataError

ROWS = np.array([[1, 0], [0, 1], [1, 0], [1, 1]], np.int8)


@pytest.mark.parametrize("coding", ["binary", "categorical", "real"])
def test_rows_come_in_the_order_of_the_table(coding):
    data = gb.Dataset.read(ROWS, coding=coding)
    np.testing.assert_array_equal(data.rows()[0], ROWS)
    np.testing.assert_array_equal(data.rows([3, 0])[0], ROWS[[3, 0]])
    np.testing.assert_array_equal(data.rows(slice(1, 3))[0], ROWS[1:3])


@pytest.mark.parametrize("distinct", [True, False])
def test_states_need_no_reading(distinct):
    holes = np.zeros(ROWS.shape, bool)
    holes[1, 1] = True
    data = gb.Dataset.of_states(ROWS, "spin", missing=holes, sample_weight=[1, 2, 3, 4], distinct=distinct)
    assert data.n_states == (3 if distinct else 4)
    states, missing = data.rows()
    np.testing.assert_array_equal(missing, holes)
    np.testing.assert_array_equal(states, np.where(holes, 0, ROWS))
    np.testing.assert_array_equal(data.row_weights, [1, 2, 3, 4])
    assert data.total_weight == 10.0


def test_states_are_checked():
    with pytest.raises(DataError, match=r"states has shape \(0, 2\)"):
        gb.Dataset.of_states(np.empty((0, 2)), "real")
    with pytest.raises(DataError, match=r"missing has shape \(1, 2\), but states has \(4, 2\)"):
        gb.Dataset.of_states(ROWS, "binary", missing=np.zeros((1, 2), bool))
    with pytest.raises(CodingError, match="states holds -1 for variable 1"):
        gb.Dataset.of_states(2 * ROWS - 1, "spin")


def test_shares_of_rows():
    np.testing.assert_array_equal(gb.Dataset.read(ROWS).shares, [0.25] * 4)
    np.testing.assert_array_equal(gb.Dataset.read(ROWS, sample_weight=[3, 1, 0, 4]).shares, [0.375, 0.125, 0, 0.5])


def test_an_epoch_repeats_heavy_rows_and_is_no_shorter_for_light_ones(rng):
    assert gb.Dataset.read(ROWS).draws(rng).tolist() == [0, 1, 2, 3]
    assert gb.Dataset.read(ROWS, sample_weight=[3, 1, 0, 2]).draws(rng).tolist() == [0, 0, 0, 1, 3, 3]
    light = gb.Dataset.read(ROWS, sample_weight=[0.1, 0.1, 0.1, 0.1])
    assert (light.n_draws, light.draws(rng).tolist()) == (4, [0, 1, 2, 3])


def test_draws_are_fair(rng):
    weights = np.array([0.5, 1.25, 0.0, 2.25])
    counts = np.mean([np.bincount(systematic_draws(weights, 4, rng), minlength=4) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(counts, weights, atol=0.04)


@pytest.mark.parametrize(
    ("weights", "n_rows", "left"),
    [
        (None, 4, None),
        ([1, 1, 1, 1], 4, None),
        ([0.5, 0, 0.5, 0.5], 3, None),
        ([2, 2, 2, 2], 4, [2, 2, 2, 2]),
        ([0, 2, 3, 1], 3, [2, 3, 1]),
    ],
)
def test_weights_stay_only_where_they_matter(weights, n_rows, left):
    data = gb.Dataset.read(ROWS, sample_weight=weights).effective()
    assert data.n_rows == n_rows
    assert (None if data.row_weights is None else data.row_weights.tolist()) == left
    assert data.total_weight == (n_rows if left is None else sum(left))


def test_states_that_become_equal_are_put_together():
    data = gb.Dataset.read([[3.0, 4.0], [1.0, 0.0], [6.0, 8.0]], coding="real", sample_weight=[1, 2, 4])
    unit = data.with_numbers(data.states / np.linalg.norm(data.states, axis=1)[:, None])
    assert unit.n_states == 2
    np.testing.assert_allclose(unit.rows()[0], [[0.6, 0.8], [1, 0], [0.6, 0.8]])
    np.testing.assert_array_equal(unit.weights[unit.row_of], [5, 2, 5])


def test_partitions_of_rows_in_memory():
    data = gb.Dataset.read(ROWS, sample_weight=[1, 2, 3, 4])
    assert [part.total_weight for part in data.partitions()] == [10.0]


def test_one_weight_stands_for_all_rows():
    assert check_weights(2, 3).tolist() == [2.0, 2.0, 2.0]
