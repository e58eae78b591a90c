"""Y18 section 5: the curves of all methods on a 4x4 grid, N = 2000, eta = 0.2."""

import numpy as np
import pytest

from gibbsian.papers.y18 import figure_3


@pytest.fixture(scope="module")
def curves():
    return figure_3(n_rows=2000, n_trials=8, n_steps=120, random_state=1).curves


def test_every_learner_starts_at_the_same_error(curves):
    assert len({round(curve[0], 12) for curve in curves.values()}) == 1
    assert curves["mle"][0] == pytest.approx(0.15, abs=0.02)  # the mean of |U[-0.3, 0.3]|


def test_exact_likelihood_goes_to_its_own_solution(curves):
    assert curves["mle"][-1] < 1e-6


def test_ratio_matching_flow_and_pseudolikelihood_end_near_each_other(curves):
    ends = np.array([curves[name][-1] for name in ("mple", "rm", "mpf")])
    assert ends.max() < 0.008
    assert ends.max() / ends.min() < 1.4


def test_flow_converges_fastest_of_the_three(curves):
    def steps_to_converge(curve):
        return int(np.flatnonzero(np.abs(curve - curve[-1]) < 0.05 * curve[-1])[0])

    steps = {name: steps_to_converge(curves[name]) for name in ("mple", "rm", "mpf")}
    assert steps["mpf"] < min(steps["mple"], steps["rm"])


def test_curves_of_the_sampled_learners_fall_too():
    """Contrastive divergence and persistent chains, with their noise."""
    curves = figure_3(n_rows=2000, n_trials=2, n_steps=80, learners=("cd", "pcd"), random_state=1).curves
    for curve in curves.values():
        assert curve[-20:].mean() < 0.15 * curve[0]
