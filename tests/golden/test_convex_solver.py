"""Penalised nodewise learners against an independent convex solver, one variable at a time."""

import numpy as np
import pytest
from scipy.optimize import minimize

import gibbsian as gb
from systems import random_model, sampled_data


def loss_of(name, products):
    """Value and gradient of one variable's loss, by its definition; `products` holds x_u and x_u x_j."""

    def rise(theta):
        e = np.exp(-products @ theta)
        return e.mean(), -products.T @ e / len(e)

    def logrise(theta):
        value, gradient = rise(theta)
        return np.log(value), gradient / value

    def rple(theta):
        costs = 2 * products @ theta
        return np.logaddexp(0, -costs).mean(), -2 * products.T @ (1 / (1 + np.exp(costs))) / len(costs)

    return {"rise": rise, "logrise": logrise, "rple": rple}[name]


def solve(name, spins, node, l1):
    """Minimise with the couplings split into positive and negative parts, which makes the penalty linear."""
    n = spins.shape[1]
    others = np.delete(np.arange(n), node)
    loss = loss_of(name, spins[:, [node]] * np.column_stack([np.ones(len(spins)), spins[:, others]]))

    def split(z):
        value, gradient = loss(np.concatenate([z[:1], z[1:n] - z[n:]]))
        slopes = np.concatenate([gradient[:1], gradient[1:] + l1, l1 - gradient[1:]])
        return value + l1 * z[1:].sum(), slopes

    bounds = [(None, None)] + [(0, None)] * (2 * (n - 1))
    options = {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000, "maxcor": 50}
    found = minimize(split, np.zeros(2 * n - 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    couplings = np.zeros(n)
    couplings[others] = found.x[1:n] - found.x[n:]
    return found.x[0], couplings


@pytest.mark.parametrize(("name", "c"), [("rise", 0.4), ("logrise", 0.8), ("rple", 0.2)])
@pytest.mark.parametrize(("n", "n_rows"), [(7, 500), (10, 2000)])
def test_theoretical_penalty_agrees_with_a_convex_solver(name, c, n, n_rows, rng):
    graph = gb.graphs.random(n, 0.3, rng)
    data = sampled_data(random_model(graph, rng, scale=0.5), n_rows, rng)
    spins = 2.0 * data.states[data.row_of] - 1.0
    machine = gb.BoltzmannMachine(learner=gb.learning.as_learner(name, l1="theory"), tol=1e-9).fit(data)
    l1 = c * np.sqrt(np.log(n**2 / 0.05) / n_rows)
    solved = [solve(name, spins, node, l1) for node in range(n)]
    directed = np.array([couplings for _, couplings in solved])
    biases, couplings = machine.model_.parts
    np.testing.assert_allclose(biases, [bias for bias, _ in solved], atol=1e-6)  # asked: 1e-5
    np.testing.assert_allclose(machine.model_.family.graph.matrix(couplings), (directed + directed.T) / 2, atol=1e-6)
    assert (directed == 0).any(), "the penalty should set some couplings to zero"
