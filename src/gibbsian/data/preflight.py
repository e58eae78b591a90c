"""Checks before a fit: does the data determine the parameters at all?

Why an empty combination is fatal. With biases, the indicator that ``x_i = a`` and ``x_j = b`` is, up to a
constant, a linear combination of the statistics ``x_i``, ``x_j`` and ``x_i x_j``. If the combination never occurs,
the mean of its indicator is zero, on the boundary of what any distribution can have, while every finite parameter
vector gives it a positive probability. Moving the parameters against the indicator then raises the likelihood (and
the pseudolikelihood) for ever. A constant column is the same with the indicator of one value, a pure direction of
biases.

Three columns can do the same together though no two of them do; see `triangles`.

Without biases only ``x_i x_j`` is a statistic. For spins the boundary is two columns always equal or always
opposite; for 0/1 variables it is ``x_i x_j = 1`` never or always.

Penalties. L2 holds every direction. L1 holds the couplings: along an empty combination its linear cost beats a
gain that levels off, so the maximum exists; along a constant column it costs nothing, so that stays an error.

Missing cells. A combination that no row shows but some row could show once its missing cells are filled proves
nothing: it becomes a note.
"""

from __future__ import annotations

import numpy as np

from gibbsian.backends.parallel import n_threads
from gibbsian.blocks import BLOCK_CELLS, LEAST_ROWS, row_blocks
from gibbsian.data.category_checks import preflight_categories
from gibbsian.data.dataset import Dataset
from gibbsian.data.distinct import distinct_rows
from gibbsian.data.findings import (
    LISTED,
    RARE_ROWS,
    RARE_SHARE,
    PreflightReport,
    check_observed,
    check_rows,
    columns_have,
    counted_rows,
    empty_rows,
    listed,
    names_where,
    report_of,
    them,
    warn_of_duplicates,
    warn_of_empty_rows,
)
from gibbsian.data.pairs import CELLS, PairCells, pair_cells
from gibbsian.data.triangles import empty_triangle
from gibbsian.domain import SPIN, require_two_values
from gibbsian.errors import (
    ConstantColumnError,
    DegenerateDataWarning,
    GraphError,
    MaximumDoesNotExistError,
    notify,
)
from gibbsian.graphs import Graph
from gibbsian.models import Model


def preflight(data: Dataset, graph: Graph, *, l1: float = 0.0, l2: float = 0.0, bias: bool = True) -> PreflightReport:
    """Check that a pairwise model on `graph` can be fitted to `data`; with many values, one with tables on its edges.

    Parameters
    ----------
    data : Dataset
        The data.
    graph : Graph
        Which variables interact.
    l1, l2 : float
        Penalties of the fit; l1 holds the couplings only.
    bias : bool
        Whether the model has biases.

    Raises
    ------
    DataError
        Fewer than two rows, no row with an observed cell, or a column without one.
    ConstantColumnError
        A column has one value, the model has biases and l2 is zero.
    MaximumDoesNotExistError
        Without a penalty, the table of some edge or triangle lets its parameters run to infinity.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[0, 0], [0, 1], [1, 0]], names=["a", "b"])
    >>> gb.data.preflight(data, gb.graphs.complete(2))
    Traceback (most recent call last):
        ...
    gibbsian.errors.MaximumDoesNotExistError: the likelihood has no finite maximum, because 'a'=1 never occurs ...
    >>> gb.data.preflight(data, gb.graphs.complete(2), l2=0.01).notes
    ("'a'=1 never occurs together with 'b'=1: the penalty alone keeps the parameters finite",)
    """
    if not data.domain.two_valued:
        return preflight_categories(data, graph, l1=l1, l2=l2)
    if graph.n_nodes != data.n_variables:
        raise GraphError(f"the graph has {graph.n_nodes} nodes but the data has {data.n_variables} columns")
    check_rows(data)
    n_empty = warn_of_empty_rows(data)
    low_rows, high_rows = _rows_with_each_value(data)
    check_observed(data, low_rows + high_rows)
    constant = names_where(data, (low_rows == 0) | (high_rows == 0))
    _judge_constant(constant, bias, l2)
    nearly = _warn_of_nearly_constant(data, low_rows, high_rows)
    cells = pair_cells(data, graph.edges)
    unpenalised = l1 == 0 and l2 == 0
    notes = _judge_cells(data, graph, cells, unpenalised, bias)
    if unpenalised and (bias or data.domain == SPIN) and not data.has_missing:
        _judge_triangles(data, graph)
    duplicates = warn_of_duplicates(_duplicates(data, graph, cells, set(constant)))
    return report_of(data, n_empty, constant=constant, nearly_constant=nearly, duplicates=duplicates, notes=notes)


