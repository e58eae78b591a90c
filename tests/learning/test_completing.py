"""Missing cells in learners that need complete rows: the equations that are solved, and what they give."""

import tracemalloc
import warnings

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ConvergenceWarning, MissingValuesError
from gibbsian.expectations import ClampedChains
from gibbsian.learning import as_learner, run
from gibbsian.learning.completing import AllCompletions
from gibbsian.learning.objectives import value_and_gradient
from gibbsian.models.families.tables import coupling_norms
from gibbsian.rng import Key
from systems import dataset_of, exact_law, models_with_variables, name_of, random_model, random_model_of, sampled_data

OBJECTIVES = ["mple", "rm", "mpf"]
NODEWISE = ["rise", "logrise", "rple"]
TRIANGLE = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], 4)


def dataset(states, variables, missing, weights=None):
    """Rows of codes as data, some cells of which are missing."""
    coding = dataset_of(states, variables).coding
    return gb.Dataset.of_states(states, coding, missing=missing, sample_weight=weights)


def pierced(data, share, rng):
    """Return the rows with cells missing at random: more often where the last column, which stays, is high."""
    codes, _ = data.rows()
    odds = np.where(codes[:, -1:] > 0, 1.5 * share, 0.5 * share)
    holes = rng.random(codes.shape) < odds
    holes[:, -1] = False
    return dataset(codes, data.variables, holes)


def learn(learner, model, data, seed=0, **limits):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run(learner, model.replace(0 * model.theta), data, np.random.default_rng(seed), **limits)


@pytest.fixture(params=models_with_variables(4), ids=lambda part: f"{part[0]}-{name_of(part[1])}")
def truth(request):
    kind, variables = request.param
    return random_model_of(kind, TRIANGLE, np.random.default_rng(3), variables, scale=0.4)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_solves_the_stated_equations(name, truth, rng):
    """By enumeration: the mean over rows of the expected gradient given the present cells, plus the ridge, vanishes."""
    data = pierced(sampled_data(truth, 150, rng), 0.2, rng)
    weights = rng.integers(1, 4, data.n_states).astype(float)
    data = dataset(data.states, data.variables, data.missing, weights)
    learner = as_learner(name, l2=0.05)
    result = learn(learner, truth, data, tol=1e-8, max_iter=200)
    assert result.converged, result.reason
    model = result.model
    states, probabilities, _ = exact_law(model)
    total = 0.05 * model.theta
    for state, missing, weight in zip(data.states, data.missing, data.weights / data.weights.sum(), strict=True):
        fits = (states[:, ~missing] == state[~missing]).all(axis=1)
        rows = dataset_of(states[fits], data.variables, probabilities[fits])
        total = total + weight * value_and_gradient(learner.objective, model, rows)[1]
    np.testing.assert_allclose(total, 0.0, atol=1e-7)


@pytest.mark.parametrize("name", OBJECTIVES + NODEWISE)
def test_complete_rows_are_the_plain_fit_to_the_bit(name, rng):
    model = random_model(gb.graphs.complete(4), rng, scale=0.4)
    data = sampled_data(model, 200, rng)
    marked = dataset(data.states, data.variables, data.holes, data.weights)
    plain, same = (learn(as_learner(name), model, rows) for rows in (data, marked))
    assert np.array_equal(plain.model.theta, same.model.theta)


