"""Families of potentials against the models that they replace: the same answers at the same parameters."""

import numpy as np
import pytest

import gibbsian as gb
from family_cases import GRAPH, NEAR, every_row
from gibbsian.domain import BINARY, SPIN, Categories, Continuum
from gibbsian.models import OrdinalModel, PotentialField
from gibbsian.models import Potential as OldPotential
from gibbsian.models.conditionals import WeightedRows
from gibbsian.models.families.potentials import POTENTIALS, Potential, PotentialsFamily
from gibbsian.models.families.quadrature import QuadratureFamily
from gibbsian.models.variables import variables_of
from gibbsian.objectives import Pseudolikelihood
from gibbsian.samplers.continuous_gibbs import _log_density

SIZES = Categories((2, 3, 2, 4, 3))
SCORES = Categories((3, 2, 2, 3, 3), ((-1, 0, 1), (0, 1), (-1, 1), (0.5, 1, 2), (0, 1, 2)))
LINE = Continuum("gaussian", 0.5, 1.3, 4)
TRIPLE = ("product", None, [(2, 0, 1)])
UNTIED = ("bias", None, None, False)
OWN = (NEAR.name, NEAR.function, NEAR.scopes, NEAR.tied)

CASES = {
    "tied spins": (["product", "bias"], SPIN, True),
    "untied 0/1": (["bias", "equal", "product"], BINARY, False),
    "a triple": ([UNTIED, TRIPLE, "squared-difference"], SCORES, True),
    "scores": (["square", "absolute-difference", "indicator:1", "levels"], SCORES, False),
    "tied scores": (["square", "absolute-difference", "squared-difference", UNTIED], SCORES, True),
    "categories": (["bias", "equal", "indicator:2"], SIZES, False),
    "tables": (["table"], SIZES, False),
    "tied tables": ([("table", None, [(0, 1), (2, 1)])], Categories((3,) * 5), True),
    "functions": ([OWN, "product", UNTIED], SCORES, True),
    "functions of categories": ([OWN, "levels"], SIZES, False),
    "interval": (["product", UNTIED, "absolute-difference"], Continuum("interval", -1.0, 2.0, 3), True),
    "a triple of an interval": ([UNTIED, TRIPLE, OWN], Continuum("interval", -1.0, 1.0, 3), False),
    "line": (["bias", "square", "product"], LINE, True),
    "untied line": (["bias", "squared-difference", OWN], LINE, False),
    "ordinal": (None, SCORES, False),
    "ordinal spins": (None, SPIN, False),
}


def spelled(kind, potentials):
    """Names and the arguments of potentials of either kind."""
    return [each if isinstance(each, str) else kind(*each) for each in potentials]


@pytest.fixture(params=CASES)
def pair(request, rng):
    """The old model, the new family, parameters, and all rows: as states and as the family takes them."""
    potentials, domain, tied = CASES[request.param]
    variables = variables_of(domain, 5)
    if potentials is None:
        old, new = OrdinalModel.zeros(GRAPH, domain), PotentialsFamily.ordinal(GRAPH, variables)
    else:
        kind = QuadratureFamily if variables.real else PotentialsFamily
        old = PotentialField.build(spelled(OldPotential, potentials), GRAPH, domain, tied=tied)
        new = kind.build(spelled(Potential, potentials), variables, GRAPH, tied=tied)
    codes = every_row(variables)
    theta = rng.normal(size=old.theta.size)
    return old.replace(theta), new, theta, domain.from_codes(codes), variables.rows_of(codes)


def test_rows_have_the_same_weights_and_statistics(pair, rng):
    old, new, theta, states, rows = pair
    weights = rng.random(len(rows))
    np.testing.assert_array_equal(new.log_weights(theta, rows), old.log_weights(states))
    np.testing.assert_array_equal(new.statistics(rows), old.statistics(states))
    np.testing.assert_array_equal(new.mean_statistics(rows, weights), old.mean_statistics(states, weights))


def test_structure_and_names_are_the_same(pair):
    old, new, theta, _, _ = pair
    names = list("vwxyz")
    assert new.parameter_names(names) == old.parameter_names(names)
    assert new.scopes == old.structure.layout.scopes
    assert new.scopes.graph == old.graph
    np.testing.assert_array_equal(new.penalised, old.penalised)
    if old.domain != LINE:  # the range of a square on the line has zero in it, which the model left out
        np.testing.assert_allclose(new.statistic_range, old.statistic_range, atol=1e-12)
    np.testing.assert_allclose(new.canonical(theta), old.canonical().theta, atol=1e-12)


def test_interactions_are_the_same(pair):
    old, new, theta, _, _ = pair
    was, found = old.interactions(), new.interactions(theta)
    assert (found.scopes, found.sizes, found.measure, found.signed) == (was.scopes, was.sizes, was.measure, was.signed)
    np.testing.assert_allclose(found.strengths, was.strengths, atol=1e-12)


