"""What the command line says on the way: warnings, interrupts, progress, help."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import printed, refused, run
from gibbsian.cli.compilation import announce_compilation
from gibbsian.cli.fit import fit
from gibbsian.cli.guard import speller
from gibbsian.cli.progress import Bar
from gibbsian.learning.optimizers import StepInfo

TESTS = Path(__file__).parents[1]


def test_warnings_are_one_line_on_stderr(fit_arguments):
    result = run(*fit_arguments, "--max-iter", "2", "--json")
    assert json.loads(result.stdout)["converged"] is False
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: stopped at max_iter=2")


def test_an_interrupt_is_one_line(folder, monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.load", _raiser(KeyboardInterrupt()))
    result = run("show", folder / "model.gibbs")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_an_unexpected_error_says_that_it_is_a_bug(folder, monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.load", _raiser(RuntimeError("no\nsuch luck")))
    sentence = refused("show", folder / "model.gibbs", code=70)
    assert "RuntimeError: no such luck" in sentence
    assert "GIBBSIAN_TRACEBACK=1" in sentence


def test_tracebacks_on_demand(folder, monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.load", _raiser(RuntimeError("no such luck")))
    monkeypatch.setenv("GIBBSIAN_TRACEBACK", "1")
    assert isinstance(run("show", folder / "model.gibbs").exception, RuntimeError)


def test_unreadable_files_are_named(folder, monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.load", _raiser(PermissionError(13, "Permission denied", "model.gibbs")))
    assert refused("show", folder / "model.gibbs") == "error: model.gibbs: Permission denied"


def _raiser(error: BaseException):
    def fail(*_):
        raise error

    return fail


def _terminal(monkeypatch):
    """Make stderr a terminal, from within the test: pytest sets it anew before."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    return terminal


def test_the_bar_shows_step_value_gradient_and_time(monkeypatch):
    screen = _terminal(monkeypatch)
    gb.BoltzmannMachine(learner="mle", callbacks=[Bar("fitting")]).fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    assert re.search(r"step \d+  value 1\.\d+  gradient \d\.\d+e-\d\d  [\d.e-]+ s/step", screen.getvalue())


def test_the_bar_shows_figures_of_the_learner_and_never_goes_back(monkeypatch):
    screen = _terminal(monkeypatch)
    bar, shares = Bar("fitting"), []
    steps = [StepInfo(2.5, norm, 1.0, 4, metrics={"functions": 7}) for norm in (1.0, 1e-3, 1e-2)]
    run_of = SimpleNamespace(n_steps=0, max_iter=1000, tol=1e-6, info=None)
    bar.on_start(run_of)
    for run_of.n_steps, run_of.info in enumerate(steps, start=1):
        bar.on_step(run_of)
        shares.append(bar.share)
    bar.on_end(run_of)
    assert shares == pytest.approx([0.001, 0.5, 0.5])
    assert "step 3  value 2.5  gradient 0.01  functions 7" in screen.getvalue()


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "data.csv").write_text("\x1b[31ma,b\nx,0\ny,1\nz,1\n")
    sentence = refused("fit", tmp_path / "data.csv", "--out", tmp_path / "m.gibbs", "--l2", "0")
    assert "\x1b" not in sentence
    assert "x1b[31ma" in sentence
    assert "\x1b" not in run("fit", "x", "--\x1b[31m").stderr
    gb.BoltzmannMachine().fit(pd.DataFrame({"\x1b[31ma": [0, 1, 1, 0], "b": [0, 1, 0, 1]})).save(tmp_path / "m.gibbs")
    assert "\x1b" not in printed("show", tmp_path / "m.gibbs")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("drop=['id']", "--drop id"),
        ("max_iter", "--max-iter"),
        ("coding=('low', 'high')", "--coding low,high"),
        ("coding=Threshold(0.5)", "--binarize 0.5"),
        ("bias=False", "--no-bias"),
        ("Dataset.complete_rows()", "--complete-rows"),
        ("checkpoint=Checkpoint('fit.progress', resume=True)", "--checkpoint fit.progress --resume"),
        ("l2=-1.0", "--l2 -1.0"),
        ("log_partition()", "log_partition()"),
        ("no code at all", "no code at all"),
    ],
)
def test_code_is_spelled_in_flags(code, words):
    with fit.make_context("fit", ["data.csv", "--out", "m.gibbs"]).scope():
        assert speller()(code) == words


def test_compilation_is_announced_once_and_only_when_it_happens(capsys):
    from numba import njit
    from numba.core import event

    event.unregister("numba:compile", announce_compilation())  # the silent one
    announce_compilation.cache_clear()
    announce_compilation()

    def first(x):
        return x + 1

    def second(x):
        return x - 1

    for function in (first, second):
        function.__module__ = "gibbsian.backends.test"
    foreign = njit(lambda x: x)
    assert foreign(1) == 1
    assert capsys.readouterr().err == ""
    kernel = njit(first)
    assert kernel(1) == 2
    assert capsys.readouterr().err == "compiling kernels (first run only) ...\n"
    assert kernel(2) == 3
    assert njit(second)(1) == 0
    assert capsys.readouterr().err == ""


def test_help_and_version_need_no_heavy_imports():
    code = (
        "import sys, gibbsian.cli.main; "
        "print({'numpy', 'numba', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'rich', 'pyarrow'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
    helped = code.replace("import sys, gibbsian.cli.main", "import sys; from cli_runner import run; run('fit', '-h')")
    shown = subprocess.run([sys.executable, "-c", helped], capture_output=True, text=True, check=True, cwd=TESTS)
    assert shown.stdout == "set()\n"
    done = subprocess.run([sys.executable, "-m", "gibbsian", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"gibbsian {gb.__version__}\n"


def test_help_names_every_command():
    listed = run("--help").stdout
    for command in ("fit", "score", "sample", "expect", "impute", "transform", "show", "demo"):
        assert f"\n  {command} " in listed
