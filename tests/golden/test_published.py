"""Against published answers and independent optimisers, on real tables."""

import numpy as np
import pytest
from scipy.optimize import minimize

import gibbsian as gb
from systems import BINARY, all_states


@pytest.mark.parametrize("table", ["scotus_rehnquist", "alaska_court", "california_assembly_blocs", "spdr_sectors"])
def test_couplings_of_pivotal_votes(shared_data, table):
    """Lee, Katz, Bommarito and Ginsparg published the exact pairwise solution of these votes.

    They fitted the votes together with their mirror image, so all fields vanish.
    """
    file = np.load(shared_data(f"pivotal_votes/{table}.npz"))
    spins = 2 * file["x"].astype(int) - 1
    machine = gb.BoltzmannMachine(learner="mle", l2=0, tol=1e-10).fit(np.vstack([spins, -spins]))
    np.testing.assert_allclose(machine.model_.theta, file["hJ"], atol=1e-6)


@pytest.mark.parametrize("columns", [slice(4, 12), slice(6, 14), slice(9, 17)])
def test_maximum_likelihood_of_eight_votes_agrees_with_an_independent_optimiser(columns):
    votes = gb.datasets.load_house_votes().complete_rows()
    x = votes.states[votes.row_of][:, columns].astype(float)
    machine = gb.BoltzmannMachine(learner="mle", l2=0).fit(x)
    # nothing of gibbsian below: the likelihood by its definition, SciPy's trust-region Newton
    i, j = np.triu_indices(8, 1)
    states = all_states(BINARY(8)).astype(float)
    statistics = np.hstack([states, states[:, i] * states[:, j]])
    target = np.hstack([x, x[:, i] * x[:, j]]).mean(axis=0)

    def law(theta):
        scores = statistics @ theta
        log_partition = np.logaddexp.reduce(scores)
        return np.exp(scores - log_partition), log_partition

    def hessian(theta):
        p, _ = law(theta)
        mean = p @ statistics
        return (statistics * p[:, None]).T @ statistics - np.outer(mean, mean)

    found = minimize(
        lambda theta: law(theta)[1] - theta @ target,
        np.zeros(36),
        jac=lambda theta: law(theta)[0] @ statistics - target,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    assert machine.score(x) == pytest.approx(-found.fun, abs=1e-8)  # asked: 1e-4
    np.testing.assert_allclose(machine.model_.theta, found.x, atol=1e-3)
