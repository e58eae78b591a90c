"""Existence of the maximum, against cases known by hand and against the objective itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import gibbsian as gb
from gibbsian import Model, PairwiseFamily, TablesFamily, Variables
from gibbsian.data.pairs import count_pairs
from gibbsian.diagnostics.existence import maximum_exists
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.models.scopes import Scopes
from systems import BINARY, SPINS, all_states, costs_of, dataset_of, name_of

CUBE = np.array(list(itertools.product([-1, 1], repeat=3)))
OBJECTIVES = ("likelihood", "pseudolikelihood")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_all_states_seen(objective):
    model = Model.zeros(PairwiseFamily(gb.graphs.complete(3)))
    assert maximum_exists(model, gb.Dataset.read(CUBE), objective) is True


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_full_pair_tables_are_not_enough_on_a_triangle(objective, scores):
    """Without (+++) and (---), x1 x2 + x1 x3 + x2 x3 = -1 on all rows: a face of the polytope."""
    data = gb.Dataset.read(CUBE[np.abs(CUBE.sum(axis=1)) == 1]).convert(name_of(scores(3)))
    graph = gb.graphs.complete(3)
    assert count_pairs(data, graph.edges).observed.all()
    assert maximum_exists(Model.zeros(PairwiseFamily(graph, scores)), data, objective) is False
    chain = Model.zeros(PairwiseFamily(gb.graphs.grid(1, 3), scores))
    assert maximum_exists(chain, data, objective) is True


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_constant_column_and_rows_of_weight_zero(objective):
    model = Model.zeros(PairwiseFamily(gb.graphs.complete(3)))
    kept = CUBE[:, 0] == 1
    assert maximum_exists(model, gb.Dataset.read(CUBE[kept], coding="spin"), objective) is False
    assert maximum_exists(model, gb.Dataset.read(CUBE, sample_weight=kept), objective) is False


def test_too_large_to_say():
    model = Model.zeros(PairwiseFamily(gb.graphs.complete(30)))
    data = gb.Dataset.read(np.where(np.eye(30) == 1, 1, -1))
    assert maximum_exists(model, data, "likelihood") is None
    assert maximum_exists(model, data, "pseudolikelihood", max_size=100) is None
    assert maximum_exists(model, data, "pseudolikelihood") is False


def test_refuses_what_it_cannot_judge():
    model = Model.zeros(PairwiseFamily(gb.graphs.complete(2)))
    data = gb.Dataset.read([[-1, 1], [1, 1]])
    with pytest.raises(ArgumentError, match="objective='posterior' is not known"):
        maximum_exists(model, data, "posterior")
    with pytest.raises(ArgumentError, match="the model has other variables than the data"):
        maximum_exists(model, data.convert("binary"))
    with pytest.raises(MissingValuesError, match="maximum_exists needs complete rows"):
        maximum_exists(model, gb.Dataset.read([[-1, 1], [1, None]]))


@pytest.mark.parametrize("bias", [True, False])
def test_statistics_have_the_models_layout(bias, scores):
    theta = np.random.default_rng(1).normal(size=4 * bias + 4)
    model = Model(PairwiseFamily(gb.graphs.grid(2, 2), scores, bias), theta)
    x = all_states(model.variables)
    np.testing.assert_allclose(-model.family.statistics(x) @ theta, model.energy(x), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=10, unique=True), st.booleans(), st.sampled_from([SPINS, BINARY])
)
def test_agrees_with_where_the_optimiser_goes(rows, bias, variables):
    """Weakening an L2 penalty a thousandfold moves the optimum much further exactly where nothing else holds it."""
    data = gb.Dataset.read(CUBE[rows], coding="spin").convert(name_of(variables(3)))
    model = Model.zeros(PairwiseFamily(gb.graphs.complete(3), variables, bias))

    basis = np.eye(model.theta.size)
    slopes = np.column_stack([costs_of(model.replace(unit), data.states).ravel() for unit in basis])

    def largest_parameter(l2):
        theta = np.zeros(len(basis))
        for _ in range(60):  # damped Newton steps on a smooth, strictly convex function
            below = expit(-slopes @ theta)
            slope = -slopes.T @ below + 2 * l2 * theta
            curvature = (slopes * (below * (1 - below))[:, None]).T @ slopes + 2 * l2 * basis
            step = np.linalg.solve(curvature, slope)
            theta -= step / max(1.0, np.abs(step).max())
        assert np.abs(slope).max() < 1e-9
        return np.abs(theta).max()

    runs_away = largest_parameter(1e-6) - largest_parameter(1e-3) > 0.3
    assert maximum_exists(model, data, "pseudolikelihood") == (not runs_away)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_pair_of_categories_that_never_meets_has_no_maximum(objective):
    """Tables are over-parameterised, and still the maximum exists exactly when every entry of a table is seen."""
    variables = Variables.categories((3, 2, 2))
    model, states = Model.zeros(TablesFamily(Scopes([(0, 1), (1, 2)], 3), variables)), all_states(variables)
    assert maximum_exists(model, dataset_of(states, variables), objective)
    seen = states[~((states[:, 0] == 2) & (states[:, 1] == 1))]
    assert not maximum_exists(model, dataset_of(seen, variables), objective)
