"""Gibbs sampling: each update draws one variable from its conditional distribution given all others.

The conditional of a spin with field U (over T) is ``P(x = +1) = 1 / (1 + exp(-2 U))``. Pairwise models are brought
to spin form once per call and handed to the kernels in `backends.numba.gibbs`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsian.backends.numba import gibbs as kernels
from gibbsian.backends.parallel import threads_for
from gibbsian.domain import SPIN
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.base import Model
from gibbsian.models.pairwise import PairwiseModel
from gibbsian.samplers.base import SAMPLERS, ChainState, SweepInfo, start_chains

# From this many chains on, running them side by side beats keeping the fields of each.
GROUPED_FROM = 8
# Up to this many chains, threads share the blocks of a colour class; beyond, each takes chains of its own.
BLOCKWISE_UP_TO = 4


class _SpinForm(NamedTuple):
    """A pairwise model as the kernels want it: spin parameters over T whose sums are exact."""

    graph: Graph
    biases: np.ndarray
    couplings: np.ndarray


class _Sweeps(NamedTuple):
    """Working copies that a kernel changes in place, and which variables it visits."""

    states: np.ndarray
    streams: np.ndarray
    sites: np.ndarray
    held: np.ndarray | None
    n_sweeps: int


@SAMPLERS.register("gibbs")
@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling in the order of the variables.

    A chain's path depends on its own stream only: it is the same on any number of threads, beside any number of other
    chains, and however the sweeps are split over calls of `step`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [30.0, 0.0], [-30.0])
    >>> sampler = gb.samplers.Gibbs()
    >>> chains = sampler.init(model, 3, np.random.default_rng(0))
    >>> chains, info = sampler.step(model, chains, n_sweeps=5)
    >>> chains.states.tolist(), chains.n_sweeps
    ([[1, -1], [1, -1], [1, -1]], 5)
    """

    # Whether every update picks its variable at random.
    random_scan: ClassVar[bool] = False

    def visits(self, graph: Graph, sites: np.ndarray) -> np.ndarray:
        """Return the variables in the order of a sweep."""
        return sites

    def init(
        self,
        model: Model,
        n_chains: int,
        rng: np.random.Generator,
        *,
        states: np.ndarray | None = None,
        clamped: np.ndarray | None = None,
    ) -> ChainState:
        """Start chains at `states`, or at uniformly random ones.

        Parameters
        ----------
        model : Model
            The distribution.
        n_chains : int
            Number of independent chains.
        rng : Generator
            Seeds the streams of the chains.
        states : array-like, optional
            One row for each chain, or one for all.
        clamped : array-like of bool, optional
            Variables that keep the value they have in `states`, shape ``(n,)`` or ``(n_chains, n)``.
        """
        return start_chains(model, n_chains, rng, states, clamped)

    def step(self, model: Model, state: ChainState, n_sweeps: int = 1) -> tuple[ChainState, SweepInfo]:
        """Return the chains `n_sweeps` later and the share of updates that flipped; `state` is left as it is."""
        if n_sweeps < 0:
            raise ArgumentError("must be zero or positive", argument="n_sweeps", value=n_sweeps)
        if state.states.shape[1] != model.n_variables:
            raise ArgumentError(
                f"the chains have {state.states.shape[1]} variables but the model has {model.n_variables}"
            )
        return sweeps_of(model)(model, self, state, n_sweeps)

    def _run(self, form: _SpinForm, sweeps: _Sweeps, dense: bool) -> int:
        if dense:
            return _dense_sweeps(form, sweeps, random_scan=False)
        if len(sweeps.states) < GROUPED_FROM:
            return _sparse_sweeps(form, sweeps, random_scan=False)
        indptr, heads, edges = form.graph.csr
        states, streams, sites, held, n_sweeps = sweeps
        weights = form.couplings[edges]
        return kernels.grouped_sweeps(states, streams, form.biases, indptr, heads, weights, sites, held, n_sweeps)


