"""Mixtures bound to rows: the steps of EM (YK15, "BM and EM") as `gibbsian.learning.em` takes them.

Both lower the free energy ``F(Q, theta) = -sum log P(x; theta) + KL(Q || P(class | x; theta))``: the E-step over the
shares Q, after which F is minus the log-likelihood, the M-step over theta. Hard assignments are the same with Q
restricted to one class per row. `BOUND` has who binds a family; rows that are not in memory stay where they are, and
only the sums of their classes come here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from scipy import sparse

from gibbsian.arrays import Tensor
from gibbsian.backends.classes import ClassSums, blocks_of, e_step, nearest, over_blocks, sums_of_labels, total
from gibbsian.backends.device import twin
from gibbsian.backends.numba.kmeans_plusplus import kmeans_plusplus
from gibbsian.backends.numba.mixtures import hard_assignment, soft_assignment, stay, to_nearest
from gibbsian.data.rows import Rows
from gibbsian.errors import DataError
from gibbsian.learning.base import BOUND
from gibbsian.models.base import Family, Model
from gibbsian.models.mixtures.base import (
    Frame,
    WeightedSample,
    class_warning,
    class_weights,
    empty_classes,
    log_class_weights,
)
from gibbsian.models.mixtures.categorical import one_hot
from gibbsian.models.mixtures.of_models import MixtureOfFamily, mixture_of
from gibbsian.resources import PLAIN_PRODUCT, row_blocks
from gibbsian.settings import choice

# How classes are placed before the first step (YK15, "K-means (2)": "randomly partition the datapoints, or use K++").
FAR_APART, RANDOM, PARTITION = PLACINGS = "k-means++", "random", "partition"
PLACING = (
    "How classes that have no parameters begin: at rows far apart, at any rows, or as those of a random partition "
    "(YK15)."
)
# Rows that are not in memory among which classes are placed.
PLACING_ROWS = 2**14
ROUNDED_UP = 1.0 + 1e-9
# The partition a mixture of models starts from is softened by this share, so that no model sees too few rows.
SOFTENED = 0.2


def placing_setting() -> Any:
    """Declare where classes begin."""
    return choice(FAR_APART, PLACING, *PLACINGS)


class Shared(NamedTuple):
    """What an E-step leaves: the free energy, the sums of each class, and what the next step goes on from."""

    free_energy: float
    sums: ClassSums
    memory: Any = None


def bound(
    family: Family,
    data: Rows,
    hard: bool,
    rng: np.random.Generator | None = None,
    components: ComponentFits | None = None,
) -> Any:
    """Bind a family to rows; where they are not in memory classes begin among some, which are drawn.

    Mixtures of models of any family need to know how these are fitted.
    """
    return BOUND.of(family).bind(family, data, hard, rng or np.random.default_rng(0), components)


def class_sums(family: Any, frame: Frame, hard: bool, theta: np.ndarray, data: Any) -> tuple[float, ClassSums]:
    """Return the free energy of rows and the sums of each class at these parameters: what adds over parts of rows."""
    shared = BOUND.of(family).of_rows(family, data, hard, frame).shared(Model(family, theta), None)
    return shared.free_energy, family.counted_by_cell(shared.sums)


@BOUND.register("mixture")
@dataclass(frozen=True, eq=False)
class BoundMixture:
    """A mixture of exponential families bound to rows; inside, parameters are relative to the frame's origin.

    Parameters
    ----------
    family : ExponentialMixtureFamily
        The mixture.
    rows : WeightedSample
        The rows, or where they are not in memory those among which classes begin.
    frame : Frame
        The origin and the least variance.
    hard : bool
        Give each row to its best class instead of sharing it.
    n_rows : int
        Number of rows before equal ones were put together.
    away : Rows, optional
        The rows where they are not in memory.
    """

    family: Any
    rows: WeightedSample
    frame: Frame
    hard: bool
    n_rows: int
    away: Any = None
    # Whether the sums of its rows, which add, are all that an M-step asks for.
    has_sums: ClassVar[bool] = True

    @classmethod
    def bind(cls, family: Any, data: Any, hard: bool, rng: np.random.Generator, components: Any = None) -> Self:
        """Bind all rows."""
        if not (data.on_cluster or data.on_disk):
            return cls.of_rows(family, data, hard)
        return replace(cls.of_rows(family, data.at_most(PLACING_ROWS, rng), hard), away=data)

    @classmethod
    def of_rows(cls, family: Any, data: Any, hard: bool, frame: Frame | None = None) -> Self:
        """Bind rows in memory, in a frame of their own or a given one."""
        rows = WeightedSample.of(data)
        return cls(family, rows, frame or family.frame(rows), hard, data.n_rows)

    @cached_property
    def points(self) -> Any:
        """The rows as points, from the origin."""
        return self.family.points(self.rows.x, self.rows.mask, self.frame.origin)

    @cached_property
    def blocks(self) -> Any:
        """Their statistics and weights."""
        return blocks_of(self.family.features(self.points, self.rows.mask), self.rows.weights)

    @property
    def total_weight(self) -> float:
        """The weight of all rows, by which free energies are compared."""
        return float(self.rows.weights.sum()) if self.away is None else self.away.total_weight

    # -- where classes begin ------------------------------------------------------------------------------------------
    def start(self, rng: np.random.Generator, placing: str = FAR_APART) -> Model[Any]:
        """Return the mixture of a random partition, or of one around points that are drawn."""
        k, weights = self.family.n_components, self.rows.weights
        require_distinct(weights, k, self.n_rows)
        if placing == PARTITION:
            return self.from_labels(random_partition(len(weights), k, rng))
        return self.from_points(starting_points(self.points, weights, k, rng, placing))

    def from_means(self, means: np.ndarray) -> Model[Any]:
        """Return the mixture of the partition that gives each row to its nearest mean."""
        return self.from_points(as_dense(self.family.points(means, None, self.frame.origin)))

    def from_points(self, points: np.ndarray) -> Model[Any]:
        """Return the mixture of the partition that gives each row to its nearest point."""
        return self.from_labels(nearest(self.points, points))

    def from_labels(self, labels: np.ndarray) -> Model[Any]:
        """Return the mixture of a partition: class numbers of the distinct rows."""
        sums = sums_of_labels(self.blocks, labels, self.family.n_components)
        return Model(self.family, self.family.maximise(sums, None, self.frame.floor))

    def adopted(self, model: Model[Any]) -> Model[Any]:
        """Return a fitted model relative to the frame."""
        return model.replace(model.family.translated(model.theta, self.frame.origin))

    def reported(self, model: Model[Any]) -> Model[Any]:
        """Return a model of the frame as users know it."""
        return model.replace(model.family.translated(model.theta, -self.frame.origin))

    # -- the two steps ------------------------------------------------------------------------------------------------
    def e_step(self, model: Model[Any], memory: Any = None) -> Shared:
        """Share the rows among the classes: the free energy, minimised over the shares, and the sums of each class."""
        if self.away is None:
            found = self.shared(model, memory)
        else:
            found = Shared(*self.away.reduce(partial(class_sums, model.family, self.frame, self.hard, model.theta)))
        return found._replace(free_energy=found.free_energy + model.family.penalty(model.theta))

    def shared(self, model: Model[Any], memory: Any) -> Shared:
        """Share the rows in memory."""
        eta, offsets = model.family.natural(model.theta, self.rows.mask is not None)
        return Shared(*e_step(self.blocks, eta, offsets, self.hard))

    def m_step(self, shared: Shared, model: Model[Any]) -> Model[Any]:
        """Return the mixture that minimises the free energy at fixed shares."""
        return model.replace(model.family.maximise(shared.sums, model.theta, self.frame.floor))

    def warning(self, model: Model[Any], mass: np.ndarray) -> str:
        """Say what is wrong with a solution; the empty string when nothing is."""
        return model.family.warning(model.theta, mass, self.frame.floor)


# -- k-means ----------------------------------------------------------------------------------------------------------
class Nearest(NamedTuple):
    """The class of each row, how far away all other means are at least, and the means looked at."""

    labels: np.ndarray
    others: np.ndarray
    means: np.ndarray


@BOUND.register("k-means")
@dataclass(frozen=True, eq=False)
class BoundKMeans(BoundMixture):
    """The same in the limit of hard assignments, by kernels that add up differences (YK15 eq. 1).

    ``E(V, m) = sum_ia V_ia |x_i - m_a|^2``, over present cells, falls in both halves of a step. Distances and energy
    come from differences, in which no digits cancel; which mean may be nearer comes from a matrix product, and bounds
    spare most rows it. A class that loses all its rows is given the row farthest from its mean, which lowers the energy
    too.
    """

    @cached_property
    def present(self) -> np.ndarray | None:
        """Which cells of the rows are."""
        return None if self.rows.mask is None else ~self.rows.mask

    @cached_property
    def points(self) -> np.ndarray:
        """The rows from the origin: products of large numbers would lose digits."""
        x, origin = np.ascontiguousarray(self.rows.x), self.frame.origin
        points = np.empty(x.shape)
        over_blocks(lambda rows, own: np.subtract(rows, origin, out=own), x, points)
        return points if self.present is None else np.where(self.present, points, 0.0)

    @cached_property
    def there(self) -> Any:
        """The points on a device, None where that is the CPU."""
        twins = twin("mixtures")
        if twins is None:
            return None
        return twins.Partition(self.points, self.rows.weights, self.present, self.family.n_components)

    def from_points(self, points: np.ndarray) -> Model[Any]:
        """Return the means at these points."""
        return Model(self.family, self.family.equal(points))

    def from_labels(self, labels: np.ndarray) -> Model[Any]:
        """Return the means of a partition."""
        middle = np.zeros((self.family.n_components, self.points.shape[1]))
        return Model(self.family, self.family.maximise(self._sums_of(labels, middle), None))

    def shared(self, model: Model[Any], memory: Nearest | None) -> Shared:
        """Return the energy and the class of each row; one that had a class moves only to a mean that is nearer."""
        means = model.family.split(model.theta).means
        if self.there is not None:
            energy, labels = self.there.settle(means, None if memory is None else memory.labels)
            others, sums = np.empty(0), None
        elif self.present is not None:
            labels = nearest(self.points, means, self.present)
            old_labels = labels if memory is None else memory.labels
            new, old = self._distances(means, labels), self._distances(means, old_labels)
            labels, others, sums = np.where(old <= new, old_labels, labels), np.empty(0), None
            energy = float(self.rows.weights @ np.minimum(old, new))
        else:
            n = len(self.points)
            labels = np.zeros(n, np.int64) if memory is None else memory.labels.copy()
            others = np.full(n, -1.0) if memory is None else memory.others.copy()
            drift = 0.0 if memory is None else ROUNDED_UP * float(np.linalg.norm(means - memory.means, axis=1).max())
            energy, sums = self._settled(means, drift, labels, others)
        return Shared(energy, sums or self._sums_of(labels, means), Nearest(labels, others, means))

    def m_step(self, shared: Shared, model: Model[Any]) -> Model[Any]:
        """Move each mean to the middle of its rows."""
        if shared.memory is not None:
            labels, _, means = shared.memory
            if not np.bincount(labels, minlength=len(means)).all():
                shared = shared._replace(sums=self._sums_of(self._refilled(means, labels), means))
        return super().m_step(shared, model)

    def _sums_of(self, labels: np.ndarray, means: np.ndarray) -> ClassSums:
        """Return the sums of the classes of a partition, whose rows look for no other mean."""
        if self.there is None and self.present is None:
            return self._settled(means, 0.0, labels, np.full(len(labels), np.inf))[1]
        mass = np.asarray(np.bincount(labels, self.rows.weights, len(means)), np.float64)
        if self.there is not None:
            counts, moves = self.there.class_shifts(means, labels)
            sums = moves + counts * means
        else:
            shares = (labels == np.arange(len(means))[:, None]) * self.rows.weights
            counts, sums = shares @ self.present, shares @ self.points
        return ClassSums(mass, sums if self.present is None else np.column_stack([sums, counts]))

    def _settled(
        self, means: np.ndarray, drift: float, labels: np.ndarray, others: np.ndarray
    ) -> tuple[float, ClassSums]:
        """Return the energy and the sums of the classes after rows moved to nearer means, in labels as in bounds."""
        parts = over_blocks(partial(_settle_block, means, drift), self.points, self.rows.weights, labels, others)
        mass, sums, squares = (total(part) for part in zip(*parts, strict=True))
        return float(squares.sum()), ClassSums(mass, sums)

    def _distances(self, means: np.ndarray, labels: np.ndarray) -> np.ndarray:
        differences = self.points - means[labels]
        if self.present is not None:
            differences *= self.present
        return np.einsum("ij,ij->i", differences, differences)

    def _refilled(self, means: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Give every class without rows the row farthest from its mean, of classes that keep another."""
        labels = labels.copy()
        counts = np.bincount(labels, minlength=len(means))
        farthest = iter(np.argsort(-self._distances(means, labels), kind="stable"))
        for empty in np.flatnonzero(counts == 0):
            row = next(i for i in farthest if counts[labels[i]] > 1)
            counts[labels[row]] -= 1
            labels[row] = empty
            counts[empty] = 1
        return labels


