"""The most probable state of a model, given some of its variables or none: the limit of temperature zero (YK15).

Exact where an engine is quick or all rows can be listed, else by annealing; with an upper bound, so that the gap to the
largest log-weight is known, and is zero where the state is proven to be a best one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.backends.threads import map_ordered
from gibbsian.data import Dataset
from gibbsian.display import Shown
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import exact
from gibbsian.inference.log_tables import digits
from gibbsian.inference.upper_bounds import largest_log_weight_bound
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.resources import row_blocks
from gibbsian.rng import Key
from gibbsian.sampling.cooling import ROW_ROUNDS, annealed, cooled_rows, cooled_states

METHODS = ("auto", "exact", "annealing")
# "auto" asks an engine that is predicted to take no longer, "exact" one within the usual limit.
QUICK_SECONDS, MAX_SECONDS = 10.0, 60.0
# A gap of rounding, as a share of the log-weight.
ROUNDING = 1e-9
# Cells of rows that are weighed together while all rows are listed.
CELLS_AT_ONCE = 2**20
# Steps up a density, and when a step is none.
MAX_STEPS, STILL = 1000, 1e-12

Rounds = Callable[[int, int], np.ndarray]
"""Makes a round of so many chains of so many sweeps, and returns where they end."""


@dataclass(frozen=True, repr=False)
class Modes(Shown):
    """Most probable states: one row for each row that was asked about, or several of one from the best on.

    Parameters
    ----------
    rows : array of shape (n_rows, n_columns)
        The states, in codes; from an estimator in the labels of its data.
    log_weights : array of shape (n_rows,)
        Their unnormalised log-probabilities, or log-densities.
    bounds : array of shape (n_rows,)
        What no log-weight with the same evidence exceeds; infinite where nothing is known. The rows after the first of
        several are bounded by themselves: all states were listed.
    methods : tuple of str
        How each was found.
    hidden : array, default=None
        The values of the hidden units, or the class, where the joint state was asked for.
    log_partition : float, default=nan
        log Z, where it is in exact reach.

    Examples
    --------
    >>> import gibbsian as gb
    >>> found = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]).most_probable()
    >>> found.rows.tolist(), found.exact.tolist(), found.probabilities.round(2).tolist()
    ([[1, 1]], [True], [0.4])
    """

    rows: np.ndarray
    log_weights: np.ndarray
    bounds: np.ndarray
    methods: tuple[str, ...]
    hidden: np.ndarray | None = None
    log_partition: float = float("nan")

    def _facts(self) -> dict[str, object]:
        return {
            "rows": len(self.log_weights),
            "log weight": float(np.max(self.log_weights, initial=-np.inf)),
            "exact": bool(self.exact.all()),
        }

    @property
    def gaps(self) -> np.ndarray:
        """By how much a better state could exceed each log-weight."""
        return np.maximum(self.bounds - self.log_weights, 0.0)

    @property
    def exact(self) -> np.ndarray:
        """Whether each is proven to be a most probable state."""
        return self.gaps <= ROUNDING * (1.0 + np.abs(self.log_weights))

    @property
    def probabilities(self) -> np.ndarray:
        """The probability (or density) of each row, evidence included; nan where log Z is out of reach."""
        return np.exp(self.log_weights - self.log_partition)

    @classmethod
    def one(
        cls, row: np.ndarray, log_weight: float, bound: float, method: str, hidden: ArrayLike | None = None
    ) -> Self:
        """Return one state."""
        units = None if hidden is None else np.asarray(hidden)[None]
        return cls(np.asarray(row)[None], np.array([log_weight]), np.array([bound]), (method,), units)

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Return the states of several questions as one table."""
        units = [part.hidden for part in parts if part.hidden is not None]  # rows without missing cells may have none
        hidden = np.concatenate(units) if len(units) == len(parts) else None
        logs, bounds = np.concatenate([p.log_weights for p in parts]), np.concatenate([p.bounds for p in parts])
        return cls(np.concatenate([p.rows for p in parts]), logs, bounds, sum((p.methods for p in parts), ()), hidden)


