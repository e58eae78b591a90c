"""The pairwise model against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gibbsian as gb
from gibbsian.domain import BINARY, SPIN
from gibbsian.errors import ArgumentError
from systems import all_states, costs_of, random_model

graphs = {
    "complete": gb.graphs.complete(6),
    "grid": gb.graphs.grid(2, 3),
    "empty": gb.graphs.from_edges([], 6),
    "one": gb.graphs.complete(1),
}


@pytest.fixture(params=list(graphs), ids=str)
def graph(request):
    return graphs[request.param]


def by_definition(model, x):
    total = (model.biases * x).sum()
    for (i, j), w in zip(model.graph.edges, model.couplings, strict=True):
        total += w * x[i] * x[j]
    return -total


@pytest.fixture(params=[True, False], ids=["dense", "sparse"])
def road(request, monkeypatch):
    """Send the same small graph down both roads."""
    monkeypatch.setattr("gibbsian.graphs.ALWAYS_DENSE_UP_TO", 64 if request.param else 0)
    monkeypatch.setattr("gibbsian.graphs.DENSE_ABOVE", 0.0 if request.param else 1.0)


@pytest.mark.usefixtures("road")
class TestDefinition:
    def test_energy(self, graph, domain, rng):
        model = random_model(graph, rng, domain)
        states = all_states(graph.n_nodes, domain)
        expected = [by_definition(model, x.astype(float)) for x in states]
        np.testing.assert_allclose(model.energy(states), expected, atol=1e-12)
        np.testing.assert_allclose(model.log_weights(states), -np.array(expected), atol=1e-12)

    @pytest.mark.parametrize("bias", [True, False])
    def test_costs(self, graph, domain, rng, bias):
        model = random_model(graph, rng, domain, bias=bias)
        states = all_states(graph.n_nodes, domain)
        costs = costs_of(model, states)
        for i in range(graph.n_nodes):
            flipped = states.copy()
            flipped[:, i] = domain.low + domain.high - flipped[:, i]
            np.testing.assert_allclose(costs[:, i], model.log_weights(states) - model.log_weights(flipped), atol=1e-12)

    def test_mean_statistics(self, graph, domain, rng):
        model = random_model(graph, rng, domain)
        states = all_states(graph.n_nodes, domain)
        weights = rng.random(len(states))
        x = states.astype(float)
        pairs = [x[:, i] * x[:, j] for i, j in graph.edges]
        expected = [np.average(column, weights=weights) for column in [*x.T, *pairs]]
        np.testing.assert_allclose(model.mean_statistics(states, weights), expected, atol=1e-13)


@given(st.integers(0, 10_000), st.sampled_from([SPIN, BINARY]), st.booleans())
def test_conversion_keeps_the_distribution_and_comes_back(seed, domain, bias):
    rng = np.random.default_rng(seed)
    model = random_model(gb.graphs.random(5, 0.6, rng), rng, domain, scale=2.0, bias=bias)
    other_domain = BINARY if domain is SPIN else SPIN
    other, constant = model.to_domain(other_domain.name)
    states = all_states(5, domain)
    converted = all_states(5, other_domain)
    np.testing.assert_allclose(model.log_weights(states), other.log_weights(converted) + constant, atol=1e-10)
    back, undo = other.to_domain(domain)
    np.testing.assert_allclose(back.couplings, model.couplings, rtol=1e-14)
    np.testing.assert_allclose(back.biases, model.biases, atol=1e-12)
    assert undo == pytest.approx(-constant, abs=1e-12)


@given(st.integers(0, 10_000), st.sampled_from([SPIN, BINARY]), st.lists(st.integers(0, 4), unique=True, max_size=5))
def test_conditioning_splits_the_log_weight(seed, domain, nodes):
    rng = np.random.default_rng(seed)
    model = random_model(gb.graphs.random(5, 0.7, rng), rng, domain, bias=bool(seed % 2))
    state = all_states(5, domain)[seed % 32]
    if len(nodes) == 5:
        return  # nothing would be left
    rest, constant = model.given(nodes, domain.to_codes(state[nodes])).at(model.theta)
    left = np.delete(state, nodes)[None, :]
    np.testing.assert_allclose(model.log_weights(state[None, :]), rest.log_weights(left) + constant, atol=1e-12)


def test_models_are_immutable():
    model = gb.PairwiseModel.zeros(gb.graphs.complete(3))
    with pytest.raises(ValueError, match="read-only"):
        model.theta[0] = 1.0


@pytest.mark.parametrize(("theta", "words"), [(np.zeros(5), "3 biases and 3 couplings"), (np.full(6, np.nan), "NaN")])
def test_bad_parameters_are_named(theta, words):
    with pytest.raises(ArgumentError, match=words):
        gb.PairwiseModel(gb.graphs.complete(3), theta)


def test_log_odds_are_what_one_parameter_alone_can_change(domain, rng):
    model = random_model(gb.graphs.complete(3), rng, domain)
    spin, _ = model.to_domain(gb.domain.SPIN)
    alone = [spin.replace(np.where(np.arange(6) == k, spin.theta, 0.0)) for k in range(6)]
    expected = [np.ptp(each.log_weights(all_states(3))) for each in alone]
    np.testing.assert_allclose(model.log_odds(), expected, rtol=1e-12)
