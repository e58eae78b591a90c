"""Moment matching with a clamped phase: missing cells and hidden units of any size."""

import dataclasses

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.expectations import PersistentChains, Sampled
from gibbsian.expectations.exact import BoundExact
from gibbsian.expectations.imputation import present_means
from gibbsian.expectations.per_call import completed_rows
from gibbsian.expectations.sampled import BoundSampled
from gibbsian.inference.posterior import PATIENT_SECONDS, clamped_seconds
from gibbsian.learning import MomentMatching, as_learner, break_symmetry, run
from gibbsian.learning.initial import scattered
from gibbsian.learning.objectives import Likelihood
from gibbsian.learning.optimizers import Ascent
from gibbsian.learning.phases import bind_clamped
from gibbsian.rng import Key
from holes import holed, rows_with_holes
from systems import SPINS, models_with_variables, name_of, random_model, random_model_of, sampled_data


def missing_problem(rng, variables=SPINS):
    truth = random_model(gb.graphs.complete(4), rng, variables, scale=0.4)
    return truth.replace(0 * truth.theta), holed(sampled_data(truth, 500, rng), rng, 0.2)


def exclusive_or(rng, n_hidden=2):
    """Three columns, each nearly the exclusive or of the others: pairwise, any three variables are independent."""
    n = 3 + n_hidden
    first = rng.integers(0, 2, (400, 2))
    rows = np.hstack([first, first[:, :1] ^ first[:, 1:]]) ^ (rng.random((400, 3)) < 0.05)
    table = gb.Dataset.read(np.hstack([2 * rows - 1, np.ones((400, n_hidden))]), coding="spin")
    data = holed(table, rng, hidden=range(3, n))
    return break_symmetry(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(n))), data, rng, scale=0.5), data


@pytest.mark.parametrize("clamped", [None, "pcd", "smci-pcd"])
@pytest.mark.parametrize("name", ["pcd", "smci-pcd"])
def test_missing_cells_by_chains_agree_with_exact_likelihood(name, clamped, scores, rng):
    start, data = missing_problem(rng, scores)
    function = Likelihood().bind(start, data)
    best = run(as_learner("mle"), start, data, rng)
    found = run(as_learner(name, clamped=clamped), start, data, np.random.default_rng(1), max_iter=200)
    # twice the excess is chi-squared over the number of rows: the noise of 500 chains is that of so many rows
    assert function(found.model.theta)[0] < function(best.model.theta)[0] + 0.005
    assert function(start.theta)[0] > function(best.model.theta)[0] + 0.05


@pytest.mark.parametrize(("name", "settings"), [("cd", {}), ("smci-pcd", {"region": "s2"})])
def test_every_chain_learner_takes_missing_cells(name, settings, scores, rng):
    start, data = missing_problem(rng, scores)
    function = Likelihood().bind(start, data)
    found = run(as_learner(name, **settings), start, data, np.random.default_rng(1), max_iter=120)
    best = function(run(as_learner("mle"), start, data, rng).model.theta)[0]
    assert function(found.model.theta)[0] - best < 0.1 * (function(start.theta)[0] - best)


@pytest.mark.parametrize(
    ("kind", "variables"), models_with_variables(4), ids=lambda part: part if isinstance(part, str) else name_of(part)
)
def test_every_model_learns_from_rows_with_missing_cells(kind, variables, rng):
    truth = random_model_of(kind, gb.graphs.complete(4), rng, variables, scale=0.5)
    data = holed(sampled_data(truth, 400, rng), rng, 0.2)
    start = truth.replace(0 * truth.theta)
    function = Likelihood().bind(start, data)
    learner = as_learner("pcd", clamped="pcd", l2=1e-3)
    found = run(learner, start, data, np.random.default_rng(1), max_iter=100)
    best = function(run(as_learner("mle", l2=1e-3), start, data, rng, max_iter=200).model.theta)[0]
    assert function(found.model.theta)[0] - best < 0.2 * (function(start.theta)[0] - best)


def test_hidden_units_by_chains_reach_the_score_of_exact_likelihood(rng):
    start, data = exclusive_or(rng)
    function = Likelihood().bind(start, data)
    best = run(as_learner("mle", l2=1e-3), start, data, rng, max_iter=500)
    found = run(as_learner("pcd", l2=1e-3, clamped="pcd"), start, data, np.random.default_rng(2), max_iter=1500)
    independent = 3 * np.log(2)  # the best that three variables without hidden units can do
    assert function(best.model.theta)[0] < independent - 0.2
    assert function(found.model.theta)[0] < function(best.model.theta)[0] + 0.02


def test_exact_phases_end_at_the_maximum(scores, rng):
    start, data = missing_problem(rng, scores)
    best = run(as_learner("mle"), start, data, rng, tol=1e-9)
    learner = MomentMatching("exact", optimizer=Ascent(learning_rate=0.5), centred=True, clamped="exact")
    found = run(learner, start, data, rng, tol=1e-7, max_iter=3000)
    assert found.converged
    np.testing.assert_allclose(found.model.theta, best.model.theta, atol=1e-4)


def test_noise_of_the_clamped_phase_counts(rng):
    """With an exact free phase the only noise is that of the clamped chains, and the fit ends within it."""
    start, data = missing_problem(rng)
    learner = MomentMatching(
        "exact", optimizer="adam", average=True, min_iter=50, clamped=Sampled(PersistentChains(copies=4))
    )
    found = run(learner, start, data, np.random.default_rng(0), max_iter=2000)
    assert found.converged
    assert "Monte Carlo noise" in found.reason


