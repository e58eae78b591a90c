"""Networks and matrices of couplings: what is drawn is what was learned, and it can be read."""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.colors import to_rgb

import gibbsian as gb
from gibbsian.plots import heat_map, network


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
