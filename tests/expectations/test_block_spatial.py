"""Spatial Monte Carlo integration and flips of restricted machines, by enumeration."""

import itertools

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian.expectations import NEGATIVE_PHASES, PersistentBlockChains, SampledLayers
from gibbsian.expectations.layer_chains import LayerPoint, spatial_moments
from gibbsian.inference.layer_flips import FlipSums
from gibbsian.inference.layer_pseudolikelihood import log_pseudolikelihood
from gibbsian.models.layers.units import codes_of
from layered_systems import all_values, joint_law, log_likelihood, random_machine, statistics_of

TWO_VALUED = [("binary", "binary"), ("spin", "spin"), ("binary", "spin"), ("spin", "binary")]


def estimates(model, region):
    """The estimator at every joint state, with the law: rows of moments in the layout of theta."""
    v, h, law, _ = joint_law(model)
    rows = []
    for i, j in itertools.product(range(len(v)), range(len(h))):
        found = spatial_moments(model.family, model.parts, v[i : i + 1], h[j : j + 1], region)
        rows.append(np.concatenate([found.firsts[0], found.firsts[1], found.products[0].ravel()]))
    return np.array(rows), law.ravel()


@pytest.mark.parametrize(("visible", "hidden"), TWO_VALUED)
@pytest.mark.parametrize("region", ["pair", "layer"])
@pytest.mark.parametrize("temperature", [1.0, 1.6])
def test_unbiased_at_the_exact_law(rng, visible, hidden, region, temperature):
    model = random_machine(visible, hidden, rng, 4, 3, scale=1.0)
    rows, shares = estimates(model, region)
    v, h, law, _ = joint_law(model)
    np.testing.assert_allclose(shares @ rows, statistics_of(v, h, law), atol=1e-12)


@pytest.mark.parametrize(("visible", "hidden"), TWO_VALUED)
def test_variances_fall_as_the_region_grows(rng, visible, hidden):
    """YU20 theorems 1 and 2: plain Monte Carlo, the pair or the hidden layer, the unit with the hidden layer."""
    model = random_machine(visible, hidden, rng, 4, 3, scale=1.0)
    v, h, law, _ = joint_law(model)
    truth = (v.T @ law @ h).ravel()
    plain = np.einsum("ai,bj,ab->ij", v**2, h**2, law).ravel() - truth**2
    variances = {}
    for region in ("pair", "layer"):
        rows, shares = estimates(model, region)
        variances[region] = shares @ rows[:, -truth.size :] ** 2 - truth**2
    given_v = law.sum(axis=1) @ (v[:, :, None] * model.hidden_means(v)[:, None]).reshape(len(v), -1) ** 2 - truth**2
    assert (variances["layer"] < given_v).all()
    assert (variances["pair"] < plain).all()
    assert (variances["layer"] < variances["pair"]).all()


@pytest.mark.parametrize("region", ["pair", "layer"])
def test_saturated_machines_stay_finite(rng, region):
    model = random_machine("spin", "spin", rng, 6, 20, scale=400.0)
    found = spatial_moments(model.family, model.parts, np.ones((2, 6)), np.ones((2, 20)), region)
    assert np.isfinite(found.products[0]).all()
    assert (np.abs(found.products[0]) <= 1.0).all()


def test_means_over_samples_are_means_of_single_samples(rng):
    """Many hidden units: several lanes, a rest, and more than one logarithm."""
    model = random_machine("binary", "spin", rng, 20, 1100, scale=0.3)
    v = (rng.random((5, 20)) < 0.5).astype(float)
    h = model.draw_hidden(v, rng)
    for region in ("pair", "layer"):
        together = spatial_moments(model.family, model.parts, v, h, region)
        single = [spatial_moments(model.family, model.parts, v[m : m + 1], h[m : m + 1], region) for m in range(5)]
        np.testing.assert_allclose(together.products[0], np.mean([s.products[0] for s in single], axis=0), atol=1e-14)


@pytest.mark.parametrize("n_hidden", [1, 16, 37, 1100])
@pytest.mark.parametrize(("visible", "hidden"), TWO_VALUED)
def test_conditional_costs_are_differences_of_log_weights(rng, visible, hidden, n_hidden):
    model = random_machine(visible, hidden, rng, 18, n_hidden, scale=0.7)
    v = model.draw_visible(np.zeros((3, n_hidden)), rng)
    costs = FlipSums(model.family, model.parts, v).costs()
    for unit in range(18):
        flipped = v.copy()
        flipped[:, unit] = -v[:, unit] if visible == "spin" else 1.0 - v[:, unit]
        np.testing.assert_allclose(costs[:, unit], model.log_evidence(v) - model.log_evidence(flipped), atol=1e-9)


@pytest.mark.parametrize("visible", ["binary", "spin", "categorical"])
@pytest.mark.parametrize("hidden", ["binary", "spin", "categorical", "gaussian"])
def test_pseudolikelihood_is_the_product_of_conditional_laws(rng, visible, hidden):
    model = random_machine(visible, hidden, rng, 4, 3, scale=0.4)
    layer = model.visible
    codes = codes_of(layer, all_values(layer))
    log_p = log_likelihood(model, codes)
    expected = np.zeros(len(codes))
    for unit in range(layer.n_units):
        others = np.delete(codes, unit, axis=1)
        same = (others[:, None] == others).all(axis=2)
        expected += log_p - np.log(same @ np.exp(log_p))
    np.testing.assert_allclose(log_pseudolikelihood(model, codes), expected, atol=1e-11)


def test_phase_is_registered_and_follows_the_model(rng):
    """Moments over many chains of the stationary law agree with the exact ones."""
    model = random_machine("binary", "binary", rng, 5, 4)
    v, h, law, _ = joint_law(model)
    phase = NEGATIVE_PHASES.create("smci", n_chains=4000, n_steps=2)
    assert phase == SampledLayers(PersistentBlockChains(n_steps=2, n_chains=4000), "layer")
    state = phase.init(model, [], rng)
    for _ in range(30):
        moments, state = phase(LayerPoint(model.family, model.parts, []), state, rng)
    found = np.concatenate([moments.firsts[0], moments.firsts[1], moments.products[0].ravel()])
    assert np.abs(found - statistics_of(v, h, law)).max() < 4 * 0.5 / np.sqrt(4000)


def test_other_regions_are_refused(rng):
    with pytest.raises(ArgumentError, match="region='square'"):
        SampledLayers(region="square")
    model = random_machine("spin", "spin", rng)
    with pytest.raises(ArgumentError, match="hidden="):
        spatial_moments(model.family, model.parts, np.ones((1, 5)), region="pair")
    with pytest.raises(ArgumentError, match="Gaussian"):
        log_pseudolikelihood(random_machine("gaussian", "binary", rng), np.zeros((1, 5)))
