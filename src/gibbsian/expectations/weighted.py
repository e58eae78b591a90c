"""Jarzynski's weights of chains that follow a model while it learns: log Z along the run (Carbone and others 2023).

Chains are annealed to where learning starts. At every step of the parameters a weight takes up how much likelier its
chain has become, before that moves; the mean weight is Z, and weighted means are those of the model although chains lag
behind. Steps lead away from where the chains stand that teach them, so that their own weights say too little: as many
others, which teach nothing, are asked for log Z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations.base import Estimate
from gibbsian.expectations.chains import PersistentChains, most_variance, require_chains
from gibbsian.models.base import Model
from gibbsian.samplers import ChainState, as_sampler
from gibbsian.samplers.annealing import Annealing
from gibbsian.settings import declared

# Chains are chosen anew where they are worth less than this share of as many of equal weight.
LEAST_WORTH = 0.5
# Those that are asked are in so many groups that owe nothing to each other: the error of log Z is from their spread.
GROUPS = 10
# Places on the way of the chains from independent variables to the start.
PLACES = 100


class ChainWeights(NamedTuple):
    """Logarithms of the weights of chains: a first half that teaches and a second one that is asked for log Z."""

    logs: np.ndarray
    theta: np.ndarray  # that the chains have last seen

    @classmethod
    def annealed(cls, n_chains: int, model: Any, rng: np.random.Generator) -> tuple[np.ndarray, Self]:
        """Return states of twice as many chains that have come from independent variables, and their weights."""
        run = Annealing(n_walkers=2 * n_chains, betas=PLACES).forward(model, rng)
        return run.states, cls(run.log_weights, model.theta.copy())

    def at(self, model: Any, gains: np.ndarray) -> Self:
        """Return the weights under other parameters, given how much likelier each chain's state is there."""
        return self._replace(logs=self.logs + gains, theta=model.theta.copy())

    def chosen(self, rng: np.random.Generator) -> tuple[np.ndarray, Self]:
        """Return which chain goes on in the place of each, and their weights.

        Where few chains of a group hold its weight, each goes on as often as its share asks for, by one random number.
        """
        ends, totals = self._ends, self._totals
        squares = np.logaddexp.reduceat(2.0 * self.logs, ends[:-1])
        places, logs, worth = np.arange(self.logs.size), self.logs.copy(), np.exp(2.0 * totals - squares)
        for k in np.flatnonzero(worth < LEAST_WORTH * np.diff(ends)):
            first, size = ends[k], ends[k + 1] - ends[k]
            passed = np.cumsum(np.exp(logs[first : first + size] - totals[k]))
            steps = (np.arange(size) + rng.random()) / size
            places[first : first + size] = first + np.minimum(np.searchsorted(passed, steps), size - 1)
            logs[first : first + size] = totals[k] - np.log(size)
        return places, self._replace(logs=logs)

    @property
    def shares(self) -> np.ndarray:
        """The weights of the chains that teach, divided by their sum."""
        return np.exp(self.logs[: self._ends[1]] - self._totals[0])

    def log_partition(self) -> tuple[float, float]:
        """Return the estimate of log Z and its standard error, which is not known of a single chain."""
        logs, sizes = self._totals[1:], np.diff(self._ends[1:])
        log_z = float(np.logaddexp.reduce(logs) - np.log(sizes.sum()))
        ratios = np.exp(logs - log_z) / sizes
        return log_z, float(ratios.std(ddof=1) / np.sqrt(sizes.size)) if sizes.size > 1 else np.inf

    @property
    def _ends(self) -> np.ndarray:
        """Where the groups begin and end: all that teach, then those that are asked."""
        half = self.logs.size // 2
        n_groups = min(GROUPS, half)
        return np.append(0, half + half * np.arange(n_groups + 1) // n_groups)

    @property
    def _totals(self) -> np.ndarray:
        """Logarithms of the sums of the weights of each group."""
        return np.logaddexp.reduceat(self.logs, self._ends[:-1])


class WeightedState(NamedTuple):
    """The chains of both halves, and their weights."""

    chains: ChainState
    weights: ChainWeights


@declared(frozen=True)
class WeightedChains(PersistentChains):
    """Persistent chains with Jarzynski's weights, and as many more that are asked for log Z.

    The chains are annealed to the model from independent variables, whatever the data.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.WeightedChains(n_chains=10_000)
    >>> estimate, state = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> bool(abs(estimate.log_partition - np.log(4 * np.cosh(0.5))) < 4 * estimate.log_partition_stderr)
    True
    """

    def init(self, model: Model, data: Dataset | None, rng: np.random.Generator) -> WeightedState:
        """Anneal the chains to the model; they stay here, where their weights are compared."""
        require_chains(2 * self.n_chains, model)
        states, weights = ChainWeights.annealed(self.n_chains, model, rng)
        return WeightedState(as_sampler(self.sampler).init(model, len(states), rng, states=states), weights)

    def moved(self, model: Model, state: WeightedState) -> tuple[Estimate, WeightedState]:  # type: ignore[override]
        """Weigh the chains, run them on, and return the weighted means of those that teach."""
        chains, weights = state.chains, self._weighed(model, state)
        # by the chains' own streams, so that a resumed run goes on to the same bits
        places, weights = weights.chosen(np.random.default_rng(chains.streams[0]))
        chains, _ = as_sampler(self.sampler).step(model, chains._replace(states=chains.states[places]), self.n_steps)
        shares = weights.shares
        mean = model.mean_statistics(chains.states[: shares.size], shares)
        stderr = np.sqrt(most_variance(model, mean) * (shares @ shares))
        log_z, error = weights.log_partition()
        return Estimate(mean, stderr, log_z, log_partition_stderr=error), WeightedState(chains, weights)

    def log_partition(self, model: Model, state: WeightedState) -> tuple[float, float]:
        """Return log Z of a model near the one that the chains have last seen, and its standard error."""
        return self._weighed(model, state).log_partition()

    def _weighed(self, model: Model, state: WeightedState) -> ChainWeights:
        change = model.replace(model.theta - state.weights.theta)  # log-weights are linear in theta
        return state.weights.at(model, change.log_weights(state.chains.states))


def estimated_likelihood(
    phase: Any, make: Callable[[], Any], state: Any, log_evidence: Callable[[Any], float | None]
) -> dict[str, float]:
    """Return the mean log-likelihood of rows by name, with its error, where both a phase and the rows know theirs.

    The model is made only where chains know log Z: most do not, and this is asked in every step.
    """
    if not hasattr(phase, "log_partition") or (evidence := log_evidence(model := make())) is None:
        return {}
    log_z, error = phase.log_partition(model, state)
    return {"estimated_log_likelihood": evidence - log_z, "log_likelihood_stderr": error}
