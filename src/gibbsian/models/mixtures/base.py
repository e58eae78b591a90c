"""Base of mixtures ``P(x) = sum_a w_a P_a(x)``, whose label a is the last variable of a complete row.

A mixture of exponential families has ``log P(x, a) = S(x) . eta_a + offset_a``. A family defines S, the map from its
parameters to eta, and the map from the summed statistics of each class to its parameters. Both steps of EM are closed
forms, the label needs no inference, and the density no partition function.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Self, TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.backends.classes import ClassSums, log_joint
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.models.base import Parts, fields_alone
from gibbsian.models.file_parts import BOOL, COUNT, MOST, PartsInFile, Plain, reals
from gibbsian.models.interactions import Interactions, of_classes
from gibbsian.models.rows import RowsInMemory
from gibbsian.models.variables import Variables
from gibbsian.resources import spans
from gibbsian.startup import logsumexp

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Rows as vectors: a dense array or a CSR array of SciPy, typed as dense.
Points = Floats
N = TypeVar("N", bound=NamedTuple)

# Fraction of the total weight up to which a class counts as empty.
EMPTY = 1e-14


class WeightedSample(NamedTuple):
    """Distinct rows with positive weights, and the mask of their missing cells."""

    x: States
    weights: Floats
    mask: Mask | None

    @classmethod
    def of(cls, data: RowsInMemory) -> Self:
        """Select the rows of a data set that have a positive weight."""
        x, weights, mask, positive = data.states, data.weights, data.missing, data.weights > 0
        if positive.all():
            return cls(x, weights, mask)
        return cls(x[positive], weights[positive], None if mask is None else mask[positive])

    def mean(self) -> Floats:
        """Return the mean of the present cells of each column, zero if there is none."""
        x, weights, mask = self.x, self.weights / self.weights.max(), self.mask  # so that a single row is its mean
        if mask is None:
            sums, totals = weights @ x, weights.sum()
        else:
            cells = weights[:, None] * ~mask
            sums, totals = (cells * np.where(mask, 0.0, x)).sum(axis=0), cells.sum(axis=0)
        mean: Floats = sums / np.where(totals > 0, totals, 1.0)
        return mean


class Frame(NamedTuple):
    """Constants that EM takes from the rows: the origin of coordinates, and the minimum variance of a class."""

    origin: Floats
    floor: float


class MixtureFamily(ABC, Generic[N]):
    """Base of all mixtures; theta begins with the weights of the classes, all zero before a fit."""

    registered_name: ClassVar[str] = "mixture"
    parts_in_file: ClassVar[PartsInFile]
    n_hidden: ClassVar[int] = 1
    _parts: type[N]
    n_components: int
    __getstate__ = fields_alone

    if TYPE_CHECKING:  # a property of some, a field of others

        @property
        def columns(self) -> Variables:
            """The variables of the columns of data."""

    @cached_property
    def variables(self) -> Variables:
        """The columns, and the label."""
        return self.columns + Variables.categories((self.n_components,))

    @property
    @abstractmethod
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the parts of theta, the weights first."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """Number of learned parameters, without those that follow from others."""

    @property
    def n_parameters(self) -> int:
        """Number of entries of theta."""
        return sum(map(math.prod, self._shapes))

    @property
    def penalised(self) -> Mask:
        """A mask of no parameters: none is an interaction."""
        return np.zeros(self.n_parameters, dtype=bool)

    def split(self, theta: Floats) -> N:
        """Return the named parts of theta."""
        each = zip(spans(map(math.prod, self._shapes)), self._shapes, strict=True)
        return self._parts._make(theta[at].reshape(shape) for at, shape in each)

    def join(self, *parts: object) -> Floats:
        """Return theta, given its parts in their order."""
        return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])

    def require_distribution(self, theta: Floats) -> None:
        """Raise `ArgumentError` unless theta gives a distribution."""
        weights = theta[: self.n_components]
        if (weights < 0).any() or not np.isclose(weights.sum(), 1.0, rtol=1e-6):
            raise ArgumentError(
                "must hold weights of the classes that are not negative and add up to 1", argument="theta"
            )

    # -- the distribution ---------------------------------------------------------------------------------------------
    @abstractmethod
    def log_joint(self, theta: Floats, x: States, mask: Mask | None = None) -> Floats:
        """Return ``log P(x, class)`` of rows and classes, cells under the mask integrated out."""

    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return the log-probability of complete rows, the label last."""
        return self.log_joint(theta, x[:, :-1])[np.arange(len(x)), x[:, -1].astype(np.intp)]

    def log_evidence(self, theta: Floats, x: States, mask: Mask | None = None) -> Floats:
        """Return the log-density of the present cells of rows of data, the label summed out."""
        evidence: Floats = logsumexp(self.log_joint(theta, x, mask), axis=1)
        return evidence

    # -- reports and files --------------------------------------------------------------------------------------------
    def canonical(self, theta: Floats) -> Floats:
        """Return theta, which needs no gauge."""
        return theta

    @abstractmethod
    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""

    @abstractmethod
    def interactions(self, theta: Floats) -> Interactions:
        """Return the network of the mixture."""

    def free_directions(self, theta: Floats) -> Floats:
        """Return an orthonormal basis, as columns, of the directions in which learned parameters can move."""
        raise ArgumentError(
            f"errors of the parameters of a {type(self).__name__} are not known", "use `gibbsian.uncertainty.bootstrap`"
        )

    def normalised(self, theta: Floats) -> Floats:
        """Return theta with vectors that must have unit norm scaled to it."""
        return theta

    def to_parts(self) -> Parts:
        """Return what a file keeps of the family: its fields."""
        return Parts(fields_alone(cast("DataclassInstance", self)), {})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        return cls(**parts.plain)


