"""Preconditioners are inverse Hessians where columns are independent, and make the coding indifferent."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.data import Dataset
from gibbsian.objectives import Likelihood, ProbabilityFlow, Pseudolikelihood, RatioMatching
from gibbsian.objectives.preconditioners import _SHRUNK, preconditioning
from gibbsian.storage.checkpoints import pack, unpack
from systems import all_states, dataset_of

OBJECTIVES = [Likelihood(), Pseudolikelihood(), RatioMatching(), ProbabilityFlow()]
CODINGS = {"spin": gb.domain.SPIN, "binary": gb.domain.BINARY}


def independent(model, mean):
    """Return the model of independent columns, and its distribution as weighted rows."""
    near = preconditioning(model).independent(mean)
    states = all_states(model.n_variables, model.domain)
    weights = np.exp(near.log_weights(states))
    return near, Dataset.read(states, coding=model.domain.name, sample_weight=weights / weights.sum())


def independent_pairs(n, domain, mean):
    return preconditioning(gb.PairwiseModel.zeros(gb.graphs.complete(n), domain)).independent(mean)


def models(domain):
    complete = gb.graphs.complete(4)
    return {
        "all pairs": gb.PairwiseModel.zeros(complete, domain),
        "no biases": gb.PairwiseModel.zeros(complete, domain, bias=False),
        "triples": gb.HigherOrderModel.of_order(4, 3, domain),
    }


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
@pytest.mark.parametrize("kind", models(gb.domain.SPIN))
@pytest.mark.parametrize("coding", CODINGS)
def test_a_metric_undoes_the_hessian_of_independent_columns(coding, kind, objective):
    domain = CODINGS[coding]
    model = models(domain)[kind]
    rates = np.full(4, 0.5) if kind == "no biases" else np.array([0.3, 0.5, 0.8, 0.6])
    if kind == "no biases" and coding == "binary":
        pytest.skip("moments about zero are correlated, so that couplings that share a column do not separate")
    mean = domain.low + domain.gap * rates
    near, data = independent(model, mean)
    metric, centring = objective.preconditioner(near, data, mean, 0.0), preconditioning(model).centred(mean)
    hessian = objective.curvature(near, data)
    for theta in np.eye(model.theta.size):
        slopes = centring.gradient(hessian @ centring.outwards(theta))
        np.testing.assert_allclose(metric(slopes), theta, atol=1e-5)


@pytest.mark.parametrize("l2", [0.0, 0.01])
@pytest.mark.parametrize("objective", [Likelihood(), Pseudolikelihood()], ids=lambda objective: objective.name)
def test_a_metric_is_symmetric_and_positive_on_correlated_columns_with_a_ridge(objective, l2):
    rows = (np.random.default_rng(0).random((300, 6)) < 0.2).astype(int)
    rows[:, 1] |= rows[:, 0]
    data, mean = Dataset.read(rows), (rows.sum(axis=0) + 1) / (len(rows) + 2)
    near = independent_pairs(6, data.domain, mean)
    metric = objective.preconditioner(near, data, mean, l2)
    matrix = np.array([metric(unit) for unit in np.eye(near.theta.size)])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix).min() > 0


@pytest.mark.parametrize("learner", ["mple", "rm", "mpf", "mle"])
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_either_coding_takes_the_same_few_evaluations(learner, l1):
    rng = np.random.default_rng(1)
    graph = gb.graphs.complete(10)
    model = gb.PairwiseModel.build(graph, rng.normal(0.5, 0.3, 10), rng.normal(0, 0.15, 45))
    spins = gb.inference.exact(model).sample(3000, rng)
    counts = []
    for rows in (spins, (spins + 1) // 2):
        result = gb.BoltzmannMachine(learner=learner, l1=l1, tol=1e-5).fit(rows).result_
        assert result.converged
        counts.append(result.trace.column("evaluations")[-1])
    assert max(counts) <= (40 if l1 else 20)
    assert l1 or counts[0] == counts[1]


@pytest.mark.parametrize("objective", OBJECTIVES[1:], ids=lambda objective: objective.name)
@pytest.mark.parametrize("coding", CODINGS)
def test_a_renewed_metric_knows_how_each_coupling_bends_in_a_model_that_is_right(coding, objective):
    domain, rng, l2 = CODINGS[coding], np.random.default_rng(2), 0.03
    spins = gb.PairwiseModel.build(gb.graphs.complete(4), rng.normal(0, 0.8, 4), rng.normal(0, 0.6, 6))
    right, _ = spins.to_domain(domain)
    states = all_states(4, domain)
    data = Dataset.read(states, coding=domain.name, sample_weight=np.exp(right.log_weights(states)))
    mean = np.average(data.states, axis=0, weights=data.weights)
    start, centring = (
        objective.preconditioner(preconditioning(right).independent(mean), data, mean, l2),
        preconditioning(right).centred(mean),
    )
    sums = objective.slope_sums(right, data)
    metric = start.at(start.curvature.renewed(sums(right.theta)))
    hessian = objective.curvature(right, data) + l2 * np.eye(right.theta.size)
    for k, (i, j) in enumerate(right.graph.edges):
        theta = centring.outwards(_along(metric, k))
        np.testing.assert_allclose(theta @ hessian @ theta, metric.scales[i, j] ** -2.0, rtol=1e-4)


def _along(metric, k):
    """A coupling with what biases take up."""
    (i, j), n = metric.ends[:, k], len(metric.scales)
    along = np.zeros(n + len(metric.ends.T))
    along[[i, j, n + k]] = metric.lean[i, j], metric.lean[j, i], 1.0
    return along


@pytest.mark.parametrize("objective", OBJECTIVES[1:], ids=lambda objective: objective.name)
def test_couplings_of_a_variable_go_together_by_what_a_ridge_keeps_its_bias_from(objective):
    states, l2 = all_states(4, gb.domain.SPIN), 1.0
    data = Dataset.read(states, sample_weight=np.prod(np.where(states > 0, 0.8, 0.2), axis=1))
    mean = np.full(4, 0.6)
    near = independent_pairs(4, data.domain, mean)
    start = objective.preconditioner(near, data, mean, l2)
    metric = start.at(start.curvature.renewed(objective.slope_sums(near, data)(near.theta)))
    hessian = objective.curvature(near, data) + l2 * np.eye(near.theta.size)
    one, other = (preconditioning(near).centred(mean).outwards(_along(metric, k)) for k in (0, 1))
    # of two variables in three others, and in the loss of one variable of two
    together = 2.0 / 3.0 * one @ hessian @ other / ((one @ hessian @ one - l2) / 2.0)
    correlations = metric.basis @ np.diag(np.diag(metric.divisors)) @ metric.basis.T
    assert together > 0.05
    np.testing.assert_allclose(correlations[1, 2], (1.0 - _SHRUNK) * together, rtol=1e-4)


@pytest.mark.parametrize("coding", CODINGS)
def test_a_first_step_follows_the_slopes_of_pseudolikelihood_at_independent_columns(coding):
    domain, rng, l2 = CODINGS[coding], np.random.default_rng(5), 0.03
    rows = (rng.random((400, 5)) < [0.1, 0.3, 0.5, 0.2, 0.6]).astype(int)
    rows[:, 1] |= rows[:, 0]
    data = Dataset.read(domain.from_codes(rows), coding=domain.name)
    mean, objective = np.average(data.states, axis=0, weights=data.weights), Pseudolikelihood()
    near = independent_pairs(5, domain, mean)
    metric, change = objective.preconditioner(near, data, mean, l2), preconditioning(near).centred(mean)
    ridge, gradient = l2 * near.theta, objective.bind(near, data)(near.theta)[1]
    slopes = change.gradient(ridge + gradient)
    step = metric.curvature.first_step(change.gradient(ridge))
    moved = slopes @ metric(slopes) / np.trace(metric.curvature.covariance)
    np.testing.assert_allclose(step, -metric(slopes) / np.sqrt(1.0 + moved), rtol=1e-6, atol=1e-9)
    assert moved > 0.05


# of 78 moments of columns down to a thousandth some differ: three columns are dependent, which no pairwise model holds
@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")
@pytest.mark.parametrize("learner", ["mple", "rm", "mpf"])
def test_rare_columns_take_few_evaluations_in_either_coding(learner):
    rng = np.random.default_rng(3)
    rows = (rng.random((4000, 12)) < 10 ** rng.uniform(-3, -0.5, 12)).astype(np.int8)
    rows[:, 3] |= rows[:, 4] & rows[:, 5]
    for coded in (rows, 2 * rows - 1):
        result = gb.BoltzmannMachine(learner=learner, l2=1e-4, tol=1e-5).fit(coded).result_
        assert result.converged
        assert result.trace.column("evaluations")[-1] <= 20


def test_a_fit_taken_up_after_its_metric_was_renewed_goes_on_to_the_same_bits():
    rows = (np.random.default_rng(4).random((500, 8)) < 0.1).astype(int)
    rows[:, 1] |= rows[:, 0]
    data, learner = Dataset.read(rows), gb.learners.as_learner("mple")
    model = gb.PairwiseModel.zeros(gb.graphs.complete(8), data.domain)
    state = learner.init(model, data, None)
    for _ in range(6):
        state, _ = learner.step(state)
    assert len(state.progress.numbers)
    fresh = learner.init(model, data, None)
    again = learner.restored(fresh, unpack(fresh.progress, pack(state.progress)))
    for _ in range(3):
        (state, _), (again, _) = learner.step(state), learner.step(again)
    np.testing.assert_array_equal(state.progress.theta, again.progress.theta)


LEVELS = gb.domain.Categories((3, 2, 4), ((-1.0, 0.0, 1.5), (0.0, 1.0), (0.0, 1.0, 2.0, 5.0)))
SHARES = np.array([0.2, 0.5, 0.3, 0.4, 0.6, 0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("objective", [Likelihood(), Pseudolikelihood()], ids=lambda objective: objective.name)
@pytest.mark.parametrize("graph", [gb.graphs.complete(3), gb.graphs.grid(1, 3)], ids=["all pairs", "chain"])
def test_levels_and_couplings_of_scores_are_undone_at_independent_columns(graph, objective):
    known = preconditioning(gb.models.OrdinalModel.zeros(graph, LEVELS))
    near, states, l2 = known.independent(SHARES), all_states(3, LEVELS), 0.0
    data = dataset_of(states, LEVELS, np.exp(near.log_weights(states)))
    inverse, centring = objective.preconditioner(near, data, SHARES, l2), known.centred(SHARES)
    hessian = objective.curvature(near, data)
    for theta in np.eye(near.theta.size):
        slopes = centring.gradient(hessian @ centring.outwards(theta))
        np.testing.assert_allclose(inverse(slopes), theta, atol=1e-5)


def test_levels_about_mean_scores_are_the_same_energies(rng):
    model = gb.models.OrdinalModel.zeros(gb.graphs.complete(3), LEVELS)
    model, known = model.replace(rng.normal(size=model.theta.size)), preconditioning(model)
    change, states = known.centred(SHARES), all_states(3, LEVELS)
    inner = change.inwards(model.theta)
    np.testing.assert_allclose(change.outwards(inner), model.theta, atol=1e-12)
    scores = np.column_stack([levels[states[:, i]] for i, levels in enumerate(LEVELS.levels(3))])
    means = np.array([-1.0 * 0.2 + 1.5 * 0.3, 0.6, 0.2 + 0.6 + 2.0])
    units = (scores - means) / [1.25, 0.5, 2.5]
    levels = np.column_stack([states[:, i] == code for i, size in enumerate(LEVELS.sizes) for code in range(1, size)])
    log_weights = levels @ inner[:6] + sum(
        inner[6 + edge] * units[:, i] * units[:, j] for edge, (i, j) in enumerate(model.graph.edges)
    )
    np.testing.assert_allclose(np.ptp(log_weights - model.log_weights(states)), 0.0, atol=1e-12)


@pytest.mark.parametrize("learner", ["mple", "rm", "mpf"])
def test_ordered_levels_take_few_evaluations(learner):
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(800, 2)) @ rng.normal(size=(2, 12)) + rng.normal(size=(800, 12))
    rows = (latent[:, :, None] > np.sort(rng.normal(size=(12, 4)), axis=1)).sum(axis=2)
    result = gb.OrdinalMachine(learner=learner, l2=0.0, tol=1e-5).fit(rows).result_
    assert result.converged
    assert result.trace.column("evaluations")[-1] <= 35
