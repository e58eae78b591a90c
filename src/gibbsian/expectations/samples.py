"""Samples of a distribution: the data itself, Markov chains, exact draws, or walkers with weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from gibbsian.arrays import Floats, Integers, Slice, States
from gibbsian.backends.numba.spatial import CROSSES, N_SUMS, REFERENCE, SQUARES, TOTAL, Shares
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.estimate import Estimate
from gibbsian.models.base import Family, Model
from gibbsian.models.variables import as_codes

# Below, one sample holds nearly all the weight, and the spread of the others says nothing of its error.
MIN_FOR_SPREAD = 1.1


@dataclass(frozen=True, eq=False)
class Samples:
    """States with what each counts for, and which of them depend on each other.

    Parameters
    ----------
    states : ndarray of shape (n_samples, n_variables)
        The states, in codes 0, 1, 2 ..., or numbers where variables are real. `Samples.of` takes a `Dataset`, whatever
        its labels.
    weights : ndarray of shape (n_samples,), optional
        What each state counts for, up to a factor: importance weights, or numbers of rows. By default its `repeats`.
    groups : ndarray of shape (n_samples,), optional
        Samples with the same label may depend on each other (draws of one chain); those of different groups do not.
        By default all are independent.
    repeats : ndarray of shape (n_samples,), optional
        How many independent draws each row stands for; ones by default. Not together with `groups`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> samples = gb.expectations.Samples(np.array([[1, 1], [1, 0]]), weights=np.array([3.0, 1.0]))
    >>> samples.shares.tolist(), samples.n_independent
    ([0.75, 0.25], 2.0)
    """

    states: States
    weights: Floats | None = None
    groups: Integers | None = None
    repeats: Floats | None = None

    def __post_init__(self) -> None:
        states = _states_of(self.states)
        if states.ndim != 2 or len(states) < 1:
            raise ArgumentError(f"samples of shape {states.shape}", "use one row for each sample, and at least one")
        object.__setattr__(self, "states", states)
        for name in ("weights", "groups", "repeats"):
            if (given := getattr(self, name)) is None:
                continue
            if name != "groups":
                object.__setattr__(self, name, _checked_numbers(name, given))
            if np.shape(given) != (len(states),):
                raise ArgumentError(
                    f"{name} has shape {np.shape(given)}", f"use one number for each of {len(states)} samples"
                )
        if self.groups is not None and self.repeats is not None:
            raise ArgumentError("groups and repeats exclude each other", "give one row for each draw of a group")
        if self.weights is not None and not (np.min(self.weights) >= 0 and np.sum(self.weights) > 0):
            raise ArgumentError("weights must be zero or positive, and not all zero")
        if self.repeats is not None and not np.min(self.repeats) > 0:
            raise ArgumentError("repeats must be positive", "leave out rows that stand for no draw")
        if self.groups is not None:
            order = np.argsort(self.groups, kind="stable")
            for name in ("states", "weights", "groups"):
                if (given := getattr(self, name)) is not None:
                    object.__setattr__(self, name, np.asarray(given)[order])

    # -- where samples come from --------------------------------------------------------------------------------------
    @classmethod
    def of(cls, source: object) -> Self:
        """Take samples from a `Dataset`, an array of draws, or `Samples`.

        An array with two axes holds independent draws; one with three, chains, draws and variables.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> gb.expectations.Samples.of(gb.Dataset.read([[0, 1], [0, 1], [1, 1]])).repeats.tolist()
        [2.0, 1.0]
        >>> gb.expectations.Samples.of(np.ones((5, 10, 3))).n_independent
        5.0
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, Dataset):
            if source.has_missing:
                raise MissingValuesError("samples cannot have missing cells", "drop those rows, or fill them first")
            used = source.weights > 0
            return cls(source.states[used], source.weights[used], repeats=source.weights[used])
        draws = np.asarray(source)
        if draws.ndim != 3:
            return cls(draws)
        return cls(draws.reshape(-1, draws.shape[2]), groups=np.repeat(np.arange(len(draws)), draws.shape[1]))

    def check(self, model: Model[Family]) -> None:
        """Say what is wrong where the samples cannot be states of the model."""
        model.variables.checked(self.states, "samples")

    # -- what they count for ------------------------------------------------------------------------------------------
    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.states)

    @cached_property
    def shares(self) -> Floats:
        """Weights that sum to one."""
        weights = self.repeats if self.weights is None else self.weights
        weights = np.ones(self.n_samples) if weights is None else weights
        shares: Floats = weights / weights.sum()
        return shares

    @cached_property
    def _closes(self) -> Floats:
        """The share of its group at the last sample of each, -1 elsewhere."""
        if self.groups is None:
            return np.zeros(self.n_samples)
        ends = np.flatnonzero(np.append(self.groups[1:] != self.groups[:-1], True))
        closes = np.full(self.n_samples, -1.0)
        closes[ends] = np.diff(np.cumsum(self.shares)[ends], prepend=0.0)
        return closes

    @cached_property
    def spreads(self) -> Floats:
        """What the square of each deviation counts for in the variance of the mean, without groups."""
        return self.shares**2 if self.repeats is None else self.shares**2 / self.repeats

    def by_group(self) -> Iterator[tuple[States, Floats | None, float]]:
        """Yield the states of each group, their weights (None if they are all the same), and the group's share."""
        ends = np.flatnonzero(self._closes >= 0) + 1
        for start, end in pairwise([0, *ends.tolist()]):
            weights = None if self.weights is None else self.weights[start:end]
            yield self.states[start:end], weights, float(self._closes[end - 1])

    @property
    def n_independent(self) -> float:
        """Independent draws: groups where there are any, else samples with their repeats."""
        if self.groups is not None:
            return float(np.count_nonzero(self._closes >= 0))
        return float(self.n_samples if self.repeats is None else np.sum(self.repeats))

    @cached_property
    def effective_sample_size(self) -> float:
        """How many independent draws of equal weight would serve as well.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> gb.expectations.Samples(np.ones((2, 1)), weights=np.array([3.0, 1.0])).effective_sample_size
        1.6
        """
        squares = self.spreads if self.groups is None else self._closes[self._closes >= 0] ** 2
        return float(1.0 / squares.sum())

    def blocks(self, size: int) -> Iterator[tuple[Slice, Shares]]:
        """Cut the samples into blocks, with what the kernels need to know of each."""
        grouped = self.groups is not None
        for start in range(0, self.n_samples, size):
            rows = slice(start, min(start + size, self.n_samples))
            yield rows, Shares(self.shares[rows], self.spreads[rows], self._closes[rows], grouped, start == 0)

    def summarise(self, sums: Floats) -> Estimate:
        """Return means from running sums (see `gibbsian.backends.numba.spatial.accumulate`)."""
        shift = sums[:, TOTAL]
        squares = sums[:, SQUARES] - 2 * shift * sums[:, CROSSES] + shift**2 / self.effective_sample_size
        squares = np.maximum(squares, 0.0)
        return Estimate(sums[:, REFERENCE] + shift, np.sqrt(squares * self.correction))

    def mean_and_covariance(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the means of some quantities over the samples, and the covariance matrix of those means."""
        mean = self.shares @ values
        deviations = values - mean
        if self.groups is None:
            weighted = deviations * np.sqrt(self.spreads)[:, None]
        else:
            ends = np.flatnonzero(self._closes >= 0) + 1
            starts = np.concatenate([[0], ends[:-1]])
            weighted = np.add.reduceat(deviations * self.shares[:, None], starts, axis=0)
        return mean, weighted.T @ weighted * self.correction

    @property
    def correction(self) -> float:
        """What a sum of squared deviations from their own mean is short of, ``n / (n - 1)``.

        Where one sample holds all the weight the deviations vanish with it and say nothing: then it is NaN.
        """
        n = self.effective_sample_size
        return np.nan if n < MIN_FOR_SPREAD else n / (n - 1.0)

    def running_sums(self, size: int) -> Floats:
        """Return empty running sums for `size` statistics."""
        return np.zeros((size, N_SUMS))


def _states_of(given: npt.ArrayLike) -> States:
    """States as int8, or as float64 where they are no whole numbers."""
    if isinstance(given, np.ndarray) and given.dtype.kind == "f" and np.isfinite(given).all():
        real: Floats = given
        if (real != real.astype(np.int8)).any():
            return real
    return as_codes(given, "samples")


def _checked_numbers(name: str, given: object) -> Floats:
    try:
        numbers = np.asarray(given)
    except ValueError:  # ragged
        numbers = np.empty(0, object)
    if numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all():
        raise ArgumentError(f"{name} must be finite numbers, one for each sample")
    return numbers.astype(np.float64)
