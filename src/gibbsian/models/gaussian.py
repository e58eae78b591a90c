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
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.domain import REALS
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import MODELS, ExponentialFamily
from gibbsian.models.file_parts import LARGEST, SIZE, reals
from gibbsian.models.interactions import Interactions
from gibbsian.models.parameters import checked_theta
from gibbsian.models.states import checked_shares

LOG_TWO_PI = float(np.log(2.0 * np.pi))


class Moments(NamedTuple):
    """What a Gaussian sees of data: the mean of ``y y'`` with ``y = (1, u)``, and the weight of the rows."""

    matrix: np.ndarray
    weight: float

    @property
    def has_missing(self) -> bool:
        """No cell is missing any more."""
        return False

    @property
    def total_weight(self) -> float:
        """The weight of the rows."""
        return self.weight

    @classmethod
    def of(cls, u: np.ndarray, weights: np.ndarray) -> Moments:
        """Take the moments of rows in standard units."""
        y = np.column_stack([np.ones(len(u)), u])
        return cls((y * (weights / weights.sum())[:, None]).T @ y, float(weights.sum()))

    def joined(self, other: Moments) -> Moments:
        """Return the moments of these rows and others: running means (YK15's online learning)."""
        weight = self.weight + other.weight
        return Moments((self.weight * self.matrix + other.weight * other.matrix) / weight, weight)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the rows."""
        return self.matrix[1:, 1:] - np.outer(self.matrix[0, 1:], self.matrix[0, 1:])


@MODELS.register("gaussian", numbers=True)
@dataclass(frozen=True, eq=False)
class GaussianModel(ExponentialFamily):
    """A normal distribution whose precision matrix has the zeros of a graph.

    Parameters
    ----------
    graph : Graph
        Which variables interact given all others.
    theta : ndarray
        Fields h, the diagonal of J, then its entries along the edges, all in standard units.
    centre, scale : ndarray of shape (n_variables,)
        What standard units are.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.GaussianModel(gb.graphs.complete(2), np.array([0, 0, 2.0, 2.0, 1.0]), np.zeros(2), np.ones(2))
    >>> model.covariance.round(3).tolist()                            # the inverse of [[2, 1], [1, 2]]
    [[0.667, -0.333], [-0.333, 0.667]]
    """

    graph: Graph
    theta: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    parts_in_file: ClassVar[dict[str, Any]] = {
        "n_variables": SIZE,
        "centre": reals("n"),
        "scale": reals("n", low=1 / LARGEST),
    }
    domain: ClassVar[Any] = REALS
    of_numbers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        n, edges = self.graph.n_nodes, self.graph.n_edges
        what = f"{n} fields, {n} entries of the diagonal and {edges} of edges"
        object.__setattr__(self, "theta", checked_theta(self.theta, 2 * n + edges, what))

    @classmethod
    def apart(cls, graph: Graph, centre: np.ndarray, scale: np.ndarray) -> Self:
        """Return independent variables with these means and standard deviations."""
        n = graph.n_nodes
        return cls(graph, np.concatenate([np.zeros(n), np.ones(n), np.zeros(graph.n_edges)]), centre, scale)

    def with_precision(self, precision: np.ndarray, moments: Moments) -> Self:
        """Return the model with a precision matrix in standard units and the mean of moments."""
        i, j = self.graph.edges.T
        return self.replace(np.concatenate([precision @ moments.matrix[0, 1:], np.diag(precision), precision[i, j]]))

    @classmethod
    def from_parts(cls, header: dict[str, Any], tensors: dict[str, np.ndarray], domain: Any) -> Self:
        """Put a model together again, which must have a density."""
        model = super().from_parts(header, tensors, domain)
        if not model.is_proper:
            raise ArgumentError("theta must give a positive definite precision matrix")
        return model

    # -- parts --------------------------------------------------------------------------------------------------------
    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.graph.n_nodes

    @property
    def penalised(self) -> np.ndarray:
        """The interactions."""
        return np.arange(self.theta.size) >= 2 * self.n_variables

    @cached_property
    def _terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every statistic is ``c y_a y_b`` with y = (1, u): a, b and c."""
        n, (i, j) = self.n_variables, self.graph.edges.T
        nodes = np.arange(1, n + 1)
        factors = np.repeat([1.0, -0.5, -1.0], [n, n, len(i)])
        return np.concatenate([0 * nodes, nodes, i + 1]), np.concatenate([nodes, nodes, j + 1]), factors

    @cached_property
    def precision(self) -> np.ndarray:
        """J in standard units."""
        a, b, _ = self._terms
        matrix = np.zeros((self.n_variables + 1, self.n_variables + 1))
        matrix[a, b] = matrix[b, a] = self.theta
        return matrix[1:, 1:]

    @property
    def partial_correlations(self) -> np.ndarray:
        """The correlation of each pair given all other columns."""
        widths = np.sqrt(np.diag(self.precision))
        partial = -self.precision / np.outer(widths, widths)
        np.fill_diagonal(partial, 1.0)
        return partial

    def interactions(self) -> Interactions:
        """Return the partial correlations along the edges."""
        edges = self.graph.edges
        partial = self.partial_correlations[tuple(edges.T)]
        return Interactions(
            tuple(zip(*edges.T.tolist(), strict=True)), partial, self._sizes_of_layers, "partial correlation"
        )

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Mean and covariance in standard units, and log det J; None where J is not positive definite."""
        try:
            factor = np.linalg.cholesky(self.precision)
        except np.linalg.LinAlgError:
            return None
        inverse = np.linalg.inv(factor)
        covariance = inverse.T @ inverse
        return covariance @ self.theta[: self.n_variables], covariance, 2.0 * float(np.log(np.diag(factor)).sum())

    @property
    def is_proper(self) -> bool:
        """Whether J is positive definite, so that there is a distribution."""
        return self._solved is not None

    @property
    def standard_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance in standard units."""
        assert self._solved is not None
        return self._solved[:2]

    @property
    def mean(self) -> np.ndarray:
        """The mean."""
        return self.centre + self.scale * self.standard_moments[0]

    @property
    def covariance(self) -> np.ndarray:
        """The covariance."""
        return self.standard_moments[1] * np.outer(self.scale, self.scale)

    @property
    def log_partition(self) -> float:
        """log Z in closed form; infinite where J is not positive definite."""
        if self._solved is None:
            return np.inf
        mean, _, log_det = self._solved
        n = self.n_variables
        return float(self.theta[:n] @ mean + n * LOG_TWO_PI - log_det) / 2.0 + float(np.log(self.scale).sum())

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter."""
        edges = [f"{names[i]}*{names[j]}" for i, j in self.graph.edges.tolist()]
        return [*names, *(f"{name}^2" for name in names), *edges]

    # -- states -------------------------------------------------------------------------------------------------------
    def standard(self, x: np.ndarray) -> np.ndarray:
        """Return numbers in standard units."""
        return (np.asarray(x, dtype=np.float64) - self.centre) / self.scale

    def statistics(self, x: np.ndarray) -> np.ndarray:
        """Return ``(u_i, -u_i^2 / 2, -u_i u_j)`` of each row."""
        a, b, factors = self._terms
        y = self._with_one(x)
        return factors * y[:, a] * y[:, b]

    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted mean of the statistics."""
        a, b, factors = self._terms
        return factors * Moments.of(self.standard(x), np.ones(len(x)) if weights is None else weights).matrix[a, b]

    def present_sums(
        self, x: np.ndarray, present: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of the statistics over the rows that show them, and the shares of the weight of these rows."""
        a, b, factors = self._terms
        shares = checked_shares(weights, len(x))
        shown = np.column_stack([np.ones(len(x)), present])
        y = np.where(shown, self._with_one(x), 0.0)
        return factors * ((y * shares[:, None]).T @ y)[a, b], ((shown * shares[:, None]).T @ shown)[a, b]

    def statistic_variances(self) -> np.ndarray:
        """Return the variance of each statistic: the diagonal of the information."""
        mean, covariance = self.standard_moments
        m, wide, second = np.append(1.0, mean), np.pad(covariance, (1, 0)), self.own_moments(1.0).matrix
        a, b, factors = self._terms
        pairs = (
            second[a, a] * wide[b, b] + second[a, b] * wide[a, b] + m[a] * m[b] * wide[a, b] + m[b] ** 2 * wide[a, a]
        )
        return factors**2 * pairs

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return ``u' J u / 2 - h . u`` of each row."""
        return -self.statistics(x) @ self.theta

    def _with_one(self, x: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(x)), self.standard(x)])

    def expected_statistics(self) -> np.ndarray:
        """Return the expectation of the statistics."""
        a, b, factors = self._terms
        return factors * self.own_moments(1.0).matrix[a, b]

    def own_moments(self, weight: float) -> Moments:
        """Return the moments of the distribution itself, as if of rows of some weight."""
        mean, covariance = self.standard_moments
        m = np.append(1.0, mean)
        return Moments(np.outer(m, m) + np.pad(covariance, (1, 0)), weight)

    # -- what learners see --------------------------------------------------------------------------------------------
    def moments(self, data: Any) -> Moments:
        """Return the moments of complete rows in this model's units, or moments that are known."""
        return data if isinstance(data, Moments) else Moments.of(self.standard(data.states), data.weights)

    def completions(self, data: Any) -> Completions:
        """Return what completes rows under a model: the E step of EM, in closed form."""
        return Completions(data)

    def moment_loss(self, moments: Moments) -> tuple[float, np.ndarray]:
        """Return minus the mean log-likelihood of rows with these moments, and its gradient."""
        a, b, factors = self._terms
        seen = factors * moments.matrix[a, b]
        if not self.is_proper:
            return np.inf, np.full_like(seen, np.inf)
        return self.log_partition - float(seen @ self.theta), self.expected_statistics() - seen

    def information(self) -> np.ndarray:
        """Return the covariance of the statistics, by Isserlis' theorem for products of two variables."""
        mean, covariance = self.standard_moments
        m, wide, second = np.append(1.0, mean), np.pad(covariance, (1, 0)), self.own_moments(1.0).matrix
        a, b, factors = self._terms
        pairs = second[np.ix_(a, a)] * wide[np.ix_(b, b)] + second[np.ix_(a, b)] * wide[np.ix_(b, a)]
        pairs += np.outer(m[b], m[a]) * wide[np.ix_(a, b)] + np.outer(m[b], m[b]) * wide[np.ix_(a, a)]
        return np.outer(factors, factors) * pairs


