"""Models with one hidden label: ``P(x) = sum_a w_a P(x | a)``.

A mixture of exponential families has ``log P(x, a) = S(x) . theta_a + offset_a``. A kind of component (spherical
Gaussians, von Mises-Fisher, independent columns) says what S is, how theta follows from its parameters, and how these
follow from the summed statistics of each class. Both steps of EM are then closed forms (`ClassSteps`); so the hidden
label needs no inference, and the density no partition function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from gibbsian.errors import ArgumentError, DataError, MissingValuesError
from gibbsian.models.class_shares import (
    ClassSums,
    blocks_of,
    emptied,
    log_joint,
    nearest,
    share,
    sums_of_labels,
)
from gibbsian.models.far_points import far_points
from gibbsian.models.file_parts import Tensor
from gibbsian.models.interactions import Interactions, of_classes
from gibbsian.startup import logsumexp

# How classes are placed before the first step (YK15, "K-means (2)": "randomly partition the datapoints, or use K++").
FAR_APART, RANDOM, PARTITION = PLACINGS = "k-means++", "random", "partition"
# Rows of a cluster among which classes are placed.
PLACING_ROWS = 2**14


class Rows(NamedTuple):
    """Distinct rows that count, with their weights, and where cells are missing."""

    states: Any
    weights: np.ndarray
    missing: np.ndarray | None

    @classmethod
    def of(cls, data: Any) -> Rows:
        """Take the rows of a data set that have a weight."""
        kept = data.weights > 0
        if kept.all():
            return cls(data.states, data.weights, data.missing)
        return cls(data.states[kept], data.weights[kept], None if data.missing is None else data.missing[kept])


class Mixture(ABC):
    """What all mixtures share: parameters side by side in theta, the density from ``log P(x, class)``.

    Models are immutable. Before learning has placed the classes all parameters are NaN (`is_placed`).
    """

    parts: ClassVar[tuple[str, ...]]  # arrays that theta holds, in this order
    shown: ClassVar[tuple[str, ...]]  # what estimators show of a fitted mixture
    registered_name: ClassVar[str] = "mixture"
    n_hidden: ClassVar[int] = 1  # the label

    weights: np.ndarray
    trouble: str

    # What a file holds of it besides its fields, or else than their annotations say; see `file_parts`.
    parts_in_file: ClassVar[dict[str, Any]] = {"weights": Tensor(("classes",), low=0, high=1, total=1)}

    # What the errors of parameters do not know of.

    @property
    def family(self) -> Self:
        """The structure, by which registries find who serves a model: this class is both in one."""
        return self

    @property
    def theta(self) -> np.ndarray:
        """All parameters: weights of the classes first, then those of the components, side by side."""
        return np.concatenate([np.ravel(getattr(self, name)) for name in self.parts])

    def replace(self, theta: np.ndarray) -> Self:
        """Return the same kind of mixture with other parameters."""
        values, start = {}, 0
        for name in self.parts:
            shape = np.shape(getattr(self, name))
            end = start + int(np.prod(shape))
            values[name] = np.reshape(theta[start:end], shape)
            start = end
        return replace(self, **values)  # type: ignore[type-var]

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a file keeps: plain values and arrays."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]
        plain = {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}
        return plain, {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    @classmethod
    def from_parts(cls, structure: dict[str, Any], arrays: dict[str, Any], domain: Any) -> Self:
        """Put the mixture together again from `to_parts`."""
        return cls(**structure, **arrays)

    @property
    def is_placed(self) -> bool:
        """Whether the parameters have values."""
        return not np.isnan(self.weights).any()

    @property
    def n_components(self) -> int:
        """The number of classes."""
        return len(self.weights)

    @property
    def penalised(self) -> np.ndarray:
        """No entry: none of them is an interaction."""
        return np.zeros(self.theta.size, dtype=bool)

    @property
    @abstractmethod
    def n_variables(self) -> int:
        """The number of columns."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number of parameters that are learned."""

    @abstractmethod
    def log_joint(self, states: Any, missing: np.ndarray | None = None) -> np.ndarray:
        """Return ``log P(x, class)`` of each row and class, missing cells integrated out."""

    @abstractmethod
    def em_steps(self, data: Any, hard: bool = False) -> Any:
        """Bind both steps of EM to data."""

    @abstractmethod
    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their classes."""

    def interactions(self: Any) -> Interactions:
        """Return each class as a hidden unit, and how far its means are from those of all classes."""
        return of_classes(self.means - self.weights @ self.means, "difference from the mean")

    def log_weights(self, states: Any, missing: np.ndarray | None = None) -> np.ndarray:
        """Return the log-density of each row: the label is summed out, and log Z is zero."""
        return logsumexp(self.log_joint(states, missing), axis=1)

    def free_directions(self) -> np.ndarray:
        """Return the directions of theta that learning may move along, as orthonormal columns."""
        raise ArgumentError(
            f"errors of the parameters of a {type(self).__name__} are not known", "use `gibbsian.uncertainty.bootstrap`"
        )

    def settled(self) -> Self:
        """Return the mixture with what must have unit norm brought back to it."""
        return self

    def canonical(self) -> Self:
        """Return the same distribution as its parameters are reported."""
        return self

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""
        k, labels = self.n_components, []
        for part in self.parts:
            width = np.size(getattr(self, part)) // k
            each = [f" {names[j]}" if width == len(names) else f" {j}" for j in range(width)] if width > 1 else [""]
            labels += [f"{part}[{a}]{name}" for a in range(k) for name in each]
        return labels

    def energy(self, states: Any) -> np.ndarray:
        """Return minus the log-density of each row."""
        return -self.log_weights(states)

    def require_all_cells(self, missing: np.ndarray | None, remedy: str = "") -> None:
        """Raise `MissingValuesError` naming the first missing cell of rows that must have unit norm."""
        if missing is None or not missing.any():
            return
        row, column = np.argwhere(missing)[0]
        raise MissingValuesError(
            f"row {row}, column {column} is missing (NaN), but unit norm ties all cells of a row together, so that "
            "what the others tell about the classes is no longer a closed form",
            f"fill it or leave the row out{remedy}",
        )

    def at(self, beta: float) -> Self:
        """Refuse: a sum of several distributions has no energy that a temperature would divide."""
        raise ArgumentError("a mixture has no temperature", "leave `temperature` out")

    def draw_classes(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw one class per row."""
        return rng.choice(self.n_components, size=n_samples, p=self.weights / self.weights.sum())


