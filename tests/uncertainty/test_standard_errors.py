"""Standard errors against direct computation and simulation; the bootstrap and its accidents."""

import numpy as np
import pandas
import pytest

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    DataError,
    DegenerateDataWarning,
    TooExpensiveError,
)
from gibbsian.learning.objectives import OBJECTIVES, Likelihood, Pseudolikelihood, value_and_gradient
from gibbsian.progress import reporting
from gibbsian.uncertainty import bootstrap, confidence_intervals, standard_errors
from gibbsian.uncertainty.bootstrap import BootstrapResult
from gibbsian.uncertainty.standard_errors import _LEAST_INFORMATION, _inverse, fitted_learner
from gibbsian.uncertainty.tables import ConfidenceIntervals
from systems import all_states, dataset_of, exact_law, random_model, sampled_data

FLIP_COST_LEARNERS = {"mple": "pseudolikelihood", "rm": "ratio-matching", "mpf": "probability-flow"}


def fit(data, learner="mle", **settings):
    return gb.BoltzmannMachine(**{"learner": learner, "tol": 1e-8, **settings}).fit(data)


@pytest.fixture
def data(rng, scores):
    return sampled_data(random_model(gb.graphs.complete(4), rng, scores, scale=0.3), 300, rng)


def rows_of(data):
    return data.decode(data.states[data.row_of]).astype(float)


def sandwich_by_hand(objective, machine, x, left=slice(None)):
    """Scores row by row and the Hessian by differences of the whole objective's gradient, of the entries left."""
    model, coding = machine.model_, machine.coding_
    scores = np.array([value_and_gradient(objective, model, gb.Dataset.read(row[None], coding=coding))[1] for row in x])
    function = objective.bind(model, gb.Dataset.read(x, coding=coding))
    step = 1e-5
    hessian = [
        (function(model.theta + step * unit)[1] - function(model.theta - step * unit)[1]) / (2 * step)
        for unit in np.eye(model.theta.size)
    ]
    bread = np.array(hessian) + fitted_learner(machine, None).l2 * np.eye(model.theta.size)
    inverse = np.linalg.inv(bread[left][:, left])
    natural = inverse @ np.cov(scores[:, left].T, bias=True) @ inverse / len(x)
    return machine.temperature**2 * natural


def test_what_an_l1_penalty_left_is_as_sure_as_under_the_l2_penalty_alone(data):
    """The sandwich of the couplings that are left, with the ridge counted once."""
    machine = fit(data, "mple", l1={"spin": 0.2, "binary": 0.05}[data.coding.name], l2=0.1)
    errors = standard_errors(machine, data)
    left = (machine.model_.theta != 0) | ~machine.model_.penalised
    assert 0 < (~left).sum() < left.size
    free = np.ix_(left, left)
    expected = sandwich_by_hand(Pseudolikelihood(), machine, rows_of(data), left)
    np.testing.assert_allclose(errors.covariance[free], expected, rtol=1e-5, atol=1e-9)
    assert np.isnan(errors.covariance[~left]).all()


# -- covariances ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", FLIP_COST_LEARNERS)
@pytest.mark.parametrize(
    "settings", [{}, {"graph": "grid:2x2", "temperature": 1.5}, {"bias": False}, {"l2": 0.1}], ids=str
)
def test_sandwich_of_conditionals_by_hand(learner, settings, data):
    machine = fit(data, learner, **settings)
    errors = standard_errors(machine, data)
    expected = sandwich_by_hand(OBJECTIVES.create(FLIP_COST_LEARNERS[learner]), machine, rows_of(data))
    np.testing.assert_allclose(errors.covariance, expected, rtol=1e-5, atol=1e-9)
    assert errors.kind == "sandwich"


