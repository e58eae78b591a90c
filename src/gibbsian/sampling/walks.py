"""Annealing and exchange along a path: the two walks that everything else is made of.

`anneal` is annealed importance sampling there and back, and simulated annealing where it goes on beyond the model.
`exchange` is parallel tempering, and gives the numbers from which the ratios of normalisers are estimated (Bennett).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from gibbsian.arrays import Codes, Floats, Slice
from gibbsian.backends.device import here, twin
from gibbsian.backends.numba import annealing as kernels
from gibbsian.backends.numba.annealing import SpinPath, TablePath
from gibbsian.backends.numba.gibbs import exact_sums
from gibbsian.backends.processes import are_dealt, map_fits
from gibbsian.backends.threads import map_slices
from gibbsian.models.base import DiscreteFamily
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.families.tables import TablesFamily
from gibbsian.progress import counted
from gibbsian.registry import Registry
from gibbsian.rng import Key, Words
from gibbsian.sampling.base import Chains, Kernel
from gibbsian.sampling.codes import by_rank
from gibbsian.sampling.gibbs import Gibbs, GibbsKernel
from gibbsian.sampling.paths import Path

# who walks along the paths of a family faster than step by step with its kernel: subclasses of `Walk`
WALKS = Registry("walk", "gibbsian.sampling", "WALKS")
# Temperatures between two reports of progress, and that one call of a compiled walk goes through: what is kept up to
# date within one is summed afresh, so that rounding does not pile up.
STRETCH, TEMPERATURES_A_CALL = 500, 256
# From so many spins of a sparse graph on, Gibbs sweeps in lanes beat the compiled exchange.
LANES_FROM_SITES = 256


class Ratios(NamedTuple):
    """What exchange has measured between neighbouring temperatures.

    Parameters
    ----------
    up, down : ndarray of shape (n_betas - 1, n_rounds, n_chains)
        How much larger the log-weight of each state would be at its upper neighbour's temperature, and of the upper
        neighbour's state at the lower temperature.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.sampling import Ratios
    >>> up, down = np.full((1, 2, 3), 0.5), np.full((1, 2, 3), -0.5 - np.log(2.0))
    >>> Ratios(up, down).acceptance
    array([0.5])
    """

    up: Floats
    down: Floats

    @property
    def acceptance(self) -> Floats:
        """Mean probability of an exchange between each pair of neighbours."""
        return np.asarray(np.exp(np.minimum(self.up + self.down, 0.0)).mean(axis=(1, 2)))


def anneal(path: Path, kernel: Kernel, chains: Chains, betas: Floats) -> tuple[Chains, Floats]:
    """Move chains through inverse temperatures; return them and the increase of each one's log-weight.

    On the way up a walker's weight takes up how much likelier its state has become, then a transition at the new
    temperature moves it; the way down undoes this, with the sweeps in reverse order (Neal 2001). Beyond 1 the chains
    cool: they end in modes.

    Parameters
    ----------
    path : Path
        The distributions.
    kernel : Kernel
        Moves the chains; of the path's family.
    chains : Chains
        Chains at the first inverse temperature.
    betas : ndarray
        Inverse temperatures, rising, falling or staying.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
    >>> path, key = gb.sampling.variable_path(model), gb.rng.Key.of(0)
    >>> chains = path.start(100, key)
    >>> chains, log_weights = gb.sampling.anneal(path, path.kernel(), chains, np.linspace(0, 1, 1001))
    >>> log_z = path.log_partition + np.logaddexp.reduce(log_weights) - np.log(100)
    >>> bool(abs(log_z - gb.inference.exact(model).log_partition) < 0.1)
    True
    """
    walk = bind_walk(path, kernel)
    parts = walk.groups(len(chains.states)) if are_dealt() and here() is None else []
    if len(parts) < 2:
        return walk.anneal(chains, betas, reported=True)
    # on other processes, where fits are dealt out to them: chains owe nothing to each other
    found = map_fits(partial(walk.anneal, betas=betas), [chains.take(part) for part in parts])
    ends, increases = zip(*counted(found, "annealing", len(parts)), strict=True)
    states, streams = (np.concatenate([end[k] for end in ends]) for k in (0, 1))
    return Chains(states, streams, ends[0].n_sweeps), np.concatenate(increases)


def exchange(
    path: Path,
    kernel: Kernel,
    ladder: Sequence[Chains],
    betas: Floats,
    n_rounds: int,
    key: Key,
    n_sweeps: int = 1,
) -> tuple[list[Chains], Ratios]:
    """Move the chains of all inverse temperatures and let neighbours exchange their states, in rounds.

    Parameters
    ----------
    path : Path
        The distributions.
    kernel : Kernel
        Moves the chains.
    ladder : list of Chains
        Chains at each inverse temperature; chain c of one exchanges with chain c of the next.
    betas : ndarray
        Inverse temperatures.
    n_rounds : int
        Rounds of sweeps and an attempted exchange; even and odd pairs of neighbours take turns.
    key : Key
        Decides the exchanges.
    n_sweeps : int, default 1
        Sweeps in a round.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.8] * 12)
    >>> path, betas, key = gb.sampling.variable_path(model), np.linspace(0, 1, 5), gb.rng.Key.of(0)
    >>> ladder = [path.start(10, key.fold(k)) for k in range(5)]
    >>> ladder, ratios = gb.sampling.exchange(path, path.kernel(), ladder, betas, 50, key)
    >>> ratios.up.shape, bool((ratios.acceptance > 0.3).all())
    ((4, 50, 10), True)
    """
    first = ladder[0].n_sweeps // n_sweeps
    return bind_walk(path, kernel).exchange(ladder, betas, range(first, first + n_rounds), key, n_sweeps)


def bind_walk(path: Path, kernel: Kernel) -> Walk:
    """Return what moves chains along a path: the walk of its family, or step by step with the kernel."""
    plain = isinstance(kernel, GibbsKernel) and (type(kernel.scan) is not Gibbs or kernel.mask is not None)
    if plain or len(path.knots) > 2 or not WALKS.name_for(path.family):
        return Walk(path, kernel)
    return cast("Walk", WALKS.of(path.family)(path, kernel))


class Walk:
    """A path with the kernel that moves chains along it, step by step."""

    def __init__(self, path: Path, kernel: Kernel):
        self.path, self.kernel = path, kernel

    def groups(self, n_chains: int) -> list[Slice]:
        """Return the groups of chains that may be moved apart from each other."""
        return [slice(k, k + kernels.GROUP) for k in range(0, n_chains, kernels.GROUP)]

    def anneal(self, chains: Chains, betas: Floats, reported: bool = False) -> tuple[Chains, Floats]:
        """Do what `anneal` does; progress is reported where that is asked for."""
        increases = np.zeros(len(chains.states))
        ends = [*range(0, len(betas) - 1, STRETCH), len(betas) - 1]
        stretches = [betas[start : end + 1] for start, end in pairwise(ends)]
        for stretch in counted(stretches, "annealing", len(stretches)) if reported else stretches:
            chains, grown = self._stretch(chains, stretch)
            increases += grown
        return chains, increases

    def _stretch(self, chains: Chains, betas: Floats) -> tuple[Chains, Floats]:
        increases, falling = np.zeros(len(chains.states)), bool(betas[-1] < betas[0])
        reverse = self.path.reverses(falling)
        for ends in np.stack([betas[:-1], betas[1:]], axis=1):
            if falling:
                chains, _ = self.kernel.step(self.path.theta(ends[0]), chains, reverse=reverse)
            if ends[0] != ends[1]:
                before, after = self.path.log_weights(chains.states, ends)
                increases += after - before
            if not falling:
                chains, _ = self.kernel.step(self.path.theta(ends[1]), chains, reverse=reverse)
        return chains, increases

    def exchange(
        self, ladder: Sequence[Chains], betas: Floats, numbers: range, key: Key, n_sweeps: int
    ) -> tuple[list[Chains], Ratios]:
        """Do what `exchange` does, in rounds with these numbers."""
        chains, thetas = list(ladder), [self.path.theta(beta) for beta in betas.tolist()]
        n_gaps, n_chains = len(betas) - 1, len(chains[0].states)
        log_uniforms = uniform_logs(key, len(numbers), n_gaps, n_chains)
        ratios = Ratios(np.empty((n_gaps, len(numbers), n_chains)), np.empty((n_gaps, len(numbers), n_chains)))
        for t, number in enumerate(numbers):
            for k, theta in enumerate(thetas):
                chains[k], _ = self.kernel.step(theta, chains[k], n_sweeps, reverse=self.path.reverses(False))
                steps = np.diff(self.path.log_weights(chains[k].states, betas[max(k - 1, 0) : k + 2]), axis=0)
                if k < n_gaps:
                    ratios.up[k, t] = steps[-1]
                if k:
                    ratios.down[k - 1, t] = -steps[0]
            for k in range(number % 2, n_gaps, 2):
                taken = log_uniforms[t, k] < ratios.up[k, t] + ratios.down[k, t]
                lower, upper = chains[k].states, chains[k + 1].states
                lower[taken], upper[taken] = upper[taken], lower[taken]  # a step gives new arrays
        return chains, ratios


def uniform_logs(key: Key, n_rounds: int, n_gaps: int, n_chains: int) -> Floats:
    """Return the logarithms of the uniform numbers that decide the exchanges."""
    return np.log(key.generator().random((n_rounds, n_gaps, n_chains)))


class CompiledWalk(Walk):
    """A walk in one compiled kernel, whose weights share the fields of the sweeps.

    Parameters
    ----------
    path, kernel
        As of `Walk`.
    name : str
        Name of the compiled kernel, and of its class on a device.
    terms : NamedTuple of arrays
        What it knows of the path.
    constant : float
        What it leaves out of the increase of log-weights from 0 to 1.
    """

    def __init__(self, path: Path, kernel: Kernel, name: str, terms: SpinPath | TablePath, constant: float = 0.0):
        super().__init__(path, kernel)
        self.name, self.terms, self.constant = name, terms, constant
        self.graph = cast("DiscreteFamily", path.family).graph
        self.kept: dict[object, Callable[[Codes, Words, Floats], Floats]] = {}

    def _stretch(self, chains: Chains, betas: Floats) -> tuple[Chains, Floats]:
        spins, streams = self.name == "anneal_spins", chains.streams.copy()
        numbers: Codes = 2 * chains.states.astype(np.int8) - 1 if spins else chains.states.astype(np.int8)
        increases = np.full(len(numbers), (betas[-1] - betas[0]) * self.constant)
        for first in range(0, betas.size - 1, TEMPERATURES_A_CALL):
            increases += self._walk(numbers, streams, betas[first : first + TEMPERATURES_A_CALL + 1])
        states = (numbers > 0).view(np.int8) if spins else numbers
        return Chains(states, streams, chains.n_sweeps + betas.size - 1), increases

    def _walk(self, numbers: Codes, streams: Words, betas: Floats) -> Floats:
        """Move numbers through some temperatures: slices of walkers on threads, or all of them on a device."""
        backwards, sites = bool(betas[-1] < betas[0]), np.arange(numbers.shape[1])
        if (twins := twin("annealing")) is not None:
            key = here(), backwards
            if key not in self.kept:
                colours = self.graph.colouring
                groups = by_rank(-colours if backwards else colours)
                self.kept[key] = getattr(twins, self.name)(self.terms, *groups, backwards)
            return self.kept[key](numbers, streams, betas)
        if backwards:
            sites = sites[::-1].copy()
        walk = kernels.anneal_spins if self.name == "anneal_spins" else kernels.anneal_codes

        def run(part: Slice) -> Floats:
            return np.asarray(walk(numbers[part], streams[part], betas, sites, backwards, self.terms))

        return np.concatenate(map_slices(run, len(numbers), float(numbers.size) * betas.size, grain=kernels.GROUP))


@WALKS.register("pairwise")
def spin_walk(path: Path, kernel: Kernel) -> Walk:
    """Return the walk of spins: compiled where they are few, and on a device."""
    family = cast("PairwiseFamily", path.family)
    graph, base, _, before = family.ising(path.knots[0])
    _, fields, couplings, after = family.ising(path.knots[1])
    fields, couplings, *_ = exact_sums(fields, couplings, graph.edges)
    indptr, heads, edges = graph.csr
    matrix = np.zeros((graph.n_nodes if graph.is_dense else 0, graph.n_nodes))
    if graph.is_dense:
        i, j = graph.edges.T
        matrix[i, j] = matrix[j, i] = couplings
    terms = SpinPath(fields, base, indptr, heads, couplings[edges], matrix)
    return SpinWalk(path, kernel, "anneal_spins", terms, after - before)


class SpinWalk(CompiledWalk):
    """A walk of spins, whose exchanges are compiled too."""

    @property
    def _lanes_win(self) -> bool:
        return not self.graph.is_dense and self.graph.n_nodes >= LANES_FROM_SITES

    def exchange(
        self, ladder: Sequence[Chains], betas: Floats, numbers: range, key: Key, n_sweeps: int
    ) -> tuple[list[Chains], Ratios]:
        """Do what `exchange` does, in rounds with these numbers."""
        if here() is not None or (self._lanes_win and len(ladder[0].states) >= kernels.GROUP):
            return super().exchange(ladder, betas, numbers, key, n_sweeps)
        return self._exchange(ladder, betas, numbers, key, n_sweeps)[:2]

    def best_seen(self, ladder: Sequence[Chains], betas: Floats, n_rounds: int, key: Key) -> Codes:
        """Return the most probable state that each column of chains has had in rounds of exchanges, as codes."""
        return self._exchange(ladder, betas, range(n_rounds), key, 1)[2]

    def _exchange(
        self, ladder: Sequence[Chains], betas: Floats, numbers: range, key: Key, n_sweeps: int
    ) -> tuple[list[Chains], Ratios, Codes]:
        streams = np.stack([each.streams for each in ladder])
        spins: Codes = 2 * np.stack([each.states.astype(np.int8) for each in ladder]) - 1
        n_betas, n_chains, n = spins.shape
        best: Codes = np.empty((n_chains, n), np.int8)
        slopes = np.empty((n_betas, len(numbers), n_chains))
        log_uniforms = uniform_logs(key, len(numbers), n_betas - 1, n_chains)

        def run(part: Slice) -> None:
            own, own_streams, own_slopes = spins[:, part].copy(), streams[:, part].copy(), slopes[..., part].copy()
            args = np.ascontiguousarray(log_uniforms[..., part]), numbers.start, n_sweeps, np.arange(n)
            kernels.exchange_spins(own, own_streams, betas, *args, own_slopes, best[part], self.terms)
            spins[:, part], streams[:, part], slopes[..., part] = own, own_streams, own_slopes

        map_slices(run, n_chains, float(spins.size) * n_sweeps * len(numbers))
        done = ladder[0].n_sweeps + n_sweeps * len(numbers)
        chains = [Chains(codes, own, done) for codes, own in zip((spins > 0).view(np.int8), streams, strict=True)]
        steps = np.diff(betas)[:, None, None]
        # the slopes leave out one constant, which the two ways add and take away
        ratios = Ratios(steps * (slopes[:-1] + self.constant), -steps * (slopes[1:] + self.constant))
        return chains, ratios, (best > 0).view(np.int8)


@WALKS.register("tables")
def table_walk(path: Path, kernel: Kernel) -> Walk:
    """Return the compiled walk of tables."""
    family, (before, after) = cast("TablesFamily", path.family), path.knots
    sizes, scopes = np.array(family.variables.sizes), family.scopes
    # entries variable by variable, then one for each table, from which weights are read
    entries, (pointers, members) = family.layout.entries, scopes.csr
    terms = TablePath(
        sizes.astype(np.int64),
        after,
        before[: family.variables.offsets[-1]],
        family.variables.offsets.astype(np.int64),
        entries.pointers,
        np.concatenate([entries.bases, family.layout.offsets[:-1]]),
        np.concatenate([entries.strides, np.zeros(len(scopes), np.int64)]),
        np.concatenate([entries.other_pointers, entries.other_pointers[-1] + pointers[1:]]),
        np.concatenate([entries.others, members]),
        np.concatenate([entries.other_strides, family.layout.strides]),
    )
    return CompiledWalk(path, kernel, "anneal_codes", terms)