class ExponentialMixtureFamily(MixtureFamily[N]):
    """A mixture of exponential families.

    Rows and theta may be relative to an `origin` (see `Frame`), for accuracy: `translated` maps theta there.
    """

    def _origin_of(self, theta: Floats) -> Floats:
        """Return the origin for a fitted mixture, by default none."""
        return np.empty(0)

    def frame(self, rows: WeightedSample) -> Frame:
        """Return the origin and the minimum variance that EM takes from the rows."""
        return Frame(np.empty(0), 0.0)

    def translated(self, theta: Floats, origin: Floats) -> Floats:
        """Return theta relative to an origin; minus the origin maps back."""
        return theta

    @abstractmethod
    def points(self, x: States, mask: Mask | None, origin: Floats) -> Points:
        """Return rows as vectors; missing cells are zero."""

    def features(self, points: Points, mask: Mask | None) -> Points:
        """Return S(x) of each point: by default the point itself."""
        return points

    @abstractmethod
    def natural(self, theta: Floats, by_cell: bool) -> tuple[Floats, Floats]:
        """Return eta (classes x statistics) and the offsets (classes), log-weights included.

        With `by_cell` the statistics include the mask of present cells.
        """

    @abstractmethod
    def peak(self, eta: Floats) -> States:
        """Return the row of largest density under each row of natural parameters."""

    @abstractmethod
    def sample(self, theta: Floats, n: int, rng: np.random.Generator) -> tuple[States, Integers]:
        """Draw rows of data and their classes."""

    @abstractmethod
    def maximise(self, sums: ClassSums, theta: Floats | None, floor: float = 0.0) -> Floats:
        """Return the theta of maximum likelihood given the summed statistics of classes; None is theta before EM."""

    def counted_by_cell(self, sums: ClassSums) -> ClassSums:
        """Return sums of complete rows in the form of those of rows with missing cells, to which they can be added."""
        return sums

    def penalty(self, theta: Floats) -> float:
        """Return minus the log-prior of the parameters, zero for maximum likelihood."""
        return 0.0

    def warning(self, theta: Floats, mass: Floats, floor: float) -> str:
        """Return a warning about a solution whose classes have these total weights; empty if there is none."""
        return class_warning(mass)

    def log_joint(self, theta: Floats, x: States, mask: Mask | None = None) -> Floats:
        """Return ``log P(x, class)`` of rows and classes, cells under the mask integrated out."""
        origin = self._origin_of(theta)
        features = self.features(self.points(x, mask, origin), mask)
        return log_joint(features, *self.natural(self.translated(theta, origin), mask is not None))


