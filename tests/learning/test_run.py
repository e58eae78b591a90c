"""The driver's words, the papers' plain ascent, moment matching."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.learning import Descend, MomentMatching, as_learner, run
from gibbsian.learning.callbacks import EachStep
from gibbsian.learning.objectives import Likelihood, Pseudolikelihood
from gibbsian.learning.optimizers import Ascent
from systems import random_model, sampled_data


@pytest.fixture
def problem(rng):
    model = random_model(gb.graphs.complete(4), rng)
    return model.replace(np.zeros_like(model.theta)), sampled_data(model, 300, rng)


def test_convergence_is_said_plainly(problem, rng):
    model, data = problem
    result = run(as_learner("mple"), model, data, rng, tol=1e-6)
    assert result.converged
    steps = len(result.trace)
    assert result.reason == f"converged after {steps} steps: gradient {result.trace.column('gradient_norm')[-1]:.2g}"


def test_running_out_of_steps_says_what_to_do(problem, rng):
    result = run(as_learner("mple"), *problem, rng, max_iter=2)
    assert not result.converged
    assert result.reason.startswith("stopped at max_iter=2, gradient ")
    assert result.reason.endswith("raise max_iter")


def test_steps_that_are_too_long_are_blamed(problem, rng):
    learner = as_learner("mple", optimizer=Ascent(learning_rate=30.0))
    result = run(learner, *problem, rng, max_iter=50)
    assert not result.converged
    assert "lower the rate" in result.reason


def test_more_than_rounding_allows_is_said(problem, rng):
    result = run(as_learner("mple"), *problem, rng, tol=1e-30)
    assert not result.converged
    assert "rounding" in result.reason
    assert result.trace.column("gradient_norm")[-1] < 1e-7


def test_plain_ascent_and_quasi_newton_meet(problem, rng):
    model, data = problem
    for objective in (Pseudolikelihood(), Likelihood()):
        slow = run(Descend(objective, optimizer=Ascent(learning_rate=0.2)), model, data, rng, tol=1e-8, max_iter=20_000)
        fast = run(Descend(objective), model, data, rng, tol=1e-8)
        assert slow.converged
        np.testing.assert_allclose(slow.model.theta, fast.model.theta, atol=1e-6)
        assert len(fast.trace) < len(slow.trace)


def test_moment_matching_with_exact_moments_is_maximum_likelihood(problem, rng):
    model, data = problem
    matched = run(
        MomentMatching("exact", optimizer=Ascent(learning_rate=0.3)), model, data, rng, tol=1e-8, max_iter=20_000
    )
    likelihood = run(as_learner("mle"), model, data, rng, tol=1e-8)
    np.testing.assert_allclose(matched.model.theta, likelihood.model.theta, atol=1e-6)


def test_moment_matching_with_l2_is_penalised_likelihood(problem, rng):
    model, data = problem
    matched = run(
        MomentMatching("exact", optimizer=Ascent(learning_rate=0.3), l2=0.2),
        model,
        data,
        rng,
        tol=1e-8,
        max_iter=20_000,
    )
    likelihood = run(as_learner("mle", l2=0.2), model, data, rng, tol=1e-8)
    np.testing.assert_allclose(matched.model.theta, likelihood.model.theta, atol=1e-6)


def test_trace_has_every_step(problem, rng):
    seen = []
    each = EachStep(lambda step, info: seen.append((step, info.value)))
    result = run(as_learner("mple"), *problem, rng, callbacks=[each])
    frame = result.trace.to_frame()
    assert frame["step"].tolist() == [step for step, _ in seen] == list(range(1, len(frame) + 1))
    assert frame["value"].tolist() == [value for _, value in seen]
    assert frame["value"].is_monotonic_decreasing
    assert frame["seconds"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: as_learner("mplee"), "'mplee' is not known: use one of .*mple"),
        (lambda: as_learner("mple", l2=-1.0), "l2=-1"),
        (lambda: as_learner("mple", l1=float("nan")), "l1=nan"),
        (lambda: as_learner("mple", optimizer="sgdd"), "sgdd"),
        (lambda: as_learner(3), "learner=3"),
        (lambda: as_learner(as_learner("mple"), l2=0.1), "l2=0.1"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


@pytest.mark.parametrize(("setting", "words"), [({"max_iter": 0}, "max_iter=0"), ({"tol": -1.0}, "tol=-1")])
def test_bad_limits_are_named(problem, rng, setting, words):
    with pytest.raises(ArgumentError, match=words):
        run(as_learner("mple"), *problem, rng, **setting)
