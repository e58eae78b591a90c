"""A step of persistent contrastive divergence with TA22's settings, beside a plain one in NumPy and Numba.

Run with ``python benchmarks/run.py pcd``: 20 variables, all pairs, 100 chains, one sweep a step. Seconds are the
processor's, the best of many short turns.
"""

from __future__ import annotations

import time

import numba
import numpy as np

import gibbsian as gb
from gibbsian.learning import PCD
from gibbsian.learning.optimizers import Ascent
from gibbsian.rng import Key
from timing import interleaved

N, CHAINS, RATE, STEPS = 20, 100, 0.01, 5


@numba.njit
def sweep(x, couplings, biases, uniforms):
    """Update all variables of all chains in place."""
    for c in range(len(x)):
        for i in range(x.shape[1]):
            field = biases[i]
            for j in range(x.shape[1]):
                field += couplings[i, j] * x[c, j]
            x[c, i] = 1.0 if uniforms[c, i] * (1.0 + np.exp(-field)) < 1.0 else 0.0


class Plain:
    """The method as one would write it down."""

    def __init__(self, rows: np.ndarray):
        self.rng = np.random.default_rng(0)
        self.x = rows[self.rng.integers(len(rows), size=CHAINS)].astype(float)
        self.data = rows.T.astype(float) @ rows / len(rows)
        self.couplings, self.biases = np.zeros((N, N)), np.zeros(N)

    def step(self) -> None:
        """Sweep, compare the moments, move."""
        sweep(self.x, self.couplings, self.biases, self.rng.random(self.x.shape))
        slope = self.data - self.x.T @ self.x / CHAINS
        self.biases = self.biases + RATE * np.diag(slope)
        self.couplings = self.couplings + RATE * (slope - np.diag(np.diag(slope)))


class Ours:
    """The learner of ``gibbsian-reproduce ta22-pcd``."""

    def __init__(self, rows: np.ndarray):
        learner = PCD(optimizer=Ascent(learning_rate=RATE), n_chains=CHAINS, average=False, centred=False)
        data = gb.Dataset.read(rows, coding="binary")
        start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(N), data.variables))
        self.fit = learner.bind(start, data)
        self.state, _ = self.fit.init(Key.of(0))

    def step(self) -> None:
        """Take a step of the learner."""
        self.state, _ = self.fit.step(self.state)


def main() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (1000, N)).astype(np.int8)
    methods = {"plain": Plain(rows), "ours": Ours(rows)}
    turns = {name: lambda method=method: [method.step() for _ in range(STEPS)] for name, method in methods.items()}
    best = interleaved(turns, repeats=400, clock=time.process_time)
    plain, ours = (1e6 * best[name] / STEPS for name in methods)
    print(
        f"a step of PCD, n = {N}, {CHAINS} chains: plain {plain:.0f} us, ours {ours:.0f} us, ratio {ours / plain:.2f}"
    )


if __name__ == "__main__":
    main()
