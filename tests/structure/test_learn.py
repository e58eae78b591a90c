"""Structure learning: true graphs found, criteria by direct computation, rules, refusals."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimise

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    ConstantColumnError,
    ConvergenceWarning,
    DegenerateDataWarning,
    MissingValuesError,
)
from gibbsian.learning.nodewise import directed_pairs
from gibbsian.structure import METHODS, decimation, l1_ebic, learn_structure, screening
from gibbsian.structure.l1_path import ebic, largest_penalties, node_losses
from gibbsian.structure.problem import Problem, combine, minimise
from systems import dataset_of, random_model, sampled_data


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


def signed_model(graph, rng, low=0.4, high=0.7):
    couplings = rng.choice([-1, 1], graph.n_edges) * rng.uniform(low, high, graph.n_edges)
    return gb.PairwiseFamily.model(graph, rng.normal(scale=0.2, size=graph.n_nodes), couplings)


def drawn(model, n_rows, rng):
    return dataset_of(gb.inference.exact(model).sample(n_rows, rng), model.variables)


def spins_of(data):
    return data.decode(data.states[data.row_of])


@pytest.fixture
def noisy(rng):
    """Rows of a model on six variables that is not sparse: criteria have something to weigh."""
    return sampled_data(random_model(gb.graphs.complete(6), rng, scale=0.25), 400, rng)


# -- true graphs ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [lambda rng: gb.graphs.grid(3, 3), lambda rng: gb.graphs.random(10, 0.25, rng)])
def test_true_graph_is_found_from_enough_rows(method, make, rng):
    truth = signed_model(make(rng), rng)
    found = learn_structure(drawn(truth, 4000, rng), method)
    assert found.graph == truth.family.graph
    assert found.method == method
    # the refit is free of the penalty's shrinkage
    np.testing.assert_allclose(found.machine.model_.parts.couplings, truth.parts.couplings, atol=0.15)


def test_graph_does_not_depend_on_the_coding(method, noisy):
    spin, binary = learn_structure(noisy, method), learn_structure(noisy.convert("yes/no"), method)
    assert spin.graph == binary.graph
    assert binary.machine.coding_.name == "yes/no"


def test_weights_count_as_repeated_rows(method, noisy, rng):
    x, counts = spins_of(noisy), rng.integers(1, 4, size=noisy.n_rows)
    weighted = learn_structure(x, method, sample_weight=counts)
    repeated = learn_structure(np.repeat(x, counts, axis=0), method)
    assert weighted.graph == repeated.graph


def test_only_candidates_are_considered(method, rng):
    truth = signed_model(gb.graphs.grid(1, 5), rng)
    found = learn_structure(drawn(truth, 3000, rng), method, graph=[(0, 1), (1, 2), (0, 4)], bias=False)
    assert found.edges() == [("x0", "x1"), ("x1", "x2")]
    assert not found.machine.model_.family.bias


def test_refit_takes_the_asked_learner(noisy):
    found = l1_ebic(noisy, learner="rise", l2=0.3)
    assert found.machine.result_.provenance["learner"] == "rise"
    assert found.machine.l2 == 0.3


# -- L1 paths ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bias", [True, False])
def test_largest_penalty_is_the_border(bias, noisy):
    """All couplings vanish at it, by the optimality conditions, and one appears just below."""
    problem = Problem.read(noisy, bias=bias)
    largest = largest_penalties(problem)
    x = spins_of(noisy).astype(float)
    fields = np.arctanh(x.mean(axis=0)) if bias else np.zeros(6)
    residuals = x - np.tanh(fields)
    slopes = np.abs(residuals.T @ x / len(x)) * (1 - np.eye(6))
    np.testing.assert_allclose(largest, slopes.max(axis=1), atol=1e-13)
    path = l1_ebic(noisy, bias=bias, n_penalties=2, ratio=0.999, tol=1e-10).path
    first, second = path.groupby(path.index % 2)["n_neighbours"]
    assert (first[1] == 0).all()
    assert (second[1] >= 1).all()


def test_criterion_of_a_variable_by_direct_computation(noisy):
    path = l1_ebic(noisy, gamma=0.5, n_penalties=8, relaxed=False, tol=1e-9).path
    x = spins_of(noisy).astype(float)
    for node, row in ((0, 3), (4, 7)):
        entry = path[path["variable"] == f"x{node}"].iloc[row]
        y = x[:, [node]] * np.column_stack([np.ones(len(x)), np.delete(x, node, axis=1)])

        def split(z, y=y, l1=entry["l1"]):  # L1 as a linear penalty on positive and negative parts
            costs = 2 * y @ np.concatenate([z[:1], z[1:6] - z[6:]])
            slope = -2 * y.T @ (1 / (1 + np.exp(costs))) / len(y)
            gradient = np.concatenate([slope[:1], slope[1:] + l1, l1 - slope[1:]])
            return np.logaddexp(0, -costs).mean() + l1 * z[1:].sum(), gradient

        options = {"ftol": 1e-16, "gtol": 1e-10}
        solved = scipy_minimise(
            split, np.zeros(11), jac=True, bounds=[(None, None)] + [(0, None)] * 10, options=options
        )
        couplings = solved.x[1:6] - solved.x[6:]
        log_likelihood = -np.logaddexp(0, -2 * y @ np.concatenate([solved.x[:1], couplings])).sum()
        k = np.count_nonzero(couplings)
        assert entry["n_neighbours"] == k > 0
        expected = -2 * log_likelihood + k * np.log(400) + 2 * 0.5 * k * np.log(5)
        assert entry["ebic"] == pytest.approx(expected, abs=1e-4)


def test_chosen_neighbours_have_the_least_criterion(noisy):
    path = l1_ebic(noisy).path
    for _, rows in path.groupby("variable"):
        assert rows["chosen"].sum() == 1
        assert rows["ebic"].idxmin() == rows["chosen"].idxmax()
        assert rows["l1"].is_monotonic_decreasing


def test_a_larger_gamma_keeps_fewer_edges(noisy):
    sizes = [l1_ebic(noisy, gamma=gamma).graph.n_edges for gamma in (0.0, 0.5, 30.0)]
    assert sizes[0] > sizes[1] > sizes[2] == 0


def test_and_is_within_or(noisy):
    for function in (l1_ebic, partial(screening, threshold=0.05)):
        narrow, wide = ({*map(tuple, function(noisy, rule=rule).graph.edges)} for rule in ("and", "or"))
        assert narrow < wide


# -- screening --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", ["rise", "logrise", "rple"])
def test_threshold_decides_among_the_learners_couplings(loss, noisy):
    fitted = gb.BoltzmannMachine(learner=gb.learning.as_learner(loss, l1="theory"), tol=1e-8).fit(noisy).model_
    for threshold in (0.0, 0.1, 0.3):
        found = screening(noisy, loss=loss, threshold=threshold)
        expected = fitted.family.graph.edges[np.abs(fitted.parts.couplings) > threshold]
        assert np.array_equal(found.graph.edges, expected)
    coupling = found.path.set_index(["first", "second"])["coupling"]
    assert coupling["x0", "x1"] == pytest.approx(fitted.parts.couplings[0], abs=1e-5)
    assert coupling.abs().is_monotonic_decreasing


# -- decimation -------------------------------------------------------------------------------------------------------
def test_tilted_curve(noisy):
    found = decimation(noisy, fraction=0.2)
    path = found.path
    assert path["n_edges"].tolist()[:4] == [15, 12, 10, 8]
    assert path["n_edges"].iloc[-1] == 0
    assert path["pseudolikelihood"].is_monotonic_decreasing
    assert path["tilted"].iloc[[0, -1]].to_numpy() == pytest.approx(0.0, abs=1e-12)
    for graph, row in (("complete", 0), ("empty", -1)):
        machine = gb.BoltzmannMachine(graph, learner="mple", l2=0, tol=1e-8).fit(noisy)
        assert path["pseudolikelihood"].iloc[row] == pytest.approx(machine.pseudo_score(noisy), abs=1e-8)
    top, bottom = path["pseudolikelihood"].iloc[[0, -1]]
    by_hand = path["pseudolikelihood"] - path["n_edges"] / 15 * top - (1 - path["n_edges"] / 15) * bottom
    np.testing.assert_allclose(path["tilted"], by_hand, atol=1e-12)
    assert found.graph.n_edges == path["n_edges"][path["tilted"].idxmax()]


def test_the_smallest_coupling_goes_first(noisy):
    couplings = gb.BoltzmannMachine("complete", learner="mple").fit(noisy).model_.parts.couplings
    path = decimation(noisy, fraction=0.05).path
    assert path["n_edges"].tolist() == list(range(15, -1, -1))
    rest = gb.graphs.from_edges(np.delete(gb.graphs.complete(6).edges, np.abs(couplings).argmin(), axis=0), 6)
    score = gb.BoltzmannMachine(rest, learner="mple", tol=1e-8).fit(noisy).pseudo_score(noisy)
    assert path["pseudolikelihood"].iloc[1] == pytest.approx(score, abs=1e-8)


# -- refusals ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "magic"}, "method='magic'"),
        ({"method": "decimation", "rule": "and"}, "no setting rule: leave it out"),
        ({"method": "rise", "loss": "rple"}, "no setting loss: leave it out"),
        ({"method": "decimation", "fraction": 0.0}, "fraction=0"),
        ({"method": "l1-ebic", "rule": "xor"}, "rule='xor'"),
        ({"method": "l1-ebic", "gamma": -1}, "gamma=-1"),
        ({"method": "l1-ebic", "ratio": 1.0}, "ratio=1"),
        ({"method": "l1-ebic", "n_penalties": 1}, "n_penalties=1"),
        ({"method": "rise", "threshold": -1.0}, "threshold=-1"),
        ({"method": "rise", "graph": "empty"}, "no edges to choose from"),
    ],
)
def test_bad_settings_are_named(settings, words, noisy):
    with pytest.raises(ArgumentError, match=words):
        learn_structure(noisy, **settings)


def test_missing_cells_and_constant_columns_are_refused(method, noisy):
    x = spins_of(noisy).astype(float)
    x[:, 2] = 1.0
    with pytest.raises(ConstantColumnError, match="x2"):
        learn_structure(x, method)
    x[0, 2] = np.nan
    with pytest.raises(MissingValuesError, match="structure learning"):
        learn_structure(x, method)


def test_a_ridge_carries_decimation_past_a_constant_column(noisy):
    x = spins_of(noisy)
    x[:, 2] = 1
    with pytest.warns(DegenerateDataWarning, match="x2"):
        found = decimation(x, l2=0.1)
    assert np.isfinite(found.machine.model_.theta).all()


def test_a_fit_that_does_not_arrive_is_warned_of():
    def valley(theta):
        scale = np.array([1.0, 1e4])
        return float(scale @ theta**4), 4 * scale * theta**3

    with pytest.warns(ConvergenceWarning, match="raise tol=1e-06"):
        minimise(valley, np.ones(2), np.zeros(2), max_iter=1)


def test_remedies_that_would_not_help_are_not_given(x):
    constant = np.column_stack([x, np.ones(300, int)])
    with pytest.raises(ConstantColumnError) as error:
        gb.structure.learn_structure(constant, l2=0.01)
    assert "l2" not in str(error.value)


def test_losses_of_independent_fair_coins_are_log_two():
    pairs, start = directed_pairs(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2))))
    losses = node_losses(pairs, gb.Dataset.read([[1, -1], [-1, -1]]), start)
    np.testing.assert_allclose(losses, np.log(2))


def test_extended_criterion_by_hand():
    data = gb.Dataset.read([[1, -1, 1], [-1, -1, 1]])
    assert ebic(-3.0, 2, data, gamma=0.5) == pytest.approx(6 + 2 * np.log(2) + 2 * np.log(2))


def test_opinions_on_edges_are_joined():
    first, second = np.array([True, True, False]), np.array([True, False, False])
    assert combine(first, second, "and").tolist() == [True, False, False]
    assert combine(first, second, "or").tolist() == [True, True, False]
