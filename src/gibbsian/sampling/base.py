"""The contracts of Markov chains: a `Transition` is bound to a family and becomes a `Kernel`, which moves `Chains`."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.errors import ArgumentError
from gibbsian.models.base import Family, Model
from gibbsian.models.variables import Variables
from gibbsian.progress import counted
from gibbsian.registry import Registry
from gibbsian.resources import require_memory
from gibbsian.rng import Key, RandomState, Words
from gibbsian.settings import check_whole_number

TRANSITIONS = Registry("transition", "gibbsian.sampling", "TRANSITIONS")
# who sweeps the chains of a family: classes that are made with a family, a `Scan` and a mask, and are kernels
SWEEPS = Registry("Gibbs sampler", "gibbsian.sampling", "SWEEPS")


class Chains(NamedTuple):
    """Where a set of chains stands: all that a checkpoint has to hold.

    Parameters
    ----------
    states : ndarray of int8, shape (n_chains, n_variables)
        The present state of each chain, in codes; numbers (float64) where variables are real.
    streams : ndarray of uint64, shape (n_chains, 4)
        The random stream of each chain, a state of xoshiro256++.
    n_sweeps : int
        Number of sweeps made so far.

    Examples
    --------
    >>> import gibbsian as gb
    >>> kernel = gb.sampling.Gibbs().bind(gb.PairwiseFamily(gb.graphs.complete(3)))
    >>> chains = kernel.init(5, gb.rng.Key.of(0))
    >>> chains.states.shape, chains.streams.shape, chains.n_sweeps
    ((5, 3), (5, 4), 0)
    """

    states: States
    streams: Words
    n_sweeps: int = 0

    def take(self, rows: Integers | Mask | Slice) -> Chains:
        """Return some of the chains; each goes on as it would beside the others."""
        return self._replace(states=self.states[rows], streams=self.streams[rows])


class TransitionInfo(NamedTuple):
    """What happened in one call of ``step``.

    Parameters
    ----------
    acceptance : float
        Share of the updates of free variables that changed the value.
    n_sweeps : int
        Number of sweeps made in this call.

    Examples
    --------
    >>> from gibbsian.sampling import TransitionInfo
    >>> TransitionInfo(acceptance=0.25, n_sweeps=10).acceptance
    0.25
    """

    acceptance: float
    n_sweeps: int


@runtime_checkable
class Kernel(Protocol):
    """A transition bound to a family and to the variables that are held; it leaves the distribution invariant."""

    def init(self, n_chains: int, key: Key, states: States | None = None) -> Chains:
        """Start chains at `states` (a row for each chain, or one for all), or at uniformly random ones."""

    def step(
        self, theta: Floats, chains: Chains, n_sweeps: int = 1, n_updates: int | None = None, reverse: bool = False
    ) -> tuple[Chains, TransitionInfo]:
        """Return the chains some sweeps later; `chains` is left as it is.

        `n_updates` makes that many updates of single variables instead of sweeps. `reverse` visits the variables in the
        opposite order: the sweeps that undo those of a walk in the other direction.
        """


@runtime_checkable
class Transition(Protocol):
    """Settings of a kernel.

    Examples
    --------
    >>> import gibbsian as gb
    >>> isinstance(gb.sampling.Gibbs(), gb.sampling.Transition)
    True
    """

    def bind(self, family: Family, mask: Mask | None = None) -> Kernel:
        """Return the kernel of a family; variables under the mask, ``(n,)`` or ``(n_chains, n)``, are held."""


def as_transition(transition: str | Transition) -> Transition:
    """Turn a registered name into a transition with default settings; pass a transition through.

    Examples
    --------
    >>> from gibbsian.sampling import as_transition
    >>> as_transition("chromatic")
    ChromaticGibbs(block_size=2048)
    """
    return TRANSITIONS.create(transition) if isinstance(transition, str) else transition


def kernel_for(family: Family, transition: str | Transition = "gibbs", mask: Mask | None = None) -> Kernel:
    """Return the kernel of a family by the name of a transition.

    Examples
    --------
    >>> import gibbsian as gb
    >>> kernel = gb.sampling.kernel_for(gb.PairwiseFamily(gb.graphs.complete(3)), "random-scan")
    >>> isinstance(kernel, gb.sampling.Kernel)
    True
    """
    return as_transition(transition).bind(family, mask)


def start_chains(
    variables: Variables, n_chains: int, key: Key, states: States | None = None, mask: Mask | None = None
) -> Chains:
    """Start chains at `states`, or at uniformly random ones: ``init`` of most kernels.

    Chain `c` depends on the key and on `c` only, not on the number of chains.
    """
    check_whole_number("n_chains", n_chains, least=1)
    if mask is not None and mask.ndim == 2 and len(mask) != n_chains:
        raise ArgumentError(f"the mask has {len(mask)} rows for {n_chains} chains", "give one for each chain")
    if states is None:
        if mask is not None and mask.any():
            raise ArgumentError("a mask needs states=, which holds the values of the held variables")
        from gibbsian.backends.numba.random import fill_uniforms

        uniforms = np.empty((n_chains, len(variables)))
        fill_uniforms(key.fold("start").chains(n_chains), uniforms)
        states = variables.rows_of((uniforms * variables.sizes).astype(np.int8))
    rows = variables.checked(np.atleast_2d(states), "states")
    if len(rows) not in (1, n_chains):
        raise ArgumentError(f"states has {len(rows)} rows", f"give one for each of {n_chains} chains, or one for all")
    return Chains(np.array(np.broadcast_to(rows, (n_chains, len(variables)))), key.chains(n_chains))


def draw(
    model: Model[Family],
    n_samples: int,
    random_state: RandomState = None,
    transition: str | Transition = "gibbs",
    n_chains: int = 4,
    burn_in: int = 1000,
    thin: int = 1,
) -> States:
    """Draw states from a model with Markov chains.

    Parameters
    ----------
    model : Model
        The distribution.
    n_samples : int
        Number of draws in all; each chain gives ``ceil(n_samples / n_chains)``.
    random_state : None, int or Generator
        Source of randomness.
    transition : str or Transition, default "gibbs"
        Name of a registered transition, or a transition.
    n_chains : int, default 4
        Number of independent chains, started at uniformly random states.
    burn_in : int, default 1000
        Sweeps of each chain before the first draw.
    thin : int, default 1
        Sweeps between two draws of a chain.

    Returns
    -------
    ndarray of int8, shape (n_chains, n_draws, n_variables)
        Chain by chain, as the diagnostics want them; ``reshape(-1, n_variables)`` puts all draws in one table.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [30.0])
    >>> x = gb.sampling.draw(model, 8, random_state=0)
    >>> x.shape, bool((x[..., 0] == x[..., 1]).all())
    ((4, 2, 2), True)
    """
    for name, value, least in (("n_samples", n_samples, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        check_whole_number(name, value, least)
    kernel = kernel_for(model.family, transition)
    chains = kernel.init(n_chains, Key.of(random_state))
    n_draws = -(-n_samples // n_chains)
    require_memory(
        float(n_chains) * n_draws * model.n_variables,
        f"keeping {n_chains * n_draws} draws of {model.n_variables} variables",
        "draw fewer at a time with n_samples=",
    )
    draws = np.empty((n_chains, n_draws, model.n_variables), chains.states.dtype)
    for t in counted(range(n_draws), "draws", n_draws):
        chains, _ = kernel.step(model.theta, chains, burn_in + thin if t == 0 else thin)
        draws[:, t] = chains.states
    return draws
