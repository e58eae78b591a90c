"""H06 section 5: the objective of contrastive divergence by listing, and claims that fail where they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import rel_entr

from gibbsian_reproduction.experiment import EXPERIMENTS, Results
from gibbsian_reproduction.h06 import N_VARIABLES, STATES, expected_step, random_model
from gibbsian_reproduction.h06_divergence import after_an_update, divergence_gap, slope_of, update_of
from gibbsian_reproduction.systems import distribution_of


@pytest.fixture
def model(rng):
    return random_model(rng)


@pytest.fixture
def law(rng):
    return rng.dirichlet(np.ones(len(STATES)))


def test_the_law_after_an_update_is_that_of_the_transition_matrix(model, law):
    """From every state to every state that differs in one variable at most."""
    own, matrix = distribution_of(model, STATES), np.zeros((len(STATES), len(STATES)))
    for start, state in enumerate(STATES):
        for k in range(N_VARIABLES):
            others = np.delete(STATES, k, axis=1)
            reached = np.flatnonzero((others == np.delete(state, k)).all(axis=1))
            matrix[start, reached] += own[reached] / own[reached].sum() / N_VARIABLES
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    np.testing.assert_allclose(after_an_update(model.theta, law), law @ matrix, atol=1e-15)
    np.testing.assert_allclose(after_an_update(model.theta, own), own, atol=1e-15)


def test_the_objective_is_the_difference_of_divergences(model, law):
    own = distribution_of(model, STATES)
    after = after_an_update(model.theta, law)
    expected = rel_entr(law, own).sum() - rel_entr(after, own).sum()
    assert divergence_gap(model.theta, law) == pytest.approx(expected, abs=1e-13)


def test_the_update_is_the_expected_step_and_a_part_of_the_gradient(model, rng):
    chosen = rng.integers(len(STATES), size=50)
    law = np.bincount(chosen, minlength=len(STATES)) / 50
    step = expected_step(model, STATES[chosen])
    np.testing.assert_allclose(update_of(model.theta, law), step, atol=1e-14)
    own = distribution_of(model, STATES)
    assert np.abs(slope_of(model.theta, own)).max() < 1e-9  # the truth is a minimum
    assert np.abs(slope_of(model.theta, law) + step).max() > 1e-3  # elsewhere a part is left out


def test_claims_fail_where_they_should():
    gaps = dict.fromkeys(EXPERIMENTS.create("h06-section5").trial(np.random.default_rng(0)), np.full(3, 1e-3))
    assert not any(claim.check(Results(gaps, 0)).holds for claim in EXPERIMENTS.create("h06-section5").claims)
    rising, one = np.tile(np.linspace(-1.0, 1.0, 5), (3, 1)), np.ones(3)
    values = {f"{law} {what}": one for law in ("own", "foreign") for what in ("best to mple", "share of the way left")}
    values |= {"own": rising, "foreign": rising, "own cosine": -rising, "foreign cosine": -rising}
    assert not any(claim.check(Results(values, 0)).holds for claim in EXPERIMENTS.create("h06-cd-objective").claims)
