"""Hard k-means (YK15, "K-means") by Lloyd's steps, with the energy of eq. 1 traced.

``E(V, m) = sum_ia V_ia |x_i - m_a|^2`` falls in both halves of a step: the means for a partition, the partition for
means. The nearest mean comes from one matrix product, in which digits cancel; the energy and the new means come from
the differences themselves. A class that loses all its rows is given the row farthest from its mean, which lowers the
energy too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gibbsian.backends.numba.mixtures import class_shifts, settle
from gibbsian.mixtures.exponential import nearest
from gibbsian.mixtures.rows import WeightedRows


@dataclass(frozen=True)
class KMeansPartition:
    """Means and what they cost.

    Parameters
    ----------
    means : array of shape (n_components, n_columns)
        The means m_a.
    energy : float
        YK15 eq. 1 with every row at its nearest mean.
    trouble : str
        What is wrong with the solution, in words.
    labels : array of int, optional
        The class of each row, while a fit goes on.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.kmeans import KMeansPartition
    >>> KMeansPartition(np.zeros((1, 2)), 3.0).energy
    3.0
    """

    means: np.ndarray
    energy: float
    trouble: str = ""
    labels: np.ndarray | None = field(default=None, repr=False)


@dataclass(frozen=True)
class KMeansProblem:
    """Hard k-means for the EM loop.

    Parameters
    ----------
    data : WeightedRows
        Distinct rows with weights.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures import em
    >>> from gibbsian.mixtures.kmeans import KMeansProblem
    >>> from gibbsian.mixtures.rows import collapse
    >>> problem = KMeansProblem(collapse([[0.0], [1.0], [10.0], [11.0]]))
    >>> em.iterate(problem, problem.from_means(np.array([[0.0], [1.0]])), 100, 0.0).free_energies.round(2)
    array([181. ,  21.56,   1.  ,   1.  ])
    """

    data: WeightedRows
    centre: np.ndarray = field(init=False, repr=False)
    centred: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        centre = np.average(self.data.rows, axis=0, weights=self.data.weights / self.data.weights.max())
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "centred", self.data.rows - centre)

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return self.data.total_weight

    def from_means(self, means: np.ndarray) -> KMeansPartition:
        """Return where a fit begins."""
        return self._partition(np.array(means, dtype=np.float64), None)

    def expect(self, mixture: KMeansPartition) -> tuple[float, None]:
        """Return the energy; the partition is found within the step."""
        return mixture.energy, None

    def maximise(self, expected: None, before: KMeansPartition) -> KMeansPartition:
        """Move each mean to the middle of its rows, and each row to its nearest mean."""
        rows, weights, labels = self.data.rows, self.data.weights, before.labels
        if labels is None:
            labels = nearest(self.centred, before.means - self.centre)
        mass, shifts = class_shifts(rows, weights, before.means, labels)
        if not mass.all():
            labels = _refilled(rows, before.means, labels)
            mass, shifts = class_shifts(rows, weights, before.means, labels)
        return self._partition(before.means + shifts / mass[:, None], labels)

    def _partition(self, means: np.ndarray, before: np.ndarray | None) -> KMeansPartition:
        labels = nearest(self.centred, means - self.centre)
        energy = settle(self.data.rows, self.data.weights, means, labels.copy() if before is None else before, labels)
        return KMeansPartition(means, float(energy), labels=labels)


def _refilled(rows: np.ndarray, means: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Give every class without rows the row farthest from its mean, of classes that keep another."""
    labels = labels.copy()
    counts = np.bincount(labels, minlength=len(means))
    differences = rows - means[labels]
    farthest = iter(np.argsort(-np.einsum("ij,ij->i", differences, differences), kind="stable"))
    for empty in np.flatnonzero(counts == 0):
        row = next(i for i in farthest if counts[labels[i]] > 1)
        counts[labels[row]] -= 1
        labels[row] = empty
        counts[empty] = 1
    return labels


def energy(data: WeightedRows, means: np.ndarray) -> float:
    """Return YK15 eq. 1, differences squared one by one so that nothing cancels.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.kmeans import energy
    >>> from gibbsian.mixtures.rows import collapse
    >>> energy(collapse([[0.0], [2.0]]), np.array([[0.5], [9.0]]))
    2.5
    """
    differences = data.rows - means[nearest_mean(data, means)]
    return float(data.weights @ np.einsum("ij,ij->i", differences, differences))


def nearest_mean(data: WeightedRows, means: np.ndarray) -> np.ndarray:
    """Return the nearest mean of each distinct row, distances taken from the middle of the means.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.kmeans import nearest_mean
    >>> from gibbsian.mixtures.rows import collapse
    >>> nearest_mean(collapse([[1e9], [1e9 + 3]]), np.array([[1e9 + 4], [1e9 + 1]]))
    array([1, 0])
    """
    middle = means.mean(axis=0)
    return nearest(data.rows - middle, means - middle)
