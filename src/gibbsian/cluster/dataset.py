"""`DistributedDataset`: rows on the workers of a cluster, with the sums over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.cluster.connection import address_of, connect, guarded, sent_once
from gibbsian.cluster.packed import (
    Bound,
    Facts,
    Packed,
    apply,
    branch,
    called,
    counted_together,
    draw,
    evaluated,
    remade,
    weighed,
)
from gibbsian.cluster.sources import (
    PARTITION_CELLS,
    Reading,
    files_named,
    in_partitions,
    packed,
    pieces_of,
    scan,
    table_of,
    together,
)
from gibbsian.data import Dataset
from gibbsian.data.columns import columns_in, identifier_notice
from gibbsian.data.encoding import encode
from gibbsian.data.minibatches import draw_seed, seeded
from gibbsian.data.readers import is_dask
from gibbsian.data.rows import Rows, T
from gibbsian.data.rules import as_rule
from gibbsian.data.stream import WindowPass, are_marked, counted, marked
from gibbsian.data.sums import scaled, tree_sum
from gibbsian.domain import AnyCoding
from gibbsian.errors import (
    ArgumentError,
    DataError,
    MissingValuesError,
    MissingValuesWarning,
    TooExpensiveError,
    notify,
)
from gibbsian.resources import format_bytes, require_memory

# Results that a worker adds before they travel, a power of two: a branch of the tree.
BRANCH = 16
# Bytes of an argument that are not sent with every task.
LARGE = 2**16
# Cells of the partitions that are on the client together where rows are drawn in minibatches.
WINDOW_CELLS = 2**26
# Bytes of a cell while its partition is read: codes and masks of its rows, and of the distinct ones once more.
BYTES_WHILE_READ = 6


@dataclass(frozen=True, eq=False)
class DistributedDataset(Rows):
    """Rows on the workers of a Dask cluster; made by `DistributedDataset.read`.

    Each partition is kept as its distinct states with their weights, packed. Sums over the partitions are added along
    a tree of one shape, so their bits depend neither on the number of workers nor on which of them is done first, and a
    partition that is lost with its worker is read again to the same bits.

    Parameters
    ----------
    client : distributed.Client
        The way to the cluster.
    parts : tuple of Future
        The partitions, each a `Packed` on some worker.
    facts : tuple of Facts
        Sizes and digests of the partitions.
    coding : Coding, CategoryCoding or RealCoding
        How the values are written, the same in all partitions.
    names : tuple of str
        The variables.
    dropped : tuple of str
        Columns that were left out, by the user or as identifiers of rows.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.cluster.DistributedDataset.on_cluster, gb.Dataset.on_cluster
    (True, False)
    """

    client: Any
    parts: tuple[Any, ...]
    facts: tuple[Facts, ...]
    coding: AnyCoding
    names: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    on_cluster: ClassVar[bool] = True

    def __repr__(self) -> str:
        return (
            f"DistributedDataset(n_rows={self.n_rows}, n_variables={self.n_variables}, coding={self.coding.name!r}, "
            f"n_partitions={len(self.parts)})"
        )

    # -- reading ------------------------------------------------------------------------------------------------------
    @classmethod
    def read(
        cls,
        source: Any,
        *,
        coding: Any = "auto",
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        weight_column: str | None = None,
        client: Any = None,
        partition_cells: int | None = None,
    ) -> Self:
        """Read files on the workers, or the pieces of a Dask frame or array.

        Parameters
        ----------
        source : str, path, sequence of these, dask.dataframe or dask.array
            Files: ``.parquet``, ``.npy`` and text, also by a pattern (``part-*.parquet``) and on any store that fsspec
            knows (``s3://...``); workers must see them.
        coding : default="auto"
            What the cells are, as for `Dataset.read`. Where it is left to the data, all rows are looked at.
        columns, drop : sequence of str, optional
            Columns to keep, in that order; columns to leave out.
        weight_column : str, optional
            A column that holds the sample weights.
        client : Client, str or None, default=None
            The cluster, as for `connect`.
        partition_cells : int, optional
            Cells of a partition, about: by default 2**24, and more where that would be more than 4096 partitions. Small
            files are put together, a row group of a Parquet file is not cut.

        Examples
        --------
        >>> import gibbsian as gb
        >>> data = gb.cluster.DistributedDataset.read("part-*.parquet", client="local")  # doctest: +SKIP
        >>> gb.BoltzmannMachine(learner="mple").fit(data)                                # doctest: +SKIP
        """
        client = connect(client)
        with guarded(client):
            sources = _sources(client, source, partition_cells)
            reading, dropped = _agreed(client, sources, coding, columns, drop, weight_column)
            _require_memory(client, sources, reading)
            return cls._of(client, sources, reading, tuple(dropped))

    @classmethod
    def _of(cls, client: Any, sources: list[Any], reading: Reading, dropped: tuple[str, ...]) -> Self:
        """Have the partitions read and packed, once."""
        parts = _computed(client, packed, sources, reading)
        kept, facts = _with_rows(client, parts)
        n_empty = sum(fact.n_empty for fact in facts)
        if n_empty:
            notify(MissingValuesWarning(f"{n_empty} rows have no observed cell", "left out of the fit"))
        coding, names = client.submit(_coding_and_names, kept[0], pure=False).result()
        return cls(client, kept, facts, coding, names, dropped)

    # -- sizes --------------------------------------------------------------------------------------------------------
    @property
    def n_rows(self) -> int:
        """Number of rows in all partitions."""
        return sum(fact.n_rows for fact in self.facts)

    @property
    def n_states(self) -> int:
        """Number of distinct states of each partition, added up."""
        return sum(fact.n_states for fact in self.facts)

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return tree_sum(fact.weight for fact in self.facts)

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return sum(fact.n_missing for fact in self.facts)

    nbytes: ClassVar[int] = 0  # of this process

    @property
    def packed_bytes(self) -> int:
        """Memory that the packed partitions take on the workers."""
        return sum(fact.nbytes for fact in self.facts)

    @property
    def identity(self) -> tuple[str, ...]:
        """Digests of the partitions: what a checkpoint is compared by."""
        return tuple(fact.digest for fact in self.facts)

    has_shares: ClassVar[bool] = False

    def require_complete(self, who: str, instead: str = "") -> None:
        """Raise `MissingValuesError` when cells are missing."""
        if self.has_missing:
            raise MissingValuesError(
                f"{who} needs complete rows, but {self.n_missing} cells are missing",
                "on a cluster learn by `learner='mle'`, 'mple' or 'pcd', which sum them out, or leave the rows out",
            )

    # -- sums ---------------------------------------------------------------------------------------------------------
    def partitions(self) -> Iterator[Dataset]:
        """Yield the partitions as data sets in memory, one after the other."""
        for part in self.parts:
            with guarded(self.client):
                yield part.result().unpacked()

    def reduce(self, function: Callable[..., T], *given: Sequence[Any]) -> T:
        """Return the sum of a function over the partitions, taken on the workers; `given` has a part for each."""
        return self._total(apply, self.parts, *given, function=function)

    def spread(self, function: Callable[..., Any], *given: Sequence[Any]) -> Any:
        """Return the sum of a function over other things than rows, taken on the workers along the same tree."""
        return self._total(called, *given, function=function)

    def mean(self, function: Callable[[Dataset], T]) -> T:
        """Return the mean of a function over the partitions by their weights."""
        return scaled(self._total(weighed, self.parts, function=function), 1.0 / self.total_weight)

    def bind(self, make: Callable[[Dataset], Callable[[np.ndarray], T]]) -> Callable[[np.ndarray], T]:
        """Bind a function of theta to the partitions, where they are; it gives the mean of theirs by their weights."""
        with guarded(self.client):
            functions = self.client.map(partial(Bound, make), self.parts, pure=False)
        share = 1.0 / self.total_weight
        return lambda theta: scaled(self._total(evaluated, functions, theta=theta), share)

    def _total(self, task: Callable[..., Any], *parts: Sequence[Any], **arguments: Any) -> Any:
        """Return the sum of a task's results over partitions, along a tree that only their number decides."""
        with guarded(self.client):
            shared = {name: _sent_once(self.client, value) for name, value in arguments.items()}
            results = self.client.map(task, *parts, **shared, pure=False)
            if len(results) > BRANCH:
                runs = [results[start : start + BRANCH] for start in range(0, len(results), BRANCH)]
                results = self.client.map(branch, runs, pure=False)
            return tree_sum(self.client.gather(results))

    def convert(self, coding: Any) -> Self:
        """Return the same rows written in another coding, on the workers."""
        return self.map(lambda part: part.convert(coding))

    def map(self, function: Callable[[Dataset], Dataset]) -> Self:
        """Return the rows as a function makes them of each partition, on the workers, where they are kept packed.

        Rows without a weight are left out.
        """
        with guarded(self.client):
            made = self.client.map(remade, self.parts, function=function, pure=False)
            parts, facts = _with_rows(self.client, made)
            coding, names = self.client.submit(_coding_and_names, parts[0], pure=False).result()
        return replace(self, parts=parts, facts=facts, coding=coding, names=names)

    # -- rows that come here ------------------------------------------------------------------------------------------
    def collect(self) -> Dataset:
        """Return the rows as a data set of this process: each distinct row once, with its weight.

        They are counted on the workers, some partitions at a time, and only what is distinct travels.
        """
        parts = list(self.parts)
        with guarded(self.client):
            while len(parts) > 1:
                runs = [parts[start : start + BRANCH] for start in range(0, len(parts), BRANCH)]
                parts = [self.client.submit(counted_together, run, pure=False) for run in runs]
            size = self.client.submit(_n_cells, parts[0], pure=False).result()
            require_memory(BYTES_WHILE_READ * size, "the distinct rows of the cluster", "learn where they are")
            return counted([parts[0].result().unpacked()])

    def sample(self, n: int, rng: np.random.Generator) -> Dataset:
        """Draw `n` rows by their weights, with replacement; each partition draws its share."""
        numbers = rng.multinomial(n, [fact.weight / self.total_weight for fact in self.facts])
        seed = draw_seed(rng)
        with guarded(self.client):
            drawn = [
                self.client.submit(draw, self.parts[k], int(m), seeded(seed, k), pure=False)
                for k, m in enumerate(numbers)
                if m
            ]
            states = np.concatenate(self.client.gather(drawn))
        return Dataset.of_states(states, self.coding, names=self.names, missing=are_marked(states))

    @property
    def window_rows(self) -> int:
        """Rows that are on the client together and shuffled among themselves, unless one partition has more."""
        return WINDOW_CELLS // self.n_variables

    @property
    def piece_rows(self) -> list[int]:
        """Rows of each partition."""
        return [fact.n_rows for fact in self.facts]

    def load(self, pieces: Sequence[int] | np.ndarray) -> np.ndarray:
        """Bring partitions here and return all their rows, missing cells marked."""
        with guarded(self.client):
            found: list[Packed] = self.client.gather([self.parts[p] for p in pieces])
        data = [part.unpacked() for part in found]
        return np.concatenate([marked(*one.rows()) for one in data])

    def minibatches(self, batch_size: int, seed: np.ndarray, epoch: int) -> WindowPass:
        """Return the minibatches of a pass; partitions come here in windows."""
        if any(fact.weighted for fact in self.facts):
            raise ArgumentError("minibatches on a cluster take rows without weights", "leave `weight_column` out")
        return WindowPass.of(self, batch_size, seed, epoch)

    row_weights: ClassVar[None] = None  # rows of weight zero were left out when they were read

    def __getattr__(self, name: str) -> Any:
        """Refuse what only a `Dataset` in memory has."""
        if name.startswith("_") or not (name in Dataset.__dataclass_fields__ or hasattr(Dataset, name)):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise ArgumentError(
            f"this needs the rows in one process, but they are on the workers of {address_of(self.client)}",
            "give `data.collect()`, its distinct rows, where they fit this machine",
        )


# -- reading ----------------------------------------------------------------------------------------------------------
def _sources(client: Any, source: Any, cells: int | None) -> list[Any]:
    """Return what partitions are read from: pieces of files, or the delayed pieces of a collection."""
    if is_dask(source):
        whole = source.rechunk({1: -1}) if hasattr(source, "rechunk") else source
        return list(np.ravel(np.array(whole.to_delayed(), dtype=object)))
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    listed = client.gather(client.map(files_named, [os.fspath(path) for path in given], pure=False))
    paths = [path for found in listed for path in found]
    pieces = client.gather(client.map(pieces_of, paths, most_cells=cells or PARTITION_CELLS, pure=False))
    return in_partitions([piece for found in pieces for piece in found], cells)


def _computed(client: Any, task: Callable[..., Any], sources: list[Any], *arguments: Any) -> list[Any]:
    """Have a task done for each source, and return the futures."""
    from dask import delayed

    step = delayed(task, pure=False)
    return client.compute([step(source, number, *arguments) for number, source in enumerate(sources)])


def _agreed(
    client: Any, sources: list[Any], coding: Any, columns: Any, drop: Any, weight_column: str | None
) -> tuple[Reading, list[str]]:
    """Agree on the columns and the coding of all partitions; what is declared needs no look at the rows."""
    rule, dropped = as_rule(coding), [drop] if isinstance(drop, str) else list(drop)
    closed = rule if isinstance(rule, AnyCoding) else None
    scanned = sources[:1] if closed else sources
    shown = together(client.gather(_computed(client, _scan, scanned, coding)))
    aside = [*dropped, *([] if weight_column is None else [weight_column])]
    if columns is None and not closed:
        named = sorted(shown.identifiers.difference(aside), key=shown.names.index)
        for name in named:
            identifier_notice(name)
        dropped, aside = [*dropped, *named, *columns_in(coding).dropped], [*aside, *named]
    chosen = table_of(shown).chosen(columns, aside)
    found = closed or encode(chosen, coding).coding
    kept = tuple(name for name in chosen.names if name not in columns_in(coding).dropped)
    return Reading(kept, found, weight_column, closed is None), dropped


def _with_rows(client: Any, parts: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Facts, ...]]:
    """Return the partitions that have rows, with what the client is to know of them."""
    facts = client.gather(client.map(_facts, parts, pure=False))
    if not any(facts):
        raise DataError("no partition has a row with an observed cell", "there is nothing to fit")
    found = [(part, fact) for part, fact in zip(parts, facts, strict=True) if fact is not None]
    kept, sizes = zip(*found, strict=True)
    return kept, sizes


