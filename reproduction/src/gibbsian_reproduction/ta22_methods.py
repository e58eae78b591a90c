"""The methods that TA22 compares: FL, BM-DI and BM-PCD, and our own re-fits of FL."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.graphs import complete
from gibbsian.learning import PCD, as_learner, run
from gibbsian.learning.optimizers import Ascent
from gibbsian.learning.span.moves import refit, refreshed
from gibbsian.learning.span.problem import SpanProblem
from gibbsian.models import FullSpanFamily, Model, PairwiseFamily, SpanBasis, Variables
from gibbsian_reproduction.systems import distribution_of
from gibbsian_reproduction.ta22_data import TrueSample

# TA22 section 3.1 and 3.3.
TOLERANCE = 1e-4
MAX_STEPS = 100_000
PCD_RATE, PCD_CHAINS, PCD_STEPS = 0.01, 100, 10_000


@dataclass(frozen=True, eq=False)
class Fitted:
    """A learned distribution: of every state, by so many basis functions, in seconds of the processor."""

    probabilities: np.ndarray
    n_functions: int
    seconds: float


Method = Callable[[TrueSample, int], Fitted]


def full_span(algorithm: str, tol: float = TOLERANCE) -> Method:
    """Return FL learned by TA22's Algorithm 1 (``"greedy"``), or with re-fits of all functions (``"newton"``, ours)."""
    return lambda sample, seed: fit_counted(*sample.counted(), algorithm=algorithm, tol=tol)


def fit_counted(states: np.ndarray, counts: np.ndarray, algorithm: str, tol: float) -> Fitted:
    """Return FL learned from distinct states and how often each was seen."""
    started = time.process_time()
    data = Dataset.of_states(states, "binary", sample_weight=counts)
    start = Model.zeros(FullSpanFamily.uniform(data.variables))
    model: Any = run(as_learner(f"span-{algorithm}", tol=tol), start, data, max_iter=MAX_STEPS).model
    return Fitted(model.family.probabilities(model.theta).values, model.theta.size, time.process_time() - started)


def integrate_counted(states: np.ndarray, counts: np.ndarray) -> Fitted:
    """Return BM-DI, the exact maximum of the likelihood of the pairwise machine on the complete graph.

    It is the full-span model with all functions of one and two variables, so Newton's method on them finds it.
    """
    started = time.process_time()
    n = states.shape[1]
    problem = SpanProblem.build(SpanBasis(Variables.binary(n)), states, counts)
    bits = 2 ** np.arange(n)
    used = np.concatenate([bits, (bits[:, None] + bits)[np.triu_indices(n, 1)]])
    progress = refit(problem, refreshed(problem, problem.new_table(), used, np.zeros(used.size)))
    seconds = time.process_time() - started
    probabilities = FullSpanFamily(problem.basis, used).probabilities(progress.theta).values
    return Fitted(probabilities, used.size, seconds)


def direct_integration(sample: TrueSample, seed: int) -> Fitted:
    """Return BM-DI learned from a sample."""
    return integrate_counted(*sample.counted())


def persistent_chains(sample: TrueSample, seed: int) -> Fitted:
    """Return BM-PCD: the same machine by persistent contrastive divergence with TA22's settings."""
    started = time.process_time()
    n = sample.states.shape[1]
    data = Dataset.of_states(sample.states, "binary")
    learner = PCD(optimizer=Ascent(learning_rate=PCD_RATE), n_chains=PCD_CHAINS, average=False, centred=False)
    start = Model.zeros(PairwiseFamily(complete(n), Variables.binary(n)))
    model = run(learner, start, data, np.random.default_rng(seed), max_iter=PCD_STEPS, tol=1e-12).model
    seconds = time.process_time() - started
    states = SpanBasis(Variables.binary(n)).digits(np.arange(2**n)).astype(np.int8)
    return Fitted(distribution_of(model, states), model.theta.size, seconds)


METHODS: dict[str, Method] = {
    "FL": full_span("greedy"),
    "BM-DI": direct_integration,
    "BM-PCD": persistent_chains,
    "FL newton": full_span("newton"),
}
OURS = ("FL newton",)
