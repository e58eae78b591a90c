"""Mean-field inverses against exact moments: where they are exact, and how fast they fail elsewhere."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    ConstantColumnError,
    DataError,
    DegenerateDataWarning,
    TooExpensiveError,
)
from gibbsian.expectations.imputation import present_means
from gibbsian.learning import LEARNERS, as_learner, run
from gibbsian.learning.mean_field import InverseMeanField, warm_start
from gibbsian.learning.objectives import Likelihood
from gibbsian.learning.preconditioners import preconditioning
from systems import BINARY, SPINS, dataset_of, exact_law, random_model, sampled_data

METHODS = ["naive", "tap", "bethe", "independent-pair", "sessak-monasson"]


def exact_data(model):
    states, probabilities, _ = exact_law(model)
    return dataset_of(states, model.variables, probabilities)


def learned(name, model, data, l2=0.0):
    rng = np.random.default_rng(0)
    learner = as_learner("mean-field", approximation=name, l2=l2) if name in METHODS else as_learner(name, l2=l2)
    return run(learner, model.replace(np.zeros_like(model.theta)), data, rng).model.theta


def random_tree(n, rng):
    return gb.graphs.from_edges([(int(rng.integers(0, node)), node) for node in range(1, n)], n)


# -- where they are exact ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_bethe_is_exact_on_trees(seed, scores):
    rng = np.random.default_rng(seed)
    truth = random_model(random_tree(9, rng), rng, scores, scale=0.8)
    np.testing.assert_allclose(learned("bethe", truth, exact_data(truth)), truth.theta, atol=1e-8)


def test_bethe_is_exact_on_a_tree_embedded_in_a_complete_graph(rng):
    """Where a pair has no coupling the formula finds none."""
    tree = random_model(random_tree(7, rng), rng, scale=0.8)
    couplings = tree.family.graph.matrix(tree.parts.couplings)[np.triu_indices(7, 1)]
    full = gb.PairwiseFamily.model(gb.graphs.complete(7), tree.parts.biases, couplings)
    np.testing.assert_allclose(learned("bethe", full, exact_data(tree)), full.theta, atol=1e-8)


@pytest.mark.parametrize("name", ["independent-pair", "bethe", "sessak-monasson"])
@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_two_variables_are_exact(name, strength, scores):
    truth = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.4, -0.7], [-strength], scores)
    np.testing.assert_allclose(learned(name, truth, exact_data(truth)), truth.theta, atol=1e-8)


@pytest.mark.parametrize("name", METHODS)
def test_independent_variables_are_exact(name, scores, rng):
    truth = gb.PairwiseFamily.model(gb.graphs.complete(4), rng.normal(size=4), np.zeros(6), scores)
    np.testing.assert_allclose(learned(name, truth, exact_data(truth)), truth.theta, atol=1e-10)


# -- how fast they fail -----------------------------------------------------------------------------------------------
def errors(name, strength):
    rng = np.random.default_rng(3)
    direction = random_model(gb.graphs.complete(5), rng, scale=1.0)
    truth = gb.PairwiseFamily.model(
        direction.family.graph, 0.4 * direction.parts.biases, strength * direction.parts.couplings
    )
    difference = np.abs(learned(name, truth, exact_data(truth)) - truth.theta)
    return np.array([difference[:5].max(), difference[5:].max()])


@pytest.mark.parametrize(
    ("name", "order"), [("naive", 2), ("independent-pair", 2), ("tap", 3), ("bethe", 3), ("sessak-monasson", 4)]
)
def test_error_falls_with_the_order_of_the_expansion(name, order):
    """Biases and couplings are right up to the order below: halving the couplings divides the error by 2^order."""
    orders = np.log2(errors(name, 0.01) / errors(name, 0.005))
    np.testing.assert_allclose(orders, order, atol=0.15)


def test_each_refinement_pays_at_weak_couplings():
    sizes = {name: errors(name, 0.02).max() for name in METHODS}
    assert sizes["sessak-monasson"] < sizes["bethe"] < sizes["tap"] < sizes["naive"]


# -- graphs, codings, biases ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", METHODS)
def test_sparse_graph_keeps_the_couplings_of_its_edges(name, rng):
    truth = random_model(gb.graphs.grid(2, 3), rng, scale=0.2)
    data = exact_data(truth)
    full = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(6))).replace(
        learned(name, gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(6))), data)
    )
    sparse = truth.replace(learned(name, truth, data))
    i, j = truth.family.graph.edges.T
    np.testing.assert_allclose(sparse.parts.couplings, full.family.graph.matrix(full.parts.couplings)[i, j], atol=1e-12)
    assert np.abs(sparse.parts.biases - truth.parts.biases).max() < 0.05


@pytest.mark.parametrize("name", METHODS)
def test_spin_model_without_biases_takes_the_means_for_zero(name, rng):
    truth = random_model(gb.graphs.complete(4), rng, scale=0.05, bias=False)
    np.testing.assert_allclose(learned(name, truth, exact_data(truth)), truth.theta, atol=0.02)
    # the signs of whole rows cannot matter to second moments
    data = sampled_data(random_model(gb.graphs.complete(4), rng, scale=0.3), 300, rng)
    turned = dataset_of(data.states ^ rng.choice([1, 0], (data.n_states, 1)), data.variables, data.weights)
    np.testing.assert_allclose(learned(name, truth, data), learned(name, truth, turned), atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_binary_model_without_biases_keeps_the_couplings(name, rng):
    with_biases = random_model(gb.graphs.complete(4), rng, BINARY, scale=0.3)
    without = gb.Model.zeros(gb.PairwiseFamily(with_biases.family.graph, BINARY, bias=False))
    data = sampled_data(with_biases, 300, rng)
    assert np.array_equal(learned(name, without, data), learned(name, with_biases, data)[4:])


# -- l2 ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", METHODS)
def test_l2_mixes_in_the_uniform_law(name, rng):
    model = random_model(gb.graphs.complete(4), rng, scale=0.4)
    states, probabilities, _ = exact_law(model)
    mixed = dataset_of(states, SPINS(4), probabilities + 0.1 / len(states))
    np.testing.assert_allclose(learned(name, model, exact_data(model), l2=0.1), learned(name, model, mixed), atol=1e-10)


@pytest.mark.parametrize("name", METHODS)
def test_l2_is_the_penalty_at_weak_couplings(name, rng):
    model = random_model(gb.graphs.complete(4), rng, scale=0.003)
    data = exact_data(model)
    np.testing.assert_allclose(learned(name, model, data, l2=0.5), learned("mle", model, data, l2=0.5), atol=3e-5)


@pytest.mark.parametrize("name", METHODS)
def test_l2_makes_degenerate_data_finite(name):
    rows = [[1, 1, -1, 1], [1, 1, -1, -1], [1, -1, 1, 1]]  # a constant, opposite columns, fewer rows than columns
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4)))
    assert np.isfinite(learned(name, model, gb.Dataset.read(rows), l2=0.1)).all()


# -- what cannot be done ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", METHODS)
def test_degenerate_data_are_named(name):
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    with pytest.raises(ConstantColumnError, match=r"column 'a' has one value only: .*l2=0.01"):
        learned(name, model, gb.Dataset.read([[1, 1], [1, -1]], names=["a", "b"]))
    equal = gb.Dataset.read([[1, 1], [-1, -1], [1, 1]], names=["a", "b"])
    with pytest.raises(DataError, match=r"'b'.*l2=0.01"):
        learned(name, model, equal)


@pytest.mark.parametrize("name", METHODS)
def test_l1_is_refused(name):
    with pytest.raises(ArgumentError, match=r"l1=0.1: learner='mean-field' is a closed formula"):
        as_learner("mean-field", approximation=name, l1=0.1)


@pytest.mark.parametrize("name", METHODS)
def test_missing_cells_leave_the_moments_of_those_that_are_present(name, scores, rng):
    """Cells that are missing completely at random change no moment of the pairs that are present."""
    truth = random_model(gb.graphs.complete(4), rng, scores, scale=0.3)
    states, probabilities, _ = exact_law(truth)
    missing = np.vstack([np.zeros_like(states), *(np.tile(column, (16, 1)) for column in np.eye(4))]).astype(bool)
    whole, weights = exact_data(truth), np.tile(probabilities, 5)
    data = gb.Dataset.of_states(np.tile(states, (5, 1)), whole.coding, sample_weight=weights, missing=missing)
    np.testing.assert_allclose(learned(name, truth, data), learned(name, truth, whole), atol=1e-8)


def test_columns_that_are_never_together_are_refused():
    data = gb.Dataset.read([[0, None], [1, None], [None, 1], [None, 0]], coding="binary")
    with pytest.raises(DataError, match="never present together"):
        learned("naive", gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), BINARY)), data)


def test_unknown_methods_are_named(rng):
    data = gb.Dataset.read([[1, 1], [1, -1], [-1, 1]])
    with pytest.raises(ArgumentError, match="start='betha' is not known"):
        warm_start("betha", gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2))), data)


@pytest.mark.parametrize("name", ["tap", "bethe"])
def test_pairs_without_a_real_solution_get_the_naive_value_and_a_warning(name):
    """A frustrated triangle in strong fields: correlations that no weak-coupling expansion explains."""
    truth = gb.PairwiseFamily.model(gb.graphs.complete(3), [1.2, 1.2, 1.2], [-1.5, -1.5, -1.5])
    data = exact_data(truth)
    with pytest.warns(DegenerateDataWarning, match=f"has no real solution by '{name}' for 3 of 3 pairs"):
        found = learned(name, truth, data)
    assert np.array_equal(found[3:], learned("naive", truth, data)[3:])
    assert np.isfinite(found).all()


def test_only_pairs_need_no_matrix(monkeypatch, rng):
    n = 400
    data = gb.Dataset.read(rng.choice([-1, 1], (50, n)))
    chain = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(1, n)))
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.001")
    with pytest.raises(TooExpensiveError, match="the approximation 'independent-pair'"):
        warm_start("tap", chain, data)
    assert np.isfinite(warm_start("independent-pair", chain, data).theta).all()


# -- in use -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", METHODS)
def test_fit_says_that_it_was_solved_in_closed_form(name, rng):
    data = sampled_data(random_model(gb.graphs.complete(4), rng, scale=0.3), 500, rng)
    result = gb.BoltzmannMachine(learner=InverseMeanField(name)).fit(data).result_
    assert result.converged
    assert result.n_steps == 1
    assert result.reason == f"solved in closed form ({name}): the moments match the data's approximately"
    assert LEARNERS.trait("mean-field", "stepwise") is False


@pytest.mark.parametrize("name", METHODS)
def test_warm_start_is_near_the_maximum_and_nearer_than_independent_columns(name, scores):
    """Fits that are given none begin a step from independent columns, and may take fewer steps from there."""
    rng = np.random.default_rng(8)
    spins = random_model(gb.graphs.complete(8), rng, scale=0.15)
    truth, _ = spins.family.recode(spins.theta, scores)
    data = sampled_data(truth, 2000, rng)
    zero = truth.replace(np.zeros_like(truth.theta))
    start = warm_start(name, zero, data)
    cold = run(as_learner("mle"), zero, data, rng, tol=1e-7)
    warm = run(as_learner("mle"), start, data, rng, tol=1e-7)
    best = cold.model.theta
    assert np.linalg.norm(start.theta - best) < 0.6 * np.linalg.norm(best)
    np.testing.assert_allclose(warm.model.theta, best, atol=1e-5)
    loss = Likelihood().bind(zero, data)
    assert loss(start.theta)[0] < loss(preconditioning(zero.family).independent(present_means(data)))[0]


@pytest.mark.parametrize("name", METHODS)
def test_warm_start_is_finite_on_any_data(name):
    rows = [[1, 1, -1, 1], [1, 1, -1, -1], [1, -1, 1, 1]]
    start = warm_start(name, gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4))), gb.Dataset.read(rows))
    assert np.abs(start.theta).max() < 5


def test_sessak_monasson_biases_leave_pairs_without_an_edge_alone(rng):
    data = sampled_data(random_model(gb.graphs.complete(4), rng, scale=0.5), 500, rng)
    machine = gb.BoltzmannMachine("empty", learner=InverseMeanField("sessak-monasson")).fit(data)
    np.testing.assert_allclose(machine.biases_, np.arctanh(present_means(data)), atol=1e-12)
