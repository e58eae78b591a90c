"""What a fit of the full-span model leaves behind."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.full_span import SpanAnswers, SpanRun
from gibbsian.learners import FitResult, TrainingReport


class SpanResult(FitResult):
    """A fitted full-span model with the story of its fit; the trace is a `TimedTrace`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> result = gb.FullSpan().fit([[0, 0], [1, 1], [0, 0], [1, 1]] * 20).result_
    >>> result.converged, result.n_steps
    (True, 1)
    """

    @property
    def seconds(self) -> float:
        """Time spent on the steps."""
        return self.trace.seconds  # type: ignore[attr-defined]

    @cached_property
    def training(self) -> TrainingReport:
        """Compare the means of the model's functions with the data's."""
        if self.moments is None:
            raise ArgumentError("the means of the data were not kept", "fit again to compare them with the model's")
        means = SpanAnswers(self.model).means()  # type: ignore[arg-type]
        difference = self.moments.mean - means
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(np.maximum((1.0 - means) * (1.0 + means), 0.0) / self.moments.count)
            z_scores = np.where(difference == 0, 0.0, difference / error)
        return TrainingReport(z_scores, float(np.abs(difference).max(initial=0.0)), True, self.penalised)


def how_it_ended(run: SpanRun, epsilon: float, max_iter: int, checkpoint: str | None = None) -> str:
    """Say how a fit ended and, where it did not converge, how to go on.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.full_span_result import how_it_ended
    >>> from gibbsian.full_span import Greedy, SpanProblem, train_span
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> how_it_ended(train_span(Greedy(), Greedy().init(problem)), 1e-4, 100)
    'converged after 1 step: no move lowers the cost by 0.0001'
    """
    steps = f"{len(run.trace)} step{'s' * (len(run.trace) != 1)}"
    if run.converged:
        return f"converged after {steps}: no move lowers the cost by {epsilon:g}"
    if not run.interrupted:
        return f"stopped at max_iter={max_iter}: raise max_iter"
    if checkpoint is None:
        return (
            f"interrupted after {steps}, the model so far is kept: go on from it with start=, or give checkpoint= "
            "to be able to resume to the same bits"
        )
    return (
        f"interrupted after {steps}, the model so far is kept: resume with the same data and "
        f"checkpoint=Checkpoint({checkpoint!r}, resume=True)"
    )
