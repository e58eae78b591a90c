"""One page with everything in it, and the same for the documentation."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser

import pytest

from gibbsian.errors import ArgumentError
from gibbsian_reproduction import page as pages
from gibbsian_reproduction.docs import write_docs
from gibbsian_reproduction.page import page


class Reader(HTMLParser):
    """Collects what a page refers to, and what it opens and does not close."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.links: list[str] = []
        self.names: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.sources += [found["src"]] if "src" in found else []
        self.links += [found["href"]] if "href" in found else []
        self.names += [found["id"]] if "id" in found else []
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_the_page_needs_nothing_beside_it(report, tmp_path):
    report.write(tmp_path)
    text = page([report.record()], tmp_path)
    reader = read(text)
    assert reader.open == []
    assert all(source.startswith("data:image/svg+xml;base64,") for source in reader.sources)
    assert len(reader.sources) == 1
    assert all(link.startswith("#") and link[1:] in reader.names for link in reader.links)
    assert set(reader.names) == {"TOY", "toy"}


def test_the_page_shows_verdicts_tables_and_commands(report, tmp_path):
    report.write(tmp_path)
    text = page([report.record()], tmp_path)
    assert '<li class="holds">it is so: <b>holds</b> (3 of 3 trials)' in text
    assert '<li class="fails">it is not (ours): <b>does not hold</b> (&lt;0 &amp; 1&gt;)' in text
    assert "<code>gibbsian-reproduce toy --trials 3 --seed 5 --out results/</code>" in text
    assert "<td>1.50 ± 0.29</td>" in text
    assert "1 of 2 claims holds" in text


def test_a_picture_of_many_points_is_put_in_as_png(report, tmp_path, monkeypatch):
    report.write(tmp_path)
    monkeypatch.setattr(pages, "LARGEST_SVG", 100)
    assert read(page([report.record()], tmp_path)).sources[0].startswith("data:image/png;base64,")


def test_docs_show_pictures_tables_claims_and_commands(report, tmp_path):
    report.write(tmp_path)
    text = write_docs(tmp_path, tmp_path / "docs").read_text(encoding="utf-8")
    assert "![TOY Fig. 1](pictures/toy.png)" in text
    assert (tmp_path / "docs" / "pictures" / "toy.png").read_bytes() == (tmp_path / "toy.png").read_bytes()
    assert "| 10 | 1.50 ± 0.29 |" in text
    assert "| a\\|b | - |" in text
    assert "- it is so [section 1]: **holds** (3 of 3 trials)" in text
    assert "gibbsian-reproduce toy --trials 3 --seed 5 --out results/" in text


def test_docs_of_nothing_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="holds no results"):
        write_docs(tmp_path, tmp_path / "docs")
    command = [sys.executable, "-m", "gibbsian_reproduction.docs", str(tmp_path), str(tmp_path / "docs")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")
    assert len(ended.stderr.splitlines()) == 1
