"""What mixtures share: ``P(x) = sum_a w_a P_a(x)``, where the label a is the last variable of a complete row.

A mixture of exponential families has ``log P(x, a) = S(x) . eta_a + offset_a``. A family says what S is, how eta
follows from its parameters, and how these follow from the summed statistics of each class: both steps of EM are closed
forms, the label needs no inference, and the density no partition function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.backends.classes import ClassSums, log_joint
from gibbsian.domain import Reals
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.models.family import Model, Parts, fields_alone
from gibbsian.models.file_parts import PartsInFile
from gibbsian.models.interactions import Interactions, of_classes
from gibbsian.models.variables import Variables
from gibbsian.startup import logsumexp

Array = np.ndarray

# Share of all weight below which a class has no rows.
EMPTY = 1e-14


def rows_of(data: Any) -> Any:
    """Return the distinct rows of a data set: numbers where they are real, else codes."""
    return data.states if isinstance(data.domain, Reals) else data.codes


class WeightedRows(NamedTuple):
    """Distinct rows that count, with their weights, and the mask of their missing cells."""

    x: Any
    weights: Array
    mask: Array | None

    @classmethod
    def of(cls, data: Any) -> Self:
        """Take the rows of a data set that have a weight."""
        x, kept = rows_of(data), data.weights > 0
        if kept.all():
            return cls(x, data.weights, data.missing)
        return cls(x[kept], data.weights[kept], None if data.missing is None else data.missing[kept])

    def mean(self) -> Array:
        """Return the mean of the present cells of each column, zero where there is none."""
        x, weights, mask = self.x, self.weights / self.weights.max(), self.mask
        if len(weights) == 1:  # a mean of equal rows may round away from them
            return x[0] if mask is None else np.where(mask[0], 0.0, x[0])
        if mask is None:
            return weights @ x / weights.sum()
        cells = weights[:, None] * ~mask
        totals = cells.sum(axis=0)
        return (cells * np.where(mask, 0.0, x)).sum(axis=0) / np.where(totals > 0, totals, 1.0)


class Frame(NamedTuple):
    """What EM takes once from the rows: where they are counted from, and the least variance of a class."""

    origin: Array
    floor: float


class MixtureFamily:
    """What all mixtures share. Parameters of zero are those of an `unfitted` model, whose classes nobody has placed."""

    registered_name: ClassVar[str] = "mixture"
    n_hidden: ClassVar[int] = 1
    # What the errors of parameters do not know of.
    # The named parts of theta, the weights of the classes first.
    parts: ClassVar[type[Any]]
    parts_in_file: ClassVar[PartsInFile] = {}

    n_components: int
    __getstate__ = fields_alone

    if TYPE_CHECKING:  # a property of some, a field of others

        @property
        def columns(self) -> Variables:
            """The variables that rows of data show."""

    @cached_property
    def variables(self) -> Variables:
        """The columns, and the label."""
        return self.columns + Variables.categories((self.n_components,))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the parts of theta."""
        raise NotImplementedError

    @property
    def n_free(self) -> int:
        """Number of parameters that are learned, those that follow from others left out."""
        raise NotImplementedError

    @property
    def n_parameters(self) -> int:
        """Number of entries of theta."""
        return sum(map(math.prod, self.shapes))

    @property
    def penalised(self) -> Array:
        """No entry: none of them is an interaction."""
        return np.zeros(self.n_parameters, dtype=bool)

    def split(self, theta: Array) -> Any:
        """Return the named parts of theta."""
        pieces, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            pieces.append(theta[start : start + size].reshape(shape))
            start += size
        return self.parts(*pieces)

    def join(self, *parts: Any) -> Array:
        """Return theta, given its parts in their order."""
        return np.concatenate([np.ravel(part) for part in parts])

    def unfitted(self) -> Model[Self]:
        """Return a model whose classes learning has yet to place."""
        return Model(self, np.zeros(self.n_parameters))

    def is_fitted(self, theta: Array) -> bool:
        """Whether any class has a weight."""
        return bool(theta[: self.n_components].any())

    def require_distribution(self, theta: Array) -> None:
        """Raise `ArgumentError` unless theta gives a distribution."""
        weights = theta[: self.n_components]
        if (weights < 0).any() or not np.isclose(weights.sum(), 1.0, rtol=1e-6):
            raise ArgumentError(
                "must hold weights of the classes that are not negative and add up to 1", argument="theta"
            )

    # -- the distribution ---------------------------------------------------------------------------------------------
    def log_joint(self, theta: Array, x: Any, mask: Array | None = None) -> Array:
        """Return ``log P(x, class)`` of rows and classes, cells under the mask integrated out."""
        raise NotImplementedError

    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return the log-probability of complete rows, the label last."""
        return self.log_joint(theta, x[:, :-1])[np.arange(len(x)), x[:, -1].astype(np.intp)]

    def log_evidence(self, theta: Array, x: Any, mask: Array | None = None) -> Array:
        """Return the log-density of the present cells of rows of data, the label summed out."""
        return logsumexp(self.log_joint(theta, x, mask), axis=1)

    def sample(self, theta: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw rows of data and their classes."""
        raise NotImplementedError

    def draw_classes(self, theta: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw classes."""
        weights = theta[: self.n_components]
        return rng.choice(self.n_components, size=n, p=weights / weights.sum())

    # -- what is reported ---------------------------------------------------------------------------------------------
    def canonical(self, theta: Array) -> Array:
        """Return theta: it is its own gauge."""
        return theta

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""
        labels = []
        for part, (_, *inner) in zip(self.parts._fields, self.shapes, strict=True):
            each = [f" {name}" for name in self.labels(names)] if inner else [""]
            labels += [f"{part}[{a}]{name}" for a in range(self.n_components) for name in each]
        return labels

    def labels(self, names: Sequence[str]) -> list[str]:
        """Return a label for each number that a class has of the columns: by default the names of these."""
        return list(names)

    def interactions(self, theta: Array) -> Interactions:
        """Return each class as a hidden unit, and how far its means are from those of all classes."""
        parts = self.split(theta)
        return of_classes(parts.means - parts.weights @ parts.means, "difference from the mean")

    def free_directions(self, theta: Array) -> Array:
        """Return the directions of theta that learning may move along, as orthonormal columns."""
        raise ArgumentError(
            f"errors of the parameters of a {type(self).__name__} are not known", "use `gibbsian.uncertainty.bootstrap`"
        )

    def normalised(self, theta: Array) -> Array:
        """Return theta with what must have unit norm brought back to it."""
        return theta

    # -- files --------------------------------------------------------------------------------------------------------
    def to_parts(self) -> Parts:
        """Return what a file keeps of the family: its fields."""
        values = fields_alone(self)
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        return Parts({name: value for name, value in values.items() if name not in arrays}, arrays)

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        return cls(**{**parts.plain, **parts.arrays})


class ExponentialMixtureFamily(MixtureFamily):
    """A mixture of exponential families.

    Where rows are counted from an `origin` (see `Frame`), theta is relative to it as well: `translated` goes there.
    """

    def origin_of(self, theta: Array) -> Array:
        """Return the point from which rows are counted, so that nothing cancels: by default none."""
        return np.empty(0)

    def frame(self, rows: WeightedRows) -> Frame:
        """Return the origin and the least variance that EM takes from the rows."""
        return Frame(np.empty(0), 0.0)

    def translated(self, theta: Array, origin: Array) -> Array:
        """Return theta relative to an origin; to minus an origin is back."""
        return theta

    def points(self, x: Any, mask: Array | None, origin: Array) -> Any:
        """Return rows as points in a space, dense or sparse; missing cells are zero."""
        raise NotImplementedError

    def features(self, points: Any, mask: Array | None) -> Any:
        """Return S(x) of each point: by default the point itself."""
        return points

    def natural(self, theta: Array, by_cell: bool) -> tuple[Array, Array]:
        """Return eta (classes x statistics) and the offsets (classes), log-weights included.

        With `by_cell` the statistics say which cells are present.
        """
        raise NotImplementedError

    def peak(self, eta: Array) -> Array:
        """Return the row of largest density under each row of natural parameters."""
        raise NotImplementedError

    def maximise(self, sums: ClassSums, theta: Array | None, floor: float = 0.0) -> Array:
        """Return the best theta for the summed statistics of the classes; None is that of the first step."""
        raise NotImplementedError

    def counted_by_cell(self, sums: ClassSums) -> ClassSums:
        """Return sums of complete rows as sums of rows with missing cells are: these add."""
        return sums

    def penalty(self, theta: Array) -> float:
        """Return minus the log-prior of the parameters, zero for maximum likelihood."""
        return 0.0

    def warning(self, theta: Array, mass: Array, floor: float) -> str:
        """Say what is wrong with a solution whose classes have these weights; the empty string when nothing is."""
        return empty_class_warning(mass)

    def log_joint(self, theta: Array, x: Any, mask: Array | None = None) -> Array:
        """Return ``log P(x, class)`` of rows and classes, cells under the mask integrated out."""
        origin = self.origin_of(theta)
        features = self.features(self.points(x, mask, origin), mask)
        return log_joint(features, *self.natural(self.translated(theta, origin), mask is not None))


def require_all_cells(mask: Array | None, remedy: str = "") -> None:
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
def class_weights(mass: Array, free: bool = True) -> Array:
    """Return the share of each class, or equal shares."""
    if free:
        kept = np.where(empty_classes(mass), 0.0, mass)
        return kept / kept.sum()
    return np.full(len(mass), 1.0 / len(mass))


def log_shares(weights: Array) -> Array:
    """Return the logarithms, minus infinity for a class of weight zero."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


def empty_classes(mass: Array) -> Array:
    """Return the mask of the classes that have lost all their rows, up to rounding."""
    return mass <= EMPTY * mass.sum()


def empty_class_warning(mass: Array) -> str:
    """Say which class has lost all its rows; the empty string when none has."""
    empty = empty_classes(mass)
    if not empty.any():
        return ""
    number = int(np.flatnonzero(empty)[0])
    return f"class {number} has lost all its rows and keeps its last parameters: ask for fewer classes or more starts"


# -- directions that parameters with constraints may move along -------------------------------------------------------
def tangents(vectors: Sequence[Array]) -> Array:
    """Return, for vectors side by side in one, the directions that change none of them along itself.

    For vectors of ones these are the directions of shares that sum to one; for unit vectors, those on the sphere.
    """
    from scipy.linalg import null_space

    return side_by_side(*(null_space(vector[None, :]) for vector in vectors))


def scale_directions(n: int, how: float | str) -> Array:
    """Return the directions of numbers that are learned each (``"free"``), as one (``"tied"``), or given."""
    return {"free": np.eye(n), "tied": np.full((n, 1), n**-0.5)}.get(str(how), np.empty((n, 0)))


def weight_directions(n: int, free: bool) -> Array:
    """Return the directions of the weights of n classes, none where they are given."""
    return tangents([np.ones(n)]) if free else np.empty((n, 0))


def side_by_side(*parts: Array) -> Array:
    """Return the directions of parts of theta, one after the other."""
    from scipy.linalg import block_diag

    return block_diag(*parts)