@pytest.mark.parametrize("settings", [{}, {"graph": "grid:2x2", "temperature": 1.5}, {"bias": False}], ids=str)
def test_fisher_and_sandwich_of_the_likelihood_by_enumeration(settings, data):
    machine = fit(data, **settings)
    model, temperature = machine.model_, machine.temperature
    states, probabilities, _ = exact_law(model)
    i, j = model.family.graph.edges.T

    def statistics(x):
        return np.hstack([x[:, : 4 * model.family.bias], x[:, i] * x[:, j]]) / temperature

    inverse = np.linalg.inv(np.cov(statistics(model.variables.scores_of(states)).T, aweights=probabilities, bias=True))
    fisher, sandwich = (standard_errors(machine, data, kind) for kind in ("fisher", "sandwich"))
    np.testing.assert_allclose(fisher.covariance, inverse / 300, rtol=1e-6, atol=1e-12)
    middle = np.cov(statistics(rows_of(data)).T, bias=True)
    np.testing.assert_allclose(sandwich.covariance, inverse @ middle @ inverse / 300, rtol=1e-6, atol=1e-12)
    assert standard_errors(machine, data).kind == "fisher"


def test_both_roads_to_the_information_agree(data, monkeypatch):
    machine = fit(data, graph="grid:2x2")
    enumerated = Likelihood().curvature(machine.model_, data, 60.0)
    monkeypatch.setattr("gibbsian.learning.objectives.curvature.FLOPS_PER_SECOND", 1.0)
    np.testing.assert_allclose(Likelihood().curvature(machine.model_, data, 60.0), enumerated, atol=1e-8)


def test_observed_information_with_missing_cells(data, rng):
    """Second differences of the log-likelihood, summed over completions by its definition."""
    x = rows_of(data)
    x[rng.random(x.shape) < 0.1] = np.nan
    machine = fit(gb.Dataset.read(x, coding=data.coding))
    model = machine.model_
    states = data.variables.scores_of(all_states(data.variables))
    agree = np.array([[(np.isnan(row) | (row == state)).all() for state in states] for row in x])

    def loss(theta):
        _, probabilities, _ = exact_law(model.replace(theta))
        return -np.log(agree @ probabilities).mean()

    step, units = 1e-3, np.eye(10)

    def corner(a, b):
        return loss(model.theta + step * (a * units[k] + b * units[l]))

    hessian = np.zeros((10, 10))
    for k in range(10):
        for l in range(10):  # noqa: E741
            hessian[k, l] = (corner(1, 1) - corner(1, -1) - corner(-1, 1) + corner(-1, -1)) / (4 * step**2)
    errors = standard_errors(machine, x)
    np.testing.assert_allclose(np.linalg.inv(errors.covariance) / errors.n_rows, hessian, atol=1e-5)
    sandwich = standard_errors(machine, x, "sandwich")
    # the model is right, so both estimate one thing
    np.testing.assert_allclose(sandwich.theta_se, errors.theta_se, rtol=0.3)


def test_missing_cells_cost_precision(data, rng):
    x = rows_of(data)
    whole = standard_errors(fit(data), data)
    x[:, 1:][rng.random((300, 3)) < 0.2] = np.nan
    holed = gb.Dataset.read(x, coding=data.coding)
    errors = standard_errors(fit(holed), holed)
    assert (errors.theta_se > whole.theta_se).all()


@pytest.mark.long
@pytest.mark.parametrize("learner", ["rise", "logrise", "rple"])
def test_nodewise_agrees_with_the_bootstrap(learner, data):
    machine = fit(data, learner)
    errors = standard_errors(machine, data)
    resampled = bootstrap(machine, data, 300, random_state=1)
    np.testing.assert_allclose(errors.theta_se, resampled.theta_se, rtol=0.2)


def test_conversion_carries_over(rng):
    """J01 = 4 J, so its error is four times as large, whatever the objective."""
    spins = sampled_data(random_model(gb.graphs.complete(4), rng, scale=0.3), 300, rng)
    for learner in ("mle", "mple", "rple"):
        spin, binary = (
            standard_errors(fit(d, learner, tol=1e-10), d).couplings.to_numpy()
            for d in (spins, spins.convert("binary"))
        )
        np.testing.assert_allclose(binary, 4 * spin, rtol=1e-5)


