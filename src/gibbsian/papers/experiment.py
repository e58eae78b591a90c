"""What a figure or a table of a paper is here: independent trials, tables and pictures of them, and claims to check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.registry import Registry

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EXPERIMENTS = Registry("experiment", "gibbsian.papers", "EXPERIMENTS")

Trial = dict[str, Any]
"""What one trial found: numbers and arrays by name, of the same shapes in every trial; NaN for what has no value."""


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

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.experiment import Results
    >>> results = Results({"error": np.array([[1.0, 2.0], [3.0, np.nan]])}, seed=0)
    >>> results.mean("error"), results.count("error"), results.n_trials
    (array([2., 2.]), array([2, 1]), 2)
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
        values = self.values[name]
        found = np.isfinite(values)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(found, values, 0.0).sum(axis=0) / found.sum(axis=0)

    def stderr(self, name: str) -> np.ndarray:
        """Return the standard errors of `mean`; NaN where fewer than two trials have a value."""
        values, count = self.values[name], self.count(name)
        squares = np.where(np.isfinite(values), (values - self.mean(name)) ** 2, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 1, np.sqrt(squares / (count - 1.0) / count), np.nan)


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in these trials, and the numbers that say so.

    Examples
    --------
    >>> from gibbsian.papers.experiment import Verdict
    >>> str(Verdict(True, "200 of 200 trials"))
    'holds (200 of 200 trials)'
    """

    holds: bool
    numbers: str

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'does not hold'} ({self.numbers})"


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

    Examples
    --------
    >>> from gibbsian.papers.experiment import Claim, Verdict
    >>> Claim("errors are positive", "arithmetic", lambda results: Verdict(True, "always")).ours
    False
    """

    text: str
    source: str
    check: Callable[[Results], Verdict]
    trials: int = 200
    ours: bool = False
    misprint: bool = False


@dataclass(frozen=True)
class Table:
    """A table of results with a title; standard errors have columns of their own.

    Examples
    --------
    >>> import pandas as pd
    >>> from gibbsian.papers.experiment import Table
    >>> Table("errors", pd.DataFrame({"N": [100], "mple": [0.05], "mple stderr": [0.001]})).name
    'errors'
    """

    name: str
    frame: pd.DataFrame
    note: str = ""


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
    tables : callable
        ``tables(results)`` is a list of `Table`.
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

    Examples
    --------
    >>> from gibbsian.papers.experiment import EXPERIMENTS
    >>> EXPERIMENTS.create("y18-fig3a").item
    'Fig. 3a'
    """

    paper: str
    item: str
    title: str
    trial: Callable[[np.random.Generator], Trial]
    tables: Callable[[Results], list[Table]]
    draw: Callable[[Results, Figure], None] | None
    claims: tuple[Claim, ...]
    size: tuple[float, float] = (4.5, 3.6)
    trials_of: Callable[[int], int] = field(default=lambda asked: asked)
    scale: str = ""
    timed: bool = False
    shares: str = ""


__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Results", "Table", "Trial", "Verdict"]
