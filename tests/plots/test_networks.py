"""Networks: what is drawn is what was learned, every variable is there, and no label hides another."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

import gibbsian as gb
from gibbsian.errors import ArgumentError, FontWarning
from gibbsian.models.interactions import Interactions
from gibbsian.plots import canvas, network

LAYOUTS = ("force", "circle")
WORDS = ("how often", "in the last", "two weeks", "did you feel", "that all", "you did", "was an effort", "or not done")


def sentences(n):
    rng = np.random.default_rng(0)
    return tuple(f"Q{k}: {' '.join(rng.choice(WORDS, rng.integers(3, 9)))}?" for k in range(n))


def made(n, names=None, scopes=(), seed=0):
    """A network of all pairs, those within groups the strongest, and of larger sets."""
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(n), 2))
    strengths = rng.normal(size=len(pairs)) * [3.0 if i // 10 == j // 10 else 0.3 for i, j in pairs]
    strengths = np.append(strengths, np.full(len(scopes), 9.0))
    return Interactions((*pairs, *scopes), strengths, (n,), names=names or tuple(f"x{i}" for i in range(n)))


def edges(ax):
    return [part for part in ax.collections if isinstance(part, LineCollection)]


def nodes(ax):
    """How many nodes of each marker size there are."""
    return sum(len(part.get_offsets()) for part in ax.collections if isinstance(part, PathCollection))


def boxes_apart(ax):
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    return boxes, not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n", "names"), [(5, None), (17, "votes"), (60, "sentences"), (300, None)], ids=str)
def test_no_label_hides_another(n, names, layout, machine):
    found = machine if names == "votes" else made(n, sentences(n) if names else None)
    ax = network(found, layout=layout)
    boxes, apart = boxes_apart(ax)
    assert apart
    inside = ax.figure.bbox
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 for box in boxes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_variable_is_there_also_without_an_edge(layout):
    few = made(60, sentences(60))
    ax = network(few, layout=layout, n_strongest=3)
    assert nodes(ax) == 60
    shown = {text.get_text().replace("\n", " ") for text in ax.texts}
    assert all(any(name.startswith(text.rstrip("…")) for text in shown if len(text) > 9) for name in few.names)
    many = network(made(300), layout=layout, n_strongest=3)
    assert nodes(many) == 300
    assert any("variables without an interaction drawn" in text.get_text() for text in many.texts)


def test_lines_are_the_strongest_and_those_above_a_threshold(machine):
    assert len(edges(network(machine, n_strongest=12))) == 12
    assert (
        len(edges(network(machine, n_strongest=None, least=1.0)))
        == (machine.strongest_couplings()["coupling"].abs() > 1).sum()
    )


def test_lines_have_colours_by_sign_and_widths_by_strength(small):
    weak, strong = edges(network(small))  # the strongest on top
    by_size = small.strongest_couplings()["coupling"].tolist()
    for line, coupling in zip((strong, weak), by_size, strict=True):
        red, _, blue, _ = line.get_colors()[0]
        assert (red > blue) == (coupling > 0)
    assert weak.get_linewidths()[0] < strong.get_linewidths()[0]


def test_one_strong_pair_does_not_set_the_colours():
    strengths = np.linspace(0.5, 1.0, 21)
    calm = canvas.robust_limit(strengths, 0.95)
    assert canvas.robust_limit(np.append(strengths, -100.0), 0.95) == pytest.approx(calm, rel=0.06)
    scopes = tuple(itertools.combinations(range(7), 2))
    ax = network(Interactions(scopes, np.append(strengths[:20], 100.0), (7,), names=tuple("abcdefg")))
    bar = ax.child_axes[0]
    assert bar.get_xlim()[1] == pytest.approx(0.975)
    assert "colours end at 0.975, the 95% quantile; the largest is 100" in bar.get_xlabel()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sets_of_three_and_more_are_diamonds_joined_to_their_members(layout):
    ax = network(made(6, scopes=((0, 1, 2), (1, 3, 4, 5))), layout=layout, n_strongest=4)
    assert sorted(len(line.get_segments()) for line in edges(ax)) == [1, 1, 3, 4]
    assert any("diamonds" in text.get_text() for text in ax.texts)


def test_layouts_are_the_same_every_time():
    for layout in LAYOUTS:
        first, again = (network(made(40), layout=layout) for _ in range(2))
        for one, other in zip(first.collections, again.collections, strict=True):
            np.testing.assert_array_equal(one.get_offsets(), other.get_offsets())


def test_a_given_place_is_filled_with_smaller_letters(machine):
    figure = Figure((12, 5))
    left, right = figure.subplots(1, 2)
    assert network(machine, ax=left) is left
    network(made(60, sentences(60)), ax=right)
    for ax in (left, right):
        _, apart = boxes_apart(ax)
        assert apart


def test_hidden_units_are_squares_and_nothing_to_draw_is_no_error(rbm):
    assert any("squares: hidden units" in text.get_text() for text in network(rbm).texts)
    rows = [[1, -1], [-1, 1], [1, 1], [-1, -1]]
    assert nodes(network(made(300), n_strongest=0)) == 300
    alone = network(gb.BoltzmannMachine(graph="empty").fit(rows))
    assert edges(alone) == []
    assert nodes(alone) == 2


def test_letters_of_other_scripts_have_a_font_or_one_warning(monkeypatch, tmp_path):
    names = ("性別", "a", "b")
    lacking = canvas._lacking
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if any(not lacking(path, set("性別")) for _, path in canvas._other_fonts()):
            network(made(3, names)).figure.draw_without_rendering()
    monkeypatch.setattr(canvas, "_other_fonts", list)
    with pytest.warns(FontWarning, match="no font here has the letters") as caught:
        canvas.save_figure(network(made(3, names)), tmp_path / "p.png")
    assert len(caught) == 1


def test_dollars_are_letters():
    ax = network(made(3, ("cost $a", "$b$", "c_{d}$")))
    ax.figure.draw_without_rendering()
    assert "$b$" in {text.get_text() for text in ax.texts}


def test_what_is_no_layout_and_no_model_is_said(small):
    with pytest.raises(ArgumentError, match="must be 'force' or 'circle'"):
        network(small, layout="spiral")
    with pytest.raises(ArgumentError, match="a list has no interactions"):
        network([1, 2])
