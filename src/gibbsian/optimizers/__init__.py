"""Ways to walk to the minimum of a function with a gradient.

An optimiser is a pair ``init`` / ``step`` over a state made of plain arrays, so that a fit can be watched,
checkpointed and resumed between any two steps. It knows nothing of models or data; depends on NumPy only.
"""

from gibbsian.optimizers.ascent import Ascent
from gibbsian.optimizers.base import OPTIMIZERS, Optimizer, OptimizerState, StepInfo
from gibbsian.optimizers.lbfgs import LBFGS

__all__ = ["LBFGS", "OPTIMIZERS", "Ascent", "Optimizer", "OptimizerState", "StepInfo"]
