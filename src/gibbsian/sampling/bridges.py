"""Replica exchange along a path, and log Z from the bridges between neighbouring inverse temperatures.

A column is a chain at every inverse temperature; neighbours exchange their states, so that what is decided at the
beginning, where chains move freely, reaches the model (parallel tempering). Columns owe nothing to each other: half of
them start at draws from the beginning, half at states cooled beyond the model, and errors come from how the columns
differ. Between two neighbours the ratio of the normalisers is estimated from the states of both (Bennett 1976), and the
logarithms add up to log Z. From the states of all temperatures at once (Shirts and Chodera 2008) errors were 0 to 6%
smaller, on paths whose log-weights are linear in beta only, which those of layers are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from gibbsian.arrays import Floats, States
from gibbsian.progress import counted
from gibbsian.rng import Key
from gibbsian.sampling.annealing import growth
from gibbsian.sampling.base import Chains
from gibbsian.sampling.paths import Path
from gibbsian.sampling.walks import Ratios, anneal, exchange
from gibbsian.startup import expit, stdtrit

# Columns: independent of each other, and as many as the lanes of a kernel.
COLUMNS = 32
# Sweeps of every chain between two exchanges.
SWEEPS = 3
# Temperatures and rounds of the pilots that decide where the temperatures are, and how often they are decided.
PILOT_BETAS, PILOT_ROUNDS, PILOTS = 100, 30, 4
# Share of the exchanges between neighbours that may fail, and the maximum number of temperatures.
MAX_REJECTED, MAX_BETAS = 0.4, 128
# Standard errors that two halves of a run may be apart.
MAX_ERRORS_APART = 4.0
# Neighbours that exchange more seldom than this share of the times are not connected.
MIN_ACCEPTANCE = 0.02


def bennett(there: Floats, back: Floats) -> float:
    """Return the logarithm of the ratio of two normalisers by Bennett's acceptance ratio.

    Parameters
    ----------
    there : ndarray
        ``log f_1 - log f_0`` at states of the first distribution.
    back : ndarray
        ``log f_0 - log f_1`` at states of the second.

    Returns
    -------
    float
        ``log Z_1 - log Z_0``: of all estimates from the two sets of numbers that with the smallest error.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.sampling.bridges import bennett
    >>> x, y = np.random.default_rng(0).normal(size=(2, 10_000)) * [[1.0], [0.5]]     # exp(-x^2/2) and exp(-2 y^2)
    >>> bool(abs(bennett(-1.5 * x**2, 1.5 * y**2) - np.log(0.5)) < 0.02)
    True
    """
    from scipy.optimize import brentq

    shift = np.log(there.size / back.size)

    def imbalance(log_ratio: float) -> float:
        return float(expit(there - log_ratio - shift).sum() - expit(back + log_ratio + shift).sum())

    low, high = min(there.min(), -back.max()) - 1.0, max(there.max(), -back.min()) + 1.0
    while imbalance(low) < 0:
        low -= high - low
    while imbalance(high) > 0:
        high += high - low
    return float(brentq(imbalance, low, high, xtol=1e-12, maxiter=1000))  # near temperature 0 it is a step


@dataclass(frozen=True)
class BridgeEstimate:
    """log Z by replica exchange.

    Parameters
    ----------
    betas : ndarray of shape (n_betas,)
        Inverse temperatures of the chains of a column, from 0 to 1.
    log_partition : float
        The estimate of log Z.
    deviations : ndarray of shape (2, n_columns)
        By how much each column pulls the estimate, in the first half of the run and in the second.
    acceptance : ndarray of shape (n_betas - 1,)
        Share of the exchanges between neighbours that were made.
    states : ndarray of shape (n_states, n_variables)
        States of the model, from all columns.
    n_rounds : int
        Exchanges between each pair of neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.sampling import BridgeEstimate
    >>> pulls, no_states = np.array([[0.0, 0.1, -0.1, 0.0]] * 2), np.empty((0, 3))
    >>> BridgeEstimate(np.array([0.0, 1.0]), 2.0, pulls, np.array([0.5]), no_states).describe()
    '4 tempered columns of 2 chains give 2.0000 +- 0.3266 by the bridges between them'
    """

    betas: Floats
    log_partition: float
    deviations: Floats = field(repr=False)
    acceptance: Floats = field(repr=False)
    states: States = field(repr=False)
    n_rounds: int = 0

    @property
    def log_partition_stderr(self) -> float:
        """Standard error of `log_partition`, from the spread over columns."""
        return _spread(self.deviations.sum(axis=0))

    @property
    def reach(self) -> float:
        """Half the width of a 95% interval, by Student's distribution: columns are few."""
        return float(stdtrit(self.deviations.shape[1] - 1, 0.975)) * self.log_partition_stderr

    @property
    def warning(self) -> str | None:
        """Why the estimate is not reliable, or None where nothing speaks against it."""
        lost = int(np.argmin(self.acceptance))
        if self.acceptance[lost] < MIN_ACCEPTANCE:
            ends = f"{self.betas[lost]:.3g} and {self.betas[lost + 1]:.3g}"
            return f"tempered chains at the inverse temperatures {ends} hardly exchange their states"
        columns = self.deviations.sum(axis=0)
        random, cold = columns[::2], columns[1::2]
        starts = 2.0 * float(random.sum() - cold.sum())
        if abs(starts) > MAX_ERRORS_APART * 2.0 * float(np.hypot(_spread(random), _spread(cold))) + 1e-8:
            return f"tempered chains from random states and from cold ones put log Z {abs(starts):.2g} apart"
        halves = 2.0 * (self.deviations[0] - self.deviations[1])
        if abs(halves.sum()) > MAX_ERRORS_APART * _spread(halves) + 1e-8:
            return f"the two halves of the tempered run put log Z {abs(halves.sum()):.2g} apart"
        return None

    def describe(self) -> str:
        """Return the result in one sentence."""
        return (
            f"{self.deviations.shape[1]} tempered columns of {len(self.betas)} chains give {self.log_partition:.4f} "
            f"+- {self.log_partition_stderr:.4f} by the bridges between them"
        )


