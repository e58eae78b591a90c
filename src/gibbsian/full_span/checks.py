"""What the functions of this room refuse before they begin, in one sentence that names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError, DataError

DTYPES = ("float64", "float32")


def plain(value: Any) -> Any:
    """Return a NumPy number as Python's own, which messages show as people write it.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.checks import plain
    >>> plain(np.int64(1)), plain("a")
    (1, 'a')
    """
    return value.item() if isinstance(value, np.generic) else value


def check_number(name: str, value: Any) -> None:
    """Refuse what is not a number; truth values are none.

    Examples
    --------
    >>> from gibbsian.full_span.checks import check_number
    >>> check_number("epsilon", "a")
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: epsilon='a' must be a number
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ArgumentError(f"{name}={plain(value)!r} must be a number")


def check_callback(callback: Any) -> None:
    """Refuse a callback that cannot be called.

    Examples
    --------
    >>> from gibbsian.full_span.checks import check_callback
    >>> check_callback(3)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: callback=3 must be None or a function of a step's number and the step
    """
    if callback is not None and not callable(callback):
        raise ArgumentError(
            "must be None or a function of a step's number and the step", argument="callback", value=plain(callback)
        )


def table_dtype(dtype: Any) -> np.dtype:
    """Return the dtype of the tables of a fit, given by name, as a NumPy type or as a dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.checks import table_dtype
    >>> table_dtype("float32") == table_dtype(np.float32)
    True
    """
    try:
        known = None if dtype is None else np.dtype(dtype)
    except TypeError:
        known = None
    if known is None or known.name not in DTYPES or not known.isnative:
        raise ArgumentError(
            f"must be one of {', '.join(DTYPES)}", argument="dtype", value=dtype if known is None else known.name
        )
    return known


def checked_counts(counts: np.ndarray | Sequence[float], n_states: int) -> np.ndarray:
    """Return how often each state was seen as an array, after a check.

    Examples
    --------
    >>> from gibbsian.full_span.checks import checked_counts
    >>> checked_counts([3, -1], 2)
    Traceback (most recent call last):
        ...
    gibbsian.errors.DataError: counts holds negative, NaN or infinite values: give how often each state was seen
    """
    try:
        counts = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("counts holds something that is no number", "give how often each state was seen") from None
    if counts.shape != (n_states,):
        raise DataError(f"counts has shape {counts.shape} but there are {n_states} states", "give one count each")
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise DataError("counts holds negative, NaN or infinite values", "give how often each state was seen")
    if counts.sum() < 1.0:
        raise DataError(f"counts add up to {counts.sum():.3g}", "give at least one sample")
    return counts


def check_known(settings: Iterable[str], *functions: Callable[..., Any]) -> None:
    """Refuse a setting that is no keyword of any of the functions.

    Examples
    --------
    >>> from gibbsian.full_span import fit_full_span
    >>> from gibbsian.full_span.checks import check_known
    >>> check_known({"epsilom": 1e-3}, fit_full_span)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: setting 'epsilom' is not known: use some of algorithm, epsilon, ...
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [one for function in functions for one in inspect.signature(function).parameters.values()]
    known = dict.fromkeys(one.name for one in parameters if one.kind is keyword)
    if unknown := [name for name in settings if name not in known]:
        raise ArgumentError(f"setting {unknown[0]!r} is not known", f"use some of {', '.join(known)}")


def listed_candidates(candidates: Any) -> list[Mapping[str, Any]]:
    """Return candidates as a list, after a check that each is a set of settings.

    Examples
    --------
    >>> from gibbsian.full_span.checks import listed_candidates
    >>> listed_candidates({"l2": 0.1})
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: candidates is one set of settings: give a list of them, [{...}, {...}]
    """
    if isinstance(candidates, Mapping):
        raise ArgumentError("candidates is one set of settings", "give a list of them, [{...}, {...}]")
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise ArgumentError(
            "must be a list of sets of settings, [{...}, {...}]", argument="candidates", value=plain(candidates)
        )
    listed = list(candidates)
    if not listed:
        raise ArgumentError("candidates is empty", "give at least one set of settings")
    for number, settings in enumerate(listed):
        if not isinstance(settings, Mapping):
            raise ArgumentError(f"candidates[{number}]={plain(settings)!r} must be a set of settings, {{name", "value}")
    return listed
