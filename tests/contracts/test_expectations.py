"""Every registered expectation, against enumeration, within the error that it reports.

One with the trait ``consistent=False`` makes an error that it cannot report, and says so.
"""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.expectations import EXPECTATIONS, Expectation
from systems import exact_law, random_model


@pytest.fixture(params=EXPECTATIONS.names())
def name(request):
    return request.param


@pytest.fixture
def expectation(name):
    return EXPECTATIONS.create(name)


@pytest.fixture(params=[gb.graphs.complete(4), gb.graphs.grid(2, 3)], ids=["complete", "grid"])
def model(request, rng, domain):
    return random_model(request.param, rng, domain, scale=0.5)


def test_keeps_the_contract(expectation):
    assert isinstance(expectation, Expectation)


def test_mean_is_within_its_error_of_the_truth(name, expectation, model, rng):
    if not EXPECTATIONS.trait(name, "consistent", True):
        pytest.skip(f"{name} is an approximation")
    states, probabilities, log_partition = exact_law(model)
    truth = model.mean_statistics(states, probabilities)
    estimate, state = expectation(model, expectation.init(model, None, rng))
    assert estimate.mean.shape == estimate.stderr.shape == model.theta.shape
    assert np.all(np.abs(estimate.mean - truth) <= 5 * estimate.stderr + 1e-12)
    assert estimate.stderr.max() < 0.05
    if estimate.log_partition is not None:
        assert abs(estimate.log_partition - log_partition) <= 5 * estimate.log_partition_stderr + 1e-10
        assert estimate.log_partition_stderr < 0.05
    again, _ = expectation(model, state)  # a second call goes on from the first
    assert np.all(np.abs(again.mean - truth) <= 5 * again.stderr + 1e-12)


def test_an_approximation_says_so_and_is_near_where_couplings_are_weak(name, expectation, model, rng):
    if EXPECTATIONS.trait(name, "consistent", True):
        pytest.skip(f"{name} is no approximation")
    for scale, error in ((0.1, 0.1), (0.01, 0.01)):
        weak = model.replace(scale * model.theta)
        states, probabilities, log_partition = exact_law(weak)
        estimate, _ = expectation(weak, expectation.init(weak, None, rng))
        assert not estimate.is_exact
        assert np.abs(estimate.mean - weak.mean_statistics(states, probabilities)).max() < error
        assert estimate.log_partition == pytest.approx(log_partition, abs=error**2)


def test_same_seed_same_bits(expectation, model):
    first, second = (expectation(model, expectation.init(model, None, np.random.default_rng(4)))[0] for _ in range(2))
    assert np.array_equal(first.mean, second.mean)
    assert np.array_equal(first.stderr, second.stderr)
