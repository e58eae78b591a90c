"""Tempered columns along a path, and log Z from the bridges between neighbouring places.

A column is a chain at every place of a path; neighbours exchange their states, so that what is decided at the
beginning, where chains move freely, reaches the model. Columns owe nothing to each other: half of them start at draws
from the beginning, half at states cooled beyond the model, and errors come from how the columns differ. Between two
neighbours the ratio of the normalisers is estimated from the states of both (Bennett 1976), and the
logarithms add up to log Z. From the states of all places at once (Shirts and Chodera 2008) errors were 0 to 6% smaller,
on paths whose log-weights are linear in the place only, which those of layers are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.old_sampling.paths import Path
from gibbsian.progress import counted
from gibbsian.startup import expit, stdtrit

# Columns: independent of each other, and as many as the lanes of a kernel.
COLUMNS = 32
# Sweeps of every chain between two exchanges.
SWEEPS = 3
# Places and rounds of the runs that decide where the places are, and how often they are decided.
PILOT_PLACES, PILOT_ROUNDS, PILOTS = 100, 30, 4
# Share of the exchanges between neighbours that may fail, and the most places.
REJECTED, MOST_PLACES = 0.4, 128
# Standard errors that two halves of a run may be apart.
MOST_APART = 4.0
# Neighbours that exchange more seldom than this share of the times are not connected.
LEAST_EXCHANGED = 0.02


def bennett(there: np.ndarray, back: np.ndarray) -> float:
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
    >>> from gibbsian.old_sampling.bridges import bennett
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
class TemperedRun:
    """What tempered columns have measured.

    Parameters
    ----------
    places : ndarray of shape (n_places,)
        Where the chains of a column are, from 0 to 1.
    log_partition : float
        The estimate of log Z.
    deviations : ndarray of shape (2, n_columns)
        By how much each column pulls the estimate, in the first half of the run and in the second.
    exchanged : ndarray of shape (n_places - 1,)
        Share of the exchanges between neighbours that were made.
    states : ndarray of shape (n_states, n_variables)
        States of the model, from all columns.
    n_rounds : int
        Exchanges between each pair of neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.old_sampling import TemperedRun
    >>> pulls, no_states = np.array([[0.0, 0.1, -0.1, 0.0]] * 2), np.empty((0, 3))
    >>> TemperedRun(np.array([0.0, 1.0]), 2.0, pulls, np.array([0.5]), no_states).describe()
    '4 tempered columns of 2 chains give 2.0000 +- 0.3266 by the bridges between them'
    """

    places: np.ndarray
    log_partition: float
    deviations: np.ndarray = field(repr=False)
    exchanged: np.ndarray = field(repr=False)
    states: np.ndarray = field(repr=False)
    n_rounds: int = 0

    @property
    def log_partition_stderr(self) -> float:
        """Standard error of `log_partition`, from the spread over columns."""
        return _spread(self.deviations.sum(axis=0))

    @property
    def reach(self) -> float:
        """By how much a 95% interval goes beyond the estimate on either side, with few columns."""
        return float(stdtrit(self.deviations.shape[1] - 1, 0.975)) * self.log_partition_stderr

    @property
    def trouble(self) -> str | None:
        """Say why the estimate is not to be trusted, or None where nothing speaks against it."""
        lost = int(np.argmin(self.exchanged))
        if self.exchanged[lost] < LEAST_EXCHANGED:
            ends = f"{self.places[lost]:.3g} and {self.places[lost + 1]:.3g}"
            return f"tempered chains at the inverse temperatures {ends} hardly exchange their states"
        columns = self.deviations.sum(axis=0)
        random, cold = columns[::2], columns[1::2]
        starts = 2.0 * float(random.sum() - cold.sum())
        if abs(starts) > MOST_APART * 2.0 * float(np.hypot(_spread(random), _spread(cold))) + 1e-8:
            return f"tempered chains from random states and from cold ones put log Z {abs(starts):.2g} apart"
        halves = 2.0 * (self.deviations[0] - self.deviations[1])
        if abs(halves.sum()) > MOST_APART * _spread(halves) + 1e-8:
            return f"the two halves of the tempered run put log Z {abs(halves.sum()):.2g} apart"
        return None

    def describe(self) -> str:
        """Say it in one sentence."""
        return (
            f"{self.deviations.shape[1]} tempered columns of {len(self.places)} chains give {self.log_partition:.4f} "
            f"+- {self.log_partition_stderr:.4f} by the bridges between them"
        )


def _spread(pulls: np.ndarray) -> float:
    """The standard error of a sum of independent pulls, one for each column."""
    return float(np.sqrt(pulls.size * pulls.var(ddof=1)))


@dataclass
class TemperedColumns:
    """Chains at all places of a path, column by column.

    Parameters
    ----------
    path : Path
        What they go along.
    places : ndarray
        Places from 0 to 1.
    walkers : list
        Those at each place; one for each column.
    rng : Generator
        Source of randomness.
    n_columns : int, default 32
        Number of columns.
    n_rounds : int
        Rounds made so far: neighbours take turns in exchanging.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.old_sampling.bridges import TemperedColumns
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.8] * 12)
    >>> run = TemperedColumns.settled(gb.old_sampling.variable_path(model), rng=gb.rng.as_generator(0)).run(200)
    >>> abs(run.log_partition - gb.inference.exact(model).log_partition) < 3 * run.log_partition_stderr < 0.1
    True
    """

    path: Path
    places: np.ndarray
    walkers: list[Any]
    rng: np.random.Generator
    n_columns: int = COLUMNS
    n_rounds: int = 0

    @classmethod
    def settled(cls, path: Path, rng: np.random.Generator, n_columns: int = COLUMNS) -> TemperedColumns:
        """Start columns at random and at cold states, and put the places where neighbours exchange equally often."""
        pilot = np.linspace(0.0, 1.0, PILOT_PLACES + 1)
        walkers = path.from_base(n_columns, rng)
        increases = np.array([path.walk(walkers, pilot[k : k + 2]) for k in range(PILOT_PLACES)])
        path.walk(walkers, np.geomspace(1.0, path.coldest, PILOT_PLACES))
        lengths = increases.std(axis=1)
        places = even_places(pilot, lengths + 0.1 * lengths.mean() + 1e-12, _n_places(float(lengths.sum())))
        path.require_memory(n_columns * len(places))
        cold, columns = path.states_of(walkers), cls(path, places, [], rng, n_columns)
        for _ in places:
            here, there = path.from_base(n_columns, rng), path.from_states(cold, rng)
            path.exchange(here, there, np.arange(n_columns) % 2 == 1)
            columns.walkers.append(here)
        for _ in range(PILOTS):
            there, back = columns._rounds(PILOT_ROUNDS)
            rejected = np.maximum(1.0 - _exchanged(there, back), 1e-3)
            columns._move_to(even_places(columns.places, rejected, _n_places(float(rejected.sum()) / REJECTED)))
        return columns

    def _move_to(self, places: np.ndarray) -> None:
        """Put chains at other places, each at the state of the nearest one that there was."""
        nearest = np.rint(np.interp(places, self.places, np.arange(len(self.places)))).astype(np.int64)
        states = [self.path.states_of(walkers) for walkers in self.walkers]
        self.walkers = [self.path.from_states(states[k], self.rng) for k in nearest]
        self.places = places

    def run(self, n_rounds: int, n_states: int = COLUMNS) -> TemperedRun:
        """Let the columns forget where they were, then measure the bridges between their places."""
        self._rounds(max(1, n_rounds // 4))
        n_parts = max(2, -(-n_states // self.n_columns))
        parts, states = [], []
        for part in counted(np.array_split(np.arange(n_rounds), n_parts), "tempering", n_parts):
            parts.append(self._rounds(part.size))
            states.append(np.array(self.path.states_of(self.walkers[-1])))  # may be the walkers' own array
        there, back = (np.concatenate(both, axis=1) for both in zip(*parts, strict=True))
        log_partition, deviations = self.path.log_base_partition, np.zeros((2, self.n_columns))
        for up, down in zip(there, back, strict=True):
            ratio, pulls = _bridge(up, down)
            log_partition += ratio
            deviations += [half.sum(axis=0) for half in np.array_split(pulls, 2)]
        chosen = np.linspace(0, n_parts * self.n_columns - 1, n_states).astype(np.int64)
        kept = np.concatenate(states)[chosen]
        return TemperedRun(self.places, log_partition, deviations, _exchanged(there, back), kept, n_rounds)

    def _rounds(self, n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Move all chains and let neighbours exchange; return what `Path.exchanged` does."""
        numbers = range(self.n_rounds, self.n_rounds + n_rounds)
        self.n_rounds += n_rounds
        return self.path.exchanged(self.walkers, self.places, SWEEPS, numbers, self.rng)


def _bridge(up: np.ndarray, down: np.ndarray) -> tuple[float, np.ndarray]:
    """Bennett's ratio between two neighbours, and by how much each round of each column pulls it."""
    ratio = bennett(up, down)
    shares = expit(up - ratio), expit(down + ratio)
    slope = sum(float((share * (1.0 - share)).sum()) for share in shares)
    return ratio, (shares[0] - shares[1]) / max(slope, 1e-300)


def _exchanged(there: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Mean probability of an exchange between each pair of neighbours."""
    return np.exp(np.minimum(there + back, 0.0)).mean(axis=(1, 2))


def _n_places(length: float) -> int:
    return int(np.clip(np.ceil(length) + 1, 3, MOST_PLACES))


def even_places(places: np.ndarray, lengths: np.ndarray, n_places: int) -> np.ndarray:
    """Return so many places from the first to the last, evenly along a line whose pieces have these lengths."""
    passed = np.concatenate([[0.0], np.cumsum(lengths)])
    found = np.interp(np.linspace(0.0, passed[-1], n_places), passed, places)
    found[-1] = places[-1]
    return found
