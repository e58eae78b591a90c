"""Entropies and divergences of probability tables, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from gibbsian.backends.numba.axes import transform
from gibbsian.backends.numba.walsh import aligned_zeros
from gibbsian.blocks import row_blocks
from gibbsian.errors import ArgumentError
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.span_basis import SpanBasis
from gibbsian.resources import require_memory

# Probabilities that were given may miss a sum of one by this much, and are then divided by it.
SUM_TOLERANCE = 1e-6

# Log-weights of rows of codes, up to a constant.
LogWeights = Callable[[np.ndarray], np.ndarray]


class Divergence(NamedTuple):
    """Kullback-Leibler divergences of two distributions, in nats.

    Parameters
    ----------
    forward : float
        ``KL(this || other)``: what is lost when the other stands for this one.
    backward : float
        ``KL(other || this)``.

    Examples
    --------
    >>> from gibbsian.full_span.information import Divergence
    >>> Divergence(0.1, 0.2).forward
    0.1
    """

    forward: float
    backward: float


def entropy(probabilities: np.ndarray) -> float:
    """Return ``-sum p ln p`` in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.information import entropy
    >>> round(entropy(np.array([0.5, 0.5])), 4)
    0.6931
    """
    flat = probabilities.ravel()
    return float(sum(entr(flat[part]).sum() for part in row_blocks(flat.size, 1)))


def mutual_information(joint: np.ndarray) -> float:
    """Return ``H(a) + H(b) - H(a, b)`` of a joint table with one axis for each, in nats; never below zero.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.information import mutual_information
    >>> round(mutual_information(np.eye(2) / 2), 4)
    0.6931
    """
    return max(0.0, entropy(joint.sum(axis=1)) + entropy(joint.sum(axis=0)) - entropy(joint))


def log_table(model: FullSpanModel) -> np.ndarray:
    """Return the log-probability of every state: one transform, and no exponential to underflow.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.information import log_table
    >>> from gibbsian.models import FullSpanModel
    >>> np.exp(log_table(FullSpanModel.build((2,), [1], [0.5]))).round(4)
    array([0.7311, 0.2689])
    """
    log_partition = model.log_partition
    size = model.basis.size
    require_memory(8.0 * size, f"a table of {size:.3g} log-probabilities", "compare scores of rows instead")
    table = aligned_zeros(size)
    table[model.indices] = model.theta
    transform(table, model.basis.shape, transposed=True)
    table -= log_partition
    return table


def log_table_of_weights(basis: SpanBasis, log_weights: LogWeights) -> np.ndarray:
    """Return the log-probability of every state of a distribution known by its log-weights.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.information import log_table_of_weights
    >>> from gibbsian.models import SpanBasis
    >>> np.exp(log_table_of_weights(SpanBasis((2,)), lambda codes: np.log(1.0 + codes[:, 0]))).round(4)
    array([0.3333, 0.6667])
    """
    require_memory(8.0 * basis.size, f"a table of {basis.size:.3g} log-probabilities", "compare scores of rows instead")
    table = np.empty(basis.size)
    for part in row_blocks(basis.size, basis.n_variables):
        codes = basis.digits(np.arange(part.start, part.stop)).astype(np.int8)
        table[part] = log_weights(codes)
    table -= _log_sum(table)
    return table


def log_table_of_probabilities(basis: SpanBasis, probabilities: np.ndarray | Sequence[float]) -> np.ndarray:
    """Return the logarithms of a given table, of the shape of the variables' values or flat, after a check.

    Examples
    --------
    >>> from gibbsian.full_span.information import log_table_of_probabilities
    >>> from gibbsian.models import SpanBasis
    >>> log_table_of_probabilities(SpanBasis((2,)), [0.5, 0.6])
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: the table of probabilities sums to 1.1: give numbers that sum to one
    """
    try:
        table = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{type(probabilities).__name__} is no distribution",
            "give a fitted machine, a model, or a table of probabilities",
        ) from None
    if table.shape not in ((basis.size,), basis.cardinalities):
        raise ArgumentError(
            f"the table of probabilities has shape {table.shape}",
            f"give one of shape {basis.cardinalities}, or {basis.size} numbers in that order",
        )
    if not (table >= 0).all():
        raise ArgumentError("the table of probabilities holds negative numbers or NaN")
    total = float(table.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ArgumentError(f"the table of probabilities sums to {total:.6g}", "give numbers that sum to one")
    with np.errstate(divide="ignore"):
        return np.log(table.ravel() / total)


def divergence(log_p: np.ndarray, log_q: np.ndarray) -> Divergence:
    """Return the divergences of two tables of log-probabilities; infinite where one excludes what the other allows.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.information import divergence
    >>> round(divergence(np.log([0.5, 0.5]), np.log([0.25, 0.75])).forward, 4)
    0.1438
    """
    forward = backward = 0.0
    for part in row_blocks(log_p.size, 2):
        forward += _directed(log_p[part], log_q[part])
        backward += _directed(log_q[part], log_p[part])
    return Divergence(max(forward, 0.0), max(backward, 0.0))


def _directed(log_p: np.ndarray, log_q: np.ndarray) -> float:
    possible = log_p > -np.inf  # 0 ln 0 is nothing
    return float(np.exp(log_p[possible]) @ (log_p[possible] - log_q[possible]))


def _log_sum(table: np.ndarray) -> float:
    top = float(table.max())
    return top + float(np.log(sum(np.exp(table[part] - top).sum() for part in row_blocks(table.size, 1))))
