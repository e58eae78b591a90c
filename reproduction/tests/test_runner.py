"""Trials on workers, on disk, and after an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import BrokenExecutor
from pathlib import Path

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian_reproduction import trial_files
from gibbsian_reproduction.experiment import EXPERIMENTS, Experiment
from gibbsian_reproduction.runner import WorkerLostError, _pool, run, run_many
from gibbsian_reproduction.trial_files import TrialFile, fingerprint

NAME = "h06-theorem1"


@pytest.fixture
def toy(monkeypatch, request):
    """Return a function that registers an experiment for the time of a test."""

    def register(trial, **settings) -> str:
        name = f"toy-{request.node.name}"
        experiment = Experiment("TOY", "1", "a toy", trial, (), None, (), **settings)
        monkeypatch.setitem(EXPERIMENTS._factories, name, lambda: experiment)
        return name

    EXPERIMENTS.names()
    return register


def identical(one, other) -> bool:
    return one.values.keys() == other.values.keys() and all(
        one[name].tobytes() == other[name].tobytes() for name in one.values
    )


@pytest.mark.long
def test_results_depend_neither_on_workers_nor_on_other_experiments(tmp_path):
    alone = run(NAME, 4, 3, tmp_path / "one", workers=1)
    together = dict(run_many(["yk15-kmeans", NAME], 4, 3, tmp_path / "two", workers=2))
    assert identical(alone, together[NAME])
    assert not identical(alone, run(NAME, 4, 4, tmp_path / "one", workers=1))


def test_asking_for_more_makes_the_missing_trials_only(tmp_path, toy):
    made = []

    def trial(rng):
        made.append(1)
        return {"value": rng.random()}

    name = toy(trial)
    few = run(name, 2, 0, tmp_path, workers=1)
    more = run(name, 5, 0, tmp_path, workers=1)
    assert len(made) == 5
    assert np.array_equal(more["value"][:2], few["value"])
    assert identical(run(name, 2, 0, tmp_path, workers=1), few)
    assert len(made) == 5
    assert len(set(more["value"])) == 5


def test_heavy_experiments_make_fewer_trials(tmp_path, toy):
    name = toy(lambda rng: {"value": 0.0}, trials_of=lambda asked: asked // 10)
    assert run(name, 40, 0, tmp_path, workers=1).n_trials == 4
    assert run(name, 3, 0, tmp_path, workers=1).n_trials == 1


def test_times_are_measured_in_this_process(tmp_path, toy):
    name = toy(lambda rng: {"process": os.getpid()}, timed=True)
    assert set(run(name, 3, 0, tmp_path, workers=2)["process"]) == {os.getpid()}


def test_a_line_that_was_cut_off_is_made_again(tmp_path):
    whole = run(NAME, 3, 0, tmp_path, workers=1)
    path = TrialFile(tmp_path, NAME, 0).path
    path.write_bytes(path.read_bytes()[:-30])
    assert sorted(TrialFile(tmp_path, NAME, 0).done) == [0, 1]
    assert path.read_bytes().endswith(b"\n")
    assert identical(run(NAME, 3, 0, tmp_path, workers=1), whole)


def test_trials_of_another_version_are_not_mixed_in(tmp_path, monkeypatch):
    run(NAME, 2, 0, tmp_path, workers=1)
    monkeypatch.setattr(trial_files, "fingerprint", lambda name, seed: fingerprint(name, seed) | {"sources": "others"})
    assert TrialFile(tmp_path, NAME, 0).done == {}


def test_the_fingerprint_follows_the_modules_that_an_experiment_needs():
    names = [path.name for path in trial_files._with_imports("y18_table_1")]
    assert names == ["spatial_boundaries.py", "y18.py", "y18_forests.py", "y18_table_1.py"]
    assert fingerprint(NAME, 0) != fingerprint(NAME, 1)
    assert fingerprint(NAME, 0)["sources"] != fingerprint("yk15-vmf", 0)["sources"]


def test_the_fingerprint_follows_kernels_too():
    assert "spatial_learning.py" in [path.name for path in trial_files._with_imports("yu20_figure_7")]
    assert "span_plain.py" in [path.name for path in trial_files._with_imports("ta22_algorithms")]


def test_warnings_are_counted_and_errors_name_their_trial(tmp_path, toy):
    def trial(rng):
        if len(made) == 3:
            raise ZeroDivisionError("no")
        made.append(warnings.warn("something  is odd", UserWarning, stacklevel=1))
        return {"value": 1.0}

    made: list[None] = []
    name = toy(trial)
    assert run(name, 2, 0, tmp_path, workers=1).warnings == ("something is odd (2 of 2 trials)",)
    with pytest.raises(ZeroDivisionError) as caught:
        run(name, 5, 7, tmp_path, workers=1)
    assert caught.value.__notes__ == [f"in trial 1 of {name} with seed 7"]
    assert sorted(TrialFile(tmp_path, name, 7).done) == [0]


@pytest.mark.parametrize("settings", [{"trials": 0}, {"workers": 0}], ids=["trials", "workers"])
def test_numbers_below_one_are_refused(tmp_path, settings):
    with pytest.raises(ArgumentError, match="must be at least 1"):
        run(NAME, out=tmp_path, **settings)


def test_a_lost_worker_says_that_the_command_goes_on():
    with pytest.raises(WorkerLostError, match="the same command goes on from there"), _pool(1):
        raise BrokenExecutor


def test_trials_run_on_a_cluster(tmp_path):
    pytest.importorskip("distributed")
    from gibbsian.cluster.connection import connected

    with connected("local") as client:
        ((_, there),) = run_many([NAME], 3, 0, tmp_path / "there", client=client)
    assert identical(there, run(NAME, 3, 0, tmp_path / "here", workers=1))


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.long
def test_a_killed_run_goes_on_to_the_same_bits_and_leaves_no_process_behind(tmp_path):
    n_trials = 40
    call = f"run({NAME!r}, {n_trials}, 0, {str(tmp_path)!r}, 2)"
    script = tmp_path / "script.py"
    script.write_text(f"from gibbsian_reproduction.runner import run\n\nif __name__ == '__main__':\n    {call}\n")
    path = tmp_path / trial_files.FOLDER / f"{NAME}-0.jsonl"
    process = subprocess.Popen([sys.executable, str(script)], start_new_session=True)
    wait_until(lambda: n_lines(path) > 3, "no trial was made")
    process.kill()
    process.wait()
    wait_until(lambda: group_has_ended(process.pid), "workers outlive their parent")
    done = len(TrialFile(tmp_path, NAME, 0).done)
    assert 0 < done < n_trials
    resumed = run(NAME, n_trials, 0, tmp_path, workers=1)
    assert identical(resumed, run(NAME, n_trials, 0, tmp_path / "whole", workers=1))


def n_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def group_has_ended(group: int) -> bool:
    try:
        os.killpg(group, signal.SIGCONT)
    except ProcessLookupError:
        return True
    return False


def wait_until(condition, otherwise: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)