class SphericalMixtureFamily(ExponentialMixtureFamily[N]):
    """A mixture of distributions that are symmetric around a mean, each with one scale, such as a variance.

    Theta has the weights, the means and the scales of the classes.
    """

    parts_in_file: ClassVar[PartsInFile] = {
        "n_components": COUNT,
        "n_columns": Plain((int,), 1, MOST, size="n"),
        "free_weights": BOOL,
        "theta": reals("parameters"),
    }
    n_columns: int
    free_weights: bool
    # Number of constraints on each mean.
    _mean_constraints: ClassVar[int] = 0

    @property
    @abstractmethod
    def _scale(self) -> float | str:
        """A given scale, or ``"free"`` (one learned for each class) or ``"tied"`` (one learned for all)."""

    def _mean_directions(self, theta: Floats) -> Floats:
        """Return an orthonormal basis, as columns, of the directions in which means can move."""
        return np.eye(self.n_components * self.n_columns)

    @property
    def columns(self) -> Variables:
        """Real numbers."""
        return Variables.reals(self.n_columns)

    @property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the weights, the means and the scales."""
        k = self.n_components
        return (k,), (k, self.n_columns), (k,)

    @property
    def n_free(self) -> int:
        """Number of learned parameters."""
        k = self.n_components
        scales = {"free": k, "tied": 1}.get(str(self._scale), 0)
        return k * (self.n_columns - self._mean_constraints) + scales + (k - 1 if self.free_weights else 0)

    def free_directions(self, theta: Floats) -> Floats:
        """Return an orthonormal basis, as columns, of the directions in which learned parameters can move."""
        from scipy.linalg import block_diag

        k = self.n_components
        weights = tangents([np.ones(k)]) if self.free_weights else np.empty((k, 0))
        scales = {"free": np.eye(k), "tied": np.full((k, 1), k**-0.5)}.get(str(self._scale), np.empty((k, 0)))
        directions: Floats = block_diag(weights, self._mean_directions(theta), scales)
        return directions

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""
        (weights, means, scales), k = self._parts._fields, range(self.n_components)
        means_of = [f"{means}[{a}] {name}" for a in k for name in names]
        return [*(f"{weights}[{a}]" for a in k), *means_of, *(f"{scales}[{a}]" for a in k)]

    def interactions(self, theta: Floats) -> Interactions:
        """Return each class as a hidden unit, and how far its means are from those of all classes."""
        weights, means, _ = self.split(theta)
        return of_classes(means - weights @ means, "difference from the mean")

    def _fitted_scales(
        self, sums: Floats, counts: Floats, empty: Mask, theta: Floats | None, best: Callable[[Floats], Floats]
    ) -> Floats:
        """Return the scale of each class: `best` of its mean, sums over counts; before EM all share one.

        Empty classes keep their scale.
        """
        if not isinstance(self._scale, str):
            return np.full(len(sums), float(self._scale))
        if self._scale == "tied" or theta is None:
            return np.full(len(sums), best(sums.sum() / counts.sum()))
        return np.where(empty, self.split(theta)[2], best(sums / np.where(empty, 1.0, counts)))


def require_all_cells(mask: Mask | None, remedy: str = "") -> None:
    """Raise `MissingValuesError` naming the first missing cell of rows that must have unit norm."""
    if mask is None or not mask.any():
        return
    row, column = np.argwhere(mask)[0]
    raise MissingValuesError(
        f"row {row}, column {column} is missing (NaN), but unit norm ties all cells of a row together, so that "
        "what the others tell about the classes is no longer a closed form",
        f"fill it or leave the row out{remedy}",
    )


# -- weights of classes -----------------------------------------------------------------------------------------------
def class_weights(mass: Floats, free: bool = True) -> Floats:
    """Return the fraction of the total weight in each class, or equal fractions."""
    if not free:
        return np.full(len(mass), 1.0 / len(mass))
    mass = np.where(empty_classes(mass), 0.0, mass)
    weights: Floats = mass / mass.sum()
    return weights


def draw_classes(weights: Floats, n: int, rng: np.random.Generator) -> Integers:
    """Draw classes with these weights."""
    return rng.choice(len(weights), size=n, p=weights / weights.sum())


def log_class_weights(weights: Floats) -> Floats:
    """Return the logarithms, minus infinity for a class of weight zero."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


def empty_classes(mass: Floats) -> Mask:
    """Return the mask of the classes without weight, up to rounding."""
    empty: Mask = mass <= EMPTY * mass.sum()
    return empty


def class_warning(mass: Floats, at_limit: Mask | bool = False, limit_warning: str = "") -> str:
    """Return a warning that names the first class whose scale is at a limit, or the first empty one; else nothing."""
    empty = empty_classes(mass)
    empty_warning = "has lost all its rows and keeps its last parameters: ask for fewer classes or more starts"
    for classes, warning in ((at_limit & ~empty, limit_warning), (empty, empty_warning)):
        if classes.any():
            return f"class {classes.argmax()} {warning}"
    return ""


def tangents(vectors: Sequence[Floats]) -> Floats:
    """Return an orthonormal basis of the joint moves of vectors, side by side, that are orthogonal to each vector.

    For vectors of ones these keep the sums of probabilities; for unit vectors they are tangents of the sphere.
    """
    from scipy.linalg import block_diag, null_space

    moves: Floats = block_diag(*(null_space(vector[None, :]) for vector in vectors))
    return moves
