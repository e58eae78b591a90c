"""Objectives on conditionals against their formulas, in both memory orders, on every road, and at huge numbers."""

import itertools

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends.numba.flip_losses import half_exponential, logistic, squared_sigmoid
from gibbsian.backends.threads import limited_threads
from gibbsian.learning import Descend, run
from gibbsian.learning.objectives import (
    OBJECTIVES,
    ConditionalsObjective,
    ProbabilityFlow,
    Pseudolikelihood,
    RatioMatching,
    value_and_gradient,
)
from gibbsian.learning.objectives.losses import flips_into_data
from gibbsian.models.conditionals import WeightedRows
from gibbsian.models.conditionals.pairs import LocalPairs, Pairs
from systems import costs_of, dataset_of, exact_law, name_of, random_model, sampled_data

BY_CONDITIONALS = [name for name in OBJECTIVES if isinstance(OBJECTIVES.create(name), ConditionalsObjective)]


def sigmoid(u):
    return 1 / (1 + np.exp(-u))


# value of one conditional cost and its derivative, as methods write them
FORMULAS = {
    logistic: (lambda d: np.logaddexp(0, -d), lambda d: -sigmoid(-d)),
    squared_sigmoid: (lambda d: sigmoid(-d) ** 2, lambda d: -2 * sigmoid(-d) ** 2 * sigmoid(d)),
    half_exponential: (lambda d: np.exp(-d / 2), lambda d: -np.exp(-d / 2) / 2),
}


@pytest.fixture(params=list(FORMULAS), ids=lambda kernel: kernel.__name__)
def kernel(request):
    return request.param


@pytest.fixture(params=BY_CONDITIONALS)
def objective(request):
    return OBJECTIVES.create(request.param)


@pytest.fixture
def take(monkeypatch):
    """Return a function that sends small graphs down a road: dense or sparse through the rows, or local states."""

    def choose(road, cells=2**16):
        monkeypatch.setattr("gibbsian.graphs.ALWAYS_DENSE_UP_TO", 64 if road == "dense" else 0)
        monkeypatch.setattr("gibbsian.graphs.DENSE_ABOVE", 0.0 if road == "dense" else 1.1)
        monkeypatch.setattr("gibbsian.models.conditionals.pairs.SPARSE_CELLS", cells)
        monkeypatch.setattr("gibbsian.models.conditionals.pairs.PIECE", cells)
        monkeypatch.setattr("gibbsian.models.conditionals.pairs.LEAST_GAIN", 0.0 if road == "local" else np.inf)

    return choose


class TestKernels:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("shape", [(7, 5), (1, 9), (9, 1), (2, 2500), (3, 0)])
    def test_value_and_derivative(self, kernel, order, shape, rng):
        costs = np.array(rng.normal(scale=4, size=shape), order=order)
        shares = rng.random(shape[0])
        phi, derivative = FORMULAS[kernel]
        expected = derivative(costs) * shares[:, None]
        value = (phi(costs) * shares[:, None]).sum()
        assert kernel(costs, shares) == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(costs, expected, rtol=1e-13)

    @pytest.mark.parametrize("n", [1, 5, 250])
    def test_single_precision(self, kernel, n, rng):
        costs, shares = rng.normal(scale=8, size=(9, n)).astype(np.float32), rng.random(9)
        phi, derivative = (function(costs.astype(float)) for function in FORMULAS[kernel])
        assert kernel(costs, shares) == pytest.approx((phi * shares[:, None]).sum(), rel=1e-6)
        np.testing.assert_allclose(costs, derivative * shares[:, None], rtol=2e-6)

    def test_extreme_costs_in_single_precision(self):
        costs = np.array([[-1e5, -150.0], [150.0, 1e5]], np.float32)
        assert logistic(costs, np.array([0.5, 0.5])) == pytest.approx(50_075.0)
        np.testing.assert_allclose(costs, [[-0.5, -0.5], [0.0, 0.0]], atol=1e-30)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_extreme_costs_stay_finite(self, kernel, order):
        costs = np.array([[-1e5, -1500.0, -50.0], [0.0, 50.0, 1e5]], order=order)
        value = kernel(costs, np.array([0.5, 0.5]))
        assert np.isfinite(value)
        assert np.isfinite(costs).all()
        assert (costs <= 0).all()  # a larger cost of leaving the data is never a loss
        assert abs(costs[1, 2]) < 1e-300

    def test_saturated_ratio_matching_keeps_its_small_slopes(self):
        """1 - g is taken from the exponential, not as a difference, so it keeps its digits."""
        costs = np.array([[-60.0, 60.0]])
        assert squared_sigmoid(costs, np.ones(1)) == pytest.approx(1.0, abs=1e-15)
        np.testing.assert_allclose(costs, [[-2 * np.exp(-60), -2 * np.exp(-120)]], rtol=1e-12)

    def test_probability_flow_goes_on_as_its_tangent(self):
        """Past exp(300) the loss is linear: convex, with a derivative that belongs to the value."""

        def loss(d):
            costs = np.array([[d]])
            return half_exponential(costs, np.ones(1)), costs[0, 0]

        knee = -600.0
        value, slope = loss(knee)
        assert value == pytest.approx(np.exp(300), rel=1e-12)
        for d in (-601.0, -700.0, -1e5):
            assert loss(d)[0] == pytest.approx(value + slope * (d - knee), rel=1e-12)
            assert loss(d)[1] == slope
        assert loss(-599.0)[0] == pytest.approx(np.exp(299.5), rel=1e-12)

    def test_infinite_cost_adds_nothing_to_the_flow(self):
        costs = np.array([[np.inf, 0.0]])
        assert half_exponential(costs, np.ones(1)) == 1.0
        np.testing.assert_allclose(costs, [[0.0, -0.5]], atol=1e-300)


