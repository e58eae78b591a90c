"""Which model suits a table, by what its columns hold; and the fit that needs no more than the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from gibbsian.data.columns import are_whole, columns_in, identifiers, kinds_of
from gibbsian.data.readers import read_table
from gibbsian.data.rows import Rows
from gibbsian.data.rules import Columns, Labels, OneHot, Ordinal, Values, as_rule
from gibbsian.data.table import Table
from gibbsian.domain import CategoryCoding, RealCoding
from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators.known import ESTIMATORS


class Choice(NamedTuple):
    """A model and why it suits.

    Parameters
    ----------
    name : str
        The registered name of its estimator.
    reason : str
        What the columns hold.
    other : str
        Another that could be asked for instead.
    """

    name: str
    reason: str
    other: str

    @property
    def sentence(self) -> str:
        """The choice in words."""
        machines = {"pairwise": "a pairwise", "ordinal": "an ordinal", "potts": "a Potts", "gaussian": "a Gaussian"}
        return f"{self.reason}: {machines[self.name]} machine"


def choose_model(source: Any, coding: Any = None, drop: Any = ()) -> Choice:
    """Choose a model by what the columns of a table hold.

    Parameters
    ----------
    source : array, frame, path, Dataset or DataStream
        The table; data that have been read say by their coding what their columns hold.
    coding : default=None
        What is declared of the values, of all columns or by column; as in `Dataset.read`.
    drop : str or list of str, default=()
        Columns to leave out.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.estimators.choose_model([["F", 0], ["M", 4], ["M", 2], ["F", 1]]).sentence
    "ordered levels ('x1') beside two values: an ordinal machine"
    """
    if isinstance(source, Rows):
        coding = source.coding if coding is None else coding
    rule = None if coding is None else as_rule(coding)
    if rule is None or rule == "auto" or isinstance(coding, Mapping):
        return _by_kinds(read_table(source).chosen(drop=drop), columns_in("auto" if coding is None else coding))
    if isinstance(rule, RealCoding):
        return Choice("gaussian", "columns were declared to be real numbers", "rbm")
    domain = rule.domain if isinstance(rule, CategoryCoding) else None
    if isinstance(rule, Ordinal | Values) or getattr(domain, "values", None) is not None:
        return Choice("ordinal", "columns were declared to be ordered", "potts")
    if isinstance(rule, Labels | OneHot) or (domain is not None and not domain.two_valued):
        return Choice("potts", "columns were declared to be categories", "full-span")
    return Choice("pairwise", "columns were declared to have two values", "higher-order")


def _by_kinds(table: Table, coding: Columns) -> Choice:
    table = table.chosen(drop=[*identifiers(table, coding), *coding.dropped])
    kinds = kinds_of(table, coding)
    of = {kind: [name for name in kinds if kinds[name] == kind] for kind in set(kinds.values())}
    numbers, categories = of.get("numbers", []), of.get("categories", [])
    words = [name for j, name in enumerate(table.names) if table.column(j).numbers() is None]
    if numbers and not words and not coding.kept:
        return Choice("gaussian", f"real numbers ({_first(numbers)})", "rbm")
    fractions = [name for name in numbers if not are_whole(table.column(table.names.index(name)))]
    if fractions or (numbers and categories):
        real, other = (fractions or numbers)[0], next(name for name in kinds if kinds[name] != "numbers")
        raise DataError(
            f"column {real!r} holds real numbers and {other!r} does not, and no model here has both",
            f"cut the numbers in two (`coding={{{real!r}: Threshold(t)}}`), or leave them out (`drop=[{real!r}]`)",
        )
    if categories:
        return Choice("potts", f"words or labels without an order ({_first(categories)})", "full-span")
    if ordered := [name for name in kinds if kinds[name] in ("ordered", "numbers")]:
        beside = " beside two values" if len(ordered) < len(kinds) else ""
        return Choice("ordinal", f"ordered levels ({_first(ordered)}){beside}", "potts")
    return Choice("pairwise", "two values in every column", "potts")


def _first(names: list[str]) -> str:
    return repr(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def fit(source: Any, *, coding: Any = None, drop: Any = (), weights: str | None = None, **settings: Any) -> Any:
    """Learn a table with the model that suits its columns, and return the fitted estimator.

    Two values in every column give a `BoltzmannMachine`; ordered levels (whole numbers with few values, ordered
    categories) beside them an `OrdinalMachine`; words with three and more values a `PottsMachine`; real numbers a
    `GaussianMachine`. Identifiers of rows are left out with a warning.

    Parameters
    ----------
    source : array, frame, path, Dataset or DataStream
        The table; data that have been read say by their coding what their columns hold.
    coding : default=None
        What is declared of the values, of all columns or by column; as in `Dataset.read`.
    drop : str or list of str, default=()
        Columns to leave out.
    weights : str, default=None
        The column of row weights.
    **settings
        Settings of the estimator.

    Returns
    -------
    Estimator
        Fitted; ``result_.provenance["chosen"]`` says why it was chosen.

    Examples
    --------
    >>> import gibbsian as gb
    >>> machine = gb.fit([["F", "yes"], ["M", "no"], ["M", "yes"], ["F", "no"]])
    >>> type(machine).__name__, machine.result_.provenance["chosen"]
    ('BoltzmannMachine', 'two values in every column: a pairwise machine')
    """
    if isinstance(source, Rows):
        return _fit_data(source, {"coding": coding, "drop": drop, "weights": weights}, settings)
    table = read_table(source)
    left_out = [*([drop] if isinstance(drop, str) else drop), *columns_in(coding or "auto").dropped]
    coding = columns_in(coding).kept or None if isinstance(coding, Mapping) else coding
    choice = choose_model(table, coding, [*left_out, *(name for name in table.names if name == weights)])
    kind: Any = ESTIMATORS.factory(choice.name)
    machine = kind(**settings, **({} if coding is None or choice.name == "gaussian" else {"coding": coding}))
    return chosen_by(choice, machine.fit(machine.read(table, drop=left_out, weights=weights)))


def _fit_data(data: Any, reading: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """Learn data that have been read."""
    for argument, value in reading.items():
        if value:
            raise ArgumentError(
                "is for tables, and this one has been read", "give it to `Dataset.read`", argument=argument, value=value
            )
    choice = choose_model(data)
    kind: Any = ESTIMATORS.factory(choice.name)
    own = {} if choice.name == "gaussian" else {"coding": data.coding}
    return chosen_by(choice, kind(**{**own, **settings}).fit(data))


def chosen_by(choice: Choice, machine: Any) -> Any:
    """Write down why a fitted estimator was chosen."""
    story = {**machine.result_.provenance, "chosen": choice.sentence}
    machine.result_ = replace(machine.result_, provenance=story)
    return machine
