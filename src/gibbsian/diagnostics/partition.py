"""Bounds on log Z by annealed importance sampling, forward and in reverse, checked by tempered chains.

The forward run to the model gives an estimate of log Z that is too small in expectation, the reverse run one that is
too large. If they agree both are right; otherwise log Z lies between them, provided that the reverse run started at
states of the model. The two runs cannot show whether it did. So tempered chains provide these states, and a separate
estimate from the bridges between neighbouring temperatures (`gibbsian.sampling.bridges`): both methods must agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gibbsian.arrays import Floats, States
from gibbsian.data import Dataset
from gibbsian.display import Shown
from gibbsian.errors import ArgumentError, MixingWarning, notify
from gibbsian.estimate import Estimate
from gibbsian.models.base import F, Model
from gibbsian.rng import Key, RandomState, as_generator
from gibbsian.sampling.annealing import AnnealedRun, Annealing
from gibbsian.sampling.bridges import COLUMNS, SWEEPS, BridgeEstimate, ReplicaLadder, bennett
from gibbsian.sampling.paths import Path, as_path
from gibbsian.settings import check_whole_number
from gibbsian.startup import logsumexp

# Standard errors that two estimates of one number may be apart.
MAX_ERRORS_APART = 4.0
# Rounds of tempered chains: half the work of one way of the annealing, within these bounds.
MIN_ROUNDS, MAX_ROUNDS = 100, 500
# Names of ways to start at the model, other than states and data.
STARTS = ("tempering", "gibbs", "exact")
# Factor by which everything runs longer once more where the methods do not agree.
LONGER = 4


@dataclass(frozen=True, repr=False)
class LogPartitionInterval(Shown):
    """log Z from below and from above.

    Parameters
    ----------
    forward, reverse : AnnealedRun
        The runs from independent variables to the model and back.
    start : str
        The start of the reverse run, as text.
    n_errors : float
        Standard errors by which the interval reaches beyond the two estimates.
    tempered : BridgeEstimate, optional
        The estimate of tempered chains, whose interval is part of this one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.diagnostics.partition import LogPartitionInterval
    >>> from gibbsian.sampling.annealing import AnnealedRun
    >>> up = AnnealedRun(np.ones((2, 1), np.int8), np.array([2.0, 2.0]), n_betas=10)
    >>> down = AnnealedRun(np.ones((2, 1), np.int8), np.array([-2.5, -2.5]), n_betas=10, reverse=True)
    >>> LogPartitionInterval(up, down, "exact draws").lower, LogPartitionInterval(up, down, "exact draws").upper
    (2.0, 2.5)
    """

    forward: AnnealedRun
    reverse: AnnealedRun
    start: str
    n_errors: float = 2.0
    tempered: BridgeEstimate | None = None

    def _facts(self) -> dict[str, object]:
        return {"log Z": self.describe()}

    @property
    def _ends(self) -> tuple[float, ...]:
        """Both estimates among them: by chance the forward one may be the larger."""
        below, above = self.stderrs
        forward, reverse = self.forward.log_partition, self.reverse.log_partition
        ends = [forward, reverse, forward - self.n_errors * below, reverse + self.n_errors * above]
        if self.crossed:
            ends.append(forward + self.n_errors * below)
        if self.tempered is not None:
            # the errors of annealing come from walkers, which may share what they lack; these from independent columns
            ends += [self.tempered.log_partition + sign * self.tempered.reach for sign in (-1.0, 1.0)]
        return tuple(ends)

    @property
    def crossed(self) -> bool:
        """Whether the way back ends below the way there beyond their errors.

        The way there hardly ever ends above log Z, so the way back did not start at the model's distribution: there
        may be states that its start has not found, and log Z may be larger than both say.
        """
        gap = self.forward.log_partition - self.reverse.log_partition
        return bool(gap > MAX_ERRORS_APART * float(np.hypot(*self.stderrs)) + 1e-8)

    @property
    def lower(self) -> float:
        """Lower end: the forward estimate less its errors, or the reverse one where that is lower."""
        return min(self._ends)

    @property
    def upper(self) -> float:
        """Upper end: the reverse estimate and its errors, or the forward one where that is higher."""
        return max(self._ends)

    @property
    def stderrs(self) -> tuple[float, float]:
        """Standard errors of the forward and of the reverse estimate."""
        return self.forward.log_partition_stderr, self.reverse.log_partition_stderr

    @property
    def trouble(self) -> str | None:
        """Why the two estimates do not determine log Z, or None where they agree within their errors."""
        gap = self.reverse.log_partition - self.forward.log_partition
        error = float(np.hypot(*self.stderrs))
        if self.crossed:
            return (
                f"the reverse estimate of log Z is {-gap:.3g} below the forward one, so the reverse run did not start "
                "at the model's distribution, and log Z may be above both"
            )
        # a gap of rounding errors does not count, at any ratio
        if abs(gap) > MAX_ERRORS_APART * error + 1e-8:
            return (
                f"the forward and reverse estimates of log Z are {gap:.3g} apart, with a standard error of {error:.2g}"
            )
        for run, name in ((self.forward, "forward"), (self.reverse, "reverse")):
            if run.warning:
                return f"in the {name} run {run.warning}"
        return None if self.tempered is None else self.tempered.warning or self._disagreement(self.tempered)

    def _disagreement(self, tempered: BridgeEstimate) -> str | None:
        """Return how tempered chains and annealing disagree, or None where they agree."""
        below, above = (float(np.hypot(error, tempered.log_partition_stderr)) for error in self.stderrs)
        gaps = {
            "below the forward": (self.forward.log_partition - tempered.log_partition, below),
            "above the reverse": (tempered.log_partition - self.reverse.log_partition, above),
        }
        for side, (gap, error) in gaps.items():
            if gap > MAX_ERRORS_APART * error + 1e-8:
                return (
                    f"two methods do not agree: tempered chains put log Z {gap:.3g} {side} estimate of annealing, with "
                    f"a standard error of {error:.2g}"
                )
        return None

    def combined(self) -> Estimate:
        """Return one estimate of log Z from all runs (Bennett 1976).

        Of all estimates from the two sets of weights it has the smallest error; that of tempered chains is averaged
        with it by their variances. It is meant for runs that agree.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.diagnostics.partition import log_partition_interval
        >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
        >>> log_z = log_partition_interval(model, "exact", rng=0).combined()
        >>> abs(log_z.value - gb.inference.exact(model).log_partition) < 3 * log_z.stderr < 0.02
        True
        """
        forward, reverse = self.forward.log_weights, self.reverse.log_weights
        log_z, shift = bennett(forward, reverse), np.log(len(forward) / len(reverse))
        variance = _relative_variance(forward - log_z - shift) + _relative_variance(reverse + log_z + shift)
        if self.tempered is None:
            return Estimate(log_z, float(np.sqrt(variance)))
        weights = 1.0 / np.maximum([variance, self.tempered.log_partition_stderr**2], 1e-20)
        both = np.average([log_z, self.tempered.log_partition], weights=weights)
        return Estimate(float(both), float(1.0 / np.sqrt(weights.sum())))

    def describe(self) -> str:
        """Return the result as text.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.diagnostics.partition import log_partition_interval
        >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
        >>> print(log_partition_interval(model, rng=0).describe())
        log Z between 2.0794 and 2.0794: the forward run gives 2.0794 +- 0.0000, a lower bound in expectation; the
        reverse run gives 2.0794 +- 0.0000, an upper bound in expectation as far as its start, ... tempered chains...
        """
        below, above = self.stderrs
        text = (
            f"log Z between {self.lower:.4f} and {self.upper:.4f}: the forward run gives "
            f"{self.forward.log_partition:.4f} +- {below:.4f}, a lower bound in expectation; the reverse run gives "
            f"{self.reverse.log_partition:.4f} +- {above:.4f}, an upper bound in expectation as far as its start, "
            f"{self.start}, has the model's distribution"
        )
        if self.tempered is not None:
            text = f"{text}; {self.tempered.describe()}"
        return f"{text}; beware: {self.trouble}" if self.trouble else text

    def __str__(self) -> str:
        return self.describe()


def log_partition_interval(
    model: Model[F] | Path,
    samples: object = "tempering",
    annealing: Annealing | None = None,
    rng: RandomState = None,
    burn_in: int = 1000,
    warn: bool = True,
) -> LogPartitionInterval:
    """Bracket log Z by annealed importance sampling to the model and back, and by tempered chains.

    Parameters
    ----------
    model : Model or Path
        The distribution, which is reached from independent variables; or another path to it.
    samples : str, array-like or Dataset, default "tempering"
        The start of the way back: ``"tempering"`` (tempered chains, whose own estimate of log Z is then part of the
        interval; where the methods do not agree all runs once more, four times as long), ``"gibbs"`` (chains from
        random states), ``"exact"`` (draws by exact inference, to judge the method), states drawn from the model, or
        data, which represents the model as far as the model fits it.
    annealing : Annealing, optional
        Walkers and places; by default 100 walkers and 10,000 places. Tempered chains do about half the work of one
        way of it.
    rng : None, int or Generator
        Source of randomness.
    burn_in : int, default 1000
        Steps of Gibbs chains before the way back.
    warn : bool, default True
        Whether to give a `MixingWarning` when the sides or the methods disagree beyond their errors.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.diagnostics.partition import log_partition_interval
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
    >>> interval = log_partition_interval(model, rng=0)
    >>> interval.lower < gb.inference.exact(model).log_partition < interval.upper
    True
    """
    chosen = Annealing() if annealing is None else annealing
    check_whole_number("burn_in", burn_in, least=0)
    generator = as_generator(rng)
    # one path for both ways: Bennett's combination of them needs the same
    path = as_path(model, Key.of(generator))
    _check_start(path, samples)  # before the way there is made
    if isinstance(samples, str) and samples == "tempering":
        interval = _by_two_methods(path, chosen, generator)
    else:
        forward = chosen.forward(path, generator)
        states, start = _starts(path, samples, chosen.n_walkers, generator, burn_in)
        interval = LogPartitionInterval(forward, chosen.reverse(path, states, generator), start)
    if warn and interval.trouble:
        n_betas = interval.forward.n_betas
        notify(MixingWarning(interval.trouble, f"raise the number of temperatures, `betas={n_betas}`"))
    return interval


def _by_two_methods(path: Path, annealing: Annealing, rng: np.random.Generator) -> LogPartitionInterval:
    """Anneal to the model and back from tempered chains; where something is wrong, all once more and longer."""
    ladder = ReplicaLadder.settled(path, Key.of(rng))
    n_steps = len(annealing.ladder) - 1
    work = 0.5 * annealing.n_walkers * n_steps / (COLUMNS * SWEEPS * len(ladder.betas))
    n_rounds = int(np.clip(work, MIN_ROUNDS, MAX_ROUNDS))
    for longer in (1, LONGER):
        evenly = np.linspace(0.0, n_steps, longer * n_steps + 1)
        run = replace(annealing, betas=np.interp(evenly, np.arange(n_steps + 1), annealing.ladder))
        ladder, tempered = ladder.run(longer * n_rounds, annealing.n_walkers)
        forward, reverse = run.forward(path, rng), run.reverse(path, tempered.states, rng)
        interval = LogPartitionInterval(
            forward, reverse, f"{len(tempered.states)} states of tempered chains", tempered=tempered
        )
        if interval.trouble is None:
            break
    return interval


def _check_start(path: Path, start: object) -> None:
    """Refuse what the way back cannot start from."""
    if isinstance(start, str):
        if start not in STARTS:
            known = ", ".join(map(repr, STARTS))
            raise ArgumentError("is not known", f"use {known}, states or a Dataset", argument="samples", value=start)
    elif isinstance(start, Dataset):
        path.rows_of(start, np.arange(1))
    else:
        path.chains_at(start, Key.of(0), "samples")


def _starts(path: Path, start: object, n_walkers: int, rng: np.random.Generator, burn_in: int) -> tuple[States, str]:
    """Return states for the way back, and what they are in words."""
    if isinstance(start, Dataset):
        numbers = rng.choice(len(start.weights), n_walkers, p=start.weights / start.weights.sum())
        return path.rows_of(start, numbers), f"{n_walkers} rows of the data"
    if not isinstance(start, str):
        states = np.asarray(start)
        return states, f"the {len(states)} states given"
    if start == "exact":
        return path.exact_rows(n_walkers, rng), f"{n_walkers} exact draws"
    chains = path.start(n_walkers, Key.of(rng))
    chains, _ = path.kernel().step(path.theta(1.0), chains, burn_in)
    return path.rows(chains.states), f"{n_walkers} Gibbs chains of {burn_in} sweeps"


def _relative_variance(log_odds: Floats) -> float:
    """Variance of the mean of ``expit(log_odds)`` over its square."""
    logs = -np.logaddexp(0.0, -log_odds)
    ratio = logsumexp(2.0 * logs) + np.log(len(logs)) - 2.0 * logsumexp(logs)
    return float(np.expm1(ratio)) / len(logs)


__all__ = ["LogPartitionInterval", "log_partition_interval"]
