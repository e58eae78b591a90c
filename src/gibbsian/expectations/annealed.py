"""Expectations and log Z from annealed importance sampling (YU20 section 4.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import MixingWarning, notify
from gibbsian.estimate import Estimate
from gibbsian.expectations.chains import never_blind
from gibbsian.expectations.legacy import EXPECTATIONS
from gibbsian.expectations.samples import correction_for_mean
from gibbsian.models.base import Array, DiscreteFamily, ExponentialFamily, Model
from gibbsian.old_sampling.annealing import AnnealedRun, Annealing
from gibbsian.old_sampling.independent import IndependentVariables, as_independent, check_base
from gibbsian.old_sampling.variable_paths import variable_path
from gibbsian.settings import check, declared, flag, free, whole


class AnnealedState(NamedTuple):
    """Where the walkers of the next call start, and what seeds them."""

    seed: int
    n_calls: int
    base: IndependentVariables


@EXPECTATIONS.register("ais")
@declared(frozen=True)
class AnnealedImportance:
    """Weighted means over walkers of annealed importance sampling, with an estimate of log Z.

    Every call sends out new walkers, which owe nothing to those before. The standard errors are those of
    self-normalised importance sampling.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import AnnealedImportance
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> expectation = AnnealedImportance()
    >>> estimate, state = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.5)) < 4 * estimate.stderr[2])
    True
    >>> log_z = estimate.parts["log_partition"]
    >>> abs(log_z.value - np.log(4 * np.cosh(0.5))) < 4 * log_z.stderr < 0.02
    True
    """

    n_walkers: int = whole(1000, "Independent walkers.", least=2)
    betas: int | Array = free(
        1000,
        "Number of equal steps of the inverse temperature from 0 to 1, or the inverse temperatures themselves.",
        doc="int or array",
    )
    base: str | IndependentVariables | Dataset | None = free(
        None,
        "The independent variables to start from: 'biases', 'uniform', or the base rates of data; by default those of "
        "the data that `init` gets, and the model's biases where it gets none.",
        doc="str, IndependentVariables, Dataset or None",
    )
    marginalise: bool = flag(False, "Whether to sum out half of a bipartite graph in the weights.")
    warn: bool = flag(True, "Whether to warn when few walkers hold most of the weight.")

    def __post_init__(self) -> None:
        check(self)
        Annealing(self.n_walkers, self.betas)  # checks the inverse temperatures
        if self.base is not None:
            check_base(self.base)

    def init(self, model: Model[ExponentialFamily], data: Dataset | None, rng: np.random.Generator) -> AnnealedState:
        """Settle the start of the walkers and draw a seed."""
        base = self.base
        if base is None:
            base = "biases" if data is None else data
        return AnnealedState(int(rng.integers(2**63)), 0, as_independent(base, model))

    def __call__(self, model: Model[DiscreteFamily], state: AnnealedState) -> tuple[Estimate, AnnealedState]:
        """Send out walkers and return the weighted means of their statistics."""
        path = variable_path(model, state.base, self.marginalise)
        rng = np.random.default_rng([state.seed, state.n_calls])
        run = Annealing(self.n_walkers, self.betas).forward(path, rng)
        if self.warn and run.trouble:
            notify(MixingWarning(f"{run.trouble}", f"raise `betas={run.n_betas}` or `n_walkers=`"))
        parts = {
            "log_partition": Estimate(run.log_partition, run.log_partition_stderr),
            "effective_sample_size": run.effective_sample_size,
            "pareto_k": run.pareto_k,
        }
        return replace(weighted_statistics(model, run), parts=parts), state._replace(n_calls=state.n_calls + 1)


def weighted_statistics(model: Model[ExponentialFamily], run: AnnealedRun) -> Estimate:
    """Return the weighted mean of the model's statistics over the walkers.

    With weights W that sum to one the variance is ``sum_m W_m^2 (S_m - mean)^2``, times ``M / (M - 1)`` because the
    mean is fitted, with M the effective sample size; NaN where one walker holds nearly all the weight.
    """
    weights = run.weights
    mean = model.family.mean_statistics(run.states, weights)
    distinct, inverse = np.unique(run.states, axis=0, return_inverse=True)
    squares = np.bincount(inverse.ravel(), weights**2, minlength=len(distinct))
    variance = np.zeros_like(mean)
    for row, square in zip(distinct, squares, strict=True):
        variance += square * (model.family.mean_statistics(row[None]) - mean) ** 2
    worth, (low, high) = run.effective_sample_size, model.family.statistic_range
    return Estimate(mean, never_blind(np.sqrt(variance * correction_for_mean(worth)), high - low, worth))
