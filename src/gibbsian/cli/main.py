"""The Typer application and the entry point of the console script."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Annotated, NoReturn

import typer

from gibbsian import __version__
from gibbsian.cli.compare import compare
from gibbsian.cli.demo import demo
from gibbsian.cli.fit import fit
from gibbsian.cli.guard import INTERRUPTED, say
from gibbsian.cli.questions import expect, impute, sample, score
from gibbsian.cli.reproduce import reproduce
from gibbsian.cli.show import show
from gibbsian.cli.structure import intervals, structure

app = typer.Typer(
    name="gibbsian",
    help="Learn Gibbs distributions (Boltzmann machines and their relatives) from discrete data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # Rich would double the time to the first line of help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"gibbsian {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


for command in (fit, compare, structure, intervals, score, sample, expect, impute, show, demo, reproduce):
    app.command()(command)


def run() -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    code = _run()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # whoever read it has gone
            stream.flush()
    # Files are written and closed by now. An orderly end also takes down the threads that Arrow keeps, and a process
    # that ends soon after it has read a table is then aborted now and then, with the wrong exit code.
    os._exit(code)


def _run() -> int:
    try:
        return int(app(standalone_mode=False) or 0)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except Exception as error:
        return _explain_usage(error)


def _explain_usage(error: Exception) -> int:
    """Say in one line what is wrong with the flags.

    Typer brings a Click of its own, so its errors are known by their parts and not by their class.
    """
    if type(error).__name__ == "Abort":
        say("interrupted")
        return INTERRUPTED
    if not hasattr(error, "format_message") or not hasattr(error, "exit_code"):
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        return error.exit_code
    context = getattr(error, "ctx", None)
    where = "gibbsian" if context is None else context.command_path.replace("python -m gibbsian", "gibbsian")
    say(f"error: {error.format_message().rstrip('.')} (see {where} --help)")
    return error.exit_code
