"""What every exact engine answers, and what it costs to ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from gibbsian.domain import SPIN, Domain
from gibbsian.errors import ArgumentError
from gibbsian.models import Model
from gibbsian.models.pairwise import PairwiseModel
from gibbsian.registry import Registry
from gibbsian.resources import format_bytes

ENGINES = Registry("exact engine", "gibbsian.inference", "ENGINES")


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


@dataclass(frozen=True)
class Moments:
    """Log-partition function and expected sufficient statistics.

    Parameters
    ----------
    log_partition : float
        log Z.
    statistics : ndarray
        E[S] in the layout of ``model.theta``; of a pairwise model the means (if it has biases), then E[x_i x_j] over
        the edges.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> gb.inference.exact(model).moments().statistics.round(4)
    array([0.    , 0.    , 0.4621])
    """

    log_partition: float
    statistics: np.ndarray


@runtime_checkable
class ExactInference(Protocol):
    """Exact answers about one model. Cheap to build; what two questions share is computed once.

    Examples
    --------
    >>> import gibbsian as gb
    >>> engine = gb.inference.exact(gb.PairwiseModel.zeros(gb.graphs.grid(2, 2)))
    >>> isinstance(engine, gb.inference.ExactInference)
    True
    """

    @property
    def model(self) -> Model:
        """The model asked about."""

    @property
    def cost(self) -> Cost:
        """Predicted price of `moments`."""

    def at(self, model: Any) -> Self:
        """Return the engine for the same structure with other parameters; nothing is chosen or planned again."""

    def log_partition(self) -> float:
        """Return log Z."""

    def moments(self) -> Moments:
        """Return log Z and the expected statistics in the layout of theta."""

    def means(self) -> np.ndarray:
        """Return E[x_i] of each variable, where values are numbers."""

    def second_moments(self) -> np.ndarray:
        """Return the matrix E[x_i x_j] of all pairs, joined by an edge or not, where values are numbers."""

    def marginal(self, nodes: Iterable[int]) -> np.ndarray:
        """Return the joint probabilities of some variables, an axis for each.

        Axis t belongs to the t-th node given and is as long as it has values, in the order of their codes: index 0 is
        the lower value of a two-valued domain.
        """

    def most_probable(self) -> tuple[np.ndarray, float]:
        """Return a state of largest probability and the logarithm of that probability."""

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent states, shape ``(n_samples, n_variables)``."""


class Engine(ABC):
    """Base of the engines on the price list: one file each, registered in `ENGINES`.

    Parameters
    ----------
    model : Model
        One that the engine has a price for.
    max_seconds : float
        Limit for questions that take longer than `moments`.
    """

    # Cached properties that depend on the model's structure alone, so that `at` hands them on.
    shared: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: Any, max_seconds: float = 60.0):
        self.model = model
        self.max_seconds = max_seconds

    @classmethod
    @abstractmethod
    def price(cls, model: Any) -> Cost | None:
        """Predict what log Z and all moments of a model cost, or return None for a model that is not served."""

    @classmethod
    def least(cls, model: Any) -> float:
        """Return a bound of the price in seconds, found at once: dearer engines need not be asked for theirs."""
        cost = cls.price(model)
        return 0.0 if cost is None else cost.seconds

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of `moments`."""
        cost = self.price(self.model)
        assert cost is not None  # the engine was built for a model that it serves
        return cost

    def likelihood_of(self, data: Any) -> Any:
        """Return minus the mean log-likelihood of rows as a function of theta, where rows are listed; else None."""
        return None

    def at(self, model: Any) -> Self:
        """Return the engine for the same structure with other parameters; nothing is chosen or planned again."""
        other = type(self)(model, self.max_seconds)
        other.__dict__.update((name, getattr(self, name)) for name in self.shared)
        return other


@dataclass(frozen=True)
class SpinForm:
    """A model as the engines see it: spins, natural parameters, and the way back to the model's own domain."""

    biases: np.ndarray
    couplings: np.ndarray
    constant: float
    domain: Domain

    @classmethod
    def of(cls, model: PairwiseModel) -> Self:
        """Convert a model."""
        spins, constant = model.to_domain(SPIN)
        return cls(spins.biases, spins.couplings, constant, model.domain)

    @property
    def _middle_and_half(self) -> tuple[float, float]:
        return (self.domain.low + self.domain.high) / 2, self.domain.gap / 2

    def means(self, spin_means: np.ndarray) -> np.ndarray:
        """Turn E[s_i] into E[x_i]."""
        middle, half = self._middle_and_half
        return middle + half * spin_means

    def products(self, first: np.ndarray, second: np.ndarray, spin_products: np.ndarray) -> np.ndarray:
        """Turn E[s_i s_j] into E[x_i x_j], given E[s_i] and E[s_j]."""
        middle, half = self._middle_and_half
        return middle**2 + middle * half * (first + second) + half**2 * spin_products

    def statistics(self, model: PairwiseModel, spin_means: np.ndarray, edge_products: np.ndarray) -> np.ndarray:
        """Lay the moments out like ``model.theta``."""
        i, j = model.graph.edges.T
        products = self.products(spin_means[i], spin_means[j], edge_products)
        return np.concatenate([self.means(spin_means), products]) if model.bias else products

    def values(self, is_high: np.ndarray) -> np.ndarray:
        """Turn bits into values of the domain."""
        return np.where(is_high, np.int8(self.domain.high), np.int8(self.domain.low))


class SpinEngine(Engine):
    """An engine for pairs of two-valued variables, which it sees as spins."""

    model: PairwiseModel

    @cached_property
    def _form(self) -> SpinForm:
        return SpinForm.of(self.model)


def has_spin_form(model: Any) -> bool:
    """Say whether a model has biases and couplings of two-valued variables, which have engines of their own."""
    return getattr(model, "is_pairwise", False)


def has_fast_transform(model: Any) -> bool:
    """Say whether the log-weights of all states are one fast transform of the parameters."""
    return getattr(model, "has_fast_transform", False)


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
