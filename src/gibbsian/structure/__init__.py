"""Which variables interact: graphs learned from data, with a machine refitted on them.

Depends on learners and estimators. A method is one file: it chooses edges among the candidates and hands them to
`Problem.answer`, which refits; `learn.METHODS` names it.
"""

from gibbsian.lazy import attach

_MODULES = {
    "gibbsian.structure.decimation": ("decimation",),
    "gibbsian.structure.l1_path": (
        "joint_l1_ebic",
        "l1_ebic",
    ),
    "gibbsian.structure.learn": (
        "METHODS",
        "learn_structure",
    ),
    "gibbsian.structure.problem": ("StructureResult",),
    "gibbsian.structure.screening": ("screening",),
}
__getattr__, __dir__, __all__ = attach(__name__, {name: module for module, names in _MODULES.items() for name in names})
