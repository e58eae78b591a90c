"""The CPU twin: Numba kernels, cached on disk, threaded over rows or chains. Depends on NumPy and Numba only."""

from gibbsian.startup import njit

__all__ = ["njit"]
