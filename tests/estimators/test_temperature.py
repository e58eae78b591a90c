"""The temperature is a unit: models are natural, and estimators report and penalise T times their parameters (YK15)."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.estimators import ESTIMATORS

T = 1.3
KINDS = {
    "pairwise": {},
    "higher-order": {},
    "potts": {},
    "mrf": {"potentials": "bias,product"},
    "rbm": {"n_components": 2, "random_state": 0},
    "dbm": {"n_components": (2, 2), "random_state": 0, "max_iter": 3},
}


@pytest.fixture
def rows(rng):
    x = rng.integers(0, 2, (300, 4))
    return np.column_stack([x, x[:, 0] ^ (rng.random(300) < 0.2)])


def fitted(kind, rows, **settings):
    return ESTIMATORS.factory(kind)(**{**KINDS[kind], **settings}).fit(rows)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_at_a_temperature_is_the_natural_fit_under_the_same_penalty(kind, rows):
    warm, natural = fitted(kind, rows, temperature=T, l2=0.02), fitted(kind, rows, l2=0.02 * T**2)
    np.testing.assert_allclose(warm.model_.theta, natural.model_.theta, rtol=1e-12)
    np.testing.assert_allclose(warm.reported_model.theta, T * natural.model_.theta, rtol=1e-6)
    assert warm.result_.provenance["l2"] == pytest.approx(0.02)


@pytest.mark.parametrize(
    "prior", ["normal:2", "biases=cauchy:2.5,interactions=laplace:0.1", gb.learning.objectives.StudentT(3.0)]
)
def test_a_prior_is_one_of_the_parameters_that_are_reported(prior, rows):
    def stretched(theta):
        density, slope = function(T * theta)
        return density, T * slope

    function, corners = gb.learning.objectives.priors.bind_prior(prior, np.arange(15) >= 5)
    l1 = {} if not corners.any() else {"l1": T * corners.max() / len(rows)}
    warm = gb.BoltzmannMachine(learner="mple", temperature=T, log_prior=prior, tol=1e-9).fit(rows)
    natural = gb.BoltzmannMachine(learner="mple", log_prior=stretched, tol=1e-9, **l1).fit(rows)
    np.testing.assert_allclose(warm.model_.theta, natural.model_.theta, atol=1e-7)


def test_an_l1_penalty_and_what_is_reported(rows, tmp_path):
    warm = gb.BoltzmannMachine(learner="mple", temperature=T, l1=0.02, l2=0.0).fit(rows)
    natural = gb.BoltzmannMachine(learner="mple", l1=0.02 * T, l2=0.0).fit(rows)
    np.testing.assert_allclose(warm.couplings_, T * natural.couplings_)
    np.testing.assert_allclose(warm.biases_, T * natural.biases_)
    np.testing.assert_allclose(warm.interactions().strengths, T * natural.interactions().strengths)
    one, other = (gb.uncertainty.standard_errors(machine, rows).theta_se for machine in (warm, natural))
    np.testing.assert_allclose(one, T * other)
    assert warm.score(rows) == natural.score(rows)
    warm.save(tmp_path / "m.gibbs")
    np.testing.assert_array_equal(gb.load(tmp_path / "m.gibbs").couplings_, warm.couplings_)


def test_at_multiplies_the_parameters(rows):
    model = gb.BoltzmannMachine().fit(rows).model_
    states = np.unique(rows, axis=0).astype(np.int8)
    np.testing.assert_allclose(model.at(0.5).log_weights(states), model.log_weights(states) / 2)
