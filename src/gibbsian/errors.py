"""Named errors and warnings, which carry their parts.

Each has a reason and, where there is one, the argument at fault with its value and a remedy. ``str`` words them for
Python; the command line words them in flags (`sentence`). Code that a reader may type stands between backticks in the
text, so that each can spell it its own way. This module imports nothing of the library, so that any other may use it.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

# Frames of these packages are ours or run ours (pipelines, searches): a warning points at whoever called them.
OUR_PACKAGES = ("gibbsian", "sklearn")
_CODE = re.compile(r"`([^`]*)`")
# A cell, a name or a number may have any length, a sentence has not.
_LONG_WORD = re.compile(r"(\S{120})\S{160,}(\S{20})")
MOST_OF_A_VALUE = 200
_NOT_GIVEN = object()


def spelled(text: str, spell: Callable[[str], str] = str) -> str:
    """Write every piece of code in a text, which stands between backticks, the way `spell` does; without one, plainly.

    Examples
    --------
    >>> from gibbsian.errors import spelled
    >>> spelled("raise `max_iter`", lambda code: "--" + code.replace("_", "-"))
    'raise --max-iter'
    """
    return _CODE.sub(lambda found: spell(found[1]), text)


class Message:
    """What errors and warnings say, in parts.

    Parameters
    ----------
    reason : str
        What is wrong, as the rest of a sentence about the argument, or as a whole one.
    remedy : str, default=""
        What to do about it.
    argument : str, optional
        The setting at fault.
    value : Any, optional
        What it was given.

    Examples
    --------
    >>> from gibbsian.errors import ArgumentError
    >>> error = ArgumentError("must be at least 1", argument="max_iter", value=0, remedy="leave `max_iter` out")
    >>> str(error)
    'max_iter=0 must be at least 1: leave max_iter out'
    >>> error.sentence(lambda code: "--" + code.replace("_", "-").replace("=", " "))
    '--max-iter 0 must be at least 1: leave --max-iter out'
    """

    def __init__(self, reason: str = "", remedy: str = "", *, argument: str | None = None, value: object = _NOT_GIVEN):
        super().__init__(reason)  # type: ignore[call-arg]  # of the exception beside it
        self.reason = reason
        self.remedy = remedy
        self.argument = argument
        self.value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value

    def sentence(self, spell: Callable[[str], str] = str) -> str:
        """Word the parts, with every piece of code spelled by `spell`."""
        given = "" if self.value is _NOT_GIVEN else f"={' '.join(_shown(self.value).split())}"
        subject = "" if self.argument is None else f"`{self.argument}{given}` "
        text = f"{subject}{self.reason}" + (f": {self.remedy}" if self.remedy else "")
        return _LONG_WORD.sub(lambda word: f"{word[1]}...{word[2]}", spelled(text, spell))

    def also(self, remedy: str) -> str:
        """Return the remedy with another one after it."""
        return f"{self.remedy}, or {remedy}" if self.remedy else remedy

    def __str__(self) -> str:
        return self.sentence()

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.reason, self.remedy, self.argument, self.value is not _NOT_GIVEN, self.value)

    def __deepcopy__(self, memo: object) -> Any:
        return self


def _shown(value: Any) -> str:
    """Write a value, what is long with its end left out."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return f"a number of {value.bit_length()} bits"
    return text if len(text) <= MOST_OF_A_VALUE else f"{text[:MOST_OF_A_VALUE]}..."


def _rebuilt(kind: type, reason: str, remedy: str, argument: str | None, given: bool, value: object) -> Any:
    """Put a message together again after a journey between processes."""
    return kind(reason, remedy, argument=argument, value=value if given else _NOT_GIVEN)


class GibbsianError(Message, Exception):
    """Base class of every error that gibbsian raises on purpose.

    Examples
    --------
    >>> from gibbsian.errors import GibbsianError, DataError
    >>> issubclass(DataError, GibbsianError) and issubclass(DataError, ValueError)
    True
    """


class DataError(GibbsianError, ValueError):
    """The data cannot be used as it is (a bad column, row, value or weight)."""


class CellTypeError(DataError, TypeError):
    """A cell holds neither a number nor a label."""


class CodingError(DataError):
    """The values are not the ones of the coding that was declared, recognised or fitted."""


class ConstantColumnError(DataError):
    """A column has one value only, so its parameters have no finite estimate."""


class MissingValuesError(DataError):
    """Missing cells reached something that cannot handle them."""


class MaximumDoesNotExistError(DataError):
    """The likelihood has no finite maximum: some parameters would run to infinity."""


class ArgumentError(GibbsianError, ValueError):
    """An argument has a value that cannot be used."""


class GraphError(ArgumentError):
    """A graph is malformed or names a node that does not exist."""


class TooExpensiveError(GibbsianError, ValueError):
    """The predicted time or memory is beyond the limit; nothing was allocated."""


class ClusterError(GibbsianError, RuntimeError):
    """A cluster cannot be reached, is lost, or has workers that do not fit."""


class FileFormatError(GibbsianError, ValueError):
    """A file is truncated, foreign, or written by a newer version."""


class StorageError(GibbsianError, OSError):
    """A file could not be written; what stood there before is unchanged."""


class GibbsianWarning(Message, UserWarning):
    """Base class of every warning that gibbsian gives.

    Examples
    --------
    >>> from gibbsian.errors import ConvergenceWarning, GibbsianWarning
    >>> issubclass(ConvergenceWarning, GibbsianWarning)
    True
    """


class ConvergenceWarning(GibbsianWarning):
    """A fit stopped before its gradient was small enough."""


class UntrainedWarning(GibbsianWarning):
    """A fit has ended, but its model does not reproduce the data, or that could not be checked."""


class DegenerateDataWarning(GibbsianWarning):
    """Nearly constant or duplicate columns: the fit is possible but poorly determined."""


class MaximumDoesNotExistWarning(GibbsianWarning):
    """The parameters seem to run to infinity, or do so up to a penalty."""


class PenaltyWarning(GibbsianWarning):
    """Without a penalty the data have no finite maximum, so that one was added."""


class EstimatedScoreWarning(GibbsianWarning):
    """A score rests on a sum that is estimated, because it is out of reach of exact ones."""


class MixingWarning(GibbsianWarning):
    """Monte Carlo chains disagree or are too short for the error they report."""


class MissingValuesWarning(GibbsianWarning):
    """Rows or cells were left out because they carry no information."""


class DeviceWarning(GibbsianWarning):
    """A fit that was asked for on a device runs on the CPU."""


class FontWarning(GibbsianWarning):
    """No font of this machine has some letters of a picture."""


class IdentifierWarning(GibbsianWarning):
    """A column was left out because it names the rows of a table and says nothing else of them."""


def notify(warning: GibbsianWarning) -> None:
    """Warn at the nearest line outside the library, however deep inside it the warning arises.

    Examples
    --------
    >>> import warnings
    >>> from gibbsian.errors import DegenerateDataWarning, notify
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     notify(DegenerateDataWarning("class 1 has lost all its rows", "ask for fewer classes"))
    >>> str(caught[0].message)
    'class 1 has lost all its rows: ask for fewer classes'
    """
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OUR_PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
