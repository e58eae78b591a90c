"""Conditionals of sums of functions of some variables: products of numbers, full-span functions, real variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.backends.numba import cliques as kernels
from gibbsian.domain import Continuum
from gibbsian.models.clique_forms import padded_levels
from gibbsian.models.conditionals.base import Array, RowConditionals, WeightedRows
from gibbsian.models.scopes import Scopes
from gibbsian.models.span_basis import SpanBasis
from gibbsian.resources import row_blocks, spans

if TYPE_CHECKING:
    from gibbsian.models.families.potentials import Term as NewTerm
    from gibbsian.models.families.span_basis import SpanBasis as NewBasis
    from gibbsian.models.potentials import Term

# About this many products of a row block on one thread at a time: rows cost as much as there are cliques.
BLOCK_PRODUCTS = 2**22


class CliqueConditionals(RowConditionals):
    """Weighted products over cliques: the change of a value times its field.

    Parameters
    ----------
    scopes : Scopes
        The cliques.
    levels : sequence of ndarray
        The numbers that stand for the codes of each variable.
    groups : ndarray or None
        The columns of each variable.
    rows : WeightedRows
        The rows.
    """

    def __init__(self, scopes: Scopes, levels: Sequence[Array], groups: Array | None, rows: WeightedRows):
        self.scopes, self.groups, self.n_parameters = scopes, groups, len(scopes)
        self.levels, self.table = np.concatenate(levels), padded_levels(levels)
        self.arrays = scopes.runs, *scopes.csr
        n_rows, n_variables = rows.codes.shape
        super().__init__(rows, row_blocks(n_rows, n_variables + len(scopes), BLOCK_PRODUCTS))

    def _changes(self, codes: Array) -> Array:
        """By how much a value is above the one it changes to."""
        if self.groups is None:
            return (2.0 * codes - 1.0) * (self.table[:, 1] - self.table[:, 0])
        own = self.table[np.arange(codes.shape[1]), codes]
        return np.repeat(own, np.diff(self.groups), axis=1) - self.levels

    def prepare(self, theta: Array) -> Array:
        """Return the weights of the cliques."""
        return theta

    def fill(self, theta: Array, codes: Array) -> tuple[Array, Array]:
        """Return the costs of rows, and the changes of their values."""
        costs, changes = kernels.fields(codes, self.table, *self.arrays, theta), self._changes(codes)
        if self.groups is not None:
            costs = np.repeat(costs, np.diff(self.groups), axis=1)
        costs *= changes
        return costs, changes

    def pull(self, codes: Array, slopes: Array, changes: Array) -> Array:
        """Return the gradient of ``sum(slopes * costs)``."""
        slopes *= changes
        if self.groups is not None:
            slopes = np.add.reduceat(slopes, self.groups[:-1], axis=1)
        return kernels.fields_vjp(codes, self.table, np.ascontiguousarray(slopes), *self.arrays)


class SpanConditionals(RowConditionals):
    """Full-span functions: with ``x_i = v`` one is ``Phi_y(x) phi(x_i) phi(v)``, each factor being its own inverse.

    Parameters
    ----------
    basis : SpanBasis
        The functions.
    indices : ndarray
        Which of them have a parameter.
    groups : ndarray or None
        The columns of each variable.
    rows : WeightedRows
        The rows.
    """

    def __init__(self, basis: SpanBasis | NewBasis, indices: Array, groups: Array | None, rows: WeightedRows):
        self.basis, self.indices, self.groups, self.n_parameters = basis, indices, groups, indices.size
        self.columns = spans(basis.shape.tolist())
        super().__init__(rows, row_blocks(len(rows.codes), max(indices.size, self.columns[-1].stop)))

    def _changes(self, codes: Array) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Give the columns of each variable, its codes, its functions, and their factors at each of its values."""
        for i, digits in enumerate(self.basis.digits(self.indices).T):
            used = np.flatnonzero(digits)
            yield self.columns[i], codes[:, i].astype(np.intp), used, self.basis.local_values(i)[digits[used]]

    def prepare(self, theta: Array) -> Array:
        """Return the parameters."""
        return theta

    def fill(self, theta: Array, codes: Array) -> tuple[Array, Array]:
        """Return the costs of rows, and the functions there."""
        values = self.basis.values(self.indices, codes)
        terms, costs = values * theta, np.empty((len(codes), self.columns[-1].stop))
        for columns, own, used, factors in self._changes(codes):
            change = terms[:, used].sum(axis=1, keepdims=True) - (terms[:, used] * factors[:, own].T) @ factors
            np.put_along_axis(change, own[:, None], 0.0, axis=1)
            costs[:, columns] = change
        # the cost of the present value is zero
        return (costs if self.groups is not None else costs[:, 0::2] + costs[:, 1::2]), values

    def pull(self, codes: Array, slopes: Array, values: Array) -> Array:
        """Return the gradient of ``sum(slopes * costs)``."""
        if self.groups is None:
            slopes = np.repeat(slopes, 2, axis=1)
        gradient = np.zeros(self.n_parameters)
        for columns, own, used, factors in self._changes(codes):
            slope = slopes[:, columns]
            change = slope.sum(axis=1, keepdims=True) - factors[:, own].T * (slope @ factors.T)
            gradient[used] += (values[:, used] * change).sum(axis=0)
        return gradient


