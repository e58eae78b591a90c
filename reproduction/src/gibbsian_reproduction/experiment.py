"""What a figure or a table of a paper is here: independent trials, tables and pictures of them, and claims to check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.registry import Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gibbsian_reproduction.tables import Table

EXPERIMENTS = Registry("experiment", "gibbsian_reproduction", "EXPERIMENTS")

Trial = dict[str, Any]
"""What one trial found: numbers and arrays by name, of the same shapes in every trial; NaN for what has no value."""


# -- what trials found ------------------------------------------------------------------------------------------------
def mean_of(values: np.ndarray) -> np.ndarray:
    """Return the means over the trials (the first axis) that have a value."""
    found = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(found, values, 0.0).sum(axis=0) / found.sum(axis=0)


def stderr_of(values: np.ndarray) -> np.ndarray:
    """Return the standard errors of `mean_of`; NaN where fewer than two trials have a value."""
    count = np.isfinite(values).sum(axis=0)
    squares = np.where(np.isfinite(values), (values - mean_of(values)) ** 2, 0.0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 1, np.sqrt(squares / (count - 1.0) / count), np.nan)[()]


@dataclass(frozen=True)
class Results:
    """What the trials of an experiment found, stacked.

    Parameters
    ----------
    values : mapping of str to ndarray of shape (n_trials, ...)
        The trials' arrays by name, one after the other.
    seed : int
        What the trials' randomness follows from.
    seconds : float
        What the trials took, added up over the workers.
    warnings : tuple of str
        What trials warned of, each sentence with the number of trials that gave it.
    """

    values: Mapping[str, np.ndarray]
    seed: int
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()

    @classmethod
    def of_trials(cls, trials: list[Trial], seed: int) -> Results:
        """Stack what trials returned."""
        return cls({name: np.array([trial[name] for trial in trials], dtype=np.float64) for name in trials[0]}, seed)

    @property
    def n_trials(self) -> int:
        """Number of trials."""
        return len(next(iter(self.values.values())))

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]

    def count(self, name: str) -> np.ndarray:
        """Return how many trials have a value."""
        return np.isfinite(self.values[name]).sum(axis=0)

    def mean(self, name: str) -> np.ndarray:
        """Return the means over the trials that have a value."""
        return mean_of(self.values[name])

    def stderr(self, name: str) -> np.ndarray:
        """Return the standard errors of `mean`; NaN where fewer than two trials have a value."""
        return stderr_of(self.values[name])


@dataclass(frozen=True)
class Series:
    """One column of a table and one curve of a picture: the mean over the trials of something that they found.

    Parameters
    ----------
    key : str
        The name in the trials.
    label : str
        What tables and legends call it; the key when left out.
    ours : bool
        Whether the paper does not have it.
    method : str
        Whose colour and marker it has; the key's when left out.
    place : tuple
        Which part of an array of several dimensions it is, an index after that of the trials.
    style : mapping
        What overrides the method's style.
    """

    key: str
    label: str = ""
    ours: bool = False
    method: str = ""
    place: tuple[Any, ...] = ()
    style: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The label, or the key where there is none."""
        return self.label or self.key

    def values(self, results: Results) -> np.ndarray:
        """Return its part of the results, one row for each trial."""
        return results[self.key][(slice(None), *self.place)]


# -- claims -----------------------------------------------------------------------------------------------------------
class Verdict:
    """Whether a claim holds in these trials, and the numbers that say so.

    None is no verdict: the numbers are reported where they cannot judge what was said (times of another machine).
    """

    def __init__(self, holds: object, numbers: str):
        self.holds = None if holds is None else bool(holds)
        self.numbers = numbers

    def __str__(self) -> str:
        return f"{verdict_word(self.holds)} ({self.numbers})"


def verdict_word(holds: bool | None) -> str:
    """Say what became of a claim."""
    return "reported" if holds is None else "holds" if holds else "does not hold"


@dataclass(frozen=True)
class Claim:
    """Something a paper says in words about a figure or table (or, marked, something that we say beyond it).

    Parameters
    ----------
    text : str
        The claim in a short sentence of our own, for example ``"1-SMCI below MPLE at every N"``.
    source : str
        Where it is said: ``"Y18 section 5"``.
    check : callable
        ``check(results)`` is a `Verdict`.
    trials : int
        From how many trials (made, not asked) on the claim is safe against chance; the tests ask for it from there.
    ours : bool
        Whether it is about a method that the paper does not have.
    misprint : bool
        Whether the text is known to be wrong as it is printed: the claim is checked all the same, and has to fail.
    """

    text: str
    source: str
    check: Callable[[Results], Verdict]
    trials: int = 200
    ours: bool = False
    misprint: bool = False


def claim(
    text: str, source: str, trials: int = 200, ours: bool = False, misprint: bool = False
) -> Callable[[Callable[[Results], Verdict]], Claim]:
    """Make a claim of the function that judges it."""
    return lambda check: Claim(text, source, check, trials, ours, misprint)


# -- experiments -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Experiment:
    """One figure, table or theorem of a paper.

    Parameters
    ----------
    paper, item, title : str
        ``"Y18"``, ``"Fig. 2a"``, and what it shows in one line.
    trial : callable
        ``trial(rng)`` runs one independent trial and returns a `Trial`. All its randomness comes from `rng`, and
        nothing it returns may depend on the number of threads.
    tables : tuple of callables
        Each makes a `Table` of the results.
    draw : callable
        ``draw(results, figure)`` draws on an empty Matplotlib figure, like the paper's. None: no picture.
    claims : tuple of Claim
        What is said about it.
    size : tuple of float
        Width and height of the picture in inches.
    trials_of : callable
        How many trials are made when the user asks for a number: most do as asked; heavy ones make fewer, and say so
        in `scale`.
    scale : str
        What a trial is, where it is not plain: ``"one random network for every 40 trials asked"``.
    timed : bool
        Whether times are measured: trials then run one at a time, alone.
    shares : str
        Name of the experiment that has the same trials, which are then run once for both; empty: none.
    """

    paper: str
    item: str
    title: str
    trial: Callable[[np.random.Generator], Trial]
    tables: tuple[Callable[[Results], Table], ...]
    draw: Callable[[Results, Figure], None] | None
    claims: tuple[Claim, ...]
    size: tuple[float, float] = (4.5, 3.6)
    trials_of: Callable[[int], int] = field(default=lambda asked: asked)
    scale: str = ""
    timed: bool = False
    shares: str = ""
