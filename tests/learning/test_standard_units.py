"""Deviations of columns of numbers: what the others leave of each, with rows that count more than once."""

import numpy as np

import gibbsian as gb
from gibbsian.learning.standard_units import residual_deviations


def test_a_row_of_weight_three_is_three_rows(rng):
    """The shrinkage sees the number of rows, not their weights, so many rows are needed for it to vanish."""
    common = rng.normal(size=(8000, 1))
    rows = np.where(rng.random(8000) < 0.25, 3.0, 1.0)[:, None] * (
        common + [0.3, 0.6, 1.5] * rng.normal(size=(8000, 3))
    )
    weights = 1.0 + (np.abs(common[:, 0]) > 1.0) * 2.0
    weighted = residual_deviations(gb.Dataset.read(rows, coding="real", sample_weight=weights))
    repeated = residual_deviations(gb.Dataset.read(np.repeat(rows, weights.astype(int), axis=0), coding="real"))
    np.testing.assert_allclose(weighted, repeated, rtol=0.01)


def test_the_deviation_left_is_that_of_the_regression_on_the_others(rng):
    rows = rng.normal(size=(5000, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, -0.7], [0.0, 0.0, 2.0]]
    apart = rows - rows.mean(axis=0)
    left = [
        np.std(
            apart[:, i] - np.delete(apart, i, 1) @ np.linalg.lstsq(np.delete(apart, i, 1), apart[:, i], rcond=None)[0]
        )
        for i in range(3)
    ]
    np.testing.assert_allclose(residual_deviations(gb.Dataset.read(rows, coding="real")), left, rtol=0.01)
