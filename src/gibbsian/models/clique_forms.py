"""Products over cliques in other forms: as numbers, ranges and tables, and the same in other values."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from gibbsian.errors import TooExpensiveError
from gibbsian.models.factors import Factor
from gibbsian.models.scopes import Scope, Scopes

# The most entries that a clique is written out in, as a table or as a sum over its subsets.
MOST_ENTRIES = 2**22


def padded_levels(levels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the numbers of each variable's codes as the rows of a table, zeros after the last."""
    table = np.zeros((len(levels), max(map(len, levels))))
    for row, numbers in zip(table, levels, strict=True):
        row[: len(numbers)] = numbers
    return table


def product_ranges(scopes: Scopes, levels: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of the product over each clique."""
    ends = np.array([[numbers.min(), numbers.max()] for numbers in levels])
    low, high = np.ones(len(scopes)), np.ones(len(scopes))
    indptr, members = scopes.csr
    for t in range(int(scopes.sizes.max(initial=0))):
        held = np.flatnonzero(scopes.sizes > t)
        corners = np.stack([low[held], high[held]])[:, None, :] * ends[members[indptr[held] + t]].T[None, :, :]
        low[held], high[held] = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    return low, high


def product_tables(scopes: Scopes, weights: np.ndarray, levels: Sequence[np.ndarray]) -> tuple[Factor, ...]:
    """Write each weighted product out as a table over codes; refused where it has more than 2^22 entries."""
    factors = []
    for clique, weight in zip(scopes, weights, strict=True):
        _require_entries(float(np.prod([float(len(levels[i])) for i in clique])), clique, "a table")
        table = np.array(weight)
        for i in clique:
            table = np.multiply.outer(table, levels[i])
        factors.append(Factor(clique, table))
    return tuple(factors)


def expanded_products(scopes: Scopes, weights: np.ndarray, scale: float, shift: float) -> dict[Scope, float]:
    """Return the weights of the products of y that make up those of ``x = scale * y + shift``, the constant at ().

    A clique of k variables becomes one of each of its subsets, so cliques of more than 22 are refused.
    """
    expanded: defaultdict[Scope, float] = defaultdict(float)
    for clique, weight in zip(scopes, weights.tolist(), strict=True):
        _require_entries(2.0 ** len(clique), clique, "the subsets")
        for size in range(len(clique) + 1):
            part = weight * scale**size * shift ** (len(clique) - size)
            for subset in itertools.combinations(clique, size):
                expanded[subset] += part
    return dict(expanded)


def _require_entries(n_entries: float, clique: Scope, what: str) -> None:
    if n_entries > MOST_ENTRIES:
        raise TooExpensiveError(
            f"{what} of the clique of {len(clique)} variables from {clique[0]} to {clique[-1]} "
            f"would have {n_entries:.2g} entries",
            f"up to {MOST_ENTRIES:,} are possible, so use Monte Carlo instead",
        )