def _spread(pulls: Floats) -> float:
    """The standard error of a sum of independent pulls, one for each column."""
    return float(np.sqrt(pulls.size * pulls.var(ddof=1)))


@dataclass(frozen=True, eq=False)
class ReplicaLadder:
    """Chains at all inverse temperatures of a path, column by column.

    Parameters
    ----------
    path : Path
        The distributions.
    betas : ndarray
        Inverse temperatures from 0 to 1.
    chains : sequence of Chains
        Those at each inverse temperature; chain c of all is column c.
    key : Key
        Source of randomness.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.sampling.bridges import ReplicaLadder
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.8] * 12)
    >>> ladder = ReplicaLadder.settled(gb.sampling.variable_path(model), gb.rng.Key.of(0))
    >>> ladder, run = ladder.run(200)
    >>> abs(run.log_partition - gb.inference.exact(model).log_partition) < 3 * run.log_partition_stderr < 0.1
    True
    """

    path: Path
    betas: Floats
    chains: Sequence[Chains]
    key: Key

    @classmethod
    def settled(cls, path: Path, key: Key, n_columns: int = COLUMNS) -> ReplicaLadder:
        """Start columns at random and at cold states; put the temperatures where neighbours exchange equally often."""
        pilot, start = np.linspace(0.0, 1.0, PILOT_BETAS + 1), path.start(n_columns, key.fold("pilot"))
        chains, increases = growth(path, start, pilot)
        chains, _ = anneal(path, path.kernel(), chains, np.geomspace(1.0, path.max_beta, PILOT_BETAS))
        lengths = increases.std(axis=1)
        betas = even_betas(pilot, lengths + 0.1 * lengths.mean() + 1e-12, _n_betas(float(lengths.sum())))
        path.require_memory(n_columns * len(betas))
        rungs, cold = [], np.arange(n_columns) % 2 == 1
        for k in range(len(betas)):
            rung = path.start(n_columns, key.fold("start", k))
            rung.states[cold] = chains.states[cold]
            rungs.append(rung)
        ladder = cls(path, betas, rungs, key)
        for _ in range(PILOTS):
            ladder, ratios = ladder.rounds(PILOT_ROUNDS)
            rejected = np.maximum(1.0 - ratios.acceptance, 1e-3)
            ladder = ladder.moved(even_betas(ladder.betas, rejected, _n_betas(float(rejected.sum()) / MAX_REJECTED)))
        return ladder

    def moved(self, betas: Floats) -> ReplicaLadder:
        """Return chains at other temperatures, each at the state of the nearest one that there was."""
        nearest = np.rint(np.interp(betas, self.betas, np.arange(len(self.betas)))).astype(np.int64)
        done = self.chains[0].n_sweeps
        return replace(
            self,
            betas=betas,
            chains=[
                Chains(self.chains[k].states, self.key.fold("moved", done, at).chains(len(self.chains[k].states)), done)
                for at, k in enumerate(nearest)
            ],
        )

    def rounds(self, n_rounds: int) -> tuple[ReplicaLadder, Ratios]:
        """Move all chains and let neighbours exchange."""
        key = self.key.fold("exchange", self.chains[0].n_sweeps)
        chains, ratios = exchange(self.path, self.path.kernel(), self.chains, self.betas, n_rounds, key, SWEEPS)
        return replace(self, chains=chains), ratios

    def run(self, n_rounds: int, n_states: int = COLUMNS) -> tuple[ReplicaLadder, BridgeEstimate]:
        """Let the columns forget where they were, then measure the bridges between their temperatures."""
        ladder, _ = self.rounds(max(1, n_rounds // 4))
        n_columns = len(self.chains[0].states)
        n_parts = max(2, -(-n_states // n_columns))
        parts, states = [], []
        for part in counted(np.array_split(np.arange(n_rounds), n_parts), "tempering", n_parts):
            ladder, ratios = ladder.rounds(part.size)
            parts.append(ratios)
            states.append(self.path.rows(ladder.chains[-1].states))
        ratios = Ratios(*(np.concatenate(both, axis=1) for both in zip(*parts, strict=True)))
        log_partition, deviations = self.path.log_partition, np.zeros((2, n_columns))
        for up, down in zip(ratios.up, ratios.down, strict=True):
            ratio, pulls = _bridge(up, down)
            log_partition += ratio
            deviations += [half.sum(axis=0) for half in np.array_split(pulls, 2)]
        chosen = np.linspace(0, n_parts * n_columns - 1, n_states).astype(np.int64)
        kept = cast("States", np.concatenate(states)[chosen])
        return ladder, BridgeEstimate(self.betas, log_partition, deviations, ratios.acceptance, kept, n_rounds)


def _bridge(up: Floats, down: Floats) -> tuple[float, Floats]:
    """Bennett's ratio between two neighbours, and by how much each round of each column pulls it."""
    ratio = bennett(up, down)
    shares = expit(up - ratio), expit(down + ratio)
    slope = sum(float((share * (1.0 - share)).sum()) for share in shares)
    return ratio, (shares[0] - shares[1]) / max(slope, 1e-300)


def _n_betas(length: float) -> int:
    return int(np.clip(np.ceil(length) + 1, 3, MAX_BETAS))


def even_betas(betas: Floats, lengths: Floats, n_betas: int) -> Floats:
    """Return inverse temperatures from the first to the last, evenly along a line whose pieces have these lengths."""
    passed = np.concatenate([[0.0], np.cumsum(lengths)])
    even = np.interp(np.linspace(0.0, passed[-1], n_betas), passed, betas)
    even[-1] = betas[-1]
    return even
