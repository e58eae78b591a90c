"""Choose the cheapest exact engine on the price list, or say what each would cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gibbsian.domain import Domain, Reals, given_codes
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference.base import ENGINES, Cost, Engine, ExactInference, check_nodes
from gibbsian.models import Model
from gibbsian.resources import format_bytes, memory_limit

if TYPE_CHECKING:
    from gibbsian.inference.layer_sums import Layered, LayerSums

INSTEAD = "use sampling or pseudolikelihood"


def _offers(model: Any) -> list[tuple[Cost, type[Engine]]]:
    """Ask every engine that may be the cheapest for its price; leave out those that do not serve the model."""
    engines: list[Any] = [ENGINES.factory(name) for name in ENGINES]
    offers: list[tuple[Cost, type[Engine]]] = []
    for least, engine in sorted(((engine.least(model), engine) for engine in engines), key=lambda pair: pair[0]):
        if not any(cost.fits(least, memory_limit()) for cost, _ in offers):
            cost = engine.price(model)
            offers += [(cost, engine)] if cost is not None else []
    if not offers:
        raise ArgumentError(f"exact inference needs a model with factors or layers, not {type(model).__name__}")
    return sorted(offers, key=lambda offer: offer[0].seconds)


def predict_cost(model: Any) -> Cost:
    """Return the price of the cheapest engine: log Z and all moments of a model.

    Parameters
    ----------
    model : Model
        Of any kind; only its structure matters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.predict_cost(gb.PairwiseModel.zeros(gb.graphs.complete(20))).engine
    'enumeration'
    >>> gb.inference.predict_cost(gb.PairwiseModel.zeros(gb.graphs.grid(10, 10))).engine
    'elimination'
    """
    return _offers(model)[0][0]


def is_affordable(model: Any, max_seconds: float = 60.0) -> bool:
    """Say whether `exact` would answer within a time limit.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.is_affordable(gb.PairwiseModel.zeros(gb.graphs.complete(60)))
    False
    """
    return any(cost.fits(max_seconds, memory_limit()) for cost, _ in _offers(model))


@overload
def exact(model: Layered, *, max_seconds: float = 60.0, instead: str = INSTEAD) -> LayerSums: ...


@overload
def exact(model: Model, *, max_seconds: float = 60.0, instead: str = INSTEAD) -> ExactInference: ...


def exact(model: Any, *, max_seconds: float = 60.0, instead: str = INSTEAD) -> Any:
    """Return the exact engine that is predicted to be the fastest of those that fit.

    Parameters
    ----------
    model : Model
        Any interactions of up to about 30 two-valued variables, any number of variables of low treewidth, or layers of
        which the smaller side has up to 25 two-valued units.
    max_seconds : float, default 60
        Refuse what is predicted to take longer.
    instead : str
        What to advise where nothing fits.

    Raises
    ------
    TooExpensiveError
        When no engine fits the time limit and the memory; nothing has been allocated.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.exact(gb.PairwiseModel.zeros(gb.graphs.grid(8, 8))).log_partition()    # 64 log 2
    44.361
    >>> gb.inference.exact(gb.PairwiseModel.zeros(gb.graphs.complete(60)))
    Traceback (most recent call last):
        ...
    gibbsian.errors.TooExpensiveError: exact inference on 60 variables would take ...
    """
    if not max_seconds > 0:
        raise ArgumentError("must be a positive number", argument="max_seconds", value=max_seconds)
    limit, offers = memory_limit(), _offers(model)
    for cost, engine in offers:
        if cost.fits(max_seconds, limit):
            return engine(model, max_seconds)
    by_engine = ", or ".join(cost.describe() for cost, _ in offers)
    raise TooExpensiveError(
        f"exact inference on {model.n_variables} variables would take {by_engine}, but "
        f"`max_seconds={max_seconds:g}` and {format_bytes(limit)} may be used",
        instead,
    )


def plan_exact(model: Any, max_seconds: float = 60.0) -> Callable[[Any], Any]:
    """Choose the engine once and return it as a function of models with the same structure.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2), bias=False)
    >>> plan = gb.inference.plan_exact(model)
    >>> plan(model.replace([0.5])).moments().statistics.round(4)
    array([0.4621])
    """
    return exact(model, max_seconds=max_seconds).at


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
    rest, constant = model.given(nodes, given_codes(model.domain, values)).at(model.theta)
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
    if isinstance(domain, Reals):
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
