"""Cliques of three and more: ``--model higher-order``, with every way to say what interacts and how it is learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def spins() -> pd.DataFrame:
    """A third-order interaction of a, b and c; d is noise."""
    rng = np.random.default_rng(3)
    x = rng.choice([-1, 1], (300, 4))
    x[:, 2] = x[:, 0] * x[:, 1] * np.where(rng.random(300) < 0.8, 1, -1)
    return pd.DataFrame(x, columns=NAMES)


@pytest.fixture
def folder(tmp_path: Path, spins: pd.DataFrame) -> Path:
    spins.to_csv(tmp_path / "spins.csv", index=False)
    gb.HigherOrderBoltzmannMachine(order=3).fit(spins).save(tmp_path / "model.gibbs")
    return tmp_path


def fit(folder: Path, *flags: object) -> tuple[object, ...]:
    return ("fit", folder / "spins.csv", "--out", folder / "new.gibbs", "--model", "higher-order", *flags)


def test_the_third_order_weight_is_found(folder, spins):
    told = answer(*fit(folder, "--order", "3"))
    machine = gb.HigherOrderBoltzmannMachine(order=3).fit(spins)
    np.testing.assert_array_equal(gb.load(folder / "new.gibbs").model_.theta, machine.model_.theta)
    strongest = told["strongest_weights"][0]
    assert strongest["clique"] == ["a", "b", "c"]
    assert strongest["weight"] == pytest.approx(np.log(4) / 2, abs=0.2)


def test_show_lists_cliques_by_name(folder):
    text = printed("show", folder / "model.gibbs", "--top", "1")
    assert "4 variables, 14 cliques, 3 variables in the largest" in text
    assert "a, b, c" in text
    assert list(answer("show", folder / "model.gibbs")["biases"]) == NAMES


def test_cliques_from_a_file_by_name_or_position(folder):
    (folder / "cliques.csv").write_text("a,b,c\n2,3\n")
    answer(*fit(folder, "--cliques", folder / "cliques.csv", "--no-bias"))
    assert list(gb.load(folder / "new.gibbs").model_.family.scopes) == [(2, 3), (0, 1, 2)]


def test_cliques_of_a_graph(folder):
    (folder / "edges.csv").write_text("a,b\nb,c\na,c\nc,d\n")
    answer(*fit(folder, "--graph", folder / "edges.csv"))
    assert list(gb.load(folder / "new.gibbs").model_.family.scopes)[4:] == [(0, 1), (0, 2), (1, 2), (2, 3), (0, 1, 2)]
    answer(*fit(folder, "--graph", folder / "edges.csv", "--order", "2"))
    assert max(map(len, gb.load(folder / "new.gibbs").model_.family.scopes)) == 2


@pytest.mark.parametrize("learner", ["mle", "mple", "smci"])
def test_learners_agree_about_the_strongest_weight(folder, learner):
    told = answer(*fit(folder, "--order", "3", "--learner", learner))
    assert told["converged"]
    assert told["provenance"]["learner"] == learner
    assert told["strongest_weights"][0]["weight"] == pytest.approx(0.7, abs=0.2)
    assert gb.load(folder / "new.gibbs").learner == learner


@pytest.mark.parametrize("region", ["1", "s2"])
def test_learners_by_chains(folder, region):
    told = answer(*fit(folder, "--order", "3", "--learner", "smci-pcd", "--region", region, "--seed", "0"))
    assert told["strongest_weights"][0]["clique"] == ["a", "b", "c"]


def test_the_region_of_smci(folder):
    for region in ("s2", "forest"):
        assert answer(*fit(folder, "--learner", "smci", "--region", region))["converged"]
    assert "--region does not belong to --model higher-order --learner mle" in refused(
        *fit(folder, "--learner", "mle", "--region", "2"), code=2
    )


def test_real_values(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice([-1, 0, 1], (200, 3)), columns=list("uvw"))
    frame.to_csv(folder / "spins.csv", index=False)
    told = answer(*fit(folder, "--order", "2", "--values", "-2,-1,0,1"))
    assert told["coding"]["labels"] == [[-2, -1, 0, 1]] * 3
    expected = answer("expect", folder / "new.gibbs")
    assert expected["cliques"][0]["mean"] == pytest.approx(frame["u"].mean(), abs=1e-4)
    scored = answer("score", folder / "new.gibbs", folder / "spins.csv")
    assert scored["mean_log_likelihood"] == pytest.approx(gb.load(folder / "new.gibbs").score(frame))


def test_expect_names_cliques(folder):
    told = answer("expect", folder / "model.gibbs")
    estimate = gb.load(folder / "model.gibbs").expect()
    assert [row["clique"] for row in told["cliques"]][-1] == ["b", "c", "d"]
    assert [row["mean"] for row in told["cliques"]] == estimate.value.tolist()


def test_sample_impute_and_convert(folder, spins):
    rows = pd.DataFrame(answer("sample", folder / "model.gibbs", "-n", "400", "--seed", "0")["values"], columns=NAMES)
    assert rows.prod(axis=1).abs().eq(1).all()
    assert (rows["a"] * rows["b"] * rows["c"]).mean() > 0.3
    holes = spins.astype(float)
    holes.loc[0, "c"] = np.nan
    holes.to_csv(folder / "holes.csv", index=False)
    filled = answer("impute", folder / "model.gibbs", folder / "holes.csv")["values"]
    assert filled[0][2] == spins.loc[0, "a"] * spins.loc[0, "b"]
    ((spins + 1) // 2).to_csv(folder / "binary.csv", index=False)
    told = answer("score", folder / "model.gibbs", folder / "binary.csv", "--convert")
    assert told == answer("score", folder / "model.gibbs", folder / "spins.csv")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--order", "0"], "--order 0 must be at least 1"),
        (["--cliques", "nowhere.csv"], "--cliques nowhere.csv is not a file"),
        (["--cliques", "{0}/cliques.csv", "--graph", "chain"], "--cliques and --graph both say what interacts"),
        (["--cliques", "{0}/cliques.csv"], "names 'zz', which the data does not have"),
        (["--cliques", "{0}/empty.csv"], "holds no cliques"),
    ],
)
def test_wrong_flags_write_nothing(folder, flags, words):
    (folder / "cliques.csv").write_text("a,zz\n")
    (folder / "empty.csv").write_text("\n")
    before = sorted(folder.iterdir())
    assert words in refused(*fit(folder, *(flag.format(folder) for flag in flags)))
    assert sorted(folder.iterdir()) == before