# -- weights, penalties, tables ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", ["mle", "mple"])
def test_meanings_of_weights(learner, data, rng):
    x, counts = rows_of(data), rng.integers(1, 4, size=data.n_rows).astype(float)
    repeated = gb.Dataset.read(np.repeat(x, counts.astype(int), axis=0), coding=data.coding)
    machine = fit(repeated, learner)
    as_rows = standard_errors(machine, repeated, "sandwich").covariance
    weighted = standard_errors(machine, x, "sandwich", sample_weight=counts)
    np.testing.assert_allclose(weighted.covariance, as_rows, rtol=1e-9)
    assert weighted.n_rows == pytest.approx(counts.sum())
    # importance: the scale of the weights does not matter, and uneven weights waste rows
    scaled = [
        standard_errors(machine, x, "sandwich", sample_weight=factor * counts, weights="importance")
        for factor in (1.0, 7.0)
    ]
    np.testing.assert_allclose(scaled[0].covariance, scaled[1].covariance, rtol=1e-9)
    assert scaled[0].n_rows == pytest.approx(counts.sum() ** 2 / (counts**2).sum())


def test_couplings_at_zero_have_no_error(data):
    machine = fit(data, "mple", l1=0.15)
    errors = standard_errors(machine, data)
    zero = machine.model_.theta == 0
    assert zero.any()
    assert np.array_equal(np.isnan(errors.theta_se), zero)
    assert errors.notes == ("the bias of the penalty is not in the standard errors",)
    # the rest is the sandwich on the graph that is left
    graph = gb.Graph(4, machine.model_.family.graph.edges[~zero[4:]])
    left = fit(data, "mple", graph=graph, l1=0.15)
    np.testing.assert_allclose(errors.theta_se[~zero], standard_errors(left, data).theta_se, rtol=1e-4)


def test_tables_look_like_the_machines(rng):
    model = random_model(gb.graphs.grid(1, 3), rng)
    data = sampled_data(model, 200, rng)
    frame = pandas.DataFrame(data.decode(data.states), columns=["a", "b", "c"])
    machine = fit(frame, graph="chain")
    errors, intervals = standard_errors(machine, frame), confidence_intervals(machine, frame, level=0.9)
    for table in (errors.couplings, intervals.couplings_low, intervals.couplings_high):
        assert table.index.equals(machine.couplings_.index)
        assert table.columns.equals(machine.couplings_.columns)
        assert table.loc["a", "c"] == 0
        assert table.loc["a", "b"] == table.loc["b", "a"]
    np.testing.assert_allclose(errors.biases, errors.theta_se[:3])
    reach = 1.6448536269514722 * errors.couplings
    np.testing.assert_allclose(intervals.couplings_high, machine.couplings_ + reach, atol=1e-12)
    np.testing.assert_allclose(intervals.biases_low, machine.biases_ - 1.6448536269514722 * errors.biases, atol=1e-12)


# -- coverage ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "learner", ["mle", "mple", *(pytest.param(each, marks=pytest.mark.long) for each in ("mpf", "rise"))]
)
def test_intervals_cover_the_truth_as_often_as_they_say(learner, rng):
    truth = random_model(gb.graphs.complete(4), rng, scale=0.3)
    states, probabilities, _ = exact_law(truth)
    covered = []
    for counts in rng.multinomial(500, probabilities, size=300):
        sample = dataset_of(states, truth.variables, counts)
        machine = gb.BoltzmannMachine(learner=learner).fit(sample)
        covered.append(confidence_intervals(machine, sample).covers(truth.theta))
    assert 0.92 < np.mean(covered) < 0.98
    assert (np.mean(covered, axis=0) > 0.90).all()


