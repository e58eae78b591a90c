"""``gibbsian expect`` by every registered method, and log Z between two sides."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused, run
from gibbsian.expectations import EXPECTATIONS

SAMPLED = [
    name
    for name in EXPECTATIONS
    if name != "exact" and EXPECTATIONS.trait(name, "sampled", True) and not EXPECTATIONS.trait(name, "needs_starts")
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine of six coupled columns and its data."""
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(5)
    opinion = rng.choice([-1, 1], (200, 1))
    rows = pd.DataFrame(np.where(rng.random((200, 6)) < 0.7, opinion, -opinion), columns=list("abcdef"))
    rows.to_csv(folder / "data.csv", index=False)
    gb.BoltzmannMachine("grid:2x3", learner="mle").fit(rows).save(folder / "m.gibbs")
    return folder


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine that exact inference refuses."""
    folder = tmp_path_factory.mktemp("large")
    rows = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (100, 50)), columns=[f"c{i}" for i in range(50)])
    rows.to_csv(folder / "data.csv", index=False)
    gb.BoltzmannMachine(learner="mple", l2=1.0).fit(rows).save(folder / "m.gibbs")
    return folder


@pytest.mark.parametrize("method", SAMPLED)
def test_every_method_agrees_with_the_exact_one(small, method):
    told = answer("expect", small / "m.gibbs", "--method", method, "--samples", "2000", "--seed", "0")
    truth = gb.load(small / "m.gibbs").expect("exact").value
    rows = told["means"] + told["pairs"]
    means, errors = (np.array([row[key] for row in rows]) for key in ("mean", "standard_error"))
    assert (errors >= 0).all()
    assert errors.max() < 0.1
    assert (np.abs(means - truth) <= 5 * errors + 1e-3).all()


def test_more_samples_give_smaller_errors(small):
    def error(n: int) -> float:
        told = answer("expect", small / "m.gibbs", "--method", "s2-smci", "--samples", n, "--seed", "0")
        return float(np.mean([row["standard_error"] for row in told["means"]]))

    assert error(8000) < 0.6 * error(800)


def test_spatial_integration_is_sharper_than_plain_averages(small):
    def errors(method: str) -> np.ndarray:
        told = answer("expect", small / "m.gibbs", "--method", method, "--samples", "1000", "--seed", "0")
        return np.array([row["standard_error"] for row in told["pairs"]])

    assert errors("s2-smci").mean() < 0.7 * errors("monte-carlo").mean()


def test_expectations_go_to_a_table(small):
    assert "13 expectations: written to" in printed("expect", small / "m.gibbs", "--out", small / "e.csv")
    frame = pd.read_csv(small / "e.csv")
    assert list(frame.columns) == ["part_1", "part_2", "mean", "standard_error"]
    assert frame[["part_1", "part_2"]].fillna("").values.tolist()[5:8] == [["f", ""], ["a", "b"], ["a", "d"]]
    np.testing.assert_allclose(frame["mean"], gb.load(small / "m.gibbs").expect("exact").value)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--method", "exact", "--samples", "9"], "--method exact draws no samples: leave --samples out"),
        (["--samples", "1"], "--samples 1 must be at least 2"),
        (["--method", "magic"], "--method magic is not known: use one of 1-smci, 2-smci, ais, bethe, exact"),
        (["--out", "e.xls"], "must end in one of"),
    ],
)
def test_wrong_flags_of_expect(small, flags, words):
    assert words in refused("expect", small / "m.gibbs", *flags)


def test_log_z_between_two_sides_holds_the_exact_one(small):
    machine = gb.load(small / "m.gibbs")
    told = answer("show", small / "m.gibbs", "--method", "ais", "--seed", "0")["log_partition"]
    assert told["lower"] <= machine.log_partition() <= told["upper"]
    assert not told["exact"]
    assert told["forward_standard_error"] > 0
    exact = answer("show", small / "m.gibbs", "--method", "exact")["log_partition"]
    assert exact["lower"] == exact["upper"] == pytest.approx(machine.log_partition())
    assert f"log Z:       {machine.log_partition():.6f}" in printed("show", small / "m.gibbs", "--method", "exact")


def test_score_between_two_sides_holds_the_exact_one(small):
    exact = answer("score", small / "m.gibbs", small / "data.csv")["mean_log_likelihood"]
    told = answer("score", small / "m.gibbs", small / "data.csv", "--method", "ais", "--seed", "0")
    assert told["mean_log_likelihood"]["lower"] <= exact <= told["mean_log_likelihood"]["upper"]
    assert answer("score", small / "m.gibbs", small / "data.csv", "--method", "exact")["mean_log_likelihood"] == exact


def test_a_large_machine_is_refused_with_the_way_out_and_bracketed(large):
    sentence = refused("score", large / "m.gibbs", large / "data.csv", "--method", "exact")
    assert "exact inference on 50 variables" in sentence
    assert sentence.endswith("or bracket log Z by --method ais")
    few = ("--method", "ais", "--samples", "20", "--betas", "100", "--seed", "0")
    text = printed("score", large / "m.gibbs", large / "data.csv", *few)
    assert text.startswith("mean log-likelihood per row: between -")
    assert "+-" in text
    told = answer("score", large / "m.gibbs", large / "data.csv", *few)
    assert told["mean_log_likelihood"]["lower"] < told["mean_log_likelihood"]["upper"] < -30


def test_disagreement_of_the_two_sides_is_said(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((400, 40)) < 0.95, rng.random((400, 1)) < 0.5, rng.random((400, 40)) < 0.5)
    gb.BoltzmannMachine("chain", learner="mle", l2=0.001).fit(rows.astype(int)).save(tmp_path / "m.gibbs")
    np.save(tmp_path / "data.npy", rows.astype(np.uint8))
    few = ("--method", "ais", "--samples", "20", "--betas", "3", "--seed", "0")
    result = run("score", tmp_path / "m.gibbs", tmp_path / "data.npy", *few)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: ")
    assert "--betas 3" in result.stderr
    assert "beware" in result.stdout


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--method", "magic"], "--method magic is not known: use one of exact, ais"),
        (["--method", "ais", "--pseudo"], "--pseudo needs no log Z: leave --method out"),
        (["--pseudo", "--per-row"], "leave --pseudo out"),
        (["--samples", "5"], "--samples and --betas belong to --method ais"),
        (["--out", "rows.csv"], "--out writes the log-likelihood of each row: add --per-row"),
        (["--method", "ais", "--betas", "0"], "--betas 0"),
    ],
)
def test_wrong_flags_of_score(small, flags, words):
    assert words in refused("score", small / "m.gibbs", small / "data.csv", *flags)


@pytest.mark.parametrize("method", ["mean-field", "bethe"])
def test_an_approximation_is_not_told_as_exact(method, tmp_path):
    path = tmp_path / "model.gibbs"
    gb.BoltzmannMachine(l2=0.1).fit([[1, 1, 1], [1, -1, -1], [-1, -1, 1], [-1, 1, -1], [1, 1, 1]]).save(path)
    told = run("expect", path, "--method", method, "--json")
    record = json.loads(told.stdout)
    assert record["approximate"] is True
    assert all(row["standard_error"] is None for row in record["means"])
    assert "approximation whose error is not known" in run("expect", path, "--method", method).stdout
    assert json.loads(run("expect", path, "--json").stdout)["approximate"] is False