def test_factors_and_what_follows_from_marginals_are_the_same(pair, rng):
    old, new, theta, states, rows = pair
    was, found = old.factors(), new.factors(theta)
    assert [factor.nodes for factor in found.factors] == [factor.nodes for factor in was.factors]
    for one, other in zip(found.factors, was.factors, strict=True):
        np.testing.assert_array_equal(one.table, other.table)
    probabilities = rng.dirichlet(np.ones(len(rows))).reshape(new.variables.sizes)

    def marginal(nodes):
        return probabilities.sum(axis=tuple(i for i in range(5) if i not in nodes))

    np.testing.assert_array_equal(new.statistics_from(marginal), old.statistics_from(marginal))
    inside, some = {1, 2}, rng.permutation(len(rows))[:20]
    for number in range(len(found.factors)):
        free, table = found.given_outside(number, inside, old.rows_by_variable(states[some]))
        own, expected = was.given_outside(number, inside, old.rows_by_variable(states[some]))
        assert free == own
        np.testing.assert_array_equal(table, expected)


def test_given_variables_leave_the_same(pair, rng):
    old, new, theta, _, _ = pair
    codes = np.array([1, 0]) if not new.variables.real else rng.uniform(-1, 1, 2)
    was, given = old.given([4, 1], codes), new.given([4, 1], codes)
    np.testing.assert_array_equal(given.place, was.place)
    np.testing.assert_array_equal(given.scale, was.scale)
    np.testing.assert_allclose(given.constant, was.constant, atol=1e-12)
    assert given.offset == pytest.approx(was.offset, abs=1e-12)
    rest = every_row(given.family.variables)
    states, rows = was.family.domain.from_codes(rest), given.family.variables.rows_of(rest)
    logs = was.family.replace(theta).log_weights(states)
    np.testing.assert_allclose(given.family.log_weights(theta, rows), logs, atol=1e-12)


def test_conditionals_are_the_same(pair, rng):
    old, new, theta, _, rows = pair
    weights = rng.random(len(rows))
    for by_row in (False, True):
        was = old.conditionals(rows, weights, by_row=by_row)
        found = new.conditionals(WeightedRows.of(rows, weights, by_row=by_row))
        (value, gradient), loss = (
            was.evaluate(theta, Pseudolikelihood.loss),
            found.evaluate(theta, Pseudolikelihood.loss),
        )
        assert loss[0] == value
        np.testing.assert_array_equal(loss[1], gradient)
    np.testing.assert_array_equal(found.costs(theta), was.costs(theta))


def test_sums_over_the_same_parts(pair):
    """What expectations of shared statistics go by."""
    old, new, _, _, _ = pair
    blocks = (new.at_nodes if new.variables.real else new).blocks
    for one, other in zip(blocks, old.shared_statistics(), strict=True):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1])
        np.testing.assert_array_equal(one[2], other[2])


def test_levels_and_couplings_of_the_ordinal_family_are_the_same(rng):
    old = OrdinalModel.zeros(GRAPH, SCORES)
    old = old.replace(rng.normal(size=old.theta.size))
    parts = PotentialsFamily.ordinal(GRAPH, variables_of(SCORES, 5)).split(old.theta)
    assert [[0.0, *levels] for levels in parts.levels] == [levels.tolist() for levels in old.biases]
    np.testing.assert_array_equal(parts.couplings, old.couplings)


@pytest.mark.parametrize("domain", [Continuum("interval", -1.0, 2.0), LINE], ids=["interval", "line"])
def test_conditionals_and_tables_of_real_variables_are_the_same(domain, rng):
    old = PotentialField.build(["bias", "square", "product"], GRAPH, domain, theta=rng.normal(size=3))
    new = QuadratureFamily.build(["bias", "square", "product"], variables_of(domain, 5), GRAPH)
    rows, points = rng.uniform(-1, 1, (10, 5)), rng.uniform(-1, 1, (10, 3))
    for i in range(5):
        found = new.conditional(old.theta, rows, i, points)
        np.testing.assert_allclose(found, _log_density(old, rows, i, points), atol=1e-12)
    np.testing.assert_array_equal(new.discretised(old.theta).theta, old.discretised.theta)


def test_the_same_names_are_known():
    assert list(POTENTIALS) == list(gb.models.POTENTIALS)


@pytest.mark.parametrize(
    ("potentials", "words"),
    [
        (["twice"], "is not known"),
        (["square"], "categories have no numbers"),
        (["indicator:red"], "names no number"),
        (3, "must hold names"),
        ([], "no potential applies"),
        (["table"], "statistics on one scope and"),
    ],
)
def test_mistakes_are_said(potentials, words):
    with pytest.raises(gb.errors.ArgumentError, match=words):
        PotentialsFamily.build(potentials, variables_of(Categories((2, 3)), 2), gb.graphs.complete(2))


def test_real_variables_are_refused_where_they_have_no_tables():
    box = variables_of(Continuum("interval", -1.0, 2.0), 2)
    with pytest.raises(gb.errors.ArgumentError, match="have no tables"):
        QuadratureFamily.build(["table"], box)
    with pytest.raises(gb.errors.ArgumentError, match="QuadratureFamily"):
        PotentialsFamily.build(["bias"], box)
    family = QuadratureFamily.build(["bias"], box)
    with pytest.raises(gb.errors.CodingError, match="the support is from -1 to 2"):
        family.log_weights(np.zeros(1), [[2.5, 0.0]])
    with pytest.raises(gb.errors.CodingError, match="the support is from -1 to 2"):
        family.given([0], [2.5])
    with pytest.raises(gb.errors.ArgumentError, match="leave at least one free"):
        family.given([0, 1], [0.5, 0.5])
    own = QuadratureFamily.build([NEAR], variables_of(Continuum("interval", -1.0, 2.0), 5))
    with pytest.raises(gb.errors.ArgumentError, match="cannot be written to a file"):
        own.to_parts()