@pytest.mark.parametrize("name", OBJECTIVES + NODEWISE)
def test_exact_weights_with_holes_give_back_the_truth(name, scores, rng):
    """Consistency without sampling: the exact distribution, and again with cells missing at random."""
    truth = random_model(gb.graphs.complete(4), rng, scores, scale=0.4)
    states, probabilities, _ = exact_law(truth)
    hidden = np.zeros((3, *states.shape), bool)
    hidden[1, :, 0] = hidden[2, :, 1] = hidden[2, :, 2] = True
    # two cells are missing more often where a third, which is there, is high; the rest of those rows is complete
    often = np.where(states[:, 3] > 0, 2.0, 0.5)
    weights = np.concatenate([probabilities * (2.5 - often), probabilities, probabilities * often])
    data = dataset(np.tile(states, (3, 1)), truth.variables, hidden.reshape(-1, 4), weights)
    result = learn(as_learner(name), truth, data, tol=1e-10, max_iter=500)
    np.testing.assert_allclose(result.model.theta, truth.theta, atol=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_recovers_the_truth_and_beats_complete_rows(name, rng):
    """Twenty samples with a fifth of the cells missing at random; complete rows are few and no fair sample."""
    truth = random_model(gb.graphs.complete(5), rng, scale=0.4)
    errors = {"completed": [], "complete rows": []}
    for _ in range(20):
        data = pierced(sampled_data(truth, 1000, rng), 0.2, rng)
        whole = data.complete_rows()
        for way, rows in (("completed", data), ("complete rows", whole)):
            errors[way].append(learn(as_learner(name), truth, rows).model.theta - truth.theta)
    completed, dropped = (np.array(errors[way]) for way in ("completed", "complete rows"))
    spread = completed.std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(np.abs(completed.mean(axis=0)) < 4.5 * spread + 0.01)
    assert np.sqrt((completed**2).mean()) < 0.8 * np.sqrt((dropped**2).mean())


@pytest.mark.parametrize("name", ["mple", "mpf"])
def test_chains_come_to_the_same_answer(name, scores, rng):
    truth = random_model(gb.graphs.complete(4), rng, scores, scale=0.4)
    data = pierced(sampled_data(truth, 400, rng), 0.2, rng)
    exact = learn(as_learner(name, l2=0.01), truth, data).model
    learner = as_learner(name, l2=0.01, completions=ClampedChains(copies=4))
    result = learn(learner, truth, data, max_iter=600)
    np.testing.assert_allclose(result.model.theta, exact.theta, atol=0.2 / truth.family.layout.gap**2)


def test_chunks_with_holes_approach_the_whole_fit(rng):
    truth = random_model(gb.graphs.complete(4), rng, scale=0.4)
    data = pierced(sampled_data(truth, 8000, rng), 0.2, rng)
    target = learn(as_learner("mple"), truth, data).model.theta
    learner, state = as_learner("mple", batch_size=100), None
    start = truth.replace(0 * truth.theta)
    for rows in np.array_split(rng.permutation(data.n_rows), 20):
        fit = learner.bind(start, data.take(rows))
        state, _ = fit.step(fit.init(Key.of(rng))[0] if state is None else fit.carry(state))
    assert np.abs(fit.model(state).theta - target).max() < 0.1


def test_l1_keeps_exact_zeros(rng):
    truth = random_model(gb.graphs.complete(5), rng, scale=0.2)
    data = pierced(sampled_data(truth, 500, rng), 0.2, rng)
    result = learn(as_learner("mple", l1=0.1), truth, data, tol=1e-7)
    assert result.converged
    assert 0 < (result.model.parts.couplings == 0).sum() < 10


@pytest.mark.parametrize("region", [1, "s2"])
def test_data_as_samples_are_completed_in_all_ways(region, scores, rng):
    truth = random_model(gb.graphs.grid(2, 2), rng, scores, scale=0.4)
    states, probabilities, _ = exact_law(truth)
    hidden = np.zeros((2, *states.shape), bool)
    hidden[1, :, :2] = True
    data = dataset(np.tile(states, (2, 1)), truth.variables, hidden.reshape(-1, 4), np.tile(probabilities, 2))
    result = learn(as_learner("smci", region=region), truth, data, tol=1e-10)
    np.testing.assert_allclose(result.model.theta, truth.theta, atol=1e-6)


@pytest.mark.parametrize("name", [*OBJECTIVES, *NODEWISE, "smci", "online"])
def test_a_column_that_no_row_shows_is_refused(name, rng):
    """The expected score of its bias vanishes identically, so that nothing would determine it."""
    truth = random_model(gb.graphs.complete(3), rng)
    data = sampled_data(truth, 50, rng)
    hidden = dataset(data.states, truth.variables, np.tile([False, False, True], (data.n_states, 1)))
    with pytest.raises(MissingValuesError, match="no row shows 'x2'"):
        as_learner(name).bind(truth, hidden).init(Key.of(rng))
    for objective in (as_learner(name).objective for name in OBJECTIVES):
        _, gradient = value_and_gradient(objective, truth, AllCompletions.of(hidden).under(truth))
        assert gradient[2] == pytest.approx(0.0, abs=1e-12)


def test_completions_keep_the_weight_of_their_row(rng):
    model = random_model(gb.graphs.complete(4), rng)
    data = pierced(sampled_data(model, 60, rng), 0.3, rng)
    completed = AllCompletions.of(data).under(model)
    assert completed.total_weight == pytest.approx(data.total_weight)
    assert len(np.unique(completed.states, axis=0)) == completed.n_states


def many_rows(n_rows, rng, n=20):
    """Rows of spins that follow one another, nearly all different, with one cell in a hundred missing."""
    states = np.where(rng.random((n_rows, n)) < 0.5, 1, 0).astype(np.int8)
    for i in range(1, n):
        states[:, i] = np.where(rng.random(n_rows) < 0.4, states[:, i - 1], states[:, i])
    holes = rng.random(states.shape) < 0.01
    return gb.Dataset.of_states(states, "spin", missing=holes)


def test_few_holes_take_hardly_more_evaluations_than_whole_rows(rng):
    """The rows are completed anew in every evaluation, and the metric of independent columns serves both."""
    data, model = many_rows(3000, rng), gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(20)))
    counts = [learn(as_learner("mple"), model, rows).trace.rows[-1][4] for rows in (data, data.complete_rows())]
    assert counts[0] <= counts[1] + 3


def test_listed_completions_take_fewer_bytes_than_floats_would(rng):
    """By how the peak grows with the rows: eight bytes for each cell would be one array of floats."""
    model, peaks, cells = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(60))), [], []
    for n_rows in (10_000, 40_000):
        data = many_rows(n_rows, rng, n=60)
        tracemalloc.start()
        listed = AllCompletions.of(data)
        listed.under(model)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        cells.append(listed.rows.states.size)
    assert np.diff(peaks)[0] < 8 * np.diff(cells)[0]


def many_valued(rng, n_rows=300, n=12, size=8):
    """Columns of which each repeats the one before in half of the rows, and the same with holes."""
    cells = rng.integers(0, size, (n_rows, n))
    for i in range(1, n):
        cells[:, i] = np.where(rng.random(n_rows) < 0.5, cells[:, i - 1], cells[:, i])
    return cells, np.where(rng.random(cells.shape) < 0.03, np.nan, cells)


@pytest.mark.parametrize("completions", ["exact", "chains"])
def test_tables_of_many_values_come_to_rest_with_holes(completions, rng):
    """More parameters than cells: every completion, or a few, lead near the answer of whole rows."""
    whole, holed = (gb.Dataset.read(cells, coding=gb.data.Labels(range(8))) for cells in many_valued(rng))
    model = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(12), whole.variables))
    assert model.theta.size > 4096
    target = learn(as_learner("mple", l2=0.01), model, whole)
    result = learn(as_learner("mple", l2=0.01, completions=completions), model, holed, max_iter=200)
    assert target.converged
    assert result.converged, result.reason
    found, wanted = (coupling_norms(each.model) for each in (result, target))
    assert np.corrcoef(found, wanted)[0, 1] > 0.98
    assert result.n_steps < (200 if completions == "chains" else 100)
