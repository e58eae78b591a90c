"""Moment matching: its fixed point under a penalty, and the error of its gradient."""

import numpy as np

import gibbsian as gb
from gibbsian.estimate import Estimate
from gibbsian.expectations.exact import BoundExact
from gibbsian.learning import MomentMatching, as_learner, run
from gibbsian.learning.optimizers import Ascent
from gibbsian.rng import Key
from systems import random_model, sampled_data


class BoundBlur(BoundExact):
    """The exact expectation, said to be of samples."""

    stderr = 0.03

    def __call__(self, theta, state, starts=None):
        mean = super().__call__(theta, state)[0].value
        return Estimate(mean, np.full_like(mean, self.stderr)), state


class Blurred:
    needs_starts = False

    def bind(self, model, clamp=None, starts=None):
        return BoundBlur(**vars(gb.expectations.Exact().bind(model, clamp)))


def test_the_fixed_point_is_the_penalised_maximum(scores, rng):
    truth = random_model(gb.graphs.complete(3), rng, scores)
    data, start = sampled_data(truth, 300, rng), truth.replace(np.zeros_like(truth.theta))
    best = run(as_learner("mle", l2=0.1), start, data, rng, tol=1e-9).model.theta
    learner = MomentMatching("exact", optimizer=Ascent(learning_rate=0.4), l2=0.1)
    found = run(learner, start, data, rng, tol=1e-8, max_iter=2000)
    assert found.converged
    np.testing.assert_allclose(found.model.theta, best, atol=1e-6)


def test_the_error_of_the_gradient_is_that_of_the_moments(rng):
    model = random_model(gb.graphs.complete(3), rng)
    learner = MomentMatching(Blurred(), average=True)
    fit = learner.bind(model, sampled_data(model, 50, rng))
    state, _ = fit.step(fit.init(Key.of(rng))[0])
    np.testing.assert_allclose(state.mean.square, BoundBlur.stderr**2)
