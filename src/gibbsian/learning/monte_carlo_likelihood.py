"""Maximum likelihood where nothing can be summed: rounds of chains, and the likelihood as their draws see it.

With draws ``x_k`` at theta_0, ``log Z(theta) - log Z(theta_0) = log mean exp((theta - theta_0) . S(x_k) / T)`` (Geyer
and Thompson 1992), a convex function of theta that is right near theta_0. A round draws, walks down that function as
far as the draws can be trusted, and the next one draws again where it ended. Only energies and means of statistics
are asked of a model, so that every exponential family with a sampler has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.diagnostics.moments import moment_errors
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.expectations import Expectation, PersistentChains, Sampled, as_expectation
from gibbsian.expectations.compiled_regions import compiled_plan
from gibbsian.expectations.imputation import present_means, shrunk_means
from gibbsian.expectations.regions import Neighbourhood
from gibbsian.expectations.samples import Samples
from gibbsian.learning.base import LEARNERS, Fit
from gibbsian.learning.descend import Minimisation
from gibbsian.learning.moment_matching import from_independent
from gibbsian.learning.named import MPLE
from gibbsian.learning.objectives import Equations, Likelihood
from gibbsian.learning.objectives.curvature import FLOPS_PER_SECOND
from gibbsian.learning.objectives.priors import SmoothPenalty
from gibbsian.learning.optimizers import StepInfo
from gibbsian.learning.optimizers.base import largest, subgradient
from gibbsian.learning.phases import bind_phases
from gibbsian.learning.preconditioners import preconditioning
from gibbsian.learning.recipe import CLAMPED_HELP, WithPrior, as_optimizer
from gibbsian.learning.run import run
from gibbsian.learning.trained import mixed_states
from gibbsian.models import Model
from gibbsian.models.conditionals.base import STATES_AT_ONCE
from gibbsian.resources import require_memory
from gibbsian.rng import Key
from gibbsian.sampling import Chains, Transition, kernel_for
from gibbsian.settings import declared, free, number, whole

# Draws are trusted while, reweighted, they are worth this share of as many of equal weight.
TRUSTED = 1 / 3
# The first round has this many times fewer draws than would do if they were independent, and no more than so many: far
# from the maximum a round finds the neighbourhood only. Rounds grow by two at most.
FIRST_SHARE, MAX_FIRST_DRAWS, GROWTH = 8.0, 10_000.0, 2.0
# Chains are read in so many groups, whose means give the Monte Carlo error.
MAX_GROUPS = 50
# A walk on the draws of one round ends when its gradient is, in the root of the mean square, this part of its Monte
# Carlo error; sooner where there are few draws a parameter, of which the noise would be learned.
RESIDUAL, MAX_STEPS = 0.2, 50
# Sweeps before the first draw of the first round, and of the others, where the model has hardly changed; draws of a
# chain that repeat each other are taken so many sweeps apart at most.
BURN_IN, BURN_IN_AGAIN, MAX_THIN = 200, 20, 64
# A Monte Carlo error this many times the one that was asked for is that error.
ENOUGH = 1.05
# Moments that are this many times as far off as where a round began, and as its error, say that it has led astray: then
# only this share of the way is taken. Before the first round they may be anywhere.
FURTHER, BACK, NOWHERE = 3.0, 0.25, float(np.finfo(np.float64).max)
# Pseudolikelihood, where learning begins, need not be solved to the end.
START_STEPS = 200
# Draws a parameter that the information is taken from: its inverse is then right to a twentieth.
DRAWS_A_PARAMETER = 20
# Rounds at a fitted model after which its error is what it is.
LAST_ROUNDS = 50


class RoundState(NamedTuple):
    """The answer so far, the chains, how long they run, the Monte Carlo error of the answer, and where a round began.

    `mismatch` is that of the moments where the round before began, in standard errors of the data. Chains of a start
    that was given are to be `spread` over its model before they draw.
    """

    theta: Floats
    chains: Chains
    posterior: Any
    deviations: Floats
    before: Floats
    chains_before: Chains
    mismatch: float
    trusted: float
    n_draws: int
    thin: int
    round: int
    evaluations: int
    spread: bool
    key: Key


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of chains, with what they say of the statistics.

    Parameters
    ----------
    states : ndarray of shape (n_groups, n_draws, n_variables)
        Draws of chains, which are independent between groups.
    groups : ndarray of shape (n_groups, n_parameters)
        The mean statistics of each group, by spatial Monte Carlo integration where that is quick.
    plain : ndarray of shape (n_groups, n_parameters)
        The same over the draws alone.
    """

    model: Model
    states: Floats
    groups: Floats
    plain: Floats

    @classmethod
    def of(cls, model: Model, states: Floats) -> Draws:
        """Take the means of groups of draws."""
        plain = np.array([model.family.mean_statistics(group) for group in states])
        plan: Any = compiled_plan(model, Neighbourhood(1))
        if plan is None:
            return cls(model, states, plain, plain)
        return cls(
            model, states, np.array([plan.statistics(model, Samples.of(group)).value for group in states]), plain
        )

    @property
    def flat(self) -> Floats:
        """All draws as rows."""
        return self.states.reshape(-1, self.states.shape[2])

    @property
    def mean(self) -> Floats:
        """The mean statistics."""
        return self.groups.mean(axis=0)

    def deviations(self, away: float = 0.0) -> Floats:
        """Return rows whose products with themselves add up to the Monte Carlo covariance of the mean.

        A walk that went from the model of the draws by d, to where the logarithms of their weights have the variance
        ``away = d.Jd``, had the covariance of n draws for the information J. That is wrong along d by an error with the
        covariance ``(d.Jd J + Jd (Jd)') / n``: but for a single direction, `away` times that of the plain mean.
        """
        return np.concatenate([_deviations(self.groups), np.sqrt(away) * _deviations(self.plain)])

    @property
    def repeats(self) -> float:
        """How many draws are worth one that is independent of the others, in the mean over the statistics."""
        low, high = self.model.family.statistic_range
        variance = np.maximum((high - self.mean) * (self.mean - low), 0.0).sum() / len(self.flat)
        return float(self.plain.var(axis=0, ddof=1).sum() / len(self.plain) / variance) if variance else 1.0


