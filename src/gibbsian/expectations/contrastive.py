"""Expectations from short runs of Markov chains, as learning takes them: one after every change of the parameters.

Chains that start afresh at the data give contrastive divergence, chains that live on give its persistent form. Both
read one state of each chain per call. The standard error comes from the spread over chains, which are independent of
each other; calls that are as short as these have no R-hat to speak of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations.base import Estimate
from gibbsian.models import Model
from gibbsian.resources import require_memory
from gibbsian.samplers import ChainState, Sampler, as_sampler
from gibbsian.settings import check, declared, free, whole


class RestartedState(NamedTuple):
    """Chains at the data, what share of the data each stands for, and the statistics there.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.contrastive import RestartedChains
    >>> data = gb.Dataset.read([[0, 1], [1, 1], [0, 1]])
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2), data.domain)
    >>> state = RestartedChains().init(model, data, np.random.default_rng(0))
    >>> state.chains.states.tolist(), state.shares.round(3).tolist()
    ([[0, 1], [0, 1], [1, 1]], [0.333, 0.333, 0.333])
    """

    chains: ChainState
    shares: np.ndarray
    statistics: np.ndarray


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
    >>> from gibbsian.expectations.contrastive import RestartedChains
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.2])
    >>> expectation = RestartedChains(n_steps=10, n_chains=10_000)
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> bool(abs(estimate.mean[2] - np.tanh(0.2)) < 0.05)
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

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> RestartedState:
        """Place the chains at the data."""
        states, shares = spread_over_rows(data, data.n_rows if self.n_chains is None else self.n_chains)
        require_chains(len(states), model)
        chains = as_sampler(self.sampler).init(model, len(states), rng, states=states)
        return RestartedState(chains, shares, model.mean_statistics(states, shares))

    def __call__(self, model: Model, state: RestartedState) -> tuple[Estimate, RestartedState]:
        """Run the chains from the data and return the mean statistics where they end."""
        chains, shares, start = state
        ends, _ = as_sampler(self.sampler).step(model, chains, self.n_steps)
        mean = model.mean_statistics(ends.states, shares)
        variance = _most_variance(model, mean)
        if model.statistics_are_products and model.domain.two_valued:
            # either bounds the noise of the sweeps: the one is close after many of them, the other after few
            both = model.mean_statistics(ends.states * chains.states, shares)
            variance = np.minimum(variance, _variance_of_change(model, mean, start, both))
        stderr = np.sqrt(variance * (shares @ shares))
        return Estimate(mean, stderr), RestartedState(ends._replace(states=chains.states), shares, start)

    def restarted_at(self, model: Model, state: RestartedState, rows: Dataset) -> RestartedState:
        """Return the chains at other rows: the data as their missing cells are completed now."""
        states, shares = spread_over_rows(rows, rows.n_rows if self.n_chains is None else self.n_chains)
        return RestartedState(state.chains._replace(states=states), shares, model.mean_statistics(states, shares))


@declared(frozen=True)
class PersistentChains:
    """Statistics of chains that go on from one call to the next while the model changes under them (Tieleman 2008).

    The chains start at rows of the data drawn by weight, or at uniformly random states where there is no data.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.contrastive import PersistentChains
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = PersistentChains(n_chains=10_000, n_steps=20)
    >>> estimate, state = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> bool(abs(estimate.mean[2] - np.tanh(0.5)) < 4 * estimate.stderr[2])
    True
    """

    n_chains: int = whole(500, "Independent chains.", least=2)
    n_steps: int = whole(1, "Sweeps in each call; the statistics are read after the last.", least=1)
    sampler: str | Sampler = free("gibbs", "Name of a registered sampler, or a sampler.", doc="str or Sampler")

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model, data: Dataset | None, rng: np.random.Generator) -> ChainState:
        """Start the chains."""
        require_chains(self.n_chains, model)
        starts = None
        if data is not None:
            starts = data.states[rng.choice(data.n_states, self.n_chains, p=data.weights / data.total_weight)]
        return as_sampler(self.sampler).init(model, self.n_chains, rng, states=starts)

    def __call__(self, model: Model, state: ChainState) -> tuple[Estimate, ChainState]:
        """Run the chains on and return the mean statistics over them."""
        chains, _ = as_sampler(self.sampler).step(model, state, self.n_steps)
        mean = model.mean_statistics(chains.states)
        return Estimate(mean, np.sqrt(_most_variance(model, mean) / (self.n_chains - 1))), chains


def spread_over_rows(data: Dataset, n_chains: int) -> tuple[np.ndarray, np.ndarray]:
    """Give each distinct state its part of the chains, rounded up, and each chain its share of the weight."""
    weights = data.weights / data.total_weight
    # a hair is taken off so that a whole number of chains is not rounded up to the next
    copies = np.ceil(n_chains * weights * (1 - 1e-12)).astype(np.int64)
    shares = np.repeat(weights / np.maximum(copies, 1), copies)
    return np.repeat(data.states, copies, axis=0), shares


def _most_variance(model: Model, mean: np.ndarray) -> np.ndarray:
    """The variance of statistics with these means: exact for those with two values, the most possible for others."""
    low, high = model.statistic_range
    return np.maximum((high - mean) * (mean - low), 0.0)


def _variance_of_change(model: Model, end: np.ndarray, start: np.ndarray, both: np.ndarray) -> np.ndarray:
    """The variance of the change of each statistic, given its means at both ends and that of their product.

    Statistics are products of variables, so those of the product state are the products of the statistics.
    """
    low, high = model.statistic_range
    squares = [mean * (low + high) - low * high for mean in (end, start)]  # a value s is low or high
    return np.maximum(squares[0] + squares[1] - 2.0 * both - (end - start) ** 2, 0.0)


def require_chains(n_chains: int, model: Model) -> None:
    """Refuse more chains than the memory holds."""
    n = model.n_variables
    # states as int8 and as float64 with their fields, and the streams
    require_memory(n_chains * (20.0 * n + 64.0), f"running {n_chains} chains of {n} variables", "lower n_chains=")
