"""The families of pairs, products and tables answer as the models that they replace, to the last bit."""

import numpy as np
import pytest

import gibbsian as gb
from family_cases import GRAPH, every_row
from gibbsian.domain import BINARY, SPIN, Categories
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import variables_of

SIZES = Categories((2, 3, 2, 4, 3))
VALUES = Categories.of_values((-1, 0, 1), 5)
CLIQUES = Scopes([(0,), (1,), (2,), (3,), (4,), (0, 1), (0, 2), (1, 2), (3, 4), (0, 1, 2)], 5)
OLD_AND_NEW = {
    "pairwise, spins": (gb.PairwiseModel.zeros(GRAPH, SPIN), lambda v: PairwiseFamily(GRAPH, v)),
    "pairwise, 0/1": (gb.PairwiseModel.zeros(GRAPH, BINARY), lambda v: PairwiseFamily(GRAPH, v)),
    "products, spins": (gb.HigherOrderModel.zeros(GRAPH, SPIN), lambda v: ProductsFamily.on_graph(GRAPH, v)),
    "products, 0/1": (gb.HigherOrderModel.zeros(GRAPH, BINARY), lambda v: ProductsFamily.on_graph(GRAPH, v)),
    "products, values": (gb.HigherOrderModel.zeros(GRAPH, VALUES), lambda v: ProductsFamily.on_graph(GRAPH, v)),
    "potts": (gb.PottsModel.zeros(GRAPH, SIZES), lambda v: TablesFamily.potts(GRAPH, v)),
    "potts, spins": (gb.PottsModel.zeros(GRAPH, SPIN), lambda v: TablesFamily.potts(GRAPH, v)),
    "tables": (gb.MarkovRandomField.on_cliques(CLIQUES, 5, SIZES), lambda v: TablesFamily(CLIQUES, v)),
}


@pytest.fixture(params=OLD_AND_NEW)
def both(request, rng):
    blank, make = OLD_AND_NEW[request.param]
    model = blank.replace(rng.normal(size=blank.theta.size))
    return model, make(variables_of(model.domain, 5))


def test_answers_are_the_same(both, rng):
    model, family = both
    codes = rng.permutation(every_row(family.variables))[:50]
    states, weights, theta = model.domain.from_codes(codes), rng.random(len(codes)), model.theta
    assert np.array_equal(family.log_weights(theta, codes), model.log_weights(states))
    assert np.array_equal(family.mean_statistics(codes, weights), model.mean_statistics(states, weights))
    assert np.array_equal(family.statistics(codes), model.statistics(states))
    assert np.array_equal(family.penalised, model.penalised)
    names = list("abcde")
    assert family.parameter_names(names) == model.parameter_names(names)
    np.testing.assert_allclose(family.canonical(theta), model.canonical().theta, atol=1e-14)
    found, known = family.interactions(theta), model.interactions()
    assert found.scopes == known.scopes
    assert np.array_equal(found.strengths, known.strengths)
    assert (found.sizes, found.measure, found.signed) == (known.sizes, known.measure, known.signed)
    for new, old in zip(family.factors(theta).factors, model.factors().factors, strict=True):
        assert new.nodes == old.nodes
        assert np.array_equal(new.table, old.table)


def test_conditioning_is_the_same(both):
    model, family = both
    new, old = family.given([1, 4], [0, 1]), model.given([1, 4], [0, 1])
    for one, other in zip(new[1:], old[1:], strict=True):
        assert np.array_equal(one, other)
    assert new.family.variables == variables_of(old.family.domain, 3)


def test_other_scores_are_the_same_distribution(both):
    model, family = both
    if not family.variables.two_valued or isinstance(family, TablesFamily):
        pytest.skip("is for products of two-valued variables")
    other = BINARY if model.domain == SPIN else SPIN
    (found, constant), (known, old) = (
        family.recode(model.theta, variables_of(other, 5)),
        model.to_domain(other),
    )
    np.testing.assert_allclose(found.theta, known.theta, atol=1e-14)
    assert constant == pytest.approx(old, abs=1e-14)
