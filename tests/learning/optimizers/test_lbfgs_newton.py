"""Optimisers against SciPy and against the conditions of optimality."""

import numpy as np
import pytest
from scipy.optimize import minimize

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.learning import LEARNERS
from gibbsian.learning.optimizers import LBFGS, Ascent, Newton
from gibbsian.learning.optimizers.base import Preconditioned, subgradient
from systems import random_model, sampled_data


def logistic_problem(seed=0, n_rows=200, n=12):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n)) * np.logspace(0, 1, n)
    y = np.where(rng.random(n_rows) < 0.5, 1.0, -1.0)

    def function(theta):
        margins = y * (x @ theta)
        value = np.logaddexp(0, -margins).mean() + 0.005 * theta @ theta
        slopes = -y / (1 + np.exp(margins)) / n_rows
        return float(value), x.T @ slopes + 0.01 * theta

    return function, n


def run(optimizer, function, theta, l1, tol=1e-9, most=20_000):
    state = optimizer.init(function, theta, l1)
    values = [state.value]
    for _ in range(most):
        state, info = optimizer.step(function, state, l1)
        values.append(info.value)
        if info.gradient_norm <= tol or info.outcome is not None:
            break
    return state, info, values


def test_lbfgs_finds_scipys_minimum_in_about_as_many_evaluations():
    function, n = logistic_problem()
    state, info, values = run(LBFGS(), function, np.zeros(n), np.zeros(n))
    reference = minimize(function, np.zeros(n), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 0})
    np.testing.assert_allclose(state.theta, reference.x, atol=1e-6)
    assert info.gradient_norm <= 1e-9
    assert info.evaluations <= 2 * reference.nfev
    assert np.all(np.diff(values) <= 1e-13)


def test_lbfgs_walks_the_rosenbrock_valley():
    from scipy.optimize import rosen, rosen_der

    state, _, _ = run(LBFGS(), lambda t: (rosen(t), rosen_der(t)), np.full(10, -1.2), np.zeros(10), tol=1e-8)
    np.testing.assert_allclose(state.theta, 1.0, atol=1e-7)


@pytest.mark.parametrize("optimizer", [LBFGS(), Ascent(learning_rate=0.02)], ids=["lbfgs", "ascent"])
@pytest.mark.parametrize("strength", [0.01, 0.1, 10.0])
def test_l1_ends_at_a_point_where_no_subgradient_is_left(optimizer, strength):
    function, n = logistic_problem()
    l1 = np.full(n, strength)
    l1[0] = 0.0  # as a bias: free
    state, _, _ = run(optimizer, function, np.zeros(n), l1, tol=1e-7)
    gradient = function(state.theta)[1]
    at_zero = state.theta == 0
    assert np.all(np.abs(gradient[at_zero]) <= l1[at_zero] + 1e-6)
    np.testing.assert_allclose(gradient[~at_zero], -l1[~at_zero] * np.sign(state.theta[~at_zero]), atol=1e-6)
    assert at_zero[1:].all() == (strength == 10.0)


def test_start_at_the_minimum_stalls_quietly():
    function = lambda theta: (float(theta @ theta), 2 * theta)  # noqa: E731
    _, info, _ = run(LBFGS(), function, np.zeros(3), np.zeros(3))
    assert info.gradient_norm == 0


def test_value_that_overflows_is_stepped_back_from():
    def steep(theta):
        with np.errstate(over="ignore"):
            return float(np.exp(theta[0] * 1e3) - theta[0]), np.array([1e3 * np.exp(theta[0] * 1e3) - 1])

    state, _, _ = run(LBFGS(), steep, np.array([-5.0]), np.zeros(1), tol=1e-8)
    assert state.theta[0] == pytest.approx(-np.log(1e3) / 1e3, abs=1e-9)


