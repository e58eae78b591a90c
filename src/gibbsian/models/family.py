"""The contracts of the core: a family is a structure, theta is an array, a model is the pair.

A `Family` is a set of distributions indexed by one flat array ``theta``: a graph, the layers of a machine, the number
of classes of a mixture. Its functions take theta as an argument and are pure, so that nothing is rebuilt in a loop.
Rows are **codes** (see `Variables`) and **complete**: hidden units, or the label of a mixture, are the last variables,
and what a row of data does not show is summed out by a posterior and nowhere else. Parameters are natural: the
temperature is 1. The narrower protocols say what some families can do besides, and what packages above may rely on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from gibbsian.display import Shown
from gibbsian.errors import ArgumentError
from gibbsian.models.conditionals import Conditionals, WeightedRows
from gibbsian.models.factors import FactorGraph, Marginal
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import Variables
from gibbsian.models.variables import fields_alone as fields_alone
from gibbsian.registry import Registry

Array = np.ndarray
FAMILIES = Registry("family", "gibbsian.models", "FAMILIES")


class Parts(NamedTuple):
    """The parts of a family that a file keeps besides theta: plain values and arrays."""

    plain: Mapping[str, object]
    arrays: Mapping[str, Array]
    models: tuple[object, ...] = ()  # those that the family is made of, which stand in the file by themselves


@runtime_checkable
class Family(Protocol):
    """A set of distributions indexed by theta: every entry of `FAMILIES`."""

    @property
    def variables(self) -> Variables:
        """The values of all variables, the columns of data first."""

    @property
    def n_hidden(self) -> int:
        """Number of variables, the last ones, that no row of data shows."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""

    @property
    def penalised(self) -> Array:
        """Mask of the parameters that an L1 penalty may shrink: interactions, not biases."""

    def split(self, theta: Array) -> NamedTuple:
        """Return named views of theta, for example biases and couplings."""

    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return ``log P(x) + log Z`` of complete rows."""

    def canonical(self, theta: Array) -> Array:
        """Return the parameters of the same distribution in the gauge in which they are reported."""

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""

    def interactions(self, theta: Array) -> Interactions:
        """Return which variables interact and how strongly."""

    def to_parts(self) -> Parts:
        """Return what a file keeps of the family."""

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps; `variables` are those of the columns."""


@runtime_checkable
class ExponentialFamily(Family, Protocol):
    """A family with ``log P(x) = theta . S(x) + base measure - log Z``."""

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        """The least and the largest value of each statistic."""

    def statistics(self, x: Array) -> Array:
        """Return the statistics S(x) of each row."""

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted mean of the statistics of rows."""


@runtime_checkable
class DiscreteFamily(ExponentialFamily, Protocol):
    """An exponential family over finitely many values, or over the nodes of a quadrature rule."""

    @property
    def scopes(self) -> Scopes:
        """Which variables share a term; ``scopes.graph`` joins every two that do."""

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows of codes to the log-odds of each value given the others, where log Z cancels."""

    def factors(self, theta: Array) -> FactorGraph:
        """Return the distribution as a product of small tables over codes."""

    def statistics_from(self, marginal: Marginal) -> Array:
        """Return the expected statistics, given the joint probabilities of any few variables that share a term."""

    def given(self, nodes: Sequence[int] | Array, codes: Sequence[int] | Array) -> Given[Self]:
        """Return the family of the other variables given the codes of some: a linear map of parameters."""


@runtime_checkable
class ClosedForm(Protocol):
    """What an exponential family can do whose sums over all rows have a closed form, so that no engine is asked."""

    def log_partition(self, theta: Array) -> float:
        """Return log Z; infinite where theta gives no distribution."""

    def expected_statistics(self, theta: Array) -> Array:
        """Return the expectation of the statistics."""

    def statistic_variances(self, theta: Array) -> Array:
        """Return the variance of each statistic."""


@runtime_checkable
class Constrained(Protocol):
    """What a family can tell of which not every theta gives a distribution."""

    def require_distribution(self, theta: Array) -> None:
        """Raise `ArgumentError` unless theta gives a distribution."""


@runtime_checkable
class Units(Protocol):
    """A layer of units of one kind, which are independent of each other given their fields.

    The values of a layer are what enters products of matrices, `width` columns: a number for each unit, or an indicator
    for each value of a categorical one. Arrays are NumPy's or PyTorch's, and results are of the same library.
    """

    @property
    def n_units(self) -> int:
        """Number of units."""

    @property
    def kind(self) -> str:
        """Name of the kind, as estimators and files write it."""

    @property
    def width(self) -> int:
        """Number of columns of values and of fields."""

    @property
    def variables(self) -> Variables:
        """The values of the units."""

    def encode(self, codes: Array) -> Array:
        """Return the values of codes (of the numbers themselves where units are real)."""

    def log_measure(self, values: Array) -> Array:
        """Return the log of the base measure of each row of values."""

    def log_normaliser(self, fields: Array) -> Array:
        """Return the log of the summed weights of all values of a layer under given fields."""

    def means(self, fields: Array) -> Array:
        """Return the mean values under given fields."""

    def draw(self, fields: Array, rng: np.random.Generator) -> Array:
        """Draw values under given fields."""

    def fields_of(self, means: Array) -> Array:
        """Return the fields under which units have these means, kept away from certainty."""

    def take(self, units: Array) -> Self:
        """Return some of the units, in the order given."""


