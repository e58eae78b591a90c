"""Exact inference on planar graphs by Pfaffians (YU20 section 4.1); all code for planar graphs is in this folder.

The price list finds the engine by its registered name. The region "planar" of spatial integration sums with it.
"""