def drop_empty_rows(data: Dataset) -> Dataset:
    """Return the data without the rows that have no observed cell.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.data.drop_empty_rows(gb.Dataset.read([[0, 1], [None, None]])).n_rows
    1
    """
    empty = empty_rows(data)
    return data.take(~empty) if empty.any() else data


def fit_memory(data: Dataset, model: Model, block_cells: int = BLOCK_CELLS) -> int:
    """Predict the bytes of a fit by an objective: the data, float blocks of states, couplings and L-BFGS's memory.

    Parameters
    ----------
    data : Dataset
        The data.
    model : Model
        The model; only its structure counts.
    block_cells : int
        Cells of the data that are worked on together.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.datasets.load_house_votes()
    >>> gb.data.fit_memory(data, gb.PairwiseModel.zeros(gb.graphs.complete(17), gb.domain.BINARY)) < 2**20
    True
    """
    threads = n_threads()
    # with many values a variable has a column for each of them
    width = data.n_variables if model.flip_columns is None else int(model.flip_columns[-1])
    rows = min(max(block_cells // data.n_variables, LEAST_ROWS), data.n_states)
    cells = rows * width * threads
    # couplings and a product of the gradient on each thread; edges, CSR and indices of the graph weigh as much
    matrices = (1 + threads) * width**2 if getattr(model, "is_dense", False) else 0
    graph = 10 * model.graph.n_edges
    vectors = 110 * model.theta.size  # twenty pairs of L-BFGS, once more while they are shifted, and trial points
    return data.nbytes + 8 * (4 * cells + matrices + graph + vectors)


# -- rows and columns -------------------------------------------------------------------------------------------------
def _rows_with_each_value(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """How many rows of positive weight show the lower and the upper value of each column."""
    rows, domain = counted_rows(data), require_two_values(data.domain)
    high, observed = np.zeros(data.n_variables), np.zeros(data.n_variables)
    for part in row_blocks(data.n_states, data.n_variables):
        high += rows[part] @ (data.states[part] == domain.high)
        observed += rows[part].sum() if data.missing is None else rows[part] @ ~data.missing[part]
    return observed - high, high


def _judge_constant(constant: tuple[str, ...], bias: bool, l2: float) -> None:
    if not constant or not bias:
        return
    if l2 > 0:
        notify(
            DegenerateDataWarning(
                f"{columns_have(constant)} one value only", "the penalty alone keeps the biases finite"
            )
        )
        return
    raise ConstantColumnError(
        f"{columns_have(constant, limit=len(constant))} one value only, so no finite bias is the most likely",
        f"drop {them(constant)} or add a penalty such as `l2=0.01`",
    )


def _warn_of_nearly_constant(data: Dataset, low_rows: np.ndarray, high_rows: np.ndarray) -> tuple[str, ...]:
    rarer = np.minimum(low_rows, high_rows)
    nearly = names_where(data, (rarer > 0) & (rarer < RARE_ROWS) & (rarer < RARE_SHARE * (low_rows + high_rows)))
    if nearly:
        notify(
            DegenerateDataWarning(
                f"{columns_have(nearly)} the rarer value in fewer than {RARE_ROWS} rows",
                "parameters are poorly determined",
            )
        )
    return nearly


# -- pairs ------------------------------------------------------------------------------------------------------------
def _judge_cells(data: Dataset, graph: Graph, cells: PairCells, unpenalised: bool, bias: bool) -> tuple[str, ...]:
    """Raise when an edge's table rules out a finite maximum; return notes on what is only in doubt or penalised."""
    apart = ~cells.observed.any(axis=1)
    if apart.any() and unpenalised:
        first, second = (data.names[node] for node in graph.edges[np.flatnonzero(apart)[0]])
        raise MaximumDoesNotExistError(
            f"columns {first!r} and {second!r} are never observed in the same row, so nothing "
            "determines their coupling",
            "add a penalty such as `l2=0.01`, or leave the edge out of the graph",
        )
    certain = _unbounded_edges(data, cells.possible, bias)
    if certain.any() and unpenalised:
        reasons = _reasons(data, graph, cells.possible, certain, bias)
        raise MaximumDoesNotExistError(
            f"the likelihood has no finite maximum, because {listed(reasons, 'other pair', 'other pairs')}",
            "add a penalty such as `l2=0.01`, or drop or merge columns",
        )
    notes = []
    if certain.any():
        reasons = _reasons(data, graph, cells.possible, certain, bias)
        notes.append(f"{listed(reasons, 'other pair', 'other pairs')}: the penalty alone keeps the parameters finite")
    doubtful = _unbounded_edges(data, cells.observed, bias) & ~certain
    if doubtful.any():
        reasons = _reasons(data, graph, cells.observed, doubtful, bias)
        shown = listed(reasons, "other pair", "other pairs")
        notes.append(f"in the observed cells {shown}: only rows with missing cells decide how large the parameters are")
    return tuple(notes)


def _judge_triangles(data: Dataset, graph: Graph) -> None:
    """Raise when three columns rule out a finite maximum together, though no two of them do."""
    found = empty_triangle(data, graph)
    if found is None:
        return
    nodes, pattern = found
    spelled = [data.coding.labels_of(node)[int(spin > 0)] for node, spin in zip(nodes, pattern, strict=True)]
    shown = ", ".join(f"{data.names[node]!r}={label}" for node, label in zip(nodes, spelled, strict=True))
    raise MaximumDoesNotExistError(
        f"the likelihood has no finite maximum, because {shown} never occur together, nor do their opposites",
        "add a penalty such as `l2=0.01`, or drop one of these columns",
    )


def _unbounded_edges(data: Dataset, filled: np.ndarray, bias: bool) -> np.ndarray:
    """Edges whose table lies on the boundary (see the module's docstring)."""
    if bias:
        return np.count_nonzero(filled, axis=1) < len(CELLS)
    low_low, low_high, high_low, high_high = (filled[:, cell] for cell in range(len(CELLS)))
    if data.domain == SPIN:
        return ~(low_high | high_low) | ~(low_low | high_high)
    return ~high_high | ~(low_low | low_high | high_low)


def _reasons(data: Dataset, graph: Graph, filled: np.ndarray, edges: np.ndarray, bias: bool) -> list[str]:
    """One clause per edge, in words of the user's table; beyond those listed only their number matters."""
    chosen = np.flatnonzero(edges)
    clauses = [_reason(data, graph.edges[e], filled[e], bias) for e in chosen[:LISTED]]
    return clauses + [""] * (len(chosen) - len(clauses))


def _reason(data: Dataset, edge: np.ndarray, filled: np.ndarray, bias: bool) -> str:
    first, second = (data.names[node] for node in edge)
    if not bias and data.domain == SPIN:
        return f"{first!r} and {second!r} are always {'opposite' if filled[1] or filled[2] else 'equal'}"
    both_high = len(CELLS) - 1
    empty = both_high if not bias else int(np.flatnonzero(~filled)[0])
    often = "always" if filled[empty] else "never"
    labels = [data.coding.labels_of(node)[is_high] for node, is_high in zip(edge, CELLS[empty], strict=True)]
    return f"{first!r}={labels[0]} {often} occurs together with {second!r}={labels[1]}"


def _duplicates(data: Dataset, graph: Graph, cells: PairCells, constant: set[str]) -> tuple[tuple[str, str, str], ...]:
    """Pairs of equal or opposite columns: on edges wherever both are observed, elsewhere if alike in every row."""
    low_low, low_high, high_low, high_high = cells.observed.T
    equal = (low_low | high_high) & ~(low_high | high_low)
    opposite = (low_high | high_low) & ~(low_low | high_high)
    found = {tuple(graph.edges[e].tolist()): "equal" for e in np.flatnonzero(equal)}
    found |= {tuple(graph.edges[e].tolist()): "opposite" for e in np.flatnonzero(opposite)}
    if not graph.is_complete:
        found |= {pair: kind for pair, kind in _identical_columns(data) if pair not in found}
    named = [(data.names[i], data.names[j], kind) for (i, j), kind in sorted(found.items())]
    return tuple(entry for entry in named if not constant & {entry[0], entry[1]})


def _identical_columns(data: Dataset) -> list[tuple[tuple[int, int], str]]:
    """Each column that repeats an earlier one (or its opposite), with the first of its kind."""
    used = data.weights > 0
    columns = np.ascontiguousarray((data.states[used] == require_two_values(data.domain).high).T)
    missing = None if data.missing is None else np.ascontiguousarray(data.missing[used].T)
    observed = np.ones_like(columns) if missing is None else ~missing
    # a column and its opposite become alike once the first observed cell is made low
    turned = columns[np.arange(len(columns)), observed.argmax(axis=1)]
    first, kind_of = distinct_rows((columns ^ turned[:, None]) & observed, missing)
    return [
        ((int(first[kind]), j), "equal" if turned[j] == turned[first[kind]] else "opposite")
        for j, kind in enumerate(kind_of)
        if first[kind] != j
    ]
