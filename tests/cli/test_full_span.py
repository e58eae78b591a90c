"""``--model full-span``: from a table to its functions of any order, and back."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused, run


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """A parity of three columns, a pair, and noise."""
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, (300, 5))
    bits[:, 2] = bits[:, 0] ^ bits[:, 1] ^ (rng.random(300) < 0.1)
    bits[:, 4] = bits[:, 3] ^ (rng.random(300) < 0.2)
    return pd.DataFrame(np.where(bits, "yes", "no"), columns=list("abcde")).astype(object)


@pytest.fixture
def folder(tmp_path: Path, table: pd.DataFrame) -> Path:
    table.to_csv(tmp_path / "data.csv", index=False)
    gb.FullSpan().fit(table).save(tmp_path / "model.gibbs")
    return tmp_path


def fit(folder: Path, *flags: object) -> tuple[object, ...]:
    return ("fit", folder / "data.csv", "--out", folder / "new.gibbs", "--model", "full-span", *flags)


@pytest.mark.parametrize("learner", ["span-greedy", "span-newton"])
def test_fit_gives_the_library_s_own_answer(folder, table, learner):
    told = answer(*fit(folder, "--learner", learner, "--tol", "0.001"))
    machine = gb.FullSpan(learner, tol=0.001).fit(table)
    loaded = gb.load(folder / "new.gibbs")
    np.testing.assert_array_equal(loaded.model_.theta, machine.model_.theta)
    assert (loaded.learner, loaded.tol) == (learner, 0.001)
    assert told["size"]["cost"] == pytest.approx(machine.cost_)
    assert [row["variables"] for row in told["basis"]][:2] == [["a", "b", "c"], ["d", "e"]]


def test_show_prints_the_table_of_functions(folder):
    text = printed("show", folder / "model.gibbs")
    for words in ("model:       full-span", "divergence from the data", "a{no} b{no} c{no}", "penalty"):
        assert words in text
    assert len(answer("show", folder / "model.gibbs", "--top", "1")["basis"]) == 1


def test_questions(folder, table):
    machine, files = gb.load(folder / "model.gibbs"), (folder / "model.gibbs", folder / "data.csv")
    assert answer("score", *files)["mean_log_likelihood"] == pytest.approx(machine.score(table))
    assert answer("score", *files, "--pseudo")["mean_log_pseudolikelihood"] == pytest.approx(
        machine.pseudo_score(table)
    )
    means = {row["function"]: row["mean"] for row in answer("expect", folder / "model.gibbs")["functions"]}
    assert sorted(means.values()) == pytest.approx(sorted(machine.expect().value))
    rows = answer("sample", folder / "model.gibbs", "-n", "5", "--seed", "0")["values"]
    assert np.shape(rows) == (5, 5)
    assert answer("show", folder / "model.gibbs", "--method", "exact")["log_partition"]["exact"]


def test_missing_cells(folder, table):
    holes = table.copy()
    holes.loc[::20, "c"] = "?"
    holes.to_csv(folder / "holes.csv", index=False)
    assert answer("impute", folder / "model.gibbs", folder / "holes.csv")["filled_cells"] == 15
    holes.to_csv(folder / "data.csv", index=False)
    assert answer(*fit(folder))["provenance"]["missing_cells"] == 15


def test_labels_of_each_column_where_they_differ(folder):
    rng = np.random.default_rng(0)
    hair = rng.integers(0, 3, 200)
    frame = pd.DataFrame({"hair": np.array(["blond", "brown", "red"])[hair], "pale": np.where(hair == 2, "y", "n")})
    frame.to_csv(folder / "data.csv", index=False)
    assert answer(*fit(folder))["coding"]["labels"] == [["blond", "brown", "red"], ["n", "y"]]
    frame.loc[0, "hair"] = "green"
    frame.to_csv(folder / "data.csv", index=False)
    assert "column 'hair' holds 'green'" in refused("score", folder / "new.gibbs", folder / "data.csv")


def test_a_resumed_fit_is_bit_identical(folder):
    keeping = fit(folder, "--checkpoint", folder / "progress", "--every", "1")
    answer(*fit(folder))
    whole = gb.load(folder / "new.gibbs").model_.theta.tobytes()
    result = run(*keeping, "--max-iter", "1", "--json")
    assert "stopped at max_iter=1" in result.stderr
    assert answer(*keeping, "--resume")["converged"]
    assert gb.load(folder / "new.gibbs").model_.theta.tobytes() == whole


def test_ctrl_c_leaves_the_model_so_far(folder, monkeypatch):
    def press(step, info):
        if step == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("gibbsian.cli.fit._progress", lambda show: [press])
    result = run(*fit(folder))
    assert result.exit_code == 130
    assert "interrupted after 1 step" in result.stdout
    assert "--checkpoint" in result.stdout
    assert gb.load(folder / "new.gibbs").model_.theta.size == 1


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--learner", "magic"], "--learner magic is not known: use one of"),
        (["--tol", "-1"], "--tol -1 must be above 0"),
        (["--learner", "mle"], "--learner mle does not learn a FullSpan"),
    ],
)
def test_wrong_flags_write_nothing(folder, flags, words):
    assert words in refused(*fit(folder, *flags))
    assert not (folder / "new.gibbs").exists()


def test_methods_of_other_models_work_too(folder):
    model, rows = folder / "model.gibbs", folder / "data.csv"
    exact = answer("score", model, rows)["mean_log_likelihood"]
    between = answer("score", model, rows, "--method", "ais", "--betas", 200, "--seed", 0)["mean_log_likelihood"]
    assert between["lower"] <= exact <= between["upper"]
    assert np.shape(answer("sample", model, "-n", 5, "--method", "gibbs", "--seed", 0)["values"]) == (5, 5)
    drawn = answer("expect", model, "--samples", 4000, "--seed", 0)["functions"]
    assert all(0 < row["standard_error"] < 0.1 for row in drawn)


def test_every_penalty_reaches_the_fit(folder, table):
    strengths = {"l2": 0.01, "l2_growth": 3.0, "mdl_scale": 0.5, "l1": 0.002}
    flags = [text for name, value in strengths.items() for text in (f"--{name.replace('_', '-')}", value)]
    answer(*fit(folder, "--learner", "span-newton", *flags))
    expected = gb.FullSpan("span-newton", **strengths).fit(table)
    assert np.array_equal(gb.load(folder / "new.gibbs").model_.theta, expected.model_.theta)


def test_dense_needs_l2(folder, table):
    assert "--l2" in refused(*fit(folder, "--learner", "span-dense", "--l2", "0"))
    answer(*fit(folder, "--learner", "span-dense", "--l2", "0.01", "--l2-growth", "3"))
    expected = gb.FullSpan("span-dense", l2=0.01, l2_growth=3.0).fit(table)
    assert np.array_equal(gb.load(folder / "new.gibbs").model_.theta, expected.model_.theta)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_components": 2},
        {"n_components": (2, 3), "n_init": 2},
        {"learner": "span-l1", "l1": 0.02},
        {"learner": "span-l1", "l1": 0.02, "n_components": (2, 2)},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_hidden_variables_and_l1(folder, table, settings):
    written = {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value for name, value in settings.items()
    }
    flags = [text for name, value in written.items() for text in (f"--{name.replace('_', '-')}", value)]
    answer(*fit(folder, *flags, "--seed", 0))
    expected = gb.FullSpan(**settings, random_state=0).fit(table)
    loaded = gb.load(folder / "new.gibbs")
    assert np.array_equal(loaded.model_.theta, expected.model_.theta)
    assert answer("score", folder / "new.gibbs", folder / "data.csv")["mean_log_likelihood"] == pytest.approx(
        expected.score(table)
    )


def test_several_hidden_variables_answer_in_files(folder, table):
    answer(*fit(folder, "--n-components", "2,3", "--seed", 0))
    machine = gb.load(folder / "new.gibbs")
    told = answer("transform", folder / "new.gibbs", folder / "data.csv")
    assert told["columns"] == machine.get_feature_names_out().tolist()
    np.testing.assert_allclose(told["values"], machine.transform(table))
    drawn = answer("sample", folder / "new.gibbs", "-n", 4, "--hidden", "--seed", 0)
    assert drawn["columns"] == [*"abcde", "h0", "h1"]
    assert "--n-components 0 must be at least 1" in refused(*fit(folder, "--n-components", "2,0"))
