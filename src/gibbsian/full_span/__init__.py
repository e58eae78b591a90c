"""Learning the full-span log-linear model (TA22): which basis functions to use, and their parameters.

A fit holds two tables over all states, the dual of the model and that of the data, and changes the first in
place, one parameter at a time. This room imports nothing above `gibbsian.learners` and works on arrays of codes, which
`counted` makes of a dataset.
"""

from gibbsian.full_span.answers import SpanAnswers
from gibbsian.full_span.averaging import SpanAverage, bootstrap_average, stack
from gibbsian.full_span.counting import counted
from gibbsian.full_span.dense import Dense, DenseFit, DenseProgress, fit_dense
from gibbsian.full_span.fit import SpanFit, fit_full_span, run
from gibbsian.full_span.greedy import Greedy, SpanProgress
from gibbsian.full_span.hidden import HiddenFit, fit_hidden
from gibbsian.full_span.information import Divergence
from gibbsian.full_span.memory import predict_memory
from gibbsian.full_span.missing import FillAndFit, IncompleteRows
from gibbsian.full_span.newton import Newton, NewtonProgress
from gibbsian.full_span.penalty import DescriptionLength, Shrinkage
from gibbsian.full_span.problem import SpanProblem
from gibbsian.full_span.selection import Selection, Trial, fit_selected, select_on
from gibbsian.full_span.trace import SpanStep, SpanTrace
from gibbsian.full_span.training import SpanRun, TimedStep, TimedTrace, train_span
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.span_basis import SpanBasis

__all__ = [
    "Dense",
    "DenseFit",
    "DenseProgress",
    "DescriptionLength",
    "Divergence",
    "FillAndFit",
    "FullSpanModel",
    "Greedy",
    "HiddenFit",
    "IncompleteRows",
    "Newton",
    "NewtonProgress",
    "Selection",
    "Shrinkage",
    "SpanAnswers",
    "SpanAverage",
    "SpanBasis",
    "SpanFit",
    "SpanProblem",
    "SpanProgress",
    "SpanRun",
    "SpanStep",
    "SpanTrace",
    "TimedStep",
    "TimedTrace",
    "Trial",
    "bootstrap_average",
    "counted",
    "fit_dense",
    "fit_full_span",
    "fit_hidden",
    "fit_selected",
    "predict_memory",
    "run",
    "select_on",
    "stack",
    "train_span",
]
