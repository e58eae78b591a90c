"""Adam, falling rates, and moves by a gradient alone."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.learning import Descend, as_learner, run
from gibbsian.learning.objectives import Pseudolikelihood
from gibbsian.learning.optimizers import LBFGS, Adam, Ascent, Decay, GradientStep
from gibbsian.storage import Checkpoint
from systems import random_model, sampled_data


def bowl(scale):
    return lambda theta: (float(scale @ theta**2) / 2, scale * theta)


def steps_of(optimizer, function, theta, l1, steps):
    state = optimizer.init(function, theta, l1)
    for _ in range(steps):
        state, info = optimizer.step(function, state, l1)
    return state, info


@pytest.fixture
def problem(rng):
    model = random_model(gb.graphs.complete(4), rng, scale=0.4)
    return model.replace(np.zeros_like(model.theta)), sampled_data(model, 500, rng)


def test_adam_follows_its_published_recursion():
    """Algorithm 1 of Kingma and Ba, written out."""
    rng = np.random.default_rng(0)
    optimizer = Adam(learning_rate=0.03, beta1=0.8, beta2=0.95, eps=1e-6)
    theta, state = rng.normal(size=5), optimizer.init_move(np.zeros(5))
    m, v, expected = np.zeros(5), np.zeros(5), theta
    for t in range(1, 21):
        gradient = rng.normal(size=5)
        theta, state = optimizer.move(theta, gradient, np.zeros(5), state)
        m, v = 0.8 * m + 0.2 * gradient, 0.95 * v + 0.05 * gradient**2
        expected = expected - 0.03 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.95**t)) + 1e-6)
    np.testing.assert_allclose(theta, expected, atol=1e-14)
    assert state.t == 20


def test_adam_does_not_see_the_scale_of_the_gradient():
    starts = np.array([1.0, -2.0, 0.5])
    points = [steps_of(Adam(0.05), bowl(scale * np.ones(3)), starts, np.zeros(3), 30)[0].theta for scale in (1.0, 1e4)]
    np.testing.assert_allclose(points[0], points[1], atol=1e-6)


def test_adam_finds_the_minimum_of_the_objective(problem, rng):
    model, data = problem
    slow = run(Descend(Pseudolikelihood(), optimizer="adam"), model, data, rng, tol=1e-6, max_iter=20_000)
    fast = run(as_learner("mple"), model, data, rng, tol=1e-8)
    assert slow.converged
    np.testing.assert_allclose(slow.model.theta, fast.model.theta, atol=1e-5)


@pytest.mark.parametrize("strength", [0.02, 0.1, 10.0])
def test_adam_with_l1_finds_the_zeros_of_the_orthant_method(problem, rng, strength):
    model, data = problem
    slow = run(as_learner("mple", optimizer="adam", l1=strength), model, data, rng, tol=1e-6, max_iter=20_000)
    fast = run(as_learner("mple", l1=strength), model, data, rng, tol=1e-8)
    assert slow.converged
    assert np.array_equal(slow.model.theta == 0, fast.model.theta == 0)
    np.testing.assert_allclose(slow.model.theta, fast.model.theta, atol=1e-5)


@pytest.mark.parametrize("optimizer", [Adam(0.02), Adam(0.05, Decay()), Ascent(0.2, Decay())], ids=repr)
def test_interrupted_fit_goes_on_with_the_same_bits(problem, optimizer, tmp_path):
    learner, path = as_learner("mple", optimizer=optimizer), tmp_path / "fit.checkpoint"
    whole = run(learner, *problem, np.random.default_rng(0), max_iter=30)
    run(learner, *problem, np.random.default_rng(0), max_iter=11, callbacks=[Checkpoint(path, every=11)])
    rest = run(learner, *problem, np.random.default_rng(0), max_iter=30, callbacks=[Checkpoint(path, resume=True)])
    assert rest.provenance["resumed_at_step"] == 11
    assert np.array_equal(rest.model.theta, whole.model.theta)


def test_decay_is_the_schedule_of_robbins_and_monro():
    decay = Decay(power=0.75, delay=40)
    np.testing.assert_allclose([decay(t) for t in (0, 40, 600)], [1.0, 2**-0.75, 16**-0.75])
    assert Decay(power=0.0)(10**6) == 1.0


@pytest.mark.parametrize("make", [Ascent, Adam])
def test_trace_shows_the_falling_rate(problem, rng, make):
    optimizer = make(0.1, Decay(power=1.0, delay=2))
    result = run(Descend(Pseudolikelihood(), optimizer=optimizer), *problem, rng, max_iter=5)
    np.testing.assert_allclose(result.trace.column("step_size"), 0.1 / (1 + np.arange(5) / 2))


@pytest.mark.parametrize("make", [Ascent, Adam])
def test_rates_act_as_reported(make):
    """With a falling rate each move is the plain move times the factor of the schedule."""
    gradient, l1 = np.array([0.3, -0.7]), np.array([0.0, 0.1])
    plain, falling = make(0.1), make(0.1, Decay(power=1.0, delay=1))
    states = [plain.init_move(gradient), falling.init_move(gradient)]
    start = np.array([5.0, -5.0])  # far from zero, so that thresholds do not cut
    for t in range(4):
        (moved, states[0]), (slower, states[1]) = (
            optimizer.move(start, gradient, l1, state)
            for optimizer, state in zip((plain, falling), states, strict=True)
        )
        np.testing.assert_allclose(slower - start, (moved - start) / (1 + t), atol=1e-14)


def test_falling_rate_finds_the_mean_of_noise():
    """Rates 1/(1 + t) on noisy gradients of a parabola make the running mean itself."""
    rng = np.random.default_rng(4)
    samples = rng.normal(2.0, 1.0, size=500)
    optimizer = Ascent(1.0, Decay(power=1.0, delay=1))
    theta, state = np.zeros(1), optimizer.init_move(np.zeros(1))
    for sample in samples:
        theta, state = optimizer.move(theta, theta - sample, np.zeros(1), state)
    assert theta[0] == pytest.approx(samples.mean(), abs=1e-12)


def test_only_some_move_by_a_gradient_alone():
    assert isinstance(Adam(), GradientStep)
    assert isinstance(Ascent(), GradientStep)
    assert not isinstance(LBFGS(), GradientStep)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Adam(learning_rate=0), "rate=0"),
        (lambda: Adam(eps=0), "eps=0"),
        (lambda: Adam(beta1=1.0), "beta1=1.0"),
        (lambda: Adam(beta2=-0.1), "beta2=-0.1"),
        (lambda: Decay(power=1.5), "power=1.5"),
        (lambda: Decay(delay=0), "delay=0"),
        (lambda: Ascent(learning_rate=-1), "rate=-1"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()
