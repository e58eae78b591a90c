"""Exact engines: one price list, a plan for each family, and answers at any parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, States
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.registry import Registry
from gibbsian.resources import format_bytes, memory_limit

if TYPE_CHECKING:
    from gibbsian.data import Dataset

LossFunction = Callable[[Floats], tuple[float, Floats]]
"""Maps parameters to a value and its gradient."""

ENGINES = Registry("exact engine", "gibbsian.inference", "ENGINES")
INSTEAD = "use sampling or pseudolikelihood"


@dataclass(frozen=True)
class Cost:
    """Predicted price of log Z and all moments, right to an order of magnitude.

    Parameters
    ----------
    engine : str
        The method, in a few words.
    seconds : float
        Predicted time on two cores.
    n_bytes : float
        Predicted peak of memory.
    treewidth : int or None
        Width of the elimination order, for the engines that have one.
    lower_bound : bool
        Whether the prediction is a lower bound, because the search for a plan was stopped.
    unsupported_reason : str or None
        Why the engine does not do it at any price.
    plan : object
        The plan that the prediction rests on, for the engine to use again: an order of elimination, for example.

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
    unsupported_reason: str | None = None
    plan: object = field(default=None, repr=False, compare=False)

    def fits(self, max_seconds: float, n_bytes: float) -> bool:
        """Return whether the engine stays within these limits."""
        return self.unsupported_reason is None and self.seconds <= max_seconds and self.n_bytes <= n_bytes

    def describe(self) -> str:
        """Return the prediction as text."""
        if self.unsupported_reason is not None:
            return self.unsupported_reason
        memory = format_bytes(self.n_bytes) if self.n_bytes < 2.0**50 else f"{self.n_bytes / 2.0**30:.0e} GiB"
        width = f"{self.treewidth} or more" if self.lower_bound else f"{self.treewidth}"
        note = "" if self.treewidth is None else f" (treewidth {width})"
        bound = "at least" if self.lower_bound else "about"
        return f"{bound} {self.seconds:.2g} s and {memory} by {self.engine}{note}"


