"""Families of any potentials of discrete variables, against the families that are special cases of them."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import PotentialsFamily, Variables
from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.models import Potential
from gibbsian.models.scopes import Scopes
from systems import SPINS, all_states, costs_of, exact_law


def empty(n):
    return gb.graphs.from_edges([], n)


def model_of(potentials, variables, graph=None, theta=None, **how):
    """A model of potentials with these parameters, or random ones."""
    family = PotentialsFamily.build(potentials, variables, graph, **how)
    theta = np.random.default_rng(0).normal(size=family.n_parameters) if theta is None else np.array(theta)
    return gb.Model(family, theta)


def test_tables_are_those_of_the_family_of_tables():
    variables = Variables.categories((2, 3, 2))
    model = model_of(["table"], variables, gb.graphs.grid(1, 3), tied=False)
    tables = gb.TablesFamily(Scopes([(0,), (1,), (2,), (0, 1), (1, 2)], 3), variables)
    tables, states = gb.Model(tables, model.theta), all_states(variables)
    np.testing.assert_allclose(costs_of(model, states), costs_of(tables, states), atol=1e-12)
    np.testing.assert_allclose(model.energy(states), tables.energy(states), atol=1e-12)
    for name in ("statistics", "mean_statistics"):
        np.testing.assert_allclose(
            getattr(model.family, name)(states), getattr(tables.family, name)(states), atol=1e-12
        )
    np.testing.assert_allclose(exact(model).moments, exact(tables).moments, atol=1e-12)


def test_a_lattice_with_one_coupling_is_the_pairwise_machine():
    graph = gb.graphs.grid(3, 4)
    model = model_of(["bias", "product"], SPINS(12), graph, [0.1, 0.4])
    machine = gb.PairwiseFamily.model(graph, np.full(12, 0.1), np.full(graph.n_edges, 0.4))
    states = all_states(SPINS(12))[::97]
    np.testing.assert_allclose(model.log_weights(states), machine.log_weights(states), atol=1e-12)
    pairs, own = exact(machine), exact(model)
    assert own.log_partition == pytest.approx(pairs.log_partition, abs=1e-10)
    np.testing.assert_allclose(own.moments, [pairs.moments[:12].sum(), pairs.moments[12:].sum()], atol=1e-10)


def test_a_tied_coupling_of_a_chain_is_solved_by_its_sufficient_statistic(rng):
    """On a chain of spins without biases the products are independent: the maximum is atanh of their mean."""
    rows = np.where(rng.random((400, 6)) < 0.5, -1, 1)
    rows[:, 1:] = np.where(rng.random((400, 5)) < 0.5, rows[:, :-1], rows[:, 1:])
    mean = (rows[:, 1:] * rows[:, :-1]).mean()
    for learner in ("mle", "mple"):
        machine = gb.MarkovRandomFieldMachine("product", graph="chain", tied=True, learner=learner).fit(rows)
        tolerance = 1e-5 if learner == "mle" else 0.1
        assert machine.parameters_["product"] == pytest.approx(np.arctanh(mean), abs=tolerance)


@pytest.mark.parametrize("region", [1, "s2", [1, 2]])
def test_spatial_integration_of_tied_statistics_is_unbiased(rng, region):
    """YU20 eq. 8 with one parameter for many scopes, at the exact law; its error is that of the sum."""
    variables = Variables.ordinal([(0, 1, 3)] * 4)
    model = model_of(["bias", "absolute-difference"], variables, gb.graphs.grid(2, 2), [0.2, -0.5])
    states, law, _ = exact_law(model)
    samples = gb.expectations.Samples(states, law, repeats=np.full(len(law), 1.0))
    estimate = gb.expectations.spatial_statistics(model, samples, region)
    np.testing.assert_allclose(estimate.value, exact(model).moments, atol=1e-10)
    drawn = [states[rng.choice(len(states), 200, p=law)] for _ in range(60)]
    found = [gb.expectations.spatial_statistics(model, own, region) for own in drawn]
    spread = np.std([one.value for one in found], axis=0)
    np.testing.assert_allclose(np.mean([one.stderr for one in found], axis=0), spread, rtol=0.4)


def test_functions_with_several_statistics_and_argument_order():
    def signed(x, y):
        return x - y, (x == 1) & (y == 0)

    family = PotentialsFamily.build([Potential("signed", signed, scopes=[(1, 0), (1, 2)])], Variables.binary(3))
    assert family.statistics(np.array([[0, 1, 0], [1, 0, 0]])).tolist() == [[2.0, 2.0], [-1.0, 0.0]]
    assert family.parameter_names(["a", "b", "c"]) == ["signed[0]", "signed[1]"]
    assert {tuple(edge) for edge in family.graph.edges.tolist()} == {(0, 1), (1, 2)}


def test_names_of_one_kind_share_parameters():
    left, right = Potential("edge", lambda x, y: x * y, [(0, 1)]), Potential("edge", lambda x, y: x == y, [(1, 2)])
    model = model_of([left, right], SPINS(3), theta=[1.0])
    assert model.energy(np.array([[1, 1, 1], [1, 0, 1]])).tolist() == [-2.0, 1.0]


def test_the_gauge_is_what_changes_nothing():
    model = model_of(["table"], Variables.categories((2, 3, 2)), gb.graphs.complete(3), tied=False)
    moved = model.replace(model.theta + 3.0 * model.family._gauge[:, 0])
    np.testing.assert_allclose(exact_law(moved)[1], exact_law(model)[1], atol=1e-12)
    np.testing.assert_allclose(moved.canonical().theta, model.canonical().theta, atol=1e-12)
    # 3 x 2 x 3 - 1 free probabilities less those of the interaction of all three
    assert model.theta.size - model.family._gauge.shape[1] == 1 + 2 + 1 + 2 + 1 + 2


@pytest.mark.parametrize(
    ("potentials", "words"),
    [(["twice"], "is not known"), (["square"], "categories have no numbers"), (["indicator:red"], "names no number")],
)
def test_mistakes_are_said(potentials, words):
    with pytest.raises(ArgumentError, match=words):
        PotentialsFamily.build(potentials, Variables.categories((2, 3)), gb.graphs.complete(2))


def test_tying_tables_of_different_sizes_is_refused():
    with pytest.raises(ArgumentError, match="2 statistics on one scope and 3"):
        PotentialsFamily.build(["table"], Variables.categories((2, 3)), empty(2))


def test_what_is_left_given_a_variable_keeps_its_functions_in_a_file():
    variables = Variables.ordinal([(-1.0, 0.0, 2.0)] * 3)
    rest, _ = model_of(["bias", "product"], variables, gb.graphs.complete(3)).given([1], [2])
    again = type(rest.family).from_parts(rest.family.to_parts(), rest.variables)
    states = all_states(rest.variables)
    np.testing.assert_allclose(again.log_weights(rest.theta, states), rest.log_weights(states), atol=1e-12)
