"""Pfaffians on planar graphs against enumeration, elimination and Onsager's closed form."""

import networkx
import numpy as np
import pytest
from scipy.integrate import quad

import gibbsian as gb
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import Elimination, Enumeration, Planar, exact
from gibbsian.inference.planar import kasteleyn
from gibbsian.inference.planar.pfaffians import pfaffian
from systems import BINARY, SPINS, ask, exact_law


@pytest.fixture
def small_fronts(monkeypatch):
    """Divide even small graphs, so that all passes are in use."""
    monkeypatch.setattr(kasteleyn, "LEAF", 3)


def random_planar(rng, most=11):
    """Any planar graph: with isolated variables, trees, bridges and several components."""
    n = int(rng.integers(1, most + 1))
    graph = networkx.empty_graph(n)
    pairs = rng.permutation([(i, j) for i in range(n) for j in range(i)])
    for pair in pairs[: rng.integers(0, 4 * n)].tolist():
        graph.add_edge(*pair)
        if not networkx.check_planarity(graph)[0]:
            graph.remove_edge(*pair)
    return gb.graphs.from_networkx(graph)


def without_fields(graph, rng, scale=1.0, variables=SPINS):
    model = gb.PairwiseFamily.model(graph, None, rng.normal(scale=scale, size=graph.n_edges))
    return model if variables is SPINS else model.family.recode(model.theta, variables)[0]


def test_all_moments_of_random_planar_graphs(small_fronts, rng, scores):
    for _ in range(25):
        model = without_fields(random_planar(rng), rng, rng.choice([0.3, 1.0, 4.0]), scores)
        engine, truth = ask(Planar, model), ask(Enumeration, model)
        assert engine.log_partition == pytest.approx(truth.log_partition, abs=1e-10)
        np.testing.assert_allclose(engine.moments, truth.moments, atol=1e-10)
        np.testing.assert_allclose(engine.second_moments, truth.second_moments, atol=1e-9)
        np.testing.assert_allclose(engine.means, truth.means, atol=1e-10)


def test_marginals_of_any_variables(small_fronts, rng):
    model = without_fields(gb.graphs.grid(3, 4), rng)
    for nodes in ([5], [0, 11], [7, 2, 9], [0, 3, 8, 11]):
        np.testing.assert_allclose(
            ask(Planar, model).marginal(nodes), ask(Enumeration, model).marginal(nodes), atol=1e-12
        )


def test_fields_through_a_ghost(small_fronts, rng):
    """A ghost joined to the rim of a grid keeps it planar; the variable inside has a mean all the same."""
    graph = gb.graphs.grid(3, 3)
    biases = rng.normal(size=9)
    biases[4] = 0.0
    model = gb.PairwiseFamily.model(graph, biases, rng.normal(size=12))
    engine, truth = ask(Planar, model), ask(Enumeration, model)
    assert Planar.price(model.family) is None  # another model of this structure would have a field inside
    np.testing.assert_allclose(engine.moments, truth.moments, atol=1e-12)
    np.testing.assert_allclose(engine.marginal([4, 0]), truth.marginal([4, 0]), atol=1e-12)
    with pytest.raises(ArgumentError, match="not planar"):
        engine.engine.at(model.theta + 1.0).log_partition  # noqa: B018


def test_onsagers_free_energy_in_the_bulk():
    """Edges and corners of the lattice cancel in a second difference."""
    coupling = 0.3
    log_z = {}
    for rows, columns in ((24, 24), (24, 25), (25, 25)):
        graph = gb.graphs.grid(rows, columns)
        model = gb.PairwiseFamily.model(graph, None, np.full(graph.n_edges, coupling))
        log_z[rows, columns] = exact(model).log_partition
    bulk = log_z[25, 25] - 2 * log_z[24, 25] + log_z[24, 24]
    k = 2 * np.sinh(2 * coupling) / np.cosh(2 * coupling) ** 2
    inner, _ = quad(lambda phi: np.log((1 + np.sqrt(1 - (k * np.sin(phi)) ** 2)) / 2), 0, np.pi)
    assert bulk == pytest.approx(np.log(2 * np.cosh(2 * coupling)) + inner / (2 * np.pi), abs=1e-8)


@pytest.mark.parametrize("coupling", [-60.0, 60.0])
def test_very_strong_couplings_that_can_all_be_satisfied(coupling):
    graph = gb.graphs.grid(12, 12)
    engine = ask(Planar, gb.PairwiseFamily.model(graph, None, np.full(graph.n_edges, coupling)))
    assert engine.log_partition == pytest.approx(60.0 * graph.n_edges + np.log(2.0), rel=1e-14)
    np.testing.assert_allclose(engine.moments, np.sign(coupling), atol=1e-12)


