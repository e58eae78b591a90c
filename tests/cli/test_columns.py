"""A table of columns of every kind on the command line: read, learned, asked, and written as it came."""

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused, run

N = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    mood = rng.integers(0, 5, N)
    frame = pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(N)],
            "sex": np.where(rng.random(N) < 0.2 + 0.15 * mood, "M", "F"),
            "smokes": rng.choice(["yes", "no"], N),
            "mood": mood,
            "hair": rng.choice(["red", "brown", "blond"], N),
            "age": rng.integers(20, 80, N),
        }
    )
    path = tmp_path_factory.mktemp("columns")
    frame.to_csv(path / "all.csv", index=False)
    frame.drop(columns=["hair", "age"]).to_csv(path / "mixed.csv", index=False)
    holes = frame.drop(columns=["hair", "age"]).astype(object)
    holes.loc[3::29, "mood"] = "?"
    holes.to_csv(path / "holes.csv", index=False)
    assert run("fit", path / "mixed.csv", "-o", path / "m.gibbs", "-q").exit_code == 0
    return path


def test_fit_with_nothing_else(folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = run("fit", "mixed.csv")
    assert result.exit_code == 0, result.stderr
    said = "warning: column 'id' has a value of its own in every row, so it is left out as an identifier"
    assert result.stderr.splitlines() == [f"{said}: declare it to keep it, --column id=categorical"]
    lines = result.stdout.splitlines()
    reason = "ordered levels ('mood') beside two values: an ordinal machine"
    assert f"chosen:      {reason} (--model potts to change)" in lines
    assert "left out:    id" in lines
    assert lines[-1] == "model written to mixed.gibbs"
    machine = gb.load("mixed.gibbs")
    assert machine.names_ == ("sex", "smokes", "mood")
    assert machine.result_.provenance["chosen"] == reason


def test_the_reasons_name_a_model_that_works(folder):
    for flags, kind in (
        (["--column", "mood=drop", "--column", "hair=drop", "--column", "age=drop"], "pairwise"),
        (["--drop", "age"], "potts"),
        (["--column", "hair=drop"], "ordinal"),
        (["--column", "hair=blond<brown<red"], "ordinal"),
        (["--column", "age=>40", "--column", "hair=drop", "--column", "mood=>1"], "pairwise"),
        (["--model", "potts", "--drop", "age"], "potts"),
    ):
        found = answer("fit", folder / "all.csv", "-o", folder / "new.gibbs", "--l2", 0.01, *flags)
        assert found["kind"] == kind
    assert "'age' holds real numbers and 'sex' does not" in refused("fit", folder / "all.csv", "-o", folder / "n.gibbs")


def test_columns_are_declared_in_their_order(folder):
    flags = ("--column", "sex=M,F", "--column", "mood=0<1<2<3<4<5", "--l2", 0.01)
    found = answer("fit", folder / "mixed.csv", "-o", folder / "new.gibbs", *flags)
    assert found["coding"]["labels"] == [["M", "F"], ["no", "yes"], [0, 1, 2, 3, 4, 5]]
    assert found["coding"]["name"] == "ordinal"
    kept = answer("fit", folder / "mixed.csv", "-o", folder / "new.gibbs", "--drop", "mood", "--drop", "id")
    assert kept["coding"]["labels"] == [["F", "M"], ["no", "yes"]]


def test_questions_about_a_mixed_table(folder):
    model, holes = folder / "m.gibbs", folder / "holes.csv"
    machine = gb.load(model)
    rows = pd.read_csv(folder / "mixed.csv")
    assert answer("score", model, folder / "mixed.csv")["mean_log_likelihood"] == machine.score(rows)
    drawn = answer("sample", model, "-n", 5, "--seed", 0)["values"]
    assert all(sex in "FM" and smokes in ("yes", "no") and mood in range(5) for sex, smokes, mood in drawn)
    filled = answer("impute", model, holes)
    assert filled["filled_cells"] == 6
    assert {row[-1] for row in filled["values"]} <= set(range(5))
    shown = printed("show", model)
    assert "coding:      ordinal (2 to 5 values)" in shown
    assert "left out:    id" in shown
    pairwise = folder / "two.gibbs"
    run("fit", folder / "mixed.csv", "-o", pairwise, "--drop", "mood", "-q")
    assert "values are 0 for 'F' or 'no' and 1 for 'M' or 'yes'" in printed("expect", pairwise)
    assert "coding:      binary (F/M, no/yes)" in printed("show", pairwise)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--column", "sex"], "--column sex must be COL=A,B,... or COL=CODING"),
        (["--column", "zz=a,b"], "--column zz=... names the column 'zz'"),
        (["--column", "sex=F,M", "--coding", "spin"], "--column says what one column is"),
        (["--column", "mood=>x"], "must give a number"),
        (["--column", "sex=ternary"], "--coding ternary is not known"),
        (["--no-bias"], "--bias belongs to --model pairwise, but there are ordered levels"),
    ],
)
def test_refusals(folder, flags, sentence):
    result = run("fit", folder / "mixed.csv", "-o", folder / "no.gibbs", *flags)
    assert result.exit_code == 1
    assert sentence in result.stderr.splitlines()[-1]


def test_compare_chooses_too(folder):
    result = run("compare", folder / "mixed.csv", "--learners", "mple", "--quiet", "--json", "--drop", "id")
    assert result.exit_code == 0, result.stderr
