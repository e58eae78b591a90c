"""Names that are loaded when they are first used, so that one fit imports one family."""

from __future__ import annotations

import ast
import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, as the imports of its ``__init__.pyi`` say.

    The stub is the only list of its names: type checkers and editors read it, and names are loaded by it.

    Parameters
    ----------
    package : str
        Its name.
    file : str
        Its ``__init__.py``; the stub stands beside it.

    Examples
    --------
    >>> import gibbsian
    >>> from gibbsian.lazy import attach
    >>> getattr_, dir_, all_ = attach("gibbsian", gibbsian.__file__)
    >>> getattr_("Graph").__name__, all_[:2]
    ('Graph', ['BoltzmannMachine', 'Dataset'])
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text())
    homes = {name.name: part.module for part in stub.body if isinstance(part, ast.ImportFrom) for name in part.names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = load_module(f"{package}.{name}" if homes[name] == package else str(homes[name]))
        return module if homes[name] == package else getattr(module, name)

    public = sorted(homes)
    return load, lambda: public, public


@cache
def named(place: str) -> Any:
    """Return what ``"module:name"`` names; the module is loaded on first use."""
    return resolve_name(place)


@contextmanager
def uncollected() -> Iterator[None]:
    """Let Python look for no garbage meanwhile."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def load_module(name: str) -> ModuleType:
    """Import a module, which leaves no garbage: to look for it takes a tenth of the time of a first fit."""
    if name in sys.modules:  # asked for again and again
        return importlib.import_module(name)
    with uncollected():
        return importlib.import_module(name)


@contextmanager
def put_off(*names: str) -> Iterator[None]:
    """Let other packages that import these modules in this block load them when something in them is first asked for.

    A package is named before its parts. Functions that are asked for in the block already are named as in
    ``"module:one,two"``, and load their module when they are called. Where several threads run, modules are loaded as
    usual: another thread would import what only stands for a module.

    Examples
    --------
    >>> from gibbsian.lazy import put_off
    >>> with put_off("colorsys"):
    ...     import colorsys
    >>> colorsys.rgb_to_hsv(1.0, 1.0, 1.0)      # loaded now
    (0.0, 0.0, 1.0)
    """
    missing: list[str] = []
    alone = len(sys._current_frames()) == 1
    for name, functions in (name.partition(":")[::2] for name in names if alone):
        if name not in sys.modules and (spec := find_spec(name)):
            missing.append(name)
            sys.modules[name] = _StandIn(name, spec.submodule_search_locations or [], functions.split(","))
            if "." in name:  # an import makes it an attribute of its package too
                setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], sys.modules[name])
    try:
        yield
    finally:
        for name in reversed(missing):
            _leave(name)


class _StandIn(ModuleType):
    """A module that has what the true one has, which is loaded for it; functions load it when they are called."""

    def __init__(self, name: str, path: list[str], functions: list[str]):
        super().__init__(name)
        self.__path__ = path
        for function in functions:
            setattr(self, function, partial(self._call, function))

    def _call(self, function: str, *args: Any, **how: Any) -> Any:
        return self.__getattr__(function)(*args, **how)

    def __getattr__(self, attribute: str) -> Any:
        _leave(self.__name__)
        return getattr(load_module(self.__name__), attribute)


def _leave(name: str) -> None:
    """Make way for the true module and for its packages, unless they are there."""
    if isinstance(sys.modules.get(name), _StandIn):
        del sys.modules[name]
        package, _, part = name.rpartition(".")
        vars(sys.modules.get(package, ModuleType("none"))).pop(part, None)
        _leave(package)


# Packages that are loaded when something in them is first asked for: ``from gibbsian.lazy import pandas``.
if TYPE_CHECKING:
    import numpy
    import pandas
else:
    numpy, pandas = (_StandIn(name, [], []) for name in ("numpy", "pandas"))
