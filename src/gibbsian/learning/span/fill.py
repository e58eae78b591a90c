"""The E-step of full-span fits: rows with missing cells are spread over their completions by a model.

The weight of an incomplete row goes to its completions with the probabilities that the model gives them; a hidden
variable is a column whose cells are missing in every row. With q the rows so spread,

    cost of p on the observed cells <= cost of p on q   for every model p, with equality at the model that spread them,

so whatever lowers the right-hand side, a fit of the table of all columns, lowers the left-hand side at least as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, Mask
from gibbsian.backends.numba.axes import transform
from gibbsian.backends.numba.kmeans_plusplus import kmeans_plusplus
from gibbsian.errors import DataError
from gibbsian.inference.span_posterior import completion_states
from gibbsian.learning.span.problem import SpanProblem, Table
from gibbsian.models.rows import patterns_of
from gibbsian.resources import row_blocks
from gibbsian.rng import Words
from gibbsian.startup import xlogy

# How much less likely a class is, at the start, with each variable in which a row differs from its centre.
_NEARNESS = 1.0
# By how much less likely a second hidden variable looks at the columns of the first.
_LEFT_ALONE = 0.99
# A dependence that stands for none.
_TINY = 1e-9


class Filler(NamedTuple):
    """The model that fills missing cells; without functions columns are filled independently."""

    indices: Integers
    theta: Floats


def digest_of(*arrays: Floats | Integers | Words) -> bytes:
    """Return a digest of the bytes of arrays."""
    digest = sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


class FilledRows:
    """Rows with missing cells, and one table of the data that every fill overwrites.

    The problem of filled rows is a function of what has filled them: it is made anew where that differs, byte by byte,
    from what filled them last. A problem is of no use once the rows were filled otherwise.

    Parameters
    ----------
    whole : SpanProblem
        The problem of all rows; its table is overwritten.
    codes : ndarray of shape (m, n)
        The rows; what stands in missing cells is not read.
    missing : ndarray of bool, shape (m, n)
        Mask of the missing cells.
    counts : ndarray of shape (m,)
        How often each row was seen, or its weight.
    """

    def __init__(self, whole: SpanProblem, codes: Codes, missing: Mask, counts: Floats):
        self.whole, self.codes, self.missing, self.counts = whole, codes, missing, counts
        self._problem, self._filled_by = whole, b""
        self._complete: Mask = ~np.any(missing, axis=1)

    @property
    def has_complete(self) -> bool:
        """Whether some rows miss no cell."""
        return float(self.counts[self._complete].sum()) >= 1.0

    def complete(self) -> SpanProblem:
        """Return the problem of the complete rows."""
        if self._filled_by != b"complete":
            n_samples = float(self.counts[self._complete].sum())
            negative_entropy = self._spread(self.whole.data_dual, self._complete)
            # what a function costs is shared by fewer rows
            costs = self.whole.costs.with_samples(self.whole.n_samples / n_samples)
            self._filled_by = b"complete"
            self._problem = replace(self.whole, n_samples=n_samples, negative_entropy=negative_entropy, costs=costs)
        return self._problem

    def filled_by(self, filler: Filler, table: Table) -> SpanProblem:
        """Return the problem of the rows as a model fills them, whose probabilities may be written into a table."""

        def probabilities() -> Table:
            if filler.indices.size:
                self.whole.probabilities(table, filler.indices, filler.theta)
            else:
                self._independent(table)
            return table

        return self.filled(digest_of(*filler), probabilities)

    def filled(self, name: bytes, probabilities: Callable[[], Table]) -> SpanProblem:
        """Return the problem of the rows filled by probabilities of all states, which are asked for if needed."""
        if self._filled_by != name:
            negative_entropy = self._spread(probabilities(), np.ones(len(self.counts), bool))
            self._problem, self._filled_by = replace(self.whole, negative_entropy=negative_entropy), name
        return self._problem

    def _independent(self, table: Table) -> None:
        """Overwrite a table with the product of the shares that each column's values have among its present cells."""
        table[:1] = 1.0
        size, sizes = 1, self.whole.basis.variables.sizes
        for i in reversed(range(self.codes.shape[1])):  # the last changes fastest
            seen = ~self.missing[:, i]
            weights = np.bincount(self.codes[seen, i], self.counts[seen], minlength=sizes[i])
            if not weights.sum() > 0:
                raise DataError(f"column {i} has no observed cell", "drop it")
            shares = weights / weights.sum()
            for value in reversed(range(shares.size)):  # the first last: it is what the others are made of
                np.multiply(table[:size], shares[value], out=table[value * size : (value + 1) * size])
            size *= shares.size

    def _spread(self, probabilities: Table, keep: Mask) -> float:
        """Overwrite the data's dual with that of filled rows; return their negative entropy.

        That is ``sum_r s_r sum_x q_r(x) ln q_r(x)`` over rows of share s and completions of share q: what turns the
        cross entropy of the table and a model into a bound of the cost on the observed cells. The entropy of the rows
        themselves is no part of it: rows that miss different cells overlap, so they have no distribution from
        which a divergence could be taken.
        """
        table = self.whole.data_dual
        table.flags.writeable = True
        table.fill(0.0)
        shares = self.counts[keep] / self.counts[keep].sum()
        negative_entropy = 0.0
        for rows, places in self._completions(keep):
            # a complete row is its own completion, whatever its probability
            alone = places.shape[1] == 1
            weights = np.ones(places.shape) if alone else probabilities[places].astype(np.float64)
            totals = weights.sum(axis=1, keepdims=True)
            # a row that the model holds for impossible, to the last digit, is spread evenly
            weights = np.divide(weights, totals, out=np.full_like(weights, 1.0 / places.shape[1]), where=totals > 0)
            own = shares[rows]
            negative_entropy += float(own @ xlogy(weights, weights).sum(axis=1))
            np.add.at(table, places, (own[:, None] * weights).astype(table.dtype))
        transform(table, self.whole.basis.shape)
        table.flags.writeable = False
        return negative_entropy

    def mean_log_probability(self, probabilities: Table) -> float:
        """Return the mean over rows of the log-probability of their present cells, from that of all states."""
        shares = self.counts / self.counts.sum()
        every = np.ones(len(shares), bool)
        return sum(
            float(shares[rows] @ np.log(probabilities[places].astype(np.float64).sum(axis=1)))
            for rows, places in self._completions(every)
        )

    def _completions(self, keep: Mask) -> Iterator[tuple[Integers, Integers]]:
        """Give blocks of rows that miss the same cells, and the indices of the completions of each."""
        codes, missing = self.codes[keep], self.missing[keep]
        for rows, pattern in patterns_of(codes, missing):
            for block in row_blocks(len(rows), int(self.whole.basis.shape[pattern].prod()), least_rows=1):
                yield rows[block], completion_states(self.whole.basis, codes[rows[block]], pattern)


