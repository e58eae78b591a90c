"""Mixtures of independent columns of labels (latent class analysis): S(x) is the row written one-hot.

A missing cell has no entry there: independent columns are summed out by leaving them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from gibbsian.domain import AnyDomain
from gibbsian.models.base import MODELS
from gibbsian.models.class_shares import ClassSums, class_weights, is_empty, log_weights
from gibbsian.models.directions import of_shares
from gibbsian.models.file_parts import Tensor, refuse
from gibbsian.models.interactions import Interactions, of_classes
from gibbsian.models.mixture import ExponentialMixture


@MODELS.register("categorical-mixture", classes=True)
@dataclass(frozen=True, eq=False)
class IndependentColumnsMixture(ExponentialMixture):
    """A mixture of distributions whose columns are independent within a class.

    Parameters
    ----------
    weights : array of shape (n_components,)
        The share of each class.
    probabilities : array of shape (n_components, n_values)
        The probability of each value of each column, columns side by side.
    domain : Domain or Categories
        The values of each column.
    smoothing : float or array of shape (n_values,), default=0.01
        Rows of each value added to every class: a Dirichlet prior, part of the free energy.
    trouble : str, default=""
        What is wrong with the solution, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.domain import Categories
    >>> from gibbsian.models.independent_columns import IndependentColumnsMixture
    >>> model = IndependentColumnsMixture(np.ones(1), np.array([[0.0, 1.0, 0.5, 0.5]]), Categories((2, 2)))
    >>> np.exp(model.log_weights(np.array([[1, 0]]))).round(3)
    array([0.5])
    """

    weights: np.ndarray
    probabilities: np.ndarray
    domain: AnyDomain
    smoothing: Any = 0.01
    trouble: str = ""
    parts: ClassVar[tuple[str, ...]] = ("weights", "probabilities")
    shown: ClassVar[tuple[str, ...]] = ("weights", "probabilities")
    parts_in_file: ClassVar[dict[str, Any]] = {
        **ExponentialMixture.parts_in_file,
        "probabilities": Tensor(("classes", "values"), low=0, high=1, total="n"),
        "smoothing": Tensor(("values",), low=0),
    }

    def __post_init__(self) -> None:
        """Write the smoothing out for each value."""
        each = np.broadcast_to(np.asarray(self.smoothing, dtype=float), self.probabilities.shape[1:])
        object.__setattr__(self, "smoothing", each)

    @classmethod
    def unplaced(cls, n_components: int, domain: AnyDomain, n_columns: int, **settings: Any) -> Self:
        """Return a mixture whose classes learning has yet to place."""
        n_values = int(domain.cardinalities(n_columns).sum())
        nothing = np.full(n_components, np.nan)
        return cls(nothing, np.full((n_components, n_values), np.nan), domain, **settings)

    @classmethod
    def from_parts(cls, structure: dict[str, Any], arrays: dict[str, Any], domain: Any) -> Self:
        """Put the mixture together again from `to_parts`."""
        model = cls(**structure, **arrays, domain=domain)
        if model.starts[-1] != model.probabilities.shape[1]:
            refuse("coding", f"has {model.starts[-1]} values, but the model {model.probabilities.shape[1]}")
        return model

    @property
    def n_variables(self) -> int:
        """The number of columns."""
        sizes = getattr(self.domain, "sizes", None)
        return self.probabilities.shape[1] // 2 if sizes is None else len(sizes)

    @property
    def starts(self) -> np.ndarray:
        """Where the values of each column begin among the one-hot columns, and the end."""
        return np.concatenate([[0], np.cumsum(self.domain.cardinalities(self.n_variables))])

    @property
    def n_parameters(self) -> int:
        """The number of parameters: one less than the values of each column, for each class, and the weights."""
        k = self.n_components
        return k * (int(self.starts[-1]) - self.n_variables) + k - 1

    def free_directions(self) -> np.ndarray:
        """Return the directions of shares that sum to one: the weights, and the values of each column and class."""
        return of_shares([self.n_components, *np.tile(np.diff(self.starts), self.n_components)])

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter: a class, or a column, the code of its value and the class."""
        values = [
            f"{name}={code}" for name, size in zip(names, np.diff(self.starts), strict=True) for code in range(size)
        ]
        classes = range(self.n_components)
        return [*(f"weights[{a}]" for a in classes), *(f"P({value} | {a})" for a in classes for value in values)]

    def interactions(self) -> Interactions:
        """Return each class as a hidden unit, and by how much it changes the probabilities of each column's values.

        For two values that of the upper one; else the total variation distance.
        """
        change = self.probabilities - self.weights @ self.probabilities
        if (np.diff(self.starts) == 2).all():
            return of_classes(change[:, 1::2], "difference of probability")
        distances = np.add.reduceat(np.abs(change), self.starts[:-1], axis=1) / 2
        return of_classes(distances, "difference of probabilities", signed=False)

    # -- the density --------------------------------------------------------------------------------------------------
    def points(self, states: np.ndarray, missing: np.ndarray | None = None) -> Any:
        """Return the rows written one-hot, as a CSR array; missing cells have no entry."""
        return one_hot(self.domain, states, missing)

    def natural(self, holes: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-probabilities and log-weights; a value never seen counts as all but impossible."""
        return np.log(np.maximum(self.probabilities, np.finfo(float).tiny)), log_weights(self.weights)

    def peak(self, theta: np.ndarray) -> np.ndarray:
        """Return the most probable row under each row of natural parameters: column by column."""
        best = [part.argmax(axis=1) for part in np.split(theta, self.starts[1:-1], axis=1)]
        return self.domain.from_codes(np.column_stack(best).astype(np.int8))

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their classes."""
        classes = self.draw_classes(n_samples, rng)
        starts = self.starts
        codes = np.empty((n_samples, self.n_variables), dtype=np.int64)
        for j in range(codes.shape[1]):
            steps = np.cumsum(self.probabilities[classes, starts[j] : starts[j + 1]], axis=1)
            codes[:, j] = (rng.random((n_samples, 1)) * steps[:, -1:] >= steps[:, :-1]).sum(axis=1)
        return self.domain.from_codes(codes), classes

    # -- learning -----------------------------------------------------------------------------------------------------
    def penalty(self) -> float:
        """Return minus the log of the Dirichlet prior, up to a constant."""
        return -float((self.natural()[0] @ self.smoothing).sum()) if self.smoothing.any() else 0.0

    def maximise(self, expected: ClassSums, first: bool = False) -> Self:
        """Return frequencies among present cells, smoothed."""
        mass, sums = expected
        counts, starts = sums + self.smoothing, self.starts
        sizes = np.diff(starts)
        spread = np.repeat(np.add.reduceat(counts, starts[:-1], axis=1), sizes, axis=1)
        probabilities = np.where(spread > 0, counts / np.where(spread > 0, spread, 1.0), np.repeat(1.0 / sizes, sizes))
        if not first and not self.smoothing.any():
            probabilities = np.where(is_empty(mass)[:, None], self.probabilities, probabilities)
        return replace(self, weights=class_weights(mass), probabilities=probabilities)


def smoothing_to_frequencies(data: Any, smoothing: float) -> np.ndarray:
    """Return as many rows for a column as `smoothing` of each value has, its values as frequent as in the data.

    The frequencies are smoothed alike, so that a value that was never seen stays possible.
    """
    sizes = data.domain.cardinalities(data.n_variables)
    counts = data.reduce(_value_counts) + smoothing
    totals = np.add.reduceat(counts, np.cumsum(sizes) - sizes)
    return smoothing * counts * np.repeat(sizes / np.where(totals > 0, totals, 1.0), sizes)


def _value_counts(data: Any) -> np.ndarray:
    return data.weights @ one_hot(data.domain, data.states, data.missing)


def one_hot(domain: AnyDomain, states: np.ndarray, missing: np.ndarray | None = None) -> Any:
    """Return rows of labels written one-hot, as a CSR array; missing cells have no entry."""
    starts = np.concatenate([[0], np.cumsum(domain.cardinalities(states.shape[1]))])
    codes = domain.to_codes(states).astype(np.int64) + starts[:-1]
    shape = (len(codes), int(starts[-1]))
    if missing is None:
        ends = np.arange(len(codes) + 1) * codes.shape[1]
        return sparse.csr_array((np.ones(codes.size), codes.ravel(), ends), shape)
    ends = np.concatenate([[0], np.cumsum((~missing).sum(axis=1))])
    return sparse.csr_array((np.ones(ends[-1]), codes[~missing], ends), shape)
