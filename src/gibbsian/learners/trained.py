"""Is it trained? The model's moments against the data's, in standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gibbsian.diagnostics.moments import DataMoments
from gibbsian.display import Shown
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.expectations import Estimate, Exact, MonteCarlo
from gibbsian.models import Model
from gibbsian.objectives.priors import SmoothPenalty, bind_prior

# A moment further from the data than this many standard errors is not explained by chance.
FAR = 3.0
# Exact moments are taken where they need no more than this; else about this many Gibbs updates are spent.
EXACT_SECONDS = 2.0
GIBBS_UPDATES = 2e7
N_CHAINS = 100


@dataclass(frozen=True, repr=False)
class TrainingReport(Shown):
    """What there is to say about a fitted model.

    Parameters
    ----------
    z_scores : ndarray
        (data moment - model moment) / standard error, in the layout of theta. The standard error is that of the data's
        mean under the model, with the Monte Carlo error of the model's moment added where it was sampled. Where a
        statistic has more than two values (products over -1, 0, 1) it is a bound, and the z-score is too small.
    gradient_norm : float
        Largest entry of the gradient at the last step.
    exact : bool
        Whether the model's moments are exact.
    held : bool
        Whether the penalty accounts for every moment that is far: at a maximum it pulls as hard as they differ.
    converged : bool
        Whether the fit had converged.
    r_hat, effective_sample_size : float or None
        Of the chains behind sampled moments.
    mean, error : ndarray or None
        The moments of the model, and the standard errors that differences are measured in.

    Examples
    --------
    >>> import gibbsian as gb
    >>> report = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]).result_.training
    >>> report.describe()
    'the moments of the model agree with those of the data: largest |z| 0.00 of 3'
    """

    z_scores: np.ndarray
    gradient_norm: float
    exact: bool
    held: bool = False
    converged: bool = True
    r_hat: float | None = None
    effective_sample_size: float | None = None
    mean: np.ndarray | None = None
    error: np.ndarray | None = None

    def _facts(self) -> dict[str, str]:
        return {"trained": self.describe()}

    @property
    def worst(self) -> int:
        """Place of the largest z-score in theta; -1 where there is none."""
        return -1 if np.isnan(self.z_scores).all() else int(np.nanargmax(np.abs(self.z_scores)))

    @property
    def largest_z(self) -> float:
        """Size of the largest z-score; zero where there is none."""
        return float(np.abs(self.z_scores[self.worst])) if self.worst >= 0 else 0.0

    @property
    def n_far(self) -> int:
        """Number of moments further than three standard errors from the data's."""
        return int((np.abs(self.z_scores) > FAR).sum())

    @property
    def is_trained(self) -> bool:
        """Whether no moment is far from the data's."""
        return self.n_far == 0

    @property
    def status(self) -> Literal["trained", "untrained", "unknown"]:
        """``"trained"``, ``"untrained"``, or ``"unknown"`` where the comparison is no evidence."""
        return "trained" if self.is_trained or self.held else "untrained"

    def describe(self) -> str:
        """Describe the comparison in one sentence."""
        size = f"largest |z| {self.largest_z:.2f} of {self.z_scores.size}"
        sampled = "" if self.exact else f" (sampled: R-hat {self.r_hat:.3f})"
        if self.is_trained:
            return f"the moments of the model agree with those of the data: {size}{sampled}"
        why = (
            "the penalty holds them there"
            if self.held
            else "the learner has ended there, so compare with another one"
            if self.converged
            else "train longer"
        )
        some = "1 moment is" if self.n_far == 1 else f"{self.n_far} moments are"
        return f"{some} more than {FAR:.0f} standard errors from the data's, {size}{sampled}: {why}"


def training_report(
    model: Model,
    moments: DataMoments,
    gradient_norm: float,
    rng: np.random.Generator,
    pull: tuple[np.ndarray, np.ndarray] | None = None,
    converged: bool = True,
) -> TrainingReport:
    """Compare a model with the moments of the data it was fitted to; `pull` is how far a penalty may hold them off."""
    estimate = _expect(model, rng)
    low, high = model.statistic_range
    difference = moments.mean - estimate.mean
    # a mean fixes the variance of what has two values, and bounds that of what has more (Bhatia and Davis 2000); what
    # the model's samples never show has the variance of what lies between them and the data
    variance = np.maximum((high - estimate.mean) * (estimate.mean - low), 0.0)
    between = estimate.mean + difference / 2
    variance = np.where(variance > 0, variance, np.maximum((high - between) * (between - low), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(variance / moments.count + estimate.stderr**2)
        z_scores = np.where(difference == 0, 0.0, difference / error)
        unexplained = np.zeros(0) if pull is None else np.abs(difference - np.clip(difference, *pull)) / error
    return TrainingReport(
        z_scores,
        gradient_norm,
        estimate.is_exact,
        pull is not None and not (unexplained > FAR).any(),
        converged,
        estimate.diagnostics.get("r_hat"),
        estimate.diagnostics.get("effective_sample_size"),
        estimate.mean,
        error,
    )


def penalty_pull(model: Model, l1: float, l2: float, log_prior: Any, n_rows: float) -> tuple[np.ndarray, np.ndarray]:
    """Return between which sides a penalty keeps ``data moments - model moments`` at the maximum; zero is between.

    There the gradient of the penalty, times T, equals the difference (of pseudolikelihood it is no smaller).
    """
    try:
        prior, corners = bind_prior(log_prior, model.penalised)
    except ArgumentError:  # a function of the user's, of which a file has the name only: it may pull anyhow
        return np.full(model.theta.size, -np.inf), np.full(model.theta.size, np.inf)
    smooth = SmoothPenalty(l2, prior, n_rows)(model.theta)[1]
    edges = np.where(model.penalised, l1, 0.0) + corners / n_rows
    low = np.where(model.theta > 0, edges, -edges)
    high = np.where(model.theta < 0, -edges, edges)
    sides = model.temperature * (smooth + low), model.temperature * (smooth + high)
    return np.minimum(sides[0], 0.0), np.maximum(sides[1], 0.0)


def _expect(model: Model, rng: np.random.Generator) -> Estimate:
    """Return the model's moments: exact where that is quick, else by chains of a bounded length."""
    try:
        return Exact(max_seconds=EXACT_SECONDS)(model)[0]
    except TooExpensiveError:
        sweeps = int(np.clip(GIBBS_UPDATES / (N_CHAINS * model.n_variables), 20, 500))
        expectation = MonteCarlo(n_chains=N_CHAINS, n_steps=sweeps, burn_in=2 * sweeps, warn=False)
        return expectation(model, expectation.init(model, None, rng))[0]
