"""Compiled inner loops: arrays in, arrays out, no classes. Depends on NumPy and Numba only."""