# -- where hidden variables begin -------------------------------------------------------------------------------------
def near_some_rows(
    sizes: tuple[int, ...], codes: Codes, missing: Mask, counts: Floats, rng: np.random.Generator
) -> Floats:
    """Return a table over all states: a hidden value is the likelier, the nearer a row is to one drawn for it.

    Rows without missing cells are drawn where there are some.
    """
    shown, hidden = sizes[: codes.shape[1]], sizes[codes.shape[1] :]
    whole = ~missing.any(axis=1)
    possible = (whole & (counts > 0)) if (counts[whole] > 0).any() else counts > 0
    states, shares = np.where(missing, 0, codes)[possible], counts[possible] / counts[possible].sum()
    order = np.lexsort(states.T[::-1])  # by index, whatever the order of the rows
    begin = _one_beginning if len(hidden) == 1 else _apart
    table = np.ones((int(np.prod(shown)), 1))
    for n_values, (centres, look) in zip(hidden, begin(states[order], shares[order], shown, hidden, rng), strict=True):
        near = np.zeros((len(table), n_values))
        near[:, : len(centres)] = np.column_stack([_nearness(shown, centre, look) for centre in centres])
        table = (table[:, :, None] * near[:, None, :]).reshape(len(table), -1)
    return table.ravel()


def _nearness(sizes: tuple[int, ...], centre: Codes, look: Floats) -> Floats:
    """Return a number for every state of the columns that falls with each column in which it differs from a row."""
    near = np.ones(1)
    for q, value, weight in zip(sizes, centre, look, strict=True):
        near = np.outer(near, np.where(np.arange(q) == value, 1.0, np.exp(-_NEARNESS * weight))).ravel()
    return near


Beginning = tuple[Codes, Floats]
"""Rows, one for each value of a hidden variable, and how much it looks at each column."""


def _one_beginning(
    states: Codes, shares: Floats, shown: tuple[int, ...], hidden: tuple[int, ...], rng: np.random.Generator
) -> Iterator[Beginning]:
    """Give the beginning of a single hidden variable: rows drawn at random, all columns alike."""
    rows = rng.choice(len(states), min(hidden[0], len(states)), replace=False, p=shares)
    yield states[rows], np.ones(len(shown))


def _apart(
    states: Codes, shares: Floats, shown: tuple[int, ...], hidden: tuple[int, ...], rng: np.random.Generator
) -> Iterator[Beginning]:
    """Give the beginnings of several hidden variables, which would else all find the same cause.

    Each looks at the columns that depend on one column, drawn rather not among those that earlier ones look at, and has
    rows that differ there (k-means++).
    """
    values = np.column_stack([states[:, i] == value for i, q in enumerate(shown) for value in range(q)]).astype(float)
    related = _dependence(values, shares, shown)
    chances = related.sum(axis=0)
    for n_values in hidden:
        own = related[rng.choice(len(shown), p=chances / chances.sum())]
        chances = chances * (1.0 - _LEFT_ALONE * own / own.max())
        look = len(shown) * own / own.sum()
        points, seed = values * np.repeat(np.sqrt(look), shown), int(rng.integers(2**31 - 1))
        n_centres = min(n_values, len(states))
        yield states[kmeans_plusplus(points, shares, n_centres, seed)], look


def _dependence(values: Floats, shares: Floats, shown: tuple[int, ...]) -> Floats:
    """Return a number for each two columns, 0 for independent ones: squared correlations of their values, added up.

    No column depends more on itself than on the next, for else a hidden variable begins, and ends, as its copy.
    """
    means, starts = shares @ values, np.cumsum([0, *shown[:-1]])
    squares = np.square((values.T * shares) @ values - np.outer(means, means))
    squares = np.add.reduceat(np.add.reduceat(squares, starts, axis=0), starts, axis=1)
    scales = np.sqrt(np.diag(squares)) + _TINY
    related = squares / np.outer(scales, scales)
    np.fill_diagonal(related, 0.0)
    np.fill_diagonal(related, related.max(axis=0))
    return related + _TINY