def spins_and_fields(model, data):
    """The rows as spins, and the field on each of them."""
    x = model.variables.scores_of(data.rows()[0])
    return x, x @ model.family.graph.matrix(model.parts.couplings) + model.parts.biases


def by_hand(model, data, slope_of_field):
    """The gradient of methods section 2: A_i = d(loss)/dF_i, grad J = G + G^T with G = A^T X / N."""
    x, fields = spins_and_fields(model, data)
    a = slope_of_field(x, fields)
    pairs = a.T @ x / len(x)
    return np.concatenate([a.mean(axis=0), (pairs + pairs.T)[np.triu_indices(model.n_variables, 1)]])


def test_ratio_matching_is_its_formula(rng):
    model = random_model(gb.graphs.complete(5), rng)
    data = sampled_data(model, 40, rng)
    x, fields = spins_and_fields(model, data)
    g = sigmoid(-2 * x * fields)
    value, gradient = value_and_gradient(RatioMatching(), model, data)
    assert value == pytest.approx((g**2).sum(axis=1).mean(), abs=1e-12)

    def slope_of_field(x, f):
        g = sigmoid(-2 * x * f)
        return -4 * g**2 * (1 - g) * x

    np.testing.assert_allclose(gradient, by_hand(model, data, slope_of_field), atol=1e-12)


def test_probability_flow_is_its_formula(rng):
    model = random_model(gb.graphs.complete(5), rng)
    data = sampled_data(model, 40, rng)
    x, fields = spins_and_fields(model, data)
    flow = np.exp(-x * fields)
    value, gradient = value_and_gradient(ProbabilityFlow(), model, data)
    assert value == pytest.approx(flow.sum(axis=1).mean(), rel=1e-13)
    np.testing.assert_allclose(gradient, by_hand(model, data, lambda x, f: -x * np.exp(-x * f)), atol=1e-12)


@pytest.mark.parametrize("make", [ProbabilityFlow, Pseudolikelihood])
def test_convex_along_lines(make, rng):
    model = random_model(gb.graphs.complete(4), rng)
    function = make().bind(model, sampled_data(model, 30, rng))
    for scale in (0.3, 3.0, 300.0):
        ends = rng.normal(scale=scale, size=(2, model.theta.size))
        (left, left_slope), (right, right_slope) = function(ends[0]), function(ends[1])
        middle, _ = function(ends.mean(axis=0))
        assert middle <= (left + right) / 2
        assert (right_slope - left_slope) @ (ends[1] - ends[0]) >= 0


def test_ratio_matching_is_not_convex(rng):
    model = random_model(gb.graphs.complete(2), rng)
    function = RatioMatching().bind(model, gb.Dataset.read([[1, 1]]))
    wrong = np.array([-1.0, -1.0, -1.0])
    assert function(4 * wrong)[0] > (function(2 * wrong)[0] + function(6 * wrong)[0]) / 2


