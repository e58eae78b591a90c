"""Gibbs sampling: each update draws one variable from its conditional distribution given all others.

Three orders of the updates are the transitions `Gibbs`, `RandomScanGibbs` and `ChromaticGibbs`. One kernel serves them
all; the sweeps themselves are compiled for each kind of family and found in `SWEEPS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.backends.threads import map_slices
from gibbsian.errors import ArgumentError
from gibbsian.models.base import DiscreteFamily, Family
from gibbsian.rng import Key, Words
from gibbsian.sampling.base import SWEEPS, TRANSITIONS, Chains, Kernel, TransitionInfo, start_chains
from gibbsian.settings import check_whole_number

T = TypeVar("T")
S = TypeVar("S", bound=States)


@TRANSITIONS.register("gibbs")
@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling in the order of the variables; machines in layers are sampled side by side in matrix products.

    A chain's path depends on its own stream only: it is the same on any number of threads, beside any number of other
    chains, and however the sweeps are split over calls of `step`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [30.0, 0.0], [-30.0])
    >>> kernel = gb.sampling.Gibbs().bind(model.family)
    >>> chains, info = kernel.step(model.theta, kernel.init(3, gb.rng.Key.of(0)), n_sweeps=5)
    >>> chains.states.tolist(), chains.n_sweeps
    ([[1, 0], [1, 0], [1, 0]], 5)
    """

    # whether every update picks its variable at random
    random_scan: ClassVar[bool] = False
    # variables of a colour that one thread takes at a time; 0: the order of the variables, whatever their colours
    block_size = 0

    def bind(self, family: Family, mask: Mask | None = None) -> Kernel:
        """Return the kernel of a family.

        Parameters
        ----------
        family : Family
            The structure whose distributions are sampled.
        mask : ndarray of bool, optional
            Variables that keep their value, the same in all chains, shape ``(n,)``, or chain by chain,
            ``(n_chains, n)``.
        """
        n = len(family.variables)
        held = None if mask is None else np.array(mask, bool)
        if held is not None and (held.ndim not in (1, 2) or held.shape[-1] != n):
            raise ArgumentError(f"the mask has shape {held.shape}", f"use {(n,)} or (n_chains, {n})")
        kernel: Kernel = SWEEPS.of(family)(family, self, held)
        return kernel


@TRANSITIONS.register("random-scan")
@dataclass(frozen=True)
class RandomScanGibbs(Gibbs):
    """Gibbs sampling that picks the variable of each update at random; a sweep is n updates.

    The chain is reversible, which sequential scans are not; it mixes slower by about a factor of two.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(3, 3)))
    >>> kernel = gb.sampling.RandomScanGibbs().bind(model.family)
    >>> chains, info = kernel.step(model.theta, kernel.init(100, gb.rng.Key.of(0)), n_sweeps=10)
    >>> round(info.acceptance, 1)
    0.5
    """

    random_scan = True


@TRANSITIONS.register("chromatic")
@dataclass(frozen=True)
class ChromaticGibbs(Gibbs):
    """Gibbs sampling colour by colour: no two variables of a colour interact, so a class is updated in parallel.

    The choice for few chains on a large sparse graph. On a dense graph there is one colour for nearly every variable
    and `Gibbs` is faster.

    Parameters
    ----------
    block_size : int, default 2048
        Variables of a colour class that one thread takes at a time. Each block has its own random numbers, so changing
        it changes the path of a chain; the number of threads does not.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(100, 100)))
    >>> kernel = gb.sampling.ChromaticGibbs().bind(model.family)
    >>> chains, info = kernel.step(model.theta, kernel.init(1, gb.rng.Key.of(0)), n_sweeps=10)
    >>> round(info.acceptance, 1)
    0.5
    """

    block_size: int = 2048

    def __post_init__(self) -> None:
        if self.block_size < 1:
            raise ArgumentError("must be at least 1", argument="block_size", value=self.block_size)


class Visits(NamedTuple):
    """Which variables a kernel updates, and how often.

    Parameters
    ----------
    sites : ndarray of int
        The variables in the order of a sweep.
    held : ndarray of bool, shape (n_chains, n), or None
        Which of them keep their value in which chain; None where that is the same in all chains.
    n_picks : int
        Number of updates of a sweep whose variable is picked at random; 0 for the order of `sites`.
    n_sweeps : int
        Number of sweeps.
    block_size : int
        Variables of a colour that share random numbers, in sweeps colour by colour; else 0.
    reverse : bool
        Whether the order is the opposite one.
    """

    sites: Integers
    held: Mask | None
    n_picks: int
    n_sweeps: int
    block_size: int = 0
    reverse: bool = False