class QuadratureConditionals(RowConditionals):
    """Real variables by quadrature: ``d_k = log p(x) - log p(x with x_i at node k) - log w_k``.

    The softmax over the nodes of a variable is its conditional density. Rows are the numbers themselves.

    Parameters
    ----------
    terms : sequence of Term
        The functions.
    domain : Continuum
        The nodes of the variables, and their base measure.
    n_parameters : int
        Number of parameters.
    rows : WeightedRows
        The rows, as numbers.
    """

    groups: Array

    def __init__(self, terms: Sequence[Term | NewTerm], domain: Continuum, n_parameters: int, rows: WeightedRows):
        (n_rows, n_variables), n_nodes = rows.codes.shape, domain.n_nodes
        self.domain, self.n_parameters = domain, n_parameters
        self.groups = np.arange(n_variables + 1) * n_nodes
        self.terms_of = [[term for term in terms if i in term.scope] for i in range(n_variables)]
        super().__init__(rows, row_blocks(n_rows, n_variables * n_nodes))

    def prepare(self, theta: Array) -> Array:
        """Return the parameters."""
        return theta

    def _features(self, numbers: Array, i: int) -> Iterator[tuple[Array, Array, Array]]:
        """Give where the parameters of each term of a variable stand, its statistics at rows and at the nodes."""
        here, nodes = numbers[:, i, None], self.domain.nodes[None]
        for term in self.terms_of[i]:
            yield term.places, term.along(numbers, i, here), term.along(numbers, i, nodes)

    def fill(self, theta: Array, numbers: Array) -> tuple[Array, None]:
        """Return the costs of rows."""
        costs = []
        for i in range(numbers.shape[1]):
            own = self.domain.log_base(numbers[:, i, None]) - self.domain.node_log_weights
            for places, here, there in self._features(numbers, i):
                own = own + (here - there) @ theta[places]
            costs.append(own)
        return np.concatenate(costs, axis=1), None

    def pull(self, numbers: Array, slopes: Array, kept: None) -> Array:
        """Return the gradient of ``sum(slopes * costs)``."""
        gradient = np.zeros(self.n_parameters)
        for i, columns in enumerate(spans(np.diff(self.groups))):
            own = slopes[:, columns]
            for places, here, there in self._features(numbers, i):
                gradient[places] += own.sum(axis=1) @ here[:, 0] - np.einsum("mk,mkp->p", own, there)
        return gradient
