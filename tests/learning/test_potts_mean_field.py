"""Mean field for many values: the two-valued formula is its special case."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError, DataError
from gibbsian.learning import as_learner, run
from gibbsian.learning.potts_mean_field import inverted
from systems import SPINS, products_of_order, random_model, sampled_data


def solve(model, data, rng, **settings):
    return run(as_learner("mean-field", **settings), model, data, rng).model


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_two_values_give_the_spin_formula(rng, l2):
    graph = gb.graphs.grid(2, 3)
    data = sampled_data(random_model(gb.graphs.complete(6), rng, scale=0.3), 500, rng)
    spins = solve(gb.Model.zeros(gb.PairwiseFamily(graph)), data, rng, l2=l2)
    tables = solve(gb.Model.zeros(gb.TablesFamily.potts(graph, SPINS)), data, rng, l2=l2).parts.tables
    np.testing.assert_allclose([table[1, 1] for table in tables[6:]], spins.parts.couplings, atol=1e-10)
    np.testing.assert_allclose([table[1] for table in tables[:6]], spins.parts.biases, atol=1e-10)


def test_weak_couplings_are_found_for_mixed_cardinalities(rng):
    zeros = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(3), gb.Variables.categories((2, 3, 4))))
    truth = zeros.replace(rng.normal(scale=0.1, size=zeros.theta.size)).canonical()
    sampled = sampled_data(truth, 200_000, rng)
    found = solve(zeros, sampled, rng)
    assert np.abs(found.theta - truth.theta).max() < 0.05


def test_rows_that_hide_a_column_count_for_the_others_only(rng):
    """All rows once more without the first column: no frequency of a pair that is shown changes, and so no answer."""
    codes = rng.integers(0, (2, 3, 4), (300, 3))
    rows = np.vstack([codes, codes]).astype(float)
    rows[300:, 0] = np.nan
    coding = gb.domain.CategoryCoding.of_labels([range(q) for q in (2, 3, 4)])
    whole, twice = (gb.Dataset.read(table, coding=coding) for table in (codes, rows))
    zeros = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(3), whole.variables))
    assert twice.has_missing
    np.testing.assert_allclose(solve(zeros, twice, rng).theta, solve(zeros, whole, rng).theta, atol=1e-10)


def test_unseen_value_is_named(rng):
    data = gb.Dataset.read([[0, 0], [0, 1], [1, 1]], coding=gb.data.Labels([0, 1, 2]))
    zeros = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(2), data.variables))
    with pytest.raises(DataError, match="'x0' has a value that never occurs"):
        solve(zeros, data, rng)
    assert np.isfinite(solve(zeros, data, rng, l2=1.0).theta).all()


def test_too_few_rows_are_refused_with_the_remedy(rng):
    data = gb.Dataset.read([[0, 0, 1], [1, 1, 0], [0, 1, 1]], coding="categorical")
    with pytest.raises(DataError, match="l2=1"):
        solve(gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(3), data.variables)), data, rng)


def test_other_formulas_and_models_are_refused(rng):
    data = gb.Dataset.read([[0, 0], [0, 1], [1, 1]])
    with pytest.raises(ArgumentError, match="approximation='tap' has no formula for a TablesFamily: use 'naive'"):
        solve(
            gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(2), data.variables)), data, rng, approximation="tap"
        )
    with pytest.raises(ArgumentError, match="no formula for a ProductsFamily"):
        solve(gb.Model.zeros(products_of_order(2, 2, data.variables)), data, rng)


def test_the_first_column_that_others_determine_is_named():
    near, far = 1.0 - 1e-12, 0.9
    matrix = np.array([[1.0, near, 0.5], [near, 1.0, -0.5], [0.5, -0.5, 1.0]])  # all but equal, then impossible
    assert inverted(matrix)[1] == 1
    assert inverted(matrix[::2, ::2])[1] == -1
    assert inverted(np.array([[1.0, 1.0 - 1e-8], [1.0 - 1e-8, 1.0]]))[1] == -1
    np.testing.assert_allclose(inverted(np.array([[1, far], [far, 1]]))[0], np.linalg.inv([[1, far], [far, 1]]))
    assert inverted(np.array([[1.0, 1.1], [1.1, 1.0]]))[1] == 1
