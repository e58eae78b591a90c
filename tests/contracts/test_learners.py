"""Every registered learner: contract, truth from exact weights, determinism, resume to the same bits."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learners import LEARNERS, Learner, train
from gibbsian.storage import Checkpoint
from systems import exact_law, random_model, sampled_data


@pytest.fixture(params=LEARNERS.names())
def name(request):
    return request.param


def test_keeps_the_contract(name):
    assert isinstance(LEARNERS.create(name), Learner)
    assert LEARNERS.factory(name).__doc__


def test_learns_in_both_codings_with_and_without_biases(name, domain, rng):
    for bias in (True, False):
        truth = random_model(gb.graphs.complete(4), rng, domain, scale=0.3, bias=bias)
        data = sampled_data(truth, 500, rng)
        machine = gb.BoltzmannMachine(learner=name, bias=bias, random_state=0).fit(data)
        assert machine.result_.converged, machine.result_.reason
        assert machine.model_.theta.size == truth.theta.size


def test_same_seed_same_bits(name, rng):
    data = sampled_data(random_model(gb.graphs.grid(2, 2), rng), 200, rng)
    fits = [gb.BoltzmannMachine(graph="grid:2x2", learner=name, random_state=7).fit(data) for _ in range(2)]
    assert np.array_equal(fits[0].model_.theta, fits[1].model_.theta)


def test_resumed_fit_has_the_bits_of_an_uninterrupted_one(name, rng, tmp_path):
    model = random_model(gb.graphs.complete(5), rng)
    data = sampled_data(model, 300, rng)
    start = model.replace(np.zeros_like(model.theta))
    learner = LEARNERS.create(name)
    whole = train(learner, start, data, np.random.default_rng(3), tol=1e-9)
    path = tmp_path / "fit.checkpoint"
    assert len(whole.trace) > 4
    train(learner, start, data, np.random.default_rng(3), tol=1e-9, max_iter=4, checkpoint=Checkpoint(path, every=2))
    rest = train(learner, start, data, np.random.default_rng(3), tol=1e-9, checkpoint=Checkpoint(path, resume=True))
    assert rest.provenance["resumed_at_step"] == 4
    assert np.array_equal(rest.model.theta, whole.model.theta)
    assert len(rest.trace) == len(whole.trace)
    assert np.array_equal(rest.trace.column("value"), whole.trace.column("value"))


def test_penalties_shrink(name, rng):
    data = sampled_data(random_model(gb.graphs.complete(4), rng), 300, rng)
    free = gb.BoltzmannMachine(learner=name).fit(data).model_
    ridge = gb.BoltzmannMachine(learner=name, l2=0.5).fit(data).model_
    lasso = gb.BoltzmannMachine(learner=name, l1=10.0).fit(data).model_
    assert np.linalg.norm(ridge.theta) < np.linalg.norm(free.theta)
    assert not lasso.couplings.any()
    assert lasso.biases.any()


def test_temperature_scales_the_parameters(name, domain, rng):
    """P depends on theta / T only, so a fit at T = 2 doubles the parameters (YK15)."""
    data = sampled_data(random_model(gb.graphs.complete(3), rng, domain), 400, rng)
    cold = gb.BoltzmannMachine(learner=name, tol=1e-9).fit(data).model_
    warm = gb.BoltzmannMachine(learner=name, tol=1e-9, temperature=2.0).fit(data).model_
    np.testing.assert_allclose(warm.theta, 2 * cold.theta, atol=1e-5)


def test_coding_of_the_data_does_not_change_the_distribution(name, rng):
    """The 0/1 and the -1/+1 fit are one distribution, converted exactly."""
    data = sampled_data(random_model(gb.graphs.complete(4), rng), 400, rng)
    spin = gb.BoltzmannMachine(learner=name, tol=1e-9).fit(data)
    binary = gb.BoltzmannMachine(learner=name, tol=1e-9).fit(data.convert("binary"))
    np.testing.assert_allclose(binary.convert("spin").model_.theta, spin.model_.theta, atol=1e-5)


def test_exact_weights_give_back_the_truth(name, rng):
    truth = random_model(gb.graphs.complete(4), rng, scale=0.4)
    states, probabilities, _ = exact_law(truth)
    machine = gb.BoltzmannMachine(learner=name, tol=1e-10).fit(states, sample_weight=probabilities)
    np.testing.assert_allclose(machine.model_.theta, truth.theta, atol=1e-6)
