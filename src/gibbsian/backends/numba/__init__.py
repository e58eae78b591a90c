"""The CPU twin: Numba kernels, cached on disk, threaded over rows or chains. Depends on NumPy and Numba only.

Numba keeps compiled kernels in the folder that ``NUMBA_CACHE_DIR`` names, else beside their sources, else in the user's
cache folder. Where none of them can be written, they are kept until the process ends.
"""

import tempfile

import numba


def _kernel() -> None:
    """Stand for any kernel of this folder."""


try:
    numba.njit(cache=True)(_kernel)
except RuntimeError:  # Numba finds no folder, and would refuse the import of every kernel
    _KEPT_HERE = tempfile.TemporaryDirectory(prefix="gibbsian-kernels-")
    numba.config.CACHE_DIR = _KEPT_HERE.name  # type: ignore[attr-defined]
