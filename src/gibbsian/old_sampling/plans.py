"""What the Gibbs samplers of all kinds of models share: which variables to visit, and the chains afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from gibbsian.backends.device import here, twin
from gibbsian.backends.parallel import in_slices
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.old_sampling.base import ChainState, SweepInfo
from gibbsian.old_sampling.gibbs import Gibbs


def by_rank(rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of ranks, equal ones as they stand, and where each group of equal ones begins and ends."""
    order = np.argsort(rank, kind="stable")
    return order, np.concatenate([[0], np.flatnonzero(np.diff(rank[order])) + 1, [order.size]])


class SweepPlan(NamedTuple):
    """Working copies for a kernel, and the order in which it visits.

    Parameters
    ----------
    codes : ndarray of int8, shape (n_chains, n_variables)
        The states; the kernel changes them.
    streams : ndarray of uint64, shape (n_chains, 4)
        The chains' streams; the kernel advances them.
    sites : ndarray of int
        The variables to visit, in order.
    held : ndarray of bool or None
        Which variables of which chain keep their value; None where that is the same in all chains.
    random_scan : bool
        Whether each update picks one of `sites` at random.
    """

    codes: np.ndarray
    streams: np.ndarray
    sites: np.ndarray
    held: np.ndarray | None
    random_scan: bool

    @classmethod
    def of(cls, model: Model[DiscreteFamily], sampler: Gibbs, state: ChainState) -> Self:
        """Read the plan off a sampler: the order of the variables, that of the graph's colours, or none."""
        common = state.clamped.ndim == 1
        sites = np.flatnonzero(~state.clamped) if common else np.arange(model.n_variables)
        held = None if common else state.clamped
        order, copies = sampler.visits(model.family.graph, sites), (state.states.copy(), state.streams.copy())
        return cls(*copies, order, held, sampler.random_scan)

    def run_there(
        self, name: str, bind: Callable[..., object], model: Model[DiscreteFamily], state: ChainState, n_sweeps: int
    ) -> tuple[ChainState, SweepInfo] | None:
        """Sweep the chains colour by colour with a twin; None on the CPU, or where every update picks its variable.

        ``bind(module, sites, cuts)`` makes what sweeps them, once for a model and its free variables.
        """
        if self.random_scan or (twins := twin(name)) is None:
            return None
        order, cuts = by_rank(model.family.graph.colouring[self.sites])
        key = (here(), self.sites.tobytes())
        sweep = twin("repeated").kept(model, key, lambda: bind(twins, self.sites[order], cuts))
        return self._done(sweep(self.codes, self.streams, self.held, n_sweeps), model, state, n_sweeps)

    def run(
        self, sweep: Callable[..., int], model: Model[Family], state: ChainState, n_sweeps: int, group: int
    ) -> tuple[ChainState, SweepInfo]:
        """Sweep the chains, `group` of them side by side, and return where they are and what happened.

        ``sweep(codes, streams, held)`` moves some of the chains and returns how many values changed.
        """
        each = model.theta.size / max(1, model.n_variables)  # a table entry, a clique's product
        work = float(self.sites.size) * len(self.codes) * n_sweeps * max(1.0, each)
        changes = in_slices(
            lambda part: sweep(self.codes[part], self.streams[part], None if self.held is None else self.held[part]),
            len(self.codes),
            work,
            grain=group,
        )
        return self._done(int(sum(changes)), model, state, n_sweeps)

    def _done(
        self, n_changes: int, model: Model[Family], state: ChainState, n_sweeps: int
    ) -> tuple[ChainState, SweepInfo]:
        n_free = self.codes.size - np.count_nonzero(np.broadcast_to(state.clamped, self.codes.shape))
        info = SweepInfo(n_changes / max(1, int(n_free) * n_sweeps), n_sweeps)
        return ChainState(self.codes, self.streams, state.clamped, state.n_sweeps + n_sweeps), info
