"""Optimisers against SciPy and against the conditions of optimality."""

import numpy as np
import pytest
from scipy.optimize import minimize

from gibbsian.errors import ArgumentError
from gibbsian.learning.optimizers import LBFGS, Ascent
from gibbsian.learning.optimizers.base import Preconditioned, subgradient


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
