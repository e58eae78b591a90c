"""How codings stand in the header of a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gibbsian.data.rules import Columns, OneHot, Shares, Threshold
from gibbsian.domain import DOMAINS, AnyCoding, Categories, CategoryCoding, Coding, Continuum, RealCoding, Reals
from gibbsian.models.file_parts import COUNT, LABEL, NUMBER, TEXT, ListOf, Plain, Record

Header = dict[str, Any]  # of a JSON text, checked by the declarations below

_RULE = Record(
    {
        "threshold": Plain((int, float), optional=True),
        "one_hot": Plain((str, dict), optional=True),
        "shares": Plain((bool,), optional=True),
        "columns": Record({}, NUMBER, optional=True),
    },
    optional=True,
)
_SUPPORT = Record({"name": TEXT, "low": NUMBER, "high": NUMBER, "n_nodes": COUNT}, optional=True)
# What a file holds of a coding: of labels, of real numbers, of two values.
CODINGS_IN_FILE = {
    "labels": Record(
        {
            "name": TEXT,
            "labels": ListOf(ListOf(LABEL), "n"),
            "scores": ListOf(ListOf(NUMBER), "n", optional=True),
            "rule": _RULE,
        }
    ),
    "real": Record({"name": TEXT, "support": _SUPPORT}),
    "two": Record(
        {"name": TEXT, "low": LABEL, "high": LABEL, "domain": Plain((str,), words=(*DOMAINS,)), "rule": _RULE}
    ),
}


def written_coding(coding: AnyCoding | None) -> Header | None:
    """Return a coding as a header holds it."""
    if coding is None:
        return None
    rule = {} if coding.rule is None else {"rule": _written_rule(coding.rule)}
    if isinstance(coding, CategoryCoding):
        values = coding.domain.values if isinstance(coding.domain, Categories) else None
        scores = {} if values is None else {"scores": [list(numbers) for numbers in values]}
        return {"name": coding.name, "labels": [list(labels) for labels in coding.labels], **scores, **rule}
    if isinstance(coding, RealCoding):
        return {"name": "real"} if type(coding.domain) is Reals else {"name": "real", "support": asdict(coding.domain)}
    return {"name": coding.name, "low": coding.low, "high": coding.high, "domain": coding.domain.name, **rule}


def read_coding(written: Header | None) -> AnyCoding | None:
    """Return the coding that `written_coding` wrote."""
    if written is None:
        return None
    if written["name"] == "real":
        return RealCoding(Continuum(**written["support"])) if "support" in written else RealCoding()
    rule = _read_rule(written.get("rule"))
    if "labels" not in written:
        return Coding(written["name"], written["low"], written["high"], DOMAINS[written["domain"]], rule)
    labels = tuple(map(tuple, written["labels"]))
    scores = tuple(tuple(map(float, numbers)) for numbers in written["scores"]) if "scores" in written else None
    domain = DOMAINS.get(written["name"]) or Categories(tuple(map(len, labels)), scores)
    return CategoryCoding(labels, domain, rule)


def _written_rule(rule: object) -> Header:
    if isinstance(rule, Threshold):
        return {"threshold": float(rule.threshold)}
    if isinstance(rule, Columns):
        cuts = {name: cut for name, cut in rule.declared.items() if isinstance(cut, Threshold)}
        return {"columns": {name: float(cut.threshold) for name, cut in cuts.items()}}
    if isinstance(rule, OneHot):
        groups = rule.groups
        return {"one_hot": groups if isinstance(groups, str) else {str(k): list(v) for k, v in groups.items()}}
    return {"shares": True}


def _read_rule(written: Header | None) -> Threshold | Columns | OneHot | Shares | None:
    if written is None:
        return None
    if "threshold" in written:
        return Threshold(written["threshold"])
    if "columns" in written:
        return Columns({name: Threshold(number) for name, number in written["columns"].items()})
    return OneHot(written["one_hot"]) if "one_hot" in written else Shares()