@SAMPLERS.register("random-scan")
@dataclass(frozen=True)
class RandomScanGibbs(Gibbs):
    """Gibbs sampling that picks the variable of each update at random; a sweep is n updates.

    The chain is reversible, which sequential scans are not; it mixes slower by about a factor of two.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.zeros(gb.graphs.grid(3, 3))
    >>> sampler = gb.samplers.RandomScanGibbs()
    >>> chains, info = sampler.step(model, sampler.init(model, 100, np.random.default_rng(0)), n_sweeps=10)
    >>> round(info.flips, 1)
    0.5
    """

    random_scan = True

    def _run(self, form: _SpinForm, sweeps: _Sweeps, dense: bool) -> int:
        return (_dense_sweeps if dense else _sparse_sweeps)(form, sweeps, random_scan=True)


@SAMPLERS.register("chromatic")
@dataclass(frozen=True)
class ChromaticGibbs(Gibbs):
    """Gibbs sampling colour by colour: no two variables of a colour interact, so a class is updated in parallel.

    The choice for few chains on a large sparse graph. On a dense graph there is one colour for nearly every variable
    and `Gibbs` is faster.

    Parameters
    ----------
    block_size : int
        Variables of a colour class that one thread takes at a time. Each block has its own random numbers, so changing
        it changes the path of a chain; the number of threads does not.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseModel.zeros(gb.graphs.grid(100, 100))
    >>> sampler = gb.samplers.ChromaticGibbs()
    >>> chains, info = sampler.step(model, sampler.init(model, 1, np.random.default_rng(0)), n_sweeps=10)
    >>> round(info.flips, 1)
    0.5
    """

    block_size: int = 2048

    def __post_init__(self) -> None:
        if self.block_size < 1:
            raise ArgumentError("must be at least 1", argument="block_size", value=self.block_size)

    def visits(self, graph: Graph, sites: np.ndarray) -> np.ndarray:
        """Return the variables by the colours of the graph."""
        return sites[np.argsort(graph.colouring[sites], kind="stable")]

    def _run(self, form: _SpinForm, sweeps: _Sweeps, dense: bool) -> int:
        states, streams, sites, held, n_sweeps = sweeps
        plan = _colour_plan(form.graph, sites.tobytes(), self.block_size)
        spins = states.astype(np.float64)
        rows = (form.biases[plan.sites], plan.indptr, plan.heads, form.couplings[plan.edges])
        if len(states) <= BLOCKWISE_UP_TO and plan.blocks.size > plan.colours.size:
            flips = kernels.blockwise_sweeps(
                spins, streams, *rows, plan.sites, plan.blocks, plan.colours, held, n_sweeps
            )
        else:
            flips = kernels.chromatic_sweeps(spins, streams, *rows, plan.sites, plan.blocks, held, n_sweeps)
        states[:] = spins
        return flips


