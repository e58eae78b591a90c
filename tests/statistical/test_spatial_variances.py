"""The theorems of YU20 by enumeration, and whether standard errors say what they mean."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.expectations import Samples, spatial_statistics
from gibbsian.expectations.regions import as_rule
from gibbsian.expectations.table_regions import TablePlan
from systems import all_states, products_on, random_model, take


def models(rng):
    graph = gb.graphs.random(9, 0.35, random_state=4)
    third = products_on(gb.graphs.random(9, 0.5, random_state=8))
    assert third.scopes.sizes.max() == 3
    potts = gb.TablesFamily.potts(gb.graphs.grid(2, 3), Variables.categories((3, 2, 3, 2, 3, 2)))
    return {
        "grid": random_model(gb.graphs.grid(3, 3), rng, scale=0.8),
        "random": random_model(graph, rng, scale=0.8),
        "third order": gb.Model(third, rng.normal(scale=0.5, size=third.n_parameters)),
        "potts": gb.Model(potts, rng.normal(scale=0.8, size=potts.n_parameters)),
    }


@pytest.fixture(params=list(models(np.random.default_rng(0))))
def model(request, rng):
    return models(rng)[request.param]


def moments_over_the_law(model, region):
    """Mean and variance of each statistic's conditional expectation, over the exact law of the samples."""
    states = all_states(model.variables)
    log_weights = model.log_weights(states)
    samples = Samples(states, np.exp(log_weights - log_weights.max()))
    mean, variance = np.empty((2, model.theta.size))
    for places, values in TablePlan.of(model, [as_rule(region)]).values(model, samples):
        mean[places] = samples.shares @ values[0]
        variance[places] = samples.shares @ (values[0] - mean[places]) ** 2
    return mean, variance


def test_theorem_1_variances_fall_with_the_order(model):
    truth = gb.inference.exact(model).moments
    means, variances = zip(*(moments_over_the_law(model, region) for region in (0, 1, "s2", 2, 3, 4)), strict=True)
    assert np.array(means) == pytest.approx(np.tile(truth, (len(means), 1)), abs=1e-12)  # unbiased
    assert np.all(np.diff(variances, axis=0) <= 1e-12)
    assert np.all(np.sum(variances[:2], axis=1) > 1e-3)
    assert np.sum(variances[1]) < 0.5 * np.sum(variances[0])


def test_theorem_2_variances_fall_along_nested_regions(model):
    n = model.n_variables
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(n)

        def region(graph, target, order=order, size=0):
            return {*target, *order[:size].tolist()}

        variances = [
            moments_over_the_law(model, lambda graph, target, size=size: region(graph, target, size=size))[1]
            for size in range(0, n + 1, 2)
        ]
        assert np.all(np.diff(variances, axis=0) <= 1e-12)
    everything = moments_over_the_law(model, lambda graph, target: range(n))[1]
    assert everything == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize("region", [0, 1, "s2", "forest"])
def test_standard_errors_are_the_spread_over_repetitions(region, rng):
    model = random_model(gb.graphs.grid(3, 3), rng, scale=0.5)
    engine = gb.inference.exact(model)
    truth = engine.moments
    estimates = [spatial_statistics(model, engine.sample(200, rng), region) for _ in range(300)]
    gaps = np.array([estimate.value - truth for estimate in estimates])
    sampled = estimates[0].stderr > 1e-12  # a region that covers all that matters is exact
    scores = gaps[:, sampled] / [estimate.stderr[sampled] for estimate in estimates]
    assert sampled.any()
    assert np.sqrt(np.mean(scores**2)) == pytest.approx(1.0, abs=0.08)
    assert gaps[:, ~sampled] == pytest.approx(0.0, abs=1e-12)


def test_standard_errors_of_chains_allow_for_their_memory(rng):
    model = random_model(gb.graphs.grid(3, 3), rng, scale=1.0)
    truth = gb.inference.exact(model).moments
    chains = gb.expectations.PersistentChains(n_chains=40, n_draws=20, burn_in=300)
    scores = []
    for seed in range(60):
        estimate = take(gb.expectations.Sampled(chains, "s2"), model, seed=seed)
        scores.append((estimate.value - truth) / estimate.stderr)
    assert np.sqrt(np.mean(np.square(scores))) == pytest.approx(1.0, abs=0.2)
