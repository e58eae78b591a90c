"""`scipy.special`, loaded when a function in it is first called, and without NumPy's Fortran tools that it loads."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from gibbsian.lazy import put_off

FUNCTIONS = (
    "entr",
    "expit",
    "gammaln",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "pdtrc",
    "softmax",
    "stdtrit",
    "xlogy",
)


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in FUNCTIONS:
        raise AttributeError(name)
    return lambda *args, **how: _function(name)(*args, **how)


@cache
def _function(name: str) -> Any:
    with put_off("numpy.f2py"):
        return getattr(import_module("scipy.special"), name)
