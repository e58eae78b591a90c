"""Pictures: what is drawn is what was learned, and it can be read."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib import _pylab_helpers
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import gibbsian as gb
from gibbsian.diagnostics import data_moments
from gibbsian.plots import heat_map, moment_scatter, network, save_figure, trace


@pytest.fixture(scope="module")
def votes() -> gb.Dataset:
    return gb.datasets.load_house_votes().complete_rows()


@pytest.fixture(scope="module")
def machine(votes) -> gb.BoltzmannMachine:
    return gb.BoltzmannMachine(learner="mple", l2=0.01, tol=1e-4).fit(votes)


@pytest.fixture(scope="module")
def small() -> gb.BoltzmannMachine:
    rng = np.random.default_rng(0)
    first = rng.choice([-1, 1], 300)
    rows = np.column_stack([first, first * rng.choice([1, 1, -1], 300), -first * rng.choice([1, 1, 1, -1], 300)])
    return gb.BoltzmannMachine(graph=[(0, 1), (0, 2)], learner="mle").fit(rows)


def edge_lines(ax):
    return [line for line in ax.lines if len(line.get_xdata()) == 2]


def test_network_draws_as_many_edges_as_asked(machine):
    ax = network(machine, n_strongest=12)
    assert len(edge_lines(ax)) == 12
    assert sorted(text.get_text().replace("\n", "") for text in ax.texts) == sorted(machine.names_)


def test_network_colours_by_sign_and_widens_by_size(small):
    ax = network(small)
    lines = edge_lines(ax)
    strongest_last = small.strongest_couplings().iloc[::-1]
    for line, coupling in zip(lines, strongest_last["coupling"], strict=True):
        red, _, blue = to_rgb(line.get_color())
        assert (red > blue) == (coupling > 0)
    assert lines[0].get_linewidth() < lines[1].get_linewidth()


def test_network_labels_do_not_overlap(machine):
    ax = network(machine)
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    inside = ax.figure.bbox
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes)


def test_network_of_many_variables_shows_only_those_with_an_edge():
    rows = np.random.default_rng(0).integers(0, 2, (200, 60))
    many = gb.BoltzmannMachine(graph="chain", learner="mple", l2=0.1, tol=1e-2).fit(rows)
    ax = network(many, n_strongest=5)
    drawn = many.strongest_couplings(5)
    assert {text.get_text() for text in ax.texts} == set(drawn["first"]) | set(drawn["second"])


def test_network_without_any_coupling(small):
    rows = [[1, -1], [-1, 1], [1, 1], [-1, -1]]
    ax = network(gb.BoltzmannMachine(graph="empty").fit(rows))
    assert edge_lines(ax) == []
    assert len(ax.texts) == 2


def test_heat_map_is_centred_at_zero_and_labelled(machine):
    ax = heat_map(machine)
    (picture,) = ax.images
    low, high = picture.get_clim()
    assert low == -high == -np.abs(machine.couplings_.to_numpy()).max()
    assert [label.get_text() for label in ax.get_xticklabels()] == list(machine.names_)
    assert len(ax.figure.axes) == 2  # the second holds the colour bar


def test_heat_map_leaves_pairs_without_an_edge_out(small):
    shown = heat_map(small).images[0].get_array()
    assert np.ma.getmaskarray(shown).tolist() == [[True, False, False], [False, True, True], [False, True, True]]
    assert shown[0, 2] == small.couplings_.iloc[0, 2]


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


def test_trace_shows_every_step(machine):
    ax = trace(machine.result_)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), machine.result_.trace.column("gradient_norm"))
    assert ax.get_title() == machine.result_.reason
    assert ax.get_yscale() == "log"


def test_pictures_go_where_they_are_told(small):
    ax = Figure().add_subplot()
    rows = small.sample(20, random_state=0)
    for drawn in (network(small, ax), heat_map(small, ax), moment_scatter(small, rows, ax), trace(small.result_, ax)):
        assert drawn is ax


def test_no_picture_touches_pyplot_s_figures(small):
    network(small)
    heat_map(small)
    assert _pylab_helpers.Gcf.get_all_fig_managers() == []


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_save_figure_by_extension(small, tmp_path, name, start):
    save_figure(heat_map(small), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_save_figure_into_nowhere_is_an_error_with_the_path(small, tmp_path):
    with pytest.raises(gb.errors.StorageError, match="nowhere"):
        save_figure(heat_map(small), tmp_path / "nowhere" / "a.png")
