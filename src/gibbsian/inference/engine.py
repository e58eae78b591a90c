"""Exact engines: one price list, a plan for each family, and answers at any parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np

from gibbsian.domain import Domain, Reals, given_codes
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference.contract import model_at, sizes_of
from gibbsian.models import Model
from gibbsian.registry import Registry
from gibbsian.resources import format_bytes, memory_limit

ENGINES = Registry("exact engine", "gibbsian.inference", "ENGINES")
INSTEAD = "use sampling or pseudolikelihood"


@dataclass(frozen=True)
class Cost:
    """Predicted price of log Z and all moments, right to an order of magnitude.

    Parameters
    ----------
    engine : str
        What is done, in a word or a few.
    seconds : float
        Predicted time on two cores.
    n_bytes : float
        Predicted peak of memory.
    treewidth : int or None
        Width of the elimination order that was found, for the engine that has one.
    lower_bound : bool
        Whether the prediction was given up part of the way, so that the true numbers are larger.
    refusal : str or None
        What it would take, where the engine does not do it at any price.
    plan : object
        What was found out for the prediction and the engine needs again: an order of elimination, for example.

    Examples
    --------
    >>> from gibbsian.inference import Cost
    >>> Cost("elimination", 0.5, 2**20, treewidth=12).describe()
    'about 0.5 s and 1.0 MiB by elimination (treewidth 12)'
    """

    engine: str
    seconds: float
    n_bytes: float
    treewidth: int | None = None
    lower_bound: bool = False
    refusal: str | None = None
    plan: Any = field(default=None, repr=False, compare=False)

    def fits(self, max_seconds: float, n_bytes: float) -> bool:
        """Say whether so much time and memory suffice."""
        return self.refusal is None and self.seconds <= max_seconds and self.n_bytes <= n_bytes

    def describe(self) -> str:
        """Write the prediction for people."""
        if self.refusal is not None:
            return self.refusal
        memory = format_bytes(self.n_bytes) if self.n_bytes < 2.0**50 else f"{self.n_bytes / 2.0**30:.0e} GiB"
        width = f"{self.treewidth} or more" if self.lower_bound else f"{self.treewidth}"
        note = "" if self.treewidth is None else f" (treewidth {width})"
        bound = "at least" if self.lower_bound else "about"
        return f"{bound} {self.seconds:.2g} s and {memory} by {self.engine}{note}"


class Engine(ABC):
    """An exact method planned for a family and asked at any theta: one file each, registered in `ENGINES`.

    Orders, layouts and tables that depend on the structure alone are attributes of the engine.

    Parameters
    ----------
    family : Family
        One that the engine has a price for.
    max_seconds : float
        Limit for questions that take longer than `ExactAnswers.moments`.
    cost : Cost, optional
        The price, where it is known.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2), bias=False)
    >>> engine = gb.inference.plan_exact(model.family)
    >>> [engine.at(theta).moments.round(4).tolist() for theta in ([0.0], [0.5])]
    [[0.0], [0.4621]]
    """

    def __init__(self, family: Any, max_seconds: float = 60.0, cost: Cost | None = None):
        self.family = family
        self.max_seconds = max_seconds
        self._offer = cost

    @classmethod
    @abstractmethod
    def price(cls, family: Any) -> Cost | None:
        """Predict what log Z and all moments cost, or return None for a family that is not served."""

    @classmethod
    def least(cls, family: Any) -> float:
        """Return a bound of the price in seconds, found at once: dearer engines need not be asked for theirs."""
        cost = cls.price(family)
        return 0.0 if cost is None else cost.seconds

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of log Z and all moments."""
        cost = self._offer or self.price(self.family)
        assert cost is not None  # the engine was built for a family that it serves
        return cost

    @abstractmethod
    def at(self, theta: np.ndarray) -> ExactAnswers[Any]:
        """Return the answers at some parameters; nothing is chosen or planned again."""

    def likelihood_of(self, data: Any) -> Any:
        """Return minus the mean log-likelihood of rows as a function of theta, where rows are listed; else None."""
        return None

    def require_passes(self, n_passes: float, what: str, instead: str) -> None:
        """Refuse a question that takes too many times what the moments do."""
        seconds = n_passes * self.cost.seconds
        if seconds > self.max_seconds:
            raise TooExpensiveError(
                f"{what} would take about {seconds:.2g} s by {self.cost.engine} but `max_seconds={self.max_seconds:g}`",
                f"{instead}, or raise `max_seconds`",
            )