# What the kernel of a discrete family calls: moves states and streams in place, and returns the number of changes.
Sweep = Callable[[Floats, States, Words, Visits], int]


class GibbsKernel:
    """Gibbs sampling of a discrete family, by compiled sweeps."""

    def __init__(self, family: DiscreteFamily, scan: Gibbs, mask: Mask | None, sweep: Sweep):
        self.family, self.scan, self.mask, self.sweep = family, scan, mask, sweep
        common = mask is None or mask.ndim == 1
        self.held = None if common else mask
        self.sites = np.arange(len(family.variables)) if mask is None or not common else np.flatnonzero(~mask)
        self.n_free = self.sites.size if self.held is None else np.count_nonzero(~self.held) / len(self.held)

    def init(self, n_chains: int, key: Key, states: States | None = None) -> Chains:
        """Start chains at `states`, or at uniformly random ones."""
        return start_chains(self.family.variables, n_chains, key, states, self.mask)

    def step(
        self, theta: Floats, chains: Chains, n_sweeps: int = 1, n_updates: int | None = None, reverse: bool = False
    ) -> tuple[Chains, TransitionInfo]:
        """Return the chains some sweeps, or single updates, later."""
        check_whole_number("n_sweeps", n_sweeps, least=0)
        n_chains, n = chains.states.shape
        if n != len(self.family.variables):
            raise ArgumentError(f"the chains have {n} variables but the model has {len(self.family.variables)}")
        if self.held is not None and len(self.held) != n_chains:
            raise ArgumentError(f"the mask has {len(self.held)} rows for {n_chains} chains", "bind another mask")
        parts = self._visits(n_sweeps, n_updates, reverse)
        states, streams = chains.states.copy(), chains.streams.copy()
        changes = sum(self.sweep(theta, states, streams, part) for part in parts if part.sites.size)
        if n_updates is not None:
            n_sweeps = n_updates // max(1, self.sites.size)
        made = sum(part.n_sweeps * (part.n_picks or part.sites.size) for part in parts)
        # updates of held variables change nothing
        n_free = made * self.n_free / max(1, self.sites.size) * n_chains
        info = TransitionInfo(float(changes / max(1.0, n_free)), n_sweeps)
        return Chains(states, streams, chains.n_sweeps + n_sweeps), info

    @cached_property
    def by_colour(self) -> Integers:
        """The sites in the order of the graph's colours."""
        return self.sites[np.argsort(self.family.graph.colouring[self.sites], kind="stable")]

    def _visits(self, n_sweeps: int, n_updates: int | None, reverse: bool) -> list[Visits]:
        sites: Integers = self.sites
        block_size = self.scan.block_size
        if self.scan.random_scan:
            n_picks = sites.size if n_updates is None else n_updates
            return [Visits(sites, self.held, n_picks, n_sweeps if n_updates is None else 1)]
        if block_size:
            sites = self.by_colour
        sites = sites[::-1].copy() if reverse else sites
        if n_updates is None:
            return [Visits(sites, self.held, 0, n_sweeps, block_size, reverse)]
        n_sweeps, rest = divmod(n_updates, max(1, sites.size))
        return [Visits(sites, self.held, 0, n_sweeps), Visits(sites[:rest], self.held, 0, 1)]


def over_chains(
    sweep: Callable[[S, Words, Mask | None], int],
    states: S,
    streams: Words,
    visits: Visits,
    grain: int = 1,
    work: float = 1.0,
) -> int:
    """Give chains to threads, `grain` of them side by side; return the number of changes in all.

    `work` is that of an update, in operations of a nanosecond or so.
    """

    def run(part: Slice) -> int:
        return sweep(cast("S", states[part]), streams[part], None if visits.held is None else visits.held[part])

    n_updates = float(visits.n_picks or visits.sites.size) * len(states) * visits.n_sweeps
    return int(sum(map_slices(run, len(states), work * n_updates, grain)))


class OnceATheta(Generic[T]):
    """What a function makes of theta, kept for the next call: chains often move one sweep at a time."""

    def __init__(self, make: Callable[[Floats], T]):
        self.make = make
        self.last: tuple[Floats, T] | None = None

    def __call__(self, theta: Floats) -> T:
        """Return what is made of theta."""
        last = self.last
        if last is None or not np.array_equal(last[0], theta):  # by content: some learners change theta in place
            self.last = last = theta.copy(), self.make(theta)
        return last[1]

    def __getstate__(self) -> dict[str, object]:
        """Leave out what was made: another process makes it anew."""
        return {"make": self.make, "last": None}