def test_frustration_at_low_temperature(rng):
    """From a ground state twelve digits remain; without the time to find one the loss is noticed."""
    graph = gb.graphs.grid(8, 8)
    model = gb.PairwiseFamily.model(graph, None, rng.choice([-4.0, 4.0], graph.n_edges))
    truth = ask(Elimination, model)
    assert ask(Planar, model).log_partition == pytest.approx(truth.log_partition, rel=1e-12)
    np.testing.assert_allclose(ask(Planar, model).moments, truth.moments, atol=1e-7)
    with pytest.raises(TooExpensiveError, match="lose all digits"):
        ask(Planar, model.replace(3 * model.theta), max_seconds=1e-9).log_partition  # noqa: B018


def test_most_probable_states_of_glasses(rng):
    graphs = (SPINS, gb.graphs.grid(5, 6)), (BINARY, gb.graphs.grid(1, 7)), (SPINS, random_planar(rng, 14))
    for variables, graph in graphs:
        model = without_fields(graph, rng, 2.0, variables)
        state, log_probability = ask(Planar, model).mode
        assert log_probability == pytest.approx(ask(Elimination, model).mode[1], abs=1e-10)
        assert model.log_weights(state[None])[0] - ask(Elimination, model).log_partition == pytest.approx(
            log_probability
        )


def test_samples_over_many_fronts(small_fronts, rng):
    model = without_fields(gb.graphs.grid(3, 3), rng)
    states, probabilities, _ = exact_law(model)
    drawn = ask(Planar, model).sample(4000, rng)
    counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
    z = (counts - 4000 * probabilities) / np.sqrt(4000 * probabilities + 1e-300)
    likely = 4000 * probabilities > 5
    assert counts.sum() == 4000
    assert np.abs(z[likely]).max() < 5.0
    assert np.abs(model.variables.scores_of(drawn).mean(axis=0)).max() < 5.0 / np.sqrt(4000)


def test_planarity_is_the_price(rng):
    assert Planar.price(gb.PairwiseFamily(gb.graphs.complete(5), bias=False)) is None
    assert Planar.price(gb.PairwiseFamily(gb.graphs.complete(4), bias=False)) is not None
    assert Planar.price(gb.PairwiseFamily(gb.graphs.complete(4))) is None  # the ghost makes it K5
    with pytest.raises(ArgumentError, match="not planar"):
        ask(Planar, gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(5), bias=False))).log_partition  # noqa: B018


@pytest.mark.long
def test_wide_lattices_without_fields_are_chosen(monkeypatch):
    wide = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(36, 36), bias=False))
    assert isinstance(exact(wide).engine, Planar)
    assert exact(wide).log_partition == pytest.approx(36 * 36 * np.log(2.0))
    with pytest.raises(TooExpensiveError, match="products of spins"):
        ask(Planar, wide, max_seconds=1.0).second_moments  # noqa: B018
    monkeypatch.setattr(kasteleyn, "_embedding", None)  # long chains, and grids with fields, are not asked
    assert not gb.inference.is_affordable(gb.PairwiseFamily(gb.graphs.grid(60, 60)))
    chain = gb.PairwiseFamily(gb.graphs.grid(1, 5000), bias=False)
    assert gb.inference.predict_cost(chain).engine == "elimination"


def test_edges_of_trees_too_large_for_32_bits():
    """The number of a pair of vertices does not fit: a wrong sign would go unnoticed."""
    n = 50_000
    order, parents = np.arange(n, dtype=np.int32), np.arange(-1, n - 1, dtype=np.int32)
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)[::-1]
    np.testing.assert_array_equal(kasteleyn.edges_to_parents(pairs, order, parents)[1:], np.arange(n - 2, -1, -1))


def test_pfaffians(rng):
    matrix = rng.normal(size=(6, 6))
    matrix -= matrix.T
    assert pfaffian(matrix) ** 2 == pytest.approx(np.linalg.det(matrix))
    assert pfaffian(matrix[:2, :2]) == matrix[0, 1]
    turned = matrix[[1, 0, 2, 3, 4, 5]][:, [1, 0, 2, 3, 4, 5]]
    assert pfaffian(turned) == pytest.approx(-pfaffian(matrix))
    assert pfaffian(np.zeros((4, 4))) == 0.0
