"""Weighted products of the scores of any number of variables (YU20 section 2.1; any sample space, Y18)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.backends.numba import cliques as kernels
from gibbsian.backends.numba.factor_tables import subset_sums, superset_sums
from gibbsian.backends.numba.walsh import aligned_zeros, walsh_hadamard
from gibbsian.backends.parallel import map_in_order, sum_in_order
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.models.base import FAMILIES, Model
from gibbsian.models.conditionals import CliqueConditionals, Conditionals, WeightedRows
from gibbsian.models.factors import Factor, FactorGraph, Marginal
from gibbsian.models.families.scoped import ScopedFamily, Weights
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import (
    Variables,
    VariablesOf,
    as_variables,
    checked_fixed,
    checked_weights,
    require_two_values,
)
from gibbsian.resources import row_blocks

# Approximate number of products in a block of rows of one thread: the cost of a row is its number of products.
BLOCK_PRODUCTS = 2**22
# Maximum number of entries of the table of a product, and of subsets of its variables.
MAX_ENTRIES = 2**22


@FAMILIES.register("products")
class ProductsFamily(ScopedFamily):
    """``P(x) = exp(sum_c theta_c prod_{i in c} x_i) / Z`` over sets c of any size, x the scores of the variables.

    Scores are -1/+1, 0/1, or any finite set of real numbers. If each variable has two or more values, products of
    different sets are linearly independent, so that parameters are unique.

    Parameters
    ----------
    scopes : Scopes
        The variables of each product.
    variables : Variables or callable, default=Variables.spins
        Variables with scores.

    Examples
    --------
    >>> import numpy as np
    >>> import gibbsian as gb
    >>> model = gb.ProductsFamily.model({(0, 1, 2): 1.0, (0,): 0.5}, n_variables=3)
    >>> model.family.scopes, model.theta.tolist()
    (((0,), (0, 1, 2)), [0.5, 1.0])
    >>> model.log_weights(np.array([[1, 1, 1], [1, 1, 0]]))
    array([ 1.5, -0.5])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.variables.levels  # noqa: B018  # raises CodingError without scores

    @classmethod
    def model(
        cls, weights: Mapping[Scope, float], n_variables: int, variables: VariablesOf = Variables.spins
    ) -> Model[Self]:
        """Return a model from the weights of its products, in any order; the same set may be named once only."""
        of = {tuple(sorted(scope)): float(weight) for scope, weight in weights.items()}
        if len(of) < len(weights):
            raise ArgumentError("names the same variables twice, give each set once", argument="weights")
        scopes = Scopes.sorted(of, n_variables)
        return Model(cls(scopes, as_variables(variables, n_variables)), np.array([of[scope] for scope in scopes]))

    # -- structure ----------------------------------------------------------------------------------------------------
    @property
    def n_parameters(self) -> int:
        """Number of products."""
        return len(self.scopes)

    @property
    def penalised(self) -> Mask:
        """Mask of the products of two or more variables."""
        return self.scopes.sizes > 1

    @property
    def statistic_range(self) -> tuple[Floats, Floats]:
        """The minimum and the maximum of each product."""
        low, high = np.ones((2, self.n_parameters))
        ends = np.array([[scores.min(), scores.max()] for scores in self.variables.levels])
        indptr, members = self.scopes.csr
        for t in range(int(self.scopes.sizes.max(initial=0))):
            longer = np.flatnonzero(self.scopes.sizes > t)
            corners = np.stack([low[longer], high[longer]])[:, None, :] * ends[members[indptr[longer] + t]].T
            low[longer], high[longer] = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
        return low, high

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the variables of each product."""
        return ["*".join(names[i] for i in scope) for scope in self.scopes]

    # -- parameters ---------------------------------------------------------------------------------------------------
    def split(self, theta: Floats) -> Weights:
        """Return the weights."""
        return Weights(theta)

    def canonical(self, theta: Floats) -> Floats:
        """Return theta, which is unique."""
        return theta

    def interactions(self, theta: Floats) -> Interactions:
        """Return the weights of products of two or more variables."""
        larger = np.flatnonzero(self.penalised)
        scopes = tuple(self.scopes[c] for c in larger)
        return Interactions(scopes, theta[larger], (self.scopes.n_variables,), "weight")

    def terms_of(self, variables: Mask) -> Mask:
        """Return the mask of the products that contain any of the masked variables."""
        return self.scopes.touching(variables)

    def log_odds(self, theta: Floats) -> Floats:
        """Return the largest change of a log-probability by each product."""
        low, high = self.statistic_range
        return (high - low) * np.abs(theta)

    def recode(self, theta: Floats, variables: VariablesOf) -> tuple[Model[Self], float]:
        """Return the same distribution of two-valued variables with other scores, and the constant in the log-weight.

        A product of k variables becomes the sum of a product over each of its subsets, so k may not exceed 22.
        """
        target = as_variables(variables, self.scopes.n_variables)
        for each in (self.variables, target):
            require_two_values(each)
        (low, gap), (new_low, new_gap) = self.variables.lows_and_gaps, target.lows_and_gaps
        scale = gap / new_gap
        shifts, scales = (low - scale * new_low).tolist(), scale.tolist()  # score = shift + scale * new score
        weights: defaultdict[Scope, float] = defaultdict(float)
        for scope, weight in zip(self.scopes, theta.tolist(), strict=True):
            _require_entries(2.0 ** len(scope), scope, "the subsets")
            parts: dict[Scope, float] = {(): weight}
            for i in scope:
                with_i = {(*part, i): w * scales[i] for part, w in parts.items()}
                parts = {part: w * shifts[i] for part, w in parts.items()} | with_i
            for part, w in parts.items():
                weights[part] += w
        constant = weights.pop((), 0.0)
        return self.model(weights, len(target), target), constant

    # -- rows ---------------------------------------------------------------------------------------------------------
    def _blocks(self, n_rows: int) -> list[Slice]:
        return list(row_blocks(n_rows, self.scopes.n_variables + self.n_parameters, BLOCK_PRODUCTS))

    def log_weights(self, theta: Floats, x: States) -> Floats:
        """Return the weighted sum of the products of each row of codes."""
        codes = np.ascontiguousarray(self.variables.checked(x))
        parts = map_in_order(
            lambda block: kernels.log_weights(
                codes[block], self.variables.padded_levels, self.scopes.runs, *self.scopes.csr, theta
            ),
            self._blocks(len(codes)),
        )
        return np.concatenate([np.empty(0), *parts])

    def statistics(self, x: States) -> Floats:
        """Return the products of each row."""
        scores = self.variables.scores_of(self.variables.checked(x))
        indptr, members = self.scopes.csr
        return np.multiply.reduceat(scores[:, members], indptr[:-1], axis=1)

    def mean_statistics(self, x: States, weights: Floats | None = None) -> Floats:
        """Return the weighted mean of each product."""
        return self._mean_products(self.variables.checked(x), self.variables.padded_levels, weights)

    def present_sums(self, x: States, present: Mask, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the weighted sum of each product over the rows where its cells are present, and their weight."""
        # a missing cell is one more value with score 0; where all scores are 1, products count the complete rows
        missing, scores = self.variables.padded_levels.shape[1], np.pad(self.variables.padded_levels, ((0, 0), (0, 1)))
        codes = np.where(present, x, missing).astype(np.int8)
        ones = (np.arange(missing + 1) < missing) * np.ones_like(scores)
        return self._mean_products(codes, scores, weights), self._mean_products(codes, ones, weights)

    def _mean_products(self, codes: States, scores: Floats, weights: Floats | None) -> Floats:
        rows, normalised = np.ascontiguousarray(codes), checked_weights(weights, len(codes))
        return sum_in_order(
            lambda block: kernels.statistics(
                rows[block], scores, normalised[block], self.scopes.runs, *self.scopes.csr
            ),
            self._blocks(len(codes)),
            self.n_parameters,
        )

    def conditionals(self, rows: WeightedRows) -> Conditionals:
        """Bind rows, for losses of the log-odds of each variable given all others."""
        return CliqueConditionals(self, rows._replace(codes=self.variables.checked(rows.codes)))

    # -- all rows at once ---------------------------------------------------------------------------------------------
    @property
    def has_fast_transform(self) -> bool:
        """Whether the log-weights of all rows are a fast transform of theta: of spins, and of 0/1."""
        return set(self.variables.scores or ()) in ({(-1.0, 1.0)}, {(0.0, 1.0)})

    @property
    def _is_walsh(self) -> bool:
        return self.variables.scores is not None and self.variables.scores[0] == (-1.0, 1.0)

    @cached_property
    def _indices(self) -> Integers:
        """Index in a table of all rows of the row with ones at the variables of a product; variable 0 is slowest."""
        indptr, members = self.scopes.csr
        bits = np.left_shift(1, self.scopes.n_variables - 1 - members)
        return np.add.reduceat(bits, indptr[:-1]) if self.n_parameters else np.empty(0, np.intp)

    @cached_property
    def _signs(self) -> Floats:
        """Signs of odd products: the transform has -1 for a one bit, but code 1 is spin +1."""
        return np.where(self.scopes.sizes % 2 == 1, -1.0, 1.0)

    def log_weight_table(self, theta: Floats) -> Floats:
        """Return the log-weights of all rows, variable 0 slowest, in n 2^n additions for any number of products.

        With spins they are the Walsh-Hadamard transform of theta (TA22 section 2.2.3), with 0/1 sums over subsets.
        """
        table: Floats = aligned_zeros(2**self.scopes.n_variables)
        if self._is_walsh:
            table[self._indices] = self._signs * theta
            walsh_hadamard(table)
        else:
            table[self._indices] = theta
            subset_sums(table)
        return table

    def statistics_from_table(self, probabilities: Floats) -> Floats:
        """Return the expected products, given the probabilities of all rows in the order of `log_weight_table`."""
        table: Floats = aligned_zeros(probabilities.size)
        table[:] = probabilities
        if self._is_walsh:
            walsh_hadamard(table)
            table[self._indices] *= self._signs
        else:
            superset_sums(table)
        return table[self._indices]

    # -- other forms --------------------------------------------------------------------------------------------------
    def factors(self, theta: Floats) -> FactorGraph:
        """Return the table of each product; an error if one has more than 2^22 entries."""
        factors, levels = [], self.variables.levels
        for scope, weight in zip(self.scopes, theta, strict=True):
            _require_entries(math.prod(float(len(levels[i])) for i in scope), scope, "a table")
            table = np.array(weight)
            for i in scope:
                table = np.multiply.outer(table, levels[i])
            factors.append(Factor(scope, table))
        return FactorGraph(np.array(self.variables.sizes), tuple(factors))

    def statistics_from(self, marginal: Marginal) -> Floats:
        """Return the expected products, given the joint probabilities of the variables of each."""
        expected = np.empty(self.n_parameters)
        for c, scope in enumerate(self.scopes):
            table = marginal(scope)
            for i in reversed(scope):
                table = table @ self.variables.levels[i]
            expected[c] = table
        return expected

    def given(self, nodes: Sequence[int] | Integers, codes: Sequence[int] | States) -> Given[Self]:
        """Condition on the codes of some variables: each product keeps its free ones, times the given scores."""
        fixed, given_codes = checked_fixed(self.variables.sizes, nodes, codes)
        family, target = self._without(fixed)
        scores = np.ones(self.scopes.n_variables)
        scores[list(fixed)] = self.variables.padded_levels[list(fixed), given_codes]
        indptr, members = self.scopes.csr
        factors = np.multiply.reduceat(scores[members], indptr[:-1]) if self.n_parameters else np.ones(0)
        return Given.of_products(family, target, factors)


def _require_entries(n_entries: float, scope: Scope, what: str) -> None:
    if n_entries > MAX_ENTRIES:
        raise TooExpensiveError(
            f"{what} of the clique of {len(scope)} variables from {scope[0]} to {scope[-1]} "
            f"would have {n_entries:.2g} entries",
            f"up to {MAX_ENTRIES:,} are possible, so use Monte Carlo instead",
        )
