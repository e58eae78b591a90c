"""The contracts of the library: a `Family` is a structure, theta an array of parameters, a `Model` the pair of both.

A family is a set of distributions indexed by one flat array ``theta``. Its structure is a graph, the layers of a
machine, or the number of components of a mixture. Methods take theta as an argument and are pure functions of it, so
that a learner evaluates many thetas without building objects.

- Rows are **codes**, or real numbers (see `Variables`). They are **complete**: hidden units, or the label of a mixture,
  are the last variables. Only posteriors (`gibbsian.inference`) sum out hidden variables and missing cells.
- Parameters are **natural**: the temperature is 1. `Model.at` gives other temperatures.
- Narrower protocols (`ExponentialFamily`, `DiscreteFamily`, `Layered`, `Mixture`, ...) add members. A function takes
  the narrowest protocol that it needs; `keeps(family, protocol)` tests for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States, Tensor
from gibbsian.display import Shown
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.conditionals import Conditionals, WeightedRows
from gibbsian.models.factors import FactorGraph, Marginal
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import Variables
from gibbsian.models.variables import fields_alone as fields_alone
from gibbsian.registry import Registry

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from gibbsian.models.layers.stack import StackFamily

Array = np.ndarray  # of modules whose arrays have no types yet
FAMILIES = Registry("family", "gibbsian.models", "FAMILIES")


class Parts(NamedTuple):
    """The content of a model file besides theta: plain values, arrays, and the models that a family is built from."""

    plain: Mapping[str, object]
    arrays: Mapping[str, Floats | Integers]
    models: tuple[Model[Family], ...] = ()  # the components of a mixture; each has its own section in the file


@runtime_checkable
class Family(Protocol):
    """A set of distributions indexed by theta; every entry of `FAMILIES` is one."""

    @property
    def variables(self) -> Variables:
        """The number of values and the scores of each variable: the columns of data, then the hidden variables."""

    @property
    def n_hidden(self) -> int:
        """Number of hidden variables, which come last: no row of data has a value for them."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters, the length of theta."""

    @property
    def penalised(self) -> Mask:
        """Mask of the parameters to which an L1 penalty applies: interactions, but not biases."""

    def split(self, theta: Floats) -> NamedTuple:
        """Return named views of theta, for example ``(biases, couplings)``."""

    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return the unnormalised log-probability ``log P(x) + log Z`` of each complete row."""

    def canonical(self, theta: Floats) -> Floats:
        """Return the parameters of the same distribution in the gauge that reports use, such as zero sums of tables."""

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""

    def interactions(self, theta: Floats) -> Interactions:
        """Return which variables interact and how strongly: the network that plots and reports show."""

    def to_parts(self) -> Parts:
        """Return the content of a model file from which `from_parts` builds the family again."""

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from the content of a model file and the variables of the columns."""


@runtime_checkable
class ExponentialFamily(Family, Protocol):
    """A family with ``log P(x) = theta . S(x) + base measure - log Z``."""

    @property
    def statistic_range(self) -> tuple[Floats, Floats]:
        """The minimum and the maximum of each statistic over all rows."""

    def statistics(self, x: States) -> Floats:
        """Return the sufficient statistics S(x), one row for each row of x."""

    def mean_statistics(self, x: States, weights: Floats | None = None) -> Floats:
        """Return the weighted mean of the sufficient statistics over rows."""


