"""Score matching of a restricted machine with Gaussian visible units: its definition, gradient and what it finds."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import GibbsianError
from gibbsian.models import BinaryLayer, GaussianLayer, RestrictedModel, SpinLayer
from gibbsian.objectives import ScoreMatching


@pytest.fixture(params=[BinaryLayer, SpinLayer])
def machine(request, rng):
    zeros = RestrictedModel.build(GaussianLayer(3, (0.5, 1.0, 2.0)), request.param(2), temperature=1.3)
    return zeros.replace(rng.normal(size=zeros.theta.size))


@pytest.fixture
def data(rng):
    return gb.Dataset.read(rng.normal(size=(40, 3)), coding="real", sample_weight=rng.random(40))


def test_the_value_is_that_of_differences_of_the_log_density(machine, data):
    h, total = 1e-4, 0.0
    for x, weight in zip(data.states, data.weights, strict=True):
        for unit in np.eye(3):
            down, here, up = machine.value_log_weights(np.stack([x - h * unit, x, x + h * unit]))
            total += weight * ((up - 2 * here + down) / h**2 + ((up - down) / (2 * h)) ** 2 / 2)
    value, _ = ScoreMatching().bind(machine, data)(machine.theta)
    assert value == pytest.approx(total / data.weights.sum(), rel=1e-6)


def test_the_gradient_is_the_derivative(machine, data):
    function, h = ScoreMatching().bind(machine, data), 1e-6
    gradient = function(machine.theta)[1]
    for k, unit in enumerate(np.eye(machine.theta.size)):
        slope = (function(machine.theta + h * unit)[0] - function(machine.theta - h * unit)[0]) / (2 * h)
        assert gradient[k] == pytest.approx(slope, abs=1e-6)


def test_it_finds_the_units_behind_columns_of_any_scale(rng):
    """Every column is one of two values plus noise: the log-likelihood comes near that of the truth."""
    hidden, scale = rng.integers(0, 2, (3000, 1)), np.array([1.0, 100.0, 0.01])
    rows = (hidden @ np.array([[3.0, -3.0, 2.0]]) + rng.normal(size=(3000, 3))) * scale + [0, 1000, 5]
    machine = gb.RestrictedBoltzmannMachine(
        1, visible="gaussian", deviations=scale, learner="score-matching", max_iter=500, random_state=0
    ).fit(rows)
    assert machine.result_.converged
    means = np.array([[0.0, 0, 0], [3.0, -3.0, 2.0]]) * scale + [0, 1000, 5]
    apart = (rows[:, None] - means) / scale
    densities = np.exp(-(apart**2).sum(axis=2) / 2).mean(axis=1) / (2 * np.pi) ** 1.5 / scale.prod()
    assert machine.score(rows) > np.log(densities).mean() - 0.01


def test_it_is_refused_where_there_is_no_density():
    with pytest.raises(GibbsianError, match="needs a density of real numbers"):
        gb.RestrictedBoltzmannMachine(2, learner="score-matching").fit([[0, 1], [1, 0], [1, 1], [0, 0]])
    with pytest.raises(GibbsianError, match="needs a density of real numbers"):
        gb.BoltzmannMachine(learner="score-matching").fit([[0, 1], [1, 0], [1, 1], [0, 0]])