class Completions:
    """Rows of which some numbers are missing, to be completed under a model."""

    def __init__(self, data: Any):
        self.data = data

    def under(self, model: GaussianModel) -> Moments:
        """Return the expected moments of the rows given their present cells; NaN where there is no distribution."""
        size = model.n_variables + 1
        if not model.is_proper:
            return Moments(np.full((size, size), np.nan), np.nan)
        (mean, covariance), matrix = model.standard_moments, np.zeros((size, size))
        states, weights = model.standard(self.data.states), self.data.weights
        for rows, holes in patterns(self.data):
            weight = weights[rows].sum()
            if weight == 0:
                continue
            carry, left = conditional(covariance, holes)
            filled = states[rows].copy()
            filled[:, holes] = mean[holes] + (filled[:, ~holes] - mean[~holes]) @ carry
            matrix += weight * Moments.of(filled, weights[rows]).matrix
            inside = np.append(False, holes)
            matrix[np.ix_(inside, inside)] += weight * left
        return Moments(matrix / weights.sum(), float(weights.sum()))


def conditional(covariance: np.ndarray, holes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how the mean of the holes follows from the other columns, and the covariance that is left to them."""
    across = covariance[np.ix_(~holes, holes)]
    carry = np.linalg.solve(covariance[np.ix_(~holes, ~holes)], across)
    return carry, covariance[np.ix_(holes, holes)] - across.T @ carry


def patterns(data: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows that miss the same cells, with a mask of these."""
    if data.missing is None:
        yield np.arange(data.n_states), np.zeros(data.n_variables, bool)
        return
    known, place = np.unique(data.missing, axis=0, return_inverse=True)
    for number, holes in enumerate(known):
        yield np.flatnonzero(place.ravel() == number), holes
