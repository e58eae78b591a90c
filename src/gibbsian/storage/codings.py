"""How codings stand in the header of a file."""

from __future__ import annotations

from typing import Any

from gibbsian.domain import DOMAINS, AnyCoding, CategoryCoding, Coding

Header = dict[str, Any]


def written_coding(coding: AnyCoding | None) -> Header | None:
    """Return a coding as a header holds it; real numbers have none.

    Examples
    --------
    >>> from gibbsian.domain import CategoryCoding
    >>> from gibbsian.storage.codings import written_coding
    >>> written_coding(CategoryCoding.of_values((-1, 0, 1), 2))
    {'name': 'values', 'labels': [[-1, 0, 1], [-1, 0, 1]]}
    """
    if coding is None:
        return None
    if isinstance(coding, CategoryCoding):
        return {"name": coding.name, "labels": [list(labels) for labels in coding.labels]}
    return {"name": coding.name, "low": coding.low, "high": coding.high, "domain": coding.domain.name}


def read_coding(written: Header | None) -> AnyCoding | None:
    """Return the coding that `written_coding` wrote.

    Examples
    --------
    >>> from gibbsian.storage.codings import read_coding
    >>> read_coding({"name": "categorical", "labels": [["a", "b"], [1, 2, 3]]}).domain.sizes
    (2, 3)
    """
    if written is None:
        return None
    if "labels" not in written:
        return Coding(written["name"], written["low"], written["high"], DOMAINS[written["domain"]])
    if written["name"] == "values":
        return CategoryCoding.of_values(written["labels"][0], len(written["labels"]))
    return CategoryCoding.of_labels(written["labels"])
