"""The checks before a fit, on a stream: one pass over the disk, the sentences of `preflight`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data.findings import PreflightReport, check_observed, names_where, warn_of_duplicates
from gibbsian.data.pairs import PairCells
from gibbsian.data.preflight import _duplicates, _judge_cells, _judge_constant, _warn_of_nearly_constant
from gibbsian.data.stream import DataStream, StreamSummary
from gibbsian.errors import DataError, GraphError, MissingValuesError
from gibbsian.graphs import Graph

# Up to this many columns the pairs are counted too: one product per piece of the file.
MOST_COLUMNS_FOR_PAIRS = 2048


def preflight_stream(
    stream: DataStream, graph: Graph, *, l1: float = 0.0, l2: float = 0.0, bias: bool = True
) -> PreflightReport:
    """Check that a pairwise model on `graph` can be learned from a stream, as `preflight` does for data in memory.

    Every cell is read once, so a value outside the coding is found before learning starts. Three columns that rule
    out a maximum together are not looked for, and rows are not compared: ``n_states`` is the number of rows.

    Raises
    ------
    DataError
        Fewer than two rows, or a column without an observed cell.
    MissingValuesError
        Other missing cells.
    ConstantColumnError, MaximumDoesNotExistError
        As in `preflight`.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, gibbsian as gb
    >>> from gibbsian.data.stream import DataStream
    >>> from gibbsian.data.stream_checks import preflight_stream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
    >>> np.save(path, np.array([[0, 1], [1, 1], [0, 1]]))
    >>> preflight_stream(DataStream.open(path), gb.graphs.complete(2))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ConstantColumnError: column 'x1' has one value only, so no finite bias is the most likely: ...
    """
    if graph.n_nodes != stream.n_variables:
        raise GraphError(f"the graph has {graph.n_nodes} nodes but the data has {stream.n_variables} columns")
    if stream.n_rows < 2:
        raise DataError(f"`n_samples` = {stream.n_rows} is too few to fit", "give at least 2 rows")
    counts = stream.summary(pairs=stream.n_variables <= MOST_COLUMNS_FOR_PAIRS)
    named: Any = stream  # the sentences need names, coding and domain only
    check_observed(named, counts.low + counts.high)
    _check_complete(stream, counts)
    constant = names_where(named, (counts.low == 0) | (counts.high == 0))
    _judge_constant(constant, bias, l2)
    nearly = _warn_of_nearly_constant(named, counts.low, counts.high)
    notes: tuple[str, ...] = ()
    duplicates: tuple[tuple[str, str, str], ...] = ()
    if counts.together is not None:
        cells = _pair_cells(counts, graph.edges)
        notes = _judge_cells(named, graph, cells, l1 == 0 and l2 == 0, bias)
        if graph.is_complete:
            duplicates = warn_of_duplicates(_duplicates(named, graph, cells, set(constant)))
    return PreflightReport(
        stream.n_rows, stream.n_rows, 0, constant=constant, nearly_constant=nearly, duplicates=duplicates, notes=notes
    )


def _check_complete(stream: DataStream, counts: StreamSummary) -> None:
    if counts.missing.any():
        column = stream.names[int(np.flatnonzero(counts.missing)[0])]
        raise MissingValuesError(
            f"{int(counts.missing.sum())} cells of the stream are missing (first in column {column!r}), "
            "and learning by minibatches needs complete rows",
            "leave out such rows or columns, or read the data with `Dataset.read` and use `learner='mle'`",
        )


def _pair_cells(counts: StreamSummary, edges: np.ndarray) -> PairCells:
    """Which combinations of values occur, from the counts of complete rows."""
    assert counts.together is not None
    i, j = edges.T
    both = counts.together[i, j]
    filled = [
        counts.n_rows - counts.high[i] - counts.high[j] + both,
        counts.high[j] - both,
        counts.high[i] - both,
        both,
    ]
    observed = np.column_stack(filled) > 0
    return PairCells(observed, observed)
