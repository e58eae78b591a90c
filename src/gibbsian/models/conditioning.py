"""What a parameter weighs against another: approximate inverse Hessians of objectives, made of moments of the columns.

In units of spins and about some mean, the loss of variable i bends with its field by ``w_i(x)`` in row x. Its bias
then goes with the means of the other columns under these weights, and with biases taken out a coupling bends by
``D_ij = w_i V_ij + w_j V_ji`` and by the ridge; V are the variances under the weights, which two-valued columns have
from their means. Scaled by the root of D, couplings of one variable go together by its covariance of the columns, and
by what a ridge keeps its bias from taking up. We take the mean R of these correlations over all variables, as of one:
the curvature acts as ``J -> (R J + J R) / 2``, which a division in a basis of eigenvectors inverts; that of the
likelihood, of independent columns, as ``J -> R J R``.

Weights are known at independent columns and, from one pass over the rows, anywhere else. They are those of the slopes:
where a model is right, ``2 E[phi''(d)] = -E[phi'(d)]`` for every loss of flip costs whose minimum is the model, and
slopes do not vanish in rows that a step too far has put on the wrong side.

At independent columns covariances are the slopes of pseudolikelihood too, so that its first step costs no pass over the
rows. It is where other losses start as well: those of rare columns are flat there, and a ridge outweighs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.graphs import Graph

Metric = Callable[[np.ndarray], np.ndarray]
"""Maps the gradient of parameters about the mean (see `centring`) to a step: an approximate inverse Hessian."""

_Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
# Curvatures of parameters, and of couplings of all pairs, below these shares of the largest are taken for these.
_LIGHTEST, _FLATTEST = 1e-6, 1e-8
# A variable of a smaller share of the largest weight, as a constant column, bends much more as soon as it moves: more
# than this at independent columns, and than this where weights are known.
_LEAST_WEIGHT, _LEAST_RENEWED = 5e-3, 1e-3
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
    covariance : ndarray
        The moments of the columns about that mean, in units of spins.
    ridges : tuple of float
        How a ridge bends biases and couplings.
    bias : bool
        Whether there are biases, which take up what the weights do to the means.
    """

    graph: Graph
    spins: np.ndarray
    shifts: np.ndarray
    covariance: np.ndarray
    ridges: tuple[float, float]
    bias: bool
    _last: list[Any] = field(default_factory=list)

    @cached_property
    def _independent(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Weights and means of pseudolikelihood where columns are independent, and directions there."""
        weights = np.diag(self.covariance)
        means = -(self.spins / weights)[:, None] * self.covariance
        return weights, means, self._directions(weights, means)

    def _directions(self, weights: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of the correlations between couplings of a variable, over all variables."""
        scales, held = self._scales(self._bent(weights, means)), weights * self._held(weights)
        np.fill_diagonal(scales, 0.0)
        away = scales * (means + self.shifts)
        seen = self.covariance * ((weights[:, None] * scales).T @ scales) + (held[:, None] * away).T @ away
        roots = np.sqrt(np.maximum(np.diag(seen), _LIGHTEST * np.diag(seen).max()))
        correlations = seen / np.outer(roots, roots)
        np.fill_diagonal(correlations, 1.0)
        values, basis = (np.linalg if (twins := twin("conditioning")) is None else twins).eigh(correlations)
        return np.maximum(values, _FLATTEST * values[-1]), basis

    def _held(self, weights: np.ndarray) -> np.ndarray:
        """Return the share that a ridge keeps each bias from taking up."""
        return self.bias * self.ridges[0] / (weights + self.ridges[0])

    def _bent(self, weights: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return how each variable's loss bends with its couplings, its bias taken out as far as a ridge lets it."""
        spins = np.clip(self.spins + means, -1.0, 1.0)
        bent = 1.0 - (spins**2 if self.bias else self.spins * (self.spins + 2.0 * means))
        return weights[:, None] * (bent + self._held(weights)[:, None] * np.square(means + self.shifts))

    def _scales(self, bent: np.ndarray) -> np.ndarray:
        bent = bent + bent.T
        return 1.0 / np.sqrt(np.maximum(bent, _FLATTEST * bent.max()) + self.ridges[1])

    def first_step(self, slopes: np.ndarray) -> np.ndarray:
        """Return a step of pseudolikelihood from independent columns, by which fields move by less than one.

        Moments of pairs tell all of it; `slopes` are those of a ridge there.
        """
        weights, means, _ = self._independent
        covariances = self.covariance[tuple(self.graph.edges.T)]
        slopes = slopes - np.concatenate([np.zeros_like(weights), 2.0 * covariances])
        step = self.of_losses(weights, means)(slopes)
        return -step / np.sqrt(1.0 + slopes @ step / weights.sum())

    def renewed(self, sums: Any) -> Metric:
        """Return the metric at another point, given weights of variables there and sums of the columns under them."""
        if not (self._last and self._last[0] is sums):
            numbers = sums if isinstance(sums, np.ndarray) else sums.cpu().numpy()
            weights = np.maximum(numbers[:, 0], np.finfo(float).tiny)
            means = numbers[:, 1:] / weights[:, None] - self.shifts
            weights = np.maximum(weights, _LEAST_RENEWED * weights.max())
            self._last[:] = sums, self._of_losses(weights, means, self._directions(weights, means))
        return self._last[1]

    def of_likelihood(self) -> Metric:
        """Return the metric of the likelihood where columns are independent."""
        values, basis = self._independent[2]
        variances = np.maximum(np.diag(self.covariance), _LEAST_WEIGHT * np.diag(self.covariance).max())
        scaled = basis / np.sqrt(variances)[:, None]
        inverse = (scaled / (values + self.ridges[0] * np.square(scaled).sum(axis=0))) @ scaled.T
        held = (variances * self._held(variances))[:, None] * np.square(self.shifts)
        scales = self._scales(np.outer(variances, variances) / 2 + held)
        return self._metric(variances, np.zeros_like(scales), (inverse, scales, basis, np.outer(values, values)))

    def of_losses(self, weights: np.ndarray, means: np.ndarray) -> Metric:
        """Return the metric where columns are independent, by weights of variables and means of columns under each."""
        weights = np.maximum(weights, _LEAST_WEIGHT * weights.max(initial=0.0))
        return self._of_losses(weights, means, self._independent[2])

    def _of_losses(self, weights: np.ndarray, means: np.ndarray, directions: tuple[np.ndarray, np.ndarray]) -> Metric:
        values = (1.0 - _SHRUNK) * directions[0] + _SHRUNK
        inverse, scales = 1.0 / (weights + self.ridges[0]), self._scales(self._bent(weights, means))
        return self._metric(weights, means, (inverse, scales, directions[1], (values[:, None] + values) / 2))

    def _metric(self, weights: np.ndarray, means: np.ndarray, parts: _Parts) -> Metric:
        held = self._held(weights)[:, None]
        lean = held * self.shifts - (1.0 - held) * means
        np.fill_diagonal(lean, 0.0)
        metric, twins = PairMetric(self.graph, lean, *parts, self), twin("conditioning")
        return metric if twins is None else twins.PairMetric(metric)
