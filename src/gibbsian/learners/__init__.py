"""Recipes that turn data into parameters, one step at a time.

A learner is either an objective with an optimiser (`ObjectiveLearner`) or moment matching with an expectation
(`MomentMatching`); `recipes.py` gives the named ones. `run.run` runs any of them with a trace, a
stopping rule and checkpoints. To add a learner, drop a file here that registers it.
"""

from gibbsian.lazy import attach
from gibbsian.learners import callbacks
from gibbsian.learners.base import LEARNERS, Learner, LearnerState, as_learner
from gibbsian.learners.em import EM
from gibbsian.learners.growing import Growing
from gibbsian.learners.hidden import break_symmetry
from gibbsian.learners.mean_field import InverseMeanField, warm_start
from gibbsian.learners.minibatch import Minibatch
from gibbsian.learners.moment_matching import MomentMatching
from gibbsian.learners.nodewise import Nodewise
from gibbsian.learners.objective import ObjectiveLearner
from gibbsian.learners.online import Online
from gibbsian.learners.result import FitResult, HeldOut, Trace
from gibbsian.learners.run import Run, StopRun, run
from gibbsian.learners.stacking import Stacking
from gibbsian.learners.trained import TrainingReport

# learners of one family, loaded when they are first used
_LAZY = {
    "SpanBagging": "gibbsian.learners.span_ensembles",
    "SpanDense": "gibbsian.learners.span_dense",
    "SpanGreedy": "gibbsian.learners.span_greedy",
    "SpanHidden": "gibbsian.learners.span_hidden",
    "SpanNewton": "gibbsian.learners.span_newton",
    "SpanSelection": "gibbsian.learners.span_ensembles",
}
__getattr__ = attach(__name__, _LAZY)[0]

__all__ = [  # the lazy names last
    "EM",
    "LEARNERS",
    "FitResult",
    "Growing",
    "HeldOut",
    "InverseMeanField",
    "Learner",
    "LearnerState",
    "Minibatch",
    "MomentMatching",
    "Nodewise",
    "ObjectiveLearner",
    "Online",
    "Run",
    "Stacking",
    "StopRun",
    "Trace",
    "TrainingReport",
    "as_learner",
    "break_symmetry",
    "callbacks",
    "run",
    "warm_start",
    *_LAZY,
]
