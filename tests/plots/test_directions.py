"""Directions on the circle and on the sphere: what is drawn is what was learned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from gibbsian import HardKMeans, VonMisesFisherMixture
from gibbsian.errors import ArgumentError, MissingValuesWarning
from gibbsian.plots import circle, save_figure, sphere
from gibbsian.plots.canvas import COLOURS
from gibbsian.plots.directions import MOST_POINTS


@pytest.fixture(scope="module")
def plane():
    angles = np.random.default_rng(0).normal(size=80) / 4 + np.pi * (np.arange(80) % 2)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    return VonMisesFisherMixture(2, random_state=0).fit(rows), rows


def test_circle_shows_every_row_once_in_its_class(plane, tmp_path):
    mixture, rows = plane
    ax = circle(mixture, rows)
    assert [len(part.get_offsets()) for part in ax.collections] == np.bincount(mixture.labels_).tolist()
    np.testing.assert_allclose(ax.collections[0].get_offsets(), rows[mixture.labels_ == 0])
    assert ax.collections[0].get_label().startswith("class 0: weight 0.5")
    save_figure(ax, tmp_path / "circle.png")
    assert (tmp_path / "circle.png").stat().st_size > 10_000


def test_circle_density_is_highest_at_a_mean(plane):
    mixture, rows = plane
    x, y = next(line for line in circle(mixture, rows).lines if line.get_label() == "density").get_data()
    best = np.argmax(np.hypot(x, y))
    direction = np.array([x[best], y[best]]) / np.hypot(x[best], y[best])
    assert (mixture.means_ @ direction).max() > 0.999


def test_sphere_puts_means_at_their_longitude_and_latitude(space, tmp_path):
    mixture, rows = space
    ax = sphere(mixture, rows)
    for a, mean in enumerate(mixture.means_):
        (longitude,), (latitude,) = ax.lines[a].get_data()
        back = [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
        np.testing.assert_allclose(back, mean, atol=1e-12)
        assert ax.lines[a].get_color() == COLOURS[a]
    save_figure(ax, tmp_path / "sphere.png")
    assert (tmp_path / "sphere.png").stat().st_size > 20_000


def test_many_rows_are_thinned(space):
    mixture, rows = space
    ax = sphere(mixture, np.tile(rows, (200, 1)))
    assert sum(len(part.get_offsets()) for part in ax.collections[1:]) <= MOST_POINTS
    assert ax.get_title() == "3 classes on the sphere, 18,000 rows"


def test_other_dimensions_are_refused(plane, space):
    with pytest.raises(ArgumentError, match="a sphere shows 3 columns, but the mixture has 2"):
        sphere(*plane)
    with pytest.raises(ArgumentError, match="a circle shows 2 columns"):
        circle(*space)


class TestDirections:
    @pytest.fixture
    def narrow(self) -> VonMisesFisherMixture:
        angles = 1.234567 + 1e-6 * np.random.default_rng(0).normal(size=50)
        rows = np.column_stack([np.cos(angles), np.sin(angles)])
        return VonMisesFisherMixture(1, kappa_max=1e14).fit(rows)

    @pytest.mark.filterwarnings("error::RuntimeWarning")
    def test_narrow_peaks_are_drawn(self, narrow):
        ax = circle(narrow, narrow.means_)
        assert ax.get_title() == "1 class on the circle, 1 row"
        x, y = next(line for line in ax.lines if line.get_label() == "density").get_data()
        peak = np.flatnonzero(np.hypot(x, y) > 1.3)
        assert len(peak) >= 3
        np.testing.assert_allclose(np.arctan2(y[peak], x[peak]), 1.234567, atol=1e-5)

    def test_narrow_peaks_on_the_sphere(self):
        rows = np.array([0.3, 0.5, 0.7]) + 1e-5 * np.random.default_rng(0).normal(size=(50, 3))
        fitted = VonMisesFisherMixture(1, kappa_max=1e14).fit(rows)
        density = sphere(fitted, rows).collections[0].get_array()
        assert density.max() == pytest.approx(np.exp(fitted.score_samples(fitted.means_)[0]), rel=1e-6)

    @pytest.mark.filterwarnings("error::UserWarning")
    def test_frames_and_sparse_rows(self, blobs):
        frame = pd.DataFrame(blobs, columns=["a", "b"])
        ax = circle(VonMisesFisherMixture(2, random_state=0).fit(frame), frame)
        same = circle(VonMisesFisherMixture(2, random_state=0).fit(blobs), sparse.csr_array(blobs))
        for one, other in zip(ax.collections, same.collections, strict=True):
            np.testing.assert_allclose(one.get_offsets(), other.get_offsets())

    def test_rows_without_direction_are_not_drawn(self, blobs):
        fitted = VonMisesFisherMixture(2, random_state=0).fit(blobs)
        with pytest.warns(MissingValuesWarning):
            ax = circle(fitted, np.insert(blobs, 0, 0.0, axis=0))
        assert sum(len(part.get_offsets()) for part in ax.collections) == len(blobs)

    def test_other_estimators(self, blobs):
        with pytest.raises(ArgumentError, match="a HardKMeans has no concentrations_: draw this picture of a VonMises"):
            circle(HardKMeans().fit(blobs), blobs)
        with pytest.raises(NotFittedError):
            sphere(VonMisesFisherMixture(), blobs)
