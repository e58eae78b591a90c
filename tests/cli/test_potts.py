"""Survey columns of three values: ``--model potts`` from the table to every question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused, run

NAMES = ["food", "room", "staff"]
LABELS = np.array(["bad", "fair", "good"])


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    """Answers that agree more often than chance, with an id."""
    rng = np.random.default_rng(0)
    mood = rng.integers(0, 3, 200)
    columns = {name: LABELS[np.where(rng.random(200) < 0.6, mood, rng.integers(0, 3, 200))] for name in NAMES}
    return pd.DataFrame({"id": np.arange(200), **columns}).astype(object)


@pytest.fixture
def folder(tmp_path: Path, survey: pd.DataFrame) -> Path:
    survey.to_csv(tmp_path / "survey.csv", index=False)
    holes = survey.copy()
    holes.loc[3::23, "room"] = "?"
    holes.to_csv(tmp_path / "holes.csv", index=False)
    return tmp_path


@pytest.fixture
def model(folder: Path, survey: pd.DataFrame) -> Path:
    machine = gb.PottsMachine(l2=0.01).fit(survey[NAMES])
    machine.save(folder / "model.gibbs")
    return folder / "model.gibbs"


def fit(folder: Path, *flags: object, data: str = "survey.csv") -> tuple[object, ...]:
    return (
        "fit",
        folder / data,
        "--out",
        folder / "new.gibbs",
        "--model",
        "potts",
        "--drop",
        "id",
        "--l2",
        0.01,
        *flags,
    )


def test_fit_gives_the_library_s_own_answer(folder, survey):
    told = answer(*fit(folder))
    machine = gb.PottsMachine(l2=0.01).fit(survey[NAMES])
    loaded = gb.load(folder / "new.gibbs")
    np.testing.assert_array_equal(loaded.model_.theta, machine.model_.theta)
    assert (loaded.learner, loaded.l2) == ("auto", 0.01)
    assert told["provenance"]["learner"] == "mle"
    assert told["strongest_couplings"] == machine.strongest_couplings(10).to_dict("records")
    assert told["coding"]["labels"] == [LABELS.tolist()] * 3


def test_missing_cells_are_summed_out_by_the_exact_likelihood(folder):
    assert answer(*fit(folder, "--learner", "mle", data="holes.csv"))["provenance"]["missing_cells"] == 9


def test_show_says_the_gauge_and_names_the_values(model):
    text = printed("show", model, "--top", "1")
    for words in ("model:       potts", "gauge zero-sum", "strongest entries", "good"):
        assert words in text
    told = answer("show", model)
    machine = gb.load(model)
    assert {(row["column"], row["value"]): row["bias"] for row in told["biases"]} == machine.biases_.to_dict()
    top = told["strongest_entries"][0]
    entry = machine.couplings_.loc[(top["first"], top["first_value"]), (top["second"], top["second_value"])]
    assert top["coupling"] == pytest.approx(entry)
    assert abs(entry) == pytest.approx(machine.couplings_.abs().to_numpy().max())


def test_score_and_impute(folder, model, survey):
    machine = gb.load(model)
    told = answer("score", model, folder / "survey.csv")
    assert told["mean_log_likelihood"] == pytest.approx(machine.score(survey[NAMES]))
    assert answer("impute", model, folder / "holes.csv", "--out", folder / "full.csv")["filled_cells"] == 9
    full = pd.read_csv(folder / "full.csv")
    assert (full[["food", "staff"]] == survey[["food", "staff"]]).all(axis=None)
    assert full["room"].isin(LABELS).all()


def test_imputed_probabilities_have_a_column_for_each_value(folder, model):
    told = answer("impute", model, folder / "holes.csv", "--probabilities")
    values = pd.DataFrame(told["values"], columns=told["columns"])
    assert told["columns"][3:6] == ["room=bad", "room=fair", "room=good"]
    np.testing.assert_allclose(values.iloc[:, 3:6].sum(axis=1), 1.0)
    assert values.loc[3, "room=bad"] not in (0.0, 1.0)


def test_sample_gives_labels(model):
    header, *rows = printed("sample", model, "-n", "20", "--seed", "1").splitlines()
    assert header == "food,room,staff"
    assert {cell for row in rows for cell in row.split(",")} == set(LABELS)


def test_expect_gives_probabilities_of_values(model):
    told = answer("expect", model)
    of_food = [row for row in told["values"] if row["column"] == "food"]
    assert [row["value"] for row in of_food] == LABELS.tolist()
    assert sum(row["mean"] for row in of_food) == pytest.approx(1.0)
    pair = [row for row in told["pairs"] if (row["first"], row["second"]) == ("food", "room")]
    assert len(pair) == 9
    both = sum(row["mean"] for row in pair if row["first_value"] == "good")
    assert both == pytest.approx(of_food[2]["mean"])


def test_an_unseen_value_is_named_with_those_that_are_known(folder, model, survey):
    new = survey.copy()
    new.loc[7, "staff"] = "awful"
    new.to_csv(folder / "new.csv", index=False)
    for command in ("score", "impute"):
        sentence = refused(command, model, folder / "new.csv")
        assert "column 'staff' holds 'awful', which the model has not seen (it knows 'bad', 'fair', 'good')" in sentence
        assert "--column staff=" in sentence


def test_declared_categories_keep_their_order_and_may_be_unseen(folder):
    flags = ("--column", "staff=awful,bad,fair,good", "--column", "food=good,fair,bad")
    assert answer(*fit(folder, *flags))["coding"]["labels"] == [
        ["good", "fair", "bad"], ["bad", "fair", "good"], ["awful", "bad", "fair", "good"],
    ]  # fmt: skip
    assert answer(*fit(folder, "--categories", "bad,fair,good,best"))["coding"]["labels"][0][-1] == "best"
    assert "leave out what is said of all" in refused(*fit(folder, "--categories", "a,b", "--column", "food=d,e"))
    assert "--column zz=... names the column 'zz'" in refused(*fit(folder, "--column", "zz=a,b"))


def test_dummy_columns_are_put_together_and_later_data_too(folder, survey):
    dummies = pd.get_dummies(survey[NAMES]).astype(int)
    dummies.insert(0, "id", survey["id"])
    dummies.to_csv(folder / "dummies.csv", index=False)
    told = answer(*fit(folder, "--one-hot", "_", data="dummies.csv"))
    assert told["names"] == NAMES
    scored = answer("score", folder / "new.gibbs", folder / "dummies.csv")
    run(*fit(folder))
    assert scored == answer("score", folder / "new.gibbs", folder / "survey.csv")


def test_numbers_as_values(folder, survey):
    survey.replace({"bad": -1, "fair": 0, "good": 1}).to_csv(folder / "numbers.csv", index=False)
    told = answer(*fit(folder, "--coding", "values", data="numbers.csv"))
    assert told["coding"] == {"name": "values", "domain": "values", "labels": [[-1, 0, 1]] * 3}
    assert answer(*fit(folder, "--values", "-1,0,1,2", data="numbers.csv"))["coding"]["labels"][0] == [-1, 0, 1, 2]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--coding", "yes/no"], "'good', which is not a value of the coding yes/no"),
        (["--values", "1,x"], "--values 1,x must be numbers"),
        (["--learner", "nope"], "--learner nope is not known"),
        (["--graph", "grid:3x3"], "9 nodes"),
        (["--one-hot", "+"], "--one-hot + stands in no column's name"),
    ],
)
def test_wrong_flags_write_nothing(folder, flags, words):
    before = sorted(folder.iterdir())
    assert words in refused(*fit(folder, *flags))
    assert sorted(folder.iterdir()) == before


def test_pairwise_points_to_potts(folder):
    data = (folder / "survey.csv", "--out", folder / "new.gibbs", "--drop", "id", "--model", "pairwise")
    assert "--model potts" in refused("fit", *data)
    assert "--model potts" in refused("fit", *data, "--coding", "categorical")


def test_convert_is_of_two_valued_models(folder, model):
    assert "--convert rewrites two-valued columns" in refused("score", model, folder / "survey.csv", "--convert")


def test_compare_takes_the_model(folder):
    records = answer(
        "compare", folder / "survey.csv", "--model", "potts", "--drop", "id", "--learners", "mle,smci", "--l2", "0.01"
    )["learners"]
    assert [record["distance_to_mle"] < 0.02 for record in records] == [True, True]
    assert records[0]["distance_to_mle"] == 0.0
