"""What a parameter weighs against another: approximate inverse Hessians of objectives, made of moments of the columns.

In units of spins and about some mean, the loss of variable i bends with its field by ``w_i(x)`` in row x. Its bias
then goes with the means of the other columns under these weights, and with biases taken out a coupling bends by
``D_ij = w_i V_ij + w_j V_ji`` and by the ridge; V are the variances under the weights, which two-valued columns have
from their means. Between couplings we take the correlations R of the columns for those under any weights: scaled by the
root of D, the curvature acts as ``J -> (R J + J R) / 2``, which a division in a basis of eigenvectors inverts; that of
the likelihood, of independent columns, as ``J -> R J R``.

Weights are known at independent columns and, from one pass over the rows, anywhere else. They are those of the slopes:
where a model is right, ``2 E[phi''(d)] = -E[phi'(d)]`` for every loss of flip costs whose minimum is the model, and
slopes do not vanish in rows that a step too far has put on the wrong side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.graphs import Graph

Metric = Callable[[np.ndarray], np.ndarray]
"""Maps the gradient of parameters about the mean (see `centring`) to a step: an approximate inverse Hessian."""

# Curvatures of parameters, and of couplings of all pairs, below these shares of the largest are taken for these.
_LIGHTEST, _FLATTEST = 1e-6, 1e-8
# A variable of a smaller share of the largest weight, as a constant column, bends much more as soon as it moves.
_LEAST_WEIGHT = 5e-3
# This share of the correlations is left out: steps from independent columns go too far where columns copy others.
_SHRUNK = 0.05


@dataclass(frozen=True, eq=False)
class DiagonalMetric:
    """A curvature for each parameter about the mean, on any graph and for products of any size."""

    curvatures: np.ndarray

    def __call__(self, gradient: np.ndarray) -> np.ndarray:
        """Return the step along a gradient."""
        return gradient / self.curvatures

    def on_device(self, twins: Any) -> DiagonalMetric:
        """Return the same for tensors, by `backends.torch.vectors`."""
        return DiagonalMetric(twins.put(self.curvatures))


def diagonal_metric(curvatures: np.ndarray, ridges: np.ndarray) -> DiagonalMetric:
    """Return the metric of these curvatures, none of them too small, and of a ridge."""
    # where all columns are constant there is no curvature at all
    least = _LIGHTEST * curvatures.max(initial=0.0) or 1.0
    return DiagonalMetric(np.maximum(curvatures, least) + ridges)


def product_curvatures(
    scopes: tuple[np.ndarray, np.ndarray], variances: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Return the curvature of products of independent columns, whose scopes are given one after the other."""
    pointers, members = scopes
    products = np.multiply.reduceat(variances[members], pointers[:-1])
    if weights is None:
        return products
    return products * np.add.reduceat((weights / variances)[members], pointers[:-1])


@dataclass(frozen=True, eq=False)
class PairMetric:
    """The metric of all pairs of columns.

    Parameters
    ----------
    graph : Graph
        The complete one.
    lean : ndarray of shape (n, n)
        By how much each bias about the mean leans on each coupling: its own mean is another, and a ridge acts on it.
    bias_inverse : ndarray
        The inverse curvature of the biases: numbers, or a matrix.
    scales, basis, divisors : ndarray
        Couplings are multiplied by `scales`, divided in the `basis`, and multiplied again.
    curvature : PairCurvature
        What it is made from.
    """

    graph: Graph
    lean: np.ndarray
    bias_inverse: np.ndarray
    scales: np.ndarray
    basis: np.ndarray
    divisors: np.ndarray
    curvature: PairCurvature

    def __call__(self, gradient: np.ndarray) -> np.ndarray:
        """Return the step along a gradient."""
        i, j = self.graph.edges.T
        n_biases = gradient.size - self.graph.n_edges
        biases = gradient[:n_biases]
        slopes = np.zeros_like(self.divisors)
        slopes[i, j] = gradient[n_biases:]
        if not n_biases:
            return self._divided(slopes + slopes.T)[i, j]
        leaning = biases[:, None] * self.lean
        couplings = self._divided(slopes + slopes.T + leaning + leaning.T)
        own = self.bias_inverse @ biases if self.bias_inverse.ndim == 2 else self.bias_inverse * biases
        return np.concatenate([own + (self.lean * couplings).sum(axis=1), couplings[i, j]])

    def renewed(self, sums: np.ndarray) -> Metric:
        """Return the metric at another point, given the weights of variables there and the sums of spins under them."""
        weights = np.maximum(sums[:, 0], np.finfo(float).tiny)
        return self.curvature.of_losses(weights, sums[:, 1:] / weights[:, None] - self.curvature.spins)

    def _divided(self, slopes: np.ndarray) -> np.ndarray:
        inside = self.basis.T @ (self.scales * slopes) @ self.basis
        couplings = self.scales * (self.basis @ (inside / self.divisors) @ self.basis.T)
        np.fill_diagonal(couplings, 0.0)
        return couplings


