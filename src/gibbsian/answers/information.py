"""Entropies and divergences of tables of probabilities, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

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
    """

    forward: float
    backward: float


def entropy(probabilities: np.ndarray) -> float:
    """Return ``-sum p ln p`` in nats."""
    flat = probabilities.ravel()
    return float(sum(entr(flat[part]).sum() for part in row_blocks(flat.size, 1)))


def mutual_information(joint: np.ndarray) -> float:
    """Return ``H(a) + H(b) - H(a, b)`` of a joint table with one axis for each, in nats; never below zero."""
    return max(0.0, entropy(joint.sum(axis=1)) + entropy(joint.sum(axis=0)) - entropy(joint))


def log_table(model: FullSpanModel) -> np.ndarray:
    """Return the log-probability of every state: one transform, and no exponential to underflow."""
    return model.log_weight_table() - model.log_partition


def log_table_of_weights(basis: SpanBasis, log_weights: LogWeights) -> np.ndarray:
    """Return the log-probability of every state of a distribution known by its log-weights."""
    require_memory(8.0 * basis.size, f"a table of {basis.size:.3g} log-probabilities", "compare scores of rows instead")
    table = np.empty(basis.size)
    for part in row_blocks(basis.size, basis.n_variables):
        codes = basis.digits(np.arange(part.start, part.stop)).astype(np.int8)
        table[part] = log_weights(codes)
    table -= _log_sum(table)
    return table


def log_table_of_probabilities(basis: SpanBasis, probabilities: np.ndarray | Sequence[float]) -> np.ndarray:
    """Return the logarithms of a given table, of the shape of the variables' values or flat, after a check."""
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
    """Return the divergences of two tables of log-probabilities; infinite where one excludes what the other allows."""
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