@runtime_checkable
class DiscreteFamily(ExponentialFamily, Protocol):
    """An exponential family over variables with finitely many values, or with the nodes of a quadrature rule."""

    @property
    def scopes(self) -> Scopes:
        """The sets of variables that share a term, smaller sets first."""

    @property
    def graph(self) -> Graph:
        """The pairs of variables that share a term."""

    def terms_of(self, variables: Mask) -> Mask:
        """Return the mask of the parameters whose term contains any of the masked variables."""

    def log_odds(self, theta: Floats) -> Floats:
        """Return the largest change of a log-probability that each parameter causes alone, in any coding."""

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows, for losses of the log-odds of each variable given all others, which need no normaliser."""

    def factors(self, theta: Floats) -> FactorGraph:
        """Return the distribution as a product of tables of log-weights, each over the codes of a few variables."""

    def statistics_from(self, marginal: Marginal) -> Floats:
        """Return the expected statistics, given a function that returns the joint probabilities of a few variables."""

    def given(self, nodes: Sequence[int] | Integers, codes: Sequence[int] | States) -> Given[DiscreteFamily]:
        """Condition on the codes of some variables: return the family of the others, and the linear map of theta."""


@runtime_checkable
class ClosedForm(Protocol):
    """An exponential family whose normaliser and moments have a closed form, so that it needs no inference engine."""

    def log_partition(self, theta: Floats) -> float:
        """Return log Z, or infinity if the weights cannot be normalised."""

    def expected_statistics(self, theta: Floats) -> Floats:
        """Return the expectation of each statistic."""

    def statistic_variances(self, theta: Floats) -> Floats:
        """Return the variance of each statistic."""


@runtime_checkable
class Constrained(Protocol):
    """A family with constraints on theta, such as a positive definite precision matrix."""

    def require_distribution(self, theta: Floats) -> None:
        """Raise `ArgumentError` if theta violates the constraints."""


@runtime_checkable
class Units(Protocol):
    """A layer of units of one kind, which are conditionally independent given their fields.

    The *values* of a layer are what matrices multiply, with `width` columns: one number for each unit, or one indicator
    for each value of a categorical unit. Arrays are NumPy's or PyTorch's; results are of the same library.
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
        """The number of values and the scores of each unit."""

    def encode(self, codes: States) -> Floats:
        """Return the values of codes; real units have their numbers in place of codes."""

    def log_measure(self, values: Tensor) -> Tensor | float:
        """Return the log of the base measure of each row of values, or 0 for a kind without one."""

    def log_normaliser(self, fields: Tensor) -> Tensor:
        """Return ``log sum_values exp(fields . values)`` under the base measure, for each row of fields."""

    def means(self, fields: Tensor) -> Tensor:
        """Return the mean values given fields."""

    def draw(self, fields: Tensor, rng: np.random.Generator) -> Tensor:
        """Draw values given fields."""

    def fields_of(self, means: Floats) -> Floats:
        """Return the fields whose mean values are these, with means of discrete units kept away from certainty."""

    def take(self, units: Integers) -> Self:
        """Return a layer of the selected units, in the order given."""


class StackParts(NamedTuple):
    """The parameters of a stack, views of theta in its order: biases of all layers, then weights between neighbours."""

    biases: list[Tensor]
    weights: list[Tensor]

    # Of two layers, for `gibbsian.inference.layer_posterior`.
    def upward(self) -> tuple[Tensor, Tensor]:
        """Return the biases of the hidden units, and the weights from the visible ones."""
        return self.biases[1], self.weights[0]

    def linear_form(self, v: Floats) -> tuple[Floats, Floats]:
        """Return the log-weight of each row without hidden units, and its derivative by each visible value."""
        return v @ self.biases[0], self.biases[0][None]

    def gather(self, v: Floats, present: Floats, hidden: Floats, products: Floats) -> Floats:
        """Return statistics from weighted expected values of each row, and sums over rows of h and of ``v h^T``."""
        return np.concatenate([present.sum(axis=0), hidden, products.ravel()])


@runtime_checkable
class Layered(Family, Protocol):
    """A family of layers of units in a row: a stack, or a belief network, whose top is a stack."""

    @property
    def layers(self) -> tuple[Units, ...]:
        """The layers from the visible one up."""

    def lowest(self, theta: Floats) -> StackParts:
        """Return the biases of the two lowest layers and the weights between them."""

    def log_evidence(self, theta: Floats, v: States) -> Floats:
        """Return ``log P(v) + log Z`` of rows of the visible layer, with the hidden layers summed out exactly."""

    @property
    def top(self) -> StackFamily:
        """The undirected part, whose normaliser is the family's: the stack itself, or the top of a belief network."""

    def draw_below(self, theta: Floats, values: Sequence[Tensor], rng: np.random.Generator) -> list[Tensor]:
        """Draw the layers below `top` given the values of its layers; return the values of all layers."""

    def initialised(self, means: Floats, rng: np.random.Generator, scale: float | None = None) -> Floats:
        """Return the start of a fit: visible biases that give these means, and random weights."""

    def at(self, theta: Floats, beta: float) -> Model[Self]:
        """Return the distribution at an inverse temperature, which also scales the base measures of the units."""

    def rescaled(self, theta: Floats, centres: Floats, scales: Floats) -> Model[Self]:
        """Return the distribution of ``centres + scales * u``, given that of standardised real variables u."""


@runtime_checkable
class Mixture(Family, Protocol):
    """A mixture ``P(x) = sum_a w_a P_a(x)``, whose last variable is the label of the component."""

    @property
    def n_components(self) -> int:
        """Number of components."""

    def log_joint(self, theta: Floats, x: States, mask: Mask | None = None) -> Floats:
        """Return ``log P(x, component)`` of each row and component; cells under the mask are integrated out."""


