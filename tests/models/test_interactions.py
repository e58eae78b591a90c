"""The network of a model: strengths against what each model says of itself, and against enumeration of its tables."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.domain import Categories
from gibbsian.models import FullSpanModel, HigherOrderModel, MarkovRandomField, PottsModel
from gibbsian.models.base import ExponentialFamily
from gibbsian.models.factors import zero_sum
from gibbsian.models.interactions import of_tables
from gibbsian.models.layers.units import CategoricalUnits, SpinUnits
from layered_systems import restricted

RNG = np.random.default_rng(0)


def strengths(found):
    return dict(zip(found.scopes, found.strengths.tolist(), strict=True))


def test_pairs_of_spins_are_the_same_by_couplings_and_by_tables():
    graph = gb.graphs.complete(4)
    model = gb.PairwiseModel(graph, RNG.normal(size=10))
    own, by_tables = model.interactions(), ExponentialFamily.interactions(model)
    assert strengths(own) == pytest.approx(dict(zip(map(tuple, graph.edges.tolist()), model.couplings, strict=True)))
    assert strengths(by_tables) == pytest.approx(strengths(own))


def test_potts_strengths_are_norms_in_the_zero_sum_gauge_whatever_the_gauge():
    model = PottsModel.zeros(gb.graphs.complete(3), Categories((2, 3, 4)))
    model = model.replace(RNG.normal(size=model.theta.size))
    found = model.interactions()
    assert not found.signed
    np.testing.assert_allclose(found.strengths, model.coupling_norms())
    np.testing.assert_allclose(model.zero_sum().interactions().strengths, found.strengths)


def test_what_a_table_of_three_says_of_pairs_is_theirs():
    table = np.zeros((2, 2, 2))
    table[:] = np.array([[1.0, -1.0], [-1.0, 1.0]])[:, :, None]  # a coupling of the first two, three times over
    found = strengths(MarkovRandomField.build({(0, 1, 2): 3 * table}, 3).interactions())
    assert found == pytest.approx({(0, 1): 3.0, (0, 2): 0.0, (1, 2): 0.0, (0, 1, 2): 0.0})


def test_higher_orders_agree_between_products_functions_and_tables():
    model = HigherOrderModel.of_order(3, 3)
    model = model.replace(RNG.normal(size=7))
    expected = {scope: w for scope, w in zip(model.cliques, model.theta, strict=True) if len(scope) > 1}
    assert strengths(model.interactions()) == pytest.approx(expected)
    assert strengths(ExponentialFamily.interactions(model)) == pytest.approx(expected)
    functions = FullSpanModel.build((2, 2, 2), indices=[3, 5, 7], theta=[0.5, -1.0, 2.0])
    tables = zero_sum((factor.nodes, factor.table) for factor in functions.factors().factors)
    spins = of_tables(tables, (3,), [np.array([-1.0, 1.0])] * 3)
    assert strengths(functions.interactions()) == pytest.approx(
        {s: w for s, w in strengths(spins).items() if abs(w) > 1e-12}
    )


def test_numbers_give_norms_a_sign():
    model = HigherOrderModel.build({(0, 1): -0.5, (1, 2): 0.5}, 3, Categories.of_values((-1, 0, 1), 3))
    found = strengths(ExponentialFamily.interactions(model))
    assert found == pytest.approx({(0, 1): -1.0, (1, 2): 1.0})  # the table of x y has four entries of size 0.5


def test_gaussian_strengths_are_partial_correlations():
    family = gb.GaussianFamily(gb.graphs.complete(2), np.zeros(2), np.ones(2))
    model = gb.Model(family, np.array([0, 0, 2.0, 2.0, 1.0]))
    assert strengths(model.interactions()) == pytest.approx({(0, 1): -0.5})


def test_layers_of_categories_have_the_norms_of_their_joint_form():
    model = restricted(CategoricalUnits((3, 2)), SpinUnits(2))
    model = model.replace(RNG.normal(size=model.theta.size))
    found, joint = model.interactions(), model.joint()
    expected = joint.coupling_norms() / np.sqrt(2)  # a spin of the hidden layer counts twice there
    assert not found.signed
    assert strengths(found) == pytest.approx(dict(zip(map(tuple, joint.graph.edges.tolist()), expected, strict=True)))


def test_the_strongest_come_first_and_zeros_not_at_all():
    model = HigherOrderModel.build({(0,): 9.0, (0, 1): 0.0, (1, 2): -2.0, (0, 1, 2): 1.0}, 3)
    found = model.interactions()
    assert found.strongest().scopes == ((1, 2), (0, 1, 2))
    assert found.strongest(1).strengths.tolist() == [-2.0]
    assert found.strongest(least=1.5).scopes == ((1, 2),)
    matrix = found.matrix()
    assert matrix[1, 2] == -2.0  # pairs above the diagonal, what larger sets hold below
    assert matrix[2, 1] == matrix[1, 0] == 1.0
    assert matrix[0, 1] == 0.0
    assert np.isnan(matrix[0, 2])
