"""All experiments on one HTML page that needs nothing beside it: pictures are inside."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from gibbsian_reproduction.experiment import verdict_word
from gibbsian_reproduction.report import PAPERS, count_of_claims, in_order, shown_cells

LARGEST_SVG = 400_000  # bytes; a picture of very many points is smaller as PNG

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 2px solid #ddd; } h3 { margin-top: 2.2rem; }
nav ul { columns: 2; padding-left: 1.2rem; } nav li { break-inside: avoid; }
table { border-collapse: collapse; margin: 0.8rem 0; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.2rem; }
th, td { padding: 0.15rem 0.7rem; text-align: right; border-bottom: 1px solid #e4e4e4; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; } img { max-width: 100%; }
code { background: #f3f3f3; padding: 0.15rem 0.4rem; border-radius: 3px; }
.note { color: #666; font-size: 0.9rem; }
ul.claims { list-style: none; padding: 0; }
ul.claims li { margin: 0.3rem 0; padding: 0.25rem 0.7rem; border-left: 5px solid; }
.reported { border-color: #888; background: #f4f4f4; }
.holds { border-color: #2a9d55; background: #eef8f1; } .fails { border-color: #c8372d; background: #fcefee; }
.count-holds { color: #1d7a40; } .count-fails { color: #b02a20; }
""".strip()


def page(records: Sequence[dict[str, Any]], folder: Path) -> str:
    """Return the page of the experiments whose records and pictures are given.

    Parameters
    ----------
    records : sequence of dict
        What `Report.record` returns, in any order.
    folder : Path
        Where their pictures are.
    """
    records = in_order(records)
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>gibbsian-reproduce</title><style>{STYLE}</style></head><body>",
            *_head(records),
            *(part for paper, group in _by_paper(records) for part in _paper(paper, group, folder)),
            "</body></html>\n",
        )
    )


def _by_paper(records: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(paper, list(group)) for paper, group in groupby(records, key=lambda record: record["paper"])]


def _head(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say what this is, how it ended, and where things are."""
    verdicts = [claim["holds"] for record in records for claim in record["claims"]]
    yield "<h1>The papers' figures and tables, computed by gibbsian</h1>"
    yield f"<p>{_coloured_count(verdicts)}. Claims and curves marked (ours) go beyond the papers. "
    if records:
        used = ", ".join(f"{name} {version}" for name, version in records[0]["versions"].items())
        yield f'<span class="note">Made with {escape(used)}.</span>'
    yield "</p><nav>"
    for paper, group in _by_paper(records):
        yield f'<p><a href="#{escape(paper)}"><b>{escape(paper)}</b></a></p><ul>'
        for record in group:
            count = _coloured_count([claim["holds"] for claim in record["claims"]])
            title = escape(f"{record['item']}: {record['title']}")
            yield f'<li><a href="#{escape(record["experiment"])}">{title}</a><br><small>{count}</small></li>'
        yield "</ul>"
    yield "</nav>"


def _coloured_count(holds: list[bool]) -> str:
    return f'<span class="count-{"fails" if False in holds else "holds"}">{count_of_claims(holds)}</span>'


def _paper(paper: str, records: list[dict[str, Any]], folder: Path) -> Iterator[str]:
    yield f'<section id="{escape(paper)}"><h2>{escape(paper)}: {escape(PAPERS.get(paper, paper))}</h2>'
    for record in records:
        yield from _experiment(record, folder)
    yield "</section>"


def _experiment(record: dict[str, Any], folder: Path) -> Iterator[str]:
    yield f'<article id="{escape(record["experiment"])}">'
    yield f"<h3>{escape(record['item'])}: {escape(record['title'])}</h3>"
    scale = f"; a trial: {record['scale']}" if record["scale"] else ""
    yield f'<p class="note">{record["trials"]} trials, seed {record["seed"]}{escape(scale)}.</p>'
    yield from _picture(record, folder)
    for table in record["tables"]:
        yield from _table(table)
    yield from _claims(record["claims"])
    yield from (f'<p class="note">warning: {escape(sentence)}</p>' for sentence in record["warnings"])
    yield f"<p><code>{escape(record['command'])}</code></p></article>"


def _picture(record: dict[str, Any], folder: Path) -> Iterator[str]:
    """Put the SVG inside, or the PNG where that is much smaller."""
    paths = {Path(name).suffix: folder / name for name in record["pictures"]}
    if not paths:
        return
    content, kind = paths[".svg"].read_bytes(), "image/svg+xml"
    if len(content) > LARGEST_SVG:
        content, kind = paths[".png"].read_bytes(), "image/png"
    inside = base64.b64encode(content).decode()
    title = escape(f"{record['paper']} {record['item']}: {record['title']}")
    yield f'<p><img alt="{title}" src="data:{kind};base64,{inside}"></p>'


def _table(table: dict[str, Any]) -> Iterator[str]:
    names, rows = shown_cells(table["columns"], table["rows"])
    yield f'<div class="wide"><table><caption>{escape(table["name"])}</caption>'
    yield f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
    yield "</table></div>"
    if table["note"]:
        yield f'<p class="note">{escape(table["note"])}</p>'


def _claims(claims: list[dict[str, Any]]) -> Iterator[str]:
    if not claims:
        return
    yield '<ul class="claims">'
    for claim in claims:
        verdict, kind = verdict_word(claim["holds"]), {None: "reported", True: "holds"}.get(claim["holds"], "fails")
        yield (
            f'<li class="{kind}">{escape(claim["text"])}{" (ours)" * claim["ours"]}: '
            f"<b>{verdict}</b> ({escape(claim['numbers'])}) <small>{escape(claim['source'])}</small></li>"
        )
    yield "</ul>"
