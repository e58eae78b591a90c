"""Upper bounds on log-weights: never below the largest, equal to it on trees and for the ferromagnet."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.inference.upper_bounds import eigenvalue_bound, factor_bound, largest_log_weight_bound
from gibbsian.models.factors import Factor, FactorGraph
from systems import all_states, models_with_variables, name_of, random_model, random_model_of


def factors_of(model):
    return model.family.factors(model.theta)


def spin_bound(model):
    return eigenvalue_bound(model.family.ising(model.theta))


@pytest.mark.parametrize("case", models_with_variables(6), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def test_is_never_below_the_largest_and_within_the_sum_of_the_factors(case, rng):
    name, variables = case
    for _ in range(2):
        model = random_model_of(name, gb.graphs.complete(6), rng, variables, scale=1.0)
        largest = model.log_weights(all_states(variables)).max()
        bound = largest_log_weight_bound(model)
        assert largest - 1e-9 <= bound <= sum(factor.table.max() for factor in factors_of(model).factors) + 1e-9


@pytest.mark.parametrize("bound", [lambda model: factor_bound(factors_of(model)), spin_bound])
def test_both_bounds_hold_by_themselves(bound, rng):
    for _ in range(5):
        model = random_model(gb.graphs.complete(8), rng, scale=1.0)
        assert bound(model) >= model.log_weights(all_states(model.variables)).max() - 1e-9


def test_is_exact_on_trees(rng):
    for _ in range(5):
        tree = gb.graphs.from_edges([(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)], 6)
        model = random_model(tree, rng, scale=1.0)
        assert factor_bound(factors_of(model)) == pytest.approx(
            model.log_weights(all_states(model.variables)).max(), abs=1e-2
        )


def test_the_eigenvalue_bound_is_exact_where_all_couplings_are_equal():
    model = gb.PairwiseFamily.model(gb.graphs.complete(10), None, np.full(45, 0.3))
    assert spin_bound(model) == pytest.approx(45 * 0.3, abs=0.02)


def test_models_without_interactions_and_without_factors():
    assert factor_bound(FactorGraph(np.array([2, 3]), ())) == 0.0
    alone = FactorGraph(np.array([2, 3]), (Factor((0,), np.array([1.0, 2.0])), Factor((1,), np.array([0.0, 5.0, 1.0]))))
    assert factor_bound(alone) == 7.0
