"""Y18 section 5: the curves of all methods on a 4x4 grid, N = 2000, eta = 0.2."""

from functools import cache

import numpy as np
import pytest

from gibbsian_reproduction.y18 import draw_data, draw_network, path_of, solve


@cache
def curve_of(method, n_steps=120, n_trials=8):
    """The mean error to the exact solution after each step, averaged over data sets."""
    rng, total = np.random.default_rng(1), np.zeros(n_steps + 1)
    for _ in range(n_trials):
        data = draw_data(draw_network(rng), 2000, rng)
        total += np.abs(path_of(method, data, n_steps) - solve("mle", data)).mean(axis=1)
    return total / n_trials


def test_every_learner_starts_at_the_same_error():
    starts = {round(curve_of(method)[0], 12) for method in ("mle", "mple", "rm", "mpf")}
    assert len(starts) == 1
    assert starts.pop() == pytest.approx(0.15, abs=0.02)  # the mean of |U[-0.3, 0.3]|


def test_exact_likelihood_goes_to_its_own_solution():
    assert curve_of("mle")[-1] < 1e-6


def test_ratio_matching_flow_and_pseudolikelihood_end_near_each_other():
    ends = np.array([curve_of(method)[-1] for method in ("mple", "rm", "mpf")])
    assert ends.max() < 0.008
    assert ends.max() / ends.min() < 1.4


def test_flow_converges_fastest_of_the_three():
    def steps_to_converge(curve):
        return int(np.flatnonzero(np.abs(curve - curve[-1]) < 0.05 * curve[-1])[0])

    steps = {method: steps_to_converge(curve_of(method)) for method in ("mple", "rm", "mpf")}
    assert steps["mpf"] < min(steps["mple"], steps["rm"])


@pytest.mark.parametrize("method", ["cd", "pcd"])
def test_curves_of_the_sampled_learners_fall_too(method):
    """Contrastive divergence and persistent chains, with their noise."""
    curve = curve_of(method, n_steps=80, n_trials=2)
    assert curve[-20:].mean() < 0.15 * curve[0]
