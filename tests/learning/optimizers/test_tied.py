"""Parameters that share a value, against a minimiser of the few that are free (SciPy)."""

import numpy as np
from scipy.optimize import minimize

import gibbsian as gb
from gibbsian.learning import MomentMatching, run
from gibbsian.learning.objectives import Likelihood
from gibbsian.learning.optimizers import Ascent, Tied
from systems import random_model, sampled_data


def test_tied_moments_are_the_maximum_over_the_shared_values(rng):
    data = sampled_data(random_model(gb.graphs.grid(2, 3), rng), 200, rng)
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(2, 3)))
    groups = np.where(model.penalised, 1, 0)
    tied = run(
        MomentMatching("exact", optimizer=Tied(Ascent(0.2), groups)), model, data, rng, max_iter=300, tol=0.0
    ).model
    function = Likelihood().bind(model, data)
    best = minimize(lambda shared: function(shared[groups])[0], np.zeros(2), tol=1e-12)
    np.testing.assert_allclose(tied.theta, best.x[groups], atol=1e-6)
