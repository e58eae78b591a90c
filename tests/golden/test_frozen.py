"""The frozen answers hold: exact ones to 1e-9, fits to what their tolerance leaves open, drawn ones in law."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from golden import api, freeze, table

STORED = freeze.stored()
# A fit ends where the gradient is below tol, so parameters are within sqrt(n) tol / curvature of the solution; twice
# that between two fits, and twice again as learners measure the gradient in units of their own.
CLOSE = 4.0
# How often a sound library fails any of the tests of what is drawn, over all numbers of all rows, and the fresh seeds.
FAMILY_LEVEL = 1e-3
FRESH = range(10_001, 10_009)
N_DRAWN = sum(len(STORED[row.name]["mean"]) for row in table.DRAWN if row.name in STORED)
# Rounding, where chance has no part in the end: several starts that find one solution.
SETTLED = 1e-6


def named(kind):
    """The rows of a kind, by their names."""
    return [pytest.param(row, id=row.name) for row in table.ROWS.values() if isinstance(row, kind)]


def differences(found, expected, within, place=""):
    """Where two answers differ, in words."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return [f"{place}: {sorted(found)} instead of {sorted(expected)}"]
        return [line for key in expected for line in differences(found[key], expected[key], within, f"{place}[{key}]")]
    if isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return [f"{place}: {len(found)} instead of {len(expected)}"]
        parts = enumerate(zip(found, expected, strict=True))
        return [line for k, (a, b) in parts for line in differences(a, b, within, f"{place}[{k}]")]
    if isinstance(expected, float) and isinstance(found, int | float):
        return [] if abs(found - expected) <= within * (1 + abs(expected)) else [f"{place}: {found} is not {expected}"]
    return [] if found == expected else [f"{place}: {found!r} is not {expected!r}"]


def check(row, lines):
    """Fail with the first differences, and with the issue that changes the row on purpose."""
    meant = (
        f"\n(meant to change: {row.issue}; `python tests/golden/freeze.py --only {row.name!r}`)" if row.issue else ""
    )
    assert not lines, f"{row.name}: {len(lines)} differ\n" + "\n".join(lines[:12]) + meant


@pytest.mark.parametrize("row", named(table.Given))
def test_a_given_model_answers_as_ever(row):
    check(row, differences(freeze.answers_of(row), STORED[row.name], row.within))


def error_of(row, kept):
    """How far parameters may be from those of the file."""
    n = sum(np.size(value) for value in kept["parameters"].values())
    return row.within or max(CLOSE * math.sqrt(n) * table.TOL / kept["curvature"], 1e-9), n


@pytest.mark.parametrize("row", named(table.Fit))
def test_a_fit_ends_where_it_did(row):
    kept, found = STORED[row.name], freeze.answers_of(row)
    error, n = error_of(row, kept)
    lines = differences(found["value"], kept["value"], 1e-9, "value")
    lines += differences(found["converged"], kept["converged"], 0.0, "converged")
    lines += differences(found["parameters"], kept["parameters"], error, "parameters")
    check(row, lines + differences(found["answers"], kept["answers"], n * error, "answers"))


@pytest.mark.parametrize("row", named(table.Structure))
def test_the_same_edges_are_found(row):
    assert freeze.answers_of(row) == STORED[row.name]


@pytest.mark.parametrize("row", named(table.Drawn))
def test_what_is_drawn_keeps_its_law(row):
    kept, numbers = STORED[row.name], freeze.drawn(row, FRESH)
    mean, sd = np.array(kept["mean"]), np.array(kept["sd"])
    error = np.maximum(sd, SETTLED * (1 + np.abs(mean))) * math.sqrt(1 / len(FRESH) + 1 / table.SEEDS)
    limit = student.isf(FAMILY_LEVEL / (2 * N_DRAWN), table.SEEDS - 1)
    z = (numbers.mean(axis=0) - mean) / error
    check(row, [f"[{k}]: z = {z[k]:.1f}, more than {limit:.1f}" for k in np.flatnonzero(~(np.abs(z) < limit))])


# -- the table itself -------------------------------------------------------------------------------------------------
def test_the_file_answers_the_rows_of_the_table():
    assert list(STORED) == list(table.ROWS)


def test_every_registered_name_has_a_row():
    known = {(kind, name) for kind, names in api.registered().items() for name in names}
    assert not known - table.covered() - table.LEAVING
    assert set(table.USED_BY.values()) <= set(table.ROWS)


@pytest.mark.parametrize("name", ["table.py", "test_frozen.py", "freeze.py"])
def test_only_one_file_knows_the_library(name):
    tree = ast.parse(Path(__file__).with_name(name).read_text())
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in modules if module.startswith("gibbsian")]