# -- refusals ---------------------------------------------------------------------------------------------------------
def test_refusals(data):
    mple = fit(data, "mple")
    with pytest.raises(ArgumentError, match="kind='fisher' belongs to the exact likelihood"):
        standard_errors(mple, data, "fisher")
    with pytest.raises(ArgumentError, match="kind='jackknife'"):
        standard_errors(mple, data, "jackknife")
    with pytest.raises(ArgumentError, match="weights='odd'"):
        standard_errors(mple, data, weights="odd")
    with pytest.raises(ArgumentError, match="level=95"):
        confidence_intervals(mple, data, level=95)
    with pytest.raises(TooExpensiveError, match=r"10 parameters .* max_seconds=1e-09"):
        standard_errors(mple, data, max_seconds=1e-9)
    with pytest.raises(ArgumentError, match="bootstrap"):
        standard_errors(fit(data, "logrise", l2=0.1), data)
    mple.learner = gb.learning.MomentMatching("exact")
    with pytest.raises(ArgumentError, match="bootstrap"):
        standard_errors(mple, data)


def test_memory_is_asked_for(data, monkeypatch):
    machine = fit(data, "mple")
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-6")
    with pytest.raises(TooExpensiveError, match="standard errors of 10 parameters needs"):
        standard_errors(machine, data)


def test_undetermined_parameters_are_said():
    x = np.array([[1, 1, 1, 1], [-1, -1, -1, -1]] * 20)  # four fields cannot tell six couplings apart
    with pytest.warns(DegenerateDataWarning):
        machine = gb.BoltzmannMachine(learner="mple", l2=0.1).fit(x)
    machine.result_.provenance["l2"] = 0.0
    with pytest.raises(DataError, match="do not determine every parameter"):
        standard_errors(machine, x)


# -- bootstrap --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", ["mle", "mple"])
def test_bootstrap_and_sandwich_agree(learner, data):
    machine = fit(data, learner, tol=1e-5)
    result = bootstrap(machine, data, 300, random_state=0)
    errors = standard_errors(machine, data, "sandwich")
    np.testing.assert_allclose(result.theta_se, errors.theta_se, rtol=0.2)
    assert result.n_unconverged == 0


def test_replicates_depend_on_the_seed_and_their_number_only(data):
    machine = fit(data, "mple")
    first, again, longer, other = (
        bootstrap(machine, data, n, random_state=seed).thetas for n, seed in ((5, 3), (5, 3), (8, 3), (5, 4))
    )
    assert np.array_equal(first, again)
    assert np.array_equal(first, longer[:5])
    assert not np.array_equal(first, other)


def test_a_warm_refit_is_the_fit_of_the_resampled_rows(data):
    machine = fit(data, "mple")
    theta = bootstrap(machine, data, 2, random_state=3).thetas[1]
    rng = np.random.default_rng(3).spawn(2)[1]
    counts = rng.multinomial(300, data.weights / 300)
    cold = fit(dataset_of(data.states, data.variables, counts), "mple")
    np.testing.assert_allclose(theta, cold.model_.theta, atol=1e-6)


def test_penalties_stay_in_the_refits(data):
    machine = fit(data, "mple", l1=0.15)
    assert (bootstrap(machine, data, 10, random_state=0).thetas == 0).any()


def test_a_failing_replicate_is_survived(rng):
    """One row alone shows a pair of values: a third of all resamples lack it and have no finite maximum."""
    x = np.array([[1, 1]] * 30 + [[-1, -1]] * 30 + [[1, -1]] * 20 + [[-1, 1]])
    machine = fit(x)
    with pytest.warns(DegenerateDataWarning, match="of 40 bootstrap replicates failed and are left out") as told:
        result = bootstrap(machine, x, 40, random_state=0)
    assert len(told) == 1
    assert 5 < len(result.failures) < 25
    assert len(result.thetas) == 40 - len(result.failures)
    assert all("no finite" in reason or "never" in reason for _, reason in result.failures), result.failures[0]