def _settle_block(
    means: np.ndarray, drift: float, rows: np.ndarray, weights: np.ndarray, labels: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Let a block of rows move to nearer means: a few at a time, whose products are compared while in the cache."""
    columns, offsets = np.ascontiguousarray(means.T), -np.einsum("ij,ij->i", means, means) / 2.0
    sums = np.zeros(len(means)), np.zeros(means.shape), np.zeros(len(means))
    parts = rows, weights, labels, others, means, *sums
    unsure = stay(drift, *parts, np.empty(len(rows), np.int64))
    for few in row_blocks(len(unsure), means.size, PLAIN_PRODUCT):
        some = rows[few] if len(unsure) == len(rows) else rows[unsure[few]]
        to_nearest(some @ columns, offsets, unsure[few], *parts)
    return sums


# -- models of any family ---------------------------------------------------------------------------------------------
class ComponentFits(Protocol):
    """How the models of classes are fitted to rows, and their rows scored."""

    def table(self, states: np.ndarray, missing: np.ndarray | None) -> Any:
        """Return rows as both others take them."""

    def fit(self, a: int, rows: Rows, weights: np.ndarray | None = None) -> tuple[Any, float]:
        """Return the model of a class, fitted to a table with weights or to `Rows` that are not here, and log Z."""

    def log_densities(self, model: Model[Family], log_partition: float, table: Tensor) -> np.ndarray:
        """Return the log-density of each row."""


@BOUND.register("machine-mixture")
@dataclass(frozen=True, eq=False)
class BoundModels:
    """A mixture of models bound to rows: the M-step fits one model to each class.

    Rows that are not in memory are shared out where they are, and each model is learned there.
    """

    family: MixtureOfFamily
    data: Any
    hard: bool
    components: ComponentFits
    away: Any = None
    frame: ClassVar[Frame] = Frame(np.empty(0), 0.0)
    has_sums: ClassVar[bool] = False

    @classmethod
    def bind(cls, family: Any, data: Any, hard: bool, rng: np.random.Generator, components: Any) -> Self:
        """Bind all rows."""
        if not (data.on_cluster or data.on_disk):
            return cls(family, data, hard, components)
        return cls(family, data.at_most(PLACING_ROWS, rng), hard, components, data)

    @cached_property
    def rows(self) -> WeightedSample:
        """The rows that count."""
        return WeightedSample.of(self.data)

    @cached_property
    def table(self) -> Any:
        """The same as models are fitted to them."""
        return self.components.table(self.data.states[self.data.weights > 0], self.rows.mask)

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(self.rows.weights.sum()) if self.away is None else self.away.total_weight

    def start(self, rng: np.random.Generator, placing: str = FAR_APART) -> Model[Any]:
        """Return the mixture of a random partition, or of one around rows that are drawn, softened."""
        k, weights = self.family.n_components, self.rows.weights
        require_distinct(weights, k, self.data.n_rows)
        if placing == PARTITION:
            labels = random_partition(len(weights), k, rng)
        else:
            points = self._points()
            labels = nearest(points, starting_points(points, weights, k, rng, placing))
        shares = ((1 - SOFTENED) * np.eye(k)[labels] + SOFTENED / k).T * weights
        return replace(self, away=None).m_step(Shared(0.0, _mass_of(shares), shares), Model.zeros(self.family))

    def _points(self) -> Any:
        """Rows as points: numbers from their mean, labels one-hot."""
        x, _, mask = self.rows
        if not self.family.columns.real:
            return one_hot(self.family.columns, x, mask)
        points = x - self.rows.mean()
        return points if mask is None else np.where(mask, 0.0, points)

    def adopted(self, model: Model[Family]) -> Model[Any]:
        """Return a fitted mixture as it is."""
        return model

    reported = adopted

    def e_step(self, model: Model[Any], memory: Any = None) -> Shared:
        """Return the free energy, the weights of the classes, and in memory the shares."""
        if self.away is not None:
            return Shared(*self.away.reduce(partial(_energy_and_mass, model, self.hard, self.components)))
        parts, models = model.family.split(model.theta), model.family.models_at(model.theta)
        scores = [
            self.components.log_densities(one, float(log_z), self.table)
            for one, log_z in zip(models, parts.log_partitions, strict=True)
        ]
        shares = np.ascontiguousarray((np.column_stack(scores) + log_class_weights(parts.weights)).T, dtype=np.float64)
        energy = (hard_assignment if self.hard else soft_assignment)(shares, self.rows.weights)
        return Shared(float(energy), _mass_of(shares), shares)

    def m_step(self, shared: Shared, model: Model[Any]) -> Model[Any]:
        """Fit one model to each class; one that has lost all its rows keeps its own."""
        mass, family, theta = shared.sums.mass, model.family, model.theta
        logs = family.split(theta).log_partitions.tolist()
        old = list(zip(family.models_at(theta), logs, strict=True)) if family.models else []
        empty = empty_classes(mass) & bool(old)
        found = [old[a] if empty[a] else self._fitted(model, a, shared) for a in range(len(mass))]
        models, log_partitions = zip(*found, strict=True)
        return mixture_of(family, models, class_weights(mass), np.array(log_partitions))

    def _fitted(self, model: Model[Any], a: int, shared: Shared) -> tuple[Any, float]:
        """Return the model of a class, fitted to its rows, and log Z."""
        if self.away is None:
            return self.components.fit(a, self.table, shared.memory[a])
        return self.components.fit(a, self.away.map(partial(_of_class, model, self.hard, self.components, a)))

    def warning(self, model: Model[Family], mass: np.ndarray) -> str:
        """Say which class has lost all its rows."""
        return class_warning(mass)


def _mass_of(shares: np.ndarray) -> ClassSums:
    return ClassSums(shares.sum(axis=1), np.zeros((len(shares), 0)))


def _energy_and_mass(model: Any, hard: bool, components: Any, data: Any) -> tuple[float, ClassSums]:
    shared = BoundModels(model.family, data, hard, components).e_step(model)
    return shared.free_energy, shared.sums


def _of_class(model: Any, hard: bool, components: Any, a: int, data: Any) -> Any:
    """Return the rows with the weights that they have in a class, without the names that models do not see."""
    shares = BoundModels(model.family, data, hard, components).e_step(model).memory[a]
    names, numbers = tuple(f"x{j}" for j in range(data.n_variables)), np.arange(data.n_states)
    return replace(data, weights=shares, row_weights=shares, row_of=numbers, names=names)


# -- where classes begin ----------------------------------------------------------------------------------------------
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


def starting_points(
    points: Tensor, weights: np.ndarray, n_components: int, rng: np.random.Generator, placing: str = FAR_APART
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
    return as_dense(points[np.sort(kmeans_plusplus(rows, scaled, n_components, seed))])


def as_dense(points: Any) -> np.ndarray:
    """Return points as a dense array of their own."""
    return points.toarray() if sparse.issparse(points) else np.array(points)