def test_subgradient_is_zero_only_where_the_penalty_can_balance():
    theta, gradient, l1 = np.array([0.0, 0.0, -1.0]), np.array([0.4, 0.6, 0.5]), np.full(3, 0.5)
    np.testing.assert_allclose(subgradient(theta, gradient, l1), [0.0, 0.1, 0.0], atol=1e-15)


def test_bad_settings_are_named():
    with pytest.raises(ArgumentError, match="rate=0"):
        Ascent(learning_rate=0)
    with pytest.raises(ArgumentError, match="memory=0"):
        LBFGS(memory=0)


class TestNewton:
    @pytest.fixture
    def data(self, rng, scores):
        return sampled_data(random_model(gb.graphs.complete(5), rng, scores, scale=0.4), 500, rng)

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")  # ratio matching bears l2=0.1 worst
    @pytest.mark.parametrize("learner", ["mle", "mple", "mpf", "rm"])
    @pytest.mark.parametrize("l2", [0.0, 0.1])
    def test_lands_where_lbfgs_does_in_a_handful_of_steps(self, data, learner, l2):
        newton, lbfgs = (
            gb.BoltzmannMachine(learner=LEARNERS.create(learner, optimizer=name, l2=l2), tol=1e-9).fit(data)
            for name in ("newton", "lbfgs")
        )
        np.testing.assert_allclose(newton.model_.theta, lbfgs.model_.theta, atol=1e-6)
        assert newton.result_.converged
        assert newton.result_.n_steps <= 10

    def test_steps_are_shortened_where_a_full_one_would_climb(self):
        """log cosh has a Newton step that overshoots without bound from far away."""

        class Steep:
            def __call__(self, theta):
                return float(np.logaddexp(theta, -theta).sum()), np.tanh(theta)

            def hessian(self, theta):
                return np.diag(1 - np.tanh(theta) ** 2)

        state, info, values = run(Newton(), Steep(), np.array([3.0, -2.0]), np.zeros(2))
        np.testing.assert_allclose(state.theta, 0.0, atol=1e-8)
        assert np.all(np.diff(values) <= 1e-13)
        assert info.gradient_norm <= 1e-9

    def test_saddles_are_left_downhill(self):
        class Saddle:
            def __call__(self, theta):
                x, y = theta
                return x**2 - y**2 + y**4, np.array([2 * x, -2 * y + 4 * y**3])

            def hessian(self, theta):
                return np.diag([2.0, -2 + 12 * theta[1] ** 2])

        state, _, _ = run(Newton(), Saddle(), np.array([1.0, 0.1]), np.zeros(2))
        np.testing.assert_allclose(np.abs(state.theta), [0.0, np.sqrt(0.5)], atol=1e-6)

    def test_refuses_what_it_cannot_do(self, data):
        with pytest.raises(ArgumentError, match="takes no l1"):
            gb.BoltzmannMachine(learner=LEARNERS.create("mple", optimizer="newton", l1=0.1)).fit(data)
        with pytest.raises(ArgumentError, match="needs an objective with a Hessian"):
            Newton().init(lambda theta: (0.0, theta), np.zeros(2), np.zeros(2))


def test_few_parameters_with_a_metric_remember_every_step(rng):
    turned = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    hessian = turned @ np.diag(np.geomspace(1.0, 1e4, 40)) @ turned.T

    def bowl(theta):
        return float(theta @ hessian @ theta) / 2, hessian @ theta

    def steps_and_memory(function):
        optimizer, l1 = LBFGS(memory=3), np.zeros(40)
        state, norm, steps = optimizer.init(function, np.ones(40), l1), np.inf, 0
        while norm > 1e-6:
            state, info = optimizer.step(function, state, l1)
            norm, steps = info.gradient_norm, steps + 1
        return steps, len(state.moves)

    with_metric, remembered = steps_and_memory(Preconditioned(bowl, lambda gradient: gradient / np.diag(hessian)))
    without, few = steps_and_memory(bowl)
    assert few == 3
    assert remembered == with_metric
    assert with_metric < without / 2