class ExponentialMixture(Mixture):
    """A mixture of exponential families."""

    @abstractmethod
    def points(self, states: Any, missing: np.ndarray | None = None) -> Any:
        """Return rows as points in a space, dense or sparse; missing cells are zero."""

    def features(self, points: Any, missing: np.ndarray | None = None) -> Any:
        """Return S(x) of each point: by default the point itself."""
        return points

    @abstractmethod
    def natural(self, holes: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return theta (classes x statistics) and the offsets (classes), log-weights included."""

    @abstractmethod
    def peak(self, theta: np.ndarray) -> np.ndarray:
        """Return the row of largest density under each row of natural parameters."""

    @abstractmethod
    def maximise(self, expected: ClassSums, first: bool = False) -> Self:
        """Return the best parameters for the summed statistics; the `first` step has no parameters before it."""

    def bound(self, rows: Rows) -> Self:
        """Return the mixture with what it takes once from the data."""
        return self

    def penalty(self) -> float:
        """Return minus the log-prior of the parameters, zero for maximum likelihood."""
        return 0.0

    def what_is_wrong(self, mass: np.ndarray) -> str:
        """Say what is wrong with a solution whose classes have these weights; the empty string when nothing is."""
        return emptied(mass)

    def log_joint(self, states: Any, missing: np.ndarray | None = None) -> np.ndarray:
        """Return ``log P(x, class)`` of each row and class, missing cells integrated out."""
        return log_joint(self.features(self.points(states, missing), missing), *self.natural(missing is not None))

    def em_steps(self, data: Any, hard: bool = False) -> Any:
        """Bind both steps of EM to data."""
        return SummedSteps(self, data, hard) if getattr(data, "on_cluster", False) else ClassSteps(self, data, hard)

    def additive(self, expected: ClassSums) -> ClassSums:
        """Return sums in the form that `class_sums` gives."""
        return expected

    def class_sums(self, data: Any, hard: bool = False) -> tuple[float, ClassSums]:
        """Return the free energy of rows and the sums of each class at these parameters: what adds over chunks."""
        rows = Rows.of(data)
        features = self.features(self.points(rows.states, rows.missing), rows.missing)
        theta, offsets = self.natural(rows.missing is not None)
        return share(blocks_of(features, rows.weights), theta, offsets, hard)


@dataclass(frozen=True)
class ClassSteps:
    """Both steps of EM for a mixture of exponential families, on given data.

    Parameters
    ----------
    model : ExponentialMixture
        The kind of mixture.
    data : Dataset
        Distinct rows with weights.
    hard : bool, default=False
        Give each row to its best class instead of sharing it.
    """

    model: Any
    data: Any
    hard: bool = False
    rows: Rows = field(init=False, repr=False)
    points: Any = field(init=False, repr=False)
    blocks: list[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = Rows.of(self.data)
        model = self.model.bound(rows)
        points = model.points(rows.states, rows.missing)
        blocks = blocks_of(model.features(points, rows.missing), rows.weights)
        for name, value in {"model": model, "rows": rows, "points": points, "blocks": blocks}.items():
            object.__setattr__(self, name, value)

    @property
    def total_weight(self) -> float:
        """The weight of all rows, by which free energies are compared."""
        return float(self.rows.weights.sum())

    def start(self, rng: np.random.Generator, placing: str = FAR_APART) -> Any:
        """Return the mixture of a random partition, or of one around points that are drawn."""
        require_distinct(self.rows.weights, self.model.n_components, self.data.n_rows)
        if placing == PARTITION:
            return self.from_labels(random_partition(len(self.rows.weights), self.model.n_components, rng))
        return self.from_points(starting_points(self.points, self.rows.weights, self.model.n_components, rng, placing))

    def adopted(self, model: Any) -> Any:
        """Return a placed mixture with what it takes from the data."""
        return model.bound(self.rows)

    def from_means(self, means: np.ndarray) -> Any:
        """Return the mixture of the partition that gives each row to its nearest mean."""
        return self.from_points(as_dense(self.model.points(means)))

    def from_points(self, points: np.ndarray) -> Any:
        """Return the mixture of the partition that gives each row to its nearest point."""
        return self.from_labels(nearest(self.points, points))

    def from_labels(self, labels: np.ndarray) -> Any:
        """Return the mixture of a partition: class numbers of the distinct rows."""
        return self.model.maximise(sums_of_labels(self.blocks, labels, self.model.n_components), first=True)

    def expect(self, model: Any, before: Any = None) -> tuple[float, ClassSums]:
        """Return the free energy, minimised over the shares, and the sums of each class."""
        theta, offsets = model.natural(self.rows.missing is not None)
        free_energy, sums = share(self.blocks, theta, offsets, self.hard)
        return free_energy + model.penalty(), sums

    def maximise(self, expected: ClassSums, model: Any) -> Any:
        """Return the mixture that minimises the free energy at fixed shares."""
        return model.maximise(expected)

    def additive(self, expected: ClassSums) -> ClassSums:
        """Return the sums in the form that adds to those of other chunks."""
        return self.model.additive(expected)

    def judged(self, model: Any, expected: ClassSums) -> Any:
        """Return the mixture with words about what is wrong with it."""
        return replace(model, trouble=model.what_is_wrong(expected.mass))


@dataclass(frozen=True)
class SummedSteps:
    """Both steps of EM where each partition of the data gives its sums, at the parameters of the step.

    Classes are placed among all rows where these are few, else among some that are drawn.
    """

    model: Any
    data: Any
    hard: bool = False

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return self.data.total_weight

    def start(self, rng: np.random.Generator, placing: str = FAR_APART) -> Any:
        """Return the mixture of a partition of some rows."""
        return self._among_some(rng).start(rng, placing)

    def from_means(self, means: np.ndarray) -> Any:
        """Return the mixture of the partition that gives each of some rows to its nearest mean."""
        return self._among_some(np.random.default_rng(0)).from_means(means)

    def _among_some(self, rng: np.random.Generator) -> Any:
        return self.model.em_steps(self.data.at_most(PLACING_ROWS, rng), self.hard)

    def adopted(self, model: Any) -> Any:
        """Return a placed mixture as it is."""
        return model

    def expect(self, model: Any, before: Any = None) -> tuple[float, ClassSums]:
        """Return the free energy, minimised over the shares, and the sums of each class."""
        free_energy, sums = self.data.reduce(partial(_sums_of, model, self.hard))
        return free_energy + model.penalty(), sums

    def maximise(self, expected: ClassSums, model: Any) -> Any:
        """Return the mixture that minimises the free energy at fixed shares."""
        return model.maximise(expected)

    def additive(self, expected: ClassSums) -> ClassSums:
        """Return the sums, which add to those of other chunks."""
        return expected

    def judged(self, model: Any, expected: ClassSums) -> Any:
        """Return the mixture with words about what is wrong with it."""
        return replace(model, trouble=model.what_is_wrong(expected.mass))


def _sums_of(model: Any, hard: bool, data: Any) -> tuple[float, ClassSums]:
    return model.class_sums(data, hard)


def require_distinct(weights: np.ndarray, n_components: int, n_rows: int) -> None:
    """Raise `DataError` unless there are as many distinct rows as classes."""
    if n_components > len(weights):
        raise DataError(
            f"is more than the {len(weights)} distinct rows (n_samples={n_rows})",
            "ask for fewer classes",
            argument="n_components",
            value=n_components,
        )


def random_partition(n_rows: int, n_components: int, rng: np.random.Generator) -> np.ndarray:
    """Give each row a class at random, such that the classes have equally many and none is empty."""
    return rng.permutation(np.arange(n_rows) % n_components)


def mean_of_columns(rows: Rows) -> np.ndarray:
    """Return the mean of the present cells of each column, zero where there is none."""
    if len(rows.weights) == 1:  # a mean of equal rows may round away from them
        return rows.states[0] if rows.missing is None else np.where(rows.missing[0], 0.0, rows.states[0])
    if rows.missing is None:
        return rows.weights @ rows.states / rows.weights.sum()
    cells = rows.weights[:, None] * ~rows.missing
    totals = cells.sum(axis=0)
    return (cells * np.where(rows.missing, 0.0, rows.states)).sum(axis=0) / np.where(totals > 0, totals, 1.0)


def starting_points(
    points: Any, weights: np.ndarray, n_components: int, rng: np.random.Generator, placing: str = FAR_APART
) -> np.ndarray:
    """Draw points far apart by k-means++, or any by their weights, as a dense array.

    Between unit vectors ``|x - m|^2 = 2 (1 - x.m)``, so that on the sphere this is k-means++ on the sphere.
    """
    if placing == RANDOM:
        return as_dense(
            points[np.sort(rng.choice(len(weights), n_components, replace=False, p=weights / weights.sum()))]
        )
    rows = sparse.csr_matrix(points) if sparse.issparse(points) else points
    seed = int(rng.integers(2**31 - 1))
    scaled = weights / weights.max()  # so that sums of squares stay finite, whatever the unit of the weights
    return as_dense(points[np.sort(far_points(rows, scaled, n_components, seed))])


def as_dense(points: Any) -> np.ndarray:
    """Return points as a dense array of their own."""
    return points.toarray() if sparse.issparse(points) else np.array(points)
