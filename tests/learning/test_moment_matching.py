"""Moment matching: its fixed point under a penalty, and the error of its gradient."""

import numpy as np

import gibbsian as gb
from gibbsian.estimate import Estimate
from gibbsian.expectations import Exact
from gibbsian.learning import MomentMatching, as_learner, run
from gibbsian.learning.optimizers import Ascent
from systems import random_model, sampled_data


class Blurred:
    """The exact expectation, said to be of samples."""

    stderr = 0.03

    def init(self, model, data, rng):
        return None

    def __call__(self, model, state):
        mean = Exact()(model)[0].value
        return Estimate(mean, np.full_like(mean, self.stderr)), state


def test_the_fixed_point_is_the_penalised_maximum(scores, rng):
    truth = random_model(gb.graphs.complete(3), rng, scores)
    data, start = sampled_data(truth, 300, rng), truth.replace(np.zeros_like(truth.theta))
    best = run(as_learner("mle", l2=0.1), start, data, rng, tol=1e-9).model.theta
    learner = MomentMatching("exact", Ascent(learning_rate=0.4), l2=0.1)
    found = run(learner, start, data, rng, tol=1e-8, max_iter=2000)
    assert found.converged
    np.testing.assert_allclose(found.model.theta, best, atol=1e-6)


def test_the_error_of_the_gradient_is_that_of_the_moments(rng):
    model = random_model(gb.graphs.complete(3), rng)
    learner = MomentMatching(Blurred(), average=True)
    state, _ = learner.step(learner.init(model, sampled_data(model, 50, rng), rng))
    np.testing.assert_allclose(state.progress.walk.variance, Blurred.stderr**2)
