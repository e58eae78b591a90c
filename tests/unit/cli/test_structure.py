"""``gibbsian structure`` and ``gibbsian intervals``."""

from __future__ import annotations

import pytest

import gibbsian as gb
from cli_runner import answer, refused, run

NAMES = ["a", "b", "c", "d"]
TABLE = ("--drop", "id", "--drop", "w", "--complete-rows")


def test_structure_lists_edges_and_writes_the_refitted_model(folder):
    found = answer("structure", folder / "data.csv", *TABLE, "--out", folder / "s.gibbs")
    assert all(set(edge) <= set(NAMES) for edge in found["edges"])
    assert len(found["edges"]) == len(found["couplings"]) == gb.load(folder / "s.gibbs").model_.graph.n_edges > 0
    printed = run("structure", folder / "data.csv", *TABLE, "--method", "decimation")
    assert printed.exit_code == 0
    assert "of 6 pairs interact" in printed.stdout


def test_structure_refuses_unknown_methods(folder):
    assert "magic" in refused("structure", folder / "data.csv", *TABLE, "--method", "magic")


@pytest.mark.parametrize("extra", [(), ("--bootstrap", "30", "--seed", "1")])
def test_intervals_hold_the_estimates(folder, extra):
    rows = answer("intervals", folder / "model.gibbs", folder / "data.csv", *extra)["intervals"]
    assert len(rows) == 6
    for row in rows:
        assert row["low"] < row["high"]
        assert 0 < row["error"] < 1
    assert sum(row["low"] < row["estimate"] < row["high"] for row in rows) >= 5
    assert "95% intervals" in run("intervals", folder / "model.gibbs", folder / "data.csv").stdout


def test_intervals_refuse_bad_numbers(folder):
    files = (folder / "model.gibbs", folder / "data.csv")
    assert "--level 2.0" in refused("intervals", *files, "--level", "2")
    assert "--bootstrap -1" in refused("intervals", *files, "--bootstrap", "-1")
