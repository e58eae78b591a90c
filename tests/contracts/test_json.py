"""``--json`` of every command: one object on stdout and nothing else there, which holds what the text says."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pandas as pd
import pytest

from cli_runner import run
from gibbsian.cli.main import app

DECIMAL = re.compile(r"(?<![\w.])-?\d+\.(\d+)(?:e[-+]?\d+)?(?![\w.])")
# Times differ from run to run.
TIMED = {"compare"}
# Takes seconds: tests/cli/test_demo.py reads its JSON.
ELSEWHERE = {"demo"}
COMMANDS = {
    "fit": ("data.csv", "--out", "new.gibbs"),
    "compare": ("data.csv", "--seed", "0"),
    "structure": ("data.csv",),
    "intervals": ("m.gibbs", "data.csv"),
    "score": ("m.gibbs", "data.csv"),
    "unusual": ("m.gibbs", "data.csv"),
    "sample": ("m.gibbs", "-n", "4", "--seed", "1"),
    "mode": ("m.gibbs",),
    "expect": ("m.gibbs",),
    "impute": ("m.gibbs", "holes.csv", "--probabilities"),
    "predict": ("m.gibbs", "data.csv", "--columns", "b", "--probabilities"),
    "transform": ("h.gibbs", "data.csv"),
    "query": ("m.gibbs", "P(a, b=1)", "H(a | b)"),
    "divergence": ("m.gibbs", "m.gibbs"),
    "report": ("m.gibbs", "--out", "page.html"),
    "show": ("m.gibbs", "--method", "exact"),
    "completion": ("bash",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("json")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.random((120, 3)) < 0.3 + 0.4 * rng.integers(0, 2, (120, 1)), columns=list("abc")).astype(
        int
    )
    rows.to_csv(path / "data.csv", index=False)
    rows.where(rng.random(rows.shape) > 0.1).head(12).to_csv(path / "holes.csv", index=False)
    assert run("fit", path / "data.csv", "--out", path / "m.gibbs").exit_code == 0
    hidden = ("--model", "rbm", "--n-components", 2, "--max-iter", 3, "--seed", 0)
    assert run("fit", path / "data.csv", *hidden, "--out", path / "h.gibbs").exit_code == 0
    return path


def test_every_command_is_in_the_table():
    assert COMMANDS.keys() | ELSEWHERE == app.commands.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_json_is_one_object_that_holds_what_the_text_says(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    spoken = run(name, *COMMANDS[name])
    written = run(name, *COMMANDS[name], "--json")
    assert spoken.exit_code == written.exit_code == 0, written.stderr
    told = json.loads(written.stdout)
    assert isinstance(told, dict)
    assert told
    numbers = np.array([leaf for leaf in leaves(told) if isinstance(leaf, float | int)] + embedded(told))
    for found in DECIMAL.finditer(spoken.stdout):
        if name not in TIMED:
            off = np.abs(numbers - float(found[0])).min()
            assert off <= 0.51 * 10.0 ** -len(found[1]) or math.isclose(off, 0, abs_tol=1e-12), found[0]
    words = set(re.findall(r"\b(?:mle|mple|converged|independent)\b", spoken.stdout))
    assert all(word in written.stdout for word in words)


def test_a_mistake_leaves_stdout_empty(folder):
    for name in COMMANDS:
        result = run(name, "--json", "--no-such-flag")
        assert result.exit_code == 2
        assert result.stdout == ""


def leaves(value):
    """All numbers and texts in a value."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def embedded(value):
    """The numbers inside the texts of a value."""
    return [float(found[0]) for leaf in leaves(value) if isinstance(leaf, str) for found in DECIMAL.finditer(leaf)]
