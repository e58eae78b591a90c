"""Where the entries of tables over sets of variables stand in theta, and how kernels read them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.backends.numba import potts
from gibbsian.backends.table_entries import Entries
from gibbsian.errors import CodingError
from gibbsian.graphs import Graph
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import Variables
from gibbsian.resources import require_memory


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the entries of the tables stand in theta, and all else that does not depend on their values.

    Parameters
    ----------
    scopes : Scopes
        The variables of each table.
    variables : Variables
        Their values.
    """

    scopes: Scopes
    variables: Variables

    def __post_init__(self) -> None:
        if len(self.variables) != self.scopes.n_variables:
            raise CodingError(f"there are values of {len(self.variables)} variables, not {self.scopes.n_variables}")

    @cached_property
    def cardinalities(self) -> np.ndarray:
        """Number of values of each variable."""
        return np.array(self.variables.sizes, dtype=np.int64)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each table."""
        sizes = self.variables.sizes
        return tuple(tuple(sizes[i] for i in scope) for scope in self.scopes)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each table begins, and the end of the last."""
        sizes = [math.prod(shape) for shape in self.shapes]
        require_memory(8.0 * sum(sizes), f"{len(sizes)} tables with {sum(sizes):.3g} entries", "use smaller cliques")
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def strides(self) -> np.ndarray:
        """What one more of a code adds to the place of an entry, for each member of each scope."""
        steps = (math.prod(shape[t + 1 :]) for shape in self.shapes for t in range(len(shape)))
        return np.fromiter(steps, np.int64, int(self.scopes.sizes.sum()))

    @cached_property
    def n_singles(self) -> int:
        """Number of tables of one variable, which stand first."""
        return int((self.scopes.sizes == 1).sum())

    @property
    def size(self) -> int:
        """Number of entries of all tables."""
        return int(self.offsets[-1])

    @cached_property
    def penalised(self) -> np.ndarray:
        """True at the tables of two and more variables."""
        return np.repeat(self.scopes.sizes > 1, np.diff(self.offsets))

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What the kernels want: ``(indptr, members, strides, offsets)``."""
        return *self.scopes.csr, self.strides, self.offsets

    @cached_property
    def entries(self) -> Entries:
        """The tables that hold each variable, as kernels want them."""
        pointers, held = self.scopes.membership
        other_pointers, places = self.scopes.companions
        members = self.scopes.csr[1]
        own = np.argsort(members, kind="stable")  # where each variable stands in its scopes, in the order of entries
        others = other_pointers, members[places], self.strides[places]
        return Entries(pointers, self.offsets[held], self.strides[own], *others)

    @cached_property
    def orientation(self) -> Orientation:
        """The tables of pairs as seen from each end."""
        return Orientation(self.scopes.graph, self.cardinalities, self.offsets[self.n_singles : -1])

    def tables(self, theta: np.ndarray) -> list[np.ndarray]:
        """Cut a vector into the tables; they are views."""
        spans = zip(self.offsets[:-1], self.offsets[1:], self.shapes, strict=True)
        return [theta[start:stop].reshape(shape) for start, stop, shape in spans]


class Orientation:
    """Tables of pairs as seen from each end: what sums and samplers want that go by variable.

    Parameters
    ----------
    graph : Graph
        The pairs.
    sizes : ndarray of int
        Number of values of each variable.
    offsets : ndarray of int
        Where the table of each edge begins.
    """

    def __init__(self, graph: Graph, sizes: np.ndarray, offsets: np.ndarray):
        self.graph, self._sizes, self._offsets = graph, sizes, offsets - offsets[:1].sum()
        indptr, heads, edge_of = graph.csr
        # the number of values of each variable, rounded up: the length of a row in its blocks
        self.widths = -(-sizes // potts.LANES) * potts.LANES
        blocks = sizes[heads] * np.repeat(self.widths, np.diff(indptr))
        # where the block of each neighbour begins, in the order of ``graph.csr``
        self.starts = np.concatenate([[0], np.cumsum(blocks)])
        self._arrays = self._offsets, indptr, heads, edge_of, sizes, self.starts, self.widths

    @property
    def size(self) -> int:
        """Number of entries, with what rows are padded by."""
        return int(self.starts[-1])

    def of(self, couplings: np.ndarray) -> np.ndarray:
        """Return the tables from both ends, all of a variable together."""
        oriented = np.zeros(self.size)
        potts.orient(couplings, *self._arrays, oriented)
        return oriented

    def folded(self, oriented: np.ndarray) -> np.ndarray:
        """Return the sums of what both ends say of each entry."""
        edges = self.graph.edges
        couplings = np.zeros(int((self._sizes[edges[:, 0]] * self._sizes[edges[:, 1]]).sum()))
        potts.fold(oriented, *self._arrays, couplings)
        return couplings

    def span(self, i: int) -> tuple[np.ndarray, np.ndarray, slice, int]:
        """Return the neighbours of a variable, where their blocks begin among its own, where those stand, and a row."""
        indptr, heads, _ = self.graph.csr
        first, last = indptr[i], indptr[i + 1]
        starts = self.starts[first:last] - self.starts[first]
        return heads[first:last], starts, slice(*self.starts[[first, last]].tolist()), self.widths[i]
