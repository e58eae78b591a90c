"""The learner's step against the exact gradient of the log-likelihood, for every pair of layers."""

from dataclasses import dataclass

import numpy as np
import pytest

from gibbsian.expectations import PersistentBlockChains, RestartedBlockChains
from gibbsian.expectations.layer_chains import LayerMoments, LayerPoint, NoChains, SampledLayers
from gibbsian.learning import Minibatch
from gibbsian.learning.layer_phases import phase_difference, towards
from gibbsian.learning.minibatch import EpochFit
from gibbsian.models.base import Model
from gibbsian.models.layers.units import codes_of
from gibbsian.rng import Key
from layered_systems import PAIRS, data_rows, layer_sums, log_partition, random_machine

FLOATS = ("float64", "float32")


@dataclass(frozen=True)
class ExactPhase:
    """A negative phase without error: moments by enumeration."""

    def init(self, model, base, rng):
        return NoChains()

    def __call__(self, at, state, rng):
        theta = np.concatenate([part.ravel() for some in at.parts for part in some])
        return LayerMoments(*at.family.split(layer_sums(Model(at.family, theta)).moments.astype(theta.dtype))), state

    def n_samples(self, batch_size):
        return batch_size

    capturable = False


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(pair))
def machine(request, rng):
    return random_machine(*request.param, rng, n_visible=4, n_hidden=3, scale=0.4)


@pytest.fixture
def rows(machine, rng):
    states = codes_of(machine.visible, machine.visible.draw(rng.normal(size=(12, machine.visible.width)), rng))
    return data_rows(states)


def mean_log_likelihood(model, rows):
    values = model.visible.encode(rows.states)
    return float(rows.shares @ model.log_evidence(values)) - log_partition(model)


def numerical_gradient(model, rows, step=1e-5):
    shifts = step * np.eye(model.theta.size)
    up, down = (
        np.array([mean_log_likelihood(model.replace(model.theta + s * shift), rows) for shift in shifts])
        for s in (1, -1)
    )
    return (up - down) / (2 * step)


def step_of(learner, model, rows):
    """What one epoch with one minibatch of all rows adds to the parameters."""
    fit = EpochFit(learner, model, rows)  # in the units of the data
    return learned(fit, 1) - fit.init(Key.of(0))[0].theta


def learned(fit, n_epochs):
    """The parameters after some epochs."""
    state, _ = fit.init(Key.of(0))
    for _ in range(n_epochs):
        state, _ = fit.step(state)
    return state.theta


def parts(gradient, machine):
    """The parts of a gradient: visible biases, hidden biases and weights."""
    (visible, hidden), (weights,) = machine.family.split(gradient.copy())
    return visible, hidden, weights


def plain(**settings):
    return Minibatch(max_iter=1, schedule="constant", batch_size=1000, learning_rate=0.01, centred=False, **settings)


def test_a_plain_step_is_the_gradient_of_the_log_likelihood(machine, rows):
    step = step_of(plain(negative_phase=ExactPhase()), machine, rows)
    np.testing.assert_allclose(step / 0.01, numerical_gradient(machine, rows), atol=1e-7)


def test_a_step_in_single_precision_is_the_same_to_its_rounding(machine, rows):
    double, single = (step_of(plain(negative_phase=ExactPhase(), dtype=dtype), machine, rows) for dtype in FLOATS)
    np.testing.assert_allclose(single, double, atol=1e-6)


def test_a_centred_step_is_the_gradient_in_centred_coordinates(machine, rows, rng):
    """With ``b' = b + W nu`` and ``c' = c + W^T mu``, steps of b', c' and W carry over to b and c."""
    mu, nu = rng.random(machine.visible.width), rng.random(machine.hidden.width)
    values = machine.visible.encode(rows.states)
    data = [values, machine.hidden_means(values)]
    free, _ = ExactPhase()(LayerPoint(machine.family, machine.parts, ()), None, None)
    g_b, g_c, g_w = parts(phase_difference(machine.family, data, free, None)[0], machine)
    d_b, d_c, made = parts(phase_difference(machine.family, data, free, (mu, nu))[0], machine)
    d_w = g_w - np.outer(g_b, nu) - np.outer(mu, g_c)  # chain rule, b and c as functions of b', c' and W
    np.testing.assert_allclose(made, d_w, atol=1e-12)
    np.testing.assert_allclose(d_b, g_b - d_w @ nu, atol=1e-12)
    np.testing.assert_allclose(d_c, g_c - d_w.T @ mu, atol=1e-12)


def test_centred_steps_go_uphill(machine, rows):
    learner = Minibatch(
        max_iter=1, schedule="constant", batch_size=1000, learning_rate=1e-4, negative_phase=ExactPhase()
    )
    step = step_of(learner, machine, rows)
    assert step @ numerical_gradient(machine, rows) > 0


