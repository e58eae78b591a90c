"""Mixtures and clusterings: fitted, shown, scored and sampled by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused, run

NAMES = ["p", "q", "r"]
OF_NUMBERS = ["vmf-mixture", "gaussian-mixture", "soft-k-means", "k-means", "online-k-means"]
WITH_DENSITY = ["vmf-mixture", "gaussian-mixture", "soft-k-means"]


@pytest.fixture(scope="module")
def points() -> pd.DataFrame:
    """Two clouds in different directions, with an id and weights."""
    rng = np.random.default_rng(0)
    classes = np.arange(120) % 2
    rows = 5 * np.eye(3)[classes] + rng.normal(size=(120, 3)) / 2
    return pd.DataFrame(rows, columns=NAMES).assign(id=[f"m{k}" for k in range(120)], w=1 + classes)


@pytest.fixture
def folder(tmp_path: Path, points: pd.DataFrame) -> Path:
    points.to_csv(tmp_path / "points.csv", index=False)
    return tmp_path


def fit(folder: Path, model: str, *flags: object) -> tuple[object, ...]:
    common = ("--model", model, "--drop", "id", "--seed", "0")
    return ("fit", folder / "points.csv", "--out", folder / "m.gibbs", *common, *flags)


@pytest.mark.parametrize("model", OF_NUMBERS)
def test_two_clouds_are_two_classes(folder, points, model):
    told = answer(*fit(folder, model, "--n-components", "2", "--drop", "w"))
    assert (told["kind"], told["size"]["classes"], told["names"]) == (model, 2, NAMES)
    largest = {row["class"]: row["column"] for row in reversed(told["largest_means"])}
    assert sorted(largest.values()) == ["p", "q"]
    machine = gb.load(folder / "m.gibbs")
    key, sign = ("mean_log_likelihood", 1) if model in WITH_DENSITY else ("mean_energy", -1)
    scored = answer("score", folder / "m.gibbs", folder / "points.csv")
    assert scored[key] == pytest.approx(sign * machine.score(points[NAMES]))
    assert f"model:       {model}" in printed("show", folder / "m.gibbs")


@pytest.mark.parametrize("model", WITH_DENSITY)
def test_samples_carry_their_class(folder, model):
    answer(*fit(folder, model, "--drop", "w"))
    told = answer("sample", folder / "m.gibbs", "-n", "40", "--seed", "1", "--hidden")
    rows = pd.DataFrame(told["values"], columns=told["columns"])
    assert list(rows.columns) == [*NAMES, "class"]
    assert set(rows["class"]) == {0, 1}
    assert rows.groupby("class")[["p", "q"]].mean().abs().max().min() > 0.5
    assert told == answer("sample", folder / "m.gibbs", "-n", "40", "--seed", "1", "--hidden")


def test_per_row_scores(folder, points):
    answer(*fit(folder, "vmf-mixture", "--drop", "w"))
    told = answer("score", folder / "m.gibbs", folder / "points.csv", "--per-row")
    np.testing.assert_allclose(told["per_row"], gb.load(folder / "m.gibbs").score_samples(points[NAMES]))


def test_weights_of_rows(folder):
    told = answer(*fit(folder, "gaussian-mixture", "--weights", "w"))
    assert sorted(row["weight"] for row in told["classes"]) == pytest.approx([1 / 3, 2 / 3], abs=0.01)
    plain = answer("score", folder / "m.gibbs", folder / "points.csv")
    assert plain != answer("score", folder / "m.gibbs", folder / "points.csv", "--weights", "w")


def test_settings_reach_the_estimator(folder):
    answer(*fit(folder, "vmf-mixture", "--drop", "w", "--kappa", "7", "--assignment", "hard", "--n-init", "2"))
    machine = gb.load(folder / "m.gibbs")
    assert (machine.kappa, machine.assignment, machine.n_init) == (7.0, "hard", 2)
    np.testing.assert_allclose(machine.concentrations_, 7.0)
    answer(*fit(folder, "soft-k-means", "--drop", "w", "--variance", "0.5", "--anneal"))
    assert gb.load(folder / "m.gibbs").anneal
    answer(*fit(folder, "online-k-means", "--drop", "w", "--max-iter", "3"))
    assert gb.load(folder / "m.gibbs").result_.n_steps == 3


def test_labels(folder):
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 2, 200)
    words = np.array([["soft", "loud"], ["slow", "fast"], ["low", "high"]])
    columns = {
        name: np.where(rng.random(200) < 0.9, w[kind], w[1 - kind]) for name, w in zip(NAMES, words, strict=True)
    }
    pd.DataFrame({"id": np.arange(200), **columns}).to_csv(folder / "points.csv", index=False)
    told = answer(*fit(folder, "machine-mixture"))
    assert {row["value"] for row in told["what_sets_the_classes_apart"]} == set(words.ravel())
    first, *rows = printed("sample", folder / "m.gibbs", "-n", "9", "--seed", "0", "--hidden").splitlines()
    assert first == "p,q,r,class"
    assert {cell for row in rows for cell in row.split(",")} <= {*words.ravel(), "0", "1"}
    assert answer("score", folder / "m.gibbs", folder / "points.csv")["mean_log_likelihood"] > -3 * np.log(2)


def test_missing_cells(folder, points):
    holes = points[NAMES].round().astype(int).astype(object)
    holes.loc[3, "q"] = "?"
    holes.assign(id=0).to_csv(folder / "points.csv", index=False)
    assert answer(*fit(folder, "gaussian-mixture"))["provenance"]["missing_cells"] == 1
    assert answer("impute", folder / "m.gibbs", folder / "points.csv")["filled_cells"] == 1
    assert "densities" in refused("impute", folder / "m.gibbs", folder / "points.csv", "--probabilities")
    assert "missing" in refused(*fit(folder, "vmf-mixture"))


@pytest.mark.parametrize("model", [*OF_NUMBERS, "machine-mixture"])
def test_classes_of_rows(folder, model, points):
    answer(*fit(folder, model, "--drop", "w"))
    shares = answer("transform", folder / "m.gibbs", folder / "points.csv")
    assert shares["columns"] == ["class0", "class1"]
    np.testing.assert_allclose(shares["values"], gb.load(folder / "m.gibbs").predict_proba(points[NAMES]))


@pytest.mark.parametrize("model", [*OF_NUMBERS, "machine-mixture"])
@pytest.mark.parametrize("command", [("expect",), ("show", "--method", "ais")])
def test_questions_that_a_mixture_cannot_answer(folder, model, command):
    answer(*fit(folder, model, "--drop", "w"))
    refused(command[0], folder / "m.gibbs", *command[1:])


@pytest.mark.parametrize(
    ("model", "flags", "words"),
    [
        ("vmf-mixture", ["--kappa", "loose"], "--kappa loose must be a number or 'free' or 'tied'"),
        ("vmf-mixture", ["--assignment", "lax"], "--assignment lax is not known: use one of soft, hard"),
        ("gaussian-mixture", ["--n-components", "0"], "--n-components 0 must be at least 1"),
        ("gaussian-mixture", ["--variance", "3"], "--variance 3 is not known: use one of free, tied"),
        ("k-means", ["--n-init", "0"], "--n-init 0 must be at least 1"),
        ("k-means", ["--weights", "nope"], "--weights names the column 'nope'"),
    ],
)
def test_wrong_flags_write_nothing(folder, model, flags, words):
    assert words in refused(*fit(folder, model, "--drop", "w", *flags))
    assert not (folder / "m.gibbs").exists()


def test_wrong_questions(folder):
    answer(*fit(folder, "k-means", "--drop", "w"))
    files = (folder / "m.gibbs", folder / "points.csv")
    assert "--convert rewrites two-valued columns" in refused("score", *files, "--convert")
    assert "the model needs the column 'q'" in refused("score", folder / "m.gibbs", _without_q(folder))
    assert "--model k-means has a coding of its own" in refused(*fit(folder, "k-means", "--binarize", "1"))


def _without_q(folder: Path) -> Path:
    pd.read_csv(folder / "points.csv").drop(columns="q").to_csv(folder / "short.csv", index=False)
    return folder / "short.csv"


@pytest.mark.parametrize("model", ["online-k-means", "vmf-mixture"])
def test_rows_are_scaled_unless_told_otherwise(folder, model):
    run(*fit(folder, model, "--drop", "w"))
    assert gb.load(folder / "m.gibbs").normalize
    if model == "online-k-means":
        run(*fit(folder, model, "--drop", "w", "--no-normalize"))
        assert not gb.load(folder / "m.gibbs").normalize
    else:
        assert "norm" in refused(*fit(folder, model, "--drop", "w", "--no-normalize"))
