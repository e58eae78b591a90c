"""What turns data into parameters, one step at a time.

A learner is an objective with an optimiser (`ObjectiveLearner`), moment matching with an expectation
(`MomentMatching`), EM, or a recipe of these under a name a practitioner knows. `run` runs any of them with a trace, a
stopping rule and callbacks. To add a learner, drop a file here that registers it. Names are imported when they are
asked for.
"""

from gibbsian.lazy import attach
from gibbsian.learners import callbacks
from gibbsian.learners.base import LEARNERS, Learner, LearnerState, as_learner
from gibbsian.learners.result import FitResult, HeldOut, Trace
from gibbsian.learners.run import Run, StopRun, run

# public name -> module that defines it
_NAMES = {
    "Annealed": "stages",
    "CD": "contrastive_divergence",
    "EM": "em",
    "FirstOrderSMCI": "spatial",
    "GraphicalLasso": "numbers",
    "Growing": "growing",
    "IndependentPair": "mean_field",
    "InverseBethe": "mean_field",
    "InverseMeanField": "mean_field",
    "LogRISE": "nodewise",
    "MCL": "conditional",
    "MCPLE": "conditional",
    "MLE": "objective",
    "MPLE": "objective",
    "Minibatch": "minibatch",
    "MomentMatching": "moment_matching",
    "NaiveMeanField": "mean_field",
    "Nodewise": "nodewise",
    "ObjectiveLearner": "objective",
    "Online": "online",
    "OnlineEM": "online_em",
    "PCD": "contrastive_divergence",
    "ProbabilityFlow": "objective",
    "RISE": "nodewise",
    "RPLE": "nodewise",
    "RatioMatching": "objective",
    "Recipe": "recipe",
    "Restarts": "stages",
    "SMCI": "spatial",
    "ScoreMatching": "numbers",
    "SemiSecondOrderPCD": "spatial",
    "SemiSecondOrderSMCI": "spatial",
    "SessakMonasson": "mean_field",
    "SpanBagging": "span_ensembles",
    "SpanDense": "span_dense",
    "SpanGreedy": "span_greedy",
    "SpanHidden": "span_hidden",
    "SpanL1": "span_l1",
    "SpanNewton": "span_newton",
    "SpanSelection": "span_ensembles",
    "SpatialPCD": "spatial",
    "Stacking": "stacking",
    "TAP": "mean_field",
    "TrainingReport": "trained",
    "WinnerTakeAll": "winner_take_all",
    "break_symmetry": "hidden",
    "warm_start": "mean_field",
}

__getattr__ = attach(__name__, {name: f"gibbsian.learners.{module}" for name, module in _NAMES.items()})[0]

__all__ = [  # the lazy names last
    "LEARNERS",
    "FitResult",
    "HeldOut",
    "Learner",
    "LearnerState",
    "Run",
    "StopRun",
    "Trace",
    "as_learner",
    "callbacks",
    "run",
    *_NAMES,
]
