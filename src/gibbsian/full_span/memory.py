"""How much memory a fit needs, known before it is taken."""

from __future__ import annotations

import numpy as np

from gibbsian.models.span_basis import SpanBasis
from gibbsian.resources import require_memory

# The dual of the model and that of the data. A dense fit also holds the parameters and the strengths of all functions,
# and what Newton's method and conjugate gradients work in.
_TABLES = 2
_DENSE_TABLES = 14
# What a checkpoint takes on top while it is written: the dual, and the parameters where there are as many.
_SAVED_TABLES = 1
_DENSE_SAVED_TABLES = 2
# Which functions filled missing cells, and their parameters; few where functions are selected.
_DENSE_FILLER_TABLES = 2


def predict_memory(
    basis: SpanBasis,
    dtype: np.dtype | type = np.float64,
    algorithm: str = "greedy",
    *,
    checkpoint: bool = False,
    missing: bool = False,
) -> float:
    """Return the bytes of the tables of a fit, of algorithm ``"dense"`` or another, with a checkpoint or missing cells.

    Everything else (the active set, the penalties' tables, blocks of a transform) is small beside them.

    Examples
    --------
    >>> from gibbsian.full_span import SpanBasis, predict_memory
    >>> predict_memory(SpanBasis((2,) * 27)) / 2**30
    2.0
    >>> predict_memory(SpanBasis((2,) * 20), algorithm="dense") / 2**20
    112.0
    """
    dense = algorithm == "dense"
    n_tables = _DENSE_TABLES if dense else _TABLES
    if checkpoint:
        n_tables += _DENSE_SAVED_TABLES if dense else _SAVED_TABLES
    if missing and dense:
        n_tables += _DENSE_FILLER_TABLES
    return float(n_tables * np.dtype(dtype).itemsize * basis.size)


def require_tables(
    basis: SpanBasis,
    dtype: np.dtype | type,
    algorithm: str = "greedy",
    *,
    checkpoint: bool = False,
    missing: bool = False,
) -> None:
    """Raise `TooExpensiveError` where the tables of a fit do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import SpanBasis
    >>> from gibbsian.full_span.memory import require_tables
    >>> require_tables(SpanBasis((2,) * 50), np.float64)
    Traceback (most recent call last):
        ...
    gibbsian.errors.TooExpensiveError: a full-span fit over 50 variables (1.13e+15 states) needs ... GiB but
    ...
    """
    kind, smaller = "full-span", "choose fewer variables"
    if algorithm == "dense":
        kind, smaller = "dense full-span", "use algorithm='greedy', which takes a seventh of it, or fewer variables"
    elif checkpoint:
        smaller += ", or leave the checkpoint out, which takes a third of it"
    elif np.dtype(dtype).itemsize == 8:
        smaller += ", or float32 tables, which take half"
    states = f"{basis.n_variables} variables ({basis.size:.3g} states)"
    require_memory(
        predict_memory(basis, dtype, algorithm, checkpoint=checkpoint, missing=missing),
        f"a {kind} fit over {states}{' with a checkpoint' * checkpoint}",
        smaller,
    )
