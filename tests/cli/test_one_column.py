"""A table of one column: whatever it holds, models of it are learned, shown, asked and drawn from."""

import numpy as np
import pytest

import gibbsian as gb
from cli_runner import printed, refused, run

CELLS = {
    "binary": "0 1 1 0 1",
    "labels": "yes no yes no no",
    "categorical": "x y x z y",
    "words in order": "low mid high mid low",
    "ordinal": "1 2 3 2 1 3 2 4",
    "continuous": "1.5 2.25 0.7 3.1 -2.4 1.1",
}


@pytest.fixture(params=CELLS, name="table")
def one_column(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("\n".join(["a", *CELLS[request.param].split(), ""]))
    return request.param


def test_every_question(table, tmp_path):
    assert "model written to one.gibbs" in printed("fit", "one.csv", "--seed", "0")
    assert printed("show", "one.gibbs")
    assert len(printed("sample", "one.gibbs", "-n", "3", "--seed", "0").splitlines()) == 4
    if table == "continuous":
        assert "real numbers" in refused("query", "one.gibbs", "H(a)")
    else:
        assert printed("query", "one.gibbs", "H(a)")
    assert printed("expect", "one.gibbs")
    assert printed("score", "one.gibbs", "one.csv")
    for asked in ["one.csv"], ["one.gibbs"], ["one.gibbs", "--data", "one.csv"]:
        assert printed("report", *asked, "--out", "page.html")
        assert (tmp_path / "page.html").stat().st_size > 1000


def test_probabilities_are_the_shares_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("a\nx\ny\nx\nz\ny\n")
    machine = gb.PottsMachine(learner="mle", l2=0, tol=1e-9).fit(tmp_path / "one.csv")
    assert machine.query("P(a)")["probability"].tolist() == pytest.approx([0.4, 0.4, 0.2], abs=1e-6)
    assert machine.tables()["strongest entries"].empty


def test_a_fit_that_fails_leaves_no_file(tmp_path, monkeypatch):
    def broken(self, n=10):
        raise RuntimeError("tables")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("a,b\n0,1\n1,1\n1,0\n0,0\n")
    monkeypatch.setattr(gb.BoltzmannMachine, "tables", broken)
    assert run("fit", "one.csv").exit_code == 70
    assert not (tmp_path / "one.gibbs").exists()


def test_a_report_on_a_single_row(tmp_path, monkeypatch):
    """No cell of a column is left from which a hidden one could be guessed."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).integers(0, 2, (40, 12))
    gb.BoltzmannMachine(learner="mple", l2=0.1).fit(rows).save("machine.gibbs")
    (tmp_path / "row.csv").write_text("\n".join([",".join(f"x{k}" for k in range(12)), ",".join("01" * 6), ""]))
    result = run("report", "machine.gibbs", "--data", "row.csv", "--out", "page.html")
    assert result.exit_code == 0, result.stderr
