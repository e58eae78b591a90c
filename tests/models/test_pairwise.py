"""The pairwise family against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gibbsian as gb
from gibbsian.errors import ArgumentError
from systems import BINARY, SPINS, all_states, costs_of, random_model

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
    biases, couplings = model.parts
    total = (biases * x).sum()
    for (i, j), w in zip(model.family.graph.edges, couplings, strict=True):
        total += w * x[i] * x[j]
    return -total


@pytest.fixture(params=[True, False], ids=["dense", "sparse"])
def road(request, monkeypatch):
    """Send the same small graph down both roads."""
    monkeypatch.setattr("gibbsian.graphs.ALWAYS_DENSE_UP_TO", 64 if request.param else 0)
    monkeypatch.setattr("gibbsian.graphs.DENSE_ABOVE", 0.0 if request.param else 1.0)


@pytest.mark.usefixtures("road")
class TestDefinition:
    def test_energy(self, graph, scores, rng):
        model = random_model(graph, rng, scores)
        states = all_states(model.variables)
        expected = [by_definition(model, x) for x in model.variables.scores_of(states)]
        np.testing.assert_allclose(model.energy(states), expected, atol=1e-12)
        np.testing.assert_allclose(model.log_weights(states), -np.array(expected), atol=1e-12)

    @pytest.mark.parametrize("bias", [True, False])
    def test_costs(self, graph, scores, rng, bias):
        model = random_model(graph, rng, scores, bias=bias)
        states = all_states(model.variables)
        costs = costs_of(model, states)
        for i in range(graph.n_nodes):
            flipped = states.copy()
            flipped[:, i] ^= 1
            np.testing.assert_allclose(costs[:, i], model.log_weights(states) - model.log_weights(flipped), atol=1e-12)

    def test_mean_statistics(self, graph, scores, rng):
        model = random_model(graph, rng, scores)
        states = all_states(model.variables)
        weights = rng.random(len(states))
        x = model.variables.scores_of(states)
        pairs = [x[:, i] * x[:, j] for i, j in graph.edges]
        expected = [np.average(column, weights=weights) for column in [*x.T, *pairs]]
        np.testing.assert_allclose(model.family.mean_statistics(states, weights), expected, atol=1e-13)


@given(st.integers(0, 10_000), st.sampled_from([SPINS, BINARY]), st.booleans())
def test_other_scores_keep_the_distribution_and_come_back(seed, scores, bias):
    rng = np.random.default_rng(seed)
    model = random_model(gb.graphs.random(5, 0.6, rng), rng, scores, scale=2.0, bias=bias)
    other, constant = model.family.recode(model.theta, BINARY if scores is SPINS else SPINS)
    states = all_states(model.variables)
    np.testing.assert_allclose(model.log_weights(states), other.log_weights(states) + constant, atol=1e-10)
    back, undo = other.family.recode(other.theta, scores)
    np.testing.assert_allclose(back.parts.couplings, model.parts.couplings, rtol=1e-14)
    biases = model.parts.biases if bias else np.zeros(5)
    np.testing.assert_allclose(back.parts.biases, biases, atol=1e-12)
    assert undo == pytest.approx(-constant, abs=1e-12)


def test_the_form_in_spins_is_the_same_distribution_with_the_same_statistics(graph, scores, rng):
    model = random_model(graph, rng, scores)
    states, spins = all_states(model.variables), model.family.ising(model.theta)
    numbers, (i, j) = 2.0 * states - 1.0, graph.edges.T
    pairs = numbers[:, i] * numbers[:, j]
    logs = spins.constant + numbers @ spins.fields + pairs @ spins.couplings
    np.testing.assert_allclose(logs, model.log_weights(states), atol=1e-12)
    found = model.family.layout.statistics_of_spins(numbers.mean(axis=0), pairs.mean(axis=0))
    np.testing.assert_allclose(found, model.family.mean_statistics(states), atol=1e-12)


def test_theta_is_checked():
    family = gb.PairwiseFamily(gb.graphs.complete(3))
    with pytest.raises(ArgumentError, match="6 parameters"):
        gb.Model(family, np.zeros(5))
    with pytest.raises(ArgumentError, match="NaN"):
        gb.Model(family, np.full(6, np.nan))


def test_scores_must_be_the_same_for_all():
    with pytest.raises(ArgumentError, match="same two scores"):
        gb.PairwiseFamily(gb.graphs.complete(2), gb.Variables.ordinal([(-1, 1), (0, 1)]))
    with pytest.raises(ArgumentError, match="2 entries for 3 variables"):
        gb.PairwiseFamily(gb.graphs.complete(3), SPINS(2))


def test_log_odds_are_what_one_parameter_alone_can_change(scores, rng):
    model = random_model(gb.graphs.complete(3), rng, scores)
    spin, _ = model.family.recode(model.theta, SPINS)
    alone = [spin.replace(np.where(np.arange(6) == k, spin.theta, 0.0)) for k in range(6)]
    expected = [np.ptp(each.log_weights(all_states(each.variables))) for each in alone]
    np.testing.assert_allclose(model.family.log_odds(model.theta), expected, rtol=1e-12)