def test_samples_and_their_moments_give_the_same_gradient(machine, rows, rng):
    values = machine.visible.encode(rows.states)
    data = [values, machine.hidden_means(values)]
    drawn = machine.draw_visible(machine.draw_hidden(values, rng), rng)
    free = [drawn, machine.hidden_means(drawn)]
    offsets = rng.random(machine.visible.width), rng.random(machine.hidden.width)
    means = LayerMoments([part.mean(axis=0) for part in free], [free[0].T @ free[1] / len(drawn)])
    for about in (None, offsets):
        by_samples, by_moments = (phase_difference(machine.family, data, given, about)[0] for given in (free, means))
        np.testing.assert_allclose(by_samples, by_moments, atol=1e-12)


@pytest.mark.parametrize("source", [RestartedBlockChains(n_steps=30), PersistentBlockChains(n_chains=4000, n_steps=30)])
def test_chains_that_run_long_have_the_moments_of_the_model(machine, source, rng):
    phase = SampledLayers(source)
    rows = data_rows(codes_of(machine.visible, machine.visible.draw(np.zeros((4000, machine.visible.width)), rng)))
    fields = [machine.family.fields(machine.parts, 1, [machine.visible.encode(rows.states), None])]
    state = phase.init(machine, [], rng)
    (values, hidden), _ = phase(LayerPoint(machine.family, machine.parts, fields), state, rng)
    found = machine.family.split(machine.family.statistics_of([values, hidden]))
    exact, _ = ExactPhase()(LayerPoint(machine.family, machine.parts, ()), None, None)
    scale = 1.0 if machine.visible.kind != "gaussian" and machine.hidden.kind != "gaussian" else 4.0
    for one, other in zip([*found.biases, *found.weights], [*exact.firsts, *exact.products], strict=True):
        assert np.abs(one - other).max() < scale * 4.5 / np.sqrt(4000)


def test_penalties_pull_the_weights_alone(rng):
    machine = random_machine("binary", "binary", rng, n_visible=4, n_hidden=3)
    rows = data_rows(rng.integers(0, 2, (10, 4)))
    bare, decayed = (step_of(plain(negative_phase=ExactPhase(), l2=l2), machine, rows) for l2 in (0.0, 0.3))
    pull = np.concatenate([np.zeros(7), -0.01 * 0.3 * machine.theta[7:]])
    np.testing.assert_allclose(decayed - bare, pull, atol=1e-14)
    bare, shrunk = (
        machine.theta + step_of(plain(negative_phase=ExactPhase(), l1=l1), machine, rows) for l1 in (0.0, 20.0)
    )
    np.testing.assert_allclose(shrunk[:7], bare[:7], atol=1e-14)
    np.testing.assert_allclose(shrunk[7:], np.sign(bare[7:]) * np.maximum(np.abs(bare[7:]) - 0.2, 0.0), atol=1e-14)
    assert (shrunk[7:] == 0).any()


def test_momentum_adds_up(rng):
    machine = random_machine("spin", "spin", rng, n_visible=3, n_hidden=2)
    rows = data_rows(rng.integers(0, 2, (10, 3)))
    settings = {"schedule": "constant", "batch_size": 1000, "learning_rate": 1e-6, "centred": False}
    settings["negative_phase"] = ExactPhase()
    learner = Minibatch(max_iter=300, momentum=0.9, **settings)
    moved = learned(EpochFit(learner, machine, rows), 300) - machine.theta
    alone = step_of(Minibatch(max_iter=1, **settings), machine, rows)
    # 300 steps, each of which goes on to ten times its length, but for the last ones
    np.testing.assert_allclose(moved / alone, 10 * 300 - 90, rtol=0.01)


def test_whole_weights_are_repeated_rows(machine, rows):
    weights = np.array([1, 2, 3, 1, 1, 1, 4, 1, 1, 1, 1, 2], dtype=np.float64)
    repeated = data_rows(np.repeat(rows.states, weights.astype(int), axis=0))
    learner = plain(negative_phase=ExactPhase())
    np.testing.assert_allclose(
        step_of(learner, machine, data_rows(rows.states, weights)), step_of(learner, machine, repeated), atol=1e-14
    )


def test_shares_that_sum_to_one_make_a_whole_epoch(rng):
    machine = random_machine("binary", "binary", rng, n_visible=3, n_hidden=2)
    states, weights = rng.integers(0, 2, (40, 3)), rng.random(40)
    fit = Minibatch(batch_size=10).bind(machine, data_rows(states, weights / weights.sum()))
    assert fit.step(fit.init(Key.of(0))[0])[0].steps == 4


def test_offsets_follow_the_means_by_a_hundredth():
    moved = towards((np.array([1.0]), np.array([2.0])), (np.array([3.0]), np.array([-2.0])))
    np.testing.assert_allclose(np.concatenate(moved), [1.02, 1.96])