class Reweighted:
    """Minus the log-likelihood per row, up to a constant, as draws of a nearby model see it (Geyer and Thompson)."""

    def __init__(self, draws: Draws, data: Floats, smooth: SmoothPenalty):
        # the better means as control variates: they move the gradient by what the draws alone are off at their origin
        self.draws, self.data, self.smooth = draws, data - (draws.mean - draws.plain.mean(axis=0)), smooth
        self._logs = draws.model.log_weights(draws.flat)
        self._last = draws.model.theta, np.ones(len(self._logs)), 0.0

    def _weights(self, theta: Floats) -> tuple[Floats, float]:
        """Return what each draw counts for, and the logarithm of what was divided out; the last ones are kept."""
        if not np.array_equal(theta, self._last[0]):
            logs = self.draws.model.replace(theta).log_weights(self.draws.flat) - self._logs
            self._last = theta, np.exp(logs - logs.max()), float(logs.max())
        return self._last[1:]

    def worth(self, theta: Floats) -> float:
        """Return the effective sample size as a share of the draws."""
        weights, _ = self._weights(theta)
        return float(weights.sum() ** 2 / (weights @ weights) / len(weights))

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        origin = self.draws.model
        weights, most = self._weights(theta)
        value = np.log(weights.mean()) + most - (theta - origin.theta) @ self.data
        gradient = origin.family.mean_statistics(self.draws.flat, weights) - self.data
        penalty, slope = self.smooth(theta)
        return float(value + penalty), gradient + slope


