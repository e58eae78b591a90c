"""A lower bound on the log-weight of each row with missing cells, by mean field (YK15)."""

from __future__ import annotations

import numpy as np

from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.expectations.clamped_mean_field import START_SCALE, solve
from gibbsian.models import PairwiseModel
from gibbsian.rng import RandomState, as_generator


def mean_field_evidence(
    model: PairwiseModel, data: Dataset, rng: RandomState = None, max_iter: int = 1000, tol: float = 1e-10
) -> np.ndarray:
    """Return for each state a number that is never above its log-weight summed over the missing cells.

    It is minus the free energy ``F(Q)`` of YK15 for a factorised law Q of the missing cells, which sweeps over them
    lower from a law near the uniform one: the bound holds wherever they end.

    Parameters
    ----------
    model : PairwiseModel
        The distribution.
    data : Dataset
        The rows.
    rng : None, int or Generator
        Where Q starts: a small field for each variable, the same in every row.
    max_iter, tol
        As for `ClampedMeanField`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.mean_field_evidence import mean_field_evidence
    >>> from gibbsian.inference.missing import log_evidence
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(3), [0.1, 0.2, 0.3], [0.5, -0.5, 0.8])
    >>> data = gb.Dataset.read([[1, float("nan"), float("nan")]], coding="spin")
    >>> bool(0 < log_evidence(model, data)[0] - mean_field_evidence(model, data, rng=0)[0] < 0.2)
    True
    """
    if data.missing is None:
        return model.log_weights(data.states)
    cells = np.nonzero(data.missing)[1]
    pointers = np.concatenate([[0], np.cumsum(data.missing.sum(axis=1))])
    fields = START_SCALE * as_generator(rng).standard_normal(model.n_variables)[cells]
    solution = solve(model, data.states, pointers, cells, fields, max_iter, tol)
    domain = model.domain
    means = domain.low + domain.gap * (solution.means + 1.0) / 2.0
    first, second = model.graph.edges.T
    weights = means @ model.biases
    for block in row_blocks(data.n_states, model.graph.n_edges):
        weights[block] += (means[block, first] * means[block, second]) @ model.couplings
    return weights / model.temperature + solution.entropies