def _sent_once(client: Any, value: Any) -> Any:
    """Return a value as tasks are to take it: a large one travels to each worker, not with each task.

    Dask does so itself from 100,000 bytes on, under the bare name of the argument, which two evaluations then share.
    """
    from dask.sizeof import sizeof

    return sent_once(client, value) if sizeof(value) > LARGE else value


def _scan(source: Any, number: int, coding: Any) -> Any:
    return scan(source, coding)


def _facts(part: Packed | None) -> Facts | None:
    return None if part is None else part.facts()


def _n_cells(part: Packed) -> int:
    return len(part.weights) * len(part.names)


def _coding_and_names(part: Packed) -> tuple[AnyCoding, tuple[str, ...]]:
    return part.coding, part.names


def _require_memory(client: Any, sources: list[Any], reading: Reading) -> None:
    """Refuse rows that would not fit the workers, if all of them were different."""
    rows = [sum(piece.n_rows for piece in source) for source in sources if isinstance(source, tuple)]
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limit = min((worker["memory_limit"] for worker in workers if worker["memory_limit"]), default=0)
    if not sum(rows) or not limit:
        return
    n = len(reading.columns)
    a_row = 1 + (-(-n // 8) if reading.coding.domain.two_valued else n * (8 if reading.coding.name == "real" else 1))
    threads = max(worker["nthreads"] for worker in workers)
    needed = a_row * sum(rows) / len(workers) + BYTES_WHILE_READ * n * max(rows) * threads
    if needed > limit:
        raise TooExpensiveError(
            f"each of the {len(workers)} workers needs up to {format_bytes(needed)} but has {format_bytes(limit)}",
            "add workers or memory, or write the files with smaller row groups",
        )
