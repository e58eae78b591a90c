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
from typing import Any

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.data import Dataset
from gibbsian.data.minibatches import draw_seed
from gibbsian.domain import SPIN, AnyDomain, Categories, Continuum
from gibbsian.errors import ArgumentError
from gibbsian.expectations.base import Expectation
from gibbsian.expectations.there import own_generator
from gibbsian.inference.posterior import PATIENT_SECONDS, is_quick
from gibbsian.models import Model, PairwiseModel
from gibbsian.registry import Registry

CLAMPED = Registry("clamped", "gibbsian.expectations", "CLAMPED")
# exact clamped phases by the names of the models whose rows they sum
EXACT_CLAMPED = Registry("exact clamped phase", "gibbsian.expectations", "EXACT_CLAMPED")


def as_clamped(
    clamped: str | Expectation | None, model: Model, data: Dataset, patience: float = PATIENT_SECONDS
) -> Expectation:
    """Turn a registered name into a clamped expectation.

    None chooses the exact one where that is predicted to take no longer than `patience`, in seconds, else chains.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.clamped import as_clamped
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> as_clamped(None, model, data)
    ClampedExact(max_seconds=10.0)
    >>> as_clamped("mean-field", model, data).max_iter
    100
    """
    if clamped is None:
        return CLAMPED.create("exact" if is_quick(model, data, patience) else "chains")
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
    shares: np.ndarray
    constant: np.ndarray
    pointers: np.ndarray
    cells: np.ndarray
    n_rows: int

    @classmethod
    def of(cls, model: Model, data: Dataset) -> ClampedRows:
        """Split the data."""
        shares, constant = data.weights / data.total_weight, np.zeros_like(model.theta)
        holed = np.zeros(data.n_states, bool) if data.missing is None else data.missing.any(axis=1)
        whole, holed = np.flatnonzero(~holed & (shares > 0)), np.flatnonzero(holed & (shares > 0))
        if len(whole):
            constant = model.mean_statistics(data.states[whole], shares[whole]) * shares[whole].sum()
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


def _filled(frequencies: list[np.ndarray], rng: np.random.Generator, data: Dataset) -> Dataset:
    """Fill missing cells by the frequencies of their columns."""
    assert data.missing is not None
    states = fill_cells(data.states, data.missing, frequencies, data.domain, rng)
    return dataclasses.replace(data, states=states, missing=None)


def _filled_there(frequencies: list[np.ndarray], seed: np.ndarray, data: Dataset) -> Dataset:
    return _filled(frequencies, own_generator(seed, data), data) if data.has_missing else data


def column_frequencies(data: Dataset) -> list[np.ndarray]:
    """Return how often each value is present in each column, uniform where none is; of a continuum the values."""
    if isinstance(data.domain, Continuum):
        return [data.states[~data.missing[:, i], i] for i in range(data.n_variables)]  # type: ignore[index]
    counted = data.reduce(_value_weights)
    return [
        counts / counts.sum() if counts.sum() > 0 else np.full(counts.size, 1.0 / counts.size) for counts in counted
    ]


def _value_weights(data: Dataset) -> tuple[np.ndarray, ...]:
    """The weight of the rows that show each value of each column."""
    codes = data.domain.to_codes(data.states)
    present = np.ones(codes.shape, bool) if data.missing is None else ~data.missing
    return tuple(
        np.bincount(codes[present[:, i], i], data.weights[present[:, i]], minlength=size)
        for i, size in enumerate(data.domain.cardinalities(data.n_variables))
    )


def fill_cells(
    states: np.ndarray, missing: np.ndarray, frequencies: list[np.ndarray], domain: AnyDomain, rng: np.random.Generator
) -> np.ndarray:
    """Return the states with missing cells drawn by the frequencies of their columns."""
    if isinstance(domain, Continuum):
        filled = states.copy()
        for i in np.flatnonzero(missing.any(axis=0)):
            filled[missing[:, i], i] = rng.choice(frequencies[i], int(missing[:, i].sum()))
        return filled
    codes = np.array(domain.to_codes(states))
    for i in np.flatnonzero(missing.any(axis=0)):
        codes[missing[:, i], i] = rng.choice(len(frequencies[i]), int(missing[:, i].sum()), p=frequencies[i])
    return domain.from_codes(codes)


def present_means(data: Dataset) -> np.ndarray:
    """Return the mean of the present cells of each column; the middle of the domain where a column has none.

    Of categories these are the frequencies of their values, column after column.
    """
    if isinstance(data.domain, Categories):
        return np.concatenate(column_frequencies(data))
    if not data.has_missing:
        return data.mean(_column_means)
    sums, totals = data.reduce(_present_sums)
    sizes = data.domain.cardinalities(data.n_variables)
    ends = [data.domain.from_codes(np.array([code])) for code in (np.zeros_like(sizes), sizes - 1)]
    middle = (ends[0][0].astype(np.float64) + ends[1][0]) / 2
    return np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), middle)


def _column_means(data: Dataset) -> np.ndarray:
    """The means of complete rows."""
    shares, twins = data.weights / data.total_weight, twin("moments")
    if twins is not None and data.states.dtype == np.int8:
        return twins.column_means(data.states, shares)
    return np.einsum("m,mi->i", shares, data.states)


def _present_sums(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The sums of the present cells of each column, and their weight."""
    present = np.ones(data.states.shape, bool) if data.missing is None else ~data.missing
    sums = np.einsum("m,mi,mi->i", data.weights, present, data.states)
    return sums, np.einsum("m,mi->i", data.weights, present)


def mean_statistics(model: Model, data: Dataset) -> np.ndarray:
    """Return the mean statistics of complete rows."""
    return data.mean(lambda part: model.mean_statistics(part.states, part.weights))


def shrunk_means(model: Model, data: Dataset, means: np.ndarray | None = None) -> np.ndarray:
    """Return the means of the columns with two more rows spread over all values, so that none has a single value.

    `means` are those of the present cells, where they are known.
    """
    domain: Any = model.domain
    total = data.total_weight
    middle = (domain.low + domain.high) / 2 if domain.two_valued else 0.0
    if isinstance(domain, Categories):
        sizes = domain.cardinalities(data.n_variables)
        middle = np.repeat(1.0 / sizes, sizes)
    return (total * (present_means(data) if means is None else means) + 2.0 * middle) / (total + 2.0)


def from_spins(model: PairwiseModel, spins: np.ndarray) -> np.ndarray:
    """Return spins in the values of the model's domain."""
    low, scale = np.int8(model.domain.low), np.int8(SPIN.gap // model.domain.gap)
    return (spins - np.int8(SPIN.low)) // scale + low


def spin_system(model: PairwiseModel) -> tuple[np.ndarray, ...]:
    """Return biases and couplings of the spins: a matrix of a dense model, else along edges."""
    spin, _ = model.to_domain(SPIN)
    if model.is_dense:
        return spin.biases, spin.coupling_matrix
    indptr, heads, ids = model.graph.csr
    return spin.biases, indptr, heads, spin.couplings[ids]
