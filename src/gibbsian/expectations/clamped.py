"""Clamped phases: the expected statistics of a model given the present cells of the data (YK15).

A missing cell is a hidden unit of its row, a hidden unit a column that is missing in every row. The gradient of the
likelihood is the clamped expectation less the free one; this module holds what all clamped expectations share. Each
keeps the contract of `Expectation`; its mean is the average over the data of ``E[S | present cells of the row]``, and
its `log_partition`, where known, that of the log-evidence ``log sum_h exp(theta . S / T)``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.data import Dataset
from gibbsian.data.minibatches import draw_seed
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.expectations.legacy import Expectation
from gibbsian.expectations.there import own_generator
from gibbsian.inference.posterior import PATIENT_SECONDS, clamped_seconds
from gibbsian.models.base import Array, ExponentialFamily, Family, Model
from gibbsian.models.ising import Ising
from gibbsian.models.variables import CUT, Variables
from gibbsian.registry import Registry

CLAMPED = Registry("clamped", "gibbsian.expectations", "CLAMPED")
# exact clamped phases by the names of the families whose rows they sum
EXACT_CLAMPED = Registry("exact clamped phase", "gibbsian.expectations", "EXACT_CLAMPED")


def as_clamped(
    clamped: str | Expectation | None, model: Model[Family], data: Dataset, patience: float = PATIENT_SECONDS
) -> Expectation:
    """Turn a registered name into a clamped expectation.

    None chooses the exact one where that is predicted to take no longer than `patience`, in seconds, else chains.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.clamped import as_clamped
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> as_clamped(None, model, data)
    ClampedExact(max_seconds=10.0)
    >>> as_clamped("mean-field", model, data).max_iter
    100
    """
    if clamped is None:
        return CLAMPED.create("exact" if clamped_seconds(model, data) <= patience else "chains")
    if isinstance(clamped, str):
        return CLAMPED.create(clamped)
    if not isinstance(clamped, Expectation) or isinstance(clamped, type):
        raise ArgumentError(
            f"must be None, one of {', '.join(CLAMPED)}, or an expectation", argument="clamped", value=clamped
        )
    return clamped


@dataclass(frozen=True, eq=False)
class ClampedRows:
    """The data as a clamped phase sees them: complete rows are statistics, incomplete ones are states with free cells.

    Parameters
    ----------
    data : Dataset
        The incomplete rows (all of positive weight), or None where all rows are complete.
    shares : ndarray of shape (n_states,)
        The share of each of them in the weight of all rows.
    constant : ndarray
        What the complete rows add to the mean statistics.
    pointers, cells : ndarray of int
        The free cells of row r are ``cells[pointers[r] : pointers[r + 1]]``.
    n_rows : int
        Rows of the user's table that the incomplete ones stand for.
    """

    data: Dataset | None
    shares: Array
    constant: Array
    pointers: Array
    cells: Array
    n_rows: int

    @classmethod
    def of(cls, model: Model[ExponentialFamily], data: Dataset) -> ClampedRows:
        """Split the data."""
        shares, constant = data.weights / data.total_weight, np.zeros_like(model.theta)
        holed = np.zeros(data.n_states, bool) if data.missing is None else data.missing.any(axis=1)
        whole, holed = np.flatnonzero(~holed & (shares > 0)), np.flatnonzero(holed & (shares > 0))
        if len(whole):
            constant = model.family.mean_statistics(data.states[whole], shares[whole]) * shares[whole].sum()
        if not len(holed):
            return cls(None, np.zeros(0), constant, np.zeros(1, np.int64), np.zeros(0, np.int64), 0)
        assert data.missing is not None
        missing = data.missing[holed]
        part = dataclasses.replace(
            data,
            states=data.states[holed],
            weights=data.weights[holed],
            missing=missing,
            row_of=np.arange(len(holed)),
            row_weights=data.weights[holed],
        )
        pointers = np.concatenate([[0], np.cumsum(missing.sum(axis=1))])
        n_rows = int(np.isin(data.row_of, holed).sum())
        return cls(part, shares[holed], constant, pointers, np.nonzero(missing)[1].copy(), n_rows)

    @property
    def share(self) -> float:
        """The share of the incomplete rows."""
        return float(self.shares.sum())


def fill_at_random(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Fill the missing cells with values of their column drawn by weight; uniformly where a column has none.

    A start for chains, and no more: the cells are filled independently of each other.
    """
    if not data.has_missing:
        return data
    frequencies = column_frequencies(data)
    if data.on_cluster:
        return data.map(partial(_filled_there, frequencies, draw_seed(rng)))
    return _filled(frequencies, rng, data)


