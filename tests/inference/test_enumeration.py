"""Enumeration against plain NumPy sums in extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import gibbsian as gb
from gibbsian.backends.threads import limited_threads
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import Enumeration
from systems import BINARY, SPINS, ask


def random_model(graph, seed=0, scale=1.0, variables=SPINS, bias=True):
    rng = np.random.default_rng(seed)
    biases = scale * rng.normal(size=graph.n_nodes) if bias else None
    return gb.PairwiseFamily.model(graph, biases, scale * rng.normal(size=graph.n_edges), variables)


def brute_force(model):
    """All rows of codes in C order, log Z and the probabilities."""
    n = model.n_variables
    states = np.indices((2,) * n).reshape(n, -1).T.astype(np.int8)
    x = model.variables.scores_of(states).astype(np.longdouble)
    i, j = model.family.graph.edges.T
    biases = model.parts.biases if model.family.bias else np.zeros(n)
    log_weights = x @ biases + (x[:, i] * x[:, j]) @ model.parts.couplings
    top = log_weights.max()
    weights = np.exp(log_weights - top)
    return states, float(top + np.log(weights.sum())), (weights / weights.sum()).astype(float)


GRAPHS = {
    "one node": gb.graphs.complete(1),
    "two nodes": gb.graphs.complete(2),
    "complete 12": gb.graphs.complete(12),  # more than one row
    "random 13": gb.graphs.random(13, 0.3, random_state=1),
    "no edges": gb.graphs.from_edges([], 4),
    "two parts": gb.graphs.from_edges([(0, 3), (3, 4), (1, 2)], 6),
}


@pytest.mark.parametrize("scale", [0.7, 50.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_everything_against_brute_force(name, scale, scores):
    model = random_model(GRAPHS[name], 3, scale, scores)
    states, log_partition, probabilities = brute_force(model)
    numbers = model.variables.scores_of(states)
    engine = ask(Enumeration, model)
    assert engine.log_partition == pytest.approx(log_partition, rel=1e-14)
    np.testing.assert_allclose(engine.moments, model.family.mean_statistics(states, probabilities), atol=5e-14)
    np.testing.assert_allclose(engine.means, probabilities @ numbers, atol=5e-14)
    second = numbers.T @ (numbers * probabilities[:, None])
    np.testing.assert_allclose(engine.second_moments, second, atol=5e-14)
    best, log_probability = engine.mode
    assert best.dtype == np.int8
    np.testing.assert_array_equal(best, states[probabilities.argmax()])
    assert log_probability == pytest.approx(np.log(probabilities.max()), abs=1e-10)
    np.testing.assert_allclose(engine.marginal(range(model.n_variables)).ravel(), probabilities, atol=5e-14)


def test_model_without_biases():
    model = random_model(gb.graphs.complete(11), 5, bias=False)
    states, _, probabilities = brute_force(model)
    moments = ask(Enumeration, model).moments
    assert moments.shape == (model.family.graph.n_edges,)
    np.testing.assert_allclose(moments, model.family.mean_statistics(states, probabilities), atol=1e-14)


@pytest.mark.parametrize("nodes", [[], [4], [7, 2], [12, 0, 5], [3, 2, 1, 0, 12, 11]])
def test_marginal_axes_follow_the_order_given(nodes):
    model = random_model(GRAPHS["random 13"], 8)
    table = brute_force(model)[2].reshape((2,) * 13)
    others = tuple(node for node in range(13) if node not in nodes)
    expected = table.sum(axis=others).transpose(np.argsort(np.argsort(nodes)) if nodes else ())
    np.testing.assert_allclose(ask(Enumeration, model).marginal(nodes), expected, atol=1e-15)


def test_ties_go_to_the_lowest_number():
    engine = ask(Enumeration, random_model(gb.graphs.complete(12), 2, bias=False))
    best, _ = engine.mode
    assert best[0] == 0  # of a state and its mirror image, the one with the lower first variable
    uniform = ask(Enumeration, gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(12), BINARY)))
    best, log_probability = uniform.mode
    assert not best.any()
    assert log_probability == pytest.approx(-12 * np.log(2))


def test_result_does_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr("gibbsian.backends.threads.WORTH_THREADS", 0)

    def run(n_threads):
        with limited_threads(n_threads):
            engine = ask(Enumeration, random_model(gb.graphs.complete(15), 9))
            draws = engine.sample(500, np.random.default_rng(0))
            return engine.log_partition, engine.second_moments, engine.marginal([3, 1]), draws

    for one, other in zip(run(1), run(2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_complete_ferromagnet_of_twenty_five():
    # a complete ferromagnet: the states fall into classes by their sum
    n, coupling = 25, 0.03
    model = gb.PairwiseFamily.model(gb.graphs.complete(n), None, np.full(n * (n - 1) // 2, coupling))
    ups = np.arange(n + 1)
    total = 2.0 * ups - n
    classes = gammaln(n + 1) - gammaln(ups + 1) - gammaln(n - ups + 1) + coupling * (total**2 - n) / 2
    engine = ask(Enumeration, model)
    assert engine.log_partition == pytest.approx(logsumexp(classes), rel=1e-13)
    shares = np.exp(classes - logsumexp(classes))
    pair = (shares @ total**2 - n) / (n * (n - 1))
    np.testing.assert_allclose(engine.moments, pair, rtol=1e-11)


def test_bad_questions_are_refused(monkeypatch):
    engine = ask(Enumeration, random_model(gb.graphs.complete(4)))
    with pytest.raises(ArgumentError, match="names 4: use numbers from 0 to 3"):
        engine.marginal([0, 4])
    with pytest.raises(ArgumentError, match="twice"):
        engine.marginal([1, 1])
    with pytest.raises(ArgumentError, match="n_samples=-1"):
        engine.sample(-1, np.random.default_rng(0))
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.001")
    with pytest.raises(TooExpensiveError, match="1000000 samples of 4 variables needs"):
        engine.sample(1_000_000, np.random.default_rng(0))
    with pytest.raises(TooExpensiveError, match="joint marginal of 18 variables needs"):
        ask(Enumeration, random_model(gb.graphs.complete(18))).marginal(range(18))


def test_samples_of_more_variables_than_a_row_of_the_table_has():
    model = random_model(gb.graphs.complete(13), scale=0.3)
    engine = ask(Enumeration, model)
    drawn = model.variables.scores_of(engine.sample(4000, np.random.default_rng(0)))
    means = engine.moments[:13]
    np.testing.assert_allclose(drawn.mean(axis=0), means, atol=5 / np.sqrt(4000))
    seconds = engine.moments[13:]
    pairs = np.array([drawn[:, i] @ drawn[:, j] / 4000 for i, j in model.family.graph.edges])
    np.testing.assert_allclose(pairs, seconds, atol=5 / np.sqrt(4000))
