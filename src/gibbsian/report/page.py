"""The page itself: every section that has something to say, with style and script in one file."""

from __future__ import annotations

import os
import warnings
from datetime import UTC, datetime
from pathlib import Path

from gibbsian.errors import GibbsianError, GibbsianWarning
from gibbsian.estimators.reported import REPORTS, Reported
from gibbsian.report.html import Markup, join, paragraph, phrase, tag, template
from gibbsian.report.subject import SECTIONS, Subject
from gibbsian.report.trust import verdict
from gibbsian.storage import write_atomically


@REPORTS.register("page")
def write_report(
    path: str | os.PathLike[str],
    machine: Reported,
    data: object = None,
    y: object = None,
    *,
    origin: dict[str, str] | None = None,
    warned: list[str] | None = None,
    seed: int = 0,
) -> None:
    """Write a report on a fitted estimator: one file that needs no other and no network.

    Parameters
    ----------
    path : path
        Where to write it.
    machine : fitted estimator
        What it is about.
    data : array, frame, path or Dataset, default=None
        The rows of the fit, or others. Without them what needs rows is left out.
    y : array, default=None
        The labels of a classifier.
    origin : dict of str to str, default=None
        What else is known of how the machine was made.
    warned : list of str, default=None
        What was warned of in its fit.
    seed : int, default=0
        Of what is chosen at random: rows, hidden cells, rows held out.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> votes = gb.datasets.load_house_votes()
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> gb.report.write_report(path, gb.BoltzmannMachine(graph="chain", l2=0.01).fit(votes))
    >>> path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    behind, rows = machine.report_parts(data, y)
    labels = None if data is None or y is None else (data, y)
    subject = Subject(behind, rows, machine, labels, dict(origin or {}), list(warned or ()), seed)
    write_atomically(Path(path), page(subject).encode())


def page(subject: Subject) -> str:
    """Return the whole page."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GibbsianWarning)
        names = sorted(SECTIONS.names(), key=lambda name: SECTIONS.trait(name, "place"))
        failed = subject.verdict.status == "bad"
        reasons = {
            "the verdict on the fit is bad": [name for name in names if SECTIONS.trait(name, "claims") and failed],
            "the report was written without rows": [
                name for name in names if SECTIONS.trait(name, "rows") and not subject.has_rows
            ],
        }
        silent = {name for left_out in reasons.values() for name in left_out}
        able = [name for name in names if hasattr(subject.machine, SECTIONS.trait(name, "needs", "fit"))]
        parts = {name: _section(name, subject, caught) for name in able if name not in silent}
    found = {name: part for name, part in parts.items() if part is not None}
    for reason, left_out in reasons.items():
        if left_out:
            titles = ", ".join(_title(name).lower() for name in left_out)
            found[f"left-out: {reason}"] = paragraph(f"Left out, because {reason}: {titles}.")
    return phrase(
        template("page.html"),
        kind=type(subject.asked).__name__,
        date=f"{datetime.now(UTC):%d %B %Y, %H:%M} UTC",
        links=join(tag("li", tag("a", _title(name), href=f"#{name}")) for name in found if name in parts),
        verdict=verdict(subject),
        sections=join(found.values(), Markup("\n")),
        style=template("page.css"),
        script=template("page.js"),
    )


def _section(name: str, subject: Subject, caught: list[warnings.WarningMessage]) -> Markup | None:
    """Return a section under its heading; where the machine refuses, its reason in a sentence."""
    try:
        body = SECTIONS.factory(name)(subject)
    except GibbsianError as error:
        body = paragraph(f"Left out: {error}.")
    said = [str(entry.message) for entry in caught if isinstance(entry.message, GibbsianWarning)]
    subject.warnings += [line for line in dict.fromkeys(said) if line not in subject.warnings]
    caught.clear()
    if body is None:
        return None
    return tag("section", tag("h2", _title(name), id=f"{name}-title"), body, id=name, aria_labelledby=f"{name}-title")


def _title(name: str) -> str:
    return SECTIONS.trait(name, "title")
