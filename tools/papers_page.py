"""Where the library does what the papers describe: every section, equation, figure and remark that can be built.

    python -m tools papers_page            # print the page
    python -m tools papers_page --write    # write it to docs/papers.md

The list stands in ``papers.txt``: place, what it is, names in the library, tests, experiments, between bars. A name is
a path below ``gibbsian``, or ``learner:``, ``expectation:``, ``command:`` or ``reproduction:`` and what it is called
there; instead of names there may be the reason why nothing was built.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from gibbsian.cli.main import app
from gibbsian.expectations import EXPECTATIONS
from gibbsian.learning import LEARNERS
from gibbsian_reproduction.report import PAPERS

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("papers.txt")
PAGE = ROOT / "docs" / "papers.md"
WHY_NOT = "why not: "
HEAD = """# The papers, remark by remark

Made by `python -m tools papers_page --write` from `tools/papers.txt`; a test holds that every name, test and
experiment exists.
Names stand below `gibbsian`; `learner:`, `expectation:` and `command:` are what the options `learner`, `method` and the
command
line call them; `reproduction:` is below `gibbsian_reproduction`. Tests stand below `tests/` or `reproduction/tests/`;
experiments run by `gibbsian-reproduce NAME`.
"""


class Remark(NamedTuple):
    """One thing that a paper describes."""

    paper: str
    place: str
    what: str
    names: tuple[str, ...]
    tests: tuple[str, ...]
    experiments: tuple[str, ...]
    why_not: str


def remarks() -> Iterator[Remark]:
    """Read the list."""
    paper = ""
    for line in LIST.read_text().splitlines():
        if line.startswith("# "):
            paper = line[2:]
            continue
        place, what, names, *rest = (part.strip() for part in line.split("|"))
        why_not = names.removeprefix(WHY_NOT) if names.startswith(WHY_NOT) else ""
        tests, experiments = ([*rest, "", ""])[:2]
        yield Remark(paper, place, what, () if why_not else _parts(names), _parts(tests), _parts(experiments), why_not)


def _parts(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in cell.split(",") if part.strip())


def resolve(name: str) -> Any:
    """Return what a name of the list stands for; raise where nothing does."""
    kind, _, registered = name.partition(":")
    if registered:
        named: dict[str, Callable[[str], Any]] = {
            "learner": LEARNERS.factory,
            "expectation": EXPECTATIONS.factory,
            "command": app.commands.__getitem__,
            "reproduction": lambda place: resolve_name(f"gibbsian_reproduction.{place}"),
        }
        return named[kind](registered)
    first, *others = name.split(".")
    root = import_module("gibbsian")
    return reduce(getattr, others, getattr(root, first))


def test_exists(test: str) -> bool:
    """Say whether a test, as ``file::function``, is there."""
    file, _, function = test.partition("::")
    path = (ROOT if file.startswith("reproduction/") else ROOT / "tests") / file
    return path.is_file() and f"def {function}(" in path.read_text()


def page() -> str:
    """Return the page."""
    every = list(remarks())
    built = sum(not remark.why_not for remark in every)
    lines = [HEAD, f"{len(every)} remarks: {built} built, {len(every) - built} not, with the reason."]
    for paper, title in PAPERS.items():
        lines += ["", f"## {paper}: {title}", "", "| place | what | in the library | tests | experiments |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        lines += [_row(remark) for remark in every if remark.paper == paper]
    return "\n".join(lines) + "\n"


def _row(remark: Remark) -> str:
    built = remark.why_not or _code(remark.names)
    return f"| {remark.place} | {remark.what} | {built} | {_code(remark.tests)} | {_code(remark.experiments)} |"


def _code(parts: tuple[str, ...]) -> str:
    return ", ".join(f"`{part}`" for part in parts)


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page(), end="")
