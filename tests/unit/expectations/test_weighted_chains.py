"""Chains with Jarzynski's weights, against enumeration."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.expectations import WeightedBlockChains, WeightedChains
from gibbsian.expectations.block_chains import _gibbs
from gibbsian.expectations.weighted import GROUPS, ChainWeights
from gibbsian.inference import exact
from gibbsian.learners import PCD, Minibatch
from gibbsian.learners.callbacks import Monitor
from gibbsian.models import BinaryLayer, RestrictedModel, SpinLayer
from systems import models_with_domains, random_model_of

ROWS = np.repeat(np.random.default_rng(0).random((400, 3)) < 0.4, 3, axis=1).astype(int)


@pytest.mark.parametrize("layer", [BinaryLayer, SpinLayer])
def test_the_mean_weight_is_z_however_fast_the_parameters_move(layer):
    rng, phase = np.random.default_rng(1), WeightedBlockChains(n_chains=4000)
    model = RestrictedModel.build(layer(6), layer(4), [0.3] * 6, weights=2.0 * rng.normal(size=(6, 4)))
    state = phase.init(model.replace(0.1 * model.theta), None, rng)
    for share in (0.3, 0.6, 1.0):  # chains of one step cannot keep up
        moments, state = phase(model.replace(share * model.theta), state, None, rng)
    truth = exact(model).moments()
    found, error = phase.log_partition(model, state)
    assert abs(found - truth.log_partition) < 4 * error < 0.2
    assert len(set(state.weights.logs[:4000])) < 4000  # chosen anew on the way
    found = np.concatenate([moments.visible, moments.hidden, moments.products.ravel()])
    assert np.abs(found - truth.statistics).max() < 0.1


@pytest.mark.parametrize(("name", "domain"), models_with_domains(4))
def test_every_model_has_such_chains(name, domain):
    rng, phase = np.random.default_rng(2), WeightedChains(n_chains=1000)
    model = random_model_of(name, gb.graphs.complete(4), rng, domain, temperature=1.3)
    state = phase.init(model.replace(0.1 * model.theta), None, rng)
    for share in (0.4, 0.7, 1.0):
        estimate, state = phase(model.replace(share * model.theta), state)
    truth = exact(model).moments()
    assert abs(estimate.log_partition - truth.log_partition) < 4 * estimate.log_partition_stderr < 0.5
    assert (np.abs(estimate.mean - truth.statistics) < 5 * estimate.stderr + 0.02).all()


def test_chains_of_equal_worth_stay_and_those_of_a_group_with_few_are_chosen_anew():
    weights = ChainWeights(np.full(40 * GROUPS, 1.5), np.zeros(1))
    places, after = weights.chosen(np.random.default_rng(0))
    assert (places == np.arange(40 * GROUPS)).all()
    assert after.log_partition() == pytest.approx((1.5, 0.0))
    first = np.arange(20 * GROUPS, 20 * GROUPS + 20)  # of those that are asked
    logs = weights.logs.copy()
    logs[first[3]] += 10.0
    before = ChainWeights(logs, np.zeros(1))
    places, after = before.chosen(np.random.default_rng(0))
    expected = np.arange(logs.size)
    expected[first] = first[3]
    assert (places == expected).all()
    np.testing.assert_allclose(after.log_partition(), before.log_partition(), rtol=1e-12)
    assert after.log_partition()[1] > 0.9  # one group of ten has all


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


@pytest.mark.parametrize(
    "machine",
    [
        gb.BoltzmannMachine(temperature=2.0),
        gb.HiddenBoltzmannMachine(2),
        gb.HiddenBoltzmannMachine(2, n_init=2),
        gb.RestrictedBoltzmannMachine(2),
    ],
    ids=str,
)
def test_persistent_chains_know_the_likelihood_of_the_answer(machine):
    rng = np.random.default_rng(4)
    rows = np.where(rng.random(ROWS.shape) < 0.15, 1 - ROWS, ROWS)
    answers = []
    keep = Monitor(lambda run: answers.append(run.fitted()) or {})
    machine.set_params(learner=PCD(weighted=True), max_iter=300, callbacks=keep, random_state=0).fit(rows)
    history = machine.result_.history
    found, errors = history["estimated_log_likelihood"], history["log_likelihood_stderr"]
    answers = [*answers[1::33], machine.model_]
    for k, model in zip([*range(1, len(found), 33), -1], answers, strict=True):
        machine.model_ = model
        truth = machine.score_samples(rows, log_partition=exact(model).log_partition()).mean()
        assert abs(found[k] - truth) < 4 * errors[k] < 0.6
    assert found[-1] > found[0] + 0.3


def test_as_many_steps_are_taken_as_are_asked_for():
    drawn = []
    model = SimpleNamespace(
        draw_visible=lambda hidden, rng: drawn.append("v") or hidden,
        draw_hidden=lambda values, rng: drawn.append("h") or values,
        hidden_fields=lambda values: values,
    )
    _gibbs(model, np.zeros(1), 3, None)
    assert drawn == list("vhvhv")