@dataclass(frozen=True, eq=False)
class PairCurvature:
    """What metrics of all pairs of columns share wherever they are made.

    Parameters
    ----------
    graph : Graph
        The complete one.
    spins, shifts : ndarray
        The mean that parameters are about, in spins; and what a coupling moves a bias by that is not about it.
    covariance, weights : ndarray
        The moments of the columns about that mean, in units of spins, and how losses bend where they are independent.
    ridges : tuple of float
        How a ridge bends biases and couplings.
    bias : bool
        Whether there are biases, which take up what the weights do to the means.
    """

    graph: Graph
    spins: np.ndarray
    shifts: np.ndarray
    covariance: np.ndarray
    weights: np.ndarray
    ridges: tuple[float, float]
    bias: bool

    @cached_property
    def _directions(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of the correlations, with what a ridge on biases adds to what couplings see."""
        held = np.average(self.ridges[0] / (self.weights + self.ridges[0]), weights=self.weights)
        seen = self.covariance + held * np.outer(self.shifts, self.shifts)
        roots = np.sqrt(np.maximum(np.diag(seen), _LIGHTEST * np.diag(seen).max()))
        correlations = seen / np.outer(roots, roots)
        np.fill_diagonal(correlations, 1.0)
        values, basis = (np.linalg if (twins := twin("conditioning")) is None else twins).eigh(correlations)
        return np.maximum(values, _FLATTEST * values[-1]), basis

    def of_likelihood(self) -> Metric:
        """Return the metric of the likelihood where columns are independent."""
        values, basis = self._directions
        variances = np.maximum(np.diag(self.covariance), _LEAST_WEIGHT * np.diag(self.covariance).max())
        scaled = basis / np.sqrt(variances)[:, None]
        inverse = (scaled / (values + self.ridges[0] * np.square(scaled).sum(axis=0))) @ scaled.T
        bent = np.outer(variances, variances) / 2
        return self._metric(variances, np.zeros_like(bent), bent, inverse, np.outer(values, values))

    def of_losses(self, weights: np.ndarray, means: np.ndarray) -> Metric:
        """Return the metric where variables have these weights, and under each the columns these means."""
        values = (1.0 - _SHRUNK) * self._directions[0] + _SHRUNK
        spins = np.clip(self.spins + means, -1.0, 1.0)
        bent = 1.0 - (spins**2 if self.bias else self.spins * (self.spins + 2.0 * means))
        weights = np.maximum(weights, _LEAST_WEIGHT * weights.max(initial=0.0))
        inverse, divisors = 1.0 / (weights + self.ridges[0]), (values[:, None] + values) / 2
        return self._metric(weights, means, weights[:, None] * bent, inverse, divisors)

    def _metric(
        self, weights: np.ndarray, means: np.ndarray, bent: np.ndarray, inverse: np.ndarray, divisors: np.ndarray
    ) -> Metric:
        held = self.ridges[0] / (weights + self.ridges[0])
        if self.bias:  # what a ridge keeps a bias from taking up
            bent = bent + (held * weights)[:, None] * np.square(means + self.shifts)
        bent = bent + bent.T
        lean = held[:, None] * self.shifts - (1.0 - held)[:, None] * means
        np.fill_diagonal(lean, 0.0)
        scales = 1.0 / np.sqrt(np.maximum(bent, _FLATTEST * bent.max()) + self.ridges[1])
        twins = twin("conditioning")
        metric = PairMetric(self.graph, lean, inverse, scales, self._directions[1], divisors, self)
        return metric if twins is None else twins.PairMetric(metric)
