"""What learners share that run another one several times: its steps, and when one of its fits has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsian.learners.base import Learner, LearnerState
from gibbsian.learners.run import has_converged, has_ended
from gibbsian.optimizers import StepInfo

# A gradient that no tolerance accepts: the fit within has ended, the whole has not.
NOT_YET = float(np.finfo(np.float64).max)

# Steps of a run that ends when its learner says so.
ENDLESS = 10**9


@dataclass(frozen=True)
class Within:
    """Model, data and what the learner within has made of them once."""

    model: Any
    data: Any
    state: LearnerState


class InnerStep(NamedTuple):
    """A step of the learner within, whether its fit has ended with it, and how, in words."""

    state: LearnerState
    info: StepInfo
    ended: bool
    converged: bool
    reason: str


def inner_step(learner: Learner, state: LearnerState, n_before: int, max_iter: int | None, tol: float) -> InnerStep:
    """Take a step of the learner within; without `max_iter` it says itself when it is done."""
    state, info = learner.step(state)
    n_steps = n_before + 1
    ended = has_ended(info, n_steps, n_steps + 1 if max_iter is None else max_iter, tol)
    converged = ended and has_converged(info, tol)
    if converged:
        reason = info.verdict or f"converged after {n_steps} step{'s' * (n_steps != 1)}"
    else:
        reason = info.failure or f"stopped at max_iter={n_steps} before the value settled: raise `max_iter`"
    return InnerStep(state, info, ended, converged, reason if ended else "")


def going_on(info: StepInfo, **details: float) -> StepInfo:
    """Return a step after which there is more to do, whatever the learner within said of it."""
    return info._replace(
        gradient_norm=NOT_YET if not np.isfinite(info.gradient_norm) else info.gradient_norm,
        stalled=False,
        noise=0.0,
        verdict="",
        failure="",
        details={**info.details, **details},
    )


def after_the_last(info: StepInfo, converged: bool, reason: str, **details: float) -> StepInfo:
    """Return the last step of all, with the reason why the whole has ended."""
    verdict, failure = (reason, "") if converged else ("", reason)
    every = {**info.details, **details}
    return info._replace(stalled=False, noise=0.0, verdict=verdict, failure=failure, details=every)
