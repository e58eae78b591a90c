"""The Gaussian Markov random field: real variables, of which only neighbours in a graph interact.

YK15 opens with the Gaussian as the example of learning by statistics: the mean and the covariance of the data are all
that maximum likelihood asks for. Here ``P(x) = exp(h . u - u' J u / 2) / Z`` over numbers in standard units,
``u = (x - centre) / scale``, so that neither rounding nor steps of learners depend on the units of the columns. An
absent edge is a zero of J: both columns are independent given all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.family import FAMILIES, Array, Parts, fields_alone
from gibbsian.models.file_parts import LARGEST, SIZE, PartsInFile, reals
from gibbsian.models.interactions import Interactions
from gibbsian.models.states import checked_shares
from gibbsian.models.variables import Variables

LOG_TWO_PI = float(np.log(2.0 * np.pi))


class Moments(NamedTuple):
    """What a Gaussian sees of rows: the mean of ``y y'`` with ``y = (1, u)``, and the weight of the rows."""

    matrix: Array
    total_weight: float

    @property
    def has_missing(self) -> bool:
        """False: moments are those of whole rows."""
        return False

    @classmethod
    def of(cls, u: Array, weights: Array) -> Moments:
        """Take the moments of rows in standard units."""
        y = np.column_stack([np.ones(len(u)), u])
        return cls((y * (weights / weights.sum())[:, None]).T @ y, float(weights.sum()))

    def joined(self, other: Moments) -> Moments:
        """Return the moments of these rows and others: running means (YK15's online learning)."""
        weight = self.total_weight + other.total_weight
        return Moments((self.total_weight * self.matrix + other.total_weight * other.matrix) / weight, weight)

    @property
    def mean(self) -> Array:
        """The mean of the rows."""
        return self.matrix[0, 1:]

    @property
    def covariance(self) -> Array:
        """The covariance of the rows."""
        return self.matrix[1:, 1:] - np.outer(self.mean, self.mean)


class GaussianParts(NamedTuple):
    """Views of theta: fields h, the diagonal of the precision matrix J, and its entries along the edges."""

    fields: Array
    diagonal: Array
    couplings: Array


class Solution(NamedTuple):
    """The distribution at some theta, in standard units: mean, covariance and ``log det J``."""

    mean: Array
    covariance: Array
    log_det: float

    def moments(self, weight: float = 1.0) -> Moments:
        """Return the moments of the distribution, as if of rows of some weight."""
        y = np.append(1.0, self.mean)
        return Moments(np.outer(y, y) + np.pad(self.covariance, (1, 0)), weight)


