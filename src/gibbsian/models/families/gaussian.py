"""The Gaussian Markov random field: real variables that interact along the edges of a graph.

YK15 opens with the Gaussian as the example of learning by statistics: maximum likelihood needs only the mean and the
covariance of the data. The family is ``P(x) = exp(h . u - u' J u / 2) / Z`` in standard units,
``u = (x - centre) / scale``, so that neither rounding nor steps of learners depend on the units of the columns. Two
columns without an edge have a zero in J: they are independent given all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import FAMILIES, Parts, fields_alone
from gibbsian.models.file_parts import LARGEST, SIZE, PartsInFile, integers, reals
from gibbsian.models.interactions import Interactions
from gibbsian.models.variables import Variables, checked_weights

LOG_TWO_PI = float(np.log(2.0 * np.pi))


class Moments(NamedTuple):
    """The sufficient statistics of rows: the mean of ``y y'`` with ``y = (1, u)``, and the weight of the rows."""

    matrix: Floats
    total_weight: float

    @property
    def has_missing(self) -> bool:
        """False: moments describe complete rows."""
        return False

    @classmethod
    def of(cls, u: Floats, weights: Floats) -> Moments:
        """Return the moments of rows in standard units."""
        y = np.column_stack([np.ones(len(u)), u])
        return cls((y * (weights / weights.sum())[:, None]).T @ y, float(weights.sum()))

    def joined(self, other: Moments) -> Moments:
        """Return the moments of these rows and others: running means (YK15's online learning)."""
        weight = self.total_weight + other.total_weight
        return Moments((self.total_weight * self.matrix + other.total_weight * other.matrix) / weight, weight)

    @property
    def mean(self) -> Floats:
        """The mean of the rows."""
        return self.matrix[0, 1:]

    @property
    def covariance(self) -> Floats:
        """The covariance of the rows."""
        return self.matrix[1:, 1:] - np.outer(self.mean, self.mean)


class GaussianParts(NamedTuple):
    """Views of theta: fields h, the diagonal of the precision matrix J, and its entries along the edges."""

    fields: Floats
    diagonal: Floats
    couplings: Floats


class Solution(NamedTuple):
    """The distribution at one theta: mean and covariance in standard units, and log Z."""

    mean: Floats
    covariance: Floats
    log_partition: float

    def moments(self, weight: float = 1.0) -> Moments:
        """Return the moments of the distribution, as those of rows with a weight."""
        y = np.append(1.0, self.mean)
        return Moments(np.outer(y, y) + np.pad(self.covariance, (1, 0)), weight)


