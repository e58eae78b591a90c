"""Variable elimination against enumeration and closed forms."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import TooExpensiveError
from gibbsian.inference import Elimination, Enumeration, plan_exact
from gibbsian.inference.ordering import MAX_WIDTH, min_degree_order, min_fill_order, plan_elimination
from systems import SPINS, ask


def random_model(graph, seed=0, scale=1.0, variables=SPINS, bias=True):
    rng = np.random.default_rng(seed)
    biases = scale * rng.normal(size=graph.n_nodes) if bias else None
    return gb.PairwiseFamily.model(graph, biases, scale * rng.normal(size=graph.n_edges), variables)


def random_tree(n_nodes, seed=0):
    rng = np.random.default_rng(seed)
    parents = (rng.random(n_nodes - 1) * np.arange(1, n_nodes)).astype(int)
    return gb.graphs.from_edges(list(zip(parents.tolist(), range(1, n_nodes), strict=True)), n_nodes)


GRAPHS = {
    "one node": gb.graphs.complete(1),
    "grid 4x4": gb.graphs.grid(4, 4),
    "strip 2x7": gb.graphs.grid(2, 7),
    "tree": random_tree(13, 1),
    "star": gb.graphs.from_edges([(6, i) for i in range(13) if i != 6], 13),
    "cycle": gb.graphs.from_networkx(networkx.cycle_graph(12)),
    "sparse": gb.graphs.random(14, 0.2, random_state=2),
    "dense": gb.graphs.random(10, 0.7, random_state=3),
    "no edges": gb.graphs.from_edges([], 5),
    "one edge": gb.graphs.from_edges([(1, 3)], 5),
    "two parts": gb.graphs.from_edges([(0, 3), (3, 4), (1, 2), (2, 5), (1, 5)], 7),
}


@pytest.mark.parametrize("scale", [0.7, 50.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_everything_against_enumeration(name, scale, scores):
    model = random_model(GRAPHS[name], 4, scale, scores)
    one, other = ask(Elimination, model), ask(Enumeration, model)
    assert one.log_partition == pytest.approx(other.log_partition, rel=1e-14)
    # conversion to spins rounds parameters of size 1000: the moments inherit that
    tolerance = 1e-13 * max(scale, 1.0)
    np.testing.assert_allclose(one.moments, other.moments, atol=tolerance)
    np.testing.assert_allclose(one.means, other.means, atol=tolerance)
    np.testing.assert_allclose(one.second_moments, other.second_moments, atol=tolerance)
    (state, log_probability), (expected, expected_log) = one.mode, other.mode
    np.testing.assert_array_equal(state, expected)
    assert state.dtype == np.int8
    assert log_probability == pytest.approx(expected_log, abs=1e-10)


@pytest.mark.parametrize("nodes", [[], [4], [15, 2], [9, 0, 5, 10]])
@pytest.mark.parametrize("scale", [0.5, 30.0])
def test_marginal(nodes, scale):
    model = random_model(gb.graphs.grid(4, 4), 6, scale)
    np.testing.assert_allclose(
        ask(Elimination, model).marginal(nodes), ask(Enumeration, model).marginal(nodes), atol=1e-12
    )


def test_every_order_gives_the_same_answer(monkeypatch):
    """The layout is right for any elimination order, not only for those that the search likes."""
    from gibbsian.inference import ordering

    model = random_model(gb.graphs.grid(3, 4), 5)
    expected = ask(Enumeration, model)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(12)
        plan = ordering._lay_out(model.family.graph, order)
        monkeypatch.setattr("gibbsian.inference.elimination.plan_elimination", lambda graph, plan=plan: plan)
        found = ask(Elimination, model)
        assert found.log_partition == pytest.approx(expected.log_partition, rel=1e-14)
        np.testing.assert_allclose(found.moments, expected.moments, atol=1e-13)


def test_conflicting_strong_couplings():
    """A message whose smallest entries decide: they lie below the range of float64 relative to its largest."""
    # nodes 1..20 pull node 0 up with all their might, node 21 pulls it down a little harder
    n = 22
    couplings = np.full(n - 1, 50.0)
    couplings[-1] = 1000.5
    biases = np.full(n, 100.0)
    biases[0], biases[-1] = 0.0, -2000.0
    star = gb.graphs.from_edges([(0, i) for i in range(1, n)], n)
    engine = ask(Elimination, gb.PairwiseFamily.model(star, biases, couplings))
    # the pull on node 0 is 20 * 50 - 1000.5 = -0.5, as no leaf ever leaves its value
    assert engine.means[0] == pytest.approx(np.tanh(-0.5), rel=1e-9)


def test_chain_of_a_hundred_thousand_has_the_closed_form():
    n = 100_000
    couplings = np.random.default_rng(0).normal(size=n - 1)
    engine = ask(Elimination, gb.PairwiseFamily.model(gb.graphs.grid(1, n), None, couplings))
    expected = n * np.log(2) + np.log(np.cosh(couplings)).sum()
    assert engine.log_partition == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(engine.moments, np.tanh(couplings), atol=1e-13)
    np.testing.assert_allclose(engine.means, 0.0, atol=1e-13)
    state, log_probability = engine.mode
    np.testing.assert_array_equal(state[1:] == state[:-1], couplings > 0)
    assert log_probability == pytest.approx(np.abs(couplings).sum() - expected, rel=1e-12)


def test_chain_in_a_field_agrees_with_transfer_matrices():
    n = 5_000
    rng = np.random.default_rng(1)
    biases, couplings = rng.normal(size=n), rng.normal(size=n - 1)
    forward, log_scale = np.exp([-biases[0], biases[0]]), 0.0
    for bias, coupling in zip(biases[1:], couplings, strict=True):
        step = np.exp(coupling * np.array([[1, -1], [-1, 1]]) + bias * np.array([[-1, 1]]))
        forward = forward @ step
        log_scale += np.log(forward.sum())
        forward /= forward.sum()
    engine = ask(Elimination, gb.PairwiseFamily.model(gb.graphs.grid(1, n), biases, couplings))
    assert engine.log_partition == pytest.approx(log_scale, rel=1e-13)
    assert engine.means[-1] == pytest.approx(forward[1] - forward[0], abs=1e-13)


def test_random_tree_of_a_hundred_thousand():
    tree = random_tree(100_000, 3)
    couplings = np.random.default_rng(3).normal(size=tree.n_edges)
    engine = ask(Elimination, gb.PairwiseFamily.model(tree, None, couplings))
    assert engine.engine.cost.treewidth == 1
    expected = tree.n_nodes * np.log(2) + np.log(np.cosh(couplings)).sum()
    assert engine.log_partition == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(engine.moments, np.tanh(couplings), atol=1e-13)


def kac_ward_log_partition(rows, columns, graph, couplings):
    """Log Z of a planar grid in zero field by the determinant over directed edges."""
    tails = np.concatenate([graph.edges[:, 0], graph.edges[:, 1]])
    heads = np.concatenate([graph.edges[:, 1], graph.edges[:, 0]])
    step = (heads % columns - tails % columns) + 1j * (heads // columns - tails // columns)
    follows = (heads[:, None] == tails[None, :]) & (tails[:, None] != heads[None, :])
    turns = np.exp(0.5j * np.angle(step[None, :] / step[:, None]))
    matrix = np.where(follows, np.tanh(np.tile(couplings, 2))[:, None] * turns, 0.0)
    _, log_determinant = np.linalg.slogdet(np.eye(len(tails)) - matrix)
    return rows * columns * np.log(2) + np.log(np.cosh(couplings)).sum() + 0.5 * log_determinant


@pytest.mark.parametrize(("rows", "columns"), [(4, 5), (16, 16)])
def test_grid_in_zero_field_agrees_with_kac_ward(rows, columns):
    graph = gb.graphs.grid(rows, columns)
    couplings = np.random.default_rng(7).normal(size=graph.n_edges)
    engine = ask(Elimination, gb.PairwiseFamily.model(graph, None, couplings))
    expected = kac_ward_log_partition(rows, columns, graph, couplings)
    assert engine.log_partition == pytest.approx(expected, rel=1e-12)


def test_grid_in_a_field_moments_are_the_gradient_of_log_z():
    model = random_model(gb.graphs.grid(16, 16), 8)
    direction = np.random.default_rng(9).normal(size=model.theta.size)
    step = 1e-4
    ahead = ask(Elimination, model.replace(model.theta + step * direction)).log_partition
    behind = ask(Elimination, model.replace(model.theta - step * direction)).log_partition
    slope = direction @ ask(Elimination, model).moments
    assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-6)


def test_plans_are_good_and_engines_keep_them(monkeypatch):
    assert plan_elimination(gb.graphs.grid(16, 16)).width == 16
    assert plan_elimination(gb.graphs.grid(5, 40)).width <= 6  # numbered along its long side
    assert plan_elimination(gb.graphs.grid(40, 5)).width == 5
    assert plan_elimination(GRAPHS["cycle"]).width == 2
    assert plan_elimination(GRAPHS["star"]).width == 1
    model = random_model(gb.graphs.grid(5, 5))
    engine = plan_exact(model.family)
    monkeypatch.setattr("gibbsian.inference.elimination.plan_elimination", None)
    assert [engine.at(scale * model.theta).engine.plan for scale in (0, 1)] == [engine.plan] * 2


@pytest.mark.parametrize("propose", [min_degree_order, min_fill_order])
def test_orders_name_every_node_once(propose):
    for graph in GRAPHS.values():
        assert sorted(propose(graph)) == list(range(graph.n_nodes))
    assert propose(gb.graphs.complete(MAX_WIDTH + 2)) is None


def test_refusals_name_the_cost():
    long = ask(Elimination, random_model(gb.graphs.grid(1, 3000)), max_seconds=1.0)
    with pytest.raises(TooExpensiveError, match=r"all second moments of 3000 variables would take about .* s"):
        long.second_moments  # noqa: B018
    with pytest.raises(TooExpensiveError, match="joint marginal of 20 variables would take"):
        long.marginal(range(20))
    with pytest.raises(TooExpensiveError, match=r"treewidth 35 or more"):
        ask(Elimination, random_model(gb.graphs.complete(60))).log_partition  # noqa: B018


def test_held_spins_outweigh_couplings_of_either_sign():
    star = gb.graphs.from_edges([(0, i) for i in range(1, 6)], 6)
    for sign in (-1.0, 1.0):
        model = gb.PairwiseFamily.model(star, np.array([5.0, 0, 0, 0, 0, 0]), np.full(5, 300.0 * sign))
        expected = np.array([[0.0, 0.0], [0.0, 0.0]])
        up = 1 / (1 + np.exp(-10.0))  # the centre's own odds: all others follow it
        expected[0, int(sign < 0)], expected[1, int(sign > 0)] = 1 - up, up
        np.testing.assert_allclose(ask(Elimination, model).marginal([0, 3]), expected, atol=1e-12)
        np.testing.assert_allclose(ask(Elimination, model).marginal([3, 0]), expected.T, atol=1e-12)