def test_when_all_fail_it_says_why():
    x = np.array([[1, 1]] * 5 + [[-1, -1]] * 5 + [[1, -1], [-1, 1]])
    machine = fit(x)
    machine.learner = as_broken()
    with pytest.raises(DataError, match="20 of 20 bootstrap replicates failed, the first because: broken"):
        bootstrap(machine, x, 20, random_state=0)


def as_broken():
    class Broken(gb.learning.Learner):
        penalties = gb.learning.base.Penalties(l2=1.0)

        def bind(self, model, data):
            raise FloatingPointError("broken")

    return Broken()


def test_progress_is_told(data):
    seen = []
    with reporting(lambda *told: seen.append(told)):
        bootstrap(fit(data, "mple"), data, 3, random_state=0)
    assert seen == [("bootstrap refits", 1, 3), ("bootstrap refits", 2, 3), ("bootstrap refits", 3, 3)]


def test_basic_intervals_mirror_percentiles(data):
    machine = fit(data, "mple")
    result = bootstrap(machine, data, 50, random_state=0)
    percentile, basic = (result.intervals(0.8, kind) for kind in ("percentile", "basic"))
    np.testing.assert_allclose(basic.low, 2 * machine.model_.theta - percentile.high)
    np.testing.assert_allclose(percentile.low, np.quantile(result.thetas, 0.1, axis=0))
    assert result.couplings.shape == machine.couplings_.shape
    with pytest.raises(ArgumentError, match="kind='bca'"):
        result.intervals(kind="bca")


def test_importance_weights_are_drawn_with_their_rows(data, rng):
    x, weights = rows_of(data), rng.uniform(0.5, 2.0, size=300)
    machine = gb.BoltzmannMachine(learner="mple").fit(gb.Dataset.read(x, coding=data.coding, sample_weight=weights))
    result = bootstrap(machine, x, 300, random_state=0, sample_weight=weights, weights="importance")
    errors = standard_errors(machine, x, sample_weight=weights, weights="importance")
    np.testing.assert_allclose(result.theta_se, errors.theta_se, rtol=0.2)
    with pytest.raises(DataError, match="add up to 1 rows"):
        bootstrap(machine, x, 5, sample_weight=weights / weights.sum())


def test_too_few_replicates_are_refused(data):
    with pytest.raises(ArgumentError, match="n_replicates=1"):
        bootstrap(fit(data, "mple"), data, 1)


def test_scores_of_complete_rows_have_mean_zero_at_the_optimum(data):
    machine = fit(data, "mple", tol=1e-10)
    total = sum(data.weights[block] @ s for block, s in Pseudolikelihood().scores(machine.model_, data))
    np.testing.assert_allclose(total / 300, 0.0, atol=1e-9)


def test_errors_of_a_converted_machine_are_not_guessed(x):
    machine = gb.BoltzmannMachine(learner="mle", l2=0.05, validation_fraction=0.2, random_state=0).fit(x)
    converted = machine.convert("spin")
    assert converted.result_.held_out == machine.result_.held_out
    assert converted.result_.penalised
    with pytest.raises(ArgumentError, match="converted from the coding binary"):
        gb.uncertainty.standard_errors(converted, 2 * x - 1)
    with pytest.raises(ArgumentError, match="converted from the coding binary"):
        gb.uncertainty.bootstrap(converted, 2 * x - 1, 5)


def test_penalty_of_the_fit_decides_the_errors(x):
    machine = gb.BoltzmannMachine(learner="mle", l2=0.05).fit(x)
    before = gb.uncertainty.standard_errors(machine, x).theta_se
    np.testing.assert_array_equal(gb.uncertainty.standard_errors(machine.set_params(l2=5.0), x).theta_se, before)


def test_an_interval_that_ends_at_zero_holds_zero():
    model = random_model(gb.graphs.complete(2), np.random.default_rng(0))
    low, high = np.array([0.0, 0.1, -1.0]), np.array([1.0, 1.0, 0.0])
    assert ConfidenceIntervals(low, high, 0.95, model, ("a", "b"))._facts()["without zero"] == 1


