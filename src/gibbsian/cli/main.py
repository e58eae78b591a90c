"""The commands, and the entry point of the console script."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, NoReturn

import click

from gibbsian import __version__
from gibbsian.cli.compare import compare
from gibbsian.cli.demo import demo
from gibbsian.cli.fit import fit
from gibbsian.cli.guard import INTERRUPTED, say
from gibbsian.cli.mode import mode
from gibbsian.cli.query import divergence, query
from gibbsian.cli.questions import expect, impute, predict, sample, score, transform, unusual
from gibbsian.cli.reproduce import reproduce
from gibbsian.cli.show import show
from gibbsian.cli.structure import intervals, structure


class App(click.Group):
    """The group of all commands; mistakes in flags end in one line too."""

    def main(self, args: Any = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Run the command that the arguments name, and leave with its exit code."""
        try:
            code = super().main(args, "gibbsian", standalone_mode=False) or 0
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            where = "gibbsian" if context is None else context.command_path
            say(f"error: {error.format_message().rstrip('.')} (see {where} --help)")
            code = error.exit_code
        except click.Abort:
            say("interrupted")
            code = INTERRUPTED
        sys.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of use."""
        return list(self.commands)


HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=App, no_args_is_help=True, context_settings=HELP)
@click.version_option(__version__, prog_name="gibbsian", message="%(prog)s %(version)s")
def app() -> None:
    """Learn Gibbs distributions (Boltzmann machines and their relatives) from discrete data."""


ASKED = (score, unusual, sample, mode, expect, impute, predict, transform, query, divergence, show)
for command in (fit, compare, structure, intervals, *ASKED, demo, reproduce):
    app.add_command(command)


def run() -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    try:
        app.main()
    except SystemExit as end:
        code = int(end.code or 0)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # whoever read it has gone
            stream.flush()
    # Files are written and closed by now. An orderly end also takes down the threads that Arrow keeps, and a process
    # that ends soon after it has read a table is then aborted now and then, with the wrong exit code.
    os._exit(code)
