"""Figures: where pictures go, and how they are written."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import gibbsian as gb
from gibbsian.plots import convergence, couplings, moment_scatter, network, save_figure


def test_pictures_go_where_they_are_asked(small):
    ax = Figure().add_subplot()
    rows = small.sample(20, random_state=0)
    for drawn in (
        network(small, ax=ax),
        couplings(small, ax=ax),
        moment_scatter(small, rows, ax=ax),
        convergence(small, ax=ax),
    ):
        assert drawn is ax


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_save_figure_by_extension(small, tmp_path, name, start):
    save_figure(couplings(small), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_save_figure_into_nowhere_is_an_error_with_the_path(small, tmp_path):
    with pytest.raises(gb.errors.StorageError, match="nowhere"):
        save_figure(couplings(small), tmp_path / "nowhere" / "a.png")
