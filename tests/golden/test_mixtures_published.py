"""Mixtures against published fits and on real tables."""

import json

import numpy as np
import pytest
from scipy.stats import vonmises_fisher

from gibbsian import VonMisesFisherMixture


@pytest.fixture
def household(shared_data):
    """Expenses of 40 single people as directions (Hornik and Gruen's movMF paper)."""
    rows = np.load(shared_data("vmf_household/household.npz"))["x3"]
    return rows, json.loads(shared_data("vmf_household/meta.json").read_text())["reference"]


def fitted(rows, k):
    return VonMisesFisherMixture(k, n_init=20, tol=1e-10, random_state=0).fit(rows)


def test_household_bic(household):
    """Their density is relative to the uniform law. With four and five classes we find a lower minimum than theirs."""
    rows, reference = household
    found = [fitted(rows, k).bic(rows, relative_to="uniform") for k in range(1, 6)]
    published = reference["BIC_K1_to_K5"]
    np.testing.assert_allclose(found[:3], published[:3], atol=1e-4)
    assert found[3] < published[3] + 1e-4
    assert found[4] < published[4] + 1e-4
    assert int(np.argmin(found)) == int(np.argmin(published)) == 2


@pytest.mark.parametrize("k", [2, 3])
def test_household_parameters(household, k):
    rows, reference = household
    mixture = fitted(rows, k)
    for component in reference[f"K{k}"]:
        a = int(np.argmax(mixture.means_ @ np.array(component["mu"])))
        np.testing.assert_allclose(mixture.means_[a], component["mu"], atol=0.0051)
        assert mixture.weights_[a] == pytest.approx(component["alpha"], abs=0.0051)
        assert mixture.concentrations_[a] == pytest.approx(component["kappa"], abs=0.051)


def test_household_one_component_is_scipy_s(household):
    rows, _ = household
    mean, kappa = vonmises_fisher.fit(rows)
    mixture = fitted(rows, 1)
    np.testing.assert_allclose(mixture.means_[0], mean, atol=1e-12)
    assert mixture.concentrations_[0] == pytest.approx(kappa, rel=1e-8)


def test_sunspots(shared_data):
    """Births fill two bands of latitude and every longitude: one law sees nothing, more classes see more."""
    rows = np.load(shared_data("vmf_sunspots/sunspots.npz"))["x"].astype(float)
    assert len(rows) == 51_303
    one = VonMisesFisherMixture(1).fit(rows)
    assert one.concentrations_[0] == pytest.approx(vonmises_fisher.fit(rows)[1], rel=1e-5)
    assert one.concentrations_[0] < 0.1
    six = VonMisesFisherMixture(6, n_init=1, tol=1e-5, random_state=0).fit(rows)
    assert (np.diff(six.free_energies_) <= 0).all()
    assert six.score(rows) > one.score(rows) + 0.4
    assert np.abs(six.means_[:, 2]).max() < 0.5  # no class at the poles
    assert six.bic(rows) < one.bic(rows)
