"""Checks before a fit: does the data determine the parameters at all?

Why an empty combination is fatal. With biases, the indicator that ``x_i = a`` and ``x_j = b`` is, up to a
constant, a linear combination of the statistics ``x_i``, ``x_j`` and ``x_i x_j``. If the combination never occurs,
the mean of its indicator is zero, on the boundary of what any distribution can have, while every finite parameter
vector gives it a positive probability. Moving the parameters against the indicator then raises the likelihood (and
the pseudolikelihood) for ever. A constant column is the same with the indicator of one value, a pure direction of
biases.

Three columns can do the same together though no two of them do; see `pairs`. Larger cliques, and tables of many values,
are looked at in `clique_checks` and `category_checks`.

Without biases only ``x_i x_j`` is a statistic. For spins the boundary is two columns always equal or always
opposite; for 0/1 variables it is ``x_i x_j = 1`` never or always.

Penalties. L2 holds every direction. L1 holds the couplings: along an empty combination its linear cost beats a
gain that levels off, so the maximum exists; along a constant column it costs nothing, so that stays an error.

Missing cells. A combination that no row shows but some row could show once its missing cells are filled proves
nothing: it becomes a note.
"""

from __future__ import annotations

import numpy as np

from gibbsian.backends.threads import n_threads
from gibbsian.data.dataset import Dataset
from gibbsian.data.findings import CHECKS, Findings, PreflightReport, refuse_nothing
from gibbsian.data.rows import Rows
from gibbsian.errors import GraphError
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.conditionals.tables import one_hot_is_faster
from gibbsian.resources import BLOCK_CELLS, LEAST_ROWS


def preflight(data: Rows, model: Model[DiscreteFamily], *, l1: float = 0.0, l2: float = 0.0) -> PreflightReport:
    """Check that a model can be fitted to data, whatever its interactions are.

    Parameters
    ----------
    data : Dataset, DataStream or DistributedDataset
        The data. Every cell of a stream is read once, so a value outside the coding is found before learning starts.
    model : Model
        The model; only its structure counts. Interactions with hidden units are not looked at.
    l1, l2 : float, default=0.0
        Penalties of the fit; l1 holds the interactions only.

    Raises
    ------
    DataError
        Fewer than two rows, no row with an observed cell, or a column without one.
    ConstantColumnError
        A column has one value, the model has biases and l2 is zero.
    MaximumDoesNotExistError
        Without a penalty, what some interacting columns never show together lets parameters run to infinity.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[0, 0], [0, 1], [1, 0]], names=["a", "b"])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), data.variables))
    >>> gb.data.preflight(data, model)
    Traceback (most recent call last):
        ...
    gibbsian.errors.MaximumDoesNotExistError: the likelihood has no finite maximum, because 'a'=1 never occurs ...
    >>> gb.data.preflight(data, model, l2=0.01).notes
    ("'a'=1 never occurs together with 'b'=1: the penalty alone keeps the parameters finite",)
    """
    n_columns = model.n_variables - model.n_hidden
    if n_columns != data.n_variables:
        raise GraphError(f"the graph has {n_columns} nodes but the data has {data.n_variables} columns")
    found = Findings(data, l1, l2)
    found.check_rows()
    CHECKS.of(model.family)(found, model)
    return found.report()


def drop_empty_rows(data: Dataset) -> Dataset:
    """Return the data without the rows that have no observed cell.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.data.drop_empty_rows(gb.Dataset.read([[0, 1], [None, None]])).n_rows
    1
    """
    empty = data.empty_rows()
    refuse_nothing(data, int(empty.sum()))
    return data.take(~empty) if empty.any() else data


def fit_memory(data: Dataset, model: Model[DiscreteFamily], block_cells: int = BLOCK_CELLS) -> int:
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
    >>> gb.data.fit_memory(data, gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(17)))) < 2**20
    True
    """
    threads = n_threads()
    # with many values a variable has a column for each of them
    graph, sizes, two_valued = model.family.graph, np.array(model.variables.sizes), model.variables.two_valued
    width = data.n_variables if two_valued else int(sizes.sum())
    rows = min(max(block_cells // data.n_variables, LEAST_ROWS), data.n_states)
    cells = rows * width * threads
    # couplings and a product of the gradient on each thread; edges, CSR and indices of the graph weigh as much
    dense = graph.is_dense if two_valued else one_hot_is_faster(sizes, graph)
    matrices = (1 + threads) * width**2 if dense else 0
    edges = 10 * graph.n_edges
    vectors = 110 * model.theta.size  # twenty pairs of L-BFGS, once more while they are shifted, and trial points
    return data.nbytes + 8 * (4 * cells + matrices + edges + vectors)
