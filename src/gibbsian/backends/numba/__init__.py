"""The CPU twin: Numba kernels, cached on disk, threaded over rows or chains. Depends on NumPy and Numba only.

Numba keeps compiled kernels in the folder that ``NUMBA_CACHE_DIR`` names, else beside their sources, else in the user's
cache folder. Where none of them can be written, they are kept until the process ends.
"""

import tempfile
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys


class KernelCache(FunctionCache):
    """A kernel on disk; it is looked for when it is called, and loaded without what Numba needs to compile others."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel; None where there is none: to compile it, Numba loads its tables of all that it knows."""
        super().__init__(self._function)
        rtsys.initialize(target_context)  # what kernels allocate memory with
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is called, as ``numba.njit`` does; with `cache`, look on disk first."""
    options["no_cfunc_wrapper"] = True  # a second copy of each kernel, for callers in C, takes a tenth of the time

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if cache:
            kernel._cache = KernelCache(function)
        return kernel

    return decorate


def _kernel() -> None:
    """Stand for any kernel of this folder."""


try:
    FunctionCache(_kernel)
except RuntimeError:  # Numba finds no folder, and would refuse the import of every kernel
    _KEPT_HERE = tempfile.TemporaryDirectory(prefix="gibbsian-kernels-")
    numba.config.CACHE_DIR = _KEPT_HERE.name  # type: ignore[attr-defined]
