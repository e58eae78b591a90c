"""What the second derivatives of objectives share: covariances of statistics."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gibbsian.data import Dataset
from gibbsian.domain import Continuum
from gibbsian.inference import exact
from gibbsian.inference.log_tables import digits
from gibbsian.models import Model
from gibbsian.models.conditionals.base import STATES_AT_ONCE
from gibbsian.resources import row_blocks

FLOPS_PER_SECOND = 1e10  # of one BLAS core, about; predictions err on the safe side
LARGEST_EXPONENT = 900.0  # predictions stop growing here, well before a float64 overflows


def state_blocks(data: Dataset) -> Iterator[slice]:
    """Cut the states into blocks that are small against matrices over all pairs of parameters."""
    return row_blocks(data.n_states, 1, STATES_AT_ONCE)


def information_seconds(model: Model) -> float:
    """Predict the time of `covariance_of_statistics`: of each state, its statistics and a product of all pairs."""
    size = model.theta.size
    return _n_states(model) * size * (size + 100) / FLOPS_PER_SECOND


def _n_states(model: Model) -> float:
    exponent = np.log2(model.domain.cardinalities(model.n_variables)).sum()
    return float(np.rint(np.exp2(min(exponent, LARGEST_EXPONENT))))


def covariance_of_statistics(model: Model) -> np.ndarray:
    """Sum over all states, some at a time."""
    answers = exact(model)
    log_partition, mean = answers.log_partition, answers.moments
    covariance = np.zeros((mean.size, mean.size))
    sizes = model.domain.cardinalities(model.n_variables)
    factors = model.factors() if isinstance(model.domain, Continuum) else None
    for block in row_blocks(int(_n_states(model)), 1, STATES_AT_ONCE):
        codes = digits(np.arange(block.start, block.stop), sizes)
        states = model.domain.from_codes(codes)
        # the nodes of a continuum have weights, which states have not
        log_weights = factors.log_weights(codes) if factors else model.log_weights(states)
        probabilities = np.exp(log_weights - log_partition)
        centred = model.statistics(states) - mean
        covariance += (centred * probabilities[:, None]).T @ centred
    return covariance
