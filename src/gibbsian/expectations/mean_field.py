"""Expectations by naive mean field: of all laws with independent variables, one of lowest free energy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations.base import EXPECTATIONS, Estimate
from gibbsian.expectations.clamped_mean_field import START_SCALE, factorised_statistics, solve
from gibbsian.expectations.convergence import ending
from gibbsian.expectations.factor_messages import FactorisedLaw
from gibbsian.models import Model
from gibbsian.settings import check, declared, flag, number, whole


@EXPECTATIONS.register("mean-field", consistent=False, sampled=False)
@declared(frozen=True)
class MeanField:
    """Statistics of the factorised Q that lowers the free energy, ``m_i = tanh(field_i)`` for spins.

    One factor at a time is set to its best, so that no update raises the free energy; minus that is a lower bound on
    log Z, given as `log_partition`. There is no sampling, so no standard error, but an error that is not known: strong
    or many couplings make it large, and below its critical temperature Q settles in one valley. A call goes on from the
    Q of the call before.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.5, 0.0], [0.3])
    >>> expectation = gb.expectations.MeanField()
    >>> estimate, _ = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> truth = gb.inference.exact(model).moments()
    >>> bool(estimate.log_partition < truth.log_partition), bool(abs(estimate.mean - truth.statistics).max() < 0.3)
    (True, True)
    >>> estimate.diagnostics["converged"], estimate.is_exact
    (True, False)
    """

    max_iter: int = whole(1000, "Sweeps over the variables in one call, at most.", least=1)
    tol: float = number(1e-10, "Done when no probability (mean of a spin) changes by more in a sweep.", least=0)
    warn: bool = flag(True, "Whether to warn when `max_iter` ends the updates.")
    n_init: int = whole(
        10, "Random starts of the first call; the one that ends with the lowest free energy is kept.", least=1
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model, data: Dataset | None, rng: np.random.Generator) -> np.ndarray:
        """Start Q near the uniform law, several times, and keep the best; `data` is not used."""
        size = model.n_variables if model.is_pairwise else FactorisedLaw.size(model)
        starts = START_SCALE * rng.standard_normal((self.n_init, size))
        ends = [self._settle(model, start) for start in starts]
        return max(ends, key=lambda end: end[1])[2]

    def __call__(self, model: Model, state: np.ndarray) -> tuple[Estimate, np.ndarray]:
        """Return the expectation under Q and where Q has come to."""
        statistics, bound, state, sweeps, change = self._settle(model, state)
        notes = {"free_energy": -bound, **ending("mean field", sweeps, change, self.max_iter, self.tol, self.warn)}
        return Estimate(statistics, np.zeros_like(statistics), bound, notes), state

    def _settle(self, model: Model, state: np.ndarray) -> tuple[Any, ...]:
        """Return statistics and bound of Q, where it has come to, after how many sweeps, and the last change."""
        return self._spins(model, state) if model.is_pairwise else self._factors(model, state)

    def _spins(self, model: Any, fields: np.ndarray) -> tuple[Any, ...]:
        n = model.n_variables
        free = (np.array([0, n]), np.arange(n))
        lowest = np.full((1, n), model.domain.low, np.int8)
        solution = solve(model, lowest, *free, fields, self.max_iter, self.tol)
        statistics = factorised_statistics(model, solution.means, np.ones(1))
        bound = float(model.theta @ statistics / model.temperature + solution.entropies[0])
        return statistics, bound, solution.fields, solution.n_sweeps, solution.change

    def _factors(self, model: Model, logits: np.ndarray) -> tuple[Any, ...]:
        law = FactorisedLaw(model.factors(), logits)
        sweeps, change = law.settle(self.max_iter, self.tol)
        return model.statistics_from(law.marginal), law.bound(), law.logits, sweeps, change
