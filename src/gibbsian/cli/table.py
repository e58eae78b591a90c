"""Tables and files of edges, as flags ask for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbsian.errors import ArgumentError, CodingError, DataError, GraphError
from gibbsian.startup import numpy as np

# What the two columns of a file of edges are usually called.
EDGE_TITLES = {"source", "target", "from", "to", "first", "second", "node1", "node2", "a", "b", "i", "j", "u", "v"}
# A path on a store such as s3://bucket/part.parquet, as `Path` writes it.
_STORE = re.compile(r"^([a-z0-9]{2,}):/(?!/)")


@dataclass(frozen=True)
class Reading:
    """How a table is read for a fit: the values of the flags of `options.reading`."""

    coding: str | None
    binarize: float | None
    column: tuple[str, ...]
    categories: str | None
    values: str | None
    one_hot: str | None
    complete_rows: bool
    drop: tuple[str, ...]
    weights: str | None

    def declared(self) -> dict[str, Any]:
        """Return the setting `coding` that these flags declare; empty where they leave it open."""
        from gibbsian.data import Labels, OneHot, Threshold, Values

        own = None if self.coding is None else parse_coding(self.coding)
        labels = None if self.categories is None else [label.strip() for label in self.categories.split(",")]
        if columns := parse_columns(self.column).kept:
            if any(given is not None for given in (own, labels, self.binarize, self.one_hot, self.values)):
                raise ArgumentError("--column says what one column is", "leave out what is said of all, or --column")
            return {"coding": columns}
        if self.binarize is not None:
            return {"coding": Threshold(self.binarize, *([] if own is None else [own]))}
        if self.one_hot is not None:
            return {"coding": OneHot(self.one_hot, labels)}
        if self.values is not None:
            return {"coding": Values(parse_values(self.values))}
        if labels is not None:
            return {"coding": Labels(labels)}
        return {} if own is None else {"coding": own}

    @property
    def left_out(self) -> list[str]:
        """The columns that are no part of the model."""
        return [*self.drop, *parse_columns(self.column).dropped]

    def read(self, estimator: Any, path: Path, memory: str | None = None, table: Any = None, client: Any = None) -> Any:
        """Return the file as the estimator takes it, or its table; with a `memory` or a `client` its rows stay away."""
        if client is not None:
            return self._distributed(estimator, path, client)
        if memory is not None:
            return self._open(estimator, path, memory)
        try:
            data = estimator.read(path if table is None else table, drop=self.left_out, weights=self.weights)
        except DataError as error:
            others = _other_arrays(path)
            if not others:
                raise
            hint = error.also(f"name another array of the file, as in {path.name}:{others[0]}")
            raise type(error)(error.reason, hint) from None
        return data.complete_rows() if self.complete_rows else data

    def _open(self, estimator: object, path: Path, memory: str) -> Any:
        from gibbsian.data import DataStream

        if self.weights is not None or self.complete_rows:
            raise ArgumentError("--memory learns from the disk, without --weights or --complete-rows", "leave them out")
        return DataStream.open(path, coding=getattr(estimator, "coding", "auto"), drop=self.left_out, memory=memory)

    def check_cluster(self, cluster: str | None, memory: str | None) -> None:
        """Refuse what rows on a cluster do not go with, before one is started."""
        if cluster is not None and (memory is not None or self.complete_rows):
            raise ArgumentError("--cluster has its rows elsewhere, without --memory or --complete-rows", "leave it out")

    def _distributed(self, estimator: Any, path: Path, client: Any) -> Any:
        from gibbsian.cluster import DistributedDataset

        return DistributedDataset.read(
            source_of(path), coding=estimator._coding(), drop=self.left_out, weight_column=self.weights, client=client
        )


def source_of(path: Path) -> str:
    """Return the address that a path was made of, which has no double slash any more."""
    return _STORE.sub(r"\1://", str(path)).replace("file://", "file:///")


def _other_arrays(path: Path) -> list[str]:
    """The tables of an .npz file besides the one that is read where none is named."""
    from gibbsian.data.files import ARRAY_KEYS, readable

    if path.suffix.lower() != ".npz" or not path.is_file():
        return []
    with readable(path, ".npz"), np.load(path, allow_pickle=False) as arrays:
        return [key for key in arrays.files if key not in ARRAY_KEYS and arrays[key].ndim == 2]


# -- values of flags --------------------------------------------------------------------------------------------------
def parse_coding(text: str) -> Any:
    """Turn the value of ``--coding`` into a name or a pair of labels."""
    labels = [label.strip() for label in text.split(",")]
    if len(labels) == 1:
        return text
    if len(labels) != 2 or "" in labels:
        raise CodingError("must be a name, or two labels with a comma between", argument="coding", value=text)
    return tuple(int(label) if label.lstrip("+-").isdigit() else label for label in labels)


def parse_values(text: str) -> list[float]:
    """Turn the value of ``--values`` into numbers."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ArgumentError(
            "must be numbers with commas between, such as -1,0,1", argument="values", value=text
        ) from None


