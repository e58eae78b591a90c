"""Likelihood of Gaussian models: a function of the first and second moments of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.graphs import complete
from gibbsian.inference.gaussian_posterior import GaussianRows
from gibbsian.learning.objectives.base import Function, Objective, Scores
from gibbsian.learning.objectives.curvature import state_blocks
from gibbsian.models.base import Model
from gibbsian.models.families.gaussian import LOG_TWO_PI, GaussianFamily, Moments, gaussian_loss
from gibbsian.models.rows import patterns_of

GaussianModel = Model[GaussianFamily]
# Directions of less than this share of the largest variance are taken for ones of that share.
FLATTEST = 1e-6
# Rounds of EM after which moments of rows with missing cells are known well enough to measure steps by.
EM_ROUNDS = 5


def moments_of(family: GaussianFamily, data: Dataset | Moments) -> Moments:
    """Return the moments of complete rows in the units of a family, or moments that are known."""
    return data if isinstance(data, Moments) else Moments.of(family.standard(data.states), data.weights)


class ExpectedMoments(NamedTuple):
    """Rows of which some numbers are missing: their moments under a model, the E step of EM in closed form."""

    data: Dataset

    def under(self, model: GaussianModel) -> Moments:
        """Return the expected moments of the rows given their present cells; NaN where the model is no distribution."""
        if not np.isfinite(model.family.log_partition(model.theta)):  # as a line search may ask
            size = model.n_variables + 1
            return Moments(np.full((size, size), np.nan), np.nan)
        rows = GaussianRows(model.family, self.data.states, self.data.missing)
        return rows.moments(model.theta, self.data.weights)


@dataclass(frozen=True, eq=False)
class GaussianPreconditioner:
    """The natural gradient on the complete graph, at a mean and a covariance with these values and directions.

    With C the change of the second moments about the mean, the precision matrix J changes by ``-J C J``, which a ridge
    divides in the eigenvectors of the covariance. On other graphs it is cut to their edges.
    """

    family: GaussianFamily
    mean: Floats
    values: Floats
    directions: Floats
    l2: float
    curvature: ClassVar[None] = None

    @classmethod
    def of(cls, family: GaussianFamily, moments: Moments, l2: float) -> GaussianPreconditioner:
        """Decompose the covariance, whose values are kept from zero."""
        values, directions = np.linalg.eigh(moments.covariance)
        return cls(family, moments.mean, np.maximum(values, FLATTEST * values[-1]), directions, l2)

    def __call__(self, gradient: Floats) -> Floats:
        """Return the step along a gradient."""
        n, (i, j) = self.mean.size, self.family.graph.edges.T
        slopes, change, v = gradient[:n], np.diag(-2.0 * gradient[n : 2 * n]), self.directions
        change[i, j] = change[j, i] = -gradient[2 * n :]
        change -= np.outer(slopes, self.mean) + np.outer(self.mean, slopes)
        inside = (v.T @ change @ v) / (np.multiply.outer(self.values, self.values) + self.l2)
        matrix = -v @ inside @ v.T
        fields = v @ ((v.T @ slopes) / (self.values + self.l2)) + matrix @ self.mean
        return np.concatenate([fields, np.diag(matrix), matrix[i, j]])

    def first_step(self, slopes: Floats) -> None:
        """Return None: learning begins where the model is."""

    def on_device(self, twins: object) -> GaussianPreconditioner:
        """Return itself: the loss has no kernel on a card."""
        return self


@dataclass(frozen=True)
class GaussianLikelihood(Objective[GaussianFamily]):
    """Minus the mean log-likelihood of a Gaussian, given the moments of rows; missing numbers are summed out."""

    name: ClassVar[str] = "likelihood"
    takes_missing: ClassVar[bool] = True
    has_scores: ClassVar[bool] = True

    def bind(self, model: GaussianModel, data: Dataset | Moments) -> Function:
        """Take the moments of complete rows once and return the function of theta."""
        family = model.family
        if isinstance(data, Moments) or not data.has_missing:
            return partial(gaussian_loss, family, moments=moments_of(family, data))
        rows = GaussianRows(family, data.states, data.missing)
        patterns = [(data.weights[places].sum() / data.total_weight, mask)
                    for places, mask in patterns_of(data.states, data.missing)]  # fmt: skip
        constant = sum(w * float(np.sum(0.5 + 0.5 * LOG_TWO_PI + np.log(family.scale[mask]))) for w, mask in patterns)

        def function(theta: Floats) -> tuple[float, Floats]:
            if not np.isfinite(family.log_partition(theta)):
                return np.inf, np.full_like(theta, np.inf)
            value, gradient = gaussian_loss(family, theta, rows.moments(theta, data.weights))
            # the evidence of a row is its expected log-weight plus the entropy of its missing numbers
            precision = family.precision(theta)
            halves = (w / 2 * np.linalg.slogdet(precision[np.ix_(mask, mask)])[1] for w, mask in patterns)
            return value - constant + float(sum(halves)), gradient

        return function

    def inverse_hessian(self, model: GaussianModel, data: Dataset | Moments, l2: float) -> GaussianPreconditioner:
        """Return the inverse Hessian at the moments of the rows; where cells are missing, after some rounds of EM."""
        family = model.family
        if isinstance(data, Moments) or not data.has_missing:
            return GaussianPreconditioner.of(family, moments_of(family, data), l2)
        whole = replace(family, graph=complete(family.graph.n_nodes))
        rows, least = GaussianRows(whole, data.states, data.missing), FLATTEST * np.eye(family.graph.n_nodes)
        theta = whole.theta_of(np.eye(family.graph.n_nodes), np.zeros(family.graph.n_nodes))
        for _ in range(EM_ROUNDS):
            moments = rows.moments(theta, data.weights)
            theta = whole.theta_of(np.asarray(np.linalg.inv(moments.covariance + least), np.float64), moments.mean)
        return GaussianPreconditioner.of(family, moments, l2)

    def curvature(self, model: GaussianModel, data: Dataset, max_seconds: float = 60.0) -> Floats:
        """Return the second derivatives at the model's parameters."""
        return model.family.information(model.theta)

    def scores(self, model: GaussianModel, data: Dataset, max_seconds: float = 60.0) -> Scores:
        """Yield the gradient of each state's loss, up to a constant."""
        for block in state_blocks(data):
            yield block, -model.family.statistics(data.states[block])
