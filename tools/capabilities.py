"""Which estimator can do what: tried on small tables, for every registered estimator and learner.

    python -m tools capabilities            # print the page
    python -m tools capabilities --write    # write it to docs/capabilities.md

A cell is a capability that worked, or the number of the reason for which it was refused.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import gibbsian as gb
from cli_runner import run as run_command
from estimator_samples import small, table
from gibbsian.data.stream import DataStream
from gibbsian.errors import GibbsianError
from gibbsian.estimators import ESTIMATORS
from gibbsian.learning import LEARNERS
from gibbsian.settings import settings_of

PAGE = Path(__file__).parents[1] / "docs" / "capabilities.md"
STEPS = 3  # of a learner that is only tried


def outcome(ask: Callable[[], Any]) -> str:
    """Return the empty string where something works, else the reason of the refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ask()
        except GibbsianError as error:
            return error.reason
        except AttributeError as error:  # a method that is not there, because of its cause
            if not isinstance(error.__cause__, GibbsianError):
                raise
            return error.__cause__.reason
    return ""


# -- one estimator ----------------------------------------------------------------------------------------------------
def missing_cells(name: str) -> None:
    rows = table(name, holes=0.1)
    machine = small(name).fit(rows)
    machine.score(rows)
    machine.impute(rows)


def weights(name: str) -> None:
    rows = table(name)
    small(name).fit(rows, sample_weight=np.arange(len(rows)) % 3)


def intervals(name: str) -> None:
    rows = table(name)
    gb.uncertainty.confidence_intervals(small(name).fit(rows), rows)


def checkpoints(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small(name, checkpoint=Path(folder) / "fit.checkpoint").fit(table(name))


def chunks(name: str) -> None:
    small(name).partial_fit(table(name))


def rows_on_disk(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", table(name))
        small(name, max_iter=STEPS).fit(DataStream.open(Path(folder) / "rows.npy", coding=small(name)._coding()))


def files(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small(name).fit(table(name)).save(Path(folder) / "m.gibbs")
        gb.load(Path(folder) / "m.gibbs")


def command_line(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, table(name))
        size = ["--n-components", "3,2" if ESTIMATORS.trait(name, "layers") else "2"]
        known = settings_of(ESTIMATORS.factory(name))
        flags = [*(size if "n_components" in known else []), *(["--l2", "0.1"] if "l2" in known else [])]
        result = run_command("fit", path, "--model", name, *flags, "--seed", 0, "--out", Path(folder) / "m.gibbs")
        assert result.exit_code == 0, result.stderr
        result = run_command("score", Path(folder) / "m.gibbs", path)
        assert result.exit_code == 0, result.stderr


CAPABILITIES: dict[str, Callable[[str], None]] = {
    "missing cells": missing_cells,
    "weights": weights,
    "intervals": intervals,
    "checkpoint": checkpoints,
    "chunks": chunks,
    "rows on disk": rows_on_disk,
    "files": files,
    "command line": command_line,
}


# -- an estimator with a learner --------------------------------------------------------------------------------------
def learns(name: str, learner: str, holes: float = 0.0) -> None:
    """Take some steps of a learner."""
    penalised = "l2" in settings_of(ESTIMATORS.factory(name)) and "l2" not in settings_of(LEARNERS.factory(learner))
    penalty = {"l2": 0.0} if penalised else {}
    small(name, learner=learner, max_iter=STEPS, **penalty).fit(table(name, holes=holes))


@cache
def capabilities() -> dict[tuple[str, str], str]:
    """Return the outcome of every capability of every estimator."""
    return {(name, what): outcome(partial(ask, name)) for name in ESTIMATORS for what, ask in CAPABILITIES.items()}


@cache
def learners(holes: float = 0.0) -> dict[tuple[str, str], str]:
    """Return the outcome of every learner that an estimator lists."""
    listed = [(name, learner) for name in ESTIMATORS for learner in ESTIMATORS.factory(name).learners]
    return {(name, learner): outcome(partial(learns, name, learner, holes)) for name, learner in listed}


# -- the page ---------------------------------------------------------------------------------------------------------
def page() -> str:
    """Return the page."""
    reasons: dict[str, int] = {}
    complete, holed = learners(), learners(0.1)
    joined = {key: complete[key] or (f"with missing cells: {holed[key]}" if holed[key] else "") for key in complete}
    parts = [
        "# What works with what",
        "",
        "Made by `python -m tools capabilities --write` from the registries, by trying; a test holds it. A number is",
        "the reason below for which something is refused.",
        "",
        "## Estimators",
        "",
        *_grid(capabilities(), reasons),
        "",
        "## Learners by estimator",
        "",
        *_list(joined, reasons),
        "",
        "## Reasons",
        "",
        *(f"{number}. {reason}" for reason, number in reasons.items()),
    ]
    return "\n".join(parts) + "\n"


def _grid(cells: dict[tuple[str, str], str], reasons: dict[str, int]) -> list[str]:
    """Return a table in Markdown; reasons are numbered in the order in which they come."""
    across = list(dict.fromkeys(what for _, what in cells))
    lines = [f"| | {' | '.join(across)} |", f"| --- |{' --- |' * len(across)}"]
    for row in dict.fromkeys(name for name, _ in cells):
        marks = [_mark(cells[row, what], reasons) or "yes" for what in across]
        lines.append(f"| {row} | {' | '.join(marks)} |")
    return lines


def _list(cells: dict[tuple[str, str], str], reasons: dict[str, int]) -> list[str]:
    """Return the learners of each estimator, with the number of a reason behind one that is refused."""
    lines = ["| estimator | learners |", "| --- | --- |"]
    for row in dict.fromkeys(name for name, _ in cells):
        named = [f"{learner} {_mark(cells[row, learner], reasons)}".strip() for name, learner in cells if name == row]
        lines.append(f"| {row} | {', '.join(named)} |")
    return lines


def _mark(reason: str, reasons: dict[str, int]) -> str:
    """Return the number of a reason, empty where there is none."""
    return f"({reasons.setdefault(reason, len(reasons) + 1)})" if reason else ""


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page())
