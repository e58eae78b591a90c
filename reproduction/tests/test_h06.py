"""H06: the distance of section 6, and the steps of contrastive divergence against eqs. 26 and 27."""

from __future__ import annotations

import numpy as np

from gibbsian.data import Dataset
from gibbsian.inference import exact
from gibbsian_reproduction.experiment import EXPERIMENTS, Results
from gibbsian_reproduction.h06 import (
    FAMILY,
    GRAPH,
    N_VARIABLES,
    STATES,
    distance,
    estimate,
    expected_step,
    random_model,
)


def test_the_distance_is_that_of_the_matrices(rng):
    one, other = random_model(rng), random_model(rng)
    parts = [model.parts for model in (one, other)]
    matrices = [np.column_stack([GRAPH.matrix(couplings), biases]) for biases, couplings in parts]
    assert np.isclose(distance(one.theta, other.theta), np.linalg.norm(matrices[0] - matrices[1]))


def fields(model, codes):
    return FAMILY.layout.coupling_fields(model.theta)(FAMILY.variables.scores_of(codes)) + model.parts.biases


def test_the_expected_step_is_that_of_equations_26_and_27(rng):
    model = random_model(rng)
    codes = STATES[rng.integers(32, size=100)]
    rows, guesses = FAMILY.variables.scores_of(codes), np.tanh(fields(model, codes))  # E[x_i | the others]
    pairs = rows.T @ rows / len(rows)
    cross = guesses.T @ rows / len(rows)
    couplings = 2.0 / N_VARIABLES * (pairs - (cross + cross.T) / 2.0)
    biases = (rows.mean(axis=0) - guesses.mean(axis=0)) / N_VARIABLES
    i, j = GRAPH.edges.T
    assert np.allclose(expected_step(model, codes), np.r_[biases, couplings[i, j]], atol=1e-14)


def test_the_expected_step_is_the_mean_of_sampled_ones(rng):
    model, row = random_model(rng), STATES[[5]]
    changed = np.tile(row, (20000, 1))
    k = rng.integers(N_VARIABLES, size=len(changed))
    up = rng.random(len(changed)) < 1.0 / (1.0 + np.exp(-2.0 * fields(model, row)[0][k]))
    changed[np.arange(len(changed)), k] = up
    sampled = FAMILY.mean_statistics(row) - FAMILY.mean_statistics(changed)
    errors = np.sqrt(1.0 / len(changed)) * 4.5
    assert np.abs(sampled - expected_step(model, row)).max() < errors


def test_estimates_of_a_large_sample_are_near_the_truth(rng):
    truth = random_model(rng)
    data = Dataset.of_states(exact(truth).sample(50000, rng), "spin")
    for method in ("mple", "mle"):
        assert distance(estimate(method, data, rng), truth.theta) < 0.2


def test_claims_about_figure_1_fail_where_they_should():
    """Errors that grow with T, and a pseudolikelihood far behind the likelihood."""
    falling = np.linspace(0.0, -1.0, 6)
    errors = {"mple": falling[::-1], "mle": falling, "1-smci": falling}
    results = Results({method: np.tile(logs, (60, 1)) for method, logs in errors.items()}, seed=0)
    verdicts = [claim.check(results).holds for claim in EXPERIMENTS.create("h06-fig1").claims[:4]]
    assert verdicts == [False, False, False, False]
