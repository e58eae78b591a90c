"""Posteriors of Gaussian models: the missing cells of a row are a regression on its present ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.inference.posterior import POSTERIORS, Split
from gibbsian.models.families.gaussian import LOG_TWO_PI, GaussianFamily, Moments, conditional
from gibbsian.models.rows import patterns_of

# Seconds for one product of two cells of a row.
PRODUCT_SECONDS = 1e-9


@dataclass(frozen=True, eq=False)
class GaussianRows:
    """Rows of real numbers (see `Posterior`).

    Parameters
    ----------
    family : GaussianFamily
        The family.
    x : ndarray of shape (n_rows, n_variables)
        The rows, in the units of the columns.
    missing : ndarray of bool, or None
        Mask of the missing cells.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> family = gb.GaussianFamily(gb.graphs.complete(2), np.zeros(2), np.ones(2))
    >>> rows = GaussianRows(family, np.array([[1.0, np.nan]]), np.array([[False, True]]))
    >>> rows.cell_probabilities(np.array([0, 0, 2.0, 2.0, 1.0]))           # the mean of x_1 given x_0 is -x_0 / 2
    array([[ 1. , -0.5]])
    """

    family: GaussianFamily
    x: States
    missing: Mask | None

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""
        return PRODUCT_SECONDS * len(self.x) * len(self.family.variables) ** 2

    def deviations(self, theta: Floats) -> Iterator[tuple[Integers, Mask, Floats, Floats]]:
        """Yield rows with the same missing cells, their mask, present cells less their mean, and their precision."""
        mean, covariance, _ = self.family.solve(theta)
        for rows, mask in patterns_of(self.x, self.missing):
            deviations = (self.family.standard(self.x[rows]) - mean)[:, ~mask]
            yield rows, mask, deviations, np.asarray(np.linalg.inv(covariance[np.ix_(~mask, ~mask)]), np.float64)

    def log_evidence(self, theta: Floats) -> Floats:
        """Return the log-density of each row's present cells, plus log Z."""
        evidence: Floats = np.empty(len(self.x))
        for rows, mask, deviations, precision in self.deviations(theta):
            log_det = np.linalg.slogdet(precision)[1]
            squares = np.einsum("ri,ij,rj->r", deviations, precision, deviations)
            units = np.log(self.family.scale[~mask]).sum()
            evidence[rows] = (log_det - squares - len(precision) * LOG_TWO_PI) / 2.0 - units
        return evidence + self.family.log_partition(theta)

    def moments(self, theta: Floats, weights: Floats) -> Moments:
        """Return the expected moments of the rows given their present cells: the E step of EM."""
        mean, covariance, _ = self.family.solve(theta)
        u, matrix = self.family.standard(self.x), np.zeros((mean.size + 1, mean.size + 1))
        for rows, mask in patterns_of(self.x, self.missing):
            coefficients, residual = conditional(covariance, mask)
            filled = u[rows].copy()
            filled[:, mask] = mean[mask] + (filled[:, ~mask] - mean[~mask]) @ coefficients
            y = np.column_stack([np.ones(len(rows)), filled])
            matrix += (y * weights[rows, None]).T @ y
            columns = 1 + np.flatnonzero(mask)
            matrix[np.ix_(columns, columns)] += weights[rows].sum() * residual
        total = float(weights.sum())
        return Moments(matrix / total, total)

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        moments = self.moments(theta, weights)
        return self.log_evidence(theta), moments.total_weight * self.family.statistics_of(moments)

    def cell_probabilities(self, theta: Floats) -> Floats:
        """Return the rows with missing cells at their conditional means: real cells have no probabilities."""
        mean, covariance = self.family.moments(theta)
        filled = np.array(self.x, dtype=np.float64)
        for rows, mask in patterns_of(self.x, self.missing):
            coefficients, _ = conditional(covariance, mask)
            means = mean[mask] + (filled[rows][:, ~mask] - mean[~mask]) @ coefficients
            filled[np.ix_(rows, np.flatnonzero(mask))] = means
        return filled


@POSTERIORS.register("gaussian")
def gaussian_rows(family: GaussianFamily, x: States, missing: Mask | None) -> Split:
    """Bind all rows."""
    return Split(np.arange(len(x)), GaussianRows(family, x, missing), np.empty(0, np.intp))
