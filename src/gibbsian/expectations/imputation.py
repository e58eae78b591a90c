"""Missing cells filled by the columns alone, and what the present cells say of the columns."""

from __future__ import annotations

import dataclasses
from functools import partial
from zlib import crc32

import numpy as np

from gibbsian.arrays import Floats, Mask, States
from gibbsian.backends.device import twin
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.models.base import ExponentialFamily, Family, Model
from gibbsian.models.variables import CUT, Variables
from gibbsian.rng import Key


def fill_at_random(data: Rows, key: Key) -> Rows:
    """Fill the missing cells with values of their column drawn by weight; uniformly where a column has none.

    A start for chains, and no more: the cells are filled independently of each other.
    """
    if not data.has_missing:
        return data
    return data.map(partial(_filled, column_frequencies(data), key))


def _filled(frequencies: list[Floats], key: Key, data: Dataset) -> Dataset:
    """Fill missing cells by the frequencies of their columns."""
    if data.missing is None:
        return data
    rng = key.fold(fingerprint_of(data)).generator()
    states = fill_cells(data.states, data.missing, frequencies, data.variables, rng)
    return dataclasses.replace(data, states=states, missing=None)


def fingerprint_of(data: Dataset) -> int:
    """Return a number that the rows of a partition decide: their streams depend on it, and not on who holds them."""
    holes = b"" if data.missing is None else data.missing.tobytes()
    return crc32(holes, crc32(np.ascontiguousarray(data.states).tobytes()))


def column_frequencies(data: Rows) -> list[Floats]:
    """Return how often each value is present in each column, uniform where none is; of real numbers the values."""
    if data.variables.real:
        _require_values(data.variables)
        here = in_memory(data)
        return [here.states[~here.holes[:, i], i] for i in range(here.n_variables)]
    counted = data.reduce(_value_weights)
    return [
        counts / counts.sum() if counts.sum() > 0 else np.full(counts.size, 1.0 / counts.size) for counts in counted
    ]


def _require_values(variables: Variables) -> None:
    if 0 in variables.sizes:
        raise CodingError("this needs discrete values, but the variables are real numbers", CUT)


def in_memory(rows: Rows) -> Dataset:
    """Return rows that are in memory, or refuse others."""
    if not isinstance(rows, Dataset):
        raise ArgumentError("needs rows in memory, unless it is inside a RestartedPerCall", argument="clamp")
    return rows


def _value_weights(data: Dataset) -> tuple[Floats, ...]:
    """The weight of the rows that show each value of each column."""
    codes, present = data.states, ~data.holes
    return tuple(
        np.bincount(codes[present[:, i], i], data.weights[present[:, i]], minlength=size).astype(np.float64)
        for i, size in enumerate(data.variables.sizes)
    )


def fill_cells(
    states: States, missing: Mask, frequencies: list[Floats], variables: Variables, rng: np.random.Generator
) -> States:
    """Return the states with missing cells drawn by the frequencies of their columns (see `column_frequencies`)."""
    filled = states.copy()
    for i in np.flatnonzero(missing.any(axis=0)):
        values, shares = (frequencies[i], None) if variables.real else (len(frequencies[i]), frequencies[i])
        filled[missing[:, i], i] = rng.choice(values, int(missing[:, i].sum()), p=shares)
    return filled


def _have_means(variables: Variables) -> bool:
    """Whether the mean of a column says all of how its values are distributed, or all there is to say."""
    return variables.real or (variables.two_valued and variables.scores is not None)


def present_means(data: Rows) -> Floats:
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


def _column_means(data: Dataset) -> Floats:
    """The mean codes, or numbers, of complete rows."""
    shares, twins = data.weights / data.total_weight, twin("moments")
    if twins is not None and data.states.dtype == np.int8:
        found: Floats = twins.column_means(data.states, shares)
        return found
    means: Floats = np.einsum("m,mi->i", shares, data.states)
    return means


def _present_sums(data: Dataset) -> tuple[Floats, Floats]:
    """The sums of the present cells of each column, and their weight."""
    present = ~data.holes
    sums = np.einsum("m,mi,mi->i", data.weights, present, data.states)
    return sums, np.einsum("m,mi->i", data.weights, present)


def mean_statistics(model: Model[ExponentialFamily], data: Rows) -> Floats:
    """Return the mean statistics of complete rows."""
    return data.mean(lambda part: model.family.mean_statistics(part.states, part.weights))


def shrunk_means(model: Model[Family], data: Rows, means: Floats | None = None) -> Floats:
    """Return the means of the columns with two more rows spread over all values, so that none has a single value.

    `means` are those of the present cells, where they are known (see `present_means`).
    """
    variables, total = model.variables, data.total_weight
    middle: Floats | float = 0.0
    if not variables.real:
        middle = np.repeat(1.0 / np.array(variables.sizes), variables.sizes)
        if _have_means(variables):
            middle = np.array(variables.scores).mean(axis=1)
    return (total * (present_means(data) if means is None else means) + 2.0 * middle) / (total + 2.0)
