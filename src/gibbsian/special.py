"""`scipy.special`, loaded when something in it is first asked for, and without NumPy's Fortran tools that it loads."""

from importlib import import_module
from typing import Any

from gibbsian.lazy import put_off


def __getattr__(name: str) -> Any:
    with put_off("numpy.f2py"):
        return getattr(import_module("scipy.special"), name)
