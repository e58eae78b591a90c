"""The data's moments and their standard errors, by hand."""

import dataclasses

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.diagnostics.moments import data_moments, moment_errors
from systems import all_states, dataset_of, models_with_variables, name_of, random_model_of

# five variables with a triangle and a pendant, so that models of higher order have a term of three
GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)


@pytest.fixture(params=models_with_variables(5), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def model(request, rng):
    kind, variables = request.param
    return random_model_of(kind, GRAPH, rng, variables, scale=1.0)


@pytest.mark.parametrize(("coding", "low"), [("spin", -1), ("binary", 0)])
def test_errors_are_those_of_two_valued_statistics(coding, low):
    """A mean and a product of two values spread as a coin does: the root of ``(high - m)(m - low) / N``."""
    data = gb.Dataset.read(rows := np.array([[1, 1]] * 5 + [[1, low]] * 3 + [[low, low]] * 2), coding=coding)
    errors = moment_errors(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), data.variables)), data)
    share = np.array([0.8, 0.5, (rows.prod(axis=1) == 1).mean()])
    np.testing.assert_allclose(errors, (1 - low) * np.sqrt(share * (1 - share) / 10), atol=1e-14)


def test_moments_of_what_rows_show_are_those_of_the_rows_that_show_it(model, rng):
    states = all_states(model.variables)
    weights, shown = rng.random(len(states)), rng.random(len(states)) < 0.4
    missing = np.repeat(~shown[:, None], model.n_variables, axis=1)
    data = dataset_of(states, model.variables, sample_weight=weights)
    found = data_moments(model, dataclasses.replace(data, missing=missing))
    np.testing.assert_allclose(found.count, weights[shown].sum())
    np.testing.assert_allclose(found.mean, model.family.mean_statistics(states[shown], weights[shown]), atol=1e-12)


def test_rows_that_give_the_same_variables_share_a_family(model):
    first, second = (model.family.given([1, 4], codes).family for codes in ([0, 1], [1, 0]))
    # functions of given values are those of one row
    assert (first is second) != isinstance(model.family, gb.PotentialsFamily)
