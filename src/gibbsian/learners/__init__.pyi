from gibbsian.learners import callbacks as callbacks
from gibbsian.learners.base import (
    LEARNERS as LEARNERS,
    Learner as Learner,
    LearnerState as LearnerState,
    as_learner as as_learner,
)
from gibbsian.learners.conditional import MCL as MCL, MCPLE as MCPLE
from gibbsian.learners.contrastive_divergence import CD as CD, PCD as PCD
from gibbsian.learners.em import EM as EM
from gibbsian.learners.hidden import break_symmetry as break_symmetry
from gibbsian.learners.mean_field import (
    InverseMeanField as InverseMeanField,
    warm_start as warm_start,
)
from gibbsian.learners.minibatch import Minibatch as Minibatch
from gibbsian.learners.moment_matching import MomentMatching as MomentMatching
from gibbsian.learners.monte_carlo_likelihood import (
    MonteCarloLikelihood as MonteCarloLikelihood,
)
from gibbsian.learners.nodewise import RISE as RISE, RPLE as RPLE, LogRISE as LogRISE, Nodewise as Nodewise
from gibbsian.learners.numbers import GraphicalLasso as GraphicalLasso
from gibbsian.learners.objective import (
    MLE as MLE,
    MPLE as MPLE,
    ObjectiveLearner as ObjectiveLearner,
    ProbabilityFlow as ProbabilityFlow,
    RatioMatching as RatioMatching,
)
from gibbsian.learners.online import Online as Online
from gibbsian.learners.online_em import OnlineEM as OnlineEM
from gibbsian.learners.recipe import Recipe as Recipe
from gibbsian.learners.result import FitResult as FitResult, HeldOut as HeldOut, Trace as Trace
from gibbsian.learners.run import Run as Run, StopRun as StopRun, run as run
from gibbsian.learners.span_dense import SpanDense as SpanDense
from gibbsian.learners.span_greedy import SpanGreedy as SpanGreedy
from gibbsian.learners.span_hidden import SpanHidden as SpanHidden
from gibbsian.learners.span_l1 import SpanL1 as SpanL1
from gibbsian.learners.span_newton import SpanNewton as SpanNewton
from gibbsian.learners.spatial import (
    SMCI as SMCI,
    SpatialPCD as SpatialPCD,
)
from gibbsian.learners.stacking import Stacking as Stacking
from gibbsian.learners.stages import Annealed as Annealed, Restarts as Restarts
from gibbsian.learners.trained import TrainingReport as TrainingReport
from gibbsian.learners.winner_take_all import WinnerTakeAll as WinnerTakeAll