@LEARNERS.register("mcmle", consistent=False, stochastic=True)
@declared(frozen=True)
class MonteCarloLikelihood(WithPrior):
    """Maximum likelihood by rounds of Markov chains (Geyer and Thompson 1992).

    Learning starts at pseudolikelihood, or at independent columns where that has better moments. Every round draws from
    the model and walks down the likelihood as the reweighted draws see it, by quasi-Newton steps about the mean, while
    they are worth a third of as many; the next round, with up to twice as many draws, starts there. A fit ends when the
    Monte Carlo error is the part `precision` of the data's own standard error and the moments agree within it. The
    answer has that error beside the one of the data: with a quarter, errors are 3% larger than those of exact
    likelihood. `gibbsian.uncertainty.standard_errors` has both. Where kernels serve 1-SMCI, moments of the draws by it
    are control variates: they move the gradient by what the draws alone are off.

    Chains that do not mix keep the error large, and rounds go on until ``max_iter``. With missing cells or hidden units
    a round is a step of EM: the data's statistics are expected under the model of its beginning.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]] * 100
    >>> bm = gb.BoltzmannMachine(learner="mcmle", random_state=0).fit(rows)
    >>> bm.result_.converged, bool(abs(bm.expect().value - 0.2).max() < 0.05)     # the data's moments are 0.2
    (True, True)
    """

    takes = frozenset({"partitions"})
    # What is lowered, though only its draws are seen.
    objective: ClassVar[Likelihood] = Likelihood()

    precision: float = number(
        0.25, "The Monte Carlo error to reach, as a part of the data's own standard error.", above=0, most=1
    )
    n_chains: int = whole(200, "Number of chains; their spread gives the Monte Carlo error.", least=4)
    max_draws: int = whole(2**20, "Most draws of one round, which are kept in memory.", least=1)
    sampler: str | Transition = free(
        "gibbs", "Scan order: 'gibbs', 'random-scan' or 'chromatic', or a transition.", doc="str or Transition"
    )
    clamped: Expectation | str | None = free(None, CLAMPED_HELP, doc="Expectation, str or None")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clamped is not None:
            self._settle(clamped=as_expectation(self.clamped, "clamped"))

    def bind(self, model: Model[Any], data: Dataset) -> MonteCarloFit:
        """Bind the data's statistics, or their clamped phase, and what the walks need."""
        return MonteCarloFit(self, model, data)

    # -- errors -------------------------------------------------------------------------------------------------------
    def equations(self, model: Model, data: Dataset, max_seconds: float = 60.0) -> Equations:
        """Return the likelihood equations, their derivatives by draws, with the Monte Carlo error of further rounds."""
        if data.has_missing or model.n_hidden or self.log_prior is not None:
            what = "a prior" if self.log_prior is not None else "missing cells or hidden units"
            raise ArgumentError(
                f"errors of Monte Carlo likelihood are not known with {what}", "use `gibbsian.uncertainty.bootstrap`"
            )
        size = model.theta.size
        seconds = DRAWS_A_PARAMETER * size * size**2 / FLOPS_PER_SECOND
        if seconds > max_seconds:
            raise TooExpensiveError(
                f"the information about {size:,} parameters would take about {seconds:.2g} s, but "
                f"`max_seconds={max_seconds:g}`",
                "raise `max_seconds`, or use `gibbsian.uncertainty.bootstrap`",
            )
        fit = self.bind(model, data)
        last, _ = fit.init(Key.of(0))
        for _ in range(LAST_ROUNDS):
            last, info = fit.step(last)
            if info.noise:
                break
        n_draws = fit.n_draws(max(DRAWS_A_PARAMETER * size, 10_000))
        draws, _ = fit.draw(model, last.chains, n_draws, last.thin, BURN_IN_AGAIN)
        jacobian = _covariance(model, draws.flat)
        # the fit's own last round may have had any error that is enough
        most = max(1.0, ENOUGH * self.precision / max(info.metrics["error"], np.finfo(float).tiny))
        noise = most * last.deviations
        return Equations(jacobian, Likelihood().scores(model, data, max_seconds), noise=noise, is_information=True)


