"""Missing cells summed out with cut sets: every answer against the sum over all completions."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.inference import cut_sets
from gibbsian.inference.cut_sets import split_by_cut
from gibbsian.inference.posterior import EnumeratedRows, OneByOne, log_evidence, split_rows
from holes import holed
from systems import dataset_of, name_of, random_model, take

RESTRICTED = [(i, j) for i in range(5) for j in range(5, 9)]
GRAPHS = {
    "complete": gb.graphs.complete(9),
    "restricted": gb.graphs.from_edges(RESTRICTED, 9),
    "semi-restricted": gb.graphs.from_edges(RESTRICTED + [(i, j) for i in range(5) for j in range(i)], 9),
    "path": gb.graphs.grid(1, 9),
    "grid": gb.graphs.grid(3, 3),
    "wide-grid": gb.graphs.grid(5, 14),
    "empty": gb.graphs.from_edges([], 9),
}


@pytest.fixture(params=GRAPHS)
def system(request, scores, rng):
    """A model at T = 1.4, and rows of which four columns are hidden and a fifth of the other cells missing."""
    graph = GRAPHS[request.param]
    model = random_model(graph, rng, scores, scale=0.7)
    states = rng.integers(0, 2, (40, graph.n_nodes)).astype(np.int8)
    share, hidden = (0.1, range(3)) if graph.n_nodes > 9 else (0.2, range(5, 9))
    return model, holed(dataset_of(states, model.variables), rng, share, hidden)


def expectation(model, data):
    return take("exact", model, data)


def row_by_row(model, data):
    """Exact inference on the missing cells of each row."""
    shares = data.weights / data.total_weight
    return OneByOne(model.family, data.states, data.missing).expect(model.theta, shares)


def test_evidence_statistics_and_probabilities(system):
    model, data = system
    evidence, statistics = row_by_row(model, data)
    estimate = expectation(model, data)
    np.testing.assert_allclose(log_evidence(model, data), evidence, atol=1e-11)
    np.testing.assert_allclose(estimate.value, statistics, atol=1e-12)
    assert estimate.parts["log_partition"].value == pytest.approx(np.average(evidence, weights=data.weights), abs=1e-11)
    light, cuts, _ = split_rows(model.family, data.states, data.missing)
    if model.n_variables < 10:
        listed = EnumeratedRows(model.family, data.states[light], data.missing[light])
        found, expected = (rows.cell_probabilities(model.theta) for rows in (cuts, listed))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_what_is_left_to_single_rows_makes_no_difference(system, monkeypatch):
    model, data = system
    together = expectation(model, data)
    monkeypatch.setattr(cut_sets, "LARGEST_CUT", 1)
    one_by_one = expectation(model, data)
    np.testing.assert_allclose(together.value, one_by_one.value, atol=1e-12)
    assert together.parts["log_partition"].value == pytest.approx(one_by_one.parts["log_partition"].value, abs=1e-11)


def test_rows_come_in_parts(system, monkeypatch):
    model, data = system
    whole = expectation(model, data)
    monkeypatch.setattr(cut_sets, "ROWS_AT_ONCE", 7)
    parts = expectation(model, data)
    np.testing.assert_allclose(whole.value, parts.value, atol=1e-13)
    assert whole.parts["log_partition"].value == pytest.approx(parts.parts["log_partition"].value, abs=1e-12)


def test_no_cut_is_needed_between_cells_that_do_not_interact(system):
    """The rest of the missing cells has no edge inside, and no cell is in the cut set for nothing."""
    model, data = system
    light, cuts, heavy = split_by_cut(model.family, data.states, data.missing)
    joined = model.family.graph.matrix(model.parts.couplings) != 0
    for r in range(len(cuts.present)):
        cells, k = cuts.cells[cuts.pointers[r] : cuts.pointers[r + 1]], cuts.n_cut[r]
        assert not joined[np.ix_(cells[k:], cells[k:])].any()
        assert joined[np.ix_(cells[:k], cells)].any(axis=1).all()
    assert np.array_equal(np.sort(np.concatenate([light, heavy])), np.arange(data.n_states))
    assert np.array_equal(split_rows(model.family, data.states, data.missing).heavy, heavy)


@pytest.mark.parametrize("scale", [5.0, 50.0, 500.0])
def test_strong_fields_stay_finite_and_right(scores, rng, scale):
    model = random_model(gb.graphs.complete(7), rng, scores, scale=scale)
    states = rng.integers(0, 2, (20, 7)).astype(np.int8)
    data = holed(dataset_of(states, model.variables), rng, 0.3, hidden=[4, 5, 6])
    evidence, statistics = row_by_row(model, data)
    np.testing.assert_allclose(log_evidence(model, data), evidence, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(expectation(model, data).value, statistics, atol=1e-9)


def test_models_without_biases_and_many_hidden_units(scores, rng):
    """Two thousand hidden units: the product of their sums would overflow."""
    graph = gb.graphs.from_edges([(0, j) for j in range(1, 2001)], 2001)
    model = random_model(graph, rng, scores, scale=1.0, bias=False)
    levels, gap = model.variables.levels[0], model.family.layout.gap
    holes = np.column_stack([levels, np.full((2, 2000), np.nan)])
    data = gb.Dataset.read(holes, coding=name_of(model.variables))
    fields = levels[:, None] * model.theta
    expected = np.logaddexp(fields * levels[0], fields * levels[1])
    order = np.argsort(data.states[:, 0])
    np.testing.assert_allclose(log_evidence(model, data)[order], expected.sum(axis=1), rtol=1e-13)
    means = levels[0] + gap / (1 + np.exp(-gap * fields))
    np.testing.assert_allclose(expectation(model, data).value, (levels[:, None] * means).mean(axis=0), atol=1e-13)


@pytest.mark.parametrize("n_columns", [2, 4])
def test_rows_of_another_width_than_the_model_are_refused_before_any_kernel_sees_them(n_columns):
    data = gb.Dataset.read([[1.0] * (n_columns - 1) + [np.nan]], coding="spin")
    with pytest.raises(ArgumentError, match=f"the data has {n_columns} variables but the model has 3"):
        split_by_cut(gb.PairwiseFamily(gb.graphs.complete(3)), data.states, data.missing)