def test_tables_of_refits_by_hand(rng):
    model = random_model(gb.graphs.complete(2), rng).replace(np.array([0.1, -0.2, 0.3]))
    thetas = rng.normal(0.2, 0.4, (41, 3))
    result = BootstrapResult(thetas, model, ("a", "b"), 41)
    np.testing.assert_allclose(result.theta_se, np.sqrt(((thetas - thetas.mean(axis=0)) ** 2).sum(axis=0) / 40))
    low, high = np.sort(thetas, axis=0)[[4, 36]]  # ranks of the middle 80 percent among 41
    percentile, basic = (result.intervals(0.8, kind) for kind in ("percentile", "basic"))
    np.testing.assert_allclose([percentile.low, percentile.high], [low, high])
    np.testing.assert_allclose([basic.low, basic.high], [2 * model.theta - high, 2 * model.theta - low])
    shown = result.stability.loc["a*b"]
    ranks = np.sort(thetas[:, 2])
    assert shown["estimate"] == 0.3
    assert shown["share"] == (thetas[:, 2] > 0).mean()
    np.testing.assert_allclose([shown["low"], shown["high"]], [ranks[1], ranks[39]])  # of the middle 95 percent


def test_information_is_inverted_in_any_units_and_refused_where_singular(rng):
    root = rng.normal(size=(4, 4))
    units = np.diag([1e-6, 1.0, 1e3, 1e6])
    for matrix in (root @ root.T + np.eye(4), np.eye(4) + 0.1 * root):  # symmetric, and not
        exact = np.linalg.inv(units) @ np.linalg.inv(matrix) @ np.linalg.inv(units)
        np.testing.assert_allclose(_inverse(units @ matrix @ units), exact, rtol=1e-9)
    for twist in (0.0, 1e-14):
        near = np.sqrt(1 - _LEAST_INFORMATION / 10)
        with pytest.raises(DataError, match="singular"):
            _inverse(np.array([[1.0, near], [near + twist, 1.0]]))
    enough = np.sqrt(1 - 100 * _LEAST_INFORMATION)
    assert np.isfinite(_inverse(np.array([[1.0, enough], [enough, 1.0]]))).all()


def test_standard_errors_under_a_penalty_are_those_of_the_sandwich():
    """The penalty bends the equations, but it adds nothing to how they vary: ``(I + l2)^-1 I (I + l2)^-1 / N``."""
    rows = np.random.default_rng(0).integers(0, 2, (200, 3))
    machine = gb.BoltzmannMachine(learner="mle", l2=0.05).fit(rows)
    model = machine.model_
    states = np.array([[(k >> i) & 1 for i in range(3)] for k in range(8)])
    law = np.exp(model.log_weights(states) - np.logaddexp.reduce(model.log_weights(states)))
    information = np.cov(model.family.statistics(states).T, aweights=law, bias=True)
    bread = np.linalg.inv(information + 0.05 * np.eye(len(information)))
    expected = np.sqrt(np.diag(bread @ information @ bread) / len(rows))
    np.testing.assert_allclose(gb.uncertainty.standard_errors(machine, rows).theta_se, expected, rtol=1e-6)


def test_the_bootstrap_gives_the_intervals_that_cover_better():
    """Percentile intervals cover 0.929 where basic ones cover 0.953."""
    rows = np.random.default_rng(0).random((60, 2)) < [0.2, 0.6]
    machine = gb.BoltzmannMachine(learner="mle", l2=0.05).fit(rows.astype(int))
    refits = gb.uncertainty.bootstrap(machine, rows.astype(int), n_replicates=20, random_state=0)
    chosen, basic = refits.intervals(), refits.intervals(kind="basic")
    np.testing.assert_array_equal(chosen.low, basic.low)
