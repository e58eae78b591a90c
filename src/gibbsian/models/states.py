"""One check of states for all models, samplers and samples: their shape, and that every cell is a value.

Kernels index tables with the cells, so a foreign number would read foreign memory. Of int8 states the check is two or
three passes of vector code, far below the cost of anything done with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gibbsian.domain import AnyDomain, Categories, Continuum, Domain
from gibbsian.errors import ArgumentError, CodingError, MissingValuesError


class Variables(Protocol):
    """What the check has to know of a model."""

    @property
    def domain(self) -> AnyDomain:
        """The values."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""


def checked_states(model: Variables, x: Any, name: str = "x", zeros: bool = False) -> np.ndarray:
    """Return states as int8, one row each, or say what is wrong with them.

    Parameters
    ----------
    model : Model
        Whose states.
    x : array-like
        The states; int8 arrays are not copied.
    name : str
        What messages call them.
    zeros : bool
        Whether a cell may be zero in a domain that lacks it: a missing one, which adds nothing to products.
    """
    states = real_numbers(x, name) if isinstance(model.domain, Continuum) else whole_numbers(x, name)
    if states.ndim != 2:
        raise ArgumentError(
            f"{name} has shape {states.shape}", f"give states as rows, in the shape (n_states, {model.n_variables})"
        )
    if states.shape[1] != model.n_variables:
        raise ArgumentError(f"{name} has {states.shape[1]} variables but the model has {model.n_variables}")
    check_values(model.domain, states, name, zeros)
    return states


def checked_codes(model: Variables, codes: Any) -> np.ndarray:
    """Return codes of rows as int8, or say what is wrong with them; the numbers themselves where variables are real."""
    if isinstance(model.domain, Continuum):
        return checked_states(model, codes)
    return checked_states(_Coded(Categories(tuple(model.domain.cardinalities(model.n_variables).tolist()))), codes)


@dataclass(frozen=True)
class _Coded:
    """Variables whose values are their codes."""

    domain: Categories

    @property
    def n_variables(self) -> int:
        return len(self.domain.sizes)


def whole_numbers(x: Any, name: str) -> np.ndarray:
    """Return numbers as int8 without changing any."""
    try:
        given = np.asarray(x)
    except ValueError:
        raise ArgumentError(f"{name} has rows of different lengths", "give states as a table") from None
    if given.dtype == np.int8:
        return given
    if given.dtype.kind == "O":
        with contextlib.suppress(TypeError, ValueError):
            given = given.astype(np.float64)
    if given.dtype.kind not in "biuf":
        raise CodingError(f"{name} does not hold numbers", "read labels with `Dataset.read`")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise MissingValuesError(f"{name} has missing cells (NaN)", "drop those rows, or fill them first")
    with np.errstate(invalid="ignore"):
        states = given.astype(np.int8)
    if (changed := states != given).any():
        raise CodingError(
            f"{name} holds {given[changed].flat[0].item()}, which no state does",
            "give the numbers of the model's domain (-1 and 1, 0 and 1, or codes 0, 1, 2 ...), or a Dataset",
        )
    return states


def real_numbers(x: Any, name: str) -> np.ndarray:
    """Return finite numbers as float64."""
    try:
        numbers = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise CodingError(f"{name} does not hold numbers", "read it with `Dataset.read`") from None
    if not np.isfinite(numbers).all():
        raise MissingValuesError(f"{name} has cells that are not finite", "drop those rows, or fill them first")
    return numbers


def check_values(domain: AnyDomain, states: np.ndarray, name: str, zeros: bool = False) -> None:
    """Raise unless every cell of int8 states is a value of its variable."""
    if states.size == 0:
        return
    if isinstance(domain, Continuum):
        outside = (states < domain.low) | (states > domain.high)
        if domain.bounded and outside.any():
            row, column = np.argwhere(outside)[0].tolist()
            raise CodingError(
                f"{name} holds {states[row, column]:g} for variable {column}",
                f"the support is from {domain.low:g} to {domain.high:g}",
            )
        return
    low, high = int(states.min()), int(states.max())
    if isinstance(domain, Domain):
        # between two neighbouring values, or -1 and 1 without 0, there is nothing else: cheaper than a comparison
        fits = domain.low <= low and high <= domain.high
        if fits and (zeros or domain.gap == 1 or np.count_nonzero(states) == states.size):
            return
        wrong = (states != domain.low) & (states != domain.high)
        advice = f"the values of the {domain.name} domain are {domain.low} and {domain.high}"
    else:
        sizes = domain.cardinalities(states.shape[1])
        if low >= 0 and (high < sizes.min() or (states.max(axis=0) < sizes).all()):
            return
        wrong = (states < 0) | (states >= sizes)
        advice = ""
    row, column = np.argwhere(wrong)[0].tolist()
    if not advice:
        advice = f"give its code, from 0 to {sizes[column] - 1}, or a Dataset"
    raise CodingError(f"{name} holds {states[row, column]} for variable {column}", f"{advice}")


def checked_shares(weights: Any, n_states: int) -> np.ndarray:
    """Return weights of states, or equal ones where there are none, divided by their sum."""
    if n_states == 0:
        raise ArgumentError("x has no rows", "a mean needs at least one state")
    if weights is None:
        return np.full(n_states, 1.0 / n_states)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (n_states,):
        raise ArgumentError(f"weights has shape {given.shape}", f"give one for each of {n_states} states")
    return given / given.sum()


def checked_fixed(
    sizes: Sequence[int] | np.ndarray, nodes: Iterable[int], codes: Any
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return which of variables with so many values each are given, and the codes of their values."""
    n_variables, given = len(sizes), np.asarray(nodes)
    if given.size == 0:
        given = np.empty(0, np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.min(initial=0) < 0:
        raise ArgumentError(f"must be a list of numbers from 0 to {n_variables - 1}", argument="nodes", value=nodes)
    if given.max(initial=0) >= n_variables or np.unique(given).size < given.size:
        raise ArgumentError(
            f"must name variables from 0 to {n_variables - 1}, each once", argument="nodes", value=nodes
        )
    if given.size == n_variables:
        raise ArgumentError("every variable is given", "leave at least one free")
    numbers = np.asarray(codes)
    if numbers.shape != given.shape:
        raise ArgumentError(f"codes has shape {numbers.shape}", f"give one for each of {given.size} nodes")
    for node, number in zip(given.tolist(), numbers.tolist(), strict=True):
        if number not in range(int(sizes[node])):
            raise ArgumentError(f"codes gives {number!r} to variable {node}", f"its codes are 0 to {sizes[node] - 1}")
    return tuple(given.tolist()), numbers.astype(np.intp)
