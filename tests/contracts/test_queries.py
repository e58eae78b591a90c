"""Queries to every registered model and estimator agree with sums over all states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsian as gb
from estimator_samples import small, table
from gibbsian.answers import answers_about
from gibbsian.answers.queries import Queries
from gibbsian.errors import ArgumentError
from gibbsian.estimators import ESTIMATORS
from gibbsian.models import BinaryUnits, CategoricalUnits, SpinUnits
from gibbsian.models.base import Layered, Model
from gibbsian.models.mixtures.base import MixtureFamily
from gibbsian.models.mixtures.categorical import LatentClassFamily
from gibbsian.models.variables import Variables
from layered_systems import network, random_stack
from systems import all_states, exact_law, models_with_variables, name_of, random_model_of

GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], 4)
ESTIMATED = ESTIMATORS.names()
DISCRETE = [name for name in ESTIMATED if ESTIMATORS.trait(name, "rows", "two-valued") in ("two-valued", "categories")]
pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")


def restricted(rng, *layers):
    return random_stack(layers, rng)


def deep(rng, *layers):
    return random_stack(layers, rng)


def belief(rng, *layers):
    zeros = network(layers)
    return zeros.replace(rng.normal(scale=0.8, size=zeros.theta.size))


def classes(rng, *_):
    probabilities = np.hstack([rng.dirichlet(np.ones(size), 2) for size in (2, 3, 2)])
    family = LatentClassFamily(2, Variables.categories((2, 3, 2)))
    return Model(family, family.join([0.3, 0.7], probabilities))


OTHERS = {
    "restricted-spin": (restricted, SpinUnits(3), SpinUnits(2)),
    "restricted-mixed": (restricted, CategoricalUnits((2, 3)), BinaryUnits(2)),
    "deep": (deep, BinaryUnits(3), BinaryUnits(2), BinaryUnits(2)),
    "belief-network": (belief, SpinUnits(3), BinaryUnits(2), BinaryUnits(2)),
    "belief-network-of-categories": (belief, BinaryUnits(2), CategoricalUnits((2, 3)), SpinUnits(1)),
    "classes": (classes,),
}
PLAIN = {f"{kind}-{name_of(variables)}": (kind, variables) for kind, variables in models_with_variables(4)}


@pytest.fixture(params=[*PLAIN, *OTHERS])
def case(request, rng):
    """A model, the distribution of its columns by its own log-weights, and its queries."""
    if request.param in PLAIN:
        name, variables = PLAIN[request.param]
        model = random_model_of(name, GRAPH, rng, variables, scale=0.8)
    else:
        kind, *layers = OTHERS[request.param]
        model = kind(rng, *layers)
    return model, column_law(model), Queries(answers_about(model).joint(), rng)


def column_law(model):
    """The probabilities of all rows of the columns, as a table."""
    if isinstance(model.family, MixtureFamily):
        columns = model.family.columns
        return np.exp(model.family.log_evidence(model.theta, all_states(columns))).reshape(columns.sizes)
    if isinstance(model.family, Layered):
        columns = model.visible.variables
        log_weights = model.log_evidence(model.visible.encode(all_states(columns)))
        return np.exp(log_weights - np.logaddexp.reduce(log_weights)).reshape(columns.sizes)
    return exact_law(model)[1].reshape(model.variables.sizes)


def entropy(p):
    p = p[p > 0]
    return -(p * np.log(p)).sum()


def test_marginals_and_conditionals(case):
    _, law, queries = case
    n = law.ndim
    known = queries.probabilities([n - 1, 0], {}, {})
    found, errors = known.value, known.monte_carlo_error
    others = tuple(range(1, n - 1))
    np.testing.assert_allclose(found, law.sum(axis=others).T, atol=1e-12)
    assert not errors.any()
    found = queries.probabilities([0], {}, {n - 1: 1}).value
    expected = law[..., 1].sum(axis=tuple(range(1, n - 1)))
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)
    if n > 2:
        found = queries.probabilities([1], {0: 1}, {n - 1: 0}).value
        expected = law[1, ..., 0].sum(axis=tuple(range(1, n - 2)))
        np.testing.assert_allclose(found, expected / law[..., 0].sum(), atol=1e-12)


def test_entropies_and_information(case):
    _, law, queries = case
    n = law.ndim
    assert queries.information([(1, range(n))], {}).value == pytest.approx(entropy(law), abs=1e-11)
    one, two = law.sum(axis=tuple(range(1, n))), law.sum(axis=tuple(range(n - 1)))
    both = law.sum(axis=tuple(range(1, n - 1)))
    expected = entropy(one) + entropy(two) - entropy(both)
    for a, b in ((0, n - 1), (n - 1, 0)):
        terms = [(1, [a]), (1, [b]), (-1, [a, b])]
        assert queries.information(terms, {}).value == pytest.approx(expected, abs=1e-11)
    given = law[1] / law[1].sum()
    assert queries.information([(1, range(1, n))], {0: 1}).value == pytest.approx(entropy(given), abs=1e-11)


def test_many_fixed_values_weigh_what_they_weigh(case, monkeypatch):
    """Where a table of fixed columns is too large, their probability is a ratio of sums."""
    _, law, queries = case
    n = law.ndim
    monkeypatch.setattr("gibbsian.answers.queries.MAX_CELLS", 4.0)
    found = queries.probabilities([0], dict.fromkeys(range(1, n), 1), {}).value
    np.testing.assert_allclose(found, law[(slice(None), *[1] * (n - 1))], atol=1e-12)


def test_divergences(case, rng):
    model, law, queries = case
    mixed = isinstance(model.family, MixtureFamily)
    other = classes(rng) if mixed else model.replace(model.theta + rng.normal(scale=0.3, size=model.theta.size))
    q = column_law(other)
    numbers = [np.arange(size) for size in law.shape]
    found = queries.divergence(answers_about(other).joint(), numbers)
    middle = (law + q) / 2
    expected = [(a * np.log(a / b)).sum() for a, b in ((law, q), (q, law), (law, middle), (q, middle))]
    assert [number.value for number in found[:2]] == pytest.approx(expected[:2], abs=1e-11)
    assert found.jensen_shannon.value == pytest.approx((expected[2] + expected[3]) / 2, abs=1e-11)


def test_sampled_answers_come_near_the_exact_ones(case, rng):
    _, law, queries = case
    sampled = Queries(queries.model, rng, "gibbs", 4000)
    known = sampled.probabilities([0], {}, {law.ndim - 1: 1})
    found, errors = known.value, known.monte_carlo_error
    exact = queries.probabilities([0], {}, {law.ndim - 1: 1}).value
    assert (np.abs(found - exact) < 5 * errors).all()
    found = sampled.information([(1, range(law.ndim))], {})
    assert abs(found.value - entropy(law)) < 5 * found.stderr
    assert found.stderr > 0


# -- estimators -------------------------------------------------------------------------------------------------------
def law_of(machine):
    """All rows of four columns with their probabilities; a deep machine's scores are bounds, so summed instead."""
    rows = np.array(list(itertools.product(*machine._column_labels)))
    scores = machine.score_samples(rows)
    if machine.scores_are_bounds:
        scores = machine.log_likelihood(rows, exact=True).per_row()
    return rows, np.exp(scores)


