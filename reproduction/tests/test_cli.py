"""``gibbsian-reproduce``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

import cli_runner
from gibbsian_reproduction.cli import reproduce
from gibbsian_reproduction.experiment import EXPERIMENTS
from gibbsian_reproduction.trial_files import FOLDER

NAME = "h06-theorem1"
CALLS = (cli_runner.answer, cli_runner.printed, cli_runner.refused, cli_runner.run)
answer, printed, refused, run = (partial(call, command=reproduce) for call in CALLS)


def test_the_list_names_every_experiment():
    listed = answer("--list")["experiments"]
    assert {entry["experiment"] for entry in listed} == set(EXPERIMENTS.names())
    assert [entry["paper"] for entry in listed if entry["experiment"] == NAME] == ["H06"]
    assert all(name in printed("--list") for name in EXPERIMENTS)


def test_an_experiment_is_told_and_written(tmp_path):
    told = printed(NAME, "--trials", 2, "--out", tmp_path / "new", "--workers", 1)
    assert "the gradient is zero at the true parameters: holds (" in told
    assert "4 of 4 claims hold; written:" in told
    assert {path.name for path in (tmp_path / "new").iterdir()} == {FOLDER, f"{NAME}.csv", f"{NAME}.json"}


def test_json_and_quiet(tmp_path):
    flags = (NAME, NAME, "--trials", 2, "--seed", 3, "--out", tmp_path, "--workers", 1)
    record = answer(*flags)
    assert (record["claims"], record["claims_that_hold"], record["page"]) == (4, 4, None)
    (experiment,) = record["experiments"]
    assert experiment == json.loads((tmp_path / f"{NAME}.json").read_text())
    assert experiment["seed"] == 3
    assert printed(*flags, "--quiet") == ""


def test_all_makes_one_page(tmp_path, monkeypatch):
    chosen = {name: EXPERIMENTS.factory(name) for name in (NAME, "yk15-kmeans")}
    monkeypatch.setattr(EXPERIMENTS, "_factories", chosen)
    monkeypatch.setattr(EXPERIMENTS, "_found", {})
    told = printed("all", "--trials", 2, "--out", tmp_path, "--workers", 1)
    assert "2 experiments: " in told
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in page for name in chosen)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("h06-fig", "--trials", 2), "did you mean h06-fig1"),
        (("qqqq",), "no experiment is called qqqq: gibbsian-reproduce --list"),
        ((), "name at least one experiment, or all"),
    ],
    ids=["near", "far", "none"],
)
def test_names_that_are_not_known_are_refused(arguments, told):
    assert told in refused(*arguments)


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    assert "is a file: give the name of a directory" in refused(NAME, "--out", tmp_path / "taken")
    assert run(NAME, "--trials", 0).exit_code == 2


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_ctrl_c_keeps_finished_trials_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "gibbsian_reproduction", NAME, "--trials", "100000", "--out", str(tmp_path)]
    process = subprocess.Popen([*command, "--workers", "2"], stderr=subprocess.PIPE, text=True, start_new_session=True)
    path, end = tmp_path / FOLDER / f"{NAME}-0.jsonl", time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < 4:
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.startswith("interrupted: ")
    assert "of 100000 trials are kept" in told
    assert len(told.splitlines()) == 1
    header, *trials = path.read_text().splitlines()
    assert json.loads(header)["experiment"] == NAME
    assert f"interrupted: {len(trials)} of" in told
    assert all(json.loads(trial)["values"] for trial in trials)
