"""``gibbsian structure`` and ``gibbsian intervals``."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from cli_runner import answer, refused, run

NAMES = ["a", "b", "c", "d"]
TABLE = ("--drop", "id", "--drop", "w", "--complete-rows")


def test_structure_lists_edges_and_writes_the_refitted_model(folder):
    found = answer("structure", folder / "data.csv", *TABLE, "--out", folder / "s.gibbs")
    assert all(set(edge) <= set(NAMES) for edge in found["edges"])
    assert len(found["edges"]) == len(found["couplings"]) == gb.load(folder / "s.gibbs").model_.family.graph.n_edges > 0
    printed = run("structure", folder / "data.csv", *TABLE, "--method", "decimation")
    assert printed.exit_code == 0
    assert "of 6 pairs interact" in printed.stdout


def test_structure_refuses_unknown_methods(folder):
    assert "magic" in refused("structure", folder / "data.csv", *TABLE, "--method", "magic")


def test_intervals_are_those_of_the_library(folder):
    files = folder / "model.gibbs", folder / "data.csv"
    machine = gb.load(files[0])
    errors = gb.uncertainty.standard_errors(machine, machine.read(files[1])).theta_se[-6:]
    rows = answer("intervals", *files)["intervals"]
    weights = machine.model_.parts.couplings
    strongest = np.argsort(-np.abs(weights))
    for row, weight, error in zip(rows, weights[strongest], errors[strongest], strict=True):
        expected = weight, error, weight - 1.959964 * error, weight + 1.959964 * error
        assert [row[part] for part in ("estimate", "error", "low", "high")] == pytest.approx(expected, rel=1e-5)
    assert "95% intervals" in run("intervals", *files).stdout


def test_bootstrap_intervals_are_as_wide_as_the_normal_ones(folder):
    """30 samples know an error to 13 percent (one standard error), and their ends to twice that."""
    files = folder / "model.gibbs", folder / "data.csv"
    normal = answer("intervals", *files)["intervals"]
    drawn = answer("intervals", *files, "--bootstrap", "30", "--seed", "1")["intervals"]
    for one, other in zip(normal, drawn, strict=True):
        assert other["error"] == pytest.approx(one["error"], rel=0.5)
        assert other["high"] - other["low"] == pytest.approx(one["high"] - one["low"], rel=0.5)


def test_intervals_refuse_bad_numbers(folder):
    files = (folder / "model.gibbs", folder / "data.csv")
    assert "--level 2.0" in refused("intervals", *files, "--level", "2")
    assert "--bootstrap -1" in refused("intervals", *files, "--bootstrap", "-1")
