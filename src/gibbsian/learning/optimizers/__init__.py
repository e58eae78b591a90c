"""Ways to walk to the minimum of a function with a gradient.

An optimiser is a pair ``init`` / ``step`` over a state made of plain arrays, so that a fit can be watched,
checkpointed and resumed between any two steps. Those that can do without the value also ``move`` by a gradient alone
(`GradientStep`). It knows nothing of models or data; depends on NumPy only.
"""

from gibbsian.learning.optimizers.anderson import Anderson
from gibbsian.learning.optimizers.base import (
    OPTIMIZERS,
    Converged,
    Failed,
    GradientStep,
    Optimizer,
    OptimizerState,
    Outcome,
    Running,
    StepInfo,
    Stopped,
)
from gibbsian.learning.optimizers.lbfgs import LBFGS
from gibbsian.learning.optimizers.steps import Adam, Ascent, Decay, Tied

__all__ = [
    "LBFGS",
    "OPTIMIZERS",
    "Adam",
    "Anderson",
    "Ascent",
    "Converged",
    "Decay",
    "Failed",
    "GradientStep",
    "Optimizer",
    "OptimizerState",
    "Outcome",
    "Running",
    "StepInfo",
    "Stopped",
    "Tied",
]
