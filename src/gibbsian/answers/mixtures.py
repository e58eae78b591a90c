"""Answers about models with one hidden label: densities, classes, missing cells, samples, criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from gibbsian.answers.about import ANSWERS, answers_about
from gibbsian.answers.base import Answers, by_value, likeliest, rows_like
from gibbsian.answers.modes import Modes, Search, climbed, modes_of_rows
from gibbsian.backends.classes import nearest, over_blocks, responsibilities
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, DataError
from gibbsian.inference import exact
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.mixtures.base import ExponentialMixtureFamily, WeightedSample, draw_classes, log_class_weights
from gibbsian.models.mixtures.of_models import MixtureOfFamily
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import Variables
from gibbsian.startup import logsumexp


@ANSWERS.register("mixture")
class MixtureAnswers:
    """Answers about a mixture; all of them are exact.

    Parameters
    ----------
    model : Model of a mixture
        What is asked about.
    """

    def __init__(self, model: Model[ExponentialMixtureFamily]):
        self.model = model

    @property
    def is_real(self) -> bool:
        """Whether the columns are numbers."""
        return self.model.family.columns.real

    @property
    def two_valued(self) -> bool:
        """Whether the upper of two values stands for a column where probabilities are told."""
        columns = self.model.family.columns
        return columns.two_valued and columns.scores is not None

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.model.family.columns)

    def _scores(self, x: np.ndarray, data: Dataset) -> np.ndarray:
        """Return ``log P(x, class)`` of whole rows, with the columns of a data set."""
        return self.model.family.log_joint(self.model.theta, x)

    def log_partition(self) -> float:
        """Return zero: a mixture of normalised components is normalised."""
        return 0.0

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_joint(self, data: Dataset) -> np.ndarray:
        """Return ``log P(x, class)`` of each distinct row and class, missing cells integrated out."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.model.family.log_joint(self.model.theta, data.states, data.missing)
        lost = np.asarray(~(scores < np.inf).all(axis=1))
        if lost.any():
            row = int(np.flatnonzero(lost[data.row_of])[0])
            raise DataError(f"row {row} is too far from the classes for its density to be a number", "scale the rows")
        return scores

    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return the log-density of the present cells of each distinct row."""
        return logsumexp(self.log_joint(data), axis=1)

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Return the mean of ``sum_i log P(x_i | the other columns)`` over the present cells."""
        here, total, holes = self.log_evidence(data), np.zeros(data.n_states), data.holes
        for i in range(data.n_variables):
            without = holes.copy()
            without[:, i] = True
            total += here - self.log_evidence(replace(data, missing=without))
        return float(np.average(total, weights=data.weights))

    def class_probabilities(self, data: Dataset) -> np.ndarray:
        """Return ``P(class | x)`` of each distinct row (YK15's soft-assign variables)."""
        return responsibilities(self.log_joint(data))

    def classes(self, data: Dataset) -> np.ndarray:
        """Return the most probable class of each distinct row."""
        return self.log_joint(data).argmax(axis=1)

    def hidden_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the same: the label is all that is hidden."""
        return self.class_probabilities(data)

    # -- queries ------------------------------------------------------------------------------------------------------
    def joint(self) -> Model[TablesFamily]:
        """Return the model of the columns and, as the last variable, the class; refuse where columns are numbers."""
        if self.is_real:
            raise ArgumentError(
                "real numbers have densities and no probabilities of single values",
                "ask `predict_proba` for the classes of rows and `score_samples` for their densities",
            )
        return with_class(self.model.theta[: self.model.family.n_components], self._parts())

    def _parts(self) -> Sequence[Model[DiscreteFamily]]:
        """Return the model of each class: independent columns."""
        columns = [(i,) for i in range(self.n_columns)]
        family = TablesFamily(Scopes(columns, self.n_columns), self.model.family.columns)
        return [Model(family, own) for own in self._natural()]

    def _natural(self) -> np.ndarray:
        """Return the natural parameters of each class."""
        return self.model.family.natural(self.model.theta, False)[0]

    def hidden_variables(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return the classes."""
        name = "class"
        while name in names:
            name += "_"
        return {name: tuple(range(self.model.family.n_components))}

    def hidden_groups(self) -> list[range]:
        """Return what is given: the class, which is the last hidden variable."""
        last = self.joint().n_variables - self.n_columns
        return [range(last - 1, last)]

    visible_given_hidden = Answers.visible_given_hidden

    # -- missing cells ------------------------------------------------------------------------------------------------
    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probabilities of the values of each cell given the present cells of its distinct row.

        An array of shape (rows, columns) with the probability of the upper value where columns have two, else of shape
        (rows, columns, values) with zeros after the last value of a column that has fewer.
        """
        if self.is_real:
            raise ArgumentError("real numbers have densities and no probabilities", "ask for `impute`")
        flat = self.class_probabilities(data) @ self.model.parts.probabilities
        shaped, known = by_value(flat, np.array(self.model.family.columns.sizes)), ~data.holes
        rows, columns = np.nonzero(known)
        shaped[known] = 0.0
        shaped[rows, columns, data.states[known].astype(np.intp)] = 1.0
        return shaped[:, :, 1] if data.coding.domain.two_valued else shaped

    def completed_states(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the distinct rows with missing numbers at their mean and missing labels at the most probable one."""
        if self.is_real:
            if data.missing is None:
                return data.states
            return np.where(data.missing, self.cell_means(data), data.states)
        return likeliest(self.cell_probabilities(data, rng))

    def cell_means(self, data: Dataset) -> np.ndarray:
        """Return the expected numbers of each distinct row given its present cells."""
        return self.class_probabilities(data) @ self.model.parts.means

    # -- the whole distribution ---------------------------------------------------------------------------------------
    def sample(self, n_samples: int, rng: np.random.Generator, method: str = "auto") -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their classes."""
        if method not in ("auto", "exact"):
            raise ArgumentError(
                "is not known", "a mixture is sampled exactly, leave it out", argument="method", value=method
            )
        return self._drawn(n_samples, rng)

    def _drawn(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return self.model.family.sample(self.model.theta, n, rng)

    # -- most probable rows -------------------------------------------------------------------------------------------
    most_listed = 2.0**16

    def most_probable(self, data: Dataset, search: Search, joint: bool = False) -> Modes:
        """Return each distinct row with its missing cells where the density is largest, classes summed out.

        With `joint` it is the largest ``P(x, class)``. Real rows climb from the peak of every class to one of the
        mixture's own (the fixed points of mean shift).
        """
        return replace(modes_of_rows(self, data, search, joint), log_partition=0.0)

    def mode_of(self, data: Dataset, state: np.ndarray, free: np.ndarray, search: Search, joint: bool) -> Modes:
        """Return the row of largest density that has the `free` cells anew."""
        peaks, gaps = self._peaks(state, free, data, search)
        scores = self._scores(peaks, data).diagonal()
        if joint:
            best = int(scores.argmax())
            return Modes.one(peaks[best], scores[best], (scores + gaps).max(), "the peak of each class", best)
        bound = float(logsumexp(scores + gaps))
        rows = climbed(lambda points: self._higher(points, state, free), peaks)
        if not self.is_real:
            space = self.model.family.columns.sizes, state, free, self.most_listed
            return search.of_rows(
                lambda x: self._log_weights(x, data), *space, lambda: bound, lambda: list(rows[:, free])
            )
        search.require_one_peak()
        logs = self._log_weights(rows, data)
        return Modes.one(rows[logs.argmax()], float(logs.max()), bound, f"climbs from {len(rows)} classes")

    def _log_weights(self, x: np.ndarray, data: Dataset) -> np.ndarray:
        return logsumexp(self._scores(x, data), axis=1)

    def _peaks(
        self, state: np.ndarray, free: np.ndarray, data: Dataset, search: Search
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best row of each class, and by how much a better one could exceed it."""
        family = self.model.family
        if not free.all():  # refused where cells of a row are tied together
            family.log_joint(self.model.theta, state[None], free[None])
        peaks = np.where(free, family.peak(self._natural()), state)
        return peaks, np.zeros(len(peaks))

    def _higher(self, points: np.ndarray, state: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Move rows to the peak of their mean class, where the density is no lower (EM with the rows as unknowns)."""
        shares = responsibilities(self.model.family.log_joint(self.model.theta, points))
        return np.where(free, self.model.family.peak(shares @ self._natural()), state)

    def expect(self, rng: np.random.Generator, method: object = "auto", n_samples: int | None = None) -> NoReturn:
        """Refuse: with the label summed out no statistics go with the parameters."""
        raise ArgumentError("a mixture is no exponential family of its columns", "ask for its parameters instead")

    def log_partition_interval(self, *arguments: object, **settings: object) -> NoReturn:
        """Refuse: there is nothing to bracket."""
        raise ArgumentError("log Z of a mixture is zero", "leave `method`, `n_samples` and `betas` out")

    # -- criteria -----------------------------------------------------------------------------------------------------
    def log_likelihood(self, data: Dataset) -> tuple[float, float]:
        """Return the log-likelihood of the rows that count, and their weight."""
        weights = WeightedSample.of(data).weights
        kept = data.weights > 0
        return float(weights @ self.log_evidence(data)[kept]), float(weights.sum())

    def n_parameters(self) -> int:
        """Return the number of parameters that the fit has learned."""
        return self.model.family.n_free

    def bic(self, data: Dataset, log_unit: float = 0.0) -> float:
        """Return ``-2 log L + p log n``; `log_unit` is added to each row's log-density."""
        likelihood, weight = self.log_likelihood(data)
        return float(-2.0 * (likelihood + weight * log_unit) + self.n_parameters() * np.log(weight))

    def aic(self, data: Dataset, log_unit: float = 0.0) -> float:
        """Return ``-2 log L + 2 p``; `log_unit` is added to each row's log-density."""
        likelihood, weight = self.log_likelihood(data)
        return float(-2.0 * (likelihood + weight * log_unit) + 2.0 * self.n_parameters())


@ANSWERS.register("k-means")
class KMeansAnswers(MixtureAnswers):
    """Answers about k-means, the limit of zero variance: distances for densities, the means for samples."""

    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return minus the squared distance of each distinct row to its nearest mean, over present cells.

        That is ``2 sigma^2 log P(x)`` without its constant, as sigma goes to zero. Differences are squared one by one,
        so that nothing cancels.
        """
        differences = data.states - self.model.parts.means[self.classes(data)]
        if data.missing is not None:
            differences = np.where(data.missing, 0.0, differences)
        return -np.einsum("ij,ij->i", differences, differences)

    def classes(self, data: Dataset) -> np.ndarray:
        """Return the nearest mean of each distinct row, over its present cells."""
        means = self.model.parts.means
        middle = means.mean(axis=0)  # from which products lose no digits

        def some(rows: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
            points = rows - middle if mask is None else np.where(mask, 0.0, rows - middle)
            return nearest(points, means - middle, None if mask is None else ~mask)

        return np.concatenate(over_blocks(some, data.states, *([] if data.missing is None else [data.missing])))

    def class_probabilities(self, data: Dataset) -> np.ndarray:
        """Return one for the nearest mean and zero for the others."""
        return np.eye(self.model.family.n_components)[self.classes(data)]

    def most_probable(self, data: Dataset, search: Search, joint: bool = False) -> Modes:
        """Return each distinct row with its missing cells those of the nearest mean, at no distance more."""
        search.require_one_peak()
        rows, logs = self.completed_states(data, search.rng), self.log_evidence(data)
        return Modes(rows, logs, logs, ("the nearest mean",) * len(rows), self.classes(data) if joint else None)

    def sample(self, n_samples: int, rng: np.random.Generator, method: str = "auto") -> tuple[np.ndarray, np.ndarray]:
        """Draw means and their classes: without variance nothing else is left of the distribution."""
        _, classes = super().sample(n_samples, rng, method)
        return self.model.parts.means[classes], classes


@ANSWERS.register("machine-mixture")
class MixtureOfAnswers(MixtureAnswers):
    """Answers about a mixture of models of any family: what concerns cells is asked of the models."""

    model: Model[MixtureOfFamily]  # type: ignore[assignment]

    def __init__(self, model: Model[MixtureOfFamily]):
        self.model = model
        self.models = model.family.models_at(model.theta)
        self.components = [answers_about(each) for each in self.models]

    @property
    def two_valued(self) -> bool:
        """Whether the upper of two values stands for a column where probabilities are told."""
        return self.components[0].two_valued

    def log_joint(self, data: Dataset) -> np.ndarray:
        """Return ``log P(x, class)`` of each distinct row and class, what is hidden or missing summed out."""
        weights, log_partitions, _ = self.model.parts
        scores = np.column_stack([component.log_evidence(data) for component in self.components]) - log_partitions
        return (scores if self.is_real else np.minimum(scores, 0.0)) + log_class_weights(weights)

    def _scores(self, x: np.ndarray, data: Dataset) -> np.ndarray:
        return self.log_joint(rows_like(data, x))

    def _drawn(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        classes = draw_classes(self.model.parts.weights, n, rng)
        counts = np.bincount(classes, minlength=len(self.components))
        drawn = [one.sample(int(count), rng)[0] for one, count in zip(self.components, counts, strict=True) if count]
        rows = np.concatenate(drawn)
        rows[np.argsort(classes, kind="stable")] = rows.copy()
        return rows, classes

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probabilities of the values of each cell: those of the models, by class."""
        return self._shared(data, [component.cell_probabilities(data, rng) for component in self.components])

    def _parts(self) -> Sequence[Model[DiscreteFamily]]:
        """Return the model of each class, columns first."""
        return [component.joint() for component in self.components]

    def hidden_variables(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return the hidden variables of the models, and the classes."""
        own = self.components[0].hidden_variables(names)
        return own | super().hidden_variables([*names, *own])

    def _peaks(self, x: np.ndarray, free: np.ndarray, data: Dataset, search: Search) -> tuple[np.ndarray, np.ndarray]:
        row = replace(rows_like(data, x[None]), missing=free[None])
        found = [component.most_probable(row, search) for component in self.components]
        return np.array([one.rows[0] for one in found]), np.array([one.gaps[0] for one in found])

    def _higher(self, points: np.ndarray, x: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Stay at the peaks of the models, which know no mean of several."""
        return points

    def cell_means(self, data: Dataset) -> np.ndarray:
        """Return the expected numbers of each distinct row: those of the models, by class."""
        rng = np.random.default_rng(0)
        return self._shared(data, [component.completed_states(data, rng) for component in self.components])

    def _shared(self, data: Dataset, told: list[np.ndarray]) -> np.ndarray:
        """The mean of what the models tell, each weighted by the probability of its class."""
        shares = self.class_probabilities(data).T
        return sum(share.reshape(-1, *[1] * (one.ndim - 1)) * one for share, one in zip(shares, told, strict=True))


def with_class(weights: np.ndarray, parts: Sequence[Model[DiscreteFamily]]) -> Model[TablesFamily]:
    """Return a mixture of models as one in which the class is the last variable, and every factor depends on it."""
    graphs = [part.family.factors(part.theta) for part in parts]
    sizes, k = graphs[0].cardinalities.tolist(), len(parts)
    shares = np.log(np.maximum(weights, np.finfo(float).tiny))
    tables: dict[tuple[int, ...], np.ndarray] = {(len(sizes),): shares - [exact(part).log_partition for part in parts]}
    for number, graph in enumerate(graphs):
        for factor in graph.factors:
            scope = (*factor.nodes, len(sizes))
            tables.setdefault(scope, np.zeros((*factor.table.shape, k)))[..., number] += factor.table
    return TablesFamily.model(tables, Variables.categories((*sizes, k)))
