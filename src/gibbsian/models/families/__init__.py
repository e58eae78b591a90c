"""Families over variables side by side: pairs, products, tables, potentials, the full span, Gaussians."""
