"""Exact inference on planar graphs by Pfaffians (YU20 section 4.1): an engine of its own, asked for by nobody else.

The price list of exact engines finds it by its registered name, and the region "planar" of spatial integration sums
with it. Everything about planar graphs stands in this folder.
"""
