"""Kernels through PyTorch, with the names and contracts of `backends.numba`; loops that it cannot fuse are Triton's.

Importing a module of this folder imports torch, and nothing else does: ask `gibbsian.backends.device.twin` for one.
"""
