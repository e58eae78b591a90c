"""The log-likelihood as a result: exact, or between two ends."""

import numpy as np
import pytest

import gibbsian as gb
import layered_systems as exact_sums
from gibbsian.answers import answers_about
from gibbsian.diagnostics.evidence import MinusLogLikelihood
from gibbsian.diagnostics.likelihood import LogLikelihood, LogLikelihoodBound
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, MixingWarning, TooExpensiveError
from gibbsian.models.layers.units import BinaryUnits
from gibbsian.sampling.annealing import AnnealedRun
from layered_systems import all_codes, random_machine, restricted, rows_of
from systems import exact_law, random_model, sampled_data


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
        assert found.weights @ found.per_row(end) == pytest.approx(getattr(found, end))
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
    codes = all_codes(model.visible)
    weights = rng.dirichlet(np.ones(len(codes)))
    found = answers_about(model).log_likelihood(rows_of(model.visible, codes, weights=weights), rng)
    assert found.exact
    assert found.stderrs == (0.0, 0.0)
    assert found.lower == found.upper == pytest.approx(weights @ exact_sums.log_likelihood(model, codes))
    assert np.exp(found.per_row()).sum() == pytest.approx(1.0)


def test_error_of_the_mean_over_rows(rng):
    log_weights = rng.normal(size=50)
    found = LogLikelihood(log_weights, np.full(50, 0.02), 0.0)
    assert found.rows_stderr == pytest.approx(log_weights.std(ddof=1) / np.sqrt(50))


def test_missing_cells_are_summed_out(rng):
    model = random_machine("binary", "binary", rng, 4, 3)
    codes = all_codes(model.visible)
    log_p = exact_sums.log_likelihood(model, codes)
    missing = np.array([[False, True, False, True]])
    agrees = (codes[:, [0, 2]] == [1, 0]).all(axis=1)
    data = rows_of(model.visible, np.array([[1, 0, 0, 0]], np.int8), missing)
    found = answers_about(model).log_likelihood(data, rng)
    assert found.lower == pytest.approx(np.log(np.exp(log_p[agrees]).sum()))


def test_large_machines_give_an_interval_and_refuse_the_exact_sum():
    model = restricted(BinaryUnits(40), BinaryUnits(30))
    data, rng = rows_of(model.visible, np.repeat([[0], [1]], 40, axis=1)), np.random.default_rng(0)
    found = answers_about(model).log_likelihood(data, rng, 10, 20)
    assert not found.exact
    assert found.lower == pytest.approx(-40 * np.log(2.0))
    with pytest.raises(TooExpensiveError, match="a sum over the 30 hidden units"):
        answers_about(model).log_likelihood(data, rng, exactly=True)
    with pytest.raises(ArgumentError, match="belong to exact=False"):
        answers_about(model).log_likelihood(data, rng, 10, exactly=True)
    with pytest.raises(ArgumentError, match="exact='no' must be True, False or None"):
        answers_about(model).log_likelihood(data, rng, exactly="no")


def test_ends_that_disagree_warn(rng):
    model = random_machine("spin", "spin", rng, 20, 12, scale=3.0)
    data = rows_of(model.visible, np.ones((1, 20), np.int8))
    with pytest.warns(MixingWarning, match="raise the number of temperatures"):
        found = answers_about(model).log_likelihood(data, np.random.default_rng(0), 10, 3)
    assert found.trouble


def test_what_is_known_is_said_in_words():
    found = LogLikelihood(np.array([1.0, 3.0]), np.array([0.5, 0.5]), 4.0)
    words = "mean log-likelihood -2.00 nats a row, exact (2 rows, which differ by a standard error of 1.00)"
    assert str(found) == words
    bound = LogLikelihoodBound(np.array([1.0, 3.0]), np.array([0.5, 0.5]), 4.0, "mean field")
    assert (bound.exact, bound.lower, bound.upper) == (False, -2.0, np.inf)
    assert "at least -2.00 nats a row, a lower bound by mean field with exact log Z (2 rows" in bound.describe()


def test_the_loss_of_a_model_is_minus_its_mean_log_likelihood(rng):
    model = random_model(gb.graphs.complete(4), rng)
    data = sampled_data(model, 50, rng)
    states, probabilities, _ = exact_law(model)
    of_state = dict(zip(map(tuple, states.tolist()), np.log(probabilities), strict=True))
    expected = -sum(w * of_state[tuple(row)] for row, w in zip(data.states.tolist(), data.weights, strict=True)) / 50
    assert MinusLogLikelihood()(model, data, rng) == pytest.approx(expected, rel=1e-12)
