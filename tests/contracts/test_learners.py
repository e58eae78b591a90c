"""Every registered learner: contract, truth from exact weights, determinism, resume to the same bits.

What a learner does not promise is read from its traits: ``consistent`` (the truth from exact weights), ``stochastic``
(noise in every step, so no tolerance is reached), ``penalised`` (takes l1 and l2), ``stepwise`` (needs several steps).
"""

import warnings
from functools import cache

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ConvergenceWarning
from gibbsian.learning import LEARNERS, Learner, run
from systems import (
    SPINS,
    dataset_of,
    exact_law,
    models_with_variables,
    name_of,
    random_model,
    random_model_of,
    sampled_data,
)

NAMES = [name for name in LEARNERS.names() if LEARNERS.trait(name, "models") is None]
STOCHASTIC = [name for name in NAMES if LEARNERS.trait(name, "stochastic", False)]
SEEDS = 3
# Standard errors that an entry may be off; with the seeds given, a test is the same in every run.
FAR = 4.5


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def promise(name, trait, default):
    if LEARNERS.trait(name, trait, default) != default:
        pytest.skip(f"{name} does not promise it: {trait}={not default}")


def fit(name, data, **settings):
    """Fit quietly: a stochastic learner ends at max_iter by nature."""
    limits = {"max_iter": 50} if LEARNERS.trait(name, "stochastic", False) else {"tol": 1e-9}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return gb.BoltzmannMachine(**{"learner": name, "l2": 0, "random_state": 7, **limits, **settings}).fit(data)


def noisy_truth():
    """Return a model and rows that the learners with noise in every step have in common."""
    rng = np.random.default_rng(20061)
    truth = random_model(gb.graphs.complete(3), rng, scale=0.4 / 1.5)
    return truth, sampled_data(truth, 2000, rng)


@cache
def repeated(name, coding="spin", temperature=1.0, l2=0.0):
    """Return the mean parameters of spins over the seeds and their standard error, one number for all of them."""
    data = noisy_truth()[1].convert(coding)
    fits = [fit(name, data, random_state=seed, max_iter=120, temperature=temperature, l2=l2) for seed in range(SEEDS)]
    models = [machine.reported_model for machine in fits]
    thetas = [model.family.recode(model.theta, SPINS)[0].theta for model in models]
    return np.mean(thetas, axis=0), np.sqrt(np.var(thetas, axis=0, ddof=1).mean() / SEEDS)


def data_errors(model, n_rows):
    """Return the standard errors of maximum likelihood estimates from so many rows of a model."""
    states, probabilities, _ = exact_law(model)
    values = np.array([model.family.mean_statistics(state[None]) for state in states])
    information = np.cov(values.T, aweights=probabilities, bias=True)
    return np.sqrt(np.diag(np.linalg.inv(information)) / n_rows)


def test_keeps_the_contract(name):
    assert isinstance(LEARNERS.create(name), Learner)
    assert LEARNERS.factory(name).__doc__


@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")  # approximations do not match moments
def test_learns_in_both_codings_with_and_without_biases(name, scores, rng):
    for bias in (True, False):
        truth = random_model(gb.graphs.complete(4), rng, scores, scale=0.3, bias=bias)
        data = sampled_data(truth, 500, rng)
        machine = fit(name, data, bias=bias)
        assert machine.model_.theta.size == truth.theta.size
        # in standard errors of maximum likelihood, the root of a mean of squares; one is what the rows leave open
        stochastic = LEARNERS.trait(name, "stochastic", False)
        far = 1.6 if LEARNERS.trait(name, "consistent", True) else 2.0 if stochastic else 3.5
        away = (machine.model_.theta - truth.theta) / data_errors(truth, 500)
        assert np.sqrt(np.mean(away**2)) < far
        if not stochastic:
            assert machine.result_.converged, machine.result_.reason


