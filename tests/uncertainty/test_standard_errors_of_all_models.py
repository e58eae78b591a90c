"""Standard errors, intervals and bootstrap of models that are not pairwise: the same mathematics for all."""

import warnings

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import GibbsianWarning
from gibbsian.learning import as_learner
from gibbsian.uncertainty import bootstrap, confidence_intervals, standard_errors
from systems import dataset_of, exact_law, random_model_of

TRIANGLE = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2)], 3)


def system(kind):
    """Return a true model and the machine that learns models of its kind."""
    rng = np.random.default_rng(5)
    if kind == "higher-order":
        truth = random_model_of("products", TRIANGLE, rng, scale=0.3)
        return truth, lambda **settings: gb.HigherOrderBoltzmannMachine(
            cliques=list(truth.family.scopes), coding="spin", **settings
        )
    variables = gb.Variables.categories((3, 2, 2))
    truth = random_model_of("potts", gb.graphs.from_edges([(0, 1), (1, 2)], 3), rng, variables, scale=0.3)
    return truth, lambda **settings: gb.PottsMachine(graph="chain", **settings)


def rows_of(truth, n_rows, rng, holes=0.0):
    states, probabilities, _ = exact_law(truth)
    data = dataset_of(states[rng.choice(len(states), n_rows, p=probabilities)], truth.variables)
    if not holes:
        return data
    cells = data.decode(data.states[data.row_of]).astype(object)
    cells[rng.random(cells.shape) < holes] = None
    return gb.Dataset.read(cells, coding=data.coding)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["higher-order", "potts"])
@pytest.mark.parametrize("learner", ["mle", "mple"])
def test_intervals_cover_the_truth_as_often_as_they_say(kind, learner):
    """Of 60 data sets, nine in ten intervals hold the parameters of the truth, in the gauge in which they are told."""
    truth, machine = system(kind)
    rng, covered = np.random.default_rng(2), []
    for _ in range(60):
        data = rows_of(truth, 600, rng)
        intervals = confidence_intervals(machine(learner=learner).fit(data), data, level=0.9)
        covered.append(intervals.covers(truth.canonical().theta))
    rate = np.mean(covered)
    spread = np.std(np.mean(covered, axis=1)) / np.sqrt(60)
    assert abs(rate - 0.9) < 4 * spread + 0.01


@pytest.mark.parametrize("kind", ["higher-order", "potts"])
@pytest.mark.parametrize("weights", [None, "doubled"])
def test_sandwich_and_fisher_and_bootstrap_agree_where_the_model_is_right(kind, weights, rng):
    truth, machine = system(kind)
    data = rows_of(truth, 800, rng)
    given = None if weights is None else np.full(data.n_rows, 2.0)
    fitted = machine(learner="mle").fit(data, sample_weight=given)
    fisher, sandwich = (standard_errors(fitted, data, way, sample_weight=given) for way in ("fisher", "sandwich"))
    drawn = bootstrap(fitted, data, 60, random_state=0, sample_weight=given)
    np.testing.assert_allclose(sandwich.theta_se, fisher.theta_se, rtol=0.25, atol=1e-9)
    np.testing.assert_allclose(drawn.theta_se, fisher.theta_se, rtol=0.45, atol=1e-9)
    assert fisher.table.shape == (fitted.model_.canonical().theta.size, 2)
    assert drawn.intervals().table.columns.tolist() == ["estimate", "low", "high"]


def test_the_gauge_makes_no_difference(rng):
    """Errors are those of the zero-sum gauge, whatever gauge the fit ended in."""
    truth, machine = system("potts")
    data = rows_of(truth, 500, rng)
    fitted = machine(learner="mle").fit(data)
    errors = standard_errors(fitted, data)
    shifted = fitted.model_.theta.copy()
    shifted[:3] += 1.0  # all biases of one variable
    fitted.model_ = fitted.model_.replace(shifted)
    again = standard_errors(fitted, data)
    np.testing.assert_allclose(again.covariance, errors.covariance, atol=1e-8)
    np.testing.assert_allclose(again.model.theta, errors.model.theta, atol=1e-12)


@pytest.mark.parametrize("name", ["mple", "rm", "mpf"])
def test_errors_of_completed_rows_are_those_of_many_fits(name):
    """The spread of fits to 80 tables with a fifth of the cells missing, against the sandwich of each."""
    rng = np.random.default_rng(8)
    truth = random_model_of("pairwise", TRIANGLE, rng, scale=0.2)
    thetas, errors = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GibbsianWarning)
        for _ in range(80):
            data = rows_of(truth, 400, rng, holes=0.2)
            fitted = gb.BoltzmannMachine(learner=as_learner(name), coding="spin").fit(data)
            thetas.append(fitted.model_.theta)
            errors.append(standard_errors(fitted, data).theta_se)
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(thetas, axis=0, ddof=1), rtol=0.3)
