"""Four rules for the standard errors of means over samples, against what they are the errors of."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import MixingWarning
from gibbsian.expectations import AnnealedWalkers, Sampled, Samples
from gibbsian.expectations.error_rules import (
    ErrorOfChanges,
    bernoulli_error,
    error_floor,
    floored_spread,
    spread_of_groups,
)
from gibbsian.rng import Key
from gibbsian.storage import pack, unpack
from systems import random_model, take


@pytest.fixture
def model(rng):
    return random_model(gb.graphs.complete(3), rng)


def draws(rng, *shape):
    return rng.integers(0, 2, (*shape, 3)).astype(np.int8)


def test_means_of_two_values_imply_their_variance(model, rng):
    states = draws(rng, 200)
    found = bernoulli_error(model.family, Samples(states))
    statistics = model.family.statistics(states)
    np.testing.assert_allclose(found.value, statistics.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.stderr, statistics.std(axis=0) / np.sqrt(199), rtol=1e-9)


def test_the_spread_of_chains_is_that_of_their_means(model, rng):
    chains = draws(rng, 10, 40)
    found = spread_of_groups(model.family, Samples.of(chains))
    means = np.array([model.family.mean_statistics(chain) for chain in chains])
    np.testing.assert_allclose(found.value, means.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.stderr, means.std(axis=0, ddof=1) / np.sqrt(10), rtol=1e-9)
    same = Samples(np.tile(chains[0], (2, 1)), groups=np.repeat([0, 1], 40))  # copies that agree
    assert not spread_of_groups(model.family, same).stderr.any()
    floored = floored_spread(model.family, same)
    np.testing.assert_allclose(floored.stderr, error_floor(np.zeros(6), np.full(6, 2.0), 80), rtol=1e-9)


def test_weighted_draws_have_the_errors_of_self_normalised_importance_sampling(model, rng):
    states, logs = draws(rng, 30), rng.normal(size=30)
    samples = Samples(states, np.exp(logs))
    statistics, weights = model.family.statistics(states), samples.shares
    mean, worth = weights @ statistics, samples.effective_sample_size
    stderr = np.sqrt(worth / (worth - 1) * (weights**2 @ (statistics - mean) ** 2))
    found = floored_spread(model.family, samples)
    np.testing.assert_allclose(found.value, mean)
    np.testing.assert_allclose(found.stderr, np.hypot(stderr, 3.0 / worth))  # statistics vary by two


def test_changes_bound_the_error_of_what_starts_at_the_data(model, rng):
    """The rows that do not change have no error; of all that change the variance of the change is the bound."""
    starts, few = draws(rng, 400), 20
    ends = starts.copy()
    ends[:few] = 1 - ends[:few]
    found = ErrorOfChanges(starts)(model.family, Samples(ends, np.ones(400)))
    changes = model.family.statistics(ends) - model.family.statistics(starts)
    np.testing.assert_allclose(found.stderr, changes.std(axis=0) / 20, rtol=1e-9)
    unmoved = ErrorOfChanges(starts)(model.family, Samples(starts, np.ones(400)))
    assert unmoved.stderr.max() < 1e-7  # the root of rounding


def test_calls_of_walkers_owe_nothing_to_each_other_and_their_state_can_be_stored(rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    bound = Sampled(AnnealedWalkers(n_walkers=100, betas=100)).bind(model)
    start = bound.init(model.theta, Key.of(0))
    first, state = bound(model.theta, start)
    restored = unpack(start, pack(state))
    assert restored.n_calls == 1
    assert np.array_equal(bound(model.theta, state)[0].value, bound(model.theta, restored)[0].value)
    assert not np.array_equal(bound(model.theta, state)[0].value, first.value)


def test_a_walker_that_holds_the_weight_is_told(rng):
    model = gb.PairwiseFamily.model(gb.graphs.complete(12), np.zeros(12), rng.normal(0, 3.0, 66))
    with pytest.warns(MixingWarning, match=r"walkers holds .* of the weight: raise betas=2"):
        take(Sampled(AnnealedWalkers(n_walkers=10, betas=2)), model)
