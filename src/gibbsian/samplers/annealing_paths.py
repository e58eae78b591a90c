"""The way from independent variables to a model, as the kernels want it.

Pairwise models of two values go as spins, every other model as its tables of factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from gibbsian.backends.numba import annealing as kernels
from gibbsian.backends.parallel import threads_for
from gibbsian.domain import SPIN
from gibbsian.graphs import Graph
from gibbsian.models.base import Model
from gibbsian.models.factors import FactorGraph
from gibbsian.models.pairwise import PairwiseModel
from gibbsian.resources import require_memory
from gibbsian.samplers.annealing_base import BaseLaw

# Temperatures that one call of a kernel goes through: between calls a run can be interrupted, and what is kept up to
# date within one is summed afresh, so that rounding does not pile up.
TEMPERATURES_A_CALL = 256


@dataclass(frozen=True)
class AnnealingPath:
    """``f_b(x) = f(x)^b p_0(x)^(1 - b)``, marginalised over `summed`, with the kernel that walks along it.

    Parameters
    ----------
    kernel : callable
        Moves walkers in place and returns the increase of their log-weights.
    terms : NamedTuple of arrays
        What the kernel knows of the path.
    low, gap : int
        A code c is the number ``low + gap * c`` in the kernel.
    constant : float
        What the kernel leaves out of ``log f - log p_0``.
    summed : ndarray of bool
        The variables that are summed out.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.samplers.annealing_base import BaseLaw
    >>> from gibbsian.samplers.annealing_paths import annealing_path
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> path = annealing_path(model, BaseLaw.uniform(model), np.zeros(2, bool))
    >>> codes, streams = np.array([[1, 1]], np.int8), np.ones((1, 4), np.uint64)
    >>> path.run(codes, streams, np.array([0.0, 1.0])).round(6)      # 0.5 + 2 log 2
    array([1.886294])
    """

    kernel: Callable[..., np.ndarray]
    terms: Any
    low: int
    gap: int
    constant: float
    summed: np.ndarray

    def run(self, codes: np.ndarray, streams: np.ndarray, betas: np.ndarray) -> np.ndarray:
        """Move walkers, in place, through the inverse temperatures and return the increase of their log-weights.

        Falling temperatures run the way back: sweeps before steps, in the reverse order.
        """
        backwards = bool(betas[-1] < betas[0])
        sites = self._sites(backwards)
        increases = np.full(len(codes), (betas[-1] - betas[0]) * self.constant)
        numbers = codes * np.int8(self.gap) + np.int8(self.low)
        for first in range(0, betas.size - 1, TEMPERATURES_A_CALL):
            piece = betas[first : first + TEMPERATURES_A_CALL + 1]
            with threads_for(float(codes.size) * piece.size):
                increases += self.kernel(numbers, streams, piece, sites, backwards, self.terms)
        codes[:] = (numbers - np.int8(self.low)) // np.int8(self.gap)
        return increases

    def _sites(self, backwards: bool) -> np.ndarray:
        kept = np.flatnonzero(~self.summed)
        # the summed-out variables come first either way: the chain of the others goes through fresh ones
        return np.concatenate([np.flatnonzero(self.summed), kept[::-1] if backwards else kept])


@singledispatch
def annealing_path(model: Model, base: BaseLaw, summed: np.ndarray) -> AnnealingPath:
    """Return the path of a model; kinds of models with a faster road register it here.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.samplers.annealing_base import BaseLaw
    >>> from gibbsian.samplers.annealing_paths import annealing_path
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> annealing_path(model, BaseLaw.uniform(model), np.zeros(2, bool)).gap      # spins: -1 and +1
    2
    """
    factors = model.factors()
    cells = sum(factor.table.size for factor in factors.factors)
    require_memory(8.0 * cells, f"the tables of {len(factors.factors)} factors", "use a model with smaller factors")
    return AnnealingPath(kernels.anneal_codes, _table_terms(factors, base, summed), 0, 1, 0.0, summed)


@annealing_path.register
def _(model: PairwiseModel, base: BaseLaw, summed: np.ndarray) -> AnnealingPath:
    spin, constant = model.to_domain(SPIN)
    half_log_odds = 0.5 * np.diff(base.log_probabilities.reshape(-1, 2), axis=1).ravel()
    indptr, heads, edges = model.graph.csr
    tails = np.repeat(np.arange(model.n_variables), model.graph.degrees)
    order = np.lexsort((summed[heads], tails))
    kept_end = indptr[:-1] + np.bincount(tails, ~summed[heads], minlength=model.n_variables).astype(np.int64)
    graph = (indptr, kept_end, heads[order], spin.natural_couplings[edges[order]])
    terms = kernels.SpinPath(spin.natural_biases, half_log_odds, summed, *graph)
    start_constant = float(np.logaddexp(half_log_odds, -half_log_odds).sum())
    return AnnealingPath(kernels.anneal_spins, terms, SPIN.low, SPIN.gap, constant + start_constant, summed)


def _table_terms(factors: FactorGraph, base: BaseLaw, summed: np.ndarray) -> kernels.TablePath:
    """Lay factors out flat: entries variable by variable, then one for each factor that no summing touches."""
    sizes = [factor.table.size for factor in factors.factors]
    table_starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = np.concatenate([np.empty(0), *(np.ravel(factor.table) for factor in factors.factors)])
    untouched = [number for number, factor in enumerate(factors.factors) if not summed[list(factor.nodes)].any()]
    listed = [(number, node) for node, numbers in enumerate(factors.factors_of) for number in numbers]
    strides, others, nodes, node_strides = [], [0], [], []
    for number, own in [*listed, *((number, None) for number in untouched)]:
        scope = factors.factors[number].nodes
        steps = _strides(factors.factors[number].table.shape)
        strides.append(steps[scope.index(own)] if own is not None else 0)
        for node, step in zip(scope, steps, strict=True):
            if node != own:
                nodes.append(node)
                node_strides.append(step)
        others.append(len(nodes))
    entries = np.concatenate([[0], np.cumsum([len(numbers) for numbers in factors.factors_of])])
    order = [number for number, _ in listed] + untouched
    return kernels.TablePath(
        np.asarray(factors.cardinalities, np.int64),
        values,
        base.log_probabilities,
        base.starts,
        summed,
        entries.astype(np.int64),
        table_starts[np.array(order, np.int64)],
        np.array(strides, np.int64),
        np.array(others, np.int64),
        np.array(nodes, np.int64),
        np.array(node_strides, np.int64),
    )


def _strides(shape: tuple[int, ...]) -> list[int]:
    """Distance in a flat table between neighbours along each axis."""
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]


def variables_to_sum_out(graph: Graph) -> np.ndarray:
    """Return a mask of variables of which no two interact: the larger side of each part of a bipartite graph.

    On other graphs it is the largest colour of each part: any such set can be summed out variable by variable, though
    the gain is smaller.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.samplers.annealing_paths import variables_to_sum_out
    >>> star = gb.graphs.from_edges([(0, 1), (0, 2), (0, 3)], 4)
    >>> variables_to_sum_out(star)
    array([False,  True,  True,  True])
    """
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(graph.adjacency, directed=False)
    colours = graph.colouring
    sizes = np.zeros((part.max(initial=-1) + 1, colours.max(initial=-1) + 1), np.int64)
    np.add.at(sizes, (part, colours), 1)
    return colours == sizes.argmax(axis=1)[part]
