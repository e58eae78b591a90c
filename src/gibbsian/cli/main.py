"""The commands, and the entry point of the console script."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
from typing import Any, NoReturn

import click

from gibbsian import __version__
from gibbsian.cli.compare import compare
from gibbsian.cli.completion import completion
from gibbsian.cli.demo import demo
from gibbsian.cli.fit import fit
from gibbsian.cli.guard import INTERRUPTED, manners, say
from gibbsian.cli.mode import mode
from gibbsian.cli.query import divergence, query
from gibbsian.cli.questions import expect, impute, predict, sample, score, transform, unusual
from gibbsian.cli.report import report
from gibbsian.cli.show import show
from gibbsian.cli.structure import intervals, structure

# The commands in the order of use, in the words of the short help.
GROUPS: dict[str, dict[click.Command, str]] = {
    "Learn": {
        fit: "a model from a table",
        compare: "several learners on the same rows",
        structure: "which columns interact",
    },
    "Ask a model": {
        score: "how likely rows are",
        unusual: "the rows and cells that it finds least likely",
        sample: "rows drawn from it",
        mode: "the most probable row",
        expect: "means of columns and pairs, with standard errors",
        impute: "missing cells, filled",
        predict: "columns, from all others",
        transform: "hidden units or classes of rows",
        query: "probabilities, entropies, information: 'P(a=1 | b=0)'",
        divergence: "how far two models are from each other",
    },
    "Look": {
        report: "a page on a table or a model that people can read",
        show: "what a model file holds",
        intervals: "how surely parameters are known",
    },
    "More": {
        demo: "the votes of the US House in 1984, from table to answer",
        completion: "completion of commands and flags by your shell",
    },
}


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
        sys.exit(code)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read what stands before the command."""
        with manners():  # click has an empty line for an interrupt
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Find the command and run it."""
        with manners():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of use."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what they are for."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{command.name:10}", about) for command, about in commands.items()])


HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=App, no_args_is_help=True, context_settings=HELP)
@click.version_option(__version__, prog_name="gibbsian", message="%(prog)s %(version)s")
def app() -> None:
    """Learn Gibbs distributions (Boltzmann machines and their relatives) from discrete data."""


for command in itertools.chain(*GROUPS.values()):
    app.add_command(command)


def run() -> NoReturn:
    """Run the command line and leave the process, in order, with its exit code.

    An orderly end once aborted 7 times in 40, when kernels had threads of Numba's own. Those of the library's pool
    are gone by the end of a call, and no end has aborted since; docs/architecture.md has the counts.
    """
    for name in ("stdout", "stderr"):  # Python has None for one that was closed
        setattr(sys, name, getattr(sys, name) or open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - to the end
    gc.set_threshold(100_000)  # a tenth of the start went into looking for cycles among what imports leave for good
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does: in order, nothing left behind
        app.main()
    except SystemExit as end:
        code = int(end.code or 0)
    except (KeyboardInterrupt, click.Abort):  # before or after a command
        say("interrupted")
        code = INTERRUPTED
    for late in (signal.SIGINT, signal.SIGTERM):  # all is done and said
        signal.signal(late, signal.SIG_IGN)
    # Python remembers an interrupt that went through text it executed (a dataclass is made so), though it was caught,
    # and would end by SIGINT instead of this code: other text makes it forget
    exec("")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # whoever read it has gone: the rest goes nowhere, and Python says nothing of it at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    gc.freeze()  # Python looks for cycles once more at its end, which took a quarter of a small command
    sys.exit(code)