@FAMILIES.register("gaussian")
@dataclass(frozen=True, eq=False)
class GaussianFamily:
    """Normal distributions whose precision matrix has the zeros of a graph.

    Parameters
    ----------
    graph : Graph
        Which variables interact given all others.
    centre, scale : ndarray of shape (n_variables,)
        The standard units of theta, ``u = (x - centre) / scale``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> family = gb.GaussianFamily(gb.graphs.complete(2), np.zeros(2), np.ones(2))
    >>> model = gb.Model(family, np.array([0, 0, 2.0, 2.0, 1.0]))
    >>> family.moments(model.theta)[1].round(3).tolist()             # the inverse of [[2, 1], [1, 2]]
    [[0.667, -0.333], [-0.333, 0.667]]
    """

    graph: Graph
    centre: Floats
    scale: Floats

    registered_name: ClassVar[str]
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "edges": integers("edges", 2, below="all"),
        "centre": reals("n"),
        "scale": reals("n", low=1 / LARGEST),
        "theta": reals("parameters"),
    }
    n_hidden: ClassVar[int] = 0
    __getstate__ = fields_alone

    # -- structure ----------------------------------------------------------------------------------------------------
    @cached_property
    def variables(self) -> Variables:
        """Real variables."""
        return Variables.reals(self.graph.n_nodes)

    @property
    def n_parameters(self) -> int:
        """Number of fields, diagonal entries and edges."""
        return 2 * self.graph.n_nodes + self.graph.n_edges

    @property
    def penalised(self) -> Mask:
        """Mask of the couplings."""
        return np.arange(self.n_parameters) >= 2 * self.graph.n_nodes

    @cached_property
    def _terms(self) -> tuple[Integers, Integers, Floats]:
        """The indices a, b and the factor c of each statistic ``c y_a y_b`` with y = (1, u)."""
        n, (i, j) = self.graph.n_nodes, self.graph.edges.T
        nodes = np.arange(1, n + 1)
        factors = np.repeat([1.0, -0.5, -1.0], [n, n, len(i)])
        return np.concatenate([0 * nodes, nodes, i + 1]), np.concatenate([nodes, nodes, j + 1]), factors

    @property
    def statistic_range(self) -> tuple[Floats, Floats]:
        """Infinite, but zero at most for minus the squares."""
        square = self._terms[2] == -0.5
        return np.full(self.n_parameters, -np.inf), np.where(square, 0.0, np.inf)

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter."""
        edges = [f"{names[i]}*{names[j]}" for i, j in self.graph.edges.tolist()]
        return [*names, *(f"{name}^2" for name in names), *edges]

    def to_parts(self) -> Parts:
        """Return the graph and the standard units."""
        arrays = {**self.graph.to_arrays(), "centre": self.centre, "scale": self.scale}
        return Parts({"n_variables": self.graph.n_nodes}, arrays)

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from the parts of a model file."""
        units = (np.asarray(parts.arrays[name], np.float64) for name in ("centre", "scale"))
        return cls(Graph.from_arrays(dict(parts.arrays), len(variables)), *units)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Floats) -> GaussianParts:
        """Return views of the fields, the diagonal and the couplings."""
        n = self.graph.n_nodes
        return GaussianParts(theta[:n], theta[n : 2 * n], theta[2 * n :])

    def canonical(self, theta: Floats) -> Floats:
        """Return theta, which is unique."""
        return theta

    def theta_of(self, precision: Floats, mean: Floats) -> Floats:
        """Return the parameters of a precision matrix and a mean, both in standard units."""
        i, j = self.graph.edges.T
        return np.concatenate([precision @ mean, np.diag(precision), precision[i, j]])

    def precision(self, theta: Floats) -> Floats:
        """Return J in standard units."""
        a, b, _ = self._terms
        matrix = np.zeros((self.graph.n_nodes + 1, self.graph.n_nodes + 1))
        matrix[a, b] = matrix[b, a] = theta
        return matrix[1:, 1:]

    def interactions(self, theta: Floats) -> Interactions:
        """Return the partial correlations along the edges."""
        i, j = self.graph.edges.T
        pairs = tuple(map(tuple, self.graph.edges.tolist()))
        return Interactions(
            pairs, partial_correlations(self.precision(theta))[i, j], (self.graph.n_nodes,), "partial correlation"
        )

    # -- the distribution ---------------------------------------------------------------------------------------------
    def _solution(self, theta: Floats) -> Solution | None:
        """Return the distribution, or None if J is not positive definite."""
        try:
            factor = np.linalg.cholesky(self.precision(theta))
        except np.linalg.LinAlgError:
            return None
        inverse = np.linalg.inv(factor)
        covariance, fields = np.asarray(inverse.T @ inverse), self.split(theta).fields
        mean, log_det = covariance @ fields, 2.0 * float(np.log(np.diag(factor)).sum())
        twice = fields @ mean + self.graph.n_nodes * LOG_TWO_PI - log_det
        return Solution(mean, covariance, float(twice) / 2.0 + float(np.log(self.scale).sum()))

    def solve(self, theta: Floats) -> Solution:
        """Return the distribution; an error if J is not positive definite."""
        solution = self._solution(theta)
        if solution is None:
            raise ArgumentError("theta must give a positive definite precision matrix")
        return solution

    def require_distribution(self, theta: Floats) -> None:
        """Raise `ArgumentError` unless J is positive definite."""
        self.solve(theta)

    def moments(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the covariance in the units of the columns."""
        mean, covariance, _ = self.solve(theta)
        return self.centre + self.scale * mean, covariance * np.outer(self.scale, self.scale)

    def log_partition(self, theta: Floats) -> float:
        """Return log Z, or infinity if J is not positive definite."""
        solution = self._solution(theta)
        return np.inf if solution is None else solution.log_partition

    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return ``h . u - u' J u / 2`` of each row."""
        return self.statistics(x) @ theta

    # -- statistics ---------------------------------------------------------------------------------------------------
    def standard(self, x: States) -> Floats:
        """Return rows in standard units."""
        return (np.asarray(x, dtype=np.float64) - self.centre) / self.scale

    def statistics(self, x: States) -> Floats:
        """Return ``(u_i, -u_i^2 / 2, -u_i u_j)`` of each row."""
        a, b, factors = self._terms
        y: Floats = np.column_stack([np.ones(len(x)), self.standard(x)])
        return factors * y[:, a] * y[:, b]

    def mean_statistics(self, x: States, weights: Floats | None = None) -> Floats:
        """Return the weighted mean of the statistics."""
        return self.statistics_of(Moments.of(self.standard(x), np.ones(len(x)) if weights is None else weights))

    def statistics_of(self, moments: Moments) -> Floats:
        """Return the mean statistics of rows with these moments."""
        a, b, factors = self._terms
        return factors * moments.matrix[a, b]

    def present_sums(self, x: States, present: Mask, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the weighted sum of each statistic over the rows where its cells are present, and their weight."""
        a, b, factors = self._terms
        normalised = checked_weights(weights, len(x))[:, None]
        indicators: Floats = np.column_stack([np.ones(len(x)), present])
        y = np.where(indicators, np.column_stack([np.ones(len(x)), self.standard(x)]), 0.0)
        return factors * ((y * normalised).T @ y)[a, b], ((indicators * normalised).T @ indicators)[a, b]

    def expected_statistics(self, theta: Floats) -> Floats:
        """Return the expectation of the statistics: the gradient of log Z."""
        return self.statistics_of(self.solve(theta).moments())

    def statistic_variances(self, theta: Floats) -> Floats:
        """Return the variance of each statistic: the diagonal of the information."""
        m, wide, second = self._three_moments(theta)
        a, b, factors = self._terms
        pairs = (
            second[a, a] * wide[b, b] + second[a, b] * wide[a, b] + m[a] * m[b] * wide[a, b] + m[b] ** 2 * wide[a, a]
        )
        return factors**2 * pairs

    def information(self, theta: Floats) -> Floats:
        """Return the covariance of the statistics, by Isserlis' theorem for products of two variables."""
        m, wide, second = self._three_moments(theta)
        a, b, factors = self._terms
        pairs = second[np.ix_(a, a)] * wide[np.ix_(b, b)] + second[np.ix_(a, b)] * wide[np.ix_(b, a)]
        pairs += np.outer(m[b], m[a]) * wide[np.ix_(a, b)] + np.outer(m[b], m[b]) * wide[np.ix_(a, a)]
        return np.outer(factors, factors) * pairs

    def _three_moments(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean, covariance and second moments of ``y = (1, u)``."""
        solution = self.solve(theta)
        return np.append(1.0, solution.mean), np.pad(solution.covariance, (1, 0)), solution.moments().matrix


def gaussian_loss(family: GaussianFamily, theta: Floats, moments: Moments) -> tuple[float, Floats]:
    """Return minus the mean log-likelihood of rows with these moments, and its gradient; infinite if J is invalid."""
    data, solution = family.statistics_of(moments), family._solution(theta)
    if solution is None:
        return np.inf, np.full_like(data, np.inf)
    value = solution.log_partition - float(data @ theta)
    return value, family.statistics_of(solution.moments()) - data


def conditional(covariance: Floats, mask: Mask) -> tuple[Floats, Floats]:
    """Return the regression coefficients of the masked columns on the others, and the residual covariance."""
    across = covariance[np.ix_(~mask, mask)]
    coefficients = np.asarray(np.linalg.solve(covariance[np.ix_(~mask, ~mask)], across), np.float64)
    return coefficients, covariance[np.ix_(mask, mask)] - across.T @ coefficients


def partial_correlations(precision: Floats) -> Floats:
    """Return the matrix of correlations of pairs of variables given all others."""
    widths = np.sqrt(np.diag(precision))
    partial: Floats = -precision / np.outer(widths, widths)
    np.fill_diagonal(partial, 1.0)
    return partial
