"""Expectations from Markov chains: long runs, and the short ones that learning takes after every change of parameters.

Chains that live on are averaged over many sweeps, or read once per call, as persistent contrastive divergence does;
those that start afresh at the data give contrastive divergence. The standard error always comes from the spread over
chains, which are independent of each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.diagnostics.chains import report_on
from gibbsian.errors import MixingWarning, notify
from gibbsian.estimate import Estimate
from gibbsian.expectations.in_spins import products_of
from gibbsian.expectations.legacy import EXPECTATIONS, Rebuilt
from gibbsian.expectations.there import GoesOn, There, ThereState
from gibbsian.models.base import Array, DiscreteFamily, ExponentialFamily, Family, Model
from gibbsian.old_sampling import ChainState, Sampler, as_sampler
from gibbsian.resources import require_memory
from gibbsian.settings import check, declared, flag, free, number, whole


class MonteCarloState(NamedTuple):
    """The chains, and whether their burn-in is still to come."""

    chains: ChainState
    fresh: bool


class RestartedState(NamedTuple):
    """Chains at the data, what share of the data each stands for, and the statistics there."""

    chains: ChainState
    shares: Array
    statistics: Array


@EXPECTATIONS.register("monte-carlo")
@declared(frozen=True)
class MonteCarlo:
    """Average the statistics over the states of persistent chains.

    The standard error comes from the spread of the chains' own means: chains are independent, so with `C` of them it is
    their standard deviation over ``sqrt(C)``, whatever the autocorrelation within a chain. With 100 chains it is itself
    good to about 7%.

    R-hat compares chains of the length of one call. Chains much shorter than their memory get a large one although
    they are where they should be, so a caller that makes many short calls turns `warn` off.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.MonteCarlo()
    >>> state = expectation.init(model, None, np.random.default_rng(0))
    >>> estimate, state = expectation(model, state)
    >>> bool(abs(estimate.value[2] - np.tanh(0.5)) < 4 * estimate.stderr[2])
    True
    """

    n_chains: int = whole(100, "Independent chains.", least=2)
    n_steps: int = whole(500, "Sweeps of each chain in one call; every one gives a draw.", least=1)
    burn_in: int = whole(500, "Sweeps before the first draw of the first call.")
    sampler: str | Sampler = free("gibbs", "Name of a registered sampler, or a sampler.", doc="str or Sampler")
    warn: bool = flag(True, "Whether to warn when the chains disagree or their draws are too dependent.")
    max_r_hat: float = number(1.05, "Largest R-hat without a warning.", above=1)
    min_ess: float = number(100.0, "Smallest effective sample size, over all chains, without a warning.", least=0)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model[DiscreteFamily], data: Rows, rng: np.random.Generator) -> MonteCarloState:
        """Start the chains at uniformly random states; `data` is not used."""
        return MonteCarloState(as_sampler(self.sampler).init(model, self.n_chains, rng), fresh=True)

    def __call__(self, model: Model[ExponentialFamily], state: MonteCarloState) -> tuple[Estimate, MonteCarloState]:
        """Run the chains on under `model` and return the mean statistics over their draws."""
        burn_in = self.burn_in if state.fresh else 0
        draws, chains = keep_draws(self.sampler, model, state.chains, self.n_steps, burn_in)
        estimate = replace(chain_means(model, draws), parts=judged(self, model, draws))
        return estimate, MonteCarloState(chains, fresh=False)


@declared(frozen=True)
class RestartedChains:
    """Statistics of chains that start at the data in every call and run for a few sweeps (Hinton 2002).

    Every distinct state of the data starts as many chains as its weight asks for, and at least one; they share its
    weight. So the starts have exactly the data's statistics, and the only noise is that of the sweeps. The standard
    error is a bound on it, from how the changes of the chains scatter: too large by the square root of two at most
    where the model fits the data, by more where it does not.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import RestartedChains
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.2])
    >>> expectation = RestartedChains(n_steps=10, n_chains=10_000)
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.2)) < 0.05)
    True
    """

    n_steps: int = whole(1, "Sweeps from the data, the k of CD-k.", least=1)
    sampler: str | Sampler = free(
        "gibbs",
        "Scan order: 'gibbs' (in the order of the variables), 'random-scan', 'chromatic', or a sampler.",
        doc="str or Sampler",
    )
    n_chains: int | None = whole(
        None, "About how many chains; by default as many as the data has rows.", least=2, optional=True
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model[DiscreteFamily], data: Dataset, rng: np.random.Generator) -> Any:
        """Place the chains at the data; of rows on a cluster the workers do, in every call."""
        if data.on_cluster:
            return There(self).init(model, data, rng)
        chains, shares = start_at_rows(self.sampler, model, data, self._n_chains(data), rng)
        return RestartedState(chains, shares, model.family.mean_statistics(chains.states, shares))

    def __call__(self, model: Model[DiscreteFamily], state: Any) -> tuple[Estimate, Any]:
        """Run the chains from the data and return the mean statistics where they end."""
        if isinstance(state, ThereState):
            return There(self)(model, state)
        chains, shares, start = state
        ends, _ = as_sampler(self.sampler).step(model, chains, self.n_steps)
        mean = model.family.mean_statistics(ends.states, shares)
        variance = most_variance(model, mean)
        if (products := products_of(model.family, ends.states, chains.states)) is not None:
            # either bounds the noise of the sweeps: the one is close after many of them, the other after few
            both = model.family.mean_statistics(products, shares)
            variance = np.minimum(variance, _variance_of_change(model, mean, start, both))
        stderr = np.sqrt(variance * (shares @ shares))
        return Estimate(mean, stderr), RestartedState(ends._replace(states=chains.states), shares, start)

    def restarted_at(self, model: Model[ExponentialFamily], state: Any, rows: Dataset) -> Any:
        """Return the chains at other rows: the data as their missing cells are completed now."""
        if isinstance(state, ThereState):
            return state._replace(data=Rebuilt(rows))
        states, shares = spread_over_rows(rows, self._n_chains(rows))
        statistics = model.family.mean_statistics(states, shares)
        return RestartedState(state.chains._replace(states=states), shares, statistics)

    def _n_chains(self, data: Dataset) -> int:
        return data.n_rows if self.n_chains is None else self.n_chains


@declared(frozen=True)
class PersistentChains(GoesOn):
    """Statistics of chains that go on from one call to the next while the model changes under them (Tieleman 2008).

    The chains start at rows of the data drawn by weight, or at uniformly random states where there is no data.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import PersistentChains
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = PersistentChains(n_chains=10_000, n_steps=20)
    >>> estimate, state = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.5)) < 4 * estimate.stderr[2])
    True
    """

    n_chains: int = whole(500, "Independent chains.", least=2)
    n_steps: int = whole(1, "Sweeps in each call; the statistics are read after the last.", least=1)
    sampler: str | Sampler = free("gibbs", "Name of a registered sampler, or a sampler.", doc="str or Sampler")

    def __post_init__(self) -> None:
        check(self)

    def start(self, model: Model[DiscreteFamily], data: Dataset | None, rng: np.random.Generator) -> ChainState:
        """Return the chains at their first states."""
        require_chains(self.n_chains, model)
        starts = None if data is None else data.sample(self.n_chains, rng).rows()[0]
        return as_sampler(self.sampler).init(model, self.n_chains, rng, states=starts)

    def moved(self, model: Model[DiscreteFamily], state: ChainState) -> tuple[Estimate, ChainState]:
        """Run the chains on and return the mean statistics over them."""
        chains, _ = as_sampler(self.sampler).step(model, state, self.n_steps)
        mean = model.family.mean_statistics(chains.states)
        return Estimate(mean, np.sqrt(most_variance(model, mean) / (len(chains.states) - 1))), chains

    def part(self, state: ChainState, chosen: slice) -> ChainState:
        """Return the state of some of the chains."""
        return state.part(chosen)


def spread(shares: Array, n_chains: int) -> tuple[Array, Array]:
    """Give rows their parts of the chains, rounded up: return the row of each chain and its share of the weight."""
    # a hair is taken off so that a whole number of chains is not rounded up to the next
    copies = np.ceil(n_chains * shares / shares.sum() * (1 - 1e-12)).astype(np.int64)
    row_of = np.repeat(np.arange(len(shares)), copies)
    return row_of, (shares / np.maximum(copies, 1))[row_of]


def spread_over_rows(data: Dataset, n_chains: int) -> tuple[Array, Array]:
    """Return the states at which about as many chains start, and the share of the weight of each."""
    row_of, shares = spread(data.weights / data.total_weight, n_chains)
    return data.states[row_of], shares


def start_at_rows(
    sampler: str | Sampler, model: Model[DiscreteFamily], data: Dataset, n_chains: int, rng: np.random.Generator
) -> tuple[ChainState, Array]:
    """Place chains at the data; return them with the share of the weight of each."""
    states, shares = spread_over_rows(data, n_chains)
    require_chains(len(states), model)
    return as_sampler(sampler).init(model, len(states), rng, states=states), shares


def keep_draws(
    sampler: str | Sampler,
    model: Model[Any],
    chains: ChainState,
    n_steps: int,
    burn_in: int,
    cell_bytes: float = 1.0,
    thin: int = 1,
) -> tuple[Array, ChainState]:
    """Run chains on and keep the states after every sweep, or every few, that follows the burn-in, by chain."""
    n_chains, n = chains.states.shape
    require_memory(
        n_chains * (cell_bytes * n * n_steps + 8.0 * model.theta.size),
        f"keeping {n_chains * n_steps} draws of {n} variables",
        "lower `n_chains` or `n_steps`",
    )
    draws, moves = np.empty((n_chains, n_steps, n), chains.states.dtype), as_sampler(sampler)
    if burn_in:
        chains, _ = moves.step(model, chains, burn_in)
    for t in range(n_steps):
        chains, _ = moves.step(model, chains, thin)
        draws[:, t] = chains.states
    return draws, chains


def chain_means(model: Model[ExponentialFamily], draws: Array) -> Estimate:
    """Return the mean statistics over draws of independent chains."""
    means = np.array([model.family.mean_statistics(chain) for chain in draws])
    stderr = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    low, high = model.family.statistic_range
    return Estimate(means.mean(axis=0), never_blind(stderr, high - low, draws.shape[0] * draws.shape[1]))


def never_blind(stderr: Array, spread: Array, n_draws: float) -> Array:
    """Return standard errors of statistics that vary by `spread` at most, with what n draws cannot exclude.

    Another value with a probability of ``3 / n`` stays unseen in 5% of all runs; two standard errors reach so far.
    Where few draws differ, their spread says too little by about as much: Agresti and Coull (1998) count two more of
    each value.
    """
    return np.hypot(stderr, 1.5 * spread / n_draws)


def judged(expectation: Any, model: Model[Family], draws: Array) -> dict[str, float]:
    """Return how well chains mix; an expectation that is to warn does, where its own limits are passed."""
    report = report_on(summaries(model, draws))
    if expectation.warn and not report.is_good(expectation.max_r_hat, expectation.min_ess):
        longer = f"raise `n_steps={expectation.n_steps}`"
        if hasattr(expectation, "burn_in"):
            longer = f"{longer} or `burn_in={expectation.burn_in}`, or temper the chains"
        notify(MixingWarning(report.describe(), longer))
    return {"r_hat": report.r_hat, "effective_sample_size": report.effective_sample_size}


def most_variance(model: Model[ExponentialFamily], mean: Array) -> Array:
    """The variance of statistics with these means: exact for those with two values, the most possible for others."""
    low, high = model.family.statistic_range
    return np.maximum((high - mean) * (mean - low), 0.0)


def _variance_of_change(model: Model[ExponentialFamily], end: Array, start: Array, both: Array) -> Array:
    """The variance of the change of each statistic, given its means at both ends and that of their product.

    Statistics are products of variables, so those of the product state are the products of the statistics.
    """
    low, high = model.family.statistic_range
    squares = [mean * (low + high) - low * high for mean in (end, start)]  # a value s is low or high
    return np.maximum(squares[0] + squares[1] - 2.0 * both - (end - start) ** 2, 0.0)


def require_chains(n_chains: int, model: Model[Family]) -> None:
    """Refuse more chains than the memory holds."""
    n = model.n_variables
    # states as int8 and as float64 with their fields, and the streams
    require_memory(n_chains * (20.0 * n + 64.0), f"running {n_chains} chains of {n} variables", "lower `n_chains`")


def summaries(model: Model[Family], draws: Array) -> Array:
    """What is watched, shape (n_chains, n_draws, 2): the energy, and the variable whose chain means differ most."""
    n_chains, n_draws, n = draws.shape
    energies = model.energy(draws.reshape(-1, n)).reshape(n_chains, n_draws)
    variable = int(np.argmax(draws.mean(axis=1).var(axis=0)))
    return np.stack([energies, draws[..., variable]], axis=-1)
