"""The most probable row from the command line, and samples at another temperature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused, run


def test_mode_given_cells(folder):
    machine = gb.load(folder / "model.gibbs")
    told = answer("mode", folder / "model.gibbs", "--given", "a=no", "--given", "b=yes")
    found = machine.most_probable(evidence={"a": "no", "b": "yes"})
    assert told["values"] == found.rows.tolist()
    assert told["values"][0][:2] == ["no", "yes"]
    assert told["log_weight"] == pytest.approx(found.log_weights)
    assert told["probability"] == pytest.approx(found.probabilities)
    assert told["exact"] == [True]
    assert told["gap"] == [0.0]


def test_mode_prints_and_writes_tables(folder):
    text = printed("mode", folder / "model.gibbs", "--n-states", "3")
    assert text.splitlines()[0] == "a,b,c,d,log_weight,gap,probability,method"
    assert len(text.splitlines()) == 4
    out = folder / "best.csv"
    assert "written" in printed("mode", folder / "model.gibbs", "--rows", folder / "data.csv", "--out", out)
    rows, best = pd.read_csv(folder / "data.csv"), pd.read_csv(out)
    shown = rows["c"] != "?"
    assert len(best) == len(rows)
    assert (best["c"][shown] == rows["c"][shown]).all()
    assert set(best["c"]) == {"no", "yes"}


def test_annealing_is_the_same_with_the_same_seed(folder):
    asked = ("mode", folder / "model.gibbs", "--method", "annealing", "--restarts", "4", "--seed", "1")
    assert answer(*asked) == answer(*asked)
    assert answer(*asked)["values"] == answer("mode", folder / "model.gibbs")["values"]


def test_hidden_units_are_columns_of_the_joint_state(folder, tmp_path):
    assert run("fit", folder / "data.csv", "--model", "rbm", "--n-components", "2", "--max-iter", "3", "--drop", "id",
               "--drop", "w", "--out", tmp_path / "rbm.gibbs").exit_code == 0  # fmt: skip
    told = answer("mode", tmp_path / "rbm.gibbs", "--joint")
    assert told["columns"] == ["a", "b", "c", "d", "h0", "h1"]
    assert len(told["values"][0]) == 6


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--given", "a"], "COLUMN=VALUE"),
        (["--given", "size=1"], "column 'size' is not one of"),
        (["--given", "a=maybe"], "maybe"),
        (["--method", "guess"], "auto, exact, annealing"),
        (["--n-states", "2", "--joint"], "leave --joint or --n-states out"),
    ],
)
def test_mistakes_are_one_sentence(folder, flags, words):
    assert words in refused("mode", folder / "model.gibbs", *flags)


def test_samples_at_a_temperature(folder):
    best = answer("mode", folder / "model.gibbs")["values"][0]
    cold = answer("sample", folder / "model.gibbs", "-n", "50", "--temperature", "0.01", "--seed", "0")["values"]
    assert np.mean([row == best for row in cold]) > 0.9
    assert "--temperature" in refused("sample", folder / "model.gibbs", "--temperature", "0")
