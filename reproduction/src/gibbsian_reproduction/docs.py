"""Writes ``docs/reproduce.md`` and its pictures from a folder that ``gibbsian-reproduce all`` has filled.

Use: ``python -m gibbsian_reproduction.docs RESULTS DOCS``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from gibbsian.errors import ArgumentError, GibbsianError
from gibbsian.storage import write_atomically
from gibbsian_reproduction.experiment import verdict_word
from gibbsian_reproduction.report import PAPERS, count_of_claims, read_records, shown_cells

PICTURES = "pictures"


def write_docs(results: Path, docs: Path) -> Path:
    """Write ``reproduce.md`` and the pictures it shows; return its path.

    Parameters
    ----------
    results : Path
        What ``--out`` of ``gibbsian-reproduce`` was.
    docs : Path
        Where the page goes, with its pictures in a folder beside it.
    """
    records = read_records(results)
    if not records:
        raise ArgumentError(f"{results} holds no results", f"run gibbsian-reproduce all --out {results} first")
    (docs / PICTURES).mkdir(parents=True, exist_ok=True)
    for record in records:
        for name in _shown(record):
            write_atomically(docs / PICTURES / name, (results / name).read_bytes())
    target = docs / "reproduce.md"
    write_atomically(target, ("\n".join(_lines(records)) + "\n").encode())
    return target


def _shown(record: dict[str, Any]) -> list[str]:
    return [name for name in record["pictures"] if name.endswith(".png")]


def _lines(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    verdicts = [claim["holds"] for record in records for claim in record["claims"]]
    minutes = sum(record["seconds"] for record in records) / 60
    yield "# The figures and tables of the papers"
    yield ""
    yield (
        "Each figure, table and theorem is one command; `gibbsian-reproduce all` makes this page as HTML. Every claim "
        "that a paper makes in words is held against the numbers; what is marked (ours) goes beyond the papers. "
        f"In the runs shown here {count_of_claims(verdicts)} ({minutes:.0f} minutes of one core in all)."
    )
    yield ""
    yield "| command | paper | item | shows | claims |"
    yield "| --- | --- | --- | --- | --- |"
    for record in records:
        name, held = record["experiment"], count_of_claims([claim["holds"] for claim in record["claims"]])
        yield f"| [`{name}`](#{name}) | {record['paper']} | {record['item']} | {_cell(record['title'])} | {held} |"
    for paper, group in groupby(records, key=lambda record: record["paper"]):
        yield from ("", f"## {paper}", "", PAPERS.get(paper, paper))
        for record in group:
            yield from _experiment(record)


def _experiment(record: dict[str, Any]) -> Iterator[str]:
    name = record["experiment"]
    yield from ("", f"### {name}", "", f"{record['paper']} {record['item']}: {record['title']}.")
    yield ""
    scale = f"; a trial: {record['scale']}" if record["scale"] else ""
    yield f"{record['trials']} trials{scale}."
    for picture in _shown(record):
        yield from ("", f"![{record['paper']} {record['item']}]({PICTURES}/{picture})")
    for table in record["tables"]:
        yield from _table(table)
    yield ""
    for claim in record["claims"]:
        verdict = f"**{verdict_word(claim['holds'])}**"
        text = f"{claim['text']}{' (ours)' * claim['ours']}"
        yield f"- {text} [{claim['source']}]: {verdict} ({claim['numbers']})"
    yield from ("", "```sh", record["command"], "```")


def _table(table: dict[str, Any]) -> Iterator[str]:
    names, rows = shown_cells(table["columns"], table["rows"])
    yield from ("", table["name"] + (f" ({table['note']})" if table["note"] else ""), "")
    yield f"| {' | '.join(map(_cell, names))} |"
    yield f"| {' | '.join('---:' for _ in names)} |"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _main(arguments: Sequence[str]) -> str | None:
    """Return None, or what went wrong in a sentence."""
    if len(arguments) != 2:
        return "use: python -m gibbsian_reproduction.docs RESULTS DOCS"
    try:
        print(write_docs(*map(Path, arguments)))
    except (GibbsianError, OSError) as error:
        return f"error: {error}"
    return None


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
