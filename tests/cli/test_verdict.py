"""What commands say of a fit that failed: on stderr in every mode, by an exit code, on top of the page."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cli_runner import printed, run
from report_pages import read_page

MODES = [(), ("--quiet",), ("--json",)]


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """Stand in a folder with a table."""
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--out-dir", ".").exit_code == 0
    return tmp_path


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", ["fit", "report"])
def test_an_unconverged_fit_warns_once_in_every_mode(fit_arguments, folder, command, mode):
    _, data, _, _, *drops = fit_arguments
    arguments = [command, data, "--out", folder / ("m.gibbs" if command == "fit" else "r.html"), *drops]
    result = run(*arguments, "--max-iter", "2", *mode)
    assert result.exit_code == 0
    first, *more = result.stderr.splitlines()
    assert first.startswith("warning: stopped at max_iter=2")
    assert first.endswith("raise --max-iter")
    assert "stopped" not in "".join(more)
    assert run(*arguments, "--max-iter", "2", "--strict", *mode).exit_code == 3


@pytest.mark.parametrize("mode", MODES)
def test_an_untrained_fit_warns_in_every_mode(tmp_path, mode):
    """Mean field ends at a model whose moments are not those of strongly related columns."""
    rng = np.random.default_rng(0)
    opinion = rng.random((500, 1)) < 0.5
    table = np.where(rng.random((500, 8)) < 0.9, opinion, ~opinion).astype(int)
    pd.DataFrame(table).add_prefix("x").to_csv(tmp_path / "t.csv", index=False)
    arguments = ["fit", tmp_path / "t.csv", "--out", tmp_path / "m.gibbs", "--learner", "mean-field"]
    result = run(*arguments, *mode)
    assert result.exit_code == 0
    assert result.stderr.count("standard errors from the data's") == 1
    assert run(*arguments, "--strict", *mode).exit_code == 3


def test_a_good_fit_says_nothing_and_passes_strict(votes):
    assert printed("fit", "votes.csv", "--quiet", "--strict") == ""
    told = json.loads(printed("fit", "votes.csv", "--json", "--strict"))
    assert told["verdict"] == {"status": "good", "problems": []}
    assert told["held_out"]["fitted"] > told["held_out"]["score"] > told["held_out"]["independent"]
    shown = printed("show", "votes.gibbs")
    assert "verdict:     good" in shown
    assert "independent columns -10.8" in shown
    assert "the best of 5 by log-likelihood in 3 folds" in shown


def test_an_overfitted_model_is_told_so(votes):
    result = run("fit", "votes.csv", "--l2", "0")
    assert "verdict:     bad" in result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: overfitted: held-out rows score -7.0")
    assert line.endswith("use --l2 auto")


def test_a_page_on_a_failed_fit_makes_no_claims(votes):
    assert run("report", "votes.csv", "--out", "bad.html", "--l2", "0").exit_code == 0
    page = read_page(votes / "bad.html")
    assert next(iter(page.sections)) == "verdict"
    assert "Overfitted" in page.sections["verdict"]
    assert {"class": "verdict bad"}.items() <= page.named("section")[0].items()
    assert not {"words", "network", "heat-map", "unusual", "parameters"} & set(page.sections)
    for claim in ("odds", "95% interval"):
        assert claim not in page.source.partition("<main")[2]


def test_a_page_on_a_good_fit_is_green(votes):
    assert run("report", "votes.csv", "--out", "good.html").exit_code == 0
    page = read_page(votes / "good.html")
    assert {"class": "verdict good"}.items() <= page.named("section")[0].items()
    assert "words" in page.sections


def test_a_page_on_a_model_that_nothing_checked_is_amber(tmp_path):
    """A model file without moments, held-out rows or data."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3))).add_prefix("x")
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["fit", tmp_path / "t.csv", "--out", tmp_path / "m.gibbs", "--model", "gaussian-mixture"]
    fit = run(*arguments, "--validation-fraction", 0, "--seed", 0, "--strict")
    assert fit.exit_code == 3
    assert "--validation-fraction 0.2" in fit.stderr
    run("report", tmp_path / "m.gibbs", "--out", tmp_path / "r.html")
    page = read_page(tmp_path / "r.html")
    assert {"class": "verdict unknown"}.items() <= page.named("section")[0].items()


def test_compare_warns_of_each_learner(folder):
    drops = ["--drop", "id", "--drop", "w", "--complete-rows"]
    result = run("compare", folder / "data.csv", *drops, "--max-iter", "2", "--quiet", "--json")
    assert result.exit_code == 0
    for learner in ("mle", "mple"):
        assert f"warning: {learner}: stopped at max_iter=2" in result.stderr
