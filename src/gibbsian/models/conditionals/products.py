"""Conditionals of sums of functions of some variables: products of scores, full-span functions, real variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.arrays import Floats, Integers, Slice, States
from gibbsian.backends.numba import cliques as kernels
from gibbsian.domain import Continuum
from gibbsian.models.conditionals.base import RowConditionals, WeightedRows
from gibbsian.resources import row_blocks, spans

if TYPE_CHECKING:
    from gibbsian.models.families.potentials import Term
    from gibbsian.models.families.products import ProductsFamily
    from gibbsian.models.families.span_basis import SpanBasis

# Products of a block of rows: the cost of a row grows with the number of cliques.
BLOCK_PRODUCTS = 2**22


class CliqueConditionals(RowConditionals[Floats, Floats]):
    """Conditionals of weighted products over cliques: the change of a score times its field.

    Parameters
    ----------
    family : ProductsFamily
        The cliques and the scores.
    rows : WeightedRows
        The rows.
    """

    def __init__(self, family: ProductsFamily, rows: WeightedRows):
        self.groups, self.n_parameters = family.variables.groups, family.n_parameters
        self.levels, self.table = np.concatenate(family.variables.levels), family.variables.padded_levels
        self.arrays = family.scopes.runs, *family.scopes.csr
        n_rows, n_variables = rows.codes.shape
        super().__init__(rows, row_blocks(n_rows, n_variables + self.n_parameters, BLOCK_PRODUCTS))

    def _changes(self, codes: States) -> Floats:
        """Return the score of each cell minus the score that it changes to."""
        if self.groups is None:
            return np.asarray((2.0 * codes - 1.0) * (self.table[:, 1] - self.table[:, 0]))
        present: Floats = self.table[np.arange(codes.shape[1]), codes]
        return np.repeat(present, np.diff(self.groups), axis=1) - self.levels

    def forward(self, prepared: Floats, rows: States) -> tuple[Floats, Floats]:
        """Return the costs of rows, and the changes of scores."""
        costs, changes = kernels.fields(rows, self.table, *self.arrays, prepared), self._changes(rows)
        if self.groups is not None:
            costs = np.repeat(costs, np.diff(self.groups), axis=1)
        costs *= changes
        return costs, changes

    def backward(self, rows: States, derivatives: Floats, saved: Floats) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)``, given the changes of scores."""
        derivatives *= saved
        if self.groups is not None:
            derivatives = np.add.reduceat(derivatives, self.groups[:-1], axis=1)
        return np.asarray(kernels.fields_vjp(rows, self.table, np.ascontiguousarray(derivatives), *self.arrays))


class SpanConditionals(RowConditionals[Floats, Floats]):
    """Conditionals of full-span functions.

    If ``x_i`` changes to v, a function becomes ``Phi_y(x) phi(x_i) phi(v)``, since factors are their own inverses.

    Parameters
    ----------
    basis : SpanBasis
        The basis functions.
    indices : ndarray
        Numbers of the functions that have a parameter.
    groups : ndarray or None
        Boundaries of the columns of each variable.
    rows : WeightedRows
        The rows.
    """

    def __init__(self, basis: SpanBasis, indices: Integers, groups: Integers | None, rows: WeightedRows):
        self.basis, self.indices, self.groups, self.n_parameters = basis, indices, groups, indices.size
        self.columns = spans(basis.shape.tolist())
        super().__init__(rows, row_blocks(len(rows.codes), max(indices.size, self.columns[-1].stop)))

    def _changes(self, codes: States) -> Iterator[tuple[Slice, Integers, Integers, Floats]]:
        """Yield for each variable its columns, its codes, the functions of it, and their factors at each value."""
        for i, digits in enumerate(self.basis.digits(self.indices).T):
            used = np.flatnonzero(digits)
            yield self.columns[i], codes[:, i].astype(np.intp), used, self.basis.local_values(i)[digits[used]]

    def forward(self, prepared: Floats, rows: States) -> tuple[Floats, Floats]:
        """Return the costs of rows, and the values of the functions."""
        values = self.basis.values(self.indices, rows)
        terms, costs = values * prepared, np.empty((len(rows), self.columns[-1].stop))
        for columns, present, used, factors in self._changes(rows):
            change = terms[:, used].sum(axis=1, keepdims=True) - (terms[:, used] * factors[:, present].T) @ factors
            np.put_along_axis(change, present[:, None], 0.0, axis=1)
            costs[:, columns] = change
        # the cost of the present value is zero
        return (costs if self.groups is not None else costs[:, 0::2] + costs[:, 1::2]), values

    def backward(self, rows: States, derivatives: Floats, saved: Floats) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)``, given the values of the functions."""
        if self.groups is None:
            derivatives = np.repeat(derivatives, 2, axis=1)
        gradient = np.zeros(self.n_parameters)
        for columns, present, used, factors in self._changes(rows):
            block = derivatives[:, columns]
            change = block.sum(axis=1, keepdims=True) - factors[:, present].T * (block @ factors.T)
            gradient[used] += (saved[:, used] * change).sum(axis=0)
        return gradient


class QuadratureConditionals(RowConditionals[Floats, None]):
    """Conditionals of real variables: ``d_k = log p(x) - log p(x with x_i at node k) - log w_k``.

    The softmax over the nodes of a variable is its conditional density. Rows hold real numbers.

    Parameters
    ----------
    terms : sequence of Term
        The functions.
    domain : Continuum
        The nodes of the variables, and their base measure.
    n_parameters : int
        Number of parameters.
    rows : WeightedRows
        The rows, as real numbers.
    """

    groups: Integers

    def __init__(self, terms: Sequence[Term], domain: Continuum, n_parameters: int, rows: WeightedRows):
        (n_rows, n_variables), n_nodes = rows.codes.shape, domain.n_nodes
        self.domain, self.n_parameters = domain, n_parameters
        self.groups = np.arange(n_variables + 1) * n_nodes
        self.terms_of = [[term for term in terms if i in term.scope] for i in range(n_variables)]
        super().__init__(rows, row_blocks(n_rows, n_variables * n_nodes))

    def _features(self, rows: States, i: int) -> Iterator[tuple[Integers, Floats, Floats]]:
        """Yield for each term of a variable the indices of its parameters, and its statistics at rows and at nodes."""
        present, nodes = rows[:, i, None].astype(np.float64, copy=False), self.domain.nodes[None]
        for term in self.terms_of[i]:
            yield term.indices, term.along(rows, i, present), term.along(rows, i, nodes)

    def forward(self, prepared: Floats, rows: States) -> tuple[Floats, None]:
        """Return the costs of rows."""
        costs = []
        for i in range(rows.shape[1]):
            cost = self.domain.log_base(rows[:, i, None]) - self.domain.node_log_weights
            for indices, at_rows, at_nodes in self._features(rows, i):
                cost = cost + (at_rows - at_nodes) @ prepared[indices]
            costs.append(cost)
        return np.concatenate(costs, axis=1), None

    def backward(self, rows: States, derivatives: Floats, saved: None) -> Floats:
        """Return the gradient of ``sum(derivatives * costs)``."""
        gradient = np.zeros(self.n_parameters)
        for i, columns in enumerate(spans(np.diff(self.groups))):
            block = derivatives[:, columns]
            for indices, at_rows, at_nodes in self._features(rows, i):
                gradient[indices] += block.sum(axis=1) @ at_rows[:, 0] - np.einsum("mk,mkp->p", block, at_nodes)
        return gradient
