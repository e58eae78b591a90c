"""Sampled answers of a fitted machine: expectations with a number of samples, log Z from two sides."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import gibbsian as gb
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, GibbsianWarning, TooExpensiveError
from gibbsian.expectations import EXPECTATIONS
from gibbsian.expectations.sampled import monte_carlo


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    opinion = rng.choice([-1, 1], (200, 1))
    return np.where(rng.random((200, 5)) < 0.7, opinion, -opinion)


@pytest.fixture(scope="module", params=["pairwise", "higher-order", "potts"])
def machine(request, rows):
    """Every kind of machine on the same rows."""
    return {
        "pairwise": gb.BoltzmannMachine("chain", learner="mle", random_state=0),
        "higher-order": gb.HigherOrderBoltzmannMachine(3, learner="mle", l2=0.01, random_state=0),
        "potts": gb.PottsMachine("chain", learner="mle", l2=0.01, random_state=0),
    }[request.param].fit(rows)


@pytest.fixture(scope="module")
def large() -> gb.BoltzmannMachine:
    """A machine that exact inference refuses."""
    rows = np.random.default_rng(0).integers(0, 2, (50, 50))
    return gb.BoltzmannMachine(learner="mple", l2=1.0, random_state=0).fit(rows)


def slack(interval: LogPartitionInterval) -> float:
    """The interval covers two standard errors; a test allows five."""
    return 3.0 * max(interval.stderrs) + 1e-9


@pytest.mark.parametrize(
    "method",
    [
        name
        for name in EXPECTATIONS
        if name != "exact"
        and EXPECTATIONS.trait(name, "sampled", True)
        and not EXPECTATIONS.trait(name, "needs_starts")
    ],
)
def test_every_method_takes_a_number_of_samples(machine, method):
    estimate = machine.expect(method, n_samples=400 if method == "ais" else 2500)
    truth = machine.expect("exact").value
    assert (np.abs(estimate.value - truth) <= 5 * estimate.stderr + 1e-3).all()


def test_errors_shrink_with_the_number_of_samples(machine):
    few, many = (machine.expect("monte-carlo", n_samples=n).stderr.mean() for n in (900, 10_000))
    assert many < 0.6 * few


def test_auto_with_a_number_samples(machine):
    assert machine.expect().is_exact
    assert not machine.expect(n_samples=900).is_exact
    np.testing.assert_array_equal(machine.expect(n_samples=900).value, machine.expect("monte-carlo", 900).value)


def test_an_expectation_object_takes_a_number_too(machine):
    few = machine.expect(monte_carlo(burn_in=10, warn=False), n_samples=64)
    np.testing.assert_array_equal(
        few.value, machine.expect(monte_carlo(n_chains=8, n_draws=8, burn_in=10, warn=False)).value
    )


def test_a_wrong_number_is_refused(machine):
    with pytest.raises(ArgumentError, match="method='exact' draws no samples"):
        machine.expect("exact", n_samples=10)
    with pytest.raises(ArgumentError, match="n_samples=1 must be at least 2"):
        machine.expect("s2-smci", n_samples=1)


def test_log_z_between_two_sides_holds_the_exact_one(machine):
    interval = machine.log_partition(method="ais", n_samples=50, betas=500)
    assert isinstance(interval, LogPartitionInterval)
    assert interval.lower - slack(interval) <= machine.log_partition() <= interval.upper + slack(interval)


def test_the_score_between_two_sides_holds_the_exact_one(machine, rows):
    weights = np.arange(1.0, 201.0)
    found = machine.score_interval(rows, weights, n_samples=50, betas=500)
    beyond = slack(found.log_partition)
    assert found.lower - beyond <= machine.score(rows, sample_weight=weights) <= found.upper + beyond
    assert found.upper - found.lower == pytest.approx(found.log_partition.upper - found.log_partition.lower)
    assert found.log_partition.forward.n_walkers == 50
    assert found.log_partition.forward.n_betas == 500


def test_missing_cells_are_summed_out_of_the_interval(rows):
    machine = gb.BoltzmannMachine("chain", learner="mle", random_state=0).fit(rows)
    holes = rows.astype(float)
    holes[::3, 1] = np.nan
    found = machine.score_interval(holes)
    beyond = slack(found.log_partition)
    assert found.lower - beyond <= machine.score(holes) <= found.upper + beyond


def test_where_exact_is_out_of_reach_the_way_out_is_named(large):
    with pytest.raises(TooExpensiveError, match="or bracket log Z by method='ais'"):
        large.log_partition(method="exact")
    with pytest.warns(GibbsianWarning, match="log Z is estimated"):
        assert large.score(np.zeros((1, 50))) < 0
    found = large.log_partition(method="ais", n_samples=20, betas=200)
    assert 0 < found.upper - found.lower < 1
    assert np.isfinite(found.lower)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "magic"}, "method='magic' is not known"),
        ({"method": "exact", "n_samples": 5}, "belong to method='ais'"),
    ],
)
def test_wrong_arguments_of_log_partition(machine, arguments, words):
    with pytest.raises(ArgumentError, match=words):
        machine.log_partition(**arguments)


def test_comparison_of_other_machines(rows):
    compared = gb.comparison.compare(rows, ["mle", "mple"], gb.PottsMachine("chain", l2=0.01), random_state=0)
    assert [type(row.machine).__name__ for row in compared] == ["PottsMachine"] * 2
    assert compared[0].distance == 0.0
    assert 0 < compared[1].distance < 0.1
    cliques = gb.comparison.compare(rows, ["mple"], gb.HigherOrderBoltzmannMachine(order=2), random_state=0)
    assert cliques[0].distance is not None


def test_a_log_probability_above_zero_is_refused(machine):
    with pytest.raises(ArgumentError, match=r"above zero, so log Z is not known well enough.*score_interval"):
        machine.score_samples(np.ones((1, machine.n_features_in_)), log_partition=-50.0)


@pytest.mark.parametrize(
    ("machine", "holes"),
    [
        (gb.BoltzmannMachine(learner="mple", l2=0.1, max_iter=3, random_state=0), 0.0),
        (gb.RestrictedBoltzmannMachine(30, max_iter=1, random_state=0), 0.7),
    ],
)
@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
def test_cross_validation_at_any_size(machine, holes):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (16, 46)).astype(float)
    rows[::8][rng.random((2, 46)) < holes] = np.nan
    found = GridSearchCV(machine, {"max_iter": [1]}, cv=2, error_score="raise").fit(rows)
    scores = found.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert (scores < 0).all()
