"""Questions to a fitted pairwise machine: show, score, sample, expect, impute."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, run

NAMES = ["a", "b", "c", "d"]


def test_show(folder):
    result = run("show", folder / "model.gibbs")
    assert result.exit_code == 0
    for word in ("yes/no (no/yes)", "a, b, c, d", "6 couplings", "converged after", "200 rows, 6 missing cells"):
        assert word in result.stdout
    told = answer("show", folder / "model.gibbs", "--top", "2")
    assert told["names"] == NAMES
    assert len(told["strongest_couplings"]) == 2
    assert told["biases"] == gb.load(folder / "model.gibbs").biases_.to_dict()


def test_score(folder, table):
    told = answer("score", folder / "model.gibbs", folder / "data.csv", "--per-row")
    rows = gb.load(folder / "model.gibbs").score_samples(table[NAMES])
    np.testing.assert_allclose(told["per_row"], rows)
    assert told["rows"] == 200
    assert told["mean_log_likelihood"] == pytest.approx(rows.mean())
    assert f"{rows.mean():.6f} nats over 200 rows" in run("score", folder / "model.gibbs", folder / "data.csv").stdout


def test_scores_stand_beside_what_names_the_rows(folder, table):
    asked = "score", folder / "model.gibbs", folder / "data.csv", "--per-row"
    scores = gb.load(folder / "model.gibbs").score_samples(table[NAMES])
    assert answer(*asked, "--weights", "w")["identifiers"] == {"id": table["id"].tolist()}
    assert run(*asked, "--out", folder / "scores.csv").exit_code == 0
    written = pd.read_csv(folder / "scores.csv")
    assert list(written) == ["id", "w", "log_likelihood"]
    assert written["id"].tolist() == table["id"].tolist()
    np.testing.assert_allclose(written["log_likelihood"], scores)


def test_score_weighs_rows(folder, table):
    told = answer("score", folder / "model.gibbs", folder / "data.csv", "--weights", "w")
    rows = gb.load(folder / "model.gibbs").score_samples(table[NAMES])
    assert told["mean_log_likelihood"] == pytest.approx(np.average(rows, weights=table["w"]))


def test_score_writes_rows_to_a_file(folder):
    told = answer("score", folder / "model.gibbs", folder / "data.csv", "--per-row", "--out", folder / "rows.csv")
    assert pd.read_csv(folder / "rows.csv")["log_likelihood"].mean() == pytest.approx(told["mean_log_likelihood"])


def test_score_of_converted_data_is_the_same(folder, table):
    spins = table[NAMES].replace({"yes": 1, "no": -1, "?": np.nan})
    spins.to_csv(folder / "spins.csv", index=False)
    told = answer("score", folder / "model.gibbs", folder / "spins.csv", "--convert")
    assert told == answer("score", folder / "model.gibbs", folder / "data.csv")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_sample_writes_every_format(folder, suffix):
    told = answer("sample", folder / "model.gibbs", "-n", "50", "--seed", "3")
    out = folder / f"rows{suffix}"
    assert run("sample", folder / "model.gibbs", "-n", "50", "--seed", "3", "--out", out).exit_code == 0
    data = gb.Dataset.read(out, coding="yes/no")
    assert data.decode(data.states)[data.row_of].tolist() == told["values"]


def test_sample_by_gibbs_sampling_to_stdout(folder):
    result = run("sample", folder / "model.gibbs", "-n", "7", "--seed", "0", "--method", "gibbs")
    header, *rows = result.stdout.splitlines()
    assert header == "a,b,c,d"
    assert len(rows) == 7
    assert {cell for row in rows for cell in row.split(",")} <= {"yes", "no"}


def test_expect(folder):
    told = answer("expect", folder / "model.gibbs", "--method", "exact")
    estimate = gb.load(folder / "model.gibbs").expect("exact")
    assert [row["column"] for row in told["means"]] == NAMES
    assert [(row["first"], row["second"]) for row in told["pairs"]][:2] == [("a", "b"), ("a", "c")]
    assert [row["mean"] for row in told["means"] + told["pairs"]] == estimate.value.tolist()
    assert all(row["standard_error"] == 0 for row in told["pairs"])


def test_expect_by_sampling_has_errors_and_a_seed(folder):
    command = ("expect", folder / "model.gibbs", "--method", "monte-carlo", "--seed", "1")
    told = answer(*command)
    assert all(row["standard_error"] > 0 for row in told["means"])
    assert told == answer(*command)
    assert "values are 0 for 'no' and 1 for 'yes'" in run(*command).stdout


def test_expect_without_biases_lists_pairs_only(fit_arguments, folder):
    run(*fit_arguments, "--no-bias")
    told = answer("expect", folder / "new.gibbs")
    assert told["means"] == []
    assert len(told["pairs"]) == 6


def test_impute_fills_the_missing_cells_only(folder, table):
    told = answer("impute", folder / "model.gibbs", folder / "data.csv", "--out", folder / "full.csv")
    assert told["filled_cells"] == (table["c"] == "?").sum() > 0
    full = pd.read_csv(folder / "full.csv")
    present = table[NAMES] != "?"
    assert list(full.columns) == list(table.columns)
    assert full["id"].tolist() == table["id"].tolist()
    assert (full[NAMES][present] == table[NAMES][present]).where(present, True).all(axis=None)
    assert full["c"].isin(["yes", "no"]).all()


def test_filled_tables_keep_their_types(folder, table):
    held = table.replace({"c": {"?": None}}).astype({"a": "category", "c": "category"})
    held.to_parquet(folder / "data.parquet", index=False)
    for target in ("full.parquet", "full.csv"):
        answer("impute", folder / "model.gibbs", folder / "data.parquet", "--out", folder / target)
    full = pd.read_parquet(folder / "full.parquet")
    pd.testing.assert_series_equal(full.dtypes, pd.read_parquet(folder / "data.parquet").dtypes)
    assert full["c"].notna().all()
    assert pd.read_csv(folder / "full.csv")["c"].tolist() == full["c"].tolist()
    answer("impute", folder / "model.gibbs", folder / "data.csv", "--out", folder / "typed.parquet")
    assert pd.read_parquet(folder / "typed.parquet")["w"].dtype == np.int64


def test_unusual_rows_and_cells(folder, table):
    told = answer("unusual", folder / "model.gibbs", folder / "data.csv", "--top", 4)
    machine = gb.load(folder / "model.gibbs")
    assert [row["id"] for row in told["unusual_rows"]] == machine.unusual(table, 4)["id"].tolist()
    assert len(told["unusual_cells"]) == 4
    assert told["unusual_cells"][0]["probability"] < 0.5
    answer("unusual", folder / "model.gibbs", folder / "data.csv", "--cells", "--out", folder / "cells.csv")
    assert pd.read_csv(folder / "cells.csv")["likelier"].isin(["yes", "no"]).all()
    assert "likelier" in printed("unusual", folder / "model.gibbs", folder / "data.csv")


def test_impute_probabilities(folder, table):
    told = answer("impute", folder / "model.gibbs", folder / "data.csv", "--probabilities")
    values = np.array(told["values"])
    np.testing.assert_allclose(values, gb.load(folder / "model.gibbs").predict_proba(table[NAMES]))
    hole = (table["c"] == "?").to_numpy()
    assert ((values[hole, 2] > 0) & (values[hole, 2] < 1)).all()


def test_predict(folder, table):
    machine = gb.load(folder / "model.gibbs")
    told = answer("predict", folder / "model.gibbs", folder / "data.csv", "--columns", "b")
    assert told["columns"] == ["b"]
    assert [row[0] for row in told["values"]] == machine.predict(table[NAMES], columns="b").tolist()
    shares = answer("predict", folder / "model.gibbs", folder / "data.csv", "--columns", "b,d", "--probabilities")
    assert shares["columns"] == ["b=no", "b=yes", "d=no", "d=yes"]
    np.testing.assert_allclose(shares["values"], np.hstack(machine.predict_proba(table[NAMES], columns=["b", "d"])))
    both = answer("predict", folder / "model.gibbs", folder / "data.csv", "--columns", "b,d", "--joint")
    assert both["values"] == machine.predict(table[NAMES], columns=["b", "d"], losses="joint").tolist()
    law = answer(
        "predict", folder / "model.gibbs", folder / "data.csv", "--columns", "b,d", "--joint", "--probabilities"
    )
    assert law["columns"][1] == "b=no d=yes"
    np.testing.assert_allclose(np.sum(law["values"], axis=1), 1.0)


def test_predict_by_losses_from_a_table_without_the_column(folder, table):
    path = folder / "without.csv"
    table.drop(columns="b").to_csv(path, index=False)
    always = answer("predict", folder / "model.gibbs", path, "--columns", "b", "--losses", "0,1;1000,0")
    assert {row[0] for row in always["values"]} == {"yes"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--columns", "z"), "does not have"),
        (("--columns", "b", "--losses", "0,1;x"), "must be numbers"),
        (("--columns", "b", "--losses", "0,1"), "as many rows"),
        (("--columns", "b", "--losses", "0,1;1,0", "--joint"), "leave"),
    ],
)
def test_predict_refuses(folder, flags, words):
    result = run("predict", folder / "model.gibbs", folder / "data.csv", *flags)
    assert result.exit_code != 0
    assert words in result.stderr


def test_fit_by_conditional_likelihood(folder, table):
    out = folder / "told.gibbs"
    flags = ["--drop", "id", "--drop", "w", "--learner", "mcl", "--targets", "b", "--l2", "0.01"]
    result = run("fit", folder / "data.csv", *flags, "--out", out)
    assert result.exit_code == 0, result.stderr
    learner = gb.learning.MCL(targets="b", l2=0.01)
    np.testing.assert_array_equal(
        gb.load(out).model_.theta, gb.BoltzmannMachine(learner=learner).fit(gb.load(out).read(table)).model_.theta
    )
