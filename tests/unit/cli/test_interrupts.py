"""Ctrl-C during a fit."""

from __future__ import annotations

import signal
from contextlib import contextmanager

import pytest

import gibbsian as gb
from cli_runner import run
from gibbsian.cli.interrupts import stopping_on_interrupt


def _interrupting(at: int, times: int = 1):
    """A progress bar whose callback presses Ctrl-C."""

    @contextmanager
    def progress(*_, **__):
        def press(step: int, info: object) -> None:
            if step == at:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)

        yield press

    return progress


def test_ctrl_c_finishes_the_step_and_leaves_the_model(fit_arguments, folder, monkeypatch):
    monkeypatch.setattr("gibbsian.cli.fit_machine.fit_progress", _interrupting(at=3))
    result = run(*fit_arguments, "--learner", "mle")
    assert result.exit_code == 130
    assert result.stderr.startswith("stopping after this step")
    assert "fit:         interrupted, gradient" in result.stdout
    machine = gb.load(folder / "new.gibbs")
    assert not machine.result_.converged
    assert machine.result_.n_steps == 4
    assert machine.learner == "mle"


def test_an_interrupted_fit_can_be_resumed_to_the_same_bits(fit_arguments, folder, monkeypatch):
    fit = [*fit_arguments, "--learner", "mle"]
    assert run(*fit).exit_code == 0
    whole = gb.load(folder / "new.gibbs").model_.theta.tobytes()
    keeping = [*fit, "--checkpoint", folder / "progress", "--checkpoint-every", "2"]
    with monkeypatch.context() as patched:
        patched.setattr("gibbsian.cli.fit_machine.fit_progress", _interrupting(at=5))
        assert run(*keeping).exit_code == 130
    assert gb.load(folder / "new.gibbs").model_.theta.tobytes() != whole
    assert run(*keeping, "--resume").exit_code == 0
    assert gb.load(folder / "new.gibbs").model_.theta.tobytes() == whole


def test_a_second_ctrl_c_ends_at_once_and_writes_nothing(fit_arguments, folder, monkeypatch):
    monkeypatch.setattr("gibbsian.cli.fit_machine.fit_progress", _interrupting(at=3, times=2))
    result = run(*fit_arguments)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "interrupted"
    assert not (folder / "new.gibbs").exists()


def test_the_handler_goes_away_with_the_fit():
    before = signal.getsignal(signal.SIGINT)
    with stopping_on_interrupt() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
