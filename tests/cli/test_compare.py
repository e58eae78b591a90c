"""``gibbsian compare``."""

from __future__ import annotations

from cli_runner import answer, refused, run

TABLE = ("--drop", "id", "--drop", "w", "--complete-rows")
COMPARE = (*TABLE, "--learners", "mle,mple", "--l2", "0.01")


def test_compare_prints_one_table(folder):
    result = run("compare", folder / "data.csv", *COMPARE, "--seed", "1")
    assert result.exit_code == 0, result.stderr
    for words in ("mle", "mple", "distance to mle", "converged after"):
        assert words in result.stdout


def test_compare_as_json(folder):
    records = answer("compare", folder / "data.csv", *COMPARE)["learners"]
    assert [record["learner"] for record in records] == ["mle", "mple"]
    assert records[0]["distance_to_mle"] == 0.0
    assert records[0]["score_kind"] == "log-likelihood"


def test_compare_refuses_unknown_learners_before_fitting(folder):
    assert "magic is not known: use one of" in refused("compare", folder / "data.csv", "--learners", "mle,magic")
    assert "--learners names none" in refused("compare", folder / "data.csv", "--learners", ",")
