"""What the command line says on the way: warnings, interrupts, progress, help."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import gibbsian as gb
from cli_runner import refused, run
from gibbsian.cli.compilation import announce_compilation
from gibbsian.cli.progress import fit_progress, span_progress
from gibbsian.full_span import TimedStep
from gibbsian.optimizers import StepInfo


def test_warnings_are_one_line_on_stderr(fit_arguments):
    result = run(*fit_arguments, "--max-iter", "2", "--json")
    assert json.loads(result.stdout)["converged"] is False
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: stopped at --max-iter 2")


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


def test_progress_shows_step_value_and_gradient(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    with fit_progress("fitting", max_iter=100, tol=1e-6) as callback:
        callback(3, StepInfo(value=2.5, gradient_norm=1e-3, step_size=1.0, evaluations=4))
        callback(4, StepInfo(value=2.5, gradient_norm=1e-3, step_size=1.0, evaluations=4))
    assert "step 4  value 2.5  gradient 1.0e-03" in screen.getvalue()
    assert "s/step" in screen.getvalue()


def test_progress_of_full_span_shows_cost_basis_and_time(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    with span_progress("fitting", epsilon=1e-4) as callback:
        callback(2, TimedStep("append", 3, 0.1, 0.5, 7, seconds=0.25))
    assert "step 2  append: cost 0.500000  basis 7  250.0 ms" in screen.getvalue()


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
    done = subprocess.run([sys.executable, "-m", "gibbsian", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"gibbsian {gb.__version__}\n"


def test_help_names_every_command():
    listed = run("--help").stdout
    for command in ("fit", "score", "sample", "expect", "impute", "show", "demo"):
        assert f"\n  {command} " in listed
