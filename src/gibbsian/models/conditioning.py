"""What a parameter weighs against another: approximate inverse Hessians of objectives, made of moments of the columns.

Where columns are independent, and with parameters about their mean, biases and couplings separate. With C the
covariance of the columns in units of spins, the curvature of the likelihood acts on the couplings as ``J -> C J C``;
that of an objective on flip costs, where a variable's loss bends by ``w_i`` with its field, as ``W J C + C J W``.
Both are inverted by one division in a basis of eigenvectors. Quasi-Newton steps that start from there take as many
steps in 0/1 as in -1/+1 coding, and a few times fewer in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.graphs import Graph

Metric = Callable[[np.ndarray], np.ndarray]
"""Maps the gradient of parameters about the mean (see `centring`) to a step: an approximate inverse Hessian."""

# Eigenvalues and weights below these shares of the largest are taken for these: columns that copy others, rare values.
_FLATTEST, _LIGHTEST = 1e-8, 1e-6


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
        By how much each bias about the mean leans on each coupling, because a ridge acts on the bias itself.
    bias_inverse : ndarray
        The inverse curvature of the biases: numbers, or a matrix.
    roots, basis, divisors : ndarray
        Couplings are multiplied by two of the `roots`, divided in the `basis`, and multiplied again.
    """

    graph: Graph
    lean: np.ndarray
    bias_inverse: np.ndarray
    roots: np.ndarray
    basis: np.ndarray
    divisors: np.ndarray

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
        both = self.roots[:, None] * self.roots
        inside = self.basis.T @ (both * slopes) @ self.basis
        couplings = both * (self.basis @ (inside / self.divisors) @ self.basis.T)
        np.fill_diagonal(couplings, 0.0)
        return couplings


def pair_metric(
    graph: Graph, mean: np.ndarray, covariance: np.ndarray, weights: np.ndarray | None, ridges: tuple[float, float]
) -> Metric:
    """Return the metric of all pairs, given moments of the columns in units of spins.

    `weights` say how the loss of a variable bends with its field, None for the likelihood; `ridges` act on biases and
    on couplings.
    """
    spread = np.diag(covariance) if weights is None else weights
    spread = np.maximum(spread, _LIGHTEST * spread.max(initial=0.0))
    held = ridges[0] / (spread + ridges[0])
    roots = 1.0 / np.sqrt(spread)
    # what a ridge on the biases keeps them from taking up adds to the moments that couplings see
    seen = covariance + np.mean(held) * np.outer(mean, mean)
    twins = twin("conditioning")
    values, basis = (np.linalg if twins is None else twins).eigh(seen * np.outer(roots, roots))
    values = np.maximum(values, _FLATTEST * values[-1])
    ridge = np.square(basis).T @ np.square(roots)
    if weights is None:
        scaled = roots[:, None] * basis
        bias_inverse, bent = (scaled / (values + ridges[0] * ridge)) @ scaled.T, np.outer(values, values)
    else:
        bias_inverse, bent = 1.0 / (spread + ridges[0]), values[:, None] + values
    lean = held[:, None] * mean
    np.fill_diagonal(lean, 0.0)
    metric = PairMetric(graph, lean, bias_inverse, roots, basis, bent + ridges[1] * np.outer(ridge, ridge))
    return metric if twins is None else twins.PairMetric(metric)
