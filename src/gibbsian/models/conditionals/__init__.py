"""Rows bound to a discrete family, for losses of the log-odds of each variable given all others, where log Z cancels.

Examples are pseudolikelihood, ratio matching, probability flow and interaction screening.
"""

from gibbsian.models.conditionals.base import Conditionals, Loss, Mapped, WeightedRows
from gibbsian.models.conditionals.pairs import Pairs, bind_pairs, pairs_by_block
from gibbsian.models.conditionals.products import CliqueConditionals, QuadratureConditionals, SpanConditionals
from gibbsian.models.conditionals.tables import bind_tables

__all__ = [
    "CliqueConditionals",
    "Conditionals",
    "Loss",
    "Mapped",
    "Pairs",
    "QuadratureConditionals",
    "SpanConditionals",
    "WeightedRows",
    "bind_pairs",
    "bind_tables",
    "pairs_by_block",
]
