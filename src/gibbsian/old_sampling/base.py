"""The contract every sampler keeps, and drawing many states with one."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.models.variables import Variables
from gibbsian.progress import counted
from gibbsian.registry import Registry
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator, chain_streams
from gibbsian.settings import check_whole_number

SAMPLERS = Registry("sampler", "gibbsian.old_sampling", "SAMPLERS")
# functions by the names of the families whose chains they sweep
SWEEPS = Registry("Gibbs sampler", "gibbsian.old_sampling", "SWEEPS")


class ChainState(NamedTuple):
    """Where a set of chains stands: all that a checkpoint has to hold.

    Parameters
    ----------
    states : ndarray of int8, shape (n_chains, n_variables)
        The present state of each chain, in codes; numbers (float64) where variables are real.
    streams : ndarray of uint64, shape (n_chains, 4)
        The random stream of each chain.
    clamped : ndarray of bool, shape (n_variables,) or (n_chains, n_variables)
        Variables that are never updated, the same in all chains or chain by chain.
    n_sweeps : int
        Sweeps made so far.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    >>> chains = gb.old_sampling.Gibbs().init(model, 5, np.random.default_rng(0))
    >>> chains.states.shape, chains.streams.shape, chains.n_sweeps
    ((5, 3), (5, 4), 0)
    """

    states: np.ndarray
    streams: np.ndarray
    clamped: np.ndarray
    n_sweeps: int

    def part(self, chosen: slice) -> ChainState:
        """Return some of the chains; each goes on as it would beside the others."""
        clamped = self.clamped if self.clamped.ndim == 1 else self.clamped[chosen]
        return self._replace(states=self.states[chosen], streams=self.streams[chosen], clamped=clamped)


class SweepInfo(NamedTuple):
    """What happened in one call of ``step``.

    Parameters
    ----------
    flips : float
        Share of the updates of free variables that changed the value.
    n_sweeps : int
        Sweeps made in this call.

    Examples
    --------
    >>> from gibbsian.old_sampling import SweepInfo
    >>> SweepInfo(flips=0.25, n_sweeps=10).flips
    0.25
    """

    flips: float
    n_sweeps: int


@runtime_checkable
class Sampler(Protocol):
    """Moves chains so that the model's distribution stays as it is.

    Examples
    --------
    >>> import gibbsian as gb
    >>> isinstance(gb.old_sampling.Gibbs(), gb.old_sampling.Sampler)
    True
    """

    def init(
        self,
        model: Model[Any],
        n_chains: int,
        rng: np.random.Generator,
        *,
        states: np.ndarray | None = None,
        clamped: np.ndarray | None = None,
    ) -> ChainState:
        """Start chains at `states`, or at uniformly random ones."""

    def step(self, model: Model[DiscreteFamily], state: ChainState, n_sweeps: int = 1) -> tuple[ChainState, SweepInfo]:
        """Return the chains some sweeps later; `state` is left as it is."""


def start_chains(
    model: Model[Family],
    n_chains: int,
    rng: np.random.Generator,
    states: np.ndarray | None = None,
    clamped: np.ndarray | None = None,
) -> ChainState:
    """Start chains at `states`, or at uniformly random ones: what most samplers do in ``init``.

    Chain `c` depends on the generator and on `c` only, not on how many chains there are.
    """
    check_whole_number("n_chains", n_chains, least=1)
    streams, n = chain_streams(rng, n_chains), model.n_variables
    if states is None:
        if clamped is not None and np.any(clamped):
            raise ArgumentError("`clamped=` needs states=, which holds the values of the clamped variables")
        states = _uniform_rows(model.variables, streams)
    mask = np.zeros(n, bool) if clamped is None else np.array(clamped, bool)
    if mask.shape not in ((n,), (n_chains, n)):
        raise ArgumentError(f"clamped has shape {mask.shape}", f"use {(n,)} or {(n_chains, n)}")
    rows = model.variables.checked(np.atleast_2d(states), "states")
    if len(rows) not in (1, n_chains):
        raise ArgumentError(f"states has {len(rows)} rows", f"give one for each of {n_chains} chains, or one for all")
    return ChainState(np.array(np.broadcast_to(rows, (n_chains, n))), streams, mask, 0)


def _uniform_rows(variables: Variables, streams: np.ndarray) -> np.ndarray:
    """Draw a row from a copy of each chain's own stream, so that the sweeps find it where it was."""
    n, codes = len(variables), np.empty((len(streams), len(variables)), np.int8)
    for chain, stream in enumerate(streams):
        rng = np.random.default_rng(stream)
        codes[chain] = rng.integers(0, 2, n, np.int8) if variables.two_valued else rng.random(n) * variables.sizes
    return variables.rows_of(codes)


def as_sampler(sampler: str | Sampler) -> Sampler:
    """Turn a registered name into a sampler with default settings; pass a sampler through.

    Examples
    --------
    >>> from gibbsian.old_sampling import as_sampler
    >>> as_sampler("chromatic")
    ChromaticGibbs(block_size=2048)
    """
    return SAMPLERS.create(sampler) if isinstance(sampler, str) else sampler


def draw(
    model: Model[DiscreteFamily],
    n_samples: int,
    rng: RandomState = None,
    sampler: str | Sampler = "gibbs",
    n_chains: int = 4,
    burn_in: int = 1000,
    thin: int = 1,
) -> np.ndarray:
    """Draw states from a model with Markov chains.

    Parameters
    ----------
    model : Model
        The distribution.
    n_samples : int
        Draws wanted in all; each chain gives ``ceil(n_samples / n_chains)``.
    rng : None, int or Generator
        Source of randomness.
    sampler : str or Sampler
        Name of a registered sampler, or a sampler.
    n_chains : int
        Independent chains, started at uniformly random states.
    burn_in : int
        Sweeps of each chain before the first draw.
    thin : int
        Sweeps between two draws of a chain.

    Returns
    -------
    ndarray of int8, shape (n_chains, n_draws, n_variables)
        Chain by chain, as the diagnostics want them; ``reshape(-1, n_variables)`` puts all draws in one table.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [30.0])
    >>> x = gb.old_sampling.draw(model, 8, rng=0)
    >>> x.shape, bool((x[..., 0] == x[..., 1]).all())
    ((4, 2, 2), True)
    """
    for name, value, least in (("n_samples", n_samples, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        check_whole_number(name, value, least)
    chosen = as_sampler(sampler)
    chains = chosen.init(model, n_chains, as_generator(rng))
    n_draws = -(-n_samples // n_chains)
    require_memory(
        float(n_chains) * n_draws * model.n_variables,
        f"keeping {n_chains * n_draws} draws of {model.n_variables} variables",
        "draw fewer at a time with n_samples=",
    )
    draws = np.empty((n_chains, n_draws, model.n_variables), chains.states.dtype)
    for t in counted(range(n_draws), "draws", n_draws):
        chains, _ = chosen.step(model, chains, burn_in + thin if t == 0 else thin)
        draws[:, t] = chains.states
    return draws
