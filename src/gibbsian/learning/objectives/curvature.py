"""What the second derivatives of objectives share: covariances of statistics."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gibbsian.arrays import Floats, Slice
from gibbsian.data import Dataset
from gibbsian.inference import exact
from gibbsian.inference.log_tables import digits
from gibbsian.models.base import ExponentialFamily, Family, Model
from gibbsian.models.conditionals.base import STATES_AT_ONCE
from gibbsian.models.variables import Variables
from gibbsian.resources import row_blocks

FLOPS_PER_SECOND = 1e10  # of one BLAS core, about; predictions err on the safe side
LARGEST_EXPONENT = 900.0  # predictions stop growing here, well before a float64 overflows


def state_blocks(data: Dataset) -> Iterator[Slice]:
    """Cut the states into blocks that are small against matrices over all pairs of parameters."""
    return row_blocks(data.n_states, 1, STATES_AT_ONCE)


def information_seconds(model: Model[Family]) -> float:
    """Predict the time of `covariance_of_statistics`: of each state, its statistics and a product of all pairs."""
    size = model.theta.size
    return _n_states(model.variables) * size * (size + 100) / FLOPS_PER_SECOND


def _n_states(variables: Variables) -> float:
    exponent = np.log2(variables.sizes).sum()
    return float(np.rint(np.exp2(min(exponent, LARGEST_EXPONENT))))


def covariance_of_statistics(model: Model[ExponentialFamily]) -> Floats:
    """Sum over all states, some at a time."""
    answers, variables = exact(model), model.variables
    log_partition, mean = answers.log_partition, answers.moments
    covariance = np.zeros((mean.size, mean.size))
    for block in row_blocks(int(_n_states(variables)), 1, STATES_AT_ONCE):
        codes = digits(np.arange(block.start, block.stop), variables.sizes)
        rows = variables.rows_of(codes)
        probabilities = np.exp(model.log_weights(rows) + variables.log_widths(codes) - log_partition)
        centred = model.family.statistics(rows) - mean
        covariance += (centred * probabilities[:, None]).T @ centred
    return covariance
