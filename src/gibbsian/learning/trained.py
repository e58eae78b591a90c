"""Is it trained? The model's moments against the data's, in standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from gibbsian.data import Dataset
from gibbsian.diagnostics.moments import DataMoments
from gibbsian.display import Shown
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.estimate import Estimate
from gibbsian.expectations import Exact, MixingCheck, PersistentChains, Sampled, TemperedReplicas
from gibbsian.expectations.sources import ChainsState
from gibbsian.inference import predict_cost
from gibbsian.learning.objectives.priors import SmoothPenalty, bind_prior
from gibbsian.models import Model
from gibbsian.models.base import ClosedForm, keeps
from gibbsian.rng import Key
from gibbsian.sampling import ReplicaLadder, kernel_for, variable_path
from gibbsian.startup import ndtr, ndtri, pdtrc

# A moment further from the data than this many standard errors is looked at; of many some are, by chance.
FAR = 3.0
# The probability with which chance alone makes any one rule of `TrainingReport.status` call a right model untrained.
FAMILY_LEVEL = 0.01
# Moments are correlated, so that more of them are far at once than if they were independent: so many times as many.
CORRELATED = 4.0
# A penalty that leaves more than this share of the (squared) distance between the data and a model without interactions
# has taken away most of what the data say.
MAX_SHARE_KEPT_OFF = 0.5
# Exact moments are quick where they need no more than the first of these, and are taken up to the second; else about
# this many Gibbs updates are spent.
QUICK_SECONDS, EXACT_SECONDS = 0.05, 2.0
MAX_QUICK_PARAMETERS = 2**12
GIBBS_UPDATES = 2e7
N_CHAINS = 100
# Chains with a larger R-hat have not mixed. Then tempered chains decide, for as many updates and up to so many columns.
MAX_R_HAT, MAX_R_HAT_TEMPERED = 1.05, 1.1
TEMPERED_UPDATES, MAX_TEMPERED_COLUMNS = 3e8, 2000
# Chains that start at a mode are brought there by sweeps at this temperature.
COLD, COLD_SWEEPS = 0.05, 20
# Exchanges of the tempered chains whose states other chains start from.
TEMPERED_ROUNDS = 100


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
    unexplained : ndarray or None
        The same z-scores without the part that a penalty accounts for: at a maximum it pulls as hard as they differ.
        None where there was no penalty.
    share_kept_off : float
        Squared distance between the moments of the interactions in the data and in the model, as a share of that to the
        model without interactions, over moments that are far in either; 0 where the penalty holds none off.
    converged : bool
        Whether the fit had converged.
    r_hat, effective_sample_size : float or None
        Of the chains behind sampled moments.
    mean, error : ndarray or None
        The moments of the model, and the standard errors that differences are measured in.
    mixed : bool
        Whether sampled moments come from chains that have forgotten where they started.

    Examples
    --------
    >>> import gibbsian as gb
    >>> report = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]).result_.training
    >>> report.describe()
    'the moments of the model agree with those of the data: largest |z| 0.00 of 3'
    """

    z_scores: np.ndarray
    gradient_norm: float
    exact: bool
    unexplained: np.ndarray | None = None
    share_kept_off: float = 0.0
    converged: bool = True
    r_hat: float | None = None
    effective_sample_size: float | None = None
    mean: np.ndarray | None = None
    error: np.ndarray | None = None
    mixed: bool = True

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
    def threshold(self) -> float:
        """Size of a z-score that none of so many moments has by chance but with a probability of 1% (Sidak 1967)."""
        n = max(int(np.isfinite(self.z_scores).sum()), 1)
        return max(FAR, -float(ndtri(-np.expm1(np.log1p(-FAMILY_LEVEL) / n) / 2)))

    @property
    def is_trained(self) -> bool:
        """Whether the model's moments are those of the data, as far as chance and the penalty allow."""
        return self.status == "trained"

    @property
    def status(self) -> Literal["trained", "untrained", "unknown"]:
        """``"trained"``, ``"untrained"``, or ``"unknown"`` where the comparison is no evidence.

        Of many moments some are far from the data's by chance. A model is untrained where, after the part that its
        penalty accounts for is subtracted, a z-score is beyond `threshold`, or more of them are beyond 3 or beyond 4
        than normal ones have at the level 1%, and than four times their mean (moments are correlated). It is untrained
        too where its penalty has taken away most of what the data say of interactions. Nothing is known where there is
        no moment to compare, where the chains behind them have not mixed, or where a penalty of unknown strength (a
        function that a file does not hold, or ``"theory"``) may explain the distance.
        """
        if not np.isfinite(self.z_scores).any() or not self.mixed:
            return "unknown"
        if not self._has_far(self.z_scores):
            return "trained"
        if not self.is_held_by_penalty:
            return "untrained"
        if np.isnan(self.share_kept_off):
            return "unknown"
        return "untrained" if self.share_kept_off > MAX_SHARE_KEPT_OFF else "trained"

    @property
    def is_held_by_penalty(self) -> bool:
        """Whether the penalty accounts for every moment that is far, however much it takes away."""
        return self.unexplained is not None and not self._has_far(self.unexplained)

    def _has_far(self, z_scores: np.ndarray) -> bool:
        """Whether more z-scores are far from zero than chance explains."""
        size = np.abs(z_scores[~np.isnan(z_scores)])
        if not (size > FAR).any():  # most fits end here, and need no SciPy
            return False
        if (size > self.threshold).any():
            return True
        for limit in (FAR, 4.0):
            n_far, expected = int((size > limit).sum()), size.size * 2.0 * float(ndtr(-limit))
            if n_far > CORRELATED * expected and n_far > 1 and pdtrc(n_far - 1, expected) < FAMILY_LEVEL:
                return True
        return False

    def describe(self) -> str:
        """Describe the comparison in one sentence."""
        if not np.isfinite(self.z_scores).any():
            return "no moments were compared: the model has none that the data show"
        size = f"largest |z| {self.largest_z:.2f} of {self.z_scores.size}"
        sampled = "" if self.exact else f" (sampled: R-hat {self.r_hat:.3f})"
        if not self.mixed:
            return (
                "the moments of the model are not known: chains from different starts disagree"
                f"{sampled}, and tempered chains do not settle it"
            )
        if not self._has_far(self.z_scores):
            return f"the moments of the model agree with those of the data: {size}{sampled}"
        status = self.status
        why = (
            "the penalty holds them there"
            if status == "trained"
            else "a penalty of unknown strength may keep them there"
            if status == "unknown"
            else "the penalty takes away most of what the data say: lower it"
            if self.is_held_by_penalty
            else f"the fit finished but does not reproduce the data, try `learner='{'mle' if self.exact else 'mcmle'}'`"
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
    rows: Dataset | None = None,
) -> TrainingReport:
    """Compare a model with the moments of the data it was fitted to.

    `pull` is how far a penalty may hold them off. Some chains start at `rows`, where they are given.
    """
    estimate = _expect(model, rng) if rows is None else _expect(model, rng, rows)
    difference = moments.mean - estimate.value
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(_variance(model, estimate.value, difference) / moments.count + estimate.monte_carlo_error**2)
        z_scores = np.where(difference == 0, 0.0, difference / error)
        unexplained = None
        if pull is not None:
            excess = difference - np.clip(difference, *pull)
            unexplained = np.where(excess == 0, 0.0, excess / error)
    report = TrainingReport(
        z_scores,
        gradient_norm,
        estimate.is_exact,
        unexplained,
        0.0,
        converged,
        estimate.parts.get("r_hat"),
        estimate.parts.get("effective_sample_size"),
        estimate.value,
        error,
        bool(estimate.parts.get("mixed", True)),
    )
    if pull is None or report.status != "trained" or not report.n_far:
        return report
    if np.isinf(pull[0]).any():
        return replace(report, share_kept_off=np.nan)
    alone = _expect(model.replace(np.where(model.penalised, 0.0, model.theta)), rng).value
    differences = np.abs([difference, moments.mean - alone])
    far = model.penalised & (differences > FAR * error).any(axis=0)
    lost, found = np.square(differences[:, far]).sum(axis=1).tolist()
    return replace(report, share_kept_off=lost / found if found else 1.0)


