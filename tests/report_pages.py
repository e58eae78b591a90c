"""Reports as a reader of HTML sees them, and names of columns that try to be more than text."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd

HOSTILE = (
    "<script>window.broken = 1</script>",
    "</script><img src=x onerror='window.broken = 2'>",
    '" onmouseover="window.broken = 3',
    "a' & b $kind ${name} {0} %s",
    "\u05e9\u05dc\u05d5\u05dd \u202egnol\u202c",  # Hebrew, and an override of the direction
    "bell\x07 and\nnew line",
    "long " * 100,
    "\u4e2d\u6587",
)
VOID = {"meta", "input", "img", "br"}


class Page(HTMLParser):
    """What stands in a page: elements with their attributes, the sections, and all text by section."""

    def __init__(self, source: str):
        super().__init__()
        self.source, self.open, self.elements, self.sections = source, [], [], {}
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for tag, attributes in self.open:
            if tag == "section":
                self.sections[attributes["id"]] = self.sections.get(attributes["id"], "") + data

    def named(self, tag):
        """Return the attributes of all elements of a kind."""
        return [attributes for kind, attributes in self.elements if kind == tag]


def read_page(path) -> Page:
    """Return a page that is a file."""
    return Page(path.read_text(encoding="utf-8"))


def hostile_table(n_rows=120, seed=0) -> pd.DataFrame:
    """Return related columns of yes and no under hostile names."""
    rng = np.random.default_rng(seed)
    opinion = rng.random((n_rows, 1)) < 0.5
    upper = np.where(rng.random((n_rows, len(HOSTILE))) < 0.75, opinion, ~opinion)
    return pd.DataFrame(np.where(upper, "yes", "no"), columns=list(HOSTILE))
