"""Log-priors: slopes by differences, the maximum of the posterior in every kind of learner, texts, refusals."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from cli_runner import run as command
from gibbsian.errors import ArgumentError
from gibbsian.learning import EM, MomentMatching, as_learner, run
from gibbsian.learning.objectives import Laplace, Likelihood, Normal, Pseudolikelihood, StudentT, value_and_gradient
from gibbsian.learning.objectives.priors import SmoothPenalty, as_families, bind_prior
from gibbsian.models import KMeansFamily, Model
from systems import dataset_of, random_model, sampled_data

X = np.linspace(-3.0, 4.0, 11)


@pytest.mark.parametrize(
    ("family", "law"),
    [
        (Normal(2.0, 0.5), stats.norm(0.5, 2.0)),
        (StudentT(1.0, 2.5, 1.0), stats.cauchy(1.0, 2.5)),
        (StudentT(3.0, 0.7, -0.2), stats.t(3.0, -0.2, 0.7)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_densities_are_scipys_and_slopes_their_differences(family, law):
    values, slopes = family.log_density(X)
    np.testing.assert_allclose(values - values[0], law.logpdf(X) - law.logpdf(X[0]), atol=1e-12)
    step = 1e-6
    differences = (family.log_density(X + step)[0] - family.log_density(X - step)[0]) / (2 * step)
    np.testing.assert_allclose(slopes, differences, atol=1e-8)


def test_texts_and_kinds():
    assert as_families("cauchy:2.5") == [("", StudentT(1.0, 2.5))]
    both = as_families("biases=normal:10:1, interactions=student-t:4:0.5")
    assert both == [("biases", Normal(10.0, 1.0)), ("interactions", StudentT(4.0, 0.5))]
    interactions = np.array([False, False, True])
    log_prior, corners = bind_prior("biases=normal:2,interactions=laplace:0.5", interactions)
    value, gradient = log_prior(np.array([1.0, -2.0, 3.0]))
    assert value == pytest.approx(-(1 + 4) / 8)
    np.testing.assert_allclose(gradient, [-0.25, 0.5, 0.0])
    np.testing.assert_allclose(corners, [0.0, 0.0, 2.0])


@pytest.mark.parametrize("given", ["gauss", "normal:x", "normal:0", "normal:1:2:3", "weights=normal", 3.0, Normal])
def test_what_is_no_prior_is_refused(given):
    with pytest.raises(ArgumentError):
        gb.BoltzmannMachine(log_prior=given).fit([[0, 1], [1, 0], [1, 1], [0, 0]])


@pytest.fixture(scope="module")
def votes() -> gb.Dataset:
    return sampled_data(random_model(gb.graphs.complete(4), np.random.default_rng(0)), 60, np.random.default_rng(1))


@pytest.fixture(scope="module")
def holed(votes) -> gb.Dataset:
    holes = np.zeros((votes.n_rows, votes.n_variables), bool)
    holes[::5, 0] = True
    return dataset_of(votes.rows()[0], votes.variables, missing=holes)


def log_posterior(theta, model, data, objective, log_prior):
    """By its definition (YK15): the log-likelihood of all rows and the log-prior."""
    fit = -data.total_weight * objective.bind(model, data)(theta)[0]
    return fit + log_prior(theta)


@pytest.mark.parametrize(
    ("learner", "objective", "missing"),
    [("mle", Likelihood(), True), ("mple", Pseudolikelihood(), False), ("em", Likelihood(), True)],
)
def test_the_maximum_of_the_posterior_is_stationary(learner, objective, missing, votes, holed):
    """Differences of the log-posterior, with SciPy's densities, vanish in every direction."""
    data = holed if missing else votes
    machine = gb.BoltzmannMachine(learner=learner, log_prior="biases=normal:0.5,interactions=cauchy:0.3:0.2", tol=1e-9)
    model, step = machine.fit(data).model_, 1e-4
    interactions = model.penalised

    def log_prior(theta):
        return (
            stats.norm(0, 0.5).logpdf(theta[~interactions]).sum()
            + stats.cauchy(0.2, 0.3).logpdf(theta[interactions]).sum()
        )

    def at(theta):
        return log_posterior(theta, model, data, objective, log_prior)

    slopes = [(at(model.theta + step * e) - at(model.theta - step * e)) / (2 * step) for e in np.eye(model.theta.size)]
    assert np.abs(slopes).max() < 1e-4
    flat = gb.BoltzmannMachine(learner=learner, tol=1e-9).fit(data).model_
    assert np.abs(flat.theta - model.theta).max() > 0.05


