"""The steps of EM for mixtures (YK15, "BM and EM").

Both lower the free energy ``F(Q, theta) = -sum log P(x; theta) + KL(Q || P(class | x; theta))``: the E-step over the
shares Q, after which F is minus the log-likelihood, the M-step over theta. Hard assignments are the same with Q
restricted to one class per row. Rows that are not in memory stay where they are, and only the sums of their classes
come here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from functools import cached_property, partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy import sparse

from gibbsian.arrays import Floats, Integers, Mask, States, Tensor
from gibbsian.backends.classes import Block, ClassSums, blocks_of, e_step, nearest, over_blocks, sums_of_labels, total
from gibbsian.backends.device import twin
from gibbsian.backends.numba.kmeans_plusplus import kmeans_plusplus
from gibbsian.backends.numba.mixtures import hard_assignment, in_single, soft_assignment, stay, to_nearest
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.data.sums import added
from gibbsian.errors import ArgumentError, DataError
from gibbsian.learning.em import EM_STEPS, FAR_APART, PARTITION, RANDOM, ComponentFits, EMState, EMSteps, Expected
from gibbsian.learning.optimizers import Failed, StepInfo
from gibbsian.learning.optimizers.anderson import LastRounds
from gibbsian.models.base import Family, Model
from gibbsian.models.mixtures.base import (
    ExponentialMixtureFamily,
    Frame,
    MixtureFamily,
    Points,
    WeightedSample,
    class_warning,
    class_weights,
    empty_classes,
    log_class_weights,
)
from gibbsian.models.mixtures.categorical import one_hot
from gibbsian.models.mixtures.gaussian import KMeansFamily
from gibbsian.models.mixtures.of_models import MixtureOfFamily, mixture_of
from gibbsian.resources import PLAIN_PRODUCT, row_blocks
from gibbsian.rng import Key

# Rises of the free energy below this, per unit of free energy and row, are rounding, ...
ROUNDING = 1e-10
# ... and so are falls below this share of it.
LAST_DIGITS = 1e-14
# Rows that are not in memory among which classes are placed.
PLACING_ROWS = 2**14
ROUNDED_UP = 1.0 + 1e-9
# The partition a mixture of models starts from is softened by this share, so that no model sees too few rows.
SOFTENED = 0.2

F = TypeVar("F", bound=MixtureFamily[NamedTuple])
E = TypeVar("E", bound=ExponentialMixtureFamily[NamedTuple])
P = TypeVar("P")
M = TypeVar("M")


class MixtureSteps(EMSteps[ClassSums, P, M], Generic[F, P, M]):
    """Both steps of a mixture.

    Parameters
    ----------
    family : MixtureFamily
        The mixture.
    data : Rows
        The rows.
    hard : bool, default=False
        Give each row to its best class instead of sharing it.
    placing : {"k-means++", "random", "partition"}, default="k-means++"
        How classes are placed that have no parameters yet.
    """

    # The posterior before the first E-step.
    nothing: P

    def __init__(self, family: F, data: Rows, hard: bool = False, placing: str = FAR_APART):
        self.family, self.hard, self.placing, self.all_rows = family, hard, placing, data
        self.in_memory = isinstance(data, Dataset)
        # the rows, or where they are not in memory those among which classes are placed
        self.data = data if isinstance(data, Dataset) else data.at_most(PLACING_ROWS, np.random.default_rng(0))

    @cached_property
    def rows(self) -> WeightedSample:
        """The rows in memory that count."""
        return WeightedSample.of(self.data)

    @cached_property
    def total_weight(self) -> float:
        """The weight of all rows, by which free energies are compared."""
        return float(self.rows.weights.sum()) if self.in_memory else self.all_rows.total_weight

    @abstractmethod
    def placed(self, rng: np.random.Generator) -> tuple[Floats, M]:
        """Return the mixture of a random partition, or of one around points that are drawn."""

    @abstractmethod
    def adopted(self, theta: Floats) -> tuple[Floats, M]:
        """Return a fitted mixture as both steps take it."""

    @abstractmethod
    def warning(self, theta: Floats, mass: Floats, memory: M) -> str:
        """Say what is wrong with a solution; the empty string when nothing is."""

    def start(self, key: Key, theta: Floats) -> EMState[ClassSums, P, M]:
        """Return the state before the first E-step; classes without weights are placed."""
        begun, memory = self.adopted(theta) if theta.any() else self.placed(key.generator())
        expected = Expected(np.nan, ClassSums(np.zeros(0), np.zeros((0, 0))), self.nothing)
        return EMState(begun, memory, expected, 0, LastRounds.none(np.zeros(0)))

    def judge(
        self, before: EMState[ClassSums, P, M], after: EMState[ClassSums, P, M]
    ) -> tuple[EMState[ClassSums, P, M], StepInfo]:
        """Return the state after the step, or the one before where the free energy rose."""
        value, last, weight = after.expected.value, before.expected.value, self.total_weight
        warning = self.warning(after.theta, after.expected.statistics.mass, after.memory)
        info = StepInfo(value, step_size=1.0, evaluations=after.n_e_steps, warning=warning)
        if before.carried:
            return after, info._replace(gradient_norm=float(np.abs(after.theta - before.theta).max()))
        if not np.isfinite(value):
            raise DataError(
                f"the free energy is {value} at step {before.n_e_steps}",
                "scale the columns, or give a variance or kappa that is less extreme",
            )
        if not before.n_e_steps:
            return after, info._replace(noise=LAST_DIGITS * abs(value) / weight)
        if value > last + ROUNDING * (abs(last) + weight):
            hint = "the free energy rose, so a component's own fit is not a maximum"
            outcome = Failed(f"stopped at step {before.n_e_steps}", hint)
            return before, info._replace(value=last, evaluations=before.n_e_steps, outcome=outcome)
        lowest = min(value, last)
        fall, noise = (last - lowest) / weight, LAST_DIGITS * abs(lowest) / weight
        after = after._replace(expected=after.expected._replace(value=lowest))
        return after, info._replace(value=lowest, gradient_norm=fall, noise=noise)


# -- mixtures of exponential families ---------------------------------------------------------------------------------
@EM_STEPS.register("mixture")
class ExponentialSteps(MixtureSteps[E, P, Frame]):
    """Both steps of a mixture of exponential families, in closed form.

    Parameters are relative to the origin of a frame, which is that of the first rows where rows come in chunks.
    """

    nothing: P = ()  # type: ignore[assignment]  # nothing is kept between E-steps

    def __init__(
        self,
        family: E,
        data: Rows,
        hard: bool = False,
        placing: str = FAR_APART,
        components: ComponentFits | None = None,
        frame: Frame | None = None,
    ):
        super().__init__(family, data, hard, placing)
        self.given_frame = frame

    @cached_property
    def frame(self) -> Frame:
        """The origin and the minimum variance, given or taken from the rows."""
        return self.given_frame or self.family.frame(self.rows)

    @cached_property
    def points(self) -> Points:
        """The rows as points, from the origin."""
        return self.family.points(self.rows.x, self.rows.mask, self.frame.origin)

    @cached_property
    def blocks(self) -> list[Block]:
        """Their statistics and weights."""
        return blocks_of(self.family.features(self.points, self.rows.mask), self.rows.weights)

    # -- where classes begin ------------------------------------------------------------------------------------------
    def placed(self, rng: np.random.Generator) -> tuple[Floats, Frame]:
        """Return the mixture of a random partition, or of one around points that are drawn."""
        k, weights = self.family.n_components, self.rows.weights
        require_distinct(weights, k, self.data.n_rows)
        if self.placing == PARTITION:
            return self.from_labels(random_partition(len(weights), k, rng)), self.frame
        return self.from_points(starting_points(self.points, weights, k, rng, self.placing)), self.frame

    def adopted(self, theta: Floats) -> tuple[Floats, Frame]:
        """Return a fitted mixture relative to the frame."""
        return self.family.translated(theta, self.frame.origin), self.frame

    def from_means(self, means: Floats) -> Floats:
        """Return the mixture of the partition that gives each row to its nearest mean."""
        return self.from_points(as_dense(self.family.points(means, None, self.frame.origin)))

    def from_points(self, points: Floats) -> Floats:
        """Return the mixture of the partition that gives each row to its nearest point."""
        return self.from_labels(nearest(self.points, points))

    def from_labels(self, labels: Integers) -> Floats:
        """Return the mixture of a partition: class numbers of the distinct rows."""
        sums = sums_of_labels(self.blocks, labels, self.family.n_components)
        return self.family.maximise(sums, None, self.frame.floor)

    def model(self, theta: Floats, memory: Frame | None = None) -> Model[E]:
        """Return the mixture in the coordinates of the rows; without a frame from those of this one."""
        return Model(self.family, self.family.translated(theta, -(memory or self.frame).origin))

    # -- the two steps ------------------------------------------------------------------------------------------------
    def e_step(
        self, theta: Floats, before: Expected[ClassSums, P] | None = None, memory: Frame | None = None
    ) -> Expected[ClassSums, P]:
        """Share the rows among the classes: the free energy, minimised over the shares, and the sums of each class."""
        with np.errstate(all="ignore"):  # what overflows shows in the free energy
            if self.in_memory:
                energy, sums, posterior = self.shared(theta, self.nothing if before is None else before.posterior)
            else:
                (energy, sums), posterior = self._summed(theta, self.frame), self.nothing
            return Expected(energy + self.family.penalty(theta), sums, posterior)

    def shared(self, theta: Floats, posterior: P) -> Expected[ClassSums, P]:
        """Share the rows in memory, the penalty left out."""
        eta, offsets = self.family.natural(theta, self.rows.mask is not None)
        return Expected(*e_step(self.blocks, eta, offsets, self.hard), self.nothing)

    def m_step(
        self, theta: Floats, expected: Expected[ClassSums, P], memory: Frame | None = None
    ) -> tuple[Floats, Frame]:
        """Return the mixture that minimises the free energy at fixed shares."""
        frame = memory or self.frame
        return self.family.maximise(expected.statistics, theta, frame.floor), frame

    def _summed(self, theta: Floats, frame: Frame) -> tuple[float, ClassSums]:
        return self.all_rows.reduce(partial(class_sums, self.family, frame, self.hard, theta))

    def joined(self, state: EMState[ClassSums, P, Frame]) -> Expected[ClassSums, P]:
        """Return the sums of the rows of a state and of these, each shared out by the parameters of its time."""
        energy, sums = self._summed(state.theta, state.memory)
        if state.n_e_steps:
            sums = added(self.family.counted_by_cell(state.expected.statistics), sums)
        return Expected(energy, sums, self.nothing)

    def handover(self, state: EMState[ClassSums, P, Frame]) -> EMState[ClassSums, P, Frame]:
        """Return a state without the classes of its rows."""
        return state._replace(expected=state.expected._replace(posterior=self.nothing))

    def warning(self, theta: Floats, mass: Floats, memory: Frame) -> str:
        """Say what is wrong with a solution; the empty string when nothing is."""
        return self.family.warning(theta, mass, memory.floor)


def class_sums(family: E, frame: Frame, hard: bool, theta: Floats, data: Rows) -> tuple[float, ClassSums]:
    """Return the free energy of rows and the sums of each class in a given frame: what adds over parts of rows."""
    steps: ExponentialSteps[E, tuple[()]] = EM_STEPS.of(family)(family, data, hard, frame=frame)
    energy, sums, _ = steps.shared(theta, steps.nothing)
    return energy, family.counted_by_cell(sums)


# -- k-means ----------------------------------------------------------------------------------------------------------
class Nearest(NamedTuple):
    """The class of each row, the least distance of all other means, and the means looked at."""

    labels: Integers
    others: Floats
    means: Floats


KMeansExpected = Expected[ClassSums, Nearest]


@EM_STEPS.register("k-means")
class KMeansSteps(ExponentialSteps[KMeansFamily, Nearest]):
    """The same in the limit of hard assignments, by kernels that add up differences (YK15 eq. 1).

    ``E(V, m) = sum_ia V_ia |x_i - m_a|^2``, over present cells, falls in both halves of a step. Distances and energy
    come from differences, in which no digits cancel; which mean may be nearer comes from a matrix product, and bounds
    spare most rows it. A class that loses all its rows is given the row farthest from its mean, which lowers the energy
    too.
    """

    nothing = Nearest(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0)))

    @cached_property
    def present(self) -> Mask | None:
        """Which cells of the rows are."""
        return None if self.rows.mask is None else ~self.rows.mask

    @cached_property
    def points(self) -> Floats:
        """The rows from the origin: products of large numbers would lose digits."""
        x, origin = np.ascontiguousarray(self.rows.x), self.frame.origin
        points = np.empty(x.shape)
        over_blocks(lambda rows, own: np.subtract(rows, origin, out=own), x, points)
        return points if self.present is None else np.where(self.present, points, 0.0)

    @cached_property
    def _reach(self) -> float:
        """The largest coordinate."""
        return float(np.abs(self.points).max(initial=0.0))

    @cached_property
    def on_device(self) -> Partition | None:
        """The points on a device, None where that is the CPU."""
        twins = twin("mixtures")
        if twins is None:
            return None
        found: Partition = twins.Partition(self.points, self.rows.weights, self.present, self.family.n_components)
        return found

    def from_points(self, points: Floats) -> Floats:
        """Return the means at these points."""
        return self.family.equal(points)

    def from_labels(self, labels: Integers) -> Floats:
        """Return the means of a partition."""
        middle = np.zeros((self.family.n_components, self.points.shape[1]))
        return self.family.maximise(self._sums_of(labels, middle), None)

    def shared(self, theta: Floats, posterior: Nearest) -> KMeansExpected:
        """Return the energy and the class of each row; one that had a class moves only to a mean that is nearer."""
        others: Floats = np.empty(0)
        means, first = self.family.split(theta).means, not posterior.labels.size
        if self.on_device is not None:
            energy, labels = self.on_device.settle(means, None if first else posterior.labels)
            sums = self._sums_of(labels, means)
        elif self.present is not None:
            labels = nearest(self.points, means, self.present)
            old_labels = labels if first else posterior.labels
            new, old = self._distances(means, labels), self._distances(means, old_labels)
            labels = np.where(old <= new, old_labels, labels)
            energy, sums = float(self.rows.weights @ np.minimum(old, new)), self._sums_of(labels, means)
        else:
            n = len(self.points)
            labels = np.zeros(n, np.int64) if first else posterior.labels.copy()
            others = np.full(n, -1.0) if first else posterior.others.copy()
            drift = 0.0 if first else ROUNDED_UP * float(np.linalg.norm(means - posterior.means, axis=1).max())
            energy, sums = self._settled(means, drift, labels, others)
        return Expected(energy, sums, Nearest(labels, others, means))

    def m_step(self, theta: Floats, expected: KMeansExpected, memory: Frame | None = None) -> tuple[Floats, Frame]:
        """Move each mean to the middle of its rows."""
        labels, _, means = expected.posterior
        if labels.size and not np.bincount(labels, minlength=len(means)).all():
            expected = expected._replace(statistics=self._sums_of(self._refilled(means, labels), means))
        return super().m_step(theta, expected, memory)

    def _sums_of(self, labels: Integers, means: Floats) -> ClassSums:
        """Return the sums of the classes of a partition, whose rows look for no other mean."""
        if self.on_device is None and self.present is None:
            return self._settled(means, 0.0, labels, np.full(len(labels), np.inf))[1]
        mass = np.asarray(np.bincount(labels, self.rows.weights, len(means)), np.float64)
        if self.on_device is not None:
            counts, moves = self.on_device.class_shifts(means, labels)
            sums = moves + counts * means
        else:
            shares = (labels == np.arange(len(means))[:, None]) * self.rows.weights
            counts, sums = shares @ self.present, shares @ self.points
        return ClassSums(mass, sums if self.present is None else np.column_stack([sums, counts]))

    def _settled(self, means: Floats, drift: float, labels: Integers, others: Floats) -> tuple[float, ClassSums]:
        """Return the energy and the sums of the classes after rows moved to nearer means, in labels as in bounds."""
        scale = math.ldexp(1.0, -math.frexp(max(self._reach, np.abs(means).max()))[1])  # products without overflow
        settle = partial(_settle_block, means, drift, scale)
        parts = over_blocks(settle, self.points, self.rows.weights, labels, others)
        mass, sums, squares = (total(part) for part in zip(*parts, strict=True))
        return float(squares.sum()), ClassSums(mass, sums)

    def _distances(self, means: Floats, labels: Integers) -> Floats:
        differences = self.points - means[labels]
        if self.present is not None:
            differences *= self.present
        distances: Floats = np.einsum("ij,ij->i", differences, differences)
        return distances

    def _refilled(self, means: Floats, labels: Integers) -> Integers:
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


class Partition(Protocol):
    """Points of k-means on a device."""

    def settle(self, means: Floats, labels: Integers | None) -> tuple[float, Integers]:
        """Return the energy and the class of each row; a row moves only to a mean that is nearer."""

    def class_shifts(self, means: Floats, labels: Integers) -> tuple[Floats, Floats]:
        """Return the number of cells of each class and column, and the sums of the rows from the means."""


def _settle_block(
    means: Floats, drift: float, scale: float, rows: Floats, weights: Floats, labels: Integers, others: Floats
) -> tuple[Floats, Floats, Floats]:
    """Let a block of rows move to nearer means: a few at a time, whose products are compared while in the cache."""
    sums = np.zeros(len(means)), np.zeros(means.shape), np.zeros(len(means))
    parts = rows, weights, labels, others, means, *sums
    unsure, factors = stay(drift, *parts, np.empty(len(rows), np.int64)), (scale * means).astype(np.float32)
    offsets = (-np.square(scale * means).sum(axis=1) / 2.0).astype(np.float32)
    for few in row_blocks(len(unsure), means.size, PLAIN_PRODUCT):
        products = factors @ in_single(rows, unsure[few], scale).T
        to_nearest(products, offsets, scale, unsure[few], *parts)
    return sums


# -- models of any family ---------------------------------------------------------------------------------------------
Models = tuple[Model[Family], ...]
Shares = Expected[ClassSums, Floats]


@EM_STEPS.register("machine-mixture")
class ModelSteps(MixtureSteps[MixtureOfFamily, Floats, Models]):
    """Both steps of a mixture of models of any family: the M-step fits one model to each class.

    Rows that are not in memory are shared out where they are, and each model is learned there.
    """

    nothing = np.zeros((0, 0))

    def __init__(
        self,
        family: MixtureOfFamily,
        data: Rows,
        hard: bool,
        placing: str = FAR_APART,
        components: ComponentFits | None = None,
    ):
        super().__init__(family, data, hard, placing)
        if components is None:
            raise ArgumentError("are needed to fit the models of the classes", argument="components")
        self.components = components

    @cached_property
    def table(self) -> Tensor:
        """The rows that count as models are fitted to them."""
        return self.components.table(self.data.states[self.data.weights > 0], self.rows.mask)

    def placed(self, rng: np.random.Generator) -> tuple[Floats, Models]:
        """Return the mixture of a random partition, or of one around rows that are drawn, softened."""
        k, weights = self.family.n_components, self.rows.weights
        require_distinct(weights, k, self.data.n_rows)
        if self.placing == PARTITION:
            labels = random_partition(len(weights), k, rng)
        else:
            points = self._points()
            labels = nearest(points, starting_points(points, weights, k, rng, self.placing))
        shares = ((1 - SOFTENED) * np.eye(k)[labels] + SOFTENED / k).T * weights
        return self._mixture([self.components.fit(a, self.table, shares[a]) for a in range(k)], shares.sum(axis=1))

    def _points(self) -> Points:
        """Rows as points: numbers from their mean, labels one-hot."""
        x, _, mask = self.rows
        if not self.family.columns.real:
            return one_hot(self.family.columns, x, mask)
        points = x - self.rows.mean()
        return points if mask is None else np.where(mask, 0.0, points)

    def adopted(self, theta: Floats) -> tuple[Floats, Models]:
        """Return a fitted mixture with its models."""
        return theta, self.family.models

    def e_step(self, theta: Floats, before: Shares | None, memory: Models) -> Shares:
        """Return the free energy, the weights of the classes, and the shares of rows in memory."""
        mixture = self.model(theta, memory)
        if not self.in_memory:
            energy, mass = self.all_rows.reduce(partial(_energy_and_mass, mixture, self.hard, self.components))
            return Expected(energy, mass, self.nothing)
        parts, models = mixture.parts, mixture.family.models_at(theta)
        scores = [
            self.components.log_densities(one, float(log_z), self.table)
            for one, log_z in zip(models, parts.log_partitions, strict=True)
        ]
        shares = np.ascontiguousarray((np.column_stack(scores) + log_class_weights(parts.weights)).T, dtype=np.float64)
        energy = float((hard_assignment if self.hard else soft_assignment)(shares, self.rows.weights))
        return Expected(energy, ClassSums(shares.sum(axis=1), np.zeros((len(shares), 0))), shares)

    def m_step(self, theta: Floats, expected: Shares, memory: Models) -> tuple[Floats, Models]:
        """Fit one model to each class; one that has lost all its rows keeps its own."""
        mass, mixture = expected.statistics.mass, self.model(theta, memory)
        old = zip(mixture.family.models_at(theta), mixture.parts.log_partitions.tolist(), strict=True)
        fits = [
            kept if empty else self._fitted(a, mixture, expected)
            for a, (empty, kept) in enumerate(zip(empty_classes(mass), old, strict=True))
        ]
        return self._mixture(fits, mass)

    def _fitted(self, a: int, mixture: Model[MixtureOfFamily], expected: Shares) -> tuple[Model[Family], float]:
        """Return the model of a class, fitted to its rows, and log Z."""
        if self.in_memory:
            return self.components.fit(a, self.table, expected.posterior[a])
        return self.components.fit(a, self.all_rows.map(partial(_of_class, mixture, self.hard, self.components, a)))

    def _mixture(self, fits: list[tuple[Model[Family], float]], mass: Floats) -> tuple[Floats, Models]:
        models, log_partitions = zip(*fits, strict=True)
        mixture = mixture_of(self.family, models, class_weights(mass), np.array(log_partitions))
        return mixture.theta, mixture.family.models

    def joined(self, state: EMState[ClassSums, Floats, Models]) -> Shares:
        """Refuse: no sums over the rows of a class are all that a fit of a model asks for."""
        raise ArgumentError(
            "a mixture of machines needs all rows at once: each step fits the machines anew",
            "use `fit` with `learner='em'`, or `machine='categorical'`",
        )

    def model(self, theta: Floats, memory: Models) -> Model[MixtureOfFamily]:
        """Return the mixture."""
        return Model(replace(self.family, models=memory), theta)

    def warning(self, theta: Floats, mass: Floats, memory: Models) -> str:
        """Say which class has lost all its rows."""
        return class_warning(mass)


def _energy_and_mass(
    mixture: Model[MixtureOfFamily], hard: bool, components: ComponentFits, data: Rows
) -> tuple[float, ClassSums]:
    steps = ModelSteps(mixture.family, data, hard, components=components)
    return steps.e_step(mixture.theta, None, mixture.family.models)[:2]


def _of_class(mixture: Model[MixtureOfFamily], hard: bool, components: ComponentFits, a: int, data: Dataset) -> Dataset:
    """Return the rows with the weights that they have in a class, without the names that models do not see."""
    steps = ModelSteps(mixture.family, data, hard, components=components)
    shares = steps.e_step(mixture.theta, None, mixture.family.models).posterior[a]
    names, numbers = tuple(f"x{j}" for j in range(data.n_variables)), np.arange(data.n_states)
    return replace(data, weights=shares, row_weights=shares, row_of=numbers, names=names)


# -- where classes begin ----------------------------------------------------------------------------------------------
def require_distinct(weights: Floats, n_components: int, n_rows: int) -> None:
    """Raise `DataError` unless there are as many distinct rows as classes."""
    if n_components > len(weights):
        raise DataError(
            f"is more than the {len(weights)} distinct rows (n_samples={n_rows})",
            "ask for fewer classes",
            argument="n_components",
            value=n_components,
        )


def random_partition(n_rows: int, n_components: int, rng: np.random.Generator) -> Integers:
    """Give each row a class at random, such that the classes have equally many and none is empty."""
    return rng.permutation(np.arange(n_rows) % n_components)


def starting_points(
    points: Points, weights: Floats, n_components: int, rng: np.random.Generator, placing: str = FAR_APART
) -> Floats:
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


def as_dense(points: States) -> Floats:
    """Return points as a dense array of their own."""
    dense: Floats = sparse.csr_array(points).toarray() if sparse.issparse(points) else np.array(points)
    return dense
