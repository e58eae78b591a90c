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
_FLAGS |= {"n_components": "--components", "n_epochs": "--epochs"}
_FLAGS |= {"n_chains": "--chains", "n_steps": "--chain-steps", "n_iter": "--epochs", "learning_rate": "--rate"}
_ARGUMENT = re.compile(rf"\b({'|'.join(_FLAGS)})=(\[[^\]]*\]|\([^)]*\)|'[^']*'|[^\s,;:()]+)")
_PHRASES = {
    "held_out= is for": "--held-out is for",
    "(n_samples=": "(rows: ",
    "set exact=False for both sides of it": "use --method ais",
    "set exact=False for a lower bound": "leave --method out",
    " (of scores: score_interval)": "",
    " (of scores: log_likelihood)": "",
    "leave n_samples= out": "leave --samples out",
    "n_samples and betas belong": "--samples and --betas belong",
    "or give names=": "(the first line must name the columns)",
    "sample_weight holds": "the weights hold",
    "sample_weight": "the column of weights",
    "for others use Dataset.read": "leave out --memory for others",
    "read the data with Dataset.read and use learner='mle'": "leave out --memory and use --learner mle",
    "Dataset.complete_rows()": "--complete-rows",
    "raise max_iter": "raise --max-iter",
    "raise tol": "raise --tol",
    "weight_column names": "--weights names",
    "weights names the column": "--weights names the column",
    "drop names": "--drop names",
    "columns names the column": "the model needs the column",
    "lower the rate of the steps (the learner's optimizer=Adam(rate=...))": "lower --rate",
    "lower the rate of the steps (learning_rate=)": "lower --rate",
    "lower the rate of the steps": "lower --rate",
    "or use a BoltzmannMachine": "or use --model pairwise",
    "a DataStream is learned by a BoltzmannMachine: read rows into memory with Dataset.read": "leave --memory out",
    "ask for log_partition() or score()": "leave --method out",
    "or give the edges": "or name a CSV file of edges",
    "max_seconds=60": "60 s",
    "coding='categorical' and PottsMachine": "--model potts",
    "PottsMachine (categories) or HigherOrderBoltzmannMachine(coding='values') (numbers)": (
        "--model potts (categories) or --model higher-order --coding values (numbers)"
    ),
    "use a model of tables, or give values": "use --model potts, or give numbers",
    "use PottsMachine, or HigherOrderBoltzmannMachine with values=": "use --model potts, or higher-order with --values",
    "declared (categories=)": "declared (--categories)",
    "categories names": "--categories names",
    "raise order=, list cliques=, or keep bias=True": "raise --order, or leave --no-bias out",
    "go on from it with start=, or give checkpoint= to be able to resume to the same bits": (
        "give --checkpoint to be able to resume"
    ),
}
_PATTERNS = {
    re.compile(r"Dataset\.(?:read\(\.\.\.\)\.)?convert\([^)]*\)+"): "--convert",
    re.compile(r"raise n_sweeps=\d+ or burn_in=\d+|raise betas=\d+ or n_walkers="): "raise --samples",
    re.compile(r"checkpoint=Checkpoint\('([^']*)', resume=True\)"): r"--checkpoint \1 --resume",
}


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


def in_flags(sentence: str) -> str:
    """Rewrite a library message in the words of the command line.

    Examples
    --------
    >>> from gibbsian.cli.guard import in_flags
    >>> in_flags("drop the column (drop=['id']) or add a penalty such as l2=0.01")
    'drop the column (--drop id) or add a penalty such as --l2 0.01'
    >>> in_flags("declare coding=('low', 'high')")
    'declare --coding low,high'
    """
    for phrase, flag in _PHRASES.items():
        sentence = sentence.replace(phrase, flag)
    for pattern, flag in _PATTERNS.items():
        sentence = pattern.sub(flag, sentence)
    return _ARGUMENT.sub(_as_flag, sentence)


def _as_flag(match: re.Match[str]) -> str:
    words = [word.strip().strip("'\"") for word in match[2].strip("[]()").split(",")]
    return f"{_FLAGS[match[1]]} {','.join(words)}"


def say(sentence: str) -> None:
    """Print one line on stderr."""
    print(" ".join(sentence.split()), file=sys.stderr, flush=True)


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print our warnings as a line; others the way Python does."""
    if issubclass(category, GibbsianWarning):
        say(f"warning: {in_flags(str(message))}")
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
        say(f"error: {in_flags(str(error))}")
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
