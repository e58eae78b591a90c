"""`scipy.special`, loaded when a function in it is first called, and without NumPy's Fortran tools that it loads."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from gibbsian.lazy import put_off


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *args, **how: _function(name)(*args, **how)


@cache
def _function(name: str) -> Any:
    with put_off("numpy.f2py"):
        return getattr(import_module("scipy.special"), name)
