"""Which variables interact: graphs learned from data, with a machine refitted on them.

Depends on learners and estimators. A method is one file: it chooses edges among the candidates and hands them to
`Problem.answer`, which refits; `learn.METHODS` names it.
"""

from gibbsian.structure.decimation import decimation
from gibbsian.structure.l1_path import l1_ebic
from gibbsian.structure.learn import METHODS, learn_structure
from gibbsian.structure.problem import StructureResult
from gibbsian.structure.screening import screening

__all__ = ["METHODS", "StructureResult", "decimation", "l1_ebic", "learn_structure", "screening"]
