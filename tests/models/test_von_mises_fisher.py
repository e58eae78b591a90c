"""The von Mises-Fisher distribution and its mixtures: quadrature, SciPy, samples, sparse rows, hard assignment."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.stats import kstest, vonmises_fisher

from gibbsian import HardKMeans, VonMisesFisherMixture
from gibbsian.backends.classes import responsibilities
from gibbsian.models import VonMisesFisherMixtureFamily
from gibbsian.models.mixtures.von_mises_fisher import (
    bessel,
    concentration,
    draw_directions,
    unit_rows,
)

UNIFORM = {"relative_to": "uniform"}


def directions(rng, n, dimension, k=3, kappa=30.0):
    means = unit_rows(rng.normal(size=(k, dimension)))
    return np.concatenate([draw_directions(mean, kappa, n // k, rng) for mean in means]), means


@pytest.mark.parametrize("kappa", [0.0, 0.5, 10.0, 1e3, 1e6])
def test_densities_integrate_to_one_on_the_sphere(kappa):
    """Quadrature over latitude (the mean is the pole), the density taken from the mixture itself."""
    family = VonMisesFisherMixtureFamily(2, 3)
    theta = family.join([0.3, 0.7], [[0, 0, 1.0], [0, 0, 1.0]], [kappa, 2.0])

    def ring(excess):
        """Density times area of the ring at height 1 - excess."""
        row = np.array([[np.sqrt(excess * (2 - excess)), 0.0, 1.0 - excess]])
        return 2 * np.pi * np.exp(family.log_joint(theta, row)).sum()

    edges = [0.0, *np.geomspace(1e-9, 2.0, 30)]
    total = sum(quad(ring, low, high)[0] for low, high in pairwise(edges))
    assert total == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("dimension", [2, 3, 10, 30])
@pytest.mark.parametrize("kappa", [0.5, 20.0, 1e4])
def test_one_component_is_the_fit_of_scipy(dimension, kappa):
    """Up to thirty dimensions: in a hundred SciPy's own search for kappa stops at its lower bound, 1e-8."""
    rng = np.random.default_rng(0)
    rows = draw_directions(unit_rows(rng.normal(size=(1, dimension)))[0], kappa, 300, rng)
    mean, theirs = vonmises_fisher.fit(rows)
    ours = VonMisesFisherMixture(1).fit(rows)
    np.testing.assert_allclose(ours.means_[0], mean, atol=1e-12)
    assert ours.concentrations_[0] == pytest.approx(theirs, rel=1e-6)
    # ours is the more exact of the two: the likelihood equation holds to rounding
    length = np.linalg.norm(rows.mean(axis=0))
    assert bessel(ours.concentrations_[0], dimension).ratio == pytest.approx(length, rel=1e-14)
    log_density = vonmises_fisher(ours.means_[0], ours.concentrations_[0]).logpdf(rows)
    np.testing.assert_allclose(ours.score_samples(rows), log_density, atol=1e-7)


@pytest.mark.parametrize("dimension", [2, 3, 5, 200])
@pytest.mark.parametrize("kappa", [0.0, 1.0, 50.0, 1e5])
def test_samples_have_the_distribution(dimension, kappa):
    rng = np.random.default_rng(1)
    mean = unit_rows(rng.normal(size=(1, dimension)))[0]
    rows = draw_directions(mean, kappa, 20_000, rng)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-12)
    values = bessel(kappa, dimension)
    slope = (
        1.0 / dimension
        if kappa == 0
        else values.complement * (2 - values.complement) - (dimension - 1) * values.ratio / kappa
    )
    assert np.mean(1.0 - rows @ mean) == pytest.approx(values.complement, abs=4 * np.sqrt(slope / 20_000))


def test_heights_on_the_sphere_have_their_distribution():
    """In three dimensions 1 - cosine is a truncated exponential variable."""
    excess = 1.0 - draw_directions(np.array([0.0, 0.0, 1.0]), 4.0, 5000, np.random.default_rng(2))[:, 2]
    assert kstest(excess, lambda e: np.expm1(-4.0 * e) / np.expm1(-8.0)).pvalue > 1e-3


@pytest.mark.parametrize("kappa", [1e12, 1e30, 1e300])
def test_directions_far_nearer_than_rounding_are_drawn_around_the_mean(kappa):
    """There the square of the distance from the mean, times kappa / 2, is an exponential variable."""
    rows = draw_directions(np.array([0.0, 0.0, 1.0]), kappa, 5000, np.random.default_rng(4))
    assert kstest(np.square(rows[:, :2] * np.sqrt(kappa / 2.0)).sum(axis=1), "expon").pvalue > 1e-3


def test_parameters_of_a_mixture_are_recovered():
    rng = np.random.default_rng(3)
    rows, means = directions(rng, 3000, 5)
    fitted = VonMisesFisherMixture(3, random_state=0).fit(rows)
    closeness = fitted.means_ @ means.T
    assert (closeness.max(axis=0) > 0.999).all()
    np.testing.assert_allclose(fitted.concentrations_, 30.0, rtol=0.1)
    rows, classes = fitted.sample(500, random_state=0, return_hidden=True)
    assert (fitted.predict(rows) == classes).mean() > 0.9


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("assignment", ["soft", "hard"])
def test_sparse_rows_are_the_same_rows(kind, assignment, monkeypatch):
    rng = np.random.default_rng(4)
    dense = np.where(rng.random((300, 40)) < 0.15, rng.random((300, 40)), 0.0) + np.eye(40)[rng.integers(0, 3, 300)]
    settings = {"n_components": 3, "assignment": assignment, "n_init": 10, "random_state": 0}
    first = VonMisesFisherMixture(**settings).fit(dense)
    rows = kind(dense)

    def refuse(self, *args, **kwargs):
        assert self.shape[0] <= 3, "the rows were made dense"
        return original(self, *args, **kwargs)

    original = kind.toarray
    for container in (sparse.csr_array, sparse.csr_matrix):
        monkeypatch.setattr(container, "toarray", refuse)
    second = VonMisesFisherMixture(**settings).fit(rows)
    assert second.free_energies_[-1] == pytest.approx(first.free_energies_[-1], abs=1e-6)
    np.testing.assert_allclose(second.score_samples(rows), first.score_samples(dense), atol=1e-3)


