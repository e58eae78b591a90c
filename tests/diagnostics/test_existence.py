"""Existence of the maximum, against cases known by hand and against the objective itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import gibbsian as gb
from gibbsian.data.pairs import count_pairs
from gibbsian.diagnostics.existence import maximum_exists
from gibbsian.domain import BINARY, SPIN, Categories, CategoryCoding
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.models import MarkovRandomField
from systems import costs_of

CUBE = np.array(list(itertools.product([-1, 1], repeat=3)))
OBJECTIVES = ("likelihood", "pseudolikelihood")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_all_states_seen(objective):
    model = gb.PairwiseModel.zeros(gb.graphs.complete(3))
    assert maximum_exists(model, gb.Dataset.read(CUBE), objective) is True


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("domain", [SPIN, BINARY])
def test_full_pair_tables_are_not_enough_on_a_triangle(objective, domain):
    """Without (+++) and (---), x1 x2 + x1 x3 + x2 x3 = -1 on all rows: a face of the polytope."""
    data = gb.Dataset.read(CUBE[np.abs(CUBE.sum(axis=1)) == 1]).convert(domain.name)
    graph = gb.graphs.complete(3)
    assert count_pairs(data, graph.edges).observed.all()
    assert maximum_exists(gb.PairwiseModel.zeros(graph, domain), data, objective) is False
    chain = gb.PairwiseModel.zeros(gb.graphs.grid(1, 3), domain)
    assert maximum_exists(chain, data, objective) is True


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_constant_column_and_rows_of_weight_zero(objective):
    model = gb.PairwiseModel.zeros(gb.graphs.complete(3))
    kept = CUBE[:, 0] == 1
    assert maximum_exists(model, gb.Dataset.read(CUBE[kept], coding="spin"), objective) is False
    assert maximum_exists(model, gb.Dataset.read(CUBE, sample_weight=kept), objective) is False


def test_too_large_to_say():
    model = gb.PairwiseModel.zeros(gb.graphs.complete(30))
    data = gb.Dataset.read(np.where(np.eye(30) == 1, 1, -1))
    assert maximum_exists(model, data, "likelihood") is None
    assert maximum_exists(model, data, "pseudolikelihood", max_size=100) is None
    assert maximum_exists(model, data, "pseudolikelihood") is False


def test_refuses_what_it_cannot_judge():
    model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    data = gb.Dataset.read([[-1, 1], [1, 1]])
    with pytest.raises(ArgumentError, match="objective='posterior' is not known"):
        maximum_exists(model, data, "posterior")
    with pytest.raises(ArgumentError, match="the data is binary but the model is spin"):
        maximum_exists(model, data.convert("binary"))
    with pytest.raises(MissingValuesError, match="maximum_exists needs complete rows"):
        maximum_exists(model, gb.Dataset.read([[-1, 1], [1, None]]))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("domain", [SPIN, BINARY])
def test_statistics_have_the_models_layout(bias, domain):
    graph = gb.graphs.grid(2, 2)
    theta = np.random.default_rng(1).normal(size=4 * bias + 4)
    model = gb.PairwiseModel(graph, theta, domain, bias=bias)
    x = domain.low + domain.gap * np.array(list(itertools.product([0, 1], repeat=4)))
    np.testing.assert_allclose(-model.statistics(x) @ theta, model.energy(x), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=10, unique=True), st.booleans(), st.sampled_from([SPIN, BINARY])
)
def test_agrees_with_where_the_optimiser_goes(rows, bias, domain):
    """Weakening an L2 penalty a thousandfold moves the optimum much further exactly where nothing else holds it."""
    data = gb.Dataset.read(CUBE[rows], coding="spin").convert(domain.name)
    model = gb.PairwiseModel.zeros(gb.graphs.complete(3), domain, bias=bias)

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


def rows_of(states, domain):
    """Distinct states of categories as data."""
    coding = CategoryCoding.of_labels([tuple(range(size)) for size in domain.sizes])
    names = tuple(f"x{i}" for i in range(states.shape[1]))
    return gb.Dataset(states, np.ones(len(states)), None, coding, names, np.arange(len(states)))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_pair_of_categories_that_never_meets_has_no_maximum(objective):
    """Tables are over-parameterised, and still the maximum exists exactly when every entry of a table is seen."""
    domain = Categories((3, 2, 2))
    model = MarkovRandomField.on_cliques([(0, 1), (1, 2)], 3, domain)
    states = np.array(list(itertools.product(range(3), range(2), range(2))), dtype=np.int8)
    assert maximum_exists(model, rows_of(states, domain), objective)
    seen = states[~((states[:, 0] == 2) & (states[:, 1] == 1))]
    assert not maximum_exists(model, rows_of(seen, domain), objective)
