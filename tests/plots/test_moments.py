"""Moments of data and model."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

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
        model = gb.Model.zeros(gb.PairwiseFamily(graph, gb.Variables.binary(3), bias))
        np.testing.assert_allclose(data_moments(model, data).mean, moments)


def test_moments_of_a_maximum_likelihood_fit_lie_on_the_line(votes):
    items = gb.Dataset.read(votes.decode(votes.states)[votes.row_of][:, :4])
    ax = moment_scatter(gb.BoltzmannMachine(learner="mle").fit(items), items)
    points = [part.get_offsets() for part in ax.collections if isinstance(part, PathCollection)]
    bars = next(part for part in ax.collections if isinstance(part, LineCollection)).get_segments()[0]
    share = points[0][0, 0]
    assert np.ptp(bars[:, 0]) == pytest.approx(4 * np.sqrt(share * (1 - share) / items.n_rows))
    assert [len(part) for part in points] == [4, 6]
    for part in points:
        np.testing.assert_allclose(part[:, 0], part[:, 1], atol=1e-5)


def test_moments_say_when_cells_are_missing(machine):
    assert "present" in moment_scatter(machine, gb.datasets.load_house_votes()).get_xlabel()


def test_moment_scatter_refuses_another_coding(small):
    with pytest.raises(gb.errors.CodingError, match="spin"):
        moment_scatter(small, [[0, 1, 1], [1, 0, 0]])


def test_moments_of_tables_too_but_not_of_hidden_units(rbm, rows):
    machine = gb.PottsMachine(l2=0.1).fit(rows[:, :3].astype(str))
    labels = [text.get_text() for text in moment_scatter(machine, rows[:, :3].astype(str)).get_legend().get_texts()]
    assert labels == ["values", "pairs"]
    with pytest.raises(gb.errors.ArgumentError, match="hidden units have no moments"):
        moment_scatter(rbm, rows)
