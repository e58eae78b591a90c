"""What every family of models offers the commands: to be fitted, read data, sampled and shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class FitOrder:
    """A fit as it was asked for.

    Parameters
    ----------
    data : Path
        The table.
    estimator : type
        What is fitted.
    flags : dict
        The flags that were given, by name.
    seed : int, optional
        For everything random.
    show_progress : bool
        Whether to show a bar, on a terminal.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gibbsian.cli.families import FitOrder
    >>> FitOrder(Path("votes.csv"), object, {"l2": 0.1}).flags
    {'l2': 0.1}
    """

    data: Path
    estimator: Any
    flags: dict[str, Any]
    seed: int | None = None
    show_progress: bool = False


@dataclass(frozen=True)
class Rows:
    """Data as the questions of a fitted model take it.

    Parameters
    ----------
    table : Any
        What the estimator is given: a Dataset, or a data frame.
    n_rows : int
        How many rows.
    weights : array, optional
        How much each row counts.
    n_missing : int
        How many cells are missing.

    Examples
    --------
    >>> from gibbsian.cli.families import Rows
    >>> Rows([[1, 0]], 1).n_missing
    0
    """

    table: Any
    n_rows: int
    weights: Any = None
    n_missing: int = 0


@dataclass(frozen=True)
class Section:
    """One table of what a model holds: for the eye, and as records for JSON.

    Parameters
    ----------
    key : str
        Its name in JSON.
    title : str
        Its title on the screen.
    columns : sequence of str
        Their titles; in JSON the keys, with underscores.
    rows : list of tuples
        The cells.
    record : Any
        What JSON holds instead of one record for each row.

    Examples
    --------
    >>> from gibbsian.cli.families import Section
    >>> Section("pairs", "pairs", ("first", "mean of product"), [("a", 0.5)]).json
    [{'first': 'a', 'mean_of_product': 0.5}]
    """

    key: str
    title: str
    columns: Sequence[str]
    rows: list[tuple[Any, ...]]
    record: Any = None

    @property
    def json(self) -> Any:
        """What JSON holds."""
        if self.record is not None:
            return self.record
        keys = [column.replace(" ", "_") for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Family:
    """How the models of one family are used; each takes a fitted estimator first.

    Parameters
    ----------
    fit : callable
        ``fit(order)`` is the fitted estimator.
    read : callable
        ``read(machine, path, weights, convert)`` is ``(machine, Rows)``: data in the model's columns and coding.
    sample : callable
        ``sample(machine, n, method)`` is ``(names, rows)``.
    facts : callable
        ``facts(machine)`` says in words, by title, what the model is and how its fit ended.
    record : callable
        ``record(machine)`` is the same for JSON.
    questions : frozenset of str
        The commands that its models can answer.

    Examples
    --------
    >>> from gibbsian.cli.models import MODELS
    >>> sorted(MODELS["pairwise"].family.questions)
    ['expect', 'impute', 'intervals', 'sample', 'score']
    """

    fit: Callable[[FitOrder], Any]
    read: Callable[..., tuple[Any, Rows]]
    sample: Callable[..., tuple[Sequence[str], Any]]
    facts: Callable[[Any], dict[str, str]]
    record: Callable[[Any], dict[str, Any]]
    questions: frozenset[str] = field(default_factory=frozenset)
