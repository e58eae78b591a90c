"""Rows bound to a discrete model once, where log Z cancels: the log-odds of each value of each cell given the others.

Pseudolikelihood, ratio matching, probability flow and interaction screening are scalar losses of them.
"""

from gibbsian.models.conditionals.base import Conditionals, HasConditionals, Loss, Mapped, RowConditionals, WeightedRows
from gibbsian.models.conditionals.pairs import Pairs, bind_pairs, pairs_by_block
from gibbsian.models.conditionals.products import CliqueConditionals, QuadratureConditionals, SpanConditionals
from gibbsian.models.conditionals.tables import bind_tables

__all__ = [
    "CliqueConditionals",
    "Conditionals",
    "HasConditionals",
    "Loss",
    "Mapped",
    "Pairs",
    "QuadratureConditionals",
    "RowConditionals",
    "SpanConditionals",
    "WeightedRows",
    "bind_pairs",
    "bind_tables",
    "pairs_by_block",
]