def _variance(model: Model, mean: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Return the variance of each statistic under the model, whose mean is `difference` below that of the data.

    A mean fixes the variance of a statistic with two values, and bounds that of one with more (Bhatia and Davis 2000).
    A statistic that the model's samples never show has the variance of one whose mean is halfway to the data's.
    """
    if keeps(model.family, ClosedForm):
        return model.family.statistic_variances(model.theta)
    low, high = model.family.statistic_range
    variance = np.maximum((high - mean) * (mean - low), 0.0)
    between = mean + difference / 2
    return np.where(variance > 0, variance, np.maximum((high - between) * (between - low), 0.0))


def penalty_pull(
    model: Model, l1: float | str, l2: float | np.ndarray, log_prior: Any, n_rows: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return between which sides a penalty keeps ``data moments - model moments`` at the maximum; zero is between.

    There the gradient of the penalty equals the difference (of pseudolikelihood it is no smaller).
    """
    anyhow = np.full(model.theta.size, -np.inf), np.full(model.theta.size, np.inf)
    try:
        prior, corners = bind_prior(log_prior, model.penalised)
    except ArgumentError:  # a function of the user's, of which a file has the name only: it may pull anyhow
        return anyhow
    if isinstance(l1, str):  # a strength that the learner takes from the data
        return anyhow
    smooth = l2 * model.theta + SmoothPenalty(0.0, prior, n_rows)(model.theta)[1]
    edges = np.where(model.penalised, l1, 0.0) + corners / n_rows
    low = np.where(model.theta > 0, edges, -edges)
    high = np.where(model.theta < 0, -edges, edges)
    return np.minimum(smooth + low, 0.0), np.maximum(smooth + high, 0.0)


def _expect(model: Model, rng: np.random.Generator, rows: Dataset | None = None) -> Estimate:
    """Return the model's moments: exact where that is quick, else by chains of a bounded length from several starts.

    Where chains from different starts disagree tempered chains decide; where these do not settle it either, the
    parts of the estimate say that nothing has mixed.
    """
    if keeps(model.family, ClosedForm):
        return Estimate(model.family.expected_statistics(model.theta))
    try:
        return Exact(max_seconds=EXACT_SECONDS).bind(model)(model.theta, ())[0]
    except TooExpensiveError:
        sweeps = int(np.clip(GIBBS_UPDATES / (N_CHAINS * model.n_variables), 20, 500))
    chains = PersistentChains(n_chains=N_CHAINS, n_draws=sweeps, burn_in=2 * sweeps, mixing=MixingCheck(warn=False))
    estimate = Sampled(chains).bind(model)(model.theta, _spread_out(model, rng, rows))[0]
    if not estimate.parts["r_hat"] > MAX_R_HAT:  # not a number where no chain moves from the state of all
        return estimate
    tempered = _tempered(model, rng)
    if tempered is not None:
        return tempered
    return replace(estimate, parts={**estimate.parts, "mixed": False})


def is_quick(model: Model) -> bool:
    """Whether exact moments of a model take no longer than a step of exact likelihood where that is the default."""
    if keeps(model.family, ClosedForm):
        return True
    return model.theta.size <= MAX_QUICK_PARAMETERS and predict_cost(model.family).seconds <= QUICK_SECONDS


def _spread_out(model: Model, rng: np.random.Generator, rows: Dataset | None) -> ChainsState:
    """Start chains at random states, at all lowest and all highest values, at modes of the model, and at rows."""
    kernel = kernel_for(model.family)
    chains = kernel.init(N_CHAINS, Key.of(rng))
    states = chains.states.copy()
    parts = np.array_split(np.arange(N_CHAINS), 4 if rows is None else 5)
    states[parts[1][::2]], states[parts[1][1::2]] = states.min(axis=0), states.max(axis=0)
    cold, _ = kernel.step(model.at(1.0 / COLD).theta, chains, COLD_SWEEPS)
    states[parts[2]] = cold.states[parts[2]]
    if rows is not None:
        states[parts[4]] = rows.sample(len(parts[4]), rng).rows()[0]
    return ChainsState(chains._replace(states=states), None, True)


def _tempered(model: Model, rng: np.random.Generator) -> Estimate | None:
    """Return the moments by tempered chains from random and from cold states; None where these do not agree."""
    if model.n_variables > MAX_TEMPERED_COLUMNS:
        return None
    ladder = TemperedReplicas(mixing=MixingCheck(warn=False))
    n_draws = int(np.clip(TEMPERED_UPDATES / (ladder.n_chains * 100.0 * model.n_variables), 100, ladder.n_draws))
    bound = Sampled(replace(ladder, n_draws=n_draws)).bind(model)
    try:
        estimate, _ = bound(model.theta, bound.init(model.theta, Key.of(rng)))
    except (ArgumentError, TooExpensiveError):  # a model that has no path from independent columns
        return None
    settled = not estimate.parts["r_hat"] > MAX_R_HAT_TEMPERED and not estimate.parts["warning"]
    return estimate if settled else None


def mixed_states(model: Model, n_states: int, rng: np.random.Generator) -> np.ndarray | None:
    """Return states of a model by tempered chains; None where it has no path from independent columns."""
    try:
        ladder = ReplicaLadder.settled(variable_path(model), Key.of(rng))
        return ladder.run(TEMPERED_ROUNDS, n_states)[1].states
    except (ArgumentError, TooExpensiveError):
        return None