class MonteCarloFit(Fit[RoundState]):
    """Rounds of chains bound to a model and rows."""

    def __init__(self, learner: MonteCarloLikelihood, model: Model[Any], data: Any):
        self.learner, self.start, self.data = learner, model, data
        chains = Sampled(PersistentChains(n_chains=learner.n_chains, sampler=learner.sampler))
        self.phases = bind_phases(model, data, chains, learner.clamped)
        self.kernel = kernel_for(model.family, learner.sampler)
        self.smooth, self.data_error = learner._smooth_of(model, data), moment_errors(model, data)
        self.walk = self._walk()
        self.group = -(-learner.n_chains // MAX_GROUPS)  # chains of a group

    def init(self, key: Key, theta: Floats | None = None) -> tuple[RoundState, StepInfo]:
        """Begin at pseudolikelihood or at independent columns, or at given parameters with chains spread over them."""
        posterior, (chains, _, _) = self.phases.init(self.start.theta, key)
        size = self.start.theta.size
        few = min(self.data.total_weight / self.learner.precision**2 / FIRST_SHARE, MAX_FIRST_DRAWS)
        n_draws = self.n_draws(max(few, 2.0 * size))
        begin = self._begin(chains, n_draws) if theta is None else theta
        deviations = np.zeros((2 * (self.learner.n_chains // self.group), size))
        state = RoundState(
            begin,
            chains,
            posterior,
            deviations,
            begin,
            chains,
            NOWHERE,
            TRUSTED,
            n_draws,
            1,
            0,
            0,
            theta is not None,
            key,
        )
        return state, StepInfo()

    def step(self, state: RoundState) -> tuple[RoundState, StepInfo]:
        """Draw at the present parameters, see how far the moments agree, and walk as far as the draws are good for."""
        now, model = state, self.start.replace(state.theta)
        if now.spread:
            states = mixed_states(model, self.learner.n_chains, now.key.fold("states").generator())
            chains = now.chains if states is None else now.chains._replace(states=states)
            now = now._replace(chains=chains, chains_before=chains, spread=False)
        data, posterior = self.phases.clamped(now.theta, now.posterior)
        burn_in = BURN_IN_AGAIN + now.n_draws * now.thin // 10 if now.round else BURN_IN
        draws, chains = self.draw(model, now.chains, now.n_draws, now.thin, burn_in)

        def error(deviations: Floats) -> Floats:
            return np.sqrt(np.square(deviations).sum(axis=0) + data.monte_carlo_error**2)

        stderr = error(draws.deviations())
        function = Reweighted(draws, data.value, self.smooth)
        gradient = subgradient(now.theta, function(now.theta)[1], self.walk.l1)
        norm, evaluations = largest(gradient), now.evaluations + 1
        coarse, mismatch = _coarse(model, stderr, self.data_error), _ratio(gradient, self.data_error)
        figures = {"draws": float(len(draws.flat)), "worth": 0.0, "error": coarse}
        if mismatch > FURTHER * max(now.mismatch, coarse):
            # its draws led the round before astray: return to near where it began, and trust draws less
            back = now._replace(
                theta=now.before + BACK * (now.theta - now.before),
                chains=now.chains_before,
                trusted=float(np.sqrt(now.trusted)),
                round=now.round + 1,
                evaluations=evaluations,
            )
            return back, StepInfo(np.nan, norm, BACK, evaluations, metrics=figures)
        theta, figures["worth"], extra = _walked(self.walk, function, now, stderr)
        deviations = draws.deviations(1.0 / function.worth(theta) - 1.0)
        figures["error"] = coarse = _coarse(model, error(deviations), self.data_error)
        noise, precision = 0.0, self.learner.precision
        if coarse <= ENOUGH * precision or now.n_draws >= self.n_draws(np.inf):
            noise = _within(np.abs(gradient), np.hypot(stderr, error(now.deviations)))
        growth = float(np.clip(1.1 * (coarse / precision) ** 2, 1.0, GROWTH))
        after = now._replace(
            theta=theta,
            chains=chains,
            posterior=posterior,
            deviations=deviations,
            before=now.theta,
            chains_before=chains,
            mismatch=mismatch,
            trusted=max(TRUSTED, now.trusted**2),
            n_draws=self.n_draws(now.n_draws * self.learner.n_chains * growth) if figures["worth"] else now.n_draws,
            thin=int(np.clip(round(now.thin * draws.repeats / 2), 1, MAX_THIN)),
            round=now.round + 1,
            evaluations=evaluations + extra,
        )
        return after, StepInfo(np.nan, norm, 1.0, after.evaluations, noise=noise, metrics=figures)

    def model(self, state: RoundState) -> Model[Any]:
        """Return the model at a state."""
        return self.start.replace(state.theta)

    def n_draws(self, n_samples: float) -> int:
        """Return how many draws each chain makes, for so many in all."""
        n_chains = self.learner.n_chains
        return max(1, int(min(np.ceil(n_samples / n_chains), self.learner.max_draws // n_chains)))

    def draw(self, model: Model, chains: Chains, n_draws: int, thin: int, burn_in: int) -> tuple[Draws, Chains]:
        """Run the chains on and keep a draw after every `thin` sweeps, with the draws of some chains as one group."""
        n_chains, n = chains.states.shape
        require_memory(
            n_chains * n_draws * (n + 24.0) + 8.0 * MAX_GROUPS * model.theta.size,
            f"keeping {n_chains * n_draws} draws of {n} variables",
            "lower `max_draws`",
        )
        kept = np.empty((n_chains, n_draws, n), chains.states.dtype)
        for t in range(n_draws):
            chains, _ = self.kernel.step(model.theta, chains, thin + (burn_in if t == 0 else 0))
            kept[:, t] = chains.states
        groups = kept[: n_chains // self.group * self.group].reshape(-1, self.group * n_draws, n)
        return Draws.of(model, groups), chains

    def _begin(self, chains: Chains, n_draws: int) -> Floats:
        """Return where learning begins when nothing is said: at pseudolikelihood, or at independent columns.

        The moments say where. Of strongly related columns pseudolikelihood may put most of the weight on states that no
        row is near.
        """
        model, learner = self.start, self.learner
        apart = from_independent(model, self.data).theta
        if model.theta.any() or model.n_hidden or self.data.has_missing:
            return apart
        quick = MPLE(l1=learner.l1, l2=learner.l2, log_prior=learner.log_prior)
        related = run(quick, model, self.data, 0, max_iter=START_STEPS, tol=1e-4).model.theta
        statistics = self.phases.clamped(model.theta, ())[0].value

        def mismatch(theta: Floats) -> float:
            draws, _ = self.draw(model.replace(theta), chains, n_draws, 1, BURN_IN)
            return _ratio(draws.mean - statistics, self.data_error)

        return min((related, apart), key=mismatch)

    def _walk(self) -> Minimisation:
        """Return how the parameters move on the draws of a round: about the mean, preconditioned as the likelihood."""
        model, data, l1 = self.start, self.data, self.learner._l1_of(self.start, self.data)
        known, preconditioner = preconditioning(model.family), None
        if not (data.has_missing or model.n_hidden or l1.any()):
            mean = shrunk_means(model, data)
            if (near := known.independent(mean)) is not None:
                bend = self.smooth.bend(near)
                preconditioner = Likelihood().preconditioner(model.replace(near), data, mean, bend)
        centring = known.centred(present_means(data), l1=bool(l1.any()))
        return Minimisation(lambda theta: (0.0, theta), as_optimizer("lbfgs"), l1, centring, preconditioner)


def _deviations(groups: Floats) -> Floats:
    """Return rows whose products with themselves add up to the covariance of the mean of n independent groups.

    The covariance of the groups is itself a sample, so that the mean is off as in Student's distribution, whose
    variance is ``(n - 1) / (n - 3)`` of the groups'.
    """
    n = len(groups)
    return (groups - groups.mean(axis=0)) / np.sqrt(n * (n - 3.0))


def _ratio(parts: Floats, whole: Floats) -> float:
    """Return numbers as a part of others, in the root of the mean of squares."""
    known = whole > 0
    return float(np.sqrt(np.mean(np.square(parts[known] / whole[known])))) if known.any() else 0.0


def _coarse(model: Model, stderr: Floats, data_error: Floats) -> float:
    """Return the Monte Carlo error as a part of the data's, of biases or of interactions, whichever is larger."""
    return max(_ratio(stderr[part], data_error[part]) for part in (model.penalised, ~model.penalised))


def _within(gradient: Floats, error: Floats) -> float:
    """Return what of the largest entry may be noise, by the largest and by the mean square entry.

    Of p entries of noise the largest is near ``sqrt(2 log 2p)`` errors, and the mean square near one.
    """
    known = error > 0
    size = max(int(known.sum()), 1)
    largest = (gradient[known] / error[known]).max(initial=0.0) / (1.0 + np.sqrt(2.0 * np.log(2.0 * size)))
    worst = max(largest, _ratio(gradient, error) / np.sqrt(1.25 + 3.0 * np.sqrt(2.0 / size)))
    return float(gradient.max(initial=0.0) / worst) if worst else 0.0


def _walked(walk: Minimisation, function: Reweighted, now: RoundState, error: Floats) -> tuple[Floats, float, int]:
    """Walk down until the gradient is within its noise, or the draws are worth too little (then it returns zero)."""
    walk = replace(walk, function=function)
    state, draws = walk.start(now.theta), function.draws
    least = np.clip(np.sqrt(now.theta.size * draws.repeats / len(draws.flat)), RESIDUAL, 1.0)
    for _ in range(MAX_STEPS):
        if _ratio(subgradient(state.theta, state.gradient, walk.l1), error) <= least:
            break
        after, info = walk.step(state)
        if function.worth(after.theta) < now.trusted:
            return _edge(function, state.theta, after.theta, now.trusted), 0.0, info.evaluations
        state = after
        if info.outcome is not None:
            break
    return state.theta, function.worth(state.theta), state.evaluations


def _edge(function: Reweighted, inside: Floats, outside: Floats, trusted: float) -> Floats:
    """Go from a point where draws are trusted towards one where they are not, while they are: values fall all along."""
    for share in 0.5 ** np.arange(1, 30):
        theta = inside + share * (outside - inside)
        if function.worth(theta) >= trusted:
            return theta
    return inside


def _covariance(model: Model, rows: Floats) -> Floats:
    """Return the covariance of the statistics over draws, some at a time."""
    mean = model.family.mean_statistics(rows)
    covariance = np.zeros((mean.size, mean.size))
    for first in range(0, len(rows), STATES_AT_ONCE):
        centred = model.family.statistics(rows[first : first + STATES_AT_ONCE]) - mean
        covariance += centred.T @ centred
    return covariance / (len(rows) - 1)
