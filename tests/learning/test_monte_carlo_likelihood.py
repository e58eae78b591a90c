"""Monte Carlo likelihood: the function that draws see, the region they are trusted in, and where rounds end."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.diagnostics.moments import moment_errors
from gibbsian.errors import ArgumentError
from gibbsian.learning.monte_carlo_likelihood import Draws, Reweighted, _coarse, _covariance, _edge, _within
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.rng import Key
from gibbsian.uncertainty import standard_errors
from systems import SPINS, random_model, random_model_of, sampled_data


def drawn(model, rng, n_groups=20, n_draws=2000):
    states = gb.inference.exact(model).sample(n_groups * n_draws, rng).reshape(n_groups, n_draws, -1)
    return Draws.of(model, states)


@pytest.mark.parametrize("kind", ["pairwise", "products", "potts"])
def test_draws_see_differences_of_log_partitions(kind, rng):
    variables = Variables.categories((3, 2, 2)) if kind == "potts" else SPINS
    graph = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2)], 3)
    model = random_model_of(kind, graph, rng, variables, scale=0.3)
    draws = drawn(model, rng)
    function = Reweighted(draws, np.zeros_like(model.theta), SmoothPenalty(0.1))
    move = 0.1 * rng.normal(size=model.theta.size)
    value, gradient = function(model.theta + move)
    moved = gb.inference.exact(model.replace(model.theta + move))
    penalty = 0.05 * np.square(model.theta + move).sum()
    expected = moved.log_partition - gb.inference.exact(model).log_partition + penalty
    assert value == pytest.approx(expected, abs=5 * move.size * np.abs(move).max() / len(draws.flat) ** 0.5)
    steps = 1e-5 * np.eye(move.size)
    slopes = [(function(model.theta + move + h)[0] - function(model.theta + move - h)[0]) / 2e-5 for h in steps]
    np.testing.assert_allclose(gradient, slopes, atol=1e-8)


def test_the_error_of_draws_is_that_of_independent_groups(rng):
    model = random_model(gb.graphs.complete(4), rng)
    draws = drawn(model, rng)
    spread = np.sqrt((1 - draws.mean**2) / len(draws.flat))  # of products of spins
    plain = draws.plain.std(axis=0, ddof=1) / np.sqrt(len(draws.plain))
    assert np.median(plain / spread) == pytest.approx(1.0, rel=0.35)
    assert draws.repeats == pytest.approx(1.0, rel=0.35)
    # sums over the variables of a statistic leave less to chance, and have the same mean
    truth = gb.inference.exact(model).moments
    stderr = np.sqrt(np.square(draws.deviations()).sum(axis=0))
    student = (20 - 1) / (20 - 3)  # the variance of its distribution, of 20 groups
    np.testing.assert_allclose(stderr**2, student * draws.groups.var(axis=0, ddof=1) / 20)
    assert np.median(stderr / spread) < 0.8
    assert np.abs((draws.mean - truth) / stderr).max() < 4.5


def test_moments_away_from_the_draws_have_the_error_that_is_said(rng):
    """What draws say of the change of moments is noise as well, much more of it than sums over variables leave."""
    model = random_model(gb.graphs.complete(4), rng, scale=0.3)
    theta = model.theta + 0.2 * rng.normal(size=model.theta.size)
    truth, off, said = gb.inference.exact(model.replace(theta)).moments, [], []
    for _ in range(100):
        draws = drawn(model, rng, n_groups=20, n_draws=50)
        function = Reweighted(draws, np.zeros_like(theta), SmoothPenalty(0.0))
        off.append(function(theta)[1] - truth)
        said.append([np.square(draws.deviations(a)).sum() for a in (1 / function.worth(theta) - 1, 0.0)])
    away, near = np.square(off).sum(axis=1).mean() / np.mean(said, axis=0)
    assert 0.7 < away < 1.3 < 1.6 < near


def test_the_error_of_a_fit_is_the_most_that_it_may_end_with(rng):
    data = sampled_data(random_model(gb.graphs.complete(5), rng, scale=0.3), 500, rng)
    model = gb.BoltzmannMachine(learner="mcmle", random_state=0).fit(data).model_
    stderr = np.sqrt(np.square(gb.learning.as_learner("mcmle").equations(model, data).noise).sum(axis=0))
    assert _coarse(model, stderr, moment_errors(model, data)) == pytest.approx(1.05 * 0.25)


def test_a_walk_stops_where_draws_are_worth_too_little(rng):
    model = random_model(gb.graphs.complete(4), rng)
    function = Reweighted(drawn(model, rng), np.zeros_like(model.theta), SmoothPenalty(0.0))
    assert function.worth(model.theta) == 1.0
    outside = model.theta + 2.0
    assert function.worth(outside) < 1 / 3
    edge = _edge(function, model.theta, outside, 1 / 3)
    assert 1 / 3 <= function.worth(edge) < 0.999


def test_noise_is_told_by_the_largest_and_by_the_typical_entry(rng):
    error = np.full(1000, 0.1)
    noise = np.abs(0.1 * rng.normal(size=1000))
    assert noise.max() <= _within(noise, error)
    one, all_of_them = noise.copy(), 2 * noise
    one[7] = 0.7
    assert one.max() > _within(one, error)
    assert all_of_them.max() > _within(all_of_them, error)


def test_rounds_end_within_their_stated_error_of_the_exact_maximum(rng):
    """Over five data sets: in units of the Monte Carlo error the distances have a mean square near one."""
    far = []
    for seed in range(5):
        data = sampled_data(random_model(gb.graphs.complete(6), rng, scale=0.3), 800, rng)
        sampled = gb.BoltzmannMachine(learner="mcmle", random_state=seed).fit(data)
        assert sampled.result_.converged, sampled.result_.reason
        exact = gb.BoltzmannMachine(learner="mle").fit(data)
        errors, exact_errors = standard_errors(sampled, data), standard_errors(exact, data)
        assert errors.kind == "fisher"
        # the two errors together; the information of ten thousand draws is right to some hundredths
        np.testing.assert_allclose(errors.theta_se, np.hypot(exact_errors.theta_se, errors.monte_carlo), rtol=0.07)
        far.append((sampled.model_.theta - exact.model_.theta) / errors.monte_carlo)
    assert 0.7 < np.sqrt(np.mean(np.square(far))) < 1.35


def test_a_round_that_leads_astray_is_taken_back(rng):
    """From a start whose chains are frozen in one state, moments get worse, and the steps shorter."""
    data = sampled_data(random_model(gb.graphs.complete(5), rng, scale=0.3), 500, rng)
    fit = gb.learning.MonteCarloLikelihood().bind(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(5))), data)
    state, _ = fit.step(fit.init(Key.of(rng))[0])
    astray = state.before + 3.0
    back, info = fit.step(state._replace(theta=astray))
    np.testing.assert_allclose(back.theta, state.before + 0.25 * (astray - state.before))
    assert info.step_size == 0.25
    assert back.trusted > state.trusted


def test_missing_cells_and_hidden_units_are_expected_under_the_model(rng):
    rows = sampled_data(random_model(gb.graphs.complete(4), rng, scale=0.4), 400, rng)
    cells = rows.variables.scores_of(rows.states[rows.row_of])
    cells[rng.random(cells.shape) < 0.1] = np.nan
    best, found = (
        gb.BoltzmannMachine(learner=learner, random_state=0, coding="spin").fit(cells) for learner in ("mle", "mcmle")
    )
    assert found.result_.converged, found.result_.reason
    assert best.score(cells) - found.score(cells) < 0.005
    with pytest.raises(ArgumentError, match="missing cells"):
        standard_errors(found, cells)


def test_independent_draws_are_worth_one_each_and_repeated_ones_a_share(rng):
    model = random_model(gb.graphs.complete(4), rng)
    model = model.replace(model.theta + 1.0)  # lopsided: both ends of the range count
    draws = drawn(model, rng, n_groups=400, n_draws=50)
    assert draws.repeats == pytest.approx(1.0, abs=0.15)
    five = Draws.of(model, np.repeat(draws.states, 5, axis=1))
    assert five.repeats == pytest.approx(5 * draws.repeats, rel=0.05)
    one = gb.Model(gb.PairwiseFamily(gb.graphs.grid(1, 1)), np.zeros(1))
    apart = np.array([[0.5], [-0.5]])  # variance 1 / 4 of their mean for 1 / 8 of eight independent draws
    assert Draws(one, np.ones((2, 4, 1)), apart, apart).repeats == 2.0
    same = np.ones((2, model.theta.size))
    assert Draws(model, draws.states[:2], same, same).repeats == 1.0


def test_the_covariance_of_draws_is_that_of_their_statistics(rng, monkeypatch):
    monkeypatch.setattr("gibbsian.learning.monte_carlo_likelihood.STATES_AT_ONCE", 7)
    model = random_model(gb.graphs.complete(3), rng)
    rows = gb.inference.exact(model).sample(20, rng)
    np.testing.assert_allclose(_covariance(model, rows), np.cov(model.family.statistics(rows).T), atol=1e-14)
