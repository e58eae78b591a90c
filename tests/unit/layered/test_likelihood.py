"""The log-likelihood as a result: exact, or between two ends."""

import numpy as np
import pytest

import layered_systems as exact_sums
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, MixingWarning, TooExpensiveError
from gibbsian.layered.annealing import LayerAnnealing
from gibbsian.layered.likelihood import LogLikelihood, log_likelihood_of
from gibbsian.layered.rows import LayerRows
from gibbsian.models.layers import BinaryLayer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.samplers.annealing import AnnealedRun
from layered_systems import all_values, random_machine


@pytest.fixture
def interval() -> LogPartitionInterval:
    there = AnnealedRun(np.ones((3, 1), np.int8), np.array([4.0, 4.1, 4.2]), n_betas=10)
    back = AnnealedRun(np.ones((3, 1), np.int8), np.array([-5.0, -5.1, -5.2]), n_betas=10, reverse=True)
    return LogPartitionInterval(there, back, "three chains")


def test_ends_are_the_other_way_round_than_those_of_log_z(interval):
    found = LogLikelihood(np.array([1.0, 2.0]), np.array([0.25, 0.75]), interval)
    assert not found.exact
    assert found.lower == pytest.approx(1.75 - interval.upper)
    assert found.upper == pytest.approx(1.75 - interval.lower)
    assert found.lower < found.pessimistic < found.optimistic < found.upper
    assert found.stderrs == interval.stderrs
    for end in ("lower", "upper", "optimistic", "pessimistic"):
        assert found.shares @ found.per_row(end) == pytest.approx(getattr(found, end))
    words = found.describe()
    assert "between" in words
    assert "three chains" in words
    assert "beware" in words
    with pytest.raises(ArgumentError, match="end='middle'"):
        found.per_row("middle")


def test_interval_holds_both_estimates_when_they_stand_the_wrong_way_round(interval):
    there = AnnealedRun(np.ones((3, 1), np.int8), np.array([6.0, 6.01, 6.02]), n_betas=10)
    found = LogLikelihood(np.array([1.0]), np.array([1.0]), LogPartitionInterval(there, interval.reverse, "chains"))
    assert found.optimistic < found.pessimistic
    assert found.lower <= found.optimistic
    assert found.pessimistic <= found.upper


def test_exact_where_the_smaller_layer_is_small(rng):
    model = random_machine("spin", "binary", rng, 6, 3)
    states = model.visible.decode(all_values(model.visible))
    weights = rng.dirichlet(np.ones(len(states)))
    found = log_likelihood_of(model, LayerRows(states, weights))
    assert found.exact
    assert found.stderrs == (0.0, 0.0)
    assert found.lower == found.upper == pytest.approx(weights @ exact_sums.log_likelihood(model, states))
    assert np.exp(found.per_row()).sum() == pytest.approx(1.0)


def test_error_of_the_mean_over_rows(rng):
    log_weights = rng.normal(size=50)
    found = LogLikelihood(log_weights, np.full(50, 0.02), 0.0)
    assert found.rows_stderr == pytest.approx(log_weights.std(ddof=1) / np.sqrt(50))


def test_missing_cells_are_summed_out(rng):
    model = random_machine("binary", "binary", rng, 4, 3)
    states = model.visible.decode(all_values(model.visible))
    log_p = exact_sums.log_likelihood(model, states)
    missing = np.array([[False, True, False, True]])
    agrees = (states[:, [0, 2]] == [1, 0]).all(axis=1)
    found = log_likelihood_of(model, LayerRows(np.array([[1, 0, 0, 0]], np.int8), missing=missing))
    assert found.lower == pytest.approx(np.log(np.exp(log_p[agrees]).sum()))


def test_large_machines_give_an_interval_and_refuse_the_exact_sum():
    model = RestrictedModel.build(BinaryLayer(40), BinaryLayer(30))
    rows = np.zeros((2, 40), np.int8)
    found = log_likelihood_of(model, rows, annealing=LayerAnnealing(10, 20), rng=0)
    assert not found.exact
    assert found.lower == pytest.approx(-40 * np.log(2.0))
    with pytest.raises(TooExpensiveError):
        log_likelihood_of(model, rows, exact=True)
    with pytest.raises(ArgumentError, match="39 columns"):
        log_likelihood_of(model, rows[:, 1:])


def test_ends_that_disagree_warn(rng):
    model = random_machine("spin", "spin", rng, 20, 12, scale=3.0)
    with pytest.warns(MixingWarning, match="raise the number of temperatures"):
        found = log_likelihood_of(model, np.ones((1, 20)), exact=False, annealing=LayerAnnealing(10, 3), rng=0)
    assert found.trouble
