"""Names that are loaded when they are first used, so that one fit imports one family."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any


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
        module = importlib.import_module(f"{package}.{name}" if homes[name] == package else str(homes[name]))
        return module if homes[name] == package else getattr(module, name)

    public = sorted(homes)
    return load, lambda: public, public


@contextmanager
def put_off(*names: str) -> Iterator[None]:
    """Let other packages that import these modules in this block load them when something in them is first asked for.

    Examples
    --------
    >>> from gibbsian.lazy import put_off
    >>> with put_off("colorsys"):
    ...     import colorsys
    >>> colorsys.rgb_to_hsv(1.0, 1.0, 1.0)      # loaded now
    (0.0, 0.0, 1.0)
    """
    stand_ins = {name: _stand_in(name) for name in names if name not in sys.modules}
    for name, stand_in in stand_ins.items():
        sys.modules[name] = stand_in
        if "." in name:  # an import makes it an attribute of its package too
            setattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2], stand_in)
    try:
        yield
    finally:
        for stand_in in stand_ins.values():
            _leave(stand_in)


def _stand_in(name: str) -> ModuleType:
    """Make a module that has what the true one has, which is loaded for it."""

    def load(attribute: str) -> Any:
        _leave(stand_in)
        return getattr(importlib.import_module(name), attribute)

    stand_in = ModuleType(name)
    stand_in.__getattr__ = load  # type: ignore[method-assign]
    return stand_in


def _leave(stand_in: ModuleType) -> None:
    """Make way for the true module, unless it is there."""
    name = stand_in.__name__
    if sys.modules.get(name) is stand_in:
        del sys.modules[name]
        if "." in name:
            delattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2])
