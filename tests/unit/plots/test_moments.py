"""Moments of data and model."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.diagnostics import data_moments
from gibbsian.plots import moment_scatter


def test_moments_of_data_with_holes_are_taken_over_present_cells():
    nan = np.nan
    rows = np.array([[1, 0, nan], [1, 1, 1], [0, nan, 1], [nan, 1, 0]])
    data = gb.Dataset.read(rows, sample_weight=[1, 2, 3, 4])
    weights = np.array([1.0, 2, 3, 4])
    edges = np.array([[0, 1], [0, 2], [1, 2]])
    expected = [np.ma.average(np.ma.masked_invalid(rows[:, i]), weights=weights) for i in range(3)]
    expected += [np.ma.average(np.ma.masked_invalid(rows[:, i] * rows[:, j]), weights=weights) for i, j in edges]
    graph = gb.graphs.from_edges(edges, 3)
    for bias, moments in ((True, expected), (False, expected[3:])):
        model = gb.PairwiseModel.zeros(graph, gb.domain.BINARY, bias=bias)
        np.testing.assert_allclose(data_moments(model, data).mean, moments)


def test_moments_of_a_maximum_likelihood_fit_lie_on_the_line(votes):
    items = gb.Dataset.read(votes.decode(votes.states)[votes.row_of][:, :4])
    ax = moment_scatter(gb.BoltzmannMachine(learner="mle").fit(items), items)
    points = [collection.get_offsets() for collection in ax.collections]
    assert [len(part) for part in points] == [4, 6]
    for part in points:
        np.testing.assert_allclose(part[:, 0], part[:, 1], atol=1e-5)


def test_moments_say_when_cells_are_missing(machine):
    assert "present" in moment_scatter(machine, gb.datasets.load_house_votes()).get_xlabel()


def test_moment_scatter_refuses_another_coding(small):
    with pytest.raises(gb.errors.CodingError, match="spin"):
        moment_scatter(small, [[0, 1, 1], [1, 0, 0]])