class Engine(ABC):
    """An exact method, planned for a family and evaluated at any theta; each is one file and registered in `ENGINES`.

    Orders, layouts and tables that depend on the structure alone are attributes of the engine.

    Parameters
    ----------
    family : Family
        A family that `price` serves.
    max_seconds : float
        Limit for questions that take longer than `ExactAnswers.moments`.
    cost : Cost, optional
        The price, if `price` was called before.

    Examples
    --------
    >>> import gibbsian as gb
    >>> engine = gb.inference.plan_exact(gb.PairwiseFamily(gb.graphs.complete(2), bias=False))
    >>> [engine.at(theta).moments.round(4).tolist() for theta in ([0.0], [0.5])]
    [[0.0], [0.4621]]
    """

    def __init__(self, family: Family, max_seconds: float = 60.0, cost: Cost | None = None):
        self.family = family
        self.max_seconds = max_seconds
        self._offer = cost

    @classmethod
    @abstractmethod
    def price(cls, family: Family) -> Cost | None:
        """Predict the cost of log Z and all moments, or return None for a family that is not served."""

    @classmethod
    def cost_lower_bound(cls, family: Family) -> float:
        """Return a quick lower bound of the price in seconds, which spares expensive engines a plan."""
        cost = cls.price(family)
        return 0.0 if cost is None else cost.seconds

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of log Z and all moments."""
        cost = self._offer or self.price(self.family)
        assert cost is not None  # engines are built for families that they serve
        return cost

    @abstractmethod
    def at(self, theta: Floats) -> ExactAnswers:
        """Return the answers at some parameters; the plan is kept."""

    def likelihood_of(self, data: Dataset) -> LossFunction | None:
        """Return minus the mean log-likelihood of rows and its gradient, if the engine enumerates rows; else None."""
        return None

    def require_passes(self, n_passes: float, what: str, instead: str) -> None:
        """Refuse a question that takes too many times as long as the moments."""
        seconds = n_passes * self.cost.seconds
        if seconds > self.max_seconds:
            raise TooExpensiveError(
                f"{what} would take about {seconds:.2g} s by {self.cost.engine} but `max_seconds={self.max_seconds:g}`",
                f"{instead}, or raise `max_seconds`",
            )


class ExactAnswers(ABC):
    """Exact answers about one distribution, each computed once, when it is first needed.

    Parameters
    ----------
    engine : Engine
        The plan.
    theta : ndarray
        The parameters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> answers = gb.inference.exact(gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5]))
    >>> answers.moments.round(4)
    array([0.    , 0.    , 0.4621])
    >>> answers.marginal([0, 1]).round(3)
    array([[0.366, 0.134], [0.134, 0.366]])
    """

    def __init__(self, engine: Engine, theta: Floats | Sequence[float]):
        self.engine = engine
        self.theta: Floats = np.asarray(theta, dtype=np.float64)

    @cached_property
    def model(self) -> Model[Family]:
        """The distribution."""
        return Model(self.engine.family, self.theta)

    def checked(self) -> Self:
        """Return the answers, or refuse them where sums over nodes do not resolve integrals (see `quadrature`)."""
        return self

    @cached_property
    @abstractmethod
    def log_partition(self) -> float:
        """Log Z."""

    @cached_property
    @abstractmethod
    def moments(self) -> Floats:
        """The expected sufficient statistics, in the layout of theta."""

    @abstractmethod
    def sample(self, n_samples: int, rng: np.random.Generator) -> States:
        """Draw independent rows, shape ``(n_samples, n_variables)``."""

    # -- not available in short form where hidden layers are summed out ------------------------------------------------
    @cached_property
    def means(self) -> Floats:
        """E[x_i] of each variable, where values are numbers."""
        raise self._unknown("means")

    @cached_property
    def second_moments(self) -> Floats:
        """The matrix E[x_i x_j] of all pairs, joined by an edge or not, where values are numbers."""
        raise self._unknown("second_moments")

    def marginal(self, nodes: Iterable[int]) -> Floats:
        """Return the joint probabilities of some variables.

        Axis t belongs to the t-th node given; its indices are the codes of that variable.
        """
        raise self._unknown("marginal")

    @cached_property
    def mode(self) -> tuple[Codes, float]:
        """A state of largest probability and the logarithm of that probability."""
        raise self._unknown("mode")

    def _unknown(self, question: str) -> ArgumentError:
        return ArgumentError(f"{question} is not known by {self.engine.cost.engine}", "use `moments`, or draw samples")


def _offers(family: Family) -> list[tuple[Cost, type[Engine]]]:
    """Return the prices of the engines that serve a family and may be the cheapest, the lowest first."""
    engines = [cast("type[Engine]", ENGINES.factory(name)) for name in ENGINES]
    bounds = sorted(((engine.cost_lower_bound(family), engine) for engine in engines), key=lambda pair: pair[0])
    offers: list[tuple[Cost, type[Engine]]] = []
    for bound, engine in bounds:
        if not any(cost.fits(bound, memory_limit()) for cost, _ in offers):
            cost = engine.price(family)
            offers += [(cost, engine)] if cost is not None else []
    if not offers:
        raise ArgumentError(f"exact inference needs a model with factors or layers, not {type(family).__name__}")
    return sorted(offers, key=lambda offer: offer[0].seconds)


def predict_cost(family: Family) -> Cost:
    """Return the price of the cheapest engine: log Z and all moments of a family's members.

    Parameters
    ----------
    family : Family
        The family.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.predict_cost(gb.PairwiseFamily(gb.graphs.complete(20))).engine
    'enumeration'
    >>> gb.inference.predict_cost(gb.PairwiseFamily(gb.graphs.grid(10, 10))).engine
    'elimination'
    """
    return _offers(family)[0][0]


def is_affordable(family: Family, max_seconds: float = 60.0) -> bool:
    """Return whether `exact` would answer within a time limit.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.inference.is_affordable(gb.PairwiseFamily(gb.graphs.complete(60)))
    False
    """
    return any(cost.fits(max_seconds, memory_limit()) for cost, _ in _offers(family))


def plan_exact(family: Family, *, max_seconds: float = 60.0, instead: str = INSTEAD) -> Engine:
    """Return the engine with the lowest predicted time of those within the limits, to be evaluated at any parameters.

    Parameters
    ----------
    family : Family
        Any interactions of up to about 30 two-valued variables, any number of variables of low treewidth, or layers of
        which the smaller side has up to 25 two-valued units.
    max_seconds : float, default 60
        Refuse if it is predicted to take longer.
    instead : str
        The advice where no engine is within the limits.

    Raises
    ------
    TooExpensiveError
        When no engine fits the time limit and the memory; nothing has been allocated.

    Examples
    --------
    >>> import gibbsian as gb
    >>> engine = gb.inference.plan_exact(gb.PairwiseFamily(gb.graphs.grid(1, 3), bias=False))
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
        f"exact inference on {len(family.variables)} variables would take {by_engine}, but "
        f"`max_seconds={max_seconds:g}` and {format_bytes(limit)} may be used",
        instead,
    )


def exact(model: Model[Family], *, max_seconds: float = 60.0, instead: str = INSTEAD) -> ExactAnswers:
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
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(8, 8)))
    >>> gb.inference.exact(model).log_partition                                            # 64 log 2
    44.361...
    >>> gb.inference.exact(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(60))))
    Traceback (most recent call last):
        ...
    gibbsian.errors.TooExpensiveError: exact inference on 60 variables would take ...
    """
    return plan_exact(model.family, max_seconds=max_seconds, instead=instead).at(model.theta).checked()


def conditional(
    model: Model[DiscreteFamily],
    nodes: Sequence[int] | Integers,
    codes: Sequence[int] | States,
    *,
    max_seconds: float = 60.0,
) -> tuple[ExactAnswers, float]:
    """Return exact answers about the other variables given the codes of some, and the log-weight of the given ones.

    The others keep their order. Their `log_partition` plus the constant is the log of the sum of the weights of all
    rows that agree with `codes`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(3), None, [1.0, 0.0, 0.5])
    >>> rest, _ = gb.inference.conditional(model, [0], [1])
    >>> rest.means                              # tanh 1, and tanh 0.5 of it
    array([0.76159416, 0.35194573])
    """
    rest, constant = model.given(nodes, codes)
    return plan_exact(rest.family, max_seconds=max_seconds).at(rest.theta), constant


def check_nodes(nodes: Iterable[int], n_variables: int) -> Integers:
    """Return `nodes` as an array; refuse numbers outside the range, and repeated ones."""
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
    """Return `n_samples`; refuse anything but an integer, zero or more."""
    if not isinstance(n_samples, int | np.integer) or n_samples < 0:
        raise ArgumentError("must be a whole number, zero or more", argument="n_samples", value=n_samples)
    return int(n_samples)
