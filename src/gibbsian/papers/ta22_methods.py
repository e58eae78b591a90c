"""The methods that TA22 compares: FL, BM-DI and BM-PCD, and our own re-fits of FL."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.datasets.ta22 import TrueSample
from gibbsian.domain import BINARY
from gibbsian.graphs import complete
from gibbsian.learners import as_learner, run
from gibbsian.learners.contrastive_divergence import PCD
from gibbsian.learners.span_base import refreshed
from gibbsian.learners.span_newton import refit
from gibbsian.learners.span_problem import SpanProblem
from gibbsian.models import FullSpanModel, PairwiseModel, SpanBasis
from gibbsian.optimizers import Ascent

# TA22 section 3.1 and 3.3.
TOLERANCE = 1e-4
MOST_STEPS = 100_000
PCD_RATE, PCD_CHAINS, PCD_STEPS = 0.01, 100, 10_000


@dataclass(frozen=True, eq=False)
class Fitted:
    """A learned distribution.

    Parameters
    ----------
    probabilities : ndarray
        Of every state.
    n_functions : int
        Number of basis functions in use.
    seconds : float
        Processor time of learning, as TA22 reports it.

    Examples
    --------
    >>> from gibbsian.datasets import make_ta22
    >>> from gibbsian.papers.ta22_methods import METHODS
    >>> METHODS["FL"](make_ta22("Ising5x4S", random_state=0), seed=0).n_functions
    31
    """

    probabilities: np.ndarray
    n_functions: int
    seconds: float


Method = Callable[[TrueSample, int], Fitted]


def full_span(algorithm: str, tol: float = TOLERANCE) -> Method:
    """Return FL learned by TA22's Algorithm 1 (``"greedy"``), or with re-fits of all functions (``"newton"``, ours).

    Examples
    --------
    >>> from gibbsian.datasets import make_ta22
    >>> from gibbsian.papers.ta22_methods import full_span
    >>> sample = make_ta22("Ising5x4S", random_state=0)
    >>> bool(sample.divergence(full_span("greedy")(sample, 0).probabilities) < 0.05)
    True
    """

    return lambda sample, seed: fit_counted(*sample.counted(), algorithm=algorithm, tol=tol)


def fit_counted(states: np.ndarray, counts: np.ndarray, algorithm: str, tol: float) -> Fitted:
    """Return FL learned from distinct states and how often each was seen.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.ta22_methods import fit_counted
    >>> fit_counted(np.array([[0, 0], [1, 1]]), np.array([500, 500]), "greedy", 1e-6).n_functions
    1
    """
    started = time.process_time()
    data = Dataset.read(states, coding="binary", sample_weight=counts)
    start = FullSpanModel.build((2,) * states.shape[1])
    model: Any = run(as_learner(f"span-{algorithm}", tol=tol), start, data, max_iter=MOST_STEPS).model
    return Fitted(model.probabilities(), model.indices.size, time.process_time() - started)


def direct_integration(sample: TrueSample, seed: int) -> Fitted:
    """Return BM-DI: the exact maximum of the likelihood of the pairwise machine on the complete graph.

    It is the full-span model with all functions of one and two variables, so Newton's method on them finds it.

    Examples
    --------
    >>> from gibbsian.datasets import make_ta22
    >>> from gibbsian.papers.ta22_methods import direct_integration
    >>> direct_integration(make_ta22("Ising5x4S", random_state=0), 0).n_functions
    210
    """
    return integrate_counted(*sample.counted())


def integrate_counted(states: np.ndarray, counts: np.ndarray) -> Fitted:
    """Return BM-DI learned from distinct states and how often each was seen.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.ta22_methods import integrate_counted
    >>> states, counts = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([4, 3, 2, 1])
    >>> integrate_counted(states, counts).probabilities.round(6)          # two variables can be fitted exactly
    array([0.4, 0.3, 0.2, 0.1])
    """
    started = time.process_time()
    n = states.shape[1]
    problem = SpanProblem.build(SpanBasis((2,) * n), states, counts)
    bits = 2 ** np.arange(n)
    used = np.concatenate([bits, (bits[:, None] + bits)[np.triu_indices(n, 1)]])
    progress = refit(problem, refreshed(problem, problem.uniform_dual(), used, np.zeros(used.size)))
    seconds = time.process_time() - started
    return Fitted(FullSpanModel(problem.basis, used, progress.theta).probabilities(), used.size, seconds)


def persistent_chains(sample: TrueSample, seed: int) -> Fitted:
    """Return BM-PCD: the same machine by persistent contrastive divergence with TA22's settings.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.datasets.ta22 import TrueSample
    >>> from gibbsian.papers.ta22_methods import persistent_chains
    >>> sample = TrueSample("pair", np.array([[0, 0], [1, 1], [0, 1]], np.int8), np.full(4, 0.25))
    >>> persistent_chains(sample, 0).probabilities.round(1)             # 0.33, 0.33, 0, 0.33, slowly
    array([0.3, 0.3, 0. , 0.3])
    """
    started = time.process_time()
    n = sample.states.shape[1]
    data = Dataset.read(sample.states, coding="binary")
    learner = PCD(optimizer=Ascent(learning_rate=PCD_RATE), n_chains=PCD_CHAINS, average=False, centred=False)
    start = PairwiseModel.zeros(complete(n), BINARY)
    model = run(learner, start, data, np.random.default_rng(seed), max_iter=PCD_STEPS, tol=1e-12).model
    seconds = time.process_time() - started
    logs = model.log_weights(SpanBasis((2,) * n).digits(np.arange(2**n)).astype(np.int8))
    weights = np.exp(logs - logs.max())
    return Fitted(weights / weights.sum(), model.theta.size, seconds)


METHODS: dict[str, Method] = {
    "FL": full_span("greedy"),
    "BM-DI": direct_integration,
    "BM-PCD": persistent_chains,
    "FL newton": full_span("newton"),
}
OURS = ("FL newton",)