def test_text_in_fifty_thousand_columns():
    rng = np.random.default_rng(5)
    topic = np.repeat([0, 1], 100)
    places = (rng.zipf(1.3, (200, 80)) % 25_000) + 25_000 * topic[:, None]
    rows = sparse.csr_array((np.ones(16_000), places.ravel(), np.arange(201) * 80), (200, 50_000))
    fitted = VonMisesFisherMixture(2, n_init=3, random_state=0).fit(rows)
    agreement = (fitted.labels_ == topic).mean()
    assert max(agreement, 1 - agreement) == 1.0
    assert np.isfinite(fitted.score(rows))
    assert fitted.concentrations_.max() < 1e6


def test_a_large_concentration_leads_to_spherical_k_means():
    """lambda = 1/sigma^2 -> infinity, equal weights: the assignments of an independent spherical k-means."""
    rng = np.random.default_rng(6)
    rows = unit_rows(rng.normal(size=(300, 4)) + 2 * np.eye(4)[np.arange(300) % 3])
    soft = VonMisesFisherMixture(3, kappa=1e6, class_weights="equal", n_init=1, tol=0.0, random_state=0).fit(rows)
    hard = VonMisesFisherMixture(
        3, kappa=1.0, class_weights="equal", assignment="hard", n_init=1, tol=0.0, random_state=0
    ).fit(rows)
    np.testing.assert_array_equal(soft.labels_, hard.labels_)
    # both are fixed points of spherical k-means, written out here
    for fitted in (soft, hard):
        labels = (rows @ fitted.means_.T).argmax(axis=1)
        sums = np.array([rows[labels == a].sum(axis=0) for a in range(3)])
        np.testing.assert_allclose(fitted.means_, sums / np.linalg.norm(sums, axis=1)[:, None], atol=1e-9)


def test_a_gaussian_on_the_sphere_is_a_von_mises_fisher_distribution():
    """Shares of soft k-means with unit means and variance 1/kappa (YK15)."""
    rng = np.random.default_rng(7)
    rows, means = directions(rng, 90, 4, kappa=8.0)
    family = VonMisesFisherMixtureFamily(3, 4)
    gaussian = np.exp(-5.0 * np.square(rows[:, None] - means).sum(axis=2) / 2)
    shares = responsibilities(family.log_joint(family.join(np.full(3, 1 / 3), means, np.full(3, 5.0)), rows))
    np.testing.assert_allclose(shares, gaussian / gaussian.sum(axis=1, keepdims=True), atol=1e-12)


def test_bic_finds_the_number_of_classes_on_the_circle():
    rng = np.random.default_rng(8)
    angles = np.concatenate([rng.vonmises(m, 20.0, 100) for m in (-2.0, 0.0, 2.0)])
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    found = [VonMisesFisherMixture(k, random_state=0).fit(rows).bic(rows) for k in range(1, 6)]
    assert int(np.argmin(found)) == 2


def test_densities_relative_to_the_uniform_distribution():
    rows = unit_rows(np.random.default_rng(9).normal(size=(50, 3)))
    fitted = VonMisesFisherMixture(1, kappa=0.0).fit(rows)
    np.testing.assert_allclose(fitted.score_samples(rows, **UNIFORM), 0.0, atol=1e-12)
    difference = fitted.bic(rows, **UNIFORM) - fitted.bic(rows)
    assert difference == pytest.approx(-2 * 50 * np.log(4 * np.pi))
    assert fitted.aic(rows, **UNIFORM) - fitted.aic(rows) == pytest.approx(difference)


def test_opposite_rows_have_no_direction_in_the_mean():
    """A class whose mean vanishes keeps a direction and gets concentration zero."""
    rows = np.concatenate([np.eye(3), -np.eye(3)])
    fitted = VonMisesFisherMixture(1).fit(rows)
    assert fitted.concentrations_[0] == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.norm(fitted.means_[0]) == pytest.approx(1.0)


def test_huge_and_tiny_norms_are_only_scale():
    rng = np.random.default_rng(10)
    rows = rng.normal(size=(60, 3)) + 2
    scaled = rows * np.where(np.arange(60) % 2, 1e300, 1e-300)[:, None]
    np.testing.assert_allclose(unit_rows(scaled), unit_rows(rows), rtol=1e-12)


def test_k_means_and_soft_classes_agree_on_separated_directions():
    rows, _ = directions(np.random.default_rng(11), 150, 6, kappa=200.0)
    soft = VonMisesFisherMixture(3, random_state=0).fit(rows).labels_
    hard = HardKMeans(3, random_state=0).fit(rows).labels_
    assert len(set(zip(soft.tolist(), hard.tolist(), strict=True))) == 3


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_that_are_all_the_same_have_no_finite_concentration():
    assert concentration(np.array([1.0]), 5)[0] == np.inf
    assert concentration(np.array([1.0]), 5, largest=100.0)[0] == 100.0
