"""The Markov random field of tables: gauge, errors, agreement with models that are special cases of it."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.domain import BINARY, SPIN, Categories
from gibbsian.errors import ArgumentError, CodingError, TooExpensiveError
from gibbsian.models import HigherOrderModel, MarkovRandomField
from gibbsian.objectives import Pseudolikelihood
from systems import all_states, exact_law

MIXED = Categories((2, 3, 4))


def random_field(rng, scopes, domain=MIXED):
    zeros = MarkovRandomField.on_cliques(scopes, 3, domain)
    return zeros.replace(rng.normal(size=zeros.theta.size))


def test_energy_is_the_sum_of_the_entries(rng):
    model = random_field(rng, [(0,), (1, 2), (0, 1, 2)])
    for state in all_states(3, MIXED):
        a, b, c = state
        entries = model.tables[0][a] + model.tables[1][b, c] + model.tables[2][a, b, c]
        assert model.energy(state[None, :])[0] == pytest.approx(-entries, abs=1e-12)


def test_build_takes_variables_in_any_order(rng):
    table = rng.normal(size=(4, 2))
    model = MarkovRandomField.build({(2, 0): table}, 3, MIXED)
    assert model.scopes == ((0, 2),)
    assert np.array_equal(model.tables[0], table.T)


@pytest.mark.parametrize("domain", [SPIN, BINARY, MIXED], ids=lambda domain: domain.name)
def test_zero_sum_is_the_same_law_with_tables_that_sum_to_zero(domain, rng):
    model = random_field(rng, [(0, 1, 2), (1,), (1, 2)], domain)
    gauged = model.zero_sum()
    assert gauged.scopes == ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
    np.testing.assert_allclose(exact_law(gauged)[1], exact_law(model)[1], atol=1e-14)
    for table in gauged.tables:
        for axis in range(table.ndim):
            np.testing.assert_allclose(table.sum(axis=axis), 0.0, atol=1e-12)
    np.testing.assert_allclose(gauged.zero_sum().theta, gauged.theta, atol=1e-12)


def test_zero_sum_is_one_form_for_one_law(rng):
    """Numbers moved between tables change the parameters but not the distribution, nor its zero-sum form."""
    model = random_field(rng, [(0,), (1,), (0, 1)])
    moved = [table.copy() for table in model.tables]
    row = rng.normal(size=3)
    moved[2] += row[None, :] + 5.0
    moved[1] -= row
    other = model.replace(np.concatenate([table.ravel() for table in moved]))
    np.testing.assert_allclose(exact_law(other)[1], exact_law(model)[1], atol=1e-14)
    np.testing.assert_allclose(other.zero_sum().theta, model.zero_sum().theta, atol=1e-12)


def test_spin_tables_in_the_zero_sum_gauge_are_products(rng):
    """For -1/+1 the zero-sum table of a clique is a weight times the product of its variables."""
    weights = {(0,): 0.3, (0, 1): -0.6, (0, 1, 2): 0.9}
    machine = HigherOrderModel.build(weights, 3, SPIN)
    tables = {factor.nodes: factor.table for factor in machine.factors().factors}
    field = MarkovRandomField.build(tables, 3, SPIN)
    gauged = dict(zip(field.zero_sum().scopes, field.zero_sum().tables, strict=True))
    for clique, weight in weights.items():
        corner = gauged[clique][(1,) * len(clique)]
        assert corner == pytest.approx(weight, abs=1e-12)


def test_a_fit_from_zeros_stays_out_of_the_flat_directions(rng):
    """Gradients have no part along the directions that change nothing, so a fit's tables are balanced."""
    truth = random_field(rng, [(0,), (1,), (2,), (0, 1), (1, 2)])
    states, probabilities, _ = exact_law(truth)
    data = gb.Dataset.read(states, coding="categorical", sample_weight=probabilities)
    start = truth.replace(np.zeros_like(truth.theta))
    result = gb.learners.run(gb.learners.ObjectiveLearner(Pseudolikelihood()), start, data, rng, tol=1e-10)
    np.testing.assert_allclose(exact_law(result.model)[1], probabilities, atol=1e-7)
    for table in result.model.tables:
        assert table.sum() == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(result.model.zero_sum().theta, truth.zero_sum().theta, atol=1e-6)


def test_variables_without_a_table_are_uniform():
    model = MarkovRandomField.build({(1,): [0.0, 1.0, 0.0]}, 3, MIXED)
    states, probabilities, _ = exact_law(model)
    np.testing.assert_allclose([probabilities[states[:, 0] == a].sum() for a in (0, 1)], 0.5)
    chains, _ = gb.samplers.Gibbs().step(model, gb.samplers.Gibbs().init(model, 50, np.random.default_rng(0)), 3)
    assert set(chains.states[:, 0]) == {0, 1}


def test_bad_tables_are_named():
    with pytest.raises(ArgumentError, match=r"the table of \(0, 1\) has shape \(3, 2\), not \(2, 3\)"):
        MarkovRandomField.build({(0, 1): np.zeros((3, 2))}, 3, MIXED)
    with pytest.raises(ArgumentError, match="same variables twice"):
        MarkovRandomField.build({(0, 1): np.zeros((2, 3)), (1, 0): np.zeros((3, 2))}, 3, MIXED)
    with pytest.raises(ArgumentError, match="1 tables with 6 entries"):
        MarkovRandomField(3, [(0, 1)], np.zeros(5), MIXED)
    with pytest.raises(CodingError, match="3 variables, not 4"):
        MarkovRandomField.on_cliques([(0,)], 4, MIXED)


def test_tables_beyond_the_memory_are_refused(monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.001")
    with pytest.raises(TooExpensiveError, match="use smaller cliques"):
        MarkovRandomField.on_cliques([tuple(range(20))], 20)


def test_conditioning_on_everything_is_refused(rng):
    with pytest.raises(ArgumentError, match="leave at least one free"):
        random_field(rng, [(0,)]).given([0, 1, 2], [0, 0, 0])