class StackParts(NamedTuple):
    """The parameters of a stack, views of theta in its order: biases of all layers, then weights between neighbours."""

    biases: list[Array]
    weights: list[Array]


@runtime_checkable
class Layered(Family, Protocol):
    """A family of layers of units in a row: stacks, and belief networks, which end in one."""

    @property
    def layers(self) -> tuple[Units, ...]:
        """The layers, that of the columns first."""

    def lowest(self, theta: Array) -> StackParts:
        """Return the biases of the two lowest layers and the weights between them."""

    def log_evidence(self, theta: Array, v: Array) -> Array:
        """Return ``log P(v) + log Z`` of rows of visible values, the hidden layers summed out exactly."""

    @property
    def top(self) -> Any:
        """The stack whose normaliser is the family's: itself, or the machine at the top of a belief network."""

    def top_theta(self, theta: Array) -> Array:
        """Return the parameters of `top`."""

    def draw_below(self, theta: Array, values: Sequence[Array], rng: np.random.Generator) -> list[Array]:
        """Return the values of all layers given those of the layers of `top`."""

    def initialised(self, means: Array, rng: np.random.Generator, scale: float | None = None) -> Array:
        """Return theta of visible units with these means, and of random weights."""

    def at(self, theta: Array, beta: float) -> Model[Any]:
        """Return the distribution at an inverse temperature, the measures of units included."""

    def rescaled(self, theta: Array, centres: Array, spreads: Array) -> Model[Any]:
        """Return the distribution over ``centres + spreads u`` of one over real numbers u."""


@runtime_checkable
class Mixture(Family, Protocol):
    """A family with a label as its last variable: ``P(x) = sum_a w_a P_a(x)``."""

    @property
    def n_components(self) -> int:
        """Number of classes."""

    def log_joint(self, theta: Array, x: Array, mask: Array | None = None) -> Array:
        """Return ``log P(x, class)`` of rows and classes, cells under the mask (missing) integrated out."""


F = TypeVar("F", bound=Family)


@dataclass(frozen=True, eq=False, repr=False)
class Model(Shown, Generic[F]):
    """A distribution: a family and its parameters.

    Parameters
    ----------
    family : Family
        The structure.
    theta : ndarray
        The parameters in the family's layout. Kept as a read-only view; nothing is copied.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> family = gb.GaussianFamily(gb.graphs.complete(2), np.zeros(2), np.ones(2))
    >>> model = gb.Model(family, np.array([0, 0, 2.0, 2.0, 1.0]))
    >>> model.parts.couplings, model.at(0.5).log_weights([[1.0, 1.0]])
    (array([1.]), array([-1.5]))
    """

    family: F
    theta: Array

    def __post_init__(self) -> None:
        theta = np.asarray(self.theta)
        theta = (theta if theta.dtype in (np.float32, np.float64) else theta.astype(np.float64)).view()
        if theta.shape != (self.family.n_parameters,):
            raise ArgumentError(
                f"has shape {theta.shape}, but the family has {self.family.n_parameters} parameters", argument="theta"
            )
        if not np.isfinite(theta).all():
            raise ArgumentError("holds NaN or infinite values", argument="theta")
        theta.flags.writeable = False
        object.__setattr__(self, "theta", theta)

    def _facts(self) -> dict[str, object]:
        return {"family": self.family, "parameters": self.theta.size}

    @property
    def parts(self) -> Any:
        """Named views of theta."""
        return self.family.split(self.theta)

    @property
    def n_variables(self) -> int:
        """Number of variables, hidden ones included."""
        return len(self.family.variables)

    @property
    def n_hidden(self) -> int:
        """How many of them, the last ones, no row of data shows."""
        return self.family.n_hidden

    @property
    def penalised(self) -> Array:
        """Mask of the parameters that an L1 penalty may shrink."""
        return self.family.penalised

    def replace(self, theta: Array) -> Self:
        """Return the distribution of the same family with other parameters."""
        return dataclasses.replace(self, theta=theta)

    def at(self, beta: float) -> Model[Any]:
        """Return the distribution at an inverse temperature, ``P(x) = exp(beta theta . S(x)) / Z`` (YK15)."""
        if isinstance(self.family, Layered):  # units have measures besides theta
            return self.family.at(self.theta, beta)
        return self.replace(beta * self.theta)

    def log_weights(self, x: Array) -> Array:
        """Return ``log P(x) + log Z`` of complete rows."""
        return self.family.log_weights(self.theta, x)

    def canonical(self) -> Self:
        """Return the same distribution in the gauge in which parameters are reported."""
        theta = self.family.canonical(self.theta)
        return self if theta is self.theta else self.replace(theta)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""
        return self.family.parameter_names(names)

    def interactions(self) -> Interactions:
        """Return which variables interact and how strongly."""
        return self.family.interactions(self.theta)


# whether instances of a class keep a protocol
_KEPT: dict[tuple[type, Any], bool] = {}


def keeps(family: Any, protocol: Any) -> bool:
    """Say whether a family keeps a protocol; quicker than `isinstance`, which looks at all members each time.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.models.factors import FactorFamily
    >>> keeps(gb.PairwiseModel.zeros(gb.graphs.complete(2)).family, FactorFamily)
    True
    """
    key = type(family), protocol
    if key not in _KEPT:
        _KEPT[key] = isinstance(family, protocol)
    return _KEPT[key]