@pytest.mark.parametrize("region", [1, "s2"])
def test_data_as_samples_must_have_few_completions(region, rng, monkeypatch):
    start, data = missing_problem(rng)
    monkeypatch.setattr("gibbsian.learning.moment_matching.are_few", lambda data: False)
    with pytest.raises(MissingValuesError, match="learner='smci-pcd' or 'pcd'"):
        as_learner("smci", region=region).bind(start, data)


def test_contrastive_divergence_needs_rows_to_start_at(rng):
    start, data = missing_problem(rng)
    with pytest.raises(ArgumentError, match="gives no completed rows: use clamped='pcd' or 'smci-pcd'"):
        as_learner("cd", clamped="exact").bind(start, data)


def test_clamped_must_be_known(rng):
    with pytest.raises(ArgumentError, match=r"clamped='gibbs' is not known: use one of .*exact, .*mean-field"):
        as_learner("pcd", clamped="gibbs")
    with pytest.raises(ArgumentError, match=r"clamped=3 must be one of .*, or an expectation"):
        as_learner("pcd", clamped=3)


def test_default_is_exact_while_quick(rng):
    """By predicted seconds: thirty missing cells that hardly interact are summed out, thirty in a clique are not."""
    start, data = missing_problem(rng)
    assert isinstance(bind_clamped(None, start, data), BoundExact)
    wide = gb.Dataset.read(np.where(rng.random((20, 60)) < 0.5, np.nan, 1.0), coding="spin")
    for graph, expected in (
        (gb.graphs.complete(60), BoundSampled),
        (gb.graphs.grid(1, 60), BoundExact),
        (gb.graphs.grid(6, 10), BoundExact),
        (gb.graphs.from_edges([(i, j) for i in range(30) for j in range(30, 60)], 60), BoundSampled),
    ):
        model = gb.Model.zeros(gb.PairwiseFamily(graph))
        assert isinstance(bind_clamped(None, model, wide), expected)
        assert (clamped_seconds(model, wide) <= PATIENT_SECONDS) == (expected is BoundExact)
        assert isinstance(as_learner("pcd").bind(model, wide).gradient.clamped, expected)


def test_completions_keep_present_cells_weights_and_rows(rng):
    start, data = missing_problem(rng)
    data = dataclasses.replace(data, weights=np.where(np.arange(data.n_states) == 2, 0.0, data.weights))
    bound = Sampled(PersistentChains()).bind(start, data)
    _, state = bound(start.theta, bound.init(start.theta, Key.of(rng)))
    used, shown = data.weights > 0, ~data.missing
    for copy in (None, 0, 1):
        complete = completed_rows(data, bound.samples(state, copy))
        assert complete.total_weight == pytest.approx(data.total_weight)
        for row, mask, weight in zip(data.states[used], shown[used], data.weights[used], strict=True):
            fits = (complete.states[:, mask] == row[mask]).all(axis=1)
            assert complete.weights[fits].sum() >= weight - 1e-9


def test_means_of_present_cells():
    data = gb.Dataset.read(
        [[0, None, 1], [1, None, 1], [None, None, 0]], coding="binary", sample_weight=[1.0, 3.0, 2.0]
    )
    np.testing.assert_allclose(present_means(data), [0.75, 0.5, 4 / 6])


@pytest.mark.parametrize(
    ("kind", "variables"), models_with_variables(4), ids=lambda part: part if isinstance(part, str) else name_of(part)
)
def test_symmetry_is_broken_at_interactions_of_hidden_units_alone(kind, variables, rng):
    model = random_model_of(kind, gb.graphs.complete(4), rng, variables)
    start = break_symmetry(model, [3], rng, scale=0.3)
    changed = start.theta != model.theta
    assert changed.any()
    assert not changed[~model.penalised].any()
    # a statistic that moves with the hidden variable is changed, and no other
    states = (rng.random((400, 4)) * variables.sizes).astype(np.int8)
    moves = np.zeros_like(changed)
    for state in states:
        other = state.copy()
        other[3] = states[rng.integers(400), 3]
        moves |= model.family.mean_statistics(state[None]) != model.family.mean_statistics(other[None])
    assert np.array_equal(changed, moves & model.penalised)


def test_hidden_units_are_named_in_any_way(rng):
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4)))
    data = gb.Dataset.read([[1, -1, np.nan, np.nan], [-1, np.nan, np.nan, np.nan]], coding="spin")
    starts = [break_symmetry(model, h, np.random.default_rng(0)) for h in ([2, 3], [False, False, True, True], data)]
    assert all(np.array_equal(start.theta, starts[0].theta) for start in starts)
    assert not break_symmetry(model, [], rng).theta.any()
    with pytest.raises(ArgumentError, match="hidden="):
        break_symmetry(model, [4], rng)
    with pytest.raises(ArgumentError, match="scale=-1"):
        break_symmetry(model, [3], rng, scale=-1)


def test_beside_a_sampled_free_phase_slow_exact_sums_give_way_to_chains(rng):
    data = gb.Dataset.read(rows_with_holes(rng, 5000, 60, 0.1, "spin"), coding="spin")
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(60)))
    assert isinstance(as_learner("pcd").bind(model, data).gradient.clamped, BoundSampled)
    few = data.take(np.arange(50))
    assert isinstance(as_learner("pcd").bind(model, few).gradient.clamped, BoundExact)


@pytest.mark.parametrize("bias", [True, False])
def test_hidden_units_start_as_strongly_coupled_with_biases_as_without(scores, bias):
    """The couplings of spins have a spread of one over the root of their number, products of 0/1 four times that."""
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(40), scores, bias=bias, n_hidden=20))
    start = scattered(model, np.random.default_rng(0)).parts.couplings
    spread = np.sqrt(np.mean(np.square(start[start != 0])))
    assert spread == pytest.approx((2 / model.family.layout.gap) ** 2 / np.sqrt(39), rel=0.1)