def _filled(frequencies: list[Array], rng: np.random.Generator, data: Dataset) -> Dataset:
    """Fill missing cells by the frequencies of their columns."""
    assert data.missing is not None
    states = fill_cells(data.states, data.missing, frequencies, data.variables, rng)
    return dataclasses.replace(data, states=states, missing=None)


def _filled_there(frequencies: list[Array], seed: Array, data: Dataset) -> Dataset:
    return _filled(frequencies, own_generator(seed, data), data) if data.has_missing else data


def column_frequencies(data: Dataset) -> list[Array]:
    """Return how often each value is present in each column, uniform where none is; of real numbers the values."""
    if data.variables.real:
        _require_values(data.variables)
        return [data.states[~data.holes[:, i], i] for i in range(data.n_variables)]
    counted = data.reduce(_value_weights)
    return [
        counts / counts.sum() if counts.sum() > 0 else np.full(counts.size, 1.0 / counts.size) for counts in counted
    ]


def _require_values(variables: Variables) -> None:
    if 0 in variables.sizes:
        raise CodingError("this needs discrete values, but the variables are real numbers", CUT)


def _value_weights(data: Dataset) -> tuple[Array, ...]:
    """The weight of the rows that show each value of each column."""
    codes, present = data.states, ~data.holes
    return tuple(
        np.bincount(codes[present[:, i], i], data.weights[present[:, i]], minlength=size)
        for i, size in enumerate(data.variables.sizes)
    )


def fill_cells(
    states: Array, missing: Array, frequencies: list[Array], variables: Variables, rng: np.random.Generator
) -> Array:
    """Return the states with missing cells drawn by the frequencies of their columns (see `column_frequencies`)."""
    filled = states.copy()
    for i in np.flatnonzero(missing.any(axis=0)):
        values, shares = (frequencies[i], None) if variables.real else (len(frequencies[i]), frequencies[i])
        filled[missing[:, i], i] = rng.choice(values, int(missing[:, i].sum()), p=shares)
    return filled


def _have_means(variables: Variables) -> bool:
    """Whether the mean of a column says all of how its values are distributed, or all there is to say."""
    return variables.real or (variables.two_valued and variables.scores is not None)


def present_means(data: Dataset) -> Array:
    """Return the mean score of the present cells of each column; the middle of all scores where a column has none.

    Of more than two values, or of values without scores, these are their frequencies, column after column.
    """
    variables = data.variables
    if not _have_means(variables):
        return np.concatenate(column_frequencies(data))
    low, gap = (0.0, 1.0) if variables.real else variables.lows_and_gaps
    if not data.has_missing:
        return low + gap * data.mean(_column_means)
    _require_values(variables)
    sums, totals = data.reduce(_present_sums)
    middle = np.array([(levels[0] + levels[-1]) / 2 for levels in variables.levels])
    return np.where(totals > 0, low + gap * sums / np.where(totals > 0, totals, 1.0), middle)


def _column_means(data: Dataset) -> Array:
    """The mean codes, or numbers, of complete rows."""
    shares, twins = data.weights / data.total_weight, twin("moments")
    if twins is not None and data.states.dtype == np.int8:
        return twins.column_means(data.states, shares)
    return np.einsum("m,mi->i", shares, data.states)


def _present_sums(data: Dataset) -> tuple[Array, Array]:
    """The sums of the present cells of each column, and their weight."""
    present = ~data.holes
    sums = np.einsum("m,mi,mi->i", data.weights, present, data.states)
    return sums, np.einsum("m,mi->i", data.weights, present)


def mean_statistics(model: Model[ExponentialFamily], data: Dataset) -> Array:
    """Return the mean statistics of complete rows."""
    return data.mean(lambda part: model.family.mean_statistics(part.states, part.weights))


def shrunk_means(model: Model[Family], data: Dataset, means: Array | None = None) -> Array:
    """Return the means of the columns with two more rows spread over all values, so that none has a single value.

    `means` are those of the present cells, where they are known (see `present_means`).
    """
    variables, total = model.variables, data.total_weight
    middle: Array | float = 0.0
    if not variables.real:
        middle = np.repeat(1.0 / np.array(variables.sizes), variables.sizes)
        if _have_means(variables):
            middle = np.array(variables.scores).mean(axis=1)
    return (total * (present_means(data) if means is None else means) + 2.0 * middle) / (total + 2.0)


def spin_system(form: Ising) -> tuple[Array, ...]:
    """Return biases and couplings of the spins as kernels take them: a matrix of a dense graph, else along edges."""
    if form.graph.is_dense:
        return form.fields, form.graph.matrix(form.couplings)
    indptr, heads, ids = form.graph.csr
    return form.fields, indptr, heads, form.couplings[ids]
