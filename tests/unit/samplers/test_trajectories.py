"""The trajectory of training as a path, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.learners.callbacks import KeepTrajectory
from gibbsian.models import BinaryLayer, HigherOrderModel, RestrictedModel, SpinLayer
from gibbsian.samplers import Annealing, TemperedColumns, trajectory_path

RNG = np.random.default_rng(5)
MODELS = {
    "pairwise": gb.PairwiseModel.build(gb.graphs.grid(3, 3), [0.3] * 9, [0.7] * 12),
    "third order": HigherOrderModel.build({(0,): 0.3, (1,): -0.2, (0, 1, 2): 1.0, (1, 2, 3): -0.8, (3,): 0.4}, 4),
    "restricted": RestrictedModel.build(BinaryLayer(6), SpinLayer(4), [-1.0] * 6, weights=RNG.normal(size=(6, 4))),
}


@pytest.mark.parametrize("name", MODELS)
def test_both_methods_find_log_z_along_models(name):
    model = MODELS[name]
    wiggle = np.where(model.penalised, RNG.normal(size=model.theta.size), 0.0)
    path = trajectory_path([model.replace(0.4 * model.theta), model.replace(0.7 * model.theta + 0.3 * wiggle), model])
    truth = exact(model).log_partition()
    assert path.at(0.0).theta[model.penalised].any() == 0.0
    np.testing.assert_allclose(path.log_base_partition, exact(path.at(0.0)).log_partition())
    np.testing.assert_allclose(path.at(2 / 3).theta, path.thetas[2])
    annealing = Annealing(100, 200)
    there, back = (
        annealing.forward(path, 0),
        annealing.reverse(path, path.exact_draws(100, np.random.default_rng(1)), 2),
    )
    for run in (there, back, TemperedColumns.settled(path, np.random.default_rng(3)).run(60)):
        assert abs(run.log_partition - truth) < 4.5 * run.log_partition_stderr < 0.6


def test_an_estimator_goes_along_what_its_fit_has_passed():
    rows = np.repeat(np.random.default_rng(0).random((200, 2)) < 0.5, 3, axis=1).astype(int)
    passed = KeepTrajectory(most=10)
    learner = gb.learners.Minibatch(max_iter=30, learning_rate=0.1)
    rbm = gb.RestrictedBoltzmannMachine(3, learner=learner, callbacks=passed, random_state=0).fit(rows)
    assert 4 <= len(passed.models) <= 10
    steps = [np.linalg.norm(b.theta - a.theta) for a, b in zip(passed.models, passed.models[1:], strict=False)]
    assert min(steps) >= passed.apart > 0
    found = rbm.log_partition("trajectory", n_samples=50, betas=200)
    assert found.tempered is not None
    assert found.lower - 0.1 < rbm.log_partition("exact") < found.upper + 0.1


def test_models_of_one_structure_are_wanted():
    with pytest.raises(ArgumentError, match="no models"):
        trajectory_path([])
    with pytest.raises(ArgumentError, match="different numbers"):
        trajectory_path([gb.PairwiseModel.zeros(gb.graphs.complete(n)) for n in (2, 3)])
    with pytest.raises(ArgumentError, match="kept no models"):
        gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).log_partition("trajectory")
