"""Annealed importance sampling (Neal 2001; YU20 section 4.2): weighted states and log Z.

Walkers start where the normaliser is known and go to the model along a path of distributions. At each step a
walker's weight takes up how much likelier its state has become, then a transition moves it. The mean weight is Z in
expectation, so its logarithm is below log Z in expectation, and far below, with little warning, where the transitions
cannot keep up. The same walk the other way, from states of the model, errs on the other side
(`gibbsian.diagnostics.log_partition_interval`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np

from gibbsian.backends.device import here
from gibbsian.backends.processes import are_dealt, map_fits
from gibbsian.errors import ArgumentError
from gibbsian.models.base import ExponentialFamily, Model
from gibbsian.old_sampling.paths import as_path
from gibbsian.progress import counted
from gibbsian.rng import RandomState, as_generator
from gibbsian.settings import check_whole_number
from gibbsian.startup import logsumexp

# Weights are trusted while a generalised Pareto distribution fitted to the largest has a shape below this (Vehtari,
# Simpson, Gelman, Yao and Gabry, "Pareto smoothed importance sampling", JMLR 25, 2024).
MAX_PARETO_K = 0.7
# Walkers from which that shape can be fitted.
LEAST_FOR_PARETO = 25
# A walk of this many temperatures by this many walkers shows where the steps should be short.
PILOT_BETAS, PILOT_WALKERS = 200, 64
# Places that walkers go through between two reports of how far they have come.
STRETCH = 500


@dataclass(frozen=True)
class AnnealedRun:
    """Walkers at the end of a run, with their weights.

    Parameters
    ----------
    states : ndarray of int8, shape (n_walkers, n_variables)
        Where the walkers ended. Of a forward run they stand for the model when weighted by `weights`.
    log_weights : ndarray of shape (n_walkers,)
        Logarithms of the importance weights: their mean is Z of a forward run and 1 / Z of a reverse one.
    n_betas : int
        Steps from one end of the path to the other.
    reverse : bool
        Whether the run went from the model to the independent variables.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.old_sampling.annealing import AnnealedRun
    >>> run = AnnealedRun(np.ones((2, 1), np.int8), np.log([1.0, 3.0]), n_betas=10)
    >>> run.weights, round(run.log_partition, 4), round(run.effective_sample_size, 4)
    (array([0.25, 0.75]), 0.6931, 1.6)
    """

    states: np.ndarray
    log_weights: np.ndarray
    n_betas: int
    reverse: bool = False

    @property
    def n_walkers(self) -> int:
        """Number of walkers."""
        return len(self.log_weights)

    @property
    def weights(self) -> np.ndarray:
        """The weights, divided by their sum."""
        return np.exp(self.log_weights - logsumexp(self.log_weights))

    @property
    def log_partition(self) -> float:
        """The estimate of log Z."""
        log_mean = float(logsumexp(self.log_weights)) - np.log(self.n_walkers)
        return float(-log_mean if self.reverse else log_mean)

    @property
    def log_partition_stderr(self) -> float:
        """Standard error of `log_partition`: that of the mean weight, relative to it.

        It says how walkers differ, so it means nothing when a few hold nearly all the weight: see `trouble`.
        """
        relative = self.n_walkers * self.weights
        return float(relative.std(ddof=1) / np.sqrt(self.n_walkers))

    @property
    def effective_sample_size(self) -> float:
        """How many walkers of equal weight would serve as well."""
        return float(1.0 / np.square(self.weights).sum())

    @property
    def pareto_k(self) -> float:
        """Shape of the tail of the weights; above 0.7 neither means nor errors settle.

        It is -inf when no weight stands out, and nan for walkers too few to tell.
        """
        if self.n_walkers < LEAST_FOR_PARETO:
            return float("nan")
        # weights that differ by rounding alone have no tail
        if np.ptp(self.log_weights) < 1e-8:
            return float("-inf")
        from arviz_stats.base import array_stats

        try:
            return float(array_stats.psislw(self.log_weights)[1])
        except ValueError:  # the largest weights are equal
            return float("-inf")

    @property
    def trouble(self) -> str | None:
        """Say why the weights are not to be trusted, or None where nothing speaks against them."""
        share = float(self.weights.max())
        if share > 0.5:
            return f"one of {self.n_walkers} walkers holds {share:.0%} of the weight"
        if self.pareto_k > MAX_PARETO_K:
            return (
                f"the weights of {self.n_walkers} walkers have too heavy a tail (Pareto shape {self.pareto_k:.2f}, "
                f"above {MAX_PARETO_K})"
            )
        return None

    def describe(self) -> str:
        """Say it in one sentence.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.old_sampling.annealing import AnnealedRun
        >>> AnnealedRun(np.ones((3, 1), np.int8), np.array([2.0, 2.0, 2.0]), n_betas=10).describe()
        'log Z = 2.0000 +- 0.0000 by a forward run of 3 walkers (worth 3.0) through 10 temperatures'
        """
        way = "reverse" if self.reverse else "forward"
        return (
            f"log Z = {self.log_partition:.4f} +- {self.log_partition_stderr:.4f} by a {way} run of {self.n_walkers} "
            f"walkers (worth {self.effective_sample_size:.1f}) through {self.n_betas} temperatures"
        )


@dataclass(frozen=True)
class Annealing:
    """Annealed importance sampling along a path of distributions.

    Results do not depend on the number of threads.

    Parameters
    ----------
    n_walkers : int
        Independent walkers, at least 2.
    betas : int or array-like
        Number of equal steps of the way from 0 to 1 (YU20: 10,000), or the places on it. On the path between
        independent variables and a model they are inverse temperatures.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.old_sampling.annealing import Annealing
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
    >>> run = Annealing(n_walkers=100, betas=1000).forward(model, rng=0)
    >>> truth = gb.inference.exact(model).log_partition
    >>> abs(run.log_partition - truth) < 3 * run.log_partition_stderr < 0.1
    True
    """

    n_walkers: int = 100
    betas: int | np.ndarray = 10_000

    def __post_init__(self) -> None:
        check_whole_number("n_walkers", self.n_walkers, least=2)
        if isinstance(self.betas, str) or not np.ndim(self.betas):
            check_whole_number("betas", self.betas, least=1)
        elif not _rises_from_0_to_1(self.betas):
            raise ArgumentError("betas must rise from 0 to 1", "give the number of steps, or all inverse temperatures")

    @property
    def ladder(self) -> np.ndarray:
        """The places from 0 to 1."""
        if np.ndim(self.betas):
            return np.array(self.betas, dtype=np.float64)
        return np.linspace(0.0, 1.0, int(self.betas) + 1)

    def forward(self, model: Any, rng: RandomState = None) -> AnnealedRun:
        """Go to the model: weighted states, and log Z from below in expectation.

        `model` is a path, or a model, which is reached from independent variables.
        """
        generator = as_generator(rng)
        path = as_path(model, generator)
        path.require_memory(self.n_walkers)
        walkers = path.from_base(self.n_walkers, generator)
        log_weights = path.log_base_partition + _walked(path, walkers, self.ladder)
        return AnnealedRun(path.states_of(walkers), log_weights, len(self.ladder) - 1)

    def reverse(self, model: Any, states: np.ndarray, rng: RandomState = None) -> AnnealedRun:
        """Go from states of the model to the beginning of a path: log Z from above in expectation.

        Parameters
        ----------
        model : Path or Model
            The path, or a model, which is left for independent variables.
        states : array-like, shape (n_states, n_variables)
            Independent draws from the model; each starts one walker, whatever `n_walkers` says. Whether they are such
            draws decides whether the result is an upper estimate: no weight can tell.
        rng : None, int or Generator
            Source of randomness.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.old_sampling.annealing import Annealing
        >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
        >>> engine = gb.inference.exact(model)
        >>> draws = engine.sample(100, np.random.default_rng(0))
        >>> run = Annealing(betas=1000).reverse(model, draws, rng=1)
        >>> abs(run.log_partition - engine.log_partition) < 3 * run.log_partition_stderr < 0.1
        True
        """
        generator = as_generator(rng)
        path = as_path(model, generator)
        given = np.asarray(states)
        if len(given) < 2:
            raise ArgumentError(f"states has {len(given)} rows", "give two or more, each starts a walker")
        path.require_memory(len(given))
        walkers = path.from_states(given, generator)
        log_weights = _walked(path, walkers, self.ladder[::-1].copy()) - path.log_base_partition
        return AnnealedRun(path.states_of(walkers), log_weights, len(self.ladder) - 1, reverse=True)

    def adapted(self, model: Model[ExponentialFamily], rng: RandomState = None) -> Self:
        """Return the same settings with the places moved to where the walkers' states change most.

        A short run measures how far the slope of the log-weight moves from one place to the next; the steps are
        then made such that it moves by the same amount in each. (Its spread over walkers would be a worse guide:
        walkers that are stuck in different places differ much, but short steps there help nobody.) It pays for strong
        interactions, where all is decided at small inverse temperatures, and changes little for weak ones. The estimate
        stays unbiased, because the ladder is settled before the walkers start.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.old_sampling.annealing import Annealing
        >>> model = gb.PairwiseFamily.model(gb.graphs.grid(4, 4), None, [1.0] * 24)
        >>> ladder = Annealing(betas=100).adapted(model, rng=0).ladder
        >>> bool(ladder[50] < 0.5)                 # the order comes early, and short steps with it
        True
        """
        generator = as_generator(rng)
        path = as_path(model, generator)
        walkers = path.from_base(PILOT_WALKERS, generator)
        pilot = np.linspace(0.0, 1.0, PILOT_BETAS + 1)
        increases = np.array([path.walk(walkers, pilot[k : k + 2]) for k in range(PILOT_BETAS)])
        return replace(self, betas=even_ladder(pilot, increases, len(self.ladder) - 1))


def _walked(path: object, walkers: Any, places: np.ndarray) -> np.ndarray:
    """Walk through the places, group by group on other processes where fits are dealt out to them."""
    groups = walkers.cut() if are_dealt() and here() is None else []
    if len(groups) < 2:
        return _in_stretches(path, walkers, places)
    found = list(counted(map_fits(partial(_moved, path, places), groups), "annealing", len(groups)))
    walkers.take([group for group, _ in found])
    return np.concatenate([increases for _, increases in found])


def _moved(path: object, places: np.ndarray, walkers: object) -> tuple[Any, np.ndarray]:
    own = deepcopy(walkers)  # what came to a worker may be read only
    increases = _in_stretches(path, own, places)
    return own, increases


def _in_stretches(path: Any, walkers: Any, places: np.ndarray) -> np.ndarray:
    """Walk through the places in stretches, each of which is reported when it is done."""
    ends = [*range(0, len(places) - 1, STRETCH), len(places) - 1]
    stretches = (places[start : end + 1] for start, end in pairwise(ends))
    return sum(path.walk(walkers, stretch) for stretch in counted(stretches, "annealing", len(ends) - 1))


def _rises_from_0_to_1(betas: object) -> bool:
    try:
        ladder = np.array(betas, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    if ladder.ndim != 1 or ladder.size < 2:
        return False
    return ladder[0] == 0.0 and ladder[-1] == 1.0 and bool(np.all(np.diff(ladder) > 0))


def even_ladder(pilot: np.ndarray, increases: np.ndarray, n_steps: int) -> np.ndarray:
    """Put `n_steps` steps such that the pilot's increases (steps by walkers) change equally much in each."""
    changes = np.sqrt(np.mean(np.diff(increases, axis=0) ** 2, axis=1))
    amounts = np.append(changes[:1], changes)
    # a tenth of the mean everywhere: no stretch is jumped because the pilot saw little of it
    amounts += 0.1 * amounts.mean() + 1e-12
    passed = np.concatenate([[0.0], np.cumsum(amounts)])
    ladder = np.interp(np.linspace(0.0, passed[-1], n_steps + 1), passed, pilot)
    ladder[0], ladder[-1] = 0.0, 1.0
    return ladder


__all__ = ["AnnealedRun", "Annealing"]
