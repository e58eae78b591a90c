"""Warnings that point to the line of the caller, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings

# Frames of these packages are ours or run ours (pipelines, searches).
OUR_PACKAGES = ("gibbsian", "sklearn")


def notify(sentence: str, category: type[Warning]) -> None:
    """Warn at the nearest line outside the library.

    Examples
    --------
    >>> import warnings
    >>> from gibbsian.errors import DegenerateDataWarning
    >>> from gibbsian.mixtures.notices import notify
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     notify("two columns are equal", DegenerateDataWarning)
    >>> print(caught[0].message)
    two columns are equal
    """
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in OUR_PACKAGES
