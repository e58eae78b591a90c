"""Recipes that turn data into parameters, one step at a time.

A learner is either an objective with an optimiser (`ObjectiveLearner`) or moment matching with an expectation
(`MomentMatching`); `recipes.py` gives the named ones. `driver.train` runs any of them with a trace, a
stopping rule and checkpoints. To add a learner, drop a file here that registers it.
"""

from gibbsian.learners.base import LEARNERS, Learner, LearnerState, as_learner
from gibbsian.learners.driver import train
from gibbsian.learners.moment_matching import MomentMatching
from gibbsian.learners.objective import ObjectiveLearner
from gibbsian.learners.result import FitResult, Trace

__all__ = [
    "LEARNERS",
    "FitResult",
    "Learner",
    "LearnerState",
    "MomentMatching",
    "ObjectiveLearner",
    "Trace",
    "as_learner",
    "train",
]
