"""YK15: the steps of the lecture by hand against the library's, and claims that fail where they should."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.data import Dataset
from gibbsian.learning.objectives import Likelihood, value_and_gradient
from gibbsian_reproduction import yk15_gibbs, yk15_hidden, yk15_mixtures, yk15_rbm
from gibbsian_reproduction.experiment import EXPERIMENTS, Results
from gibbsian_reproduction.verdicts import never_rises


def test_half_steps_end_where_neither_half_changes_anything(rng):
    points = yk15_mixtures.clusters(rng)
    energies, means = yk15_mixtures._half_steps(points, rng.integers(yk15_mixtures.N_CLASSES, size=len(points)))
    labels = ((points[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    for a in np.unique(labels):
        assert np.allclose(points[labels == a].mean(axis=0), means[a])
    assert np.isclose(energies[-1], ((points - means[labels]) ** 2).sum())
    assert (np.diff(energies) <= 1e-9).all()


def test_the_lectures_shares_are_those_of_gaussians(rng):
    points, means = rng.normal(size=(7, 2)), rng.normal(size=(3, 2))
    shares = yk15_mixtures._shares(points, means, 0.7)
    densities = np.exp(-((points[:, None] - means) ** 2).sum(axis=2) / (2 * 0.7))
    assert np.allclose(shares, densities / densities.sum(axis=1)[:, None])


def test_a_rise_is_seen():
    rises = Results({"rise": np.array([-0.5, 1e-3])}, seed=0)
    assert not never_rises("rise", "energy")(rises).holds


def test_the_slope_of_the_divergence_is_the_gradient_of_the_likelihood(rng):
    model = yk15_hidden._start(2, rng).at(1 / 1.5)
    rows = rng.integers(2, size=(40, 3))
    data = yk15_hidden.with_hidden(Dataset.read(rows, coding="binary"), 2)
    _, gradient = value_and_gradient(Likelihood(), model, data)
    shares = yk15_hidden._shares_of(Dataset.read(rows, coding="binary"))
    assert np.allclose(yk15_hidden._slope(model, shares), gradient, atol=1e-12)


def test_shares_count_the_rows():
    shares = yk15_hidden._shares_of(Dataset.read([[0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 1]], coding="binary"))
    assert shares.tolist() == [0.25, 0.5, 0.0, 0.0, 0.0, 0.0, 0.25, 0.0]


def test_peak_and_entropy_at_both_ends_of_temperature(rng):
    weights = rng.normal(size=yk15_gibbs.GRAPH.n_edges)
    assert yk15_gibbs._peak_and_entropy(yk15_gibbs._machine(weights).at(1e4)) == pytest.approx((1.0, 0.0), abs=1e-6)
    uniform = yk15_gibbs._peak_and_entropy(yk15_gibbs._machine(weights).at(1e-8))
    assert uniform == pytest.approx((1.0 / 256.0, 1.0), rel=1e-6)


def test_conditionals_of_a_restricted_machine_factorise(rng):
    assert yk15_rbm._factor_gap(rng) < 1e-14


def test_digits_have_two_values_and_a_square():
    assert yk15_rbm._digits().shape == (1797, yk15_rbm.SIDE**2)
    assert set(np.unique(yk15_rbm._digits())) == {0, 1}


def test_claims_about_the_restricted_machine_fail_where_they_should():
    falling = np.tile(np.linspace(-20.0, -30.0, len(yk15_rbm.SEEN)), (5, 1))
    stuck = np.full((5, len(yk15_rbm.ALTERNATIONS)), 0.3)
    values = {"pcd": falling, "cd": falling + 1, "moment error": stuck, "exact error": np.full(5, 0.01)}
    results = Results(values | {"factor gap": np.full(5, 0.1)}, seed=0)
    assert not any(claim.check(results).holds for claim in EXPERIMENTS.create("yk15-rbm").claims)