class TestSkippingData:
    def test_leaves_out_the_flips_into_the_data(self, scores, rng):
        model = random_model(gb.graphs.complete(4), rng, scores)
        data = sampled_data(model, 8, rng)
        held = set(map(tuple, data.states.tolist()))
        into_data, flow = np.zeros(data.states.shape, dtype=bool), 0.0
        costs = costs_of(model, data.states)
        for m, state in enumerate(data.states):
            for i in range(4):
                flipped = state.copy()
                flipped[i] = 1 - flipped[i]
                into_data[m, i] = tuple(flipped.tolist()) in held
                flow += data.weights[m] / data.total_weight * np.exp(-costs[m, i] / 2) * ~into_data[m, i]
        assert into_data.any()
        assert not into_data.all()
        assert np.array_equal(flips_into_data(data), into_data)
        assert value_and_gradient(ProbabilityFlow(skip_data=True), model, data)[0] == pytest.approx(flow, rel=1e-12)

    def test_gradient_is_the_derivative_on_every_road(self, scores, rng, take):
        model = random_model(gb.graphs.grid(2, 3), rng, scores)
        data = sampled_data(model, 12, rng)
        h = 1e-5
        for road in ("dense", "sparse", "local"):
            take(road)
            function = ProbabilityFlow(skip_data=True).bind(model, data)
            _, gradient = function(model.theta)
            for k, unit in enumerate(np.eye(model.theta.size)):
                slope = (function(model.theta + h * unit)[0] - function(model.theta - h * unit)[0]) / (2 * h)
                assert gradient[k] == pytest.approx(slope, abs=1e-8)

    def test_states_of_weight_zero_are_not_in_the_data(self):
        rows, weights = [[0, 0], [0, 1], [1, 1]], [1.0, 0.0, 1.0]
        into_data = flips_into_data(gb.Dataset.read(rows, sample_weight=weights))
        assert into_data.tolist() == [[False, False], [True, True], [False, False]]

    def test_is_inconsistent_where_all_flips_are_consistent(self, rng):
        """With the exact law on all states but the rarest as weights, all flips nearly find the truth; skipping fails.

        Were all states there, the skipping flow would be zero whatever the parameters.
        """
        truth = random_model(gb.graphs.complete(4), rng, scale=0.4)
        states, probabilities, _ = exact_law(truth)
        common = probabilities > probabilities.min()
        data = dataset_of(states[common], truth.variables, probabilities[common])
        start = truth.replace(np.zeros_like(truth.theta))
        error = {}
        for skip in (False, True):
            learner = Descend(ProbabilityFlow(skip_data=skip), l2=1e-6)
            fitted = run(learner, start, data, rng, max_iter=200).model
            error[skip] = np.abs(fitted.theta - truth.theta).max()
        assert error[False] < 0.1
        assert error[True] > 1.0
        whole = dataset_of(states, truth.variables, probabilities)
        value, gradient = value_and_gradient(ProbabilityFlow(skip_data=True), truth, whole)
        assert value == pytest.approx(0.0, abs=1e-300)
        np.testing.assert_allclose(gradient, 0.0, atol=1e-300)


GRAPHS = {
    "grid": gb.graphs.grid(3, 3),
    "complete": gb.graphs.complete(5),
    "isolated variable": gb.graphs.from_edges([(0, 1)], 3),
    "no edges": gb.graphs.from_edges([], 4),
    "one variable": gb.graphs.complete(1),
}