def parse_columns(texts: tuple[str, ...]) -> Any:
    """Turn the values of ``--column`` into the coding of each column."""
    from gibbsian.data import Columns, Ordinal, Threshold

    found: dict[str, Any] = {}
    for text in texts:
        name, _, coding = (part.strip() for part in text.partition("="))
        levels, labels = ([label.strip() for label in coding.split(mark)] for mark in "<,")
        if not name or "" in (*levels, *labels) or name in found:
            raise ArgumentError(f"--column {text} must be COL=A,B,... or COL=CODING, once for a column")
        if coding.startswith(">"):
            found[name] = Threshold(_number(text, coding[1:]))
        elif len(levels) > 1:
            found[name] = Ordinal(levels)
        else:
            found[name] = labels if len(labels) > 1 else coding
    return Columns(found)


def _number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise ArgumentError(f"--column {text} must give a number, as in 'age=>40'") from None


# -- settings that may be files ---------------------------------------------------------------------------------------
def from_files(settings: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings whose value may be the name of a file, with what it holds."""
    readers = {"graph": read_edges, "cliques": read_cliques, "start": _read_start}
    found = {name: read for name, read in readers.items() if isinstance(settings.get(name), str)}
    return {name: read(settings[name], names) for name, read in found.items()}


def _read_start(text: str, names: tuple[str, ...]) -> Any:
    """Return the model of a file; a table of means keeps its name, as does what is no file."""
    from gibbsian.data.files import TABLE_FORMATS, format_of
    from gibbsian.estimators import load

    path = Path(text)
    return load(text) if path.is_file() and format_of(path)[0] not in TABLE_FORMATS else text


def read_edges(text: str, names: tuple[str, ...]) -> Any:
    """Return the pairs of a file (names, or positions counted from 0), or the word where there is no such file.

    A first line of usual titles is a header.
    """
    path = Path(text)
    if not path.is_file():
        return text
    edges = []
    for number, cells in _lines(path, "edges"):
        if number == 1 and not set(cells) & set(names) and {cell.lower() for cell in cells} <= EDGE_TITLES:
            continue
        if len(cells) != 2:
            raise GraphError(f"line {number} of {path} holds {len(cells)} names instead of the two of an edge")
        first, second = _members(cells, names)
        if first == second:
            raise GraphError(f"line {number} of {path} joins {first!r} to itself", "leave it out")
        edges.append((first, second))
    if not edges:
        raise GraphError(f"{path} holds no edges", "for none at all use `graph='empty'`")
    return edges


def read_cliques(text: str, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return the cliques of a file: names of columns, or positions counted from 0, one clique a line."""
    path = Path(text)
    if not path.is_file():
        raise GraphError("is not a file", argument="cliques", value=text)
    cliques = [_members([cell for cell in cells if cell], names) for _, cells in _lines(path, "cliques")]
    if not cliques:
        raise GraphError(f"{path} holds no cliques", "give one a line, as names of columns")
    return cliques


def _members(cells: list[str], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(int(cell) if cell.isdigit() and cell not in names else cell for cell in cells)


def _lines(path: Path, what: str) -> list[tuple[int, list[str]]]:
    """The lines of a CSV file that are not empty, with their numbers."""
    import csv

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            stripped = [[cell.strip() for cell in row] for row in csv.reader(file)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise GraphError(f"{path} cannot be read as a CSV file of {what}", f"{error}") from None
    return [(number, cells) for number, cells in enumerate(stripped, start=1) if any(cells)]
