"""``--model hidden``: from the table to every question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused

NAMES = ["a", "b", "c"]
ROWS = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pd.DataFrame(np.where(ROWS, "yes", "no"), columns=NAMES).astype(object)
    table.to_csv(tmp_path / "xor.csv", index=False)
    table.loc[::7, "c"] = "?"
    table.to_csv(tmp_path / "holes.csv", index=False)
    return tmp_path


def fit(folder: Path, *flags: object, data: str = "xor.csv") -> tuple[object, ...]:
    settings = ("--model", "hidden", "--l2", 1e-4, "--seed", 1)
    return ("fit", folder / data, "--out", folder / "m.gibbs", *settings, *flags)


def test_fit_gives_the_library_s_own_answer(folder):
    told = answer(*fit(folder, "--n-components", 2, "--graph", "semi-restricted"))
    frame = pd.read_csv(folder / "xor.csv")
    own = gb.HiddenBoltzmannMachine(2, "semi-restricted", l2=1e-4, random_state=1).fit(frame)
    machine = gb.load(folder / "m.gibbs")
    np.testing.assert_allclose(machine.model_.theta, own.model_.theta, atol=1e-10)
    assert told["hidden"] == ["h0", "h1"]
    assert told["provenance"]["learner"] == "mle"
    assert told["provenance"]["missing_cells"] == 0


def test_questions(folder):
    printed(*fit(folder, "--n-components", 1, "--quiet", data="holes.csv"))
    model = folder / "m.gibbs"
    shown = answer("show", model)
    assert (shown["names"], shown["hidden"]) == (NAMES, ["h0"])
    assert set(shown["biases"]) == {*NAMES, "h0"}
    assert "3 columns, 1 hidden units" in printed("show", model)
    scored = answer("score", model, folder / "xor.csv")["mean_log_likelihood"]
    assert scored == pytest.approx(gb.load(model).score(pd.read_csv(folder / "xor.csv")), abs=1e-12)
    assert scored > -1.5
    between = answer("score", model, folder / "xor.csv", "--method", "ais", "-n", 50, "--betas", 200, "--seed", 0)
    assert between["mean_log_likelihood"]["lower"] <= scored <= between["mean_log_likelihood"]["upper"]
    assert answer("score", model, folder / "xor.csv", "--pseudo")["mean_log_pseudolikelihood"] > -0.2
    sampled = answer("sample", model, "-n", 4, "--seed", 0)
    assert (sampled["columns"], len(sampled["values"])) == (NAMES, 4)
    filled = answer("impute", model, folder / "holes.csv")
    assert filled["values"] == pd.read_csv(folder / "xor.csv").to_numpy().tolist()
    pairs = answer("expect", model)["pairs"]
    assert {"first": "c", "second": "h0"}.items() <= pairs[-1].items()


@pytest.mark.parametrize("learner", ["em", "mle"])
def test_learners_and_starts(folder, learner):
    flags = ("--n-components", 1, "--learner", learner, "--n-init", 2, "--tol", 1e-3)
    assert answer(*fit(folder, *flags))["provenance"]["learner"] == learner
    assert answer("score", folder / "m.gibbs", folder / "xor.csv")["mean_log_likelihood"] > -1.5


@pytest.mark.parametrize("clamped", ["mean-field", "exact"])
def test_clamped_phases_have_a_name(folder, clamped):
    told = answer(*fit(folder, "--n-components", 1, "--learner", "em", "--clamped", clamped))
    assert told["provenance"]["learner"] == "em"
    learner = gb.learning.LEARNERS.factory("em")(clamped=clamped, l2=1e-4)
    own = gb.HiddenBoltzmannMachine(1, learner=learner, random_state=1).fit(pd.read_csv(folder / "xor.csv"))
    np.testing.assert_allclose(gb.load(folder / "m.gibbs").model_.theta, own.model_.theta, atol=1e-10)


def test_a_file_of_edges_may_name_hidden_units(folder):
    (folder / "edges.csv").write_text("first,second\na,b\na,h0\nb,h0\nc,h0\n")
    answer(*fit(folder, "--n-components", 1, "--graph", folder / "edges.csv"))
    assert gb.load(folder / "m.gibbs").model_.family.graph.edges.tolist() == [[0, 1], [0, 3], [1, 3], [2, 3]]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--n-components", "2,3"), "--n-components 2,3 must be a whole number"),
        (("--n-components", "two"), "--n-components two must be a whole number"),
        (("--n-components", "0"), "--n-components 0 must be at least 1"),
        (
            ("--n-components", "1", "--learner", "mean-field"),
            "use one of auto, cd, em, mcl, mcmle, mle, mple",
        ),
        (
            ("--n-components", "1", "--learner", "em", "--clamped", "gibbs"),
            "--clamped gibbs is not known: use one of",
        ),
        (("--n-components", "1", "--graph", "empty"), "hidden unit 'h0' has no edge"),
        (("--n-components", "1", "--start", "bethe"), "--start bethe needs every unit to be visible"),
    ],
    ids=["layers", "word", "none", "learner", "clamped", "graph", "start"],
)
def test_refusals(folder, flags, words):
    assert words in refused(*fit(folder, *flags))


def test_a_machine_of_columns_has_no_restricted_graph(folder):
    sentence = refused("fit", folder / "xor.csv", "--out", folder / "m", "--graph", "restricted")
    assert "restricted is not known" in sentence


def test_a_learner_without_a_clamped_phase_has_no_such_flag(folder):
    sentence = refused(*fit(folder, "--learner", "mle", "--clamped", "pcd"), code=2)
    assert "--clamped does not belong to --model hidden --learner mle" in sentence
