"""Names that are loaded when they are first used, so that one fit imports one family."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def attach(
    package: str, names: Mapping[str, str], modules: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Its name.
    names : mapping of str to str
        For each public name the module that defines it.
    modules : tuple of str, default=()
        Modules of the package that are public themselves.

    Examples
    --------
    >>> from gibbsian.lazy import attach
    >>> getattr_, dir_, all_ = attach("gibbsian", {"Graph": "gibbsian.graphs"}, ("rng",))
    >>> getattr_("Graph").__name__, all_
    ('Graph', ['Graph', 'rng'])
    """

    def load(name: str) -> Any:
        if name in names:
            return getattr(importlib.import_module(names[name]), name)
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    public = [*sorted(names), *modules]
    return load, lambda: public, public
