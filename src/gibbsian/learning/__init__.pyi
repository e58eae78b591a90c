from gibbsian.learning import callbacks as callbacks, objectives as objectives, optimizers as optimizers
from gibbsian.learning.base import (
    LEARNERS as LEARNERS,
    Learner as Learner,
    Fit as Fit,
    as_learner as as_learner,
)
from gibbsian.learning.averaging import PolyakMean as PolyakMean
from gibbsian.learning.em import EM as EM
from gibbsian.learning.graphical_lasso import GraphicalLasso as GraphicalLasso
from gibbsian.learning.initial import break_symmetry as break_symmetry
from gibbsian.learning.mean_field import (
    InverseMeanField as InverseMeanField,
    warm_start as warm_start,
)
from gibbsian.learning.minibatch import Minibatch as Minibatch
from gibbsian.learning.moment_matching import (
    CD as CD,
    PCD as PCD,
    SMCI as SMCI,
    MomentMatching as MomentMatching,
    SpatialPCD as SpatialPCD,
)
from gibbsian.learning.monte_carlo_likelihood import (
    MonteCarloLikelihood as MonteCarloLikelihood,
)
from gibbsian.learning.descend import Descend as Descend
from gibbsian.learning.named import (
    MCL as MCL,
    MCPLE as MCPLE,
    MLE as MLE,
    MPLE as MPLE,
    Online as Online,
    ProbabilityFlow as ProbabilityFlow,
    RatioMatching as RatioMatching,
)
from gibbsian.learning.nodewise import RISE as RISE, RPLE as RPLE, LogRISE as LogRISE, Nodewise as Nodewise
from gibbsian.learning.online_em import OnlineEM as OnlineEM
from gibbsian.learning.online_kmeans import OnlineKMeansRule as OnlineKMeansRule
from gibbsian.learning.result import FitResult as FitResult, HeldOut as HeldOut, Trace as Trace
from gibbsian.learning.run import Run as Run, StopRun as StopRun, run as run
from gibbsian.learning.span.learner import (
    SpanDense as SpanDense,
    SpanGreedy as SpanGreedy,
    SpanHidden as SpanHidden,
    SpanL1 as SpanL1,
    SpanNewton as SpanNewton,
)
from gibbsian.learning.stacking import Stacking as Stacking
from gibbsian.learning.stages import Annealed as Annealed, Restarts as Restarts
from gibbsian.learning.trained import TrainingReport as TrainingReport