@dataclass(frozen=True)
class Search:
    """How a most probable state is looked for.

    Parameters
    ----------
    rng : Generator
        Source of randomness of the annealing.
    n_states : int, default=1
        How many states, from the most probable one on; more than one need a list of all.
    method : {"auto", "exact", "annealing"}, default="auto"
        Whether to insist on one way.
    restarts : int, default=None
        Chains of a round of annealing; by default its own number.
    """

    rng: np.random.Generator
    n_states: int = 1
    method: str = "auto"
    restarts: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            known = f"use one of {', '.join(METHODS)}"
            raise ArgumentError("is not known", known, argument="method", value=self.method)

    def require_one_peak(self) -> None:
        """Refuse what real numbers do not have."""
        if self.n_states > 1 or self.method != "auto":
            raise ArgumentError("rows of real numbers are climbed to one peak", "leave `n_states` and `method` out")

    def of_model(self, model: Model[DiscreteFamily]) -> tuple[np.ndarray, float, float, str]:
        """Return the codes of a state of a discrete model, its log-weight, a bound on it, and how it was found."""
        if self.method != "annealing":
            try:
                seconds = QUICK_SECONDS if self.method == "auto" else MAX_SECONDS
                answers = exact(model, max_seconds=seconds, instead="set `method='annealing'`")
                state, _ = answers.mode
                log_weight = float(model.log_weights(state[None])[0])
                return state, log_weight, log_weight, answers.engine.cost.engine
            except TooExpensiveError:
                if self.method == "exact":
                    raise
        key = Key.of(self.rng)
        state, log_weight, words = annealed(
            lambda n_chains, n_sweeps: cooled_states(model, n_chains, n_sweeps, key), model.log_weights, self.restarts
        )
        return state, log_weight, largest_log_weight_bound(model), words

    def of_rows(
        self,
        weigh: Callable[[np.ndarray], np.ndarray],
        sizes: Sequence[int],
        state: np.ndarray,
        free: np.ndarray,
        most: float,
        bound: Callable[[], float],
        starts: Callable[[], Sequence[np.ndarray]] = list,
        rounds: Rounds | None = None,
    ) -> Modes:
        """Ask about rows of codes of which only log-weights are known: list up to `most` of them, or anneal.

        Variables have `sizes` values each. `starts` are codes of the free cells that chains may begin at; `rounds` of
        chains that end at good codes of the free cells take the place of chains that know log-weights only.
        """
        cells = np.flatnonzero(free)
        if not cells.size:
            log_weight = float(weigh(state[None])[0])
            return Modes.one(state, log_weight, log_weight, "given")
        counts = np.array(sizes)[cells]

        def rows_with(part: np.ndarray) -> np.ndarray:
            every = np.repeat(state[None], len(part), axis=0)
            every[:, cells] = part
            return every

        def weigh_part(part: np.ndarray) -> np.ndarray:
            return weigh(rows_with(part))

        n_rows = float(np.prod(counts, dtype=np.float64))
        if n_rows <= most and (self.method != "annealing" or self.n_states > 1):
            numbers, best = self._listed(weigh_part, counts, int(n_rows))
            return Modes(rows_with(digits(numbers, counts)), best, best, ("a list of all rows",) * best.size)
        if self.method == "exact" or self.n_states > 1:
            raise TooExpensiveError(
                f"there are {n_rows:.2g} rows to list, and up to {most:.2g} are listed",
                "give more evidence, or ask for one state with `method='annealing'`",
            )
        cooled = rounds or cooled_rows(weigh_part, counts, Key.of(self.rng), starts())
        # on one BLAS thread: waking others takes longer than weighing a few rows
        ((found, log_weight, words),) = map_ordered(
            lambda chains: annealed(chains, weigh_part, self.restarts, ROW_ROUNDS), [cooled]
        )
        return Modes.one(rows_with(found[None])[0], log_weight, bound(), words)

    def _listed(
        self, weigh: Callable[[np.ndarray], np.ndarray], sizes: np.ndarray, n_rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """List all rows, the last cell changing fastest, and keep the best; of equal ones the first."""
        numbers, best = np.empty(0, np.int64), np.empty(0)
        for block in row_blocks(n_rows, sizes.size, max_cells=CELLS_AT_ONCE):
            part = np.arange(block.start, block.stop)
            numbers, best = np.append(numbers, part), np.append(best, weigh(digits(part, sizes)))
            kept = np.argsort(-best, kind="stable")[: self.n_states]
            numbers, best = numbers[kept], best[kept]
        return numbers, best


class HasModes(Protocol):
    """Answers that find the most probable states of a row."""

    def mode_of(self, data: Dataset, state: np.ndarray, free: np.ndarray, search: Search, joint: bool) -> Modes:
        """Return the most probable row that has the `free` cells anew."""


def modes_of_rows(answers: HasModes, data: Dataset, search: Search, joint: bool) -> Modes:
    """Ask about each distinct row of data by itself, and return what was found in the order of the rows."""
    found = [
        answers.mode_of(data, state, free, search, joint) for state, free in zip(data.states, data.holes, strict=True)
    ]
    return Modes.together([found[number] for number in data.row_of])


def climbed(step: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
    """Return points after steps that raise a density, until they stand still."""
    for _ in range(MAX_STEPS):
        before, points = points, step(points)
        if np.abs(points - before).max(initial=0.0) <= STILL * (1.0 + np.abs(points).max(initial=0.0)):
            break
    return points
