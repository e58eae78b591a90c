"""R-hat and effective sample size in cases where the answer is known."""

import numpy as np
import pytest
from scipy.signal import lfilter

import gibbsian as gb
from gibbsian.diagnostics import chain_report, effective_sample_size, r_hat
from gibbsian.diagnostics.chains import report_on
from gibbsian.errors import ArgumentError


def autoregressive(rho, n_chains, n_draws, rng):
    """Stationary AR(1) chains with unit variance."""
    noise = rng.normal(size=(n_chains, n_draws + 200)) * np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], noise, axis=1)[:, 200:]


def test_independent_draws(rng):
    draws = rng.normal(size=(4, 2000, 3))
    assert np.abs(r_hat(draws) - 1).max() < 0.01
    assert effective_sample_size(draws) == pytest.approx(8000, rel=0.15)


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_autoregressive_chains(rho, rng):
    draws = autoregressive(rho, 8, 10_000, rng)
    expected = draws.size * (1 - rho) / (1 + rho)
    assert effective_sample_size(draws) == pytest.approx(expected, rel=0.15)


def test_chains_that_disagree(rng):
    draws = rng.normal(size=(4, 500)) + np.array([[0.0], [0.0], [0.0], [3.0]])
    assert r_hat(draws) > 1.3
    assert effective_sample_size(draws) < 50


def test_one_quantity_at_a_time(rng):
    draws = rng.normal(size=(4, 300, 5))
    one_by_one = [r_hat(draws[..., k]) for k in range(5)]
    np.testing.assert_allclose(r_hat(draws), one_by_one)
    assert r_hat(draws[..., 0]).shape == ()


def test_a_constant_quantity_gives_nan_and_spoils_no_other(rng):
    draws = rng.normal(size=(4, 300, 2))
    draws[..., 0] = 1.0
    assert np.isnan(r_hat(draws)[0])
    assert np.isnan(effective_sample_size(draws)[0])
    assert r_hat(draws)[1] == pytest.approx(1, abs=0.02)


def test_chains_stuck_at_different_values_never_agree():
    draws = np.repeat(np.array([[1.0], [1.0], [-1.0]]), 100, axis=1)
    assert r_hat(draws) == np.inf
    assert effective_sample_size(draws) == 3


def test_one_moving_chain_among_stuck_ones_is_still_found(rng):
    draws = np.repeat(np.array([[1.0], [1.0], [-1.0], [1.0]]), 100, axis=1)
    draws[3] = rng.choice([-1.0, 1.0], 100)
    assert r_hat(draws) > 1.2


@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 10, 3, 1)])
def test_shapes_are_checked(shape):
    with pytest.raises(ArgumentError, match="draws has shape"):
        r_hat(np.zeros(shape))


def test_report_names_the_worst(rng):
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    draws = rng.choice([0, 1], size=(4, 500, 3))
    good = chain_report(model, draws)
    assert good.is_good()
    draws[0, :, 1] = 1
    draws[1, :, 1] = 0
    bad = chain_report(model, draws)
    assert not bad.is_good()
    assert bad.r_hat > good.r_hat
    assert bad.effective_sample_size < good.effective_sample_size
    assert f"R-hat {bad.r_hat:.3f}" in bad.describe()


def test_a_report_says_how_many_chains_and_draws_it_judged(rng):
    report = report_on(rng.normal(size=(6, 50, 2)))
    assert (report.n_chains, report.n_draws) == (6, 50)