@pytest.mark.parametrize("learner", ["mle", "mple", "rm", "mpf", "cd", "pcd", "mcmle", "online"])
@pytest.mark.parametrize(
    ("model", "variables"), models_with_variables(4), ids=lambda part: part if isinstance(part, str) else name_of(part)
)
def test_general_learners_come_near_the_law_of_every_model(learner, model, variables):
    """Those that see a model through its verbs alone: ten times nearer than the uniform law (Kullback and Leibler)."""
    rng = np.random.default_rng(1)
    graph = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], 4)  # a triangle, so that there is a term of three
    truth = random_model_of(model, graph, rng, variables, scale=0.4)
    data = sampled_data(truth, 1000, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = run(LEARNERS.create(learner), truth.replace(0 * truth.theta), data, rng, max_iter=200)
    p, q = exact_law(truth)[1], exact_law(result.model)[1]
    assert p @ np.log(p / q) < 0.1 * (p @ np.log(p * p.size))


@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")  # approximations do not match moments
def test_same_seed_same_bits(name, rng):
    data = sampled_data(random_model(gb.graphs.grid(2, 2), rng), 200, rng)
    fits = [fit(name, data, graph="grid:2x2") for _ in range(2)]
    assert np.array_equal(fits[0].model_.theta, fits[1].model_.theta)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")  # approximations do not match moments
def test_penalties_shrink(name, rng):
    promise(name, "penalised", True)
    data = sampled_data(random_model(gb.graphs.complete(4), rng), 300, rng)
    free, ridge, lasso = (fit(name, data, **penalty).model_ for penalty in ({}, {"l2": 0.5}, {"l1": 10.0}))
    assert np.linalg.norm(ridge.theta) < np.linalg.norm(free.theta)
    assert not lasso.parts.couplings.any()
    assert lasso.parts.biases.any()


@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")  # approximations do not match moments
def test_temperature_scales_the_parameters(name, scores, rng):
    """P depends on theta / T only, so a fit at T = 2 doubles the parameters (YK15)."""
    promise(name, "stochastic", False)
    data = sampled_data(random_model(gb.graphs.complete(3), rng, scores, scale=0.3), 400, rng)
    cold, warm = fit(name, data), fit(name, data, temperature=2.0)
    np.testing.assert_allclose(warm.model_.theta, cold.model_.theta, atol=1e-5)
    np.testing.assert_allclose(warm.reported_model.theta, 2 * warm.model_.theta)
    np.testing.assert_allclose(warm.couplings_, 2 * cold.couplings_, atol=1e-4)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")  # approximations do not match moments
def test_coding_of_the_data_does_not_change_the_distribution(name, rng):
    """The 0/1 and the -1/+1 fit are one distribution, converted exactly."""
    promise(name, "stochastic", False)
    data = sampled_data(random_model(gb.graphs.complete(4), rng), 400, rng)
    spin, binary = fit(name, data), fit(name, data.convert("binary"))
    np.testing.assert_allclose(binary.convert("spin").model_.theta, spin.model_.theta, atol=1e-5)


def test_exact_weights_give_back_the_truth(name, rng):
    promise(name, "consistent", True)
    truth = random_model(gb.graphs.complete(4), rng, scale=0.4)
    states, probabilities, _ = exact_law(truth)
    machine = fit(name, dataset_of(states, truth.variables, probabilities), tol=1e-10)
    np.testing.assert_allclose(machine.model_.theta, truth.theta, atol=1e-6)


# -- the same with noise in every step -------------------------------------------------------------------------------
@pytest.mark.parametrize("name", STOCHASTIC)
def test_noisy_steps_scale_with_the_temperature(name):
    """A penalty of a quarter at T = 2 doubles the parameters: theta^2 is four times as large."""
    cold, cold_error = repeated(name, l2=0.1)
    warm, warm_error = repeated(name, temperature=2.0, l2=0.025)
    assert max(cold_error, warm_error / 2) < 0.01
    np.testing.assert_allclose(warm, 2 * cold, rtol=1e-10)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_noisy_steps_do_not_see_the_coding(name):
    spin, spin_error = repeated(name)
    binary, binary_error = repeated(name, coding="binary")
    assert max(spin_error, binary_error) < 0.01
    assert np.abs(binary - spin).max() < FAR * np.hypot(spin_error, binary_error)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_noisy_steps_find_the_truth(name):
    truth, _ = noisy_truth()
    found, noise = repeated(name)
    assert noise < 0.02
    assert (np.abs(found - truth.theta) < FAR * np.hypot(data_errors(truth, 2000), noise)).all()
