"""Digits, 20 hidden units: better than scikit-learn's machine after as many epochs, by exact test log-likelihood."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM

from gibbsian.inference import exact
from gibbsian.learning import Minibatch
from gibbsian.models.layers.units import BinaryUnits
from layered_systems import data_rows, restricted, start_model, trained

LAYERS = BinaryUnits(64), BinaryUnits(20)


@pytest.fixture(scope="module")
def digits():
    states = (load_digits().data >= 8).astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(states))
    return states[order[:1437]], states[order[1437:]]


def score(model, states):
    return float(model.family.log_evidence(model.theta, states).mean()) - exact(model).log_partition


@pytest.mark.parametrize("rate", [0.1, 0.03])
def test_better_than_scikit_learn_at_equal_epochs(digits, rate):
    """0.1 is scikit-learn's default, and its best rate after 10 epochs; 0.03 comes second."""
    training, test = digits
    rng, rows = np.random.default_rng(0), data_rows(training)
    learner = Minibatch(max_iter=10, learning_rate=0.2, batch_size=14)
    ours = trained(learner, start_model(*LAYERS, rows, rng), rows, rng).model
    rbm = BernoulliRBM(20, learning_rate=rate, n_iter=10, random_state=0).fit(training.astype(np.float64))
    parts = rbm.intercept_visible_, rbm.intercept_hidden_, np.ascontiguousarray(rbm.components_.T)
    assert score(ours, test) > score(restricted(*LAYERS, *parts), test) + 1.0