@pytest.mark.parametrize("learner", ["mle", "mple", "rm", "mpf", "em", "smci", "pcd", "online", "minibatch"])
def test_a_normal_prior_is_l2(learner, votes):
    if learner == "minibatch":  # there l2 is of the weights alone
        kind = gb.RestrictedBoltzmannMachine
        given = {"n_components": 2, "max_iter": 3, "random_state": 0, "learner": learner}
        prior = "interactions=normal:2"
    else:
        kind, given, prior = gb.BoltzmannMachine, {"learner": learner, "random_state": 0, "max_iter": 30}, "normal:2"
    with pytest.warns(gb.errors.ConvergenceWarning) if learner in ("pcd", "online") else nullcontext():
        ridge = kind(l2=1 / (4 * votes.total_weight), **given).fit(votes)
        normal = kind(log_prior=prior, **given).fit(votes)
    np.testing.assert_allclose(normal.model_.theta, ridge.model_.theta, rtol=1e-9, atol=1e-9)


def test_a_laplace_prior_is_l1_on_its_kind(votes):
    lasso = gb.BoltzmannMachine(learner="mle", l1=1 / (0.1 * votes.total_weight), tol=1e-9).fit(votes).model_
    laplace = gb.BoltzmannMachine(learner="mle", log_prior="interactions=laplace:0.1", tol=1e-9).fit(votes).model_
    np.testing.assert_allclose(laplace.theta, lasso.theta, atol=1e-9)
    assert (laplace.parts.couplings == 0).any()
    everywhere = gb.BoltzmannMachine(learner="mle", log_prior=Laplace(0.001), tol=1e-9).fit(votes).model_
    assert not everywhere.theta.any()


def test_a_function_of_theta_serves_every_learner(votes):
    """One that ties the couplings together, which no family does."""
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4)))
    spread = np.diag(model.penalised.astype(float)) - np.outer(model.penalised, model.penalised) / model.penalised.sum()

    def log_prior(theta):
        return -50.0 * float(theta @ spread @ theta), -100.0 * spread @ theta

    learners = [as_learner("mle", log_prior=log_prior), EM(log_prior=log_prior),
                MomentMatching("exact", "anderson", log_prior=log_prior)]  # fmt: skip
    fits = [run(learner, model, votes, np.random.default_rng(0), tol=1e-8, max_iter=3000).model for learner in learners]
    for fitted in fits:
        gradient = value_and_gradient(Likelihood(), fitted, votes)[1] - log_prior(fitted.theta)[1] / votes.total_weight
        assert np.abs(gradient).max() < 1e-6


def test_priors_elsewhere(votes, tmp_path):
    table = tmp_path / "rows.csv"
    np.savetxt(table, votes.decode(votes.rows()[0]), fmt="%d", delimiter=",", header="a,b,c,d", comments="")
    flags = ["--learner", "mple", "--log-prior", "cauchy:0.5"]
    result = command("fit", table, *flags, "--out", tmp_path / "m.gibbs")
    assert result.exit_code == 0, result.stderr
    loaded = gb.load(tmp_path / "m.gibbs")
    assert loaded.log_prior == "cauchy:0.5"
    np.testing.assert_allclose(
        loaded.model_.theta, gb.BoltzmannMachine(learner="mple", log_prior="cauchy:0.5").fit(votes).model_.theta
    )
    with pytest.raises(ArgumentError, match="under the prior"):
        gb.uncertainty.standard_errors(loaded, table)
    with pytest.raises(ArgumentError, match="log_prior"):
        gb.BoltzmannMachine(learner="mean-field", log_prior="normal:1").fit(votes)
    with pytest.raises(ArgumentError, match="log_prior"):
        run(EM(log_prior="normal:1"), Model.zeros(KMeansFamily(2, 2)), votes)
    chunks = gb.BoltzmannMachine(log_prior="normal:0.01", random_state=0)
    assert np.abs(chunks.partial_fit(votes).model_.theta).max() < 0.1


@pytest.mark.parametrize("learner", ["mple", "pcd"])
def test_over_chunks_a_prior_counts_once(learner, votes):
    """Chunks of the same rows: the more of them, the less a prior says."""
    few, many = (gb.BoltzmannMachine(learner=learner, log_prior="normal:0.05", random_state=0) for _ in range(2))
    few.partial_fit(votes)
    for _ in range(40):
        many.partial_fit(votes)
    assert np.linalg.norm(many.model_.theta) > 2 * np.linalg.norm(few.model_.theta)
    flat = gb.BoltzmannMachine(learner="mle").fit(votes).model_.theta
    assert np.abs(many.model_.theta - flat).max() < 0.5 * np.abs(flat).max()


def test_the_mean_curvature_of_penalties():
    theta = np.array([-1.0, 0.5, 2.0])
    assert SmoothPenalty(0.3).bend(theta) == 0.3
    quartic = SmoothPenalty(0.3, lambda at: (-float((at**4).sum()) / 4, -(at**3)), n_rows=5.0)
    expected = 0.3 + 3 * theta**2 / 5
    assert quartic.bend(theta) == pytest.approx(expected.mean(), rel=1e-6)
    hollow = SmoothPenalty(0.0, lambda at: (float((at**2).sum()), 2 * at))  # bends the other way
    assert hollow.bend(theta) == 0.0
