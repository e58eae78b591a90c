"""Errors of hidden units, layers and classes against closed forms, differences of scores, and each other."""

import dataclasses

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError, DataError, TooExpensiveError
from gibbsian.uncertainty import standard_errors
from systems import exact_law


def related_rows(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, (n_rows, 1))
    return np.where(rng.random((n_rows, 4)) < 0.7, group, rng.integers(0, 2, (n_rows, 4)))


def observed_information(machine, rows, step=1e-3):
    """Second derivatives of minus the mean log-likelihood, with all states of columns and hidden units listed."""
    model, units = machine.model_, step * np.eye(machine.model_.theta.size)

    def log_likelihood(move):
        states, probabilities, _ = exact_law(model.replace(model.theta + move))
        codes = states[:, : rows.shape[1]] @ 2 ** np.arange(rows.shape[1])
        return np.log(np.bincount(codes, probabilities)[rows @ 2 ** np.arange(rows.shape[1])]).mean()

    bends = [[[log_likelihood(s * a + t * b) * s * t for s in (1, -1) for t in (1, -1)] for b in units] for a in units]
    return -np.sum(bends, axis=2) / (4 * step**2)


@pytest.mark.parametrize("learner", ["mle", "em"])
def test_errors_of_hidden_units_count_them_as_not_seen(learner):
    rows = related_rows()
    machine = gb.HiddenBoltzmannMachine(1, graph="restricted", learner=learner, random_state=0, tol=1e-8).fit(rows)
    errors = standard_errors(machine, rows)
    expected = np.linalg.inv(observed_information(machine, rows)) / len(rows)
    np.testing.assert_allclose(errors.theta_se, np.sqrt(np.diag(expected)), rtol=1e-3)
    assert "exchanged" in " ".join(errors.notes)
    assert errors.table.index[-1] == "x3*h0"


def test_a_restricted_machine_has_the_errors_of_its_joint_form():
    rows = related_rows()
    hidden = gb.HiddenBoltzmannMachine(1, graph="restricted", learner="mle", random_state=0, tol=1e-8).fit(rows)
    layers = gb.RestrictedBoltzmannMachine(1, learner="mle", max_iter=1000, tol=1e-8, random_state=0).fit(rows)
    np.testing.assert_allclose(
        standard_errors(layers, rows).theta_se, standard_errors(hidden, rows).theta_se, rtol=1e-4
    )


def test_one_class_of_numbers_has_the_textbook_errors():
    rows = np.random.default_rng(0).normal([103.0, 3.0, 3.0], 2.0, (500, 3))
    machine = gb.GaussianMixture(1, random_state=0).fit(rows)
    errors, variance = standard_errors(machine, rows), machine.variances_[0]
    mean, spread = np.sqrt(variance / 500), variance * np.sqrt(2 / (3 * 500))
    np.testing.assert_allclose(errors.theta_se, [0.0, mean, mean, mean, spread], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(errors.table["estimate"].iloc[1:4], rows.mean(axis=0))  # the means, from the origin
    sandwich = standard_errors(machine, rows, "sandwich").theta_se
    np.testing.assert_allclose(sandwich, errors.theta_se, rtol=0.1, atol=1e-12)


def test_one_class_of_directions_has_the_textbook_errors():
    """Across the mean a direction has the variance 1 / (kappa A), A the mean cosine (Mardia and Jupp 2000)."""
    rng, mean = np.random.default_rng(0), np.array([0.6, 0.0, 0.8])
    family = gb.models.VonMisesFisherMixtureFamily(1, 3)
    rows = family.sample(family.join([1.0], mean, [5.0]), 800, rng)[0]
    machine = gb.VonMisesFisherMixture(1, random_state=0).fit(rows)
    covariance = standard_errors(machine, rows).covariance[1:4, 1:4]
    direction, kappa = machine.means_[0], machine.concentrations_[0]
    cosine = 1 / np.tanh(kappa) - 1 / kappa
    across = (np.eye(3) - np.outer(direction, direction)) / (800 * kappa * cosine)
    np.testing.assert_allclose(covariance, across, atol=1e-4 * across.max())


def test_shares_keep_their_sum():
    rows = related_rows(1000)
    machine = gb.MachineMixture(2, random_state=0).fit(rows)
    covariance = standard_errors(machine, rows).covariance
    weights, first = covariance[:2, :2], covariance[2:4, 2:4]
    np.testing.assert_allclose(weights.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(first.sum(axis=0), 0.0, atol=1e-12)
    assert (np.diag(covariance) > 0).all()


def test_functions_of_a_full_span_model_are_taken_as_given():
    rows = related_rows()
    machine = gb.FullSpan().fit(rows)
    errors = standard_errors(machine, rows)
    states = np.array(np.meshgrid(*[[0, 1]] * 4, indexing="ij")).reshape(4, -1).T
    values = machine.model_.family.statistics(states)
    p = np.exp(machine.score_samples(states))
    information = np.cov(values.T, aweights=p / p.sum(), bias=True)
    np.testing.assert_allclose(errors.theta_se**2, np.diag(np.linalg.inv(information)) / len(rows), rtol=1e-6)
    assert "chosen by the same rows" in " ".join(errors.notes)


def test_what_has_no_errors_says_what_works():
    rows = related_rows(80)
    with pytest.raises(ArgumentError, match="hard assignments"):
        standard_errors(gb.MachineMixture(2, random_state=0, learner=gb.learning.EM(assignment="hard")).fit(rows), rows)
    numbers = np.random.default_rng(0).normal(size=(2000, 12))
    machine = gb.GaussianMixture(3, random_state=0, tol=0.01, n_init=1).fit(numbers)
    with pytest.raises(TooExpensiveError, match="max_seconds"):
        standard_errors(machine, numbers, max_seconds=1e-6)
    machine.result_ = dataclasses.replace(machine.result_, warning="class 0 has collapsed")
    with pytest.raises(DataError, match="collapsed"):
        standard_errors(machine, numbers)
