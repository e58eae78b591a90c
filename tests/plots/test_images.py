"""Rows and weights as images."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian.plots import filters, reconstructions, samples
from layered_systems import bits, small_machine
from layered_systems import rbm as RBM


def tiles(ax, shape):
    """The images of a mosaic, by row and column."""
    picture = np.ma.filled(ax.images[0].get_array().astype(float), np.nan)
    height, width = shape
    return [
        [picture[i : i + height, j : j + width] for j in range(0, picture.shape[1], width + 1)]
        for i in range(0, picture.shape[0], height + 1)
    ]


def test_filters_are_the_weights_strongest_first(rbm):
    shown = [tile for row in tiles(filters(rbm, shape=(2, 3)), (2, 3)) for tile in row]
    order = np.argsort(-np.square(rbm.components_).sum(axis=1))
    for tile, unit in zip(shown, order, strict=False):
        np.testing.assert_allclose(tile.ravel(), rbm.components_[unit])
    low, high = filters(rbm, shape=(2, 3)).images[0].get_clim()
    assert low == -high == pytest.approx(-np.abs(rbm.components_).max())
    assert filters(rbm, shape=(2, 3), n=2).get_title() == "filters of 2 strongest of 5 hidden units"


def test_samples_are_those_of_the_machine(rbm):
    shown = [tile.ravel() for row in tiles(samples(rbm, shape=(2, 3), n=4, random_state=3), (2, 3)) for tile in row]
    np.testing.assert_array_equal(shown[:4], rbm.sample(4, random_state=3))


def test_labels_become_numbers():
    words = np.array([["no", "yes", "yes", "no"], ["yes", "no", "no", "yes"]] * 10)
    machine = RBM(2, max_iter=2, random_state=0).fit(words)
    assert samples(machine, n=3).images[0].get_clim() in ((0.0, 1.0), (0, 1))
    first = tiles(reconstructions(machine, words, n=2), (2, 2))[0][0]
    np.testing.assert_array_equal(first.ravel(), [0, 1, 1, 0])


def test_reconstructions_stand_below_their_rows(rbm, rows):
    above, below = tiles(reconstructions(rbm, rows, shape=(2, 3), n=4), (2, 3))
    np.testing.assert_array_equal([tile.ravel() for tile in above], rows[:4])
    np.testing.assert_allclose([tile.ravel() for tile in below], rbm.reconstruct(rows[:4]))


def test_shapes_that_do_not_fit_are_refused(rbm):
    with pytest.raises(ArgumentError, match=r"6 columns are no image of 2 x 2: give shape=\(height, width\)"):
        filters(rbm)
    with pytest.raises(ArgumentError, match="n=0"):
        samples(rbm, shape=(2, 3), n=0)


@pytest.mark.parametrize("shape", [8, (-2, -2), (2, 2, 1), (2.0, 2.0)])
def test_shapes_are_height_and_width(shape):
    with pytest.raises(ArgumentError, match=r"shape=.* must be the height and the width"):
        filters(small_machine("rbm").fit(bits()), shape=shape)


def test_categories_are_no_image():
    X = [["a", "x"], ["b", "y"], ["c", "z"]] * 5
    with pytest.raises(ArgumentError, match="2 columns of categories have a weight for each of 6 values"):
        filters(RBM(2, random_state=0).fit(X))