F = TypeVar("F", bound=Family, covariant=True)
G = TypeVar("G", bound=Family)
G_co = TypeVar("G_co", bound=Family, covariant=True)
N = TypeVar("N", bound=NamedTuple)
N_co = TypeVar("N_co", bound=NamedTuple, covariant=True)
P = TypeVar("P")


class _WithParts(Family, Protocol[N_co]):
    """A family by the type of its parts, which is the type of `Model.parts`."""

    def split(self, theta: Floats) -> N_co: ...


class _WithGiven(Family, Protocol[G_co]):
    """A family by the family of its conditional distributions, which is the type of `Model.given`."""

    def given(self, nodes: Sequence[int] | Integers, codes: Sequence[int] | States) -> Given[G_co]: ...


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
    theta: Floats

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

    @staticmethod
    def zeros(family: G) -> Model[G]:
        """Return the distribution at zero parameters: uniform, of an exponential family."""
        return Model(family, np.zeros(family.n_parameters))

    @property
    def parts(self: Model[_WithParts[N]]) -> N:
        """Named views of theta, as the family splits it."""
        return self.family.split(self.theta)

    @property
    def variables(self) -> Variables:
        """The number of values and the scores of each variable: the columns of data, then the hidden variables."""
        return self.family.variables

    @property
    def n_variables(self) -> int:
        """Number of variables, hidden ones included."""
        return len(self.family.variables)

    @property
    def n_hidden(self) -> int:
        """Number of hidden variables, which come last."""
        return self.family.n_hidden

    @property
    def penalised(self) -> Mask:
        """Mask of the parameters to which an L1 penalty applies."""
        return self.family.penalised

    def replace(self, theta: Floats) -> Self:
        """Return the distribution of the same family with other parameters."""
        return dataclasses.replace(self, theta=theta)

    def at(self, beta: float) -> Model[F]:
        """Return the distribution at an inverse temperature, ``P(x) = exp(beta theta . S(x)) / Z`` (YK15)."""
        if keeps(self.family, Layered):  # the base measures of units are scaled too
            return self.family.at(self.theta, beta)
        if keeps(self.family, Mixture):
            raise ArgumentError("a mixture has no temperature", "ask its components")
        return self.replace(beta * self.theta)

    def log_weights(self, x: States) -> Floats:
        """Return the unnormalised log-probability ``log P(x) + log Z`` of each complete row."""
        return self.family.log_weights(self.theta, x)

    def energy(self, x: States) -> Floats:
        """Return the energy ``E(x) = -log P(x) - log Z`` of each complete row."""
        return -self.log_weights(x)

    def given(
        self: Model[_WithGiven[G]], nodes: Sequence[int] | Integers, codes: Sequence[int] | States
    ) -> tuple[Model[G], float]:
        """Condition on the codes of some variables.

        Returns
        -------
        model : Model
            The distribution of the other variables.
        constant : float
            Log-weight of the given codes themselves: ``log_weights(x)`` is that of `model` plus this constant.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.PairwiseFamily.model(gb.graphs.complete(3), [0, 0, 0], [1.0, 2.0, 3.0])
        >>> rest, constant = model.given([0], [1])
        >>> rest.parts.biases.tolist(), rest.parts.couplings.tolist(), constant
        ([1.0, 2.0], [3.0], 0.0)
        """
        given = self.family.given(nodes, codes)
        theta, constant = given.parameters(self.theta)
        return Model(given.family, theta), constant

    def canonical(self) -> Self:
        """Return the same distribution with the parameters in the gauge that reports use."""
        theta = self.family.canonical(self.theta)
        return self if theta is self.theta else self.replace(theta)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""
        return self.family.parameter_names(names)

    def interactions(self) -> Interactions:
        """Return which variables interact and how strongly."""
        return self.family.interactions(self.theta)


# whether instances of a class satisfy a protocol
_KEPT: dict[tuple[type, type], bool] = {}


def keeps(family: object, protocol: type[P]) -> TypeIs[P]:
    """Whether an object satisfies a protocol; faster than `isinstance`, which looks up all members at each call.

    Examples
    --------
    >>> import gibbsian as gb
    >>> keeps(gb.PairwiseFamily(gb.graphs.complete(2)), gb.models.base.DiscreteFamily)
    True
    """
    key = type(family), protocol
    if key not in _KEPT:
        _KEPT[key] = isinstance(family, protocol)
    return _KEPT[key]
