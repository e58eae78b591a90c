"""The CPU twin: Numba kernels, cached on disk, threaded over rows or chains. Depends on NumPy and Numba only.

Numba keeps compiled kernels in the folder that ``NUMBA_CACHE_DIR`` names, else beside their sources, else in the user's
cache folder. Where none of them can be written, they are kept until the process ends.
"""

import tempfile
from collections.abc import Callable
from functools import cached_property
from typing import Any

from gibbsian.lazy import put_off, uncollected

with put_off("yaml", "importlib.metadata"):
    import numba
    from numba.core.caching import FunctionCache
    from numba.core.registry import CPUDispatcher
    from numba.core.runtime import rtsys


class KernelCache(FunctionCache):
    """A kernel on disk; it is looked for when it is called, and loaded without what Numba needs to compile others."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel; None where there is none: to compile it, Numba loads its tables of all that it knows."""
        super().__init__(self._function)
        rtsys.initialize(target_context)  # what kernels allocate memory with
        # kernels name the modules of what they call, and need nothing of them
        with self._guard_against_spurious_io_errors(), put_off("numba.np.arrayobj", "numba.np.arraymath"):
            return self._load_overload(sig, target_context)


class Kernel(CPUDispatcher):
    """A function that is compiled when it is called, from Python or from other kernels."""

    compile = uncollected()(CPUDispatcher.compile)

    def _compilation_chain_init_hook(self) -> None:
        """Look for no packages that extend Numba: kernels need none."""

    @cached_property
    def _inside(self) -> Any:
        """The same for calls from other kernels: without a way in from Python it takes half of the time."""
        return CPUDispatcher(self.py_func, targetoptions=self.targetoptions | {"no_cpython_wrapper": True})

    @property
    def _numba_type_(self) -> Any:
        """What other kernels see."""
        return self._inside._type


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is called, as ``numba.njit`` does; with `cache`, look on disk first."""
    options |= {"nopython": True, "no_cfunc_wrapper": True}  # a copy for callers in C takes a tenth of the time

    def decorate(function: Callable[..., Any]) -> Any:
        kernel: Any = Kernel(function, targetoptions=options)
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
