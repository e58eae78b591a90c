"""``--model dbn`` and ``--model dbm``: from the table to every question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused
from gibbsian.answers import layers

NAMES = ["a", "b", "c", "d"]
ESTIMATORS = {"dbn": gb.DeepBeliefNetwork, "dbm": gb.DeepBoltzmannMachine}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = np.repeat(np.random.default_rng(0).random((60, 2)) < 0.5, 2, axis=1)
    pd.DataFrame(np.where(rows, "yes", "no"), columns=NAMES).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def fit(folder: Path, model: str, *flags: object) -> tuple[object, ...]:
    settings = ("--model", model, "--n-components", "4,3", "--max-iter", 3, "--seed", 1)
    return ("fit", folder / "rows.csv", "--out", folder / "m.gibbs", *settings, *flags)


@pytest.mark.parametrize("model", ESTIMATORS)
def test_fit_gives_the_library_s_own_answer(folder, model):
    told = answer(*fit(folder, model))
    own = ESTIMATORS[model]((4, 3), max_iter=3, random_state=1).fit(pd.read_csv(folder / "rows.csv"))
    machine = gb.load(folder / "m.gibbs")
    np.testing.assert_array_equal(machine.model_.theta, own.model_.theta)
    assert list(told["size"].values())[:3] == [4, 4, 3]
    assert told["reason"] == own.result_.reason


@pytest.mark.parametrize("model", ESTIMATORS)
def test_questions(folder, model):
    answer(*fit(folder, model, "--learner", "stacking"))
    scored = answer("score", folder / "m.gibbs", folder / "rows.csv")
    assert scored["mean_log_likelihood_lower_bound"] == pytest.approx(
        gb.load(folder / "m.gibbs").score(pd.read_csv(folder / "rows.csv"))
    )
    drawn = answer("sample", folder / "m.gibbs", "-n", 5)
    assert drawn["rows"] == 5
    shown = printed("show", folder / "m.gibbs")
    assert "4 binary hidden units of layer 1, 3 binary hidden units of layer 2" in shown


@pytest.mark.parametrize("model", ESTIMATORS)
def test_scores_say_what_they_are(folder, model):
    answer(*fit(folder, model))
    where = folder / "m.gibbs", folder / "rows.csv"
    each = printed("score", *where, "--per-row").splitlines()
    assert each[0] == "log_likelihood_lower_bound"
    assert len(each) == 61
    exact = answer("score", *where, "--method", "exact")["mean_log_likelihood"]
    exactly = answer("score", *where, "--method", "exact", "--per-row")
    assert np.mean(exactly["per_row"]) == pytest.approx(exact) == exactly["mean_log_likelihood"]
    ais = "--method", "ais", "--samples", 50, "--betas", 200, "--seed", 0
    between = answer("score", *where, *ais)["mean_log_likelihood"]
    assert np.mean([float(line) for line in each[1:]]) < exact + 0.1
    assert between["lower"] <= exact <= between["upper"]


def test_a_bound_alone_is_said_to_be_one(folder, monkeypatch):
    answer(*fit(folder, "dbm"))
    monkeypatch.setattr(layers, "MOST_TERMS", 0)
    where = folder / "m.gibbs", folder / "rows.csv", "--method", "ais", "--samples", 50, "--betas", 200
    assert "at least" in printed("score", *where)
    assert answer("score", *where)["mean_log_likelihood"]["upper"] is None


def test_missing_cells(folder):
    answer(*fit(folder, "dbm"))
    (folder / "holed.csv").write_text("a,b,c,d\nyes,,no,no\n")
    filled = answer("impute", folder / "m.gibbs", folder / "holed.csv")
    assert filled["filled_cells"] == 1
    assert [filled["values"][0][k] for k in (0, 2, 3)] == ["yes", "no", "no"]
    answer(*fit(folder, "dbn"))
    assert answer("impute", folder / "m.gibbs", folder / "holed.csv")["filled_cells"] == 1


@pytest.mark.parametrize("model", ["rbm", "dbm"])
def test_a_machine_learned_in_chunks_is_shown(folder, model):
    machine = {**ESTIMATORS, "rbm": gb.RestrictedBoltzmannMachine}[model](3, random_state=0)
    machine.partial_fit(pd.read_csv(folder / "rows.csv")).save(folder / "m.gibbs")
    assert "60 rows" in printed("show", folder / "m.gibbs")


def test_flags_of_other_models_are_refused(folder):
    assert "--fine-tune does not belong to --model dbm" in refused(*fit(folder, "dbm", "--fine-tune", 2), code=2)
    assert "--n-components 4,3 must be a whole number" in refused(*fit(folder, "rbm"))


@pytest.mark.parametrize("model", ["rbm", *ESTIMATORS])
def test_settings_are_refused_as_flags(folder, model):
    settings = ("fit", folder / "rows.csv", "--out", folder / "m.gibbs", "--model", model, "--n-components", "4")
    if model == "dbn":
        assert "--learner minibatch does not learn a DeepBeliefNetwork" in refused(*settings, "--learner", "minibatch")
        return
    assert "--n-chains 0 must be at least 1" in refused(*settings, "--learner", "minibatch", "--n-chains", 0)
    assert "--free-phase xx is not known" in refused(*settings, "--learner", "minibatch", "--free-phase", "xx")
