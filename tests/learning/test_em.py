"""EM never raises what it reports: the exact likelihood's negative, or the mean-field bound on it."""

import dataclasses

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.learning import EM, as_learner, break_symmetry, run
from gibbsian.learning.objectives import Likelihood
from gibbsian.rng import Key
from holes import holed
from systems import SPINS, dataset_of, models_with_variables, name_of, random_model, random_model_of, sampled_data

GRAPHS = [gb.graphs.complete(5), gb.graphs.grid(1, 5), gb.graphs.from_edges([(0, 1), (0, 2), (0, 3), (1, 4)], 5)]


def problem(kind, scores, seed):
    """A start and data in which variable 0 is hidden and a fifth of the other cells missing."""
    rng = np.random.default_rng(seed)
    truth = random_model_of(kind, GRAPHS[seed % 3], rng, scores)
    data = holed(sampled_data(truth, 15, rng), rng, 0.2, hidden=[0])
    return break_symmetry(truth.replace(0 * truth.theta), data, rng, scale=0.5), data


@pytest.mark.parametrize("seed", range(3))  # which graph, which penalty
@pytest.mark.parametrize(
    ("kind", "variables"), models_with_variables(5), ids=lambda part: part if isinstance(part, str) else name_of(part)
)
def test_exact_likelihood_never_falls(kind, variables, seed):
    start, data = problem(kind, variables, seed)
    penalties = [{}, {"l2": 0.02}, {"l1": 0.02}][seed % 3]
    result = run(EM(**penalties), start, data, np.random.default_rng(0), max_iter=12)
    values = result.trace.column("value")
    assert np.diff(values).max(initial=0.0) <= 1e-10
    theta = result.model.theta
    penalised = (
        penalties.get("l1", 0.0) * np.abs(theta[start.penalised]).sum() + penalties.get("l2", 0.0) / 2 * theta @ theta
    )
    assert values[-1] == pytest.approx(Likelihood().bind(start, data)(theta)[0] + penalised, abs=1e-10)
    assert values[-1] < Likelihood().bind(start, data)(start.theta)[0]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("clamped", ["exact", "mean-field"])
def test_extrapolation_saves_most_steps_and_never_goes_up(clamped, seed):
    """Three columns, each nearly the exclusive or of the others, and a hidden unit: plain EM creeps."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, (400, 2))
    rows = np.hstack([first, first[:, :1] ^ first[:, 1:]]) ^ (rng.random((400, 3)) < 0.05)
    data = holed(gb.Dataset.read(np.hstack([2 * rows - 1, np.ones((400, 1))]), coding="spin"), rng, hidden=[3])
    start = break_symmetry(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4))), data, rng, scale=0.5)
    learner = EM(clamped, l2=1e-4)
    plain, fast = (
        run(dataclasses.replace(learner, accelerated=way), start, data, np.random.default_rng(0), max_iter=3000)
        for way in (False, True)
    )
    assert plain.converged
    assert fast.converged
    values = fast.trace.column("value")
    assert np.diff(values).max() <= 1e-10
    assert values[-1] <= plain.trace.column("value")[-1] + 1e-5
    assert fast.n_steps < 0.5 * plain.n_steps


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("kind", "variables"), models_with_variables(5), ids=lambda part: part if isinstance(part, str) else name_of(part)
)
def test_mean_field_bound_never_rises_and_bounds_the_likelihood(kind, variables, seed):
    start, data = problem(kind, variables, seed)
    few = gb.expectations.MeanField(max_iter=1 + seed, warn=False)
    result = run(EM(few), start, data, np.random.default_rng(0), max_iter=4)
    values = result.trace.column("value")
    assert np.diff(values).max(initial=0.0) <= 1e-10
    assert values[-1] >= Likelihood().bind(start, data)(result.model.theta)[0] - 1e-10


def test_free_energy_of_each_row_bounds_its_evidence_and_never_rises(scores, rng):
    for graph in (gb.graphs.complete(7), gb.graphs.grid(7, 10)):
        model = random_model(graph, rng, scores, scale=0.6)
        data = dataset_of(rng.integers(0, 2, (1, graph.n_nodes)), model.variables)
        data = holed(data, rng, 0.4, hidden=[0, 1, 2])
        bound = gb.expectations.MeanField(max_iter=1, warn=False).bind(model, data)
        state, energies = bound.init(model.theta, Key.of(rng)), []
        for _ in range(20):
            estimate, state = bound(model.theta, state)
            energies.append(estimate.parts["free_energy"])
        assert np.diff(energies).max() <= 1e-12
        assert energies[-1] >= -gb.inference.posterior.log_evidence(model, data)[0]


def test_ends_where_exact_likelihood_does(scores, rng):
    truth = random_model(gb.graphs.complete(4), rng, scores, scale=0.4)
    data = holed(sampled_data(truth, 400, rng), rng, 0.2)
    start = truth.replace(0 * truth.theta)
    best, found = (run(as_learner(name), start, data, rng, tol=1e-8) for name in ("mle", "em"))
    assert found.converged, found.reason
    np.testing.assert_allclose(found.model.theta, best.model.theta, atol=1e-5)


def test_sampled_e_steps_end_within_their_noise(rng):
    truth = random_model(gb.graphs.complete(4), rng, scale=0.4)
    data = holed(sampled_data(truth, 400, rng), rng, 0.2)
    start = truth.replace(0 * truth.theta)
    best = run(as_learner("mle"), start, data, rng)
    found = run(EM("pcd"), start, data, np.random.default_rng(0), max_iter=200)
    assert found.converged
    assert "Monte Carlo noise" in found.reason
    function = Likelihood().bind(start, data)
    assert function(found.model.theta)[0] < function(best.model.theta)[0] + 0.005


def test_what_cannot_be_is_refused(rng):
    large = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(60)))
    data = gb.Dataset.read(np.where(rng.random((5, 60)) < 0.5, -1.0, 1.0), coding="spin")
    with pytest.raises(TooExpensiveError):
        EM().bind(large, data)
    with pytest.raises(ArgumentError, match="m_steps=0"):
        EM(m_steps=0)
    with pytest.raises(ArgumentError, match=r"clamped='nothing' is not known: use one of .*exact"):
        EM("nothing")


def test_the_function_of_an_m_step_has_its_own_slopes():
    start, data = problem("pairwise", SPINS, 1)
    fit = EM().bind(start, data)
    state, _ = fit.init(Key.of(0))

    def function(theta):
        return fit.steps.complete_data_loss(theta, state.expected.statistics)

    steps = 1e-5 * np.eye(start.theta.size)
    slopes = [(function(start.theta + h)[0] - function(start.theta - h)[0]) / 2e-5 for h in steps]
    np.testing.assert_allclose(function(start.theta)[1], slopes, atol=1e-8)
