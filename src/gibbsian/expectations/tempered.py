"""Expectations from tempered chains, for models whose Gibbs chains do not get from one mode to another."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gibbsian.data.rows import Rows
from gibbsian.estimate import Estimate
from gibbsian.expectations.chains import chain_means, judged
from gibbsian.expectations.legacy import EXPECTATIONS
from gibbsian.models.base import ExponentialFamily, Family, Model
from gibbsian.old_sampling.bridges import TemperedColumns
from gibbsian.old_sampling.variable_paths import variable_path
from gibbsian.settings import check, declared, flag, number, whole


class TemperedState(NamedTuple):
    """What seeds the columns of the next call."""

    seed: int
    n_calls: int


@EXPECTATIONS.register("tempering")
@declared(frozen=True)
class TemperedMonteCarlo:
    """Average the statistics over the states of tempered chains, with an estimate of log Z.

    Every chain exchanges states with others at higher temperatures, where all modes are within reach. Standard errors
    come from the spread over independent columns of such chains, half of which start at random states and half at cold
    ones. Every call starts anew.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.2, 0.0], [5.0])    # Gibbs chains hardly leave a well
    >>> expectation = gb.expectations.TemperedMonteCarlo()
    >>> estimate, _ = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> bool(abs(estimate.value[0] - np.tanh(0.2)) < 4 * estimate.stderr[0] < 0.1)
    True
    """

    n_chains: int = whole(32, "Independent columns of chains.", least=2)
    n_steps: int = whole(500, "Rounds of each column; every one gives a draw.", least=2)
    warn: bool = flag(True, "Whether to warn when the columns disagree or their draws are too dependent.")
    max_r_hat: float = number(1.1, "Largest R-hat without a warning.", above=1)
    min_ess: float = number(100.0, "Smallest effective sample size, over all columns, without a warning.", least=0)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model[Family], data: Rows | None, rng: np.random.Generator) -> TemperedState:
        """Draw a seed; `data` is not used."""
        return TemperedState(int(rng.integers(2**63)), 0)

    def __call__(self, model: Model[ExponentialFamily], state: TemperedState) -> tuple[Estimate, TemperedState]:
        """Run columns and return the mean statistics over their draws."""
        rng = np.random.default_rng([state.seed, state.n_calls])
        columns = TemperedColumns.settled(variable_path(model), rng, self.n_chains)
        run = columns.run(self.n_steps, self.n_steps * self.n_chains)
        draws = np.swapaxes(run.states.reshape(self.n_steps, self.n_chains, -1), 0, 1)
        log_z = Estimate(run.log_partition, run.log_partition_stderr)
        parts = {"log_partition": log_z, **judged(self, model, draws), "trouble": run.trouble}
        return replace(chain_means(model, draws), parts=parts), state._replace(n_calls=state.n_calls + 1)
