"""Choose the cheapest exact engine, or say what both would cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from gibbsian.domain import Domain
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.graphs import Graph
from gibbsian.inference.base import Cost, ExactInference, check_nodes
from gibbsian.inference.elimination import Elimination, elimination_cost
from gibbsian.inference.enumeration import Enumeration, enumeration_cost
from gibbsian.inference.factor_elimination import FactorElimination, factor_elimination_cost
from gibbsian.inference.factor_enumeration import FactorEnumeration, factor_enumeration_cost
from gibbsian.inference.product_enumeration import (
    ProductEnumeration,
    has_fast_transform,
    product_enumeration_cost,
)
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
    return min((enumeration_cost(graph), elimination_cost(graph)), key=lambda cost: cost.seconds)


def predict_cost_of(model: Model) -> Cost:
    """Return the price of the cheaper engine: log Z and all moments of a model of any kind.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.predict_cost_of(gb.PairwiseModel.zeros(gb.graphs.grid(10, 10))).engine
    'elimination'
    """
    return min((cost for cost, _ in _offers(model, np.inf)), key=lambda cost: cost.seconds)


def _offers(model: Model, max_seconds: float) -> list[tuple[Cost, Callable[[], ExactInference]]]:
    """Each engine that serves the model: its price, and how to get it."""
    if isinstance(model, PairwiseModel):
        return [
            (enumeration_cost(model.graph), partial(Enumeration, model)),
            (elimination_cost(model.graph), partial(Elimination, model, max_seconds)),
        ]
    eliminate = (factor_elimination_cost(model), partial(FactorElimination, model, max_seconds))
    if has_fast_transform(model):
        return [(product_enumeration_cost(model), partial(ProductEnumeration, model)), eliminate]
    return [(factor_enumeration_cost(model), partial(FactorEnumeration, model)), eliminate]


def exact(model: Model, *, max_seconds: float = 60.0) -> ExactInference:
    """Return the exact engine that is predicted to be the fastest of those that fit.

    Parameters
    ----------
    model : Model
        Any interactions of up to about 30 two-valued variables, or any number of variables of low treewidth. Pairwise
        models have engines of their own, all others are seen through ``model.factors()``.
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
    if not hasattr(type(model), "factors"):
        raise ArgumentError(f"exact inference needs a model with factors, not {type(model).__name__}")
    if not max_seconds > 0:
        raise ArgumentError("must be a positive number", argument="max_seconds", value=max_seconds)
    limit = memory_limit()
    offers = _offers(model, max_seconds)
    fitting = [(cost, build) for cost, build in offers if cost.seconds <= max_seconds and cost.n_bytes <= limit]
    if not fitting:
        by_engine = ", or ".join(cost.describe() for cost, _ in offers)
        raise TooExpensiveError(
            f"exact inference on {model.n_variables} variables would take {by_engine}, but "
            f"`max_seconds={max_seconds:g}` and {format_bytes(limit)} may be used",
            "use sampling or pseudolikelihood",
        )
    _, build = min(fitting, key=lambda offer: offer[0].seconds)
    return build()


def conditional(
    model: Model,
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
            f"values has shape {values.shape} but {nodes.size} nodes are fixed", "give one value for each"
        )
    _check_values(model, nodes, values)
    if nodes.size == model.n_variables:
        raise ArgumentError("nodes fixes every variable", "leave at least one free")
    rest, constant = model.condition(nodes, values)
    return exact(rest, max_seconds=max_seconds), constant


def _check_values(model: Model, nodes: np.ndarray, values: np.ndarray) -> None:
    """Refuse numbers that are not values of the domain, in its own words."""
    domain = model.domain
    if isinstance(domain, Domain):
        if not np.isin(values, (domain.low, domain.high)).all():
            raise ArgumentError(
                f"must be {domain.low} or {domain.high} ({domain.name})", argument="values", value=values.tolist()
            )
        return
    sizes = domain.cardinalities(model.n_variables)[nodes]
    for node, value, size in zip(nodes.tolist(), values.tolist(), sizes.tolist(), strict=True):
        if value not in range(size):
            raise ArgumentError(
                f"gives variable {node} the code {value}",
                f"its {size} values have the codes 0 to {size - 1} ({domain.name})",
                argument="values",
                value=values.tolist(),
            )
