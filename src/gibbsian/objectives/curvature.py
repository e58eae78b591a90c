"""Second derivatives of objectives: for Newton steps and for standard errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from gibbsian.backends.parallel import map_in_order
from gibbsian.blocks import row_blocks
from gibbsian.data import Dataset
from gibbsian.diagnostics.existence import statistics_matrix
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import exact, plan_exact
from gibbsian.inference.log_tables import digits
from gibbsian.models import Model, PairwiseModel
from gibbsian.objectives.base import Objective
from gibbsian.objectives.flip_costs import FlipCostObjective
from gibbsian.objectives.likelihood import Likelihood

FLOPS_PER_SECOND = 1e10  # of one BLAS core, about; predictions err on the safe side
STEP = 1e-5  # of central differences: truncation and rounding are both near 1e-10
STATES_AT_ONCE = 4096
SECONDS_PER_STATISTICS = 3e-5  # of one state of a model that is not pairwise
LARGEST_EXPONENT = 900.0  # predictions stop growing here, well before a float64 overflows


def curvature(objective: Objective, model: Model, data: Dataset, max_seconds: float = 60.0) -> np.ndarray:
    """Return the Hessian of an objective at the model's parameters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.objectives.curvature import curvature
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> curvature(gb.objectives.Likelihood(), model, data).tolist()      # at zero all statistics are independent
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if isinstance(objective, Likelihood):
        return likelihood_curvature(model, data, max_seconds)
    if isinstance(objective, FlipCostObjective):
        if isinstance(model, PairwiseModel):
            return flip_cost_curvature(objective, model, data)
        function = objective.bind(model, data)
        return _differences(lambda theta: function(theta)[1], model.theta, max_seconds)
    raise ArgumentError(
        f"the curvature of {objective!r} is not known", "use `optimizer='lbfgs'`, or bootstrap for errors"
    )


def state_blocks(data: Dataset) -> Iterator[slice]:
    """Cut the states into blocks that are small against matrices over all pairs of parameters."""
    return row_blocks(data.n_states, 1, STATES_AT_ONCE)


def flip_cost_curvature(
    objective: FlipCostObjective, model: PairwiseModel, data: Dataset, directed: bool = False
) -> np.ndarray:
    """Return H: flip costs are linear in theta, so it is a weighted sum over variables of products of their slopes."""
    shares, scale = data.weights / data.total_weight, model.domain.gap / model.temperature
    left_out = None if objective.left_out is None else objective.left_out(data)
    own, size = _own_parameters(model, directed)
    curvature = np.zeros((size, size))
    for block in state_blocks(data):
        x = data.states[block].astype(np.float64)
        costs = model.flip_costs(x)
        bends = (loss_slopes(objective, costs + STEP) - loss_slopes(objective, costs - STEP)) / (2 * STEP)
        if left_out is not None:
            bends[left_out[block]] = 0.0
        bends *= shares[block, None] * scale**2
        parts = map_in_order(partial(_regression_curvature, model, x, bends), range(model.n_variables))
        for positions, part in zip(own, parts, strict=True):
            curvature[np.ix_(positions, positions)] += part
    return curvature


def _regression_curvature(model: PairwiseModel, x: np.ndarray, bends: np.ndarray, node: int) -> np.ndarray:
    """``sum_m bends[m, node] z_m z_m'`` with z the constant (where there are biases) and the neighbours of the node."""
    regressors = np.hstack([np.ones((len(x), int(model.bias))), x[:, model.graph.neighbours(node)]])
    return (regressors * bends[:, [node]]).T @ regressors


def _own_parameters(model: PairwiseModel, directed: bool) -> tuple[list[np.ndarray], int]:
    """Where the bias and the couplings of each variable stand, and how many parameters there are."""
    indptr, heads, edge_of = model.graph.csr
    tails = np.repeat(np.arange(model.n_variables), np.diff(indptr))
    backward = directed & (tails > heads)
    positions = model.n_biases + edge_of + np.where(backward, model.graph.n_edges, 0)
    biases = [[node] if model.bias else [] for node in range(model.n_variables)]
    own = [
        np.concatenate([biases[u], positions[indptr[u] : indptr[u + 1]]]).astype(np.intp) for u in range(len(biases))
    ]
    return own, model.theta.size + directed * model.graph.n_edges


def loss_slopes(objective: FlipCostObjective, costs: np.ndarray) -> np.ndarray:
    """Derivative of the loss at each flip cost."""
    slopes = np.array(costs, order="C")
    objective.kernel(slopes, np.ones(len(slopes)))
    return slopes


# -- exact likelihood -------------------------------------------------------------------------------------------------
def likelihood_curvature(model: Model, data: Dataset, max_seconds: float) -> np.ndarray:
    """Return the information: the covariance of the statistics over T^2, or as observed where cells are missing."""
    if data.has_missing:
        function = Likelihood(max_seconds).bind(model, data)
        return _differences(lambda theta: function(theta)[1], model.theta, max_seconds)
    by_enumeration = _n_states(model) * _seconds_per_state(model)
    if by_enumeration <= min(
        max_seconds, 2 * model.theta.size * exact(model, max_seconds=max_seconds).cost.seconds + 1
    ):
        return _covariance_of_statistics(model) / model.temperature**2

    plan = plan_exact(model, max_seconds)

    def moments(theta: np.ndarray) -> np.ndarray:
        return plan(model.replace(theta)).moments().statistics / model.temperature

    return _differences(moments, model.theta, max_seconds)


def _n_states(model: Model) -> float:
    exponent = np.log2(model.domain.cardinalities(model.n_variables)).sum()
    return float(np.rint(np.exp2(min(exponent, LARGEST_EXPONENT))))


def _seconds_per_state(model: Model) -> float:
    """The price of one state in the covariance: its statistics, and a product of all pairs of parameters."""
    statistics = 0.0 if isinstance(model, PairwiseModel) else SECONDS_PER_STATISTICS
    return model.theta.size * (model.theta.size + 100) / FLOPS_PER_SECOND + statistics


def _covariance_of_statistics(model: Model) -> np.ndarray:
    """Sum over all states, some at a time."""
    engine = exact(model)
    log_partition, mean = engine.log_partition(), engine.moments().statistics
    covariance = np.zeros((mean.size, mean.size))
    sizes = model.domain.cardinalities(model.n_variables)
    for block in row_blocks(int(_n_states(model)), 1, STATES_AT_ONCE):
        states = model.domain.from_codes(digits(np.arange(block.start, block.stop), sizes))
        probabilities = np.exp(model.log_weights(states) - log_partition)
        centred = statistics_matrix(model, states) - mean
        covariance += (centred * probabilities[:, None]).T @ centred
    return covariance


def _differences(gradient: Callable[[np.ndarray], np.ndarray], theta: np.ndarray, max_seconds: float) -> np.ndarray:
    """Differentiate a gradient along each parameter in turn; the first call tells how long all will take."""
    started = time.perf_counter()
    gradient(theta)
    seconds = 2 * theta.size * (time.perf_counter() - started)
    if seconds > max_seconds:
        raise TooExpensiveError(
            f"the information about {theta.size} parameters needs {2 * theta.size} exact evaluations "
            f"and would take about {seconds:.2g} s, but `max_seconds={max_seconds:g}`",
            "raise `max_seconds`, or use bootstrap",
        )
    step = 10 * STEP  # the moments of large systems carry more rounding than one flip cost
    rows = [(gradient(theta + step * unit) - gradient(theta - step * unit)) / (2 * step) for unit in np.eye(theta.size)]
    return (np.array(rows) + np.array(rows).T) / 2
