"""Convergence of Markov chains: R-hat and effective sample size.

The formulas are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner, "Rank-normalization, folding, and
localization: an improved R-hat" (Bayesian Analysis 16, 2021), as ArviZ computes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gibbsian.arrays import Floats, States
from gibbsian.errors import ArgumentError
from gibbsian.models.base import F, Model

MIN_DRAWS = 4


@dataclass(frozen=True)
class ChainReport:
    """Convergence of a set of chains: the worst R-hat and effective sample size of any quantity.

    Parameters
    ----------
    r_hat : float
        Largest R-hat; 1 for chains that agree, nan when every quantity is constant or there is one draw.
    effective_sample_size : float
        Smallest effective sample size over all chains together; nan in the same cases.
    n_chains, n_draws : int
        Size of the sample.

    Examples
    --------
    >>> from gibbsian.diagnostics import ChainReport
    >>> ChainReport(r_hat=1.31, effective_sample_size=12.4, n_chains=4, n_draws=1000).describe()
    '4 chains of 1000 draws: worst R-hat 1.310, smallest effective sample size 12'
    """

    r_hat: float
    effective_sample_size: float
    n_chains: int
    n_draws: int

    def is_good(self, max_r_hat: float = 1.05, min_ess: float = 100.0) -> bool:
        """Whether neither number is beyond its limit; nan counts as good, because there is nothing to judge by."""
        return not (self.r_hat > max_r_hat or self.effective_sample_size < min_ess)

    def describe(self) -> str:
        """Return a sentence with all scores."""
        return (
            f"{self.n_chains} chains of {self.n_draws} draws: worst R-hat {self.r_hat:.3f}, "
            f"smallest effective sample size {self.effective_sample_size:.0f}"
        )


def r_hat(draws: Floats) -> Floats:
    """Return the rank-normalised split R-hat of each quantity.

    Parameters
    ----------
    draws : ndarray, shape (n_chains, n_draws) or (n_chains, n_draws, n_quantities)
        At least 4 draws of each chain.

    Returns
    -------
    ndarray of shape () or (n_quantities,)
        Near 1 when the chains agree. A quantity that never changes in any chain gives nan; one that is stuck at
        different values gives inf.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.diagnostics import r_hat
    >>> bool(abs(r_hat(np.random.default_rng(0).normal(size=(4, 1000))) - 1) < 0.01)
    True
    """
    from arviz_stats.base import array_stats

    return _by_quantity(array_stats.rhat, draws, stuck=np.inf)


def effective_sample_size(draws: Floats) -> Floats:
    """Return the bulk effective sample size of each quantity over all chains together.

    Parameters
    ----------
    draws : ndarray, shape (n_chains, n_draws) or (n_chains, n_draws, n_quantities)
        At least 4 draws of each chain.

    Returns
    -------
    ndarray of shape () or (n_quantities,)
        Number of independent draws with the same error of the mean. A quantity that never changes in any chain
        gives nan; one that is stuck at different values counts as one draw a chain.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.diagnostics import effective_sample_size
    >>> bool(3000 < effective_sample_size(np.random.default_rng(0).normal(size=(4, 1000))) < 5000)
    True
    """
    from arviz_stats.base import array_stats

    return _by_quantity(array_stats.ess, draws, stuck=float(len(draws)))


def chain_report(model: Model[F], draws: States) -> ChainReport:
    """Return the convergence of draws of a model, by its energy and by each variable.

    Parameters
    ----------
    model : Model
        The distribution that was sampled.
    draws : ndarray of shape (n_chains, n_draws, n_variables)
        As `gibbsian.sampling.draw` returns them.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    >>> report = gb.diagnostics.chain_report(model, gb.sampling.draw(model, 4000, random_state=0))
    >>> report.is_good()
    True
    """
    (n_chains, n_draws, n), variables = draws.shape, model.variables
    energies = model.energy(draws.reshape(-1, n)).reshape(n_chains, n_draws, 1)
    scores = draws if variables.real or variables.scores is None else variables.scores_of(draws)
    return report_on(np.concatenate([energies, scores], axis=-1))


def report_on(quantities: Floats) -> ChainReport:
    """Return the convergence of quantities of shape (n_chains, n_draws, n_quantities); nan for too few draws."""
    n_chains, n_draws, _ = quantities.shape
    if n_draws < MIN_DRAWS:
        return ChainReport(np.nan, np.nan, n_chains, n_draws)
    return ChainReport(
        float(np.fmax.reduce(r_hat(quantities))),
        float(np.fmin.reduce(effective_sample_size(quantities))),
        n_chains,
        n_draws,
    )


class _Statistic(Protocol):
    """A statistic of ArviZ."""

    def __call__(self, ary: Floats, *, chain_axis: int, draw_axis: int) -> Floats: ...


def _by_quantity(statistic: _Statistic, draws: Floats, stuck: float) -> Floats:
    """Apply a statistic along chains and draws to all quantities but those that never change."""
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim not in (2, 3) or values.shape[1] < MIN_DRAWS:
        raise ArgumentError(
            f"draws has shape {values.shape}",
            f"use (`n_chains`, n_draws) or (`n_chains`, n_draws, n_quantities) with at least {MIN_DRAWS} draws",
        )
    table = values.reshape(*values.shape[:2], -1)
    frozen = np.ptp(table, axis=1).max(axis=0) == 0
    constant = np.ptp(table, axis=(0, 1)) == 0
    result = np.where(constant, np.nan, stuck)
    if not frozen.all():
        with np.errstate(divide="ignore", invalid="ignore"):  # halves of chains that do not move
            result[~frozen] = statistic(table[..., ~frozen], chain_axis=0, draw_axis=1)
    by_quantity: Floats = result.reshape(values.shape[2:])
    return by_quantity
