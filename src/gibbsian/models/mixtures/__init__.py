"""Families with a hidden label: ``P(x) = sum_a w_a P_a(x)``."""
