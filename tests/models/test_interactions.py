"""The network of a model: strengths against what each family says of itself, and against its tables."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.models.factors import zero_sum
from gibbsian.models.families.tables import coupling_norms
from gibbsian.models.interactions import of_tables
from gibbsian.models.layers.units import CategoricalUnits, SpinUnits
from gibbsian.models.scopes import Scopes
from layered_systems import restricted
from systems import products_of_order

RNG = np.random.default_rng(0)


def strengths(found):
    return dict(zip(found.scopes, found.strengths.tolist(), strict=True))


def by_tables(model):
    """Strengths by the tables of the factors, whatever the family."""
    tables = zero_sum((factor.nodes, factor.table) for factor in model.family.factors(model.theta).factors)
    return strengths(of_tables(tables, (model.n_variables,), model.variables.levels))


def test_pairs_of_spins_are_the_same_by_couplings_and_by_tables():
    graph = gb.graphs.complete(4)
    model = gb.Model(gb.PairwiseFamily(graph), RNG.normal(size=10))
    own = strengths(model.interactions())
    assert own == pytest.approx(dict(zip(map(tuple, graph.edges.tolist()), model.parts.couplings, strict=True)))
    assert by_tables(model) == pytest.approx(own)


def test_potts_strengths_are_norms_in_the_zero_sum_gauge_whatever_the_gauge():
    family = gb.TablesFamily.potts(gb.graphs.complete(3), Variables.categories((2, 3, 4)))
    model = gb.Model(family, RNG.normal(size=family.n_parameters))
    found = model.interactions()
    assert not found.signed
    np.testing.assert_allclose(found.strengths, coupling_norms(model))
    np.testing.assert_allclose(model.canonical().interactions().strengths, found.strengths)


def test_what_a_table_of_three_says_of_pairs_is_theirs():
    table = np.zeros((2, 2, 2))
    table[:] = np.array([[1.0, -1.0], [-1.0, 1.0]])[:, :, None]  # a coupling of the first two, three times over
    found = strengths(gb.TablesFamily.model({(0, 1, 2): 3 * table}, Variables.spins(3)).interactions())
    assert found == pytest.approx({(0, 1): 3.0, (0, 2): 0.0, (1, 2): 0.0, (0, 1, 2): 0.0})


def test_higher_orders_agree_between_products_functions_and_tables():
    family = products_of_order(3, 3)
    model = gb.Model(family, RNG.normal(size=7))
    expected = {scope: w for scope, w in zip(family.scopes, model.theta, strict=True) if len(scope) > 1}
    assert strengths(model.interactions()) == pytest.approx(expected)
    assert by_tables(model) == pytest.approx(expected)
    functions = gb.FullSpanFamily.model({3: 0.5, 5: -1.0, 7: 2.0}, Variables.spins(3))
    tables = zero_sum((factor.nodes, factor.table) for factor in functions.family.factors(functions.theta).factors)
    spins = of_tables(tables, (3,), [np.array([-1.0, 1.0])] * 3)
    assert strengths(functions.interactions()) == pytest.approx(
        {s: w for s, w in strengths(spins).items() if abs(w) > 1e-12}
    )


def test_numbers_give_norms_a_sign():
    variables = Variables.ordinal([(-1, 0, 1)] * 3)
    model = gb.Model(gb.ProductsFamily(Scopes([(0, 1), (1, 2)], 3), variables), np.array([-0.5, 0.5]))
    # the table of x y has four entries of size 0.5
    assert by_tables(model) == pytest.approx({(0, 1): -1.0, (1, 2): 1.0})


def test_gaussian_strengths_are_partial_correlations():
    family = gb.GaussianFamily(gb.graphs.complete(2), np.zeros(2), np.ones(2))
    model = gb.Model(family, np.array([0, 0, 2.0, 2.0, 1.0]))
    assert strengths(model.interactions()) == pytest.approx({(0, 1): -0.5})


def test_layers_of_categories_have_the_norms_of_their_joint_form():
    model = restricted(CategoricalUnits((3, 2)), SpinUnits(2))
    model = model.replace(RNG.normal(size=model.theta.size))
    found, joint = model.interactions(), model.joint()
    # a spin of the hidden layer counts twice there
    expected = coupling_norms(joint) / np.sqrt(2)
    edges = map(tuple, joint.family.graph.edges.tolist())
    assert not found.signed
    assert strengths(found) == pytest.approx(dict(zip(edges, expected, strict=True)))


def test_the_strongest_come_first_and_zeros_not_at_all():
    family = gb.ProductsFamily(Scopes([(0,), (0, 1), (1, 2), (0, 1, 2)], 3))
    found = gb.Model(family, np.array([9.0, 0.0, -2.0, 1.0])).interactions()
    assert found.strongest().scopes == ((1, 2), (0, 1, 2))
    assert found.strongest(1).strengths.tolist() == [-2.0]
    assert found.strongest(least=1.5).scopes == ((1, 2),)
    matrix = found.matrix()
    assert matrix[1, 2] == -2.0  # pairs above the diagonal, what larger sets hold below
    assert matrix[2, 1] == matrix[1, 0] == 1.0
    assert matrix[0, 1] == 0.0
    assert np.isnan(matrix[0, 2])
