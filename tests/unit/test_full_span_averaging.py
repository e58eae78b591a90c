"""Averages over bootstrap fits against their definitions."""

import functools

import numpy as np
import pytest
from scipy.special import logsumexp

from gibbsian.errors import ArgumentError
from gibbsian.full_span import FullSpanModel, SpanAverage, SpanBasis, bootstrap_average, fit_full_span, stack


def noisy_chain(n_rows, rng, n_variables=7):
    x = rng.integers(0, 2, (n_rows, n_variables))
    for i in range(1, n_variables):
        copy = rng.random(n_rows) < 0.6
        x[copy, i] = x[copy, i - 1]
    return x


@pytest.fixture
def models(rng):
    return tuple(
        FullSpanModel.build((2, 3, 2), rng.choice(np.arange(1, 12), 4, replace=False), rng.normal(size=4))
        for _ in range(3)
    )


def test_arithmetic_mean_is_the_mean_of_probabilities(models):
    average = SpanAverage(models)
    expected = np.mean([model.probabilities() for model in models], axis=0)
    states = np.array([[0, 2, 1], [1, 0, 0]])
    assert np.allclose(average.probabilities(), expected, rtol=0, atol=1e-15)
    assert np.allclose(average.log_probabilities(states), np.log(expected[average.basis.indices(states)]))


def test_geometric_mean_is_the_normalised_mean_of_logarithms(models):
    logs = np.mean([np.log(model.probabilities()) for model in models], axis=0)
    expected = np.exp(logs - logsumexp(logs))
    assert np.allclose(SpanAverage(models).geometric_mean().probabilities(), expected, rtol=0, atol=1e-14)


def test_an_average_of_one_is_that_one(models):
    average = SpanAverage(models[:1])
    assert np.allclose(average.probabilities(), models[0].probabilities(), rtol=0, atol=1e-16)
    assert np.allclose(average.geometric_mean().dual(), models[0].dual(), rtol=0, atol=1e-14)


def test_bootstrap_fits_differ_and_repeat_with_the_seed(rng):
    x = noisy_chain(150, rng)
    one, same, other = (bootstrap_average(x, np.ones(150), (2,) * 7, n_fits=4, random_state=s) for s in (5, 5, 6))
    tables = [model.probabilities() for model in one.models]
    assert not np.allclose(tables[0], tables[1])
    assert np.array_equal(one.probabilities(), same.probabilities())
    assert not np.allclose(one.probabilities(), other.probabilities())


def test_every_bootstrap_sample_has_as_many_rows(rng, monkeypatch):
    totals = []

    @functools.wraps(fit_full_span)
    def spy(states, counts, cardinalities, **settings):
        totals.append((counts.sum(), counts.min(), settings))
        return fit_full_span(states, counts, cardinalities, **settings)

    monkeypatch.setitem(bootstrap_average.__globals__, "fit_full_span", spy)
    bootstrap_average(noisy_chain(60, rng), np.full(60, 2.0), (2,) * 7, n_fits=3, random_state=0, epsilon=1e-3)
    assert [(total, settings) for total, _, settings in totals] == [(120, {"epsilon": 1e-3})] * 3
    assert all(least >= 1 for _, least, _ in totals)


def test_averaging_predicts_new_rows_better_than_one_fit_where_much_is_weak():
    """Many weak interactions: which of them a fit takes is chance."""
    gains = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        basis = SpanBasis((2,) * 7)
        used = np.arange(1, 128)
        truth = FullSpanModel(basis, used, rng.normal(size=127) * 0.4 ** basis.orders(used))
        x = basis.digits(rng.choice(128, 300, p=truth.probabilities()))
        settings = {"epsilon": 1e-5, "mdl_scale": 0.2}
        one = fit_full_span(x, np.ones(300), (2,) * 7, **settings).model
        many = bootstrap_average(x, np.ones(300), (2,) * 7, n_fits=15, random_state=seed, **settings)
        gains.append(truth.probabilities() @ np.log(many.probabilities() / one.probabilities()))
    assert np.mean(gains) > 0.01


def test_stacking_finds_the_shares_of_a_mixture(models):
    basis = models[0].basis
    truth = SpanAverage(models, (0.6, 0.1, 0.3))
    everything = basis.digits(np.arange(basis.size))
    found = stack(models, everything, 1e4 * truth.probabilities())
    assert np.abs(found.probabilities() - truth.probabilities()).max() < 2e-3
    logs = [1e4 * truth.probabilities() @ np.log(m.probabilities()) for m in (found, SpanAverage(models), *models)]
    assert logs[0] == max(logs)


def test_stacking_keeps_averages_together(models):
    average = SpanAverage(models[:2], (0.25, 0.75))
    found = stack([average, models[2]], np.array([[0, 0, 0], [1, 2, 1]]), [3, 4])
    assert found.models == models
    assert found.weights[1] == pytest.approx(3 * found.weights[0])
    assert sum(found.weights) == pytest.approx(1.0)


def test_bad_averages_are_named(models):
    with pytest.raises(ArgumentError, match="n_fits=0"):
        bootstrap_average(np.array([[0, 1]]), [5], (2, 2), n_fits=0)
    with pytest.raises(ArgumentError, match="models is empty"):
        SpanAverage(())
    with pytest.raises(ArgumentError, match="differ in their cardinalities"):
        SpanAverage((models[0], FullSpanModel.build((2, 2), [1], [0.1])))
    with pytest.raises(ArgumentError, match="2 weights for 3 models"):
        SpanAverage(models, (0.5, 0.5))
    with pytest.raises(ArgumentError, match="must be positive and add up to 1"):
        SpanAverage(models, (0.5, 0.8, -0.3))
    with pytest.raises(ArgumentError, match="members is empty"):
        stack([], np.array([[0, 0, 0]]), [1])
