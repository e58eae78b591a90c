"""From exceptions and warnings to one sentence on stderr and an exit code."""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer

from gibbsian.cli.flags import FLAGS
from gibbsian.errors import GibbsianError, GibbsianWarning, StorageError

FAILED, BUG, INTERRUPTED = 1, 70, 130

# Settings that messages name as Python arguments and that the command line spells as flags.
_FLAGS = {name: f"--{name.replace('_', '-')}" for name in FLAGS}
_FLAGS |= {name: f"--{name}" for name in ("model", "method", "rule", "level", "fraction", "betas")}
_FLAGS |= {"sampler": "--method", "expectation": "--method", "n_samples": "--samples", "weight_column": "--weights"}
_FLAGS |= {"n_components": "--components", "n_epochs": "--epochs", "sample_weight": "the column of weights"}
_FLAGS |= {"n_chains": "--chains", "n_steps": "--chain-steps", "n_iter": "--epochs", "learning_rate": "--rate"}
# What Python does by a call and the command line by a flag.
_CALLS = {"Dataset.complete_rows": "--complete-rows", "Dataset.convert": "--convert", "Dataset.read": "no --memory"}
_SETTING = re.compile(r"(\w+)(?:=(.*))?", re.DOTALL)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its manners: a user's mistake ends in one sentence and a non-zero exit, never in a traceback.

    Examples
    --------
    >>> import typer
    >>> from gibbsian.cli.guard import guarded
    >>> from gibbsian.errors import DataError
    >>> @guarded
    ... def command():
    ...     raise DataError("column 'a' holds text")
    >>> try:
    ...     command()
    ... except typer.Exit as stop:
    ...     print(stop.exit_code)
    1
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", GibbsianWarning)
                warnings.showwarning = _show_warning
                command(*args, **kwargs)
                sys.stdout.flush()  # a reader that has gone is noticed here and not while Python shuts down
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            if os.environ.get("GIBBSIAN_TRACEBACK"):
                raise
            raise typer.Exit(_explain(error)) from None

    return wrapped


def in_flags(code: str) -> str:
    """Spell a piece of Python as the command line does.

    Examples
    --------
    >>> from gibbsian.cli.guard import in_flags
    >>> in_flags("drop=['id']"), in_flags("max_iter"), in_flags("coding=('low', 'high')")
    ('--drop id', '--max-iter', '--coding low,high')
    """
    call = code.partition("(")[0]
    if call in _CALLS:
        return _CALLS[call]
    setting = _SETTING.fullmatch(code)
    if setting is None or setting[1] not in _FLAGS:
        return code
    words = [word.strip().strip("'\"") for word in (setting[2] or "").strip("[]()").split(",")]
    return f"{_FLAGS[setting[1]]} {','.join(words)}".rstrip()


def say(sentence: str) -> None:
    """Print one line on stderr."""
    print(" ".join(sentence.split()), file=sys.stderr, flush=True)


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print our warnings as a line; others the way Python does."""
    if isinstance(message, GibbsianWarning):
        say(f"warning: {message.sentence(in_flags)}")
    else:
        print(warnings.formatwarning(message, category, *where[:2]), file=sys.stderr, end="")


def _explain(error: BaseException) -> int:
    """Say what went wrong in one line and return the exit code for it."""
    if isinstance(error, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if isinstance(error, GibbsianError):
        say(f"error: {error.sentence(in_flags)}")
        return FAILED
    if isinstance(error, OSError) and not isinstance(error, StorageError):
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        say(f"error: {what}")
        return FAILED
    if isinstance(error, MemoryError):
        say("error: not enough memory: use fewer variables or rows, or a sparser graph")
        return FAILED
    say(f"error: {type(error).__name__}: {error}; this is a bug; run with GIBBSIAN_TRACEBACK=1 to see where")
    return BUG
