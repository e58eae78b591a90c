"""Chains with Jarzynski's weights, against enumeration."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

import gibbsian as gb
from gibbsian.expectations import WeightedBlockChains
from gibbsian.expectations.block_chains import _gibbs
from gibbsian.inference import exact
from gibbsian.learners import Minibatch
from gibbsian.learners.callbacks import Monitor
from gibbsian.models import BinaryLayer, RestrictedModel, SpinLayer

ROWS = np.repeat(np.random.default_rng(0).random((400, 3)) < 0.4, 3, axis=1).astype(int)


@pytest.mark.parametrize("layer", [BinaryLayer, SpinLayer])
def test_the_mean_weight_is_z_however_fast_the_parameters_move(layer):
    rng, phase = np.random.default_rng(1), WeightedBlockChains(n_chains=4000)
    model = RestrictedModel.build(layer(6), layer(4), [0.3] * 6, weights=2.0 * rng.normal(size=(6, 4)))
    first = state = phase.init(model.replace(0.1 * model.theta), None, rng)
    for share in (0.3, 0.6, 1.0):  # chains of one step cannot keep up
        moments, state = phase(model.replace(share * model.theta), state, None, rng)
    truth = exact(model).moments()
    for chains in state:
        assert abs(chains.log_partition - truth.log_partition) < 0.1
    assert state.teaching.log_start != first.teaching.log_start  # chosen anew on the way
    found = np.concatenate([moments.visible, moments.hidden, moments.products.ravel()])
    assert np.abs(found - truth.statistics).max() < 0.1


def test_a_fit_knows_its_likelihood_along_the_run():
    seen = Monitor(lambda run: {"truth": -np.inf if run.info is None else _likelihood(run.fitted())})
    learner = Minibatch(max_iter=15, learning_rate=0.3, free_phase="weighted", n_chains=400, batch_size=20)
    rbm = gb.RestrictedBoltzmannMachine(4, learner=learner, callbacks=seen, random_state=0).fit(ROWS)
    history = rbm.result_.history
    found, truth = (history[name][1:] for name in ("estimated_log_likelihood", "truth"))
    assert truth[-1] > truth[0] + 0.5
    assert np.abs(found - truth).max() < 0.25
    assert "estimated_log_likelihood" not in gb.RestrictedBoltzmannMachine(2, max_iter=1).fit(ROWS).result_.history


def _likelihood(model: RestrictedModel) -> float:
    return float(model.log_weights(ROWS.astype(np.int8)).mean() - exact(model).log_partition())


def test_chains_begin_at_units_that_do_not_interact_at_any_temperature():
    rng = np.random.default_rng(3)
    biases = rng.normal(size=5), rng.normal(size=3)
    model = RestrictedModel.build(BinaryLayer(5), BinaryLayer(3), *biases, rng.normal(size=(5, 3)), temperature=1.7)
    started = WeightedBlockChains(n_chains=5000).init(model, None, rng)
    expected = np.logaddexp(0.0, np.concatenate(biases) / 1.7).sum()
    assert started.teaching.log_partition == pytest.approx(expected, rel=1e-12)
    found = np.concatenate([part.values for part in started]).mean(axis=0)
    np.testing.assert_allclose(found, expit(biases[0] / 1.7), atol=5 * 0.5 / np.sqrt(10_000))


def test_as_many_steps_are_taken_as_are_asked_for():
    drawn = []
    model = SimpleNamespace(
        draw_visible=lambda hidden, rng: drawn.append("v") or hidden,
        draw_hidden=lambda values, rng: drawn.append("h") or values,
        hidden_fields=lambda values: values,
    )
    _gibbs(model, np.zeros(1), 3, None)
    assert drawn == list("vhvhv")