AnyEngine = TypeVar("AnyEngine", bound=Engine)


class ExactAnswers(ABC, Generic[AnyEngine]):
    """Exact answers about one distribution, each computed when it is first asked for, and once.

    Parameters
    ----------
    engine : Engine
        The plan.
    theta : ndarray
        The parameters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> answers = gb.inference.exact(gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5]))
    >>> answers.moments.round(4)
    array([0.    , 0.    , 0.4621])
    >>> answers.marginal([0, 1]).round(3)
    array([[0.366, 0.134], [0.134, 0.366]])
    """

    def __init__(self, engine: AnyEngine, theta: np.ndarray | Sequence[float]):
        self.engine = engine
        self.theta = np.asarray(theta, dtype=np.float64)

    @cached_property
    def model(self) -> Any:
        """The distribution asked about."""
        return model_at(self.engine.family, self.theta)

    def checked(self) -> Self:
        """Return the answers, or refuse them where sums are no integrals (see `quadrature`)."""
        return self

    @cached_property
    @abstractmethod
    def log_partition(self) -> float:
        """Log Z."""

    @cached_property
    @abstractmethod
    def moments(self) -> np.ndarray:
        """The expected sufficient statistics, in the layout of theta."""

    @abstractmethod
    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states, shape ``(n_samples, n_variables)``."""

    # -- what has no short form where hidden layers are summed out -----------------------------------------------------
    @cached_property
    def means(self) -> np.ndarray:
        """E[x_i] of each variable, where values are numbers."""
        raise self._unknown("means")

    @cached_property
    def second_moments(self) -> np.ndarray:
        """The matrix E[x_i x_j] of all pairs, joined by an edge or not, where values are numbers."""
        raise self._unknown("second_moments")

    def marginal(self, nodes: Iterable[int]) -> np.ndarray:
        """Return the joint probabilities of some variables, an axis for each.

        Axis t belongs to the t-th node given and is as long as it has values, in the order of their codes: index 0 is
        the lower value of a two-valued domain.
        """
        raise self._unknown("marginal")

    @cached_property
    def mode(self) -> tuple[np.ndarray, float]:
        """A state of largest probability and the logarithm of that probability."""
        raise self._unknown("mode")

    def _unknown(self, question: str) -> ArgumentError:
        return ArgumentError(f"{question} is not known by {self.engine.cost.engine}", "use `moments`, or draw samples")


def _offers(family: Any) -> list[tuple[Cost, type[Engine]]]:
    """Ask every engine that may be the cheapest for its price; leave out those that do not serve the family."""
    engines: list[Any] = [ENGINES.factory(name) for name in ENGINES]
    offers: list[tuple[Cost, type[Engine]]] = []
    for least, engine in sorted(((engine.least(family), engine) for engine in engines), key=lambda pair: pair[0]):
        if not any(cost.fits(least, memory_limit()) for cost, _ in offers):
            cost = engine.price(family)
            offers += [(cost, engine)] if cost is not None else []
    if not offers:
        raise ArgumentError(f"exact inference needs a model with factors or layers, not {type(family).__name__}")
    return sorted(offers, key=lambda offer: offer[0].seconds)


def predict_cost(family: Any) -> Cost:
    """Return the price of the cheapest engine: log Z and all moments of a family's members.

    Parameters
    ----------
    family : Family
        Of any kind.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.predict_cost(gb.PairwiseModel.zeros(gb.graphs.complete(20)).family).engine
    'enumeration'
    >>> gb.inference.predict_cost(gb.PairwiseModel.zeros(gb.graphs.grid(10, 10)).family).engine
    'elimination'
    """
    return _offers(family)[0][0]


def is_affordable(family: Any, max_seconds: float = 60.0) -> bool:
    """Say whether `exact` would answer within a time limit.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.is_affordable(gb.PairwiseModel.zeros(gb.graphs.complete(60)).family)
    False
    """
    return any(cost.fits(max_seconds, memory_limit()) for cost, _ in _offers(family))


def plan_exact(family: Any, *, max_seconds: float = 60.0, instead: str = INSTEAD) -> Engine:
    """Return the engine that is predicted to be the fastest of those that fit, to be asked at any parameters.

    Parameters
    ----------
    family : Family
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
    >>> engine = gb.inference.plan_exact(gb.PairwiseModel.zeros(gb.graphs.grid(1, 3), bias=False).family)
    >>> [round(engine.at(theta).log_partition, 4) for theta in ([0.0, 0.0], [0.5, 0.0])]
    [2.0794, 2.1996]
    """
    if not max_seconds > 0:
        raise ArgumentError("must be a positive number", argument="max_seconds", value=max_seconds)
    limit, offers = memory_limit(), _offers(family)
    for cost, engine in offers:
        if cost.fits(max_seconds, limit):
            return engine(family, max_seconds, cost)
    by_engine = ", or ".join(cost.describe() for cost, _ in offers)
    raise TooExpensiveError(
        f"exact inference on {sizes_of(family).size} variables would take {by_engine}, but "
        f"`max_seconds={max_seconds:g}` and {format_bytes(limit)} may be used",
        instead,
    )


def exact(model: Any, *, max_seconds: float = 60.0, instead: str = INSTEAD) -> ExactAnswers[Any]:
    """Return exact answers about a model, by the engine that `plan_exact` chooses for its family.

    Parameters
    ----------
    model : Model
        A distribution.
    max_seconds, instead
        As in `plan_exact`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.exact(gb.PairwiseModel.zeros(gb.graphs.grid(8, 8))).log_partition    # 64 log 2
    44.361...
    >>> gb.inference.exact(gb.PairwiseModel.zeros(gb.graphs.complete(60)))
    Traceback (most recent call last):
        ...
    gibbsian.errors.TooExpensiveError: exact inference on 60 variables would take ...
    """
    return plan_exact(model.family, max_seconds=max_seconds, instead=instead).at(model.theta).checked()


def conditional(
    model: Model,
    nodes: Sequence[int] | np.ndarray,
    values: Sequence[int] | np.ndarray,
    *,
    max_seconds: float = 60.0,
) -> tuple[ExactAnswers[Any], float]:
    """Return exact answers about the other variables given some, and the log-weight of what was fixed.

    The others keep their order. Their `log_partition` plus the constant is the log of the sum of the weights of all
    states that agree with `values`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(3), None, [1.0, 0.0, 0.5])
    >>> rest, _ = gb.inference.conditional(model, [0], [1])
    >>> rest.means                              # tanh 1, and tanh 0.5 of it
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
    given = model.given(nodes, given_codes(model.domain, values))
    theta, constant = given.parameters(model.theta)
    return plan_exact(given.family, max_seconds=max_seconds).at(theta), constant


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


def check_nodes(nodes: Iterable[int], n_variables: int) -> np.ndarray:
    """Return `nodes` as an array, or say which of them cannot be used."""
    given = list(nodes)
    for node in given:
        if not isinstance(node, int | np.integer) or not 0 <= node < n_variables:
            raise ArgumentError(
                f"names {node!r}", f"use numbers from 0 to {n_variables - 1}", argument="nodes", value=given
            )
    if len(set(given)) < len(given):
        raise ArgumentError("names a variable twice", "give each once", argument="nodes", value=given)
    return np.array(given, dtype=np.int64)


def check_n_samples(n_samples: int) -> int:
    """Return `n_samples` if it is a whole number, zero or more."""
    if not isinstance(n_samples, int | np.integer) or n_samples < 0:
        raise ArgumentError("must be a whole number, zero or more", argument="n_samples", value=n_samples)
    return int(n_samples)
