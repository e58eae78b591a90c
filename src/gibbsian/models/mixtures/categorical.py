"""Latent classes: columns of labels that are independent within a class. S(x) is the row written one-hot.

A missing cell is left out of the one-hot row, which sums it out because columns are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np
from scipy import sparse

from gibbsian.arrays import Codes, Floats, Integers, Mask, States
from gibbsian.backends.classes import ClassSums
from gibbsian.errors import ArgumentError
from gibbsian.models.base import FAMILIES, Parts
from gibbsian.models.file_parts import COUNT, NumericArray, PartsInFile, reals, reject
from gibbsian.models.interactions import Interactions, of_classes
from gibbsian.models.mixtures.base import (
    ExponentialMixtureFamily,
    Points,
    class_weights,
    draw_classes,
    empty_classes,
    log_class_weights,
    tangents,
)
from gibbsian.models.rows import PartitionedRows, RowsInMemory
from gibbsian.models.variables import Variables


class LatentClassParts(NamedTuple):
    """The weight of each class, and the probability of each value of each column, columns side by side."""

    weights: Floats
    probabilities: Floats


@FAMILIES.register("categorical-mixture")
@dataclass(frozen=True, eq=False)
class LatentClassFamily(ExponentialMixtureFamily[LatentClassParts]):
    """Mixtures of distributions whose columns of labels are independent within a class (latent class analysis).

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    columns : Variables
        The values of each column.
    smoothing : float or array of shape (n_values,), default=0.01
        Rows of each value added to every class: a Dirichlet prior, part of the free energy.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.models import LatentClassFamily
    >>> from gibbsian.models.variables import Variables
    >>> family = LatentClassFamily(1, Variables.categories((2, 2)))
    >>> theta = family.join([1.0], [0.0, 1.0, 0.5, 0.5])
    >>> np.exp(family.log_evidence(theta, np.array([[1, 0]]))).round(3)
    array([0.5])
    """

    n_components: int
    columns: Variables
    smoothing: float | Floats = 0.01
    _parts = LatentClassParts
    parts_in_file: ClassVar[PartsInFile] = {
        "n_components": COUNT,
        "smoothing": NumericArray(("values",), low=0),
        "theta": reals("parameters"),
    }

    @cached_property
    def _pseudocounts(self) -> Floats:
        """The smoothing of each value."""
        return np.broadcast_to(np.asarray(self.smoothing, dtype=np.float64), self.columns.offsets[-1:])

    @property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the weights and the probabilities."""
        return (self.n_components,), (self.n_components, int(self.columns.offsets[-1]))

    @property
    def n_free(self) -> int:
        """Number of parameters: one less than the values of each column, for each class, and the weights."""
        k = self.n_components
        return k * (int(self.columns.offsets[-1]) - len(self.columns)) + k - 1

    def free_directions(self, theta: Floats) -> Floats:
        """Return an orthonormal basis of the moves that keep sums: of weights, and of each column of each class."""
        sizes = [self.n_components, *np.tile(np.diff(self.columns.offsets), self.n_components)]
        return tangents([np.ones(size) for size in sizes])

    def require_distribution(self, theta: Floats) -> None:
        """Raise `ArgumentError` unless weights, and the probabilities of each column, add up to one."""
        super().require_distribution(theta)
        probabilities = self.split(theta).probabilities
        totals = np.add.reduceat(probabilities, self.columns.offsets[:-1], axis=1)
        if (probabilities < 0).any() or not np.isclose(totals, 1.0, rtol=1e-6).all():
            raise ArgumentError("must hold probabilities that add up to 1 for each column", argument="theta")

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter: a class, or a column, the code of its value and the class."""
        values = [
            f"{name}={code}" for name, size in zip(names, self.columns.sizes, strict=True) for code in range(size)
        ]
        classes = range(self.n_components)
        return [*(f"weights[{a}]" for a in classes), *(f"P({value} | {a})" for a in classes for value in values)]

    def interactions(self, theta: Floats) -> Interactions:
        """Return each class as a hidden unit, and by how much it changes the probabilities of each column's values.

        For two values that of the upper one; else the total variation distance.
        """
        weights, probabilities = self.split(theta)
        change = probabilities - weights @ probabilities
        if self.columns.two_valued:
            return of_classes(change[:, 1::2], "difference of probability")
        distances = np.add.reduceat(np.abs(change), self.columns.offsets[:-1], axis=1) / 2
        return of_classes(distances, "difference of probabilities", signed=False)

    # -- the distribution ---------------------------------------------------------------------------------------------
    def points(self, x: States, mask: Mask | None, origin: Floats) -> Points:
        """Return the rows written one-hot, as a CSR array; missing cells have no entry."""
        return one_hot(self.columns, x, mask)

    def natural(self, theta: Floats, by_cell: bool) -> tuple[Floats, Floats]:
        """Return the log-probabilities and log-weights; a value never seen counts as all but impossible."""
        weights, probabilities = self.split(theta)
        return np.log(np.maximum(probabilities, np.finfo(float).tiny)), log_class_weights(weights)

    def peak(self, eta: Floats) -> Codes:
        """Return the most probable row under each row of natural parameters: column by column."""
        best = [part.argmax(axis=1) for part in np.split(eta, self.columns.offsets[1:-1], axis=1)]
        return np.column_stack(best).astype(np.int8)

    def sample(self, theta: Floats, n: int, rng: np.random.Generator) -> tuple[Codes, Integers]:
        """Draw rows of codes and their classes."""
        probabilities, classes = self.split(theta).probabilities, draw_classes(self.split(theta).weights, n, rng)
        starts, codes = self.columns.offsets, np.empty((n, len(self.columns)), dtype=np.int8)
        for j in range(len(self.columns)):
            steps = np.cumsum(probabilities[classes, starts[j] : starts[j + 1]], axis=1)
            codes[:, j] = (rng.random((n, 1)) * steps[:, -1:] >= steps[:, :-1]).sum(axis=1)
        return codes, classes

    # -- learning -----------------------------------------------------------------------------------------------------
    def penalty(self, theta: Floats) -> float:
        """Return minus the log of the Dirichlet prior, up to a constant."""
        return -float((self.natural(theta, False)[0] @ self._pseudocounts).sum()) if self._pseudocounts.any() else 0.0

    def maximise(self, sums: ClassSums, theta: Floats | None, floor: float = 0.0) -> Floats:
        """Return the weights of the classes and frequencies among present cells, smoothed."""
        counts, starts = sums.sums + self._pseudocounts, self.columns.offsets
        sizes = np.diff(starts)
        totals = np.repeat(np.add.reduceat(counts, starts[:-1], axis=1), sizes, axis=1)
        probabilities = np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), np.repeat(1.0 / sizes, sizes))
        if theta is not None and not self._pseudocounts.any():
            empty = empty_classes(sums.mass)[:, None]
            probabilities = np.where(empty, self.split(theta).probabilities, probabilities)
        return self.join(class_weights(sums.mass), probabilities)

    # -- files --------------------------------------------------------------------------------------------------------
    def to_parts(self) -> Parts:
        """Return what a file keeps besides the coding, which has the columns."""
        return Parts({"n_components": self.n_components}, {"smoothing": self._pseudocounts})

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        smoothing = np.asarray(parts.arrays["smoothing"], dtype=np.float64)
        if len(smoothing) != sum(variables.sizes):
            reject("coding", f"has {sum(variables.sizes)} values, but the model {len(smoothing)}")
        return cls(cast("int", parts.plain["n_components"]), variables, smoothing)


def smoothing_to_frequencies(data: PartitionedRows, columns: Variables, smoothing: float) -> Floats:
    """Return pseudocounts with the total of `smoothing` for each value, as frequent as the values in the data.

    The frequencies are smoothed alike, so that a value without rows stays possible.
    """
    sizes = np.array(columns.sizes)
    counts = data.reduce(partial(_value_counts, columns)) + smoothing
    totals = np.add.reduceat(counts, np.cumsum(sizes) - sizes)
    return smoothing * counts * np.repeat(sizes / np.where(totals > 0, totals, 1.0), sizes)


def _value_counts(columns: Variables, data: RowsInMemory) -> Floats:
    counts: Floats = data.weights @ one_hot(columns, data.states, data.missing)
    return counts


def one_hot(columns: Variables, codes: States, mask: Mask | None = None) -> Points:
    """Return rows of codes written one-hot, as a CSR array; missing cells have no entry."""
    entries, shape = codes.astype(np.int64) + columns.offsets[:-1], (len(codes), int(columns.offsets[-1]))
    if mask is None:
        entries, ends = entries.ravel(), np.arange(len(codes) + 1) * codes.shape[1]
    else:
        entries, ends = entries[~mask], np.concatenate([[0], np.cumsum((~mask).sum(axis=1))])
    rows: Points = sparse.csr_array((np.ones(len(entries)), entries, ends), shape)
    return rows
