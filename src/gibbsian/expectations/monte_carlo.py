"""Expectations from Markov chains that live on between calls."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.diagnostics.chains import report_on
from gibbsian.errors import MixingWarning, notify
from gibbsian.expectations.base import EXPECTATIONS, Estimate
from gibbsian.models.base import Model
from gibbsian.resources import require_memory
from gibbsian.samplers import ChainState, Sampler, as_sampler
from gibbsian.settings import check, declared, flag, free, number, whole


class MonteCarloState(NamedTuple):
    """The chains, and whether their burn-in is still to come.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(3))
    >>> gb.expectations.MonteCarlo(n_chains=10).init(model, None, np.random.default_rng(0)).fresh
    True
    """

    chains: ChainState
    fresh: bool


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
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = gb.expectations.MonteCarlo()
    >>> state = expectation.init(model, None, np.random.default_rng(0))
    >>> estimate, state = expectation(model, state)
    >>> bool(abs(estimate.mean[2] - np.tanh(0.5)) < 4 * estimate.stderr[2])
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

    def init(self, model: Model, data: Any, rng: np.random.Generator) -> MonteCarloState:
        """Start the chains at uniformly random states; `data` is not used."""
        return MonteCarloState(as_sampler(self.sampler).init(model, self.n_chains, rng), fresh=True)

    def __call__(self, model: Model, state: MonteCarloState) -> tuple[Estimate, MonteCarloState]:
        """Run the chains on under `model` and return the mean statistics over their draws."""
        sampler, chains = as_sampler(self.sampler), state.chains
        if state.fresh:
            chains, _ = sampler.step(model, chains, self.burn_in)
        draws, chains = self._draw(model, sampler, chains)
        means = np.array([model.mean_statistics(chain) for chain in draws])
        stderr = means.std(axis=0, ddof=1) / np.sqrt(len(means))
        report = report_on(_summaries(model, draws))
        if self.warn and not report.is_good(self.max_r_hat, self.min_ess):
            notify(MixingWarning(report.describe(), f"raise `n_steps={self.n_steps}` or `burn_in={self.burn_in}`"))
        numbers = {"r_hat": report.r_hat, "effective_sample_size": report.effective_sample_size}
        return Estimate(means.mean(axis=0), stderr, diagnostics=numbers), MonteCarloState(chains, fresh=False)

    def _draw(self, model: Model, sampler: Sampler, chains: ChainState) -> tuple[np.ndarray, ChainState]:
        n_chains, n = chains.states.shape
        require_memory(
            n_chains * (float(n) * self.n_steps + 8.0 * model.theta.size),
            f"keeping {n_chains * self.n_steps} draws of {n} variables",
            "lower `n_chains` or `n_steps`",
        )
        draws = np.empty((n_chains, self.n_steps, n), np.int8)
        for t in range(self.n_steps):
            chains, _ = sampler.step(model, chains)
            draws[:, t] = chains.states
        return draws, chains


def _summaries(model: Model, draws: np.ndarray) -> np.ndarray:
    """What is watched, shape (n_chains, n_draws, 2): the energy, and the variable whose chain means differ most."""
    n_chains, n_draws, n = draws.shape
    energies = model.energy(draws.reshape(-1, n)).reshape(n_chains, n_draws)
    variable = int(np.argmax(draws.mean(axis=1).var(axis=0)))
    return np.stack([energies, draws[..., variable]], axis=-1)