@pytest.mark.parametrize("name", DISCRETE)
def test_estimators_answer_in_names_and_labels(name, tmp_path):
    machine = small(name).fit(table(name))
    rows, p = law_of(machine)
    assert p.sum() == pytest.approx(1.0)
    low, high = machine._column_labels[0][0], machine._column_labels[0][-1]
    found = machine.query(f"P(x0={high}, x1 | x2={low})").probability
    at = rows[:, 2] == low
    for label, probability in found.items():
        expected = p[(rows[:, 0] == high) & (rows[:, 1] == label) & at].sum() / p[at].sum()
        assert probability == pytest.approx(expected, abs=1e-10)
    listed = machine.query("P(x3 | x1)").probability
    assert listed.unstack("x1").sum().to_numpy() == pytest.approx(np.ones(len(machine._column_labels[1])))
    np.testing.assert_allclose(machine.marginal("x3").probability, machine.query("P(x3)").probability)
    conditioned = machine.conditional({"x2": low}, ["x0", "x1"]).probability
    assert conditioned[high, high] == pytest.approx(machine.query(f"P(x0={high}, x1={high} | x2={low})").probability[0])
    assert machine.entropy().value == pytest.approx(entropy(p), abs=1e-10)
    chain = machine.query("H(x0 | x1, x2, x3)").entropy[0] + machine.entropy(["x1", "x2", "x3"]).value
    assert chain == pytest.approx(machine.entropy().value, abs=1e-10)
    pairs = ("x0", ["x1", "x2"]), (["x2", "x1"], "x0")
    one, other = (machine.mutual_information(*pair).value for pair in pairs)
    assert one == pytest.approx(other, abs=1e-12)
    parts = machine.query("I(x0; x1)").mutual_information[0] + machine.query("I(x0; x2 | x1)").mutual_information[0]
    assert one == pytest.approx(parts, abs=1e-10)
    assert list(map(float, machine.divergence(machine))) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


@pytest.mark.parametrize("name", [name for name in ESTIMATED if name not in DISCRETE])
def test_numbers_are_refused_in_one_sentence(name):
    machine = small(name).fit(table(name))
    for ask in (lambda: machine.query("P(x0)"), machine.entropy, lambda: machine.divergence(machine)):
        with pytest.raises(ArgumentError, match="real numbers have densities and no probabilities"):
            ask()


@pytest.mark.parametrize("name", DISCRETE)
def test_columns_given_what_is_hidden(name):
    """P(v | h) is P(v, h) / P(h), and averaged over h it is P(v)."""
    machine = small(name).fit(table(name))
    if not machine.model_.n_hidden:
        with pytest.raises(ArgumentError, match="no hidden units"):
            machine.visible_given_hidden([[0]])
        return
    hidden = machine._answers.hidden_variables(machine.names_)
    states = np.array(list(itertools.product(*hidden.values())))
    found, errors = machine.visible_given_hidden(states, return_error=True)
    assert not errors.any()
    upper = found if found.ndim == 2 else found[..., -1]
    high, total = machine._column_labels[3][-1], 0.0
    for state, probability in zip(states, upper[:, 3], strict=True):
        evidence = ", ".join(f"{name}={value}" for name, value in zip(hidden, state, strict=True))
        assert machine.query(f"P(x3={high} | {evidence})").probability[0] == pytest.approx(probability, abs=1e-10)
        total += probability * machine.query(f"P({evidence})").probability[0]
    assert machine.query(f"P(x3={high})").probability[0] == pytest.approx(total, abs=1e-10)
    drawn = machine.sample(5, return_hidden=True, random_state=0)[1]
    assert machine.visible_given_hidden(drawn).shape[:2] == (5, 4)
    with pytest.raises(ArgumentError, match="column 0 of hidden holds 7"):
        machine.visible_given_hidden(np.full(states.shape, 7))
    with pytest.raises(ArgumentError, match=r"hidden has shape \(1, 9\)"):
        machine.visible_given_hidden(np.ones((1, 9)))
