"""Choose the cheapest exact engine, or say what both would cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.graphs import Graph
from gibbsian.inference.base import Cost, ExactInference, check_nodes
from gibbsian.inference.elimination import Elimination, elimination_cost
from gibbsian.inference.enumeration import Enumeration, enumeration_cost
from gibbsian.models import Model, PairwiseModel
from gibbsian.resources import format_bytes, memory_limit


def predict_cost(graph: Graph) -> Cost:
    """Return the price of the cheaper engine: log Z and all moments of any pairwise model on a graph.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.predict_cost(gb.graphs.complete(20)).engine
    'enumeration'
    >>> gb.inference.predict_cost(gb.graphs.grid(10, 10)).engine
    'elimination'
    """
    return min(_costs(graph), key=lambda cost: cost.seconds)


def _costs(graph: Graph) -> tuple[Cost, Cost]:
    return enumeration_cost(graph), elimination_cost(graph)


def exact(model: Model, *, max_seconds: float = 60.0) -> ExactInference:
    """Return the exact engine that is predicted to be the fastest of those that fit.

    Parameters
    ----------
    model : PairwiseModel
        Any graph on up to about 30 variables, or any size of low treewidth.
    max_seconds : float
        Refuse what is predicted to take longer.

    Raises
    ------
    TooExpensiveError
        When neither engine fits the time limit and the memory; nothing has been allocated.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.exact(gb.PairwiseModel.zeros(gb.graphs.grid(8, 8))).log_partition()    # 64 log 2
    44.361
    >>> gb.inference.exact(gb.PairwiseModel.zeros(gb.graphs.complete(60)))
    Traceback (most recent call last):
        ...
    gibbsian.errors.TooExpensiveError: exact inference on 60 variables would take about 3.5e+09 s and ...
    """
    if not isinstance(model, PairwiseModel):
        raise ArgumentError(f"exact inference knows pairwise models, not {type(model).__name__}")
    if not max_seconds > 0:
        raise ArgumentError(f"max_seconds={max_seconds!r} must be a positive number")
    limit = memory_limit()
    costs = _costs(model.graph)
    fitting = [cost for cost in costs if cost.seconds <= max_seconds and cost.n_bytes <= limit]
    if not fitting:
        by_engine = ", or ".join(cost.describe() for cost in costs)
        raise TooExpensiveError(
            f"exact inference on {model.n_variables} variables would take {by_engine}, but"
            f" max_seconds={max_seconds:g} and {format_bytes(limit)} may be used: use sampling or pseudolikelihood"
        )
    cheapest = min(fitting, key=lambda cost: cost.seconds)
    return Enumeration(model) if cheapest.engine == "enumeration" else Elimination(model, max_seconds)


def conditional(
    model: PairwiseModel,
    nodes: Sequence[int] | np.ndarray,
    values: Sequence[int] | np.ndarray,
    *,
    max_seconds: float = 60.0,
) -> tuple[ExactInference, float]:
    """Return the exact engine of the other variables given some, and the log-weight of what was fixed.

    The others keep their order. ``log_partition()`` of the engine plus the constant is the log of the sum of the
    weights of all states that agree with `values`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(3), None, [1.0, 0.0, 0.5])
    >>> rest, _ = gb.inference.conditional(model, [0], [1])
    >>> rest.means()                            # tanh 1, and tanh 0.5 of it
    array([0.76159416, 0.35194573])
    """
    nodes = check_nodes(nodes, model.n_variables)
    values = np.asarray(values)
    if values.shape != nodes.shape:
        raise ArgumentError(
            f"values has shape {values.shape} but {nodes.size} nodes are fixed: give one value for each"
        )
    allowed = (model.domain.low, model.domain.high)
    if not np.isin(values, allowed).all():
        raise ArgumentError(f"values={values.tolist()} must be {allowed[0]} or {allowed[1]} ({model.domain.name})")
    if nodes.size == model.n_variables:
        raise ArgumentError("nodes fixes every variable: leave at least one free")
    rest, constant = model.condition(nodes, values)
    return exact(rest, max_seconds=max_seconds), constant
