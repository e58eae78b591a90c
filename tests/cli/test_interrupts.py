"""Ctrl-C during a fit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import gibbsian as gb
from cli_runner import run


@pytest.fixture
def press(monkeypatch):
    """Press Ctrl-C after some step of the next fits."""

    def pressing(at: int, times: int = 1) -> None:
        def on_step(step: int, info: object) -> None:
            if step == at:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr("gibbsian.cli.fit._progress", lambda show: [on_step])

    return pressing


def test_ctrl_c_finishes_the_step_and_leaves_the_model(fit_arguments, folder, press):
    press(at=3)
    result = run(*fit_arguments, "--learner", "mle")
    assert result.exit_code == 130
    assert result.stderr.startswith("stopping after this step")
    assert "fit:         interrupted after 3 steps, the model so far is kept" in result.stdout
    machine = gb.load(folder / "new.gibbs")
    assert not machine.result_.converged
    assert machine.result_.n_steps == 3
    assert machine.learner == "mle"


def test_an_interrupted_fit_can_be_resumed_to_the_same_bits(fit_arguments, folder, press):
    fit = [*fit_arguments, "--learner", "mle"]
    assert run(*fit).exit_code == 0
    whole = gb.load(folder / "new.gibbs").model_.theta.tobytes()
    keeping = [*fit, "--checkpoint", folder / "progress", "--every", "2"]
    press(at=5)
    stopped = run(*keeping)
    assert stopped.exit_code == 130
    assert f"resume with --checkpoint {folder / 'progress'} --resume" in stopped.stdout
    assert gb.load(folder / "new.gibbs").model_.theta.tobytes() != whole
    press(at=0)
    assert run(*keeping, "--resume").exit_code == 0
    assert gb.load(folder / "new.gibbs").model_.theta.tobytes() == whole


def test_a_second_ctrl_c_ends_at_once_and_writes_nothing(fit_arguments, folder, press):
    press(at=3, times=2)
    result = run(*fit_arguments)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "interrupted"
    assert not (folder / "new.gibbs").exists()


def test_the_handler_goes_away_with_the_fit(fit_arguments):
    before = signal.getsignal(signal.SIGINT)
    assert run(*fit_arguments).exit_code == 0
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("where", ["demo.callback", "App.main"])
def test_an_interrupt_in_text_that_python_executes_is_exit_130_too(where, tmp_path):
    # Python would end by SIGINT, as it remembers such an interrupt; a dataclass or a named tuple is such a text
    text = f"from gibbsian.cli.main import *\n{where} = lambda *_, **__: exec('raise KeyboardInterrupt')\nrun()"
    (tmp_path / "stopped.py").write_text(text)
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    ended = subprocess.run(
        [sys.executable, "-m", "stopped", "demo"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")
