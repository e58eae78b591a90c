"""TA22 Table 1 over several seeds: the full-span model, greedy and with re-fits, beside the pairwise machine.

Run with ``python benchmarks/run.py ta22``. BM-DI is the exact maximum of the likelihood of the pairwise machine on
the complete graph (Newton's method on its 210 functions); BM-PCD is persistent contrastive divergence with
TA22's settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import gibbsian as gb
from gibbsian.datasets import TA22_NAMES, TrueSample, make_ta22
from gibbsian.domain import BINARY
from gibbsian.full_span import SpanBasis, SpanProblem, fit_full_span
from gibbsian.full_span.greedy import refreshed
from gibbsian.full_span.newton import refit
from gibbsian.learners import train
from gibbsian.learners.contrastive_divergence import persistent_contrastive_divergence
from gibbsian.models import FullSpanModel
from gibbsian.optimizers import Ascent

N_SEEDS = 5
BINARY_20 = (2,) * 20


class Stopwatch:
    """Seconds by the clock and of the processor, which TA22 reports and a busy machine changes less."""

    def __init__(self) -> None:
        self.start = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self.start[0], time.process_time() - self.start[1]


Fitted = tuple[np.ndarray, int, tuple[float, float]]


def full_span(algorithm: str, epsilon: float) -> Callable[[TrueSample, int], Fitted]:
    def fit(sample: TrueSample, seed: int) -> Fitted:
        states, counts = sample.counted()
        watch = Stopwatch()
        model = fit_full_span(states, counts, BINARY_20, algorithm=algorithm, epsilon=epsilon).model
        seconds = watch.read()
        return model.probabilities(), model.indices.size, seconds

    return fit


def bm_di(sample: TrueSample, seed: int) -> Fitted:
    """The pairwise machine is the full-span model with all functions of one and two variables."""
    states, counts = sample.counted()
    watch = Stopwatch()
    problem = SpanProblem.build(states, counts, BINARY_20)
    bits = 2 ** np.arange(20)
    pairs = (bits[:, None] + bits)[np.triu_indices(20, 1)]
    used = np.concatenate([bits, pairs])
    progress = refit(problem, refreshed(problem, problem.uniform_dual(), used, np.zeros(used.size)))
    seconds = watch.read()
    return FullSpanModel(problem.basis, used, progress.theta).probabilities(), used.size, seconds


def bm_pcd(sample: TrueSample, seed: int) -> Fitted:
    watch = Stopwatch()
    data = gb.Dataset.read(sample.states)
    learner = persistent_contrastive_divergence(Ascent(rate=0.01), n_chains=100, average=False, centred=False)
    model = gb.PairwiseModel.zeros(gb.graphs.complete(20), BINARY)
    fitted = train(learner, model, data, np.random.default_rng(seed), max_iter=10_000, tol=1e-12).model
    seconds = watch.read()
    states = SpanBasis(BINARY_20).digits(np.arange(2**20)).astype(np.int8)
    logs = -fitted.energy(states)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum(), len(fitted.theta), seconds


METHODS: dict[str, Callable[[TrueSample, int], Fitted]] = {
    "FL greedy 1e-4": full_span("greedy", 1e-4),
    "FL greedy 1e-6": full_span("greedy", 1e-6),
    "FL newton 1e-4": full_span("newton", 1e-4),
    "FL newton 1e-6": full_span("newton", 1e-6),
    "BM-DI": bm_di,
    "BM-PCD": bm_pcd,
}


def spread(values: list[float], digits: int) -> str:
    """Median, smallest and largest."""
    return f"{np.median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def main(n_seeds: int = N_SEEDS) -> None:
    full_span("newton", 1e-4)(make_ta22("Ising5x4S", 0), 0)  # compiles
    print(f"TA22 Table 1: median [least, most] over {n_seeds} seeds, a new network for each")
    print(f"{'data':11s}{'model':16s}{'KL(p_d||p)':>24s}{'KL(p*||p)':>26s}{'basis':>18s}{'CPU s':>19s}{'wall s':>19s}")
    for name in TA22_NAMES:
        samples = [make_ta22(name, seed) for seed in range(n_seeds)]
        for method, fit in METHODS.items():
            rows = []
            for seed, sample in enumerate(samples):
                p, size, seconds = fit(sample, seed)
                rows.append((sample.empirical_divergence(p), sample.divergence(p), size, *seconds))
            data, true, size, wall, processor = ([float(row[i]) for row in rows] for i in range(5))
            print(
                f"{name:11s}{method:16s}{spread(data, 3):>24s}{spread(true, 4):>26s}{spread(size, 0):>18s}"
                f"{spread(processor, 2):>19s}{spread(wall, 2):>19s}",
                flush=True,
            )


if __name__ == "__main__":
    main()
