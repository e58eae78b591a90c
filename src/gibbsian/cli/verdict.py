"""The verdict on a fit, for commands that make one: a line on stderr for each problem, and an exit code."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import click

from gibbsian.cli.guard import say, speller
from gibbsian.errors import ConvergenceWarning, UntrainedWarning, spelled

if TYPE_CHECKING:
    from gibbsian.learning.result import FitResult

# The exit code of --strict where a fit failed or nothing could be checked.
NOT_GOOD = 3
strict = click.option(
    "--strict",
    is_flag=True,
    help=f"Exit with code {NOT_GOOD} unless the verdict on the fit is good; the output is written all the same.",
)


def leave_endings_to_verdict() -> None:
    """Warn of no unconverged or untrained fit while it runs: the verdict says it."""
    for category in (ConvergenceWarning, UntrainedWarning):
        warnings.simplefilter("ignore", category)


def ending(result: FitResult) -> str:
    """Return how a fit ended, with the remedy in flags."""
    return result.reason.removesuffix(spelled(result.remedy)) + spelled(result.remedy, speller())


def verdict_record(result: FitResult) -> dict[str, Any]:
    """Return the verdict as its fit wrote it down, else the verdict of now, with remedies in flags."""
    if "verdict" not in result.provenance:
        found = result.verdict
        result.provenance["verdict"] = {"status": found.status, "problems": list(found.problems)}
    known = result.provenance["verdict"]
    problems = [ending(result) if text == result.reason else spelled(text, speller()) for text in known["problems"]]
    return {"status": known["status"], "problems": problems}


def warn(result: FitResult, name: str = "") -> None:
    """Print the problems of a fit on stderr; of one fit of several with its name."""
    for problem in verdict_record(result)["problems"]:
        say(f"warning: {name}{': ' if name else ''}{problem}")


def exit_if_strict(ctx: click.Context, result: FitResult, strict: bool) -> None:
    """Leave with an exit code of its own where only a good fit will do."""
    if strict and verdict_record(result)["status"] != "good":
        ctx.exit(NOT_GOOD)
