"""Reading a table for a model that was fitted: its columns, in its coding."""

from __future__ import annotations

from collections.abc import Sequence

from gibbsian.data.dataset import Dataset
from gibbsian.data.readers import read_table
from gibbsian.data.rules import Groups, OneHot
from gibbsian.domain import AnyCoding
from gibbsian.errors import ArgumentError


def read_for(
    coding: AnyCoding,
    names: tuple[str, ...],
    source: object,
    weights: str | None = None,
    convert: bool = False,
    unseen: Sequence[str] = (),
) -> Dataset:
    """Read the columns that a model knows, those of `unseen` if they are there; others, such as ids, are left aside."""
    if unseen:
        source = read_table(source).with_blanks(name for name in unseen if name in names)
    if convert and not coding.domain.two_valued:
        raise ArgumentError("`convert` rewrites two-valued columns, and the model's are others", "leave it out")
    rule = coding.rule
    data = Dataset.read(
        source,
        columns=_known_columns(names, source, rule.groups if isinstance(rule, OneHot) else None),
        coding="auto" if convert and rule is None else coding,
        weight_column=weights,
        declared_by="the model",
    )
    return data.convert(coding) if convert else data


def _known_columns(names: tuple[str, ...], source: object, dummies: Groups | None) -> tuple[str, ...] | list[str]:
    """Return the columns of a table by their own names, or by those of the dummy columns that stand for them."""
    if dummies is None:
        return names
    table = read_table(source)
    if isinstance(dummies, str):
        known = {name for name in table.names if name.rpartition(dummies)[0] in names}
    else:
        known = {column for columns in dummies.values() for column in columns}
    return [name for name in table.names if name in names or name in known]