class TestRoads:
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("road", ["dense", "sparse"])
    def test_a_sample_of_rows_is_as_good_as_single_precision(
        self, objective, scores, road, bias, rng, take, monkeypatch
    ):
        take(road)
        monkeypatch.setattr("gibbsian.models.conditionals.pairs.MANY_CELLS", 1)
        monkeypatch.setattr("gibbsian.models.conditionals.pairs.SAMPLED_CELLS", 256)
        model = random_model(GRAPHS["grid"], rng, scores, bias=bias)
        data = sampled_data(model, 300, rng)
        value, gradient = objective.bind(model, data)(model.theta)
        sampled, slope = objective.sampled(model, data)(model.theta)
        assert sampled == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(slope, gradient, atol=1e-6)

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("graph", [gb.graphs.grid(4, 5), gb.graphs.complete(40)])
    def test_so_is_one_that_goes_by_tables(self, objective, scores, graph, bias, rng, monkeypatch):
        monkeypatch.setattr("gibbsian.models.conditionals.pairs.MANY_CELLS", 1)
        for name, value in {"WORTH_TABLES": 1, "TABLED_CELLS": 8192}.items():
            monkeypatch.setattr(f"gibbsian.models.conditionals.pairs.{name}", value)
        model = random_model(graph, rng, scores, bias=bias)
        states = rng.integers(0, 2, (300, graph.n_nodes)).astype(np.int8)
        for weights in (None, rng.random(300)):
            data = gb.Dataset.of_states(states, name_of(model.variables), sample_weight=weights, distinct=False)
            value, gradient = objective.bind(model, data)(model.theta)
            sampled, slope = objective.sampled(model, data)(model.theta)
            assert sampled == pytest.approx(value, rel=1e-6)
            np.testing.assert_allclose(slope, gradient, atol=1e-5)

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("cells", [1, 60, 2**16])
    @pytest.mark.parametrize("graph", list(GRAPHS))
    def test_all_lead_to_the_same_place(self, objective, scores, graph, bias, cells, rng, take):
        model = random_model(GRAPHS[graph], rng, scores, bias=bias)
        data = sampled_data(model, 50, rng)
        take("dense")
        expected_value, expected_gradient = value_and_gradient(objective, model, data)
        for road in ("sparse", "local"):
            take(road, cells)
            value, gradient = value_and_gradient(objective, model, data)
            assert value == pytest.approx(expected_value, rel=1e-13)
            np.testing.assert_allclose(gradient, expected_gradient, atol=1e-13)

    @pytest.mark.parametrize("road", ["sparse", "local"])
    def test_same_bits_for_one_and_two_threads(self, objective, road, rng, take):
        """A grid of more cells than one block and more local states than one piece."""
        take(road, 2**12)
        model = random_model(gb.graphs.grid(30, 40), rng, scale=0.3)
        data = gb.Dataset.read(np.where(rng.random((2000, 1200)) < 0.5, 1, -1))
        results = []
        for threads in (1, 2):
            with limited_threads(threads):
                results.append(value_and_gradient(objective, model, data))
        assert results[0][0] == results[1][0]
        assert np.array_equal(results[0][1], results[1][1])


class TestLocalStates:
    def test_weights_are_those_of_the_rows_that_show_them(self, rng):
        graph = gb.graphs.grid(2, 3)
        codes, shares = rng.integers(0, 2, (20, 6), np.int8), rng.random(20)
        local = LocalPairs(Pairs(graph, True, -1.0, 2.0), WeightedRows.of(codes, shares))
        for i in range(6):
            table = local.weights[local.offsets[i] : local.offsets[i + 1]]
            shown = codes[:, [i, *graph.neighbours(i)]]
            for r, states in enumerate(itertools.product([0, 1], repeat=shown.shape[1])):
                expected = shares[(shown == states).all(axis=1)].sum() / shares.sum()
                assert table[r] == pytest.approx(expected, abs=1e-15)

    def test_pieces_cover_every_variable_once(self, monkeypatch):
        rows = WeightedRows.of(np.zeros((1, 35), np.int8))
        for size in (1, 50, 10_000):
            monkeypatch.setattr("gibbsian.models.conditionals.pairs.PIECE", size)
            local = LocalPairs(Pairs(gb.graphs.grid(5, 7), True, -1.0, 2.0), rows)
            covered = [i for piece in local.pieces() for i in range(piece.start, piece.stop)]
            assert covered == list(range(35))

    def test_are_used_where_they_are_few(self):
        assert LocalPairs.are_few(gb.graphs.grid(10, 10), 1000)
        assert not LocalPairs.are_few(gb.graphs.grid(10, 10), 50)  # as many local states as cells of the data

    def test_a_hub_is_refused(self):
        star = gb.graphs.from_edges([(0, leaf) for leaf in range(1, 3000)], 3000)
        assert not LocalPairs.are_few(star, 10**6)


def test_huge_parameters_still_lead_downhill(objective, rng):
    """Value and gradient agree where |w| = 50: a short step against the gradient lowers the value."""
    model = random_model(gb.graphs.complete(6), rng)
    function = objective.bind(model, sampled_data(model, 50, rng))
    theta = np.where(rng.random(model.theta.size) < 0.5, 50.0, -50.0)
    value, gradient = function(theta)
    step = 0.1 * gradient / np.abs(gradient).max()
    assert function(theta - step)[0] < value