@FAMILIES.register("gaussian", numbers=True)
@dataclass(frozen=True, eq=False)
class GaussianFamily:
    """Normal distributions whose precision matrix has the zeros of a graph.

    Parameters
    ----------
    graph : Graph
        Which variables interact given all others.
    centre, scale : ndarray of shape (n_variables,)
        What standard units are: theta is about ``u = (x - centre) / scale``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> family = gb.GaussianFamily(gb.graphs.complete(2), np.zeros(2), np.ones(2))
    >>> model = gb.Model(family, np.array([0, 0, 2.0, 2.0, 1.0]))
    >>> family.covariance(model.theta).round(3).tolist()             # the inverse of [[2, 1], [1, 2]]
    [[0.667, -0.333], [-0.333, 0.667]]
    """

    graph: Graph
    centre: Array
    scale: Array

    registered_name: ClassVar[str]
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "centre": reals("n"),
        "scale": reals("n", low=1 / LARGEST),
        "theta": reals("parameters"),
    }
    n_hidden: ClassVar[int] = 0
    __getstate__ = fields_alone

    # -- structure ----------------------------------------------------------------------------------------------------
    @cached_property
    def variables(self) -> Variables:
        """Real numbers."""
        return Variables.reals(self.graph.n_nodes)

    @property
    def n_parameters(self) -> int:
        """Fields, the diagonal and the edges."""
        return 2 * self.graph.n_nodes + self.graph.n_edges

    @property
    def penalised(self) -> Array:
        """The interactions."""
        return np.arange(self.n_parameters) >= 2 * self.graph.n_nodes

    @cached_property
    def _terms(self) -> tuple[Array, Array, Array]:
        """Every statistic is ``c y_a y_b`` with y = (1, u): a, b and c."""
        n, (i, j) = self.graph.n_nodes, self.graph.edges.T
        nodes = np.arange(1, n + 1)
        factors = np.repeat([1.0, -0.5, -1.0], [n, n, len(i)])
        return np.concatenate([0 * nodes, nodes, i + 1]), np.concatenate([nodes, nodes, j + 1]), factors

    @property
    def statistic_range(self) -> tuple[Array, Array]:
        """Unbounded but for the squares, which are not positive."""
        square = self._terms[2] == -0.5
        return np.full(self.n_parameters, -np.inf), np.where(square, 0.0, np.inf)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter."""
        edges = [f"{names[i]}*{names[j]}" for i, j in self.graph.edges.tolist()]
        return [*names, *(f"{name}^2" for name in names), *edges]

    def to_parts(self) -> Parts:
        """Return the graph and the units."""
        arrays = {**self.graph.to_arrays(), "centre": self.centre, "scale": self.scale}
        return Parts({"n_variables": self.graph.n_nodes}, arrays)

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        arrays = parts.arrays
        return cls(Graph.from_arrays(dict(arrays), len(variables)), arrays["centre"], arrays["scale"])

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Array) -> GaussianParts:
        """Return views of the fields, the diagonal and the couplings."""
        n = self.graph.n_nodes
        return GaussianParts(theta[:n], theta[n : 2 * n], theta[2 * n :])

    def canonical(self, theta: Array) -> Array:
        """Return theta, which has no other gauge."""
        return theta

    def independent(self) -> Array:
        """Return the parameters of independent variables with these centres and scales."""
        return np.repeat([0.0, 1.0, 0.0], [self.graph.n_nodes, self.graph.n_nodes, self.graph.n_edges])

    def theta_of(self, precision: Array, mean: Array) -> Array:
        """Return the parameters of a precision matrix and a mean, both in standard units."""
        i, j = self.graph.edges.T
        return np.concatenate([precision @ mean, np.diag(precision), precision[i, j]])

    def precision(self, theta: Array) -> Array:
        """Return J in standard units."""
        a, b, _ = self._terms
        matrix = np.zeros((self.graph.n_nodes + 1, self.graph.n_nodes + 1))
        matrix[a, b] = matrix[b, a] = theta
        return matrix[1:, 1:]

    def partial_correlations(self, theta: Array) -> Array:
        """Return the correlation of each pair given all other columns."""
        precision = self.precision(theta)
        widths = np.sqrt(np.diag(precision))
        partial = -precision / np.outer(widths, widths)
        np.fill_diagonal(partial, 1.0)
        return partial

    def interactions(self, theta: Array) -> Interactions:
        """Return the partial correlations along the edges."""
        edges = self.graph.edges
        partial = self.partial_correlations(theta)[tuple(edges.T)]
        pairs = tuple(zip(*edges.T.tolist(), strict=True))
        return Interactions(pairs, partial, (self.graph.n_nodes,), "partial correlation")

    # -- the distribution ---------------------------------------------------------------------------------------------
    def solution(self, theta: Array) -> Solution | None:
        """Return mean, covariance and ``log det J``; None where J is not positive definite: no distribution has it."""
        try:
            factor = np.linalg.cholesky(self.precision(theta))
        except np.linalg.LinAlgError:
            return None
        inverse = np.linalg.inv(factor)
        covariance = inverse.T @ inverse
        mean = covariance @ self.split(theta).fields
        return Solution(mean, covariance, 2.0 * float(np.log(np.diag(factor)).sum()))

    def solve(self, theta: Array) -> Solution:
        """Return mean, covariance and ``log det J``, and refuse parameters without a distribution."""
        found = self.solution(theta)
        if found is None:
            raise ArgumentError("theta must give a positive definite precision matrix")
        return found

    def require_distribution(self, theta: Array) -> None:
        """Raise `ArgumentError` unless J is positive definite."""
        self.solve(theta)

    def mean(self, theta: Array) -> Array:
        """Return the mean in the units of the columns."""
        return self.centre + self.scale * self.solve(theta).mean

    def covariance(self, theta: Array) -> Array:
        """Return the covariance in the units of the columns."""
        return self.solve(theta).covariance * np.outer(self.scale, self.scale)

    def log_partition(self, theta: Array) -> float:
        """Return log Z in closed form; infinite where J is not positive definite."""
        found = self.solution(theta)
        return np.inf if found is None else self._log_partition(theta, found)

    def _log_partition(self, theta: Array, found: Solution) -> float:
        """Return ``(h . mean + n log 2 pi - log det J) / 2``, and what the units add."""
        n = self.graph.n_nodes
        twice = float(self.split(theta).fields @ found.mean + n * LOG_TWO_PI - found.log_det)
        return twice / 2.0 + float(np.log(self.scale).sum())

    def log_weights(self, theta: Array, x: Array) -> Array:
        """Return ``h . u - u' J u / 2`` of each row."""
        return self.statistics(x) @ theta

    # -- statistics ---------------------------------------------------------------------------------------------------
    def standard(self, x: Array) -> Array:
        """Return numbers in standard units."""
        return (np.asarray(x, dtype=np.float64) - self.centre) / self.scale

    def statistics(self, x: Array) -> Array:
        """Return ``(u_i, -u_i^2 / 2, -u_i u_j)`` of each row."""
        a, b, factors = self._terms
        y = np.column_stack([np.ones(len(x)), self.standard(x)])
        return factors * y[:, a] * y[:, b]

    def mean_statistics(self, x: Array, weights: Array | None = None) -> Array:
        """Return the weighted mean of the statistics."""
        return self.statistics_of(Moments.of(self.standard(x), np.ones(len(x)) if weights is None else weights))

    def statistics_of(self, moments: Moments) -> Array:
        """Return the mean statistics of rows with these moments."""
        a, b, factors = self._terms
        return factors * moments.matrix[a, b]

    def present_sums(self, x: Array, present: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """Return sums of the statistics over the rows that show them, and the shares of the weight of these rows."""
        a, b, factors = self._terms
        shares = checked_shares(weights, len(x))[:, None]
        shown = np.column_stack([np.ones(len(x)), present])
        y = np.where(shown, np.column_stack([np.ones(len(x)), self.standard(x)]), 0.0)
        return factors * ((y * shares).T @ y)[a, b], ((shown * shares).T @ shown)[a, b]

    def expected_statistics(self, theta: Array) -> Array:
        """Return the expectation of the statistics: the gradient of log Z."""
        return self.statistics_of(self.solve(theta).moments())

    def statistic_variances(self, theta: Array) -> Array:
        """Return the variance of each statistic: the diagonal of the information."""
        m, wide, second = self._three_moments(theta)
        a, b, factors = self._terms
        pairs = (
            second[a, a] * wide[b, b] + second[a, b] * wide[a, b] + m[a] * m[b] * wide[a, b] + m[b] ** 2 * wide[a, a]
        )
        return factors**2 * pairs

    def information(self, theta: Array) -> Array:
        """Return the covariance of the statistics, by Isserlis' theorem for products of two variables."""
        m, wide, second = self._three_moments(theta)
        a, b, factors = self._terms
        pairs = second[np.ix_(a, a)] * wide[np.ix_(b, b)] + second[np.ix_(a, b)] * wide[np.ix_(b, a)]
        pairs += np.outer(m[b], m[a]) * wide[np.ix_(a, b)] + np.outer(m[b], m[b]) * wide[np.ix_(a, a)]
        return np.outer(factors, factors) * pairs

    def _three_moments(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return mean, covariance and second moments of ``y = (1, u)``."""
        found = self.solve(theta)
        return np.append(1.0, found.mean), np.pad(found.covariance, (1, 0)), found.moments().matrix

    # -- likelihood ---------------------------------------------------------------------------------------------------
    def loss(self, theta: Array, moments: Moments) -> tuple[float, Array]:
        """Return minus the mean log-likelihood of rows with these moments, and its gradient."""
        seen, found = self.statistics_of(moments), self.solution(theta)
        if found is None:
            return np.inf, np.full_like(seen, np.inf)
        value = self._log_partition(theta, found) - float(seen @ theta)
        return value, self.statistics_of(found.moments()) - seen

    def expected_moments(self, theta: Array, x: Array, missing: Array | None, weights: Array) -> Moments:
        """Return the moments of rows given their present cells, the E step of EM; NaN without a distribution."""
        size, found = self.graph.n_nodes + 1, self.solution(theta)
        if found is None:
            return Moments(np.full((size, size), np.nan), np.nan)
        u, matrix = self.standard(x), np.zeros((size, size))
        for rows, holes in patterns(missing, x.shape):
            weight = weights[rows].sum()
            if weight == 0:
                continue
            carry, left = conditional(found.covariance, holes)
            filled = u[rows].copy()
            filled[:, holes] = found.mean[holes] + (filled[:, ~holes] - found.mean[~holes]) @ carry
            matrix += weight * Moments.of(filled, weights[rows]).matrix
            inside = np.append(False, holes)
            matrix[np.ix_(inside, inside)] += weight * left
        return Moments(matrix / weights.sum(), float(weights.sum()))


def conditional(covariance: Array, holes: Array) -> tuple[Array, Array]:
    """Return how the mean of the holes follows from the other columns, and the covariance that is left to them."""
    across = covariance[np.ix_(~holes, holes)]
    carry = np.linalg.solve(covariance[np.ix_(~holes, ~holes)], across)
    return carry, covariance[np.ix_(holes, holes)] - across.T @ carry


def patterns(missing: Array | None, shape: tuple[int, ...]) -> Iterator[tuple[Array, Array]]:
    """Yield the rows that miss the same cells, with a mask of these."""
    if missing is None:
        yield np.arange(shape[0]), np.zeros(shape[1], bool)
        return
    known, place = np.unique(missing, axis=0, return_inverse=True)
    for number, holes in enumerate(known):
        yield np.flatnonzero(place.ravel() == number), holes
