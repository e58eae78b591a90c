"""Some variables given, the others free: again a full-span model, and no table of all states is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gibbsian.backends.numba.axes import transform
from gibbsian.backends.numba.walsh import aligned_zeros
from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.span_basis import SpanBasis
from gibbsian.resources import require_memory

# So many completions are weighed by a matrix product, many rows at a time; more by one transform for each row.
MOST_LISTED = 2**10


@dataclass(frozen=True)
class Restriction:
    """A model with some variables given, for many rows of given values at once.

    Parameters
    ----------
    basis : SpanBasis
        The functions of the free variables.
    indices : (u,) of int
        Those that are left of the model's functions; 0 stands for what became constant.
    theta : (m, u)
        Their parameters, one row for each row of given values.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.conditioning import restrict
    >>> from gibbsian.models import FullSpanModel
    >>> model = FullSpanModel.build((2, 2), indices=[1, 2, 3], theta=[0.1, 0.2, 0.5])
    >>> left = restrict(model, [0], np.array([[0], [1]]))
    >>> left.indices, left.theta.round(3).tolist()
    (array([0, 1]), [[0.2, 0.6], [-0.2, -0.4]])
    """

    basis: SpanBasis
    indices: np.ndarray
    theta: np.ndarray


def restrict(model: FullSpanModel, nodes: Sequence[int] | np.ndarray, codes: np.ndarray) -> Restriction:
    """Fix `nodes` at each row of `codes`; a function keeps its part in the free variables, times the sign of the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.conditioning import restrict
    >>> from gibbsian.models import FullSpanModel
    >>> restrict(FullSpanModel.build((2, 2), [3], [0.5]), [1], np.array([[1]])).theta
    array([[-0.5]])
    """
    nodes = np.asarray(nodes, dtype=np.int64)
    free = np.setdiff1d(np.arange(model.n_variables), nodes)
    basis = SpanBasis(tuple(model.cardinalities[i] for i in free))
    digits = model.basis.digits(model.indices)
    if model.indices.size == 0:
        return Restriction(basis, np.empty(0, np.int64), np.empty((len(codes), 0)))
    parts = digits[:, free] @ basis.strides
    order = np.argsort(parts, kind="stable")
    used, starts = np.unique(parts[order], return_index=True)
    theta = np.tile(model.theta, (len(codes), 1))
    if nodes.size:
        given = SpanBasis(tuple(model.cardinalities[i] for i in nodes))
        theta *= given.values(digits[:, nodes] @ given.strides, codes)
    return Restriction(basis, used, np.add.reduceat(theta[:, order], starts, axis=1))


def condition(model: FullSpanModel, nodes: Sequence[int], codes: Sequence[int]) -> tuple[FullSpanModel, float]:
    """Return the model of the other variables given `codes` at `nodes`, and the log-weight taken out.

    Examples
    --------
    >>> from gibbsian.full_span.conditioning import condition
    >>> from gibbsian.models import FullSpanModel
    >>> rest, constant = condition(FullSpanModel.build((2, 2), [2, 3], [0.2, 0.5]), [0], [1])
    >>> rest.theta, constant
    (array([-0.5]), -0.2)
    """
    if len(nodes) == model.n_variables:
        raise ArgumentError("every variable is given", "leave at least one free")
    left = restrict(model, nodes, np.array([codes], dtype=np.int64).reshape(1, -1))
    named = left.indices > 0
    constant = float(left.theta[0, ~named].sum())
    return FullSpanModel(left.basis, left.indices[named], left.theta[0, named]), constant


def completion_offsets(basis: SpanBasis, free: np.ndarray) -> np.ndarray:
    """Return by how much each way to fill the cells `free` moves the index of a state that has 0 there.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.conditioning import completion_offsets
    >>> from gibbsian.models import SpanBasis
    >>> completion_offsets(SpanBasis((2, 2, 2)), np.array([0, 2]))
    array([0, 1, 4, 5])
    """
    offsets = np.zeros(1, np.int64)
    for i in free:
        offsets = (offsets[:, None] + basis.strides[i] * np.arange(basis.cardinalities[i])).ravel()
    return offsets


def completion_log_weights(
    model: FullSpanModel, codes: np.ndarray, missing: np.ndarray, table: np.ndarray | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Give ``sum_y theta_y Phi_y`` of all completions of rows that miss the same cells, a block of rows at a time.

    Parameters
    ----------
    model : FullSpanModel
        The model.
    codes : (m, n) of int
        Rows; what stands in missing cells is not read.
    missing : (n,) of bool
        Which cells are missing, at least one.
    table : (|X|,), optional
        Log-weights of all states to read from, where somebody has them.

    Yields
    ------
    rows : slice
        Which rows.
    log_weights : (rows, completions)
        Completions in the order of the missing cells' own table.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.conditioning import completion_log_weights
    >>> from gibbsian.models import FullSpanModel
    >>> model = FullSpanModel.build((2, 2), indices=[3], theta=[0.5])
    >>> [logs.tolist() for _, logs in completion_log_weights(model, np.array([[0, 0]]), np.array([False, True]))]
    [[[0.5, -0.5]]]
    """
    given, free = np.flatnonzero(~missing), np.flatnonzero(missing)
    size = SpanBasis(tuple(model.cardinalities[i] for i in free)).size
    require_memory(
        16.0 * size, f"summing {free.size} missing cells out ({size:.3g} completions)", "give rows with fewer of them"
    )
    if table is not None:
        present, offsets = (
            codes.astype(np.int64) * ~missing @ model.basis.strides,
            completion_offsets(model.basis, free),
        )
        for rows in row_blocks(len(codes), size, least_rows=1):
            yield rows, table[present[rows, None] + offsets]
        return
    least_rows = 1 if size > MOST_LISTED else 16
    for rows in row_blocks(len(codes), max(size, len(model.theta)), least_rows=least_rows):
        left = restrict(model, given, codes[rows][:, given])
        if size <= MOST_LISTED:
            every = left.basis.digits(np.arange(size))
            yield rows, left.theta @ left.basis.values(left.indices, every).T
        else:
            yield rows, np.array([_transformed(left.basis, left.indices, theta) for theta in left.theta])


def _transformed(basis: SpanBasis, indices: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Log-weights of all states of the free variables, by one transform."""
    table = aligned_zeros(basis.size)
    table[indices] = theta
    transform(table, basis.shape, transposed=True)
    return table
