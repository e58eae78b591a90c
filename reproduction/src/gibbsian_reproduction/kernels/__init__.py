"""Numba kernels that only the experiments use: whole learning curves and the algorithms as printed."""