def sweeps_of(model: Any) -> Callable[..., tuple[ChainState, SweepInfo]]:
    """Return how chains of a model are swept; the model says which function that is, as ``"module:function"``."""
    place = getattr(type(model), "sweeps", None)
    if place is None:
        raise ArgumentError(f"model is a {type(model).__name__}, for which there is no Gibbs sampler")
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def spin_sweeps(model: PairwiseModel, sampler: Gibbs, state: ChainState, n_sweeps: int) -> tuple[ChainState, SweepInfo]:
    """Run a Gibbs sampler on a pairwise model, as spins."""
    common = state.clamped.ndim == 1
    low, scale = np.int8(model.domain.low), np.int8(SPIN.gap // model.domain.gap)
    spins = (state.states - low) * scale + np.int8(SPIN.low)
    sites = np.flatnonzero(~state.clamped) if common else np.arange(model.n_variables)
    sweeps = _Sweeps(spins, state.streams.copy(), sites, None if common else state.clamped, n_sweeps)
    with threads_for(float(sites.size) * len(spins) * n_sweeps):
        flips = sampler._run(_spin_form(model), sweeps, model.is_dense)
    values = (spins - np.int8(SPIN.low)) // scale + low
    n_free = sites.size * len(spins) if common else np.count_nonzero(~state.clamped)
    info = SweepInfo(int(flips) / max(1, int(n_free) * n_sweeps), n_sweeps)
    return ChainState(values, sweeps.streams, state.clamped, state.n_sweeps + n_sweeps), info


def _spin_form(model: PairwiseModel) -> _SpinForm:
    """Parameters in spin form over T, rounded to multiples of a power of two that make all field sums exact.

    The largest possible field takes 52 bits, so every partial sum of biases and couplings is a float64. Then the field
    is one number in whatever order it is summed or updated, and never drifts. The rounding is of the size of the errors
    that the sums would have made.
    """
    spin, _ = model.to_domain(SPIN)
    biases, couplings = spin.natural_biases, spin.natural_couplings
    ends = model.graph.edges
    reach = np.abs(biases)
    for side in (0, 1):
        reach = reach + np.bincount(ends[:, side], np.abs(couplings), minlength=model.n_variables)
    unit = np.ldexp(1.0, np.frexp(reach.max(initial=0.0))[1] - 52)
    return _SpinForm(model.graph, np.round(biases / unit) * unit, np.round(couplings / unit) * unit)


def _dense_sweeps(form: _SpinForm, sweeps: _Sweeps, random_scan: bool) -> int:
    matrix = np.zeros((form.graph.n_nodes, form.graph.n_nodes))
    i, j = form.graph.edges.T
    matrix[i, j] = matrix[j, i] = form.couplings
    states, streams, sites, held, n_sweeps = sweeps
    fields = states.astype(np.float64) @ matrix + form.biases
    return kernels.dense_sweeps(states, streams, fields, 2.0 * matrix, sites, held, random_scan, n_sweeps)


def _sparse_sweeps(form: _SpinForm, sweeps: _Sweeps, random_scan: bool) -> int:
    indptr, heads, edges = form.graph.csr
    states, streams, sites, held, n_sweeps = sweeps
    weights = form.couplings[edges]
    return kernels.sparse_sweeps(
        states, streams, form.biases, indptr, heads, weights, sites, held, random_scan, n_sweeps
    )


class _ColourPlan(NamedTuple):
    """A graph with its rows in the order of a chromatic sweep.

    Row v of the CSR arrays belongs to ``sites[v]``; block b has the rows from ``blocks[b]`` to ``blocks[b + 1]``,
    colour k the blocks from ``colours[k]`` to ``colours[k + 1]``.
    """

    sites: np.ndarray
    blocks: np.ndarray
    colours: np.ndarray
    indptr: np.ndarray
    heads: np.ndarray
    edges: np.ndarray


@lru_cache(maxsize=8)  # a chain moves many times on one graph, often one sweep at a time
def _colour_plan(graph: Graph, site_bytes: bytes, block_size: int) -> _ColourPlan:
    """Order the sites (int64, as bytes) by colour and cut each colour class into blocks."""
    free = np.frombuffer(site_bytes, np.int64)
    colour = graph.colouring[free]
    sizes = np.bincount(colour)
    blocks, colours = [0], [0]
    for size in sizes[sizes > 0]:
        start = blocks[-1]
        blocks += [start + min(cut, size) for cut in range(block_size, size + block_size, block_size)]
        colours.append(len(blocks) - 1)
    sites = free[np.argsort(colour, kind="stable")]
    indptr, heads, edges = graph.csr
    degrees = graph.degrees[sites]
    starts = np.concatenate([[0], np.cumsum(degrees)])
    positions = np.repeat(indptr[sites] - starts[:-1], degrees) + np.arange(starts[-1])
    order = (sites, np.array(blocks), np.array(colours))
    return _ColourPlan(*order, starts, heads[positions].astype(np.uint32), edges[positions])
