"""TA22 Table 1 over several seeds, with two thresholds: the full-span model beside the pairwise machine.

Run with ``python benchmarks/run.py ta22``. The methods are those of ``gibbsian-reproduce ta22-table1``, which has
TA22's threshold only.
"""

from __future__ import annotations

import time

import numpy as np

from gibbsian_reproduction.ta22_data import TA22_NAMES, make_ta22
from gibbsian_reproduction.ta22_methods import direct_integration, full_span, persistent_chains

N_SEEDS = 5
METHODS = {
    "FL greedy 1e-4": full_span("greedy", 1e-4),
    "FL greedy 1e-6": full_span("greedy", 1e-6),
    "FL newton 1e-4": full_span("newton", 1e-4),
    "FL newton 1e-6": full_span("newton", 1e-6),
    "BM-DI": direct_integration,
    "BM-PCD": persistent_chains,
}


def spread(values: list[float], digits: int) -> str:
    """Median, smallest and largest."""
    return f"{np.median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def main(n_seeds: int = N_SEEDS) -> None:
    METHODS["FL newton 1e-4"](make_ta22("Ising5x4S", 0), 0)  # compiles
    print(f"TA22 Table 1: median [least, most] over {n_seeds} seeds, a new network for each")
    print(f"{'data':11s}{'model':16s}{'KL(p_d||p)':>24s}{'KL(p*||p)':>26s}{'basis':>18s}{'CPU s':>19s}{'wall s':>19s}")
    for name in TA22_NAMES:
        samples = [make_ta22(name, seed) for seed in range(n_seeds)]
        for method, fit in METHODS.items():
            rows = []
            for seed, sample in enumerate(samples):
                started = time.perf_counter()
                fitted = fit(sample, seed)
                wall = time.perf_counter() - started
                p = fitted.probabilities
                divergences = sample.empirical_divergence(p), sample.divergence(p)
                rows.append((*divergences, fitted.n_functions, fitted.seconds, wall))
            data, true, size, processor, wall_times = ([float(row[i]) for row in rows] for i in range(5))
            print(
                f"{name:11s}{method:16s}{spread(data, 3):>24s}{spread(true, 4):>26s}{spread(size, 0):>18s}"
                f"{spread(processor, 2):>19s}{spread(wall_times, 2):>19s}",
                flush=True,
            )


if __name__ == "__main__":
    main()
