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
def model(request, rng, scores):
    return random_model(request.param, rng, scores, scale=0.5)


def test_keeps_the_contract(expectation):
    assert isinstance(expectation, Expectation)


def test_mean_is_within_its_error_of_the_truth(name, expectation, model, rng):
    if not EXPECTATIONS.trait(name, "consistent", True):
        pytest.skip(f"{name} is an approximation")
    states, probabilities, log_partition = exact_law(model)
    truth = model.family.mean_statistics(states, probabilities)
    estimate, state = expectation(model, expectation.init(model, None, rng))
    assert estimate.value.shape == estimate.monte_carlo_error.shape == model.theta.shape
    assert np.all(np.abs(estimate.value - truth) <= 5 * estimate.stderr + 1e-12)
    assert estimate.monte_carlo_error.max() < 0.05
    if "log_partition" in estimate.parts:
        log_z = estimate.parts["log_partition"]
        assert abs(log_z.value - log_partition) <= 5 * log_z.stderr + 1e-10
        assert log_z.stderr < 0.05
    again, _ = expectation(model, state)  # a second call goes on from the first
    assert np.all(np.abs(again.value - truth) <= 5 * again.stderr + 1e-12)


def test_an_approximation_says_so_and_is_near_where_couplings_are_weak(name, expectation, model, rng):
    if EXPECTATIONS.trait(name, "consistent", True):
        pytest.skip(f"{name} is no approximation")
    for scale, error in ((0.1, 0.1), (0.01, 0.01)):
        weak = model.replace(scale * model.theta)
        states, probabilities, log_partition = exact_law(weak)
        estimate, _ = expectation(weak, expectation.init(weak, None, rng))
        assert not estimate.is_exact
        assert np.abs(estimate.value - weak.family.mean_statistics(states, probabilities)).max() < error
        assert estimate.parts["log_partition"].value == pytest.approx(log_partition, abs=error**2)


def test_same_seed_same_bits(expectation, model):
    first, second = (expectation(model, expectation.init(model, None, np.random.default_rng(4)))[0] for _ in range(2))
    assert np.array_equal(first.value, second.value)
    assert np.array_equal(first.stderr, second.stderr)
