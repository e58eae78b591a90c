"""EM where both steps are closed forms of the model: one hidden label (YK15, "BM and EM").

Both lower the free energy ``F(Q, theta) = -sum log P(x; theta) + KL(Q || P(class | x; theta))``: the first over the
shares Q, after which F is minus the log-likelihood, the second over theta. Hard assignments are the same with Q
restricted to one class per row. A model offers them as ``em_steps(data, hard)``: an object with ``start(rng)``,
``expect(model, before)``, ``maximise(expected, model)``, ``judged(model, expected)`` and ``total_weight``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.errors import DataError
from gibbsian.expectations.base import Rebuilt
from gibbsian.learners.base import LearnerState
from gibbsian.learners.chunk_em import ChunkProgress
from gibbsian.optimizers import StepInfo

# Rises below this, per unit of free energy and row, are rounding.
ROUNDING = 1e-10
# Falls below this share of the free energy are rounding, too.
LAST_DIGITS = 1e-14
# What stands for the fall of the first step, before which there is none to compare with.
NOT_YET = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class ClassProgress:
    """The parameters, the shares in the form that the next M-step needs, and the free energy there.

    `fall` is that of the last step, per unit of weight; `noise` what of it may be rounding.
    """

    theta: np.ndarray
    expected: Any
    free_energy: float
    fall: float
    noise: float
    e_steps: int
    model: Rebuilt[Any]


def init(steps: Any, model: Any, rng: np.random.Generator) -> LearnerState:
    """Take the E-step at the model's parameters, or at a random start where it has none."""
    start = steps.adopted(model) if model.is_placed else steps.start(rng)
    free_energy, expected = _expect(steps, start, None, 0)
    noise = LAST_DIGITS * abs(free_energy) / steps.total_weight
    return LearnerState(steps, ClassProgress(start.theta, expected, free_energy, NOT_YET, noise, 0, Rebuilt(start)))


def step(state: LearnerState) -> tuple[LearnerState, StepInfo]:
    """Take an M-step and an E-step; the first step only tells of the E-step at the start."""
    steps, before = state.problem, state.progress
    if before.e_steps == 0:
        after = replace(before, e_steps=1)
        return LearnerState(steps, after), _info(after)
    model = steps.maximise(before.expected, before.model.value)
    free_energy, expected = _expect(steps, model, before.expected, before.e_steps)
    weight = steps.total_weight
    if free_energy > before.free_energy + ROUNDING * (abs(before.free_energy) + weight):
        words = f"stopped at step {before.e_steps}: the free energy rose, so a component's own fit is not a maximum"
        return state, _info(before)._replace(failure=words)
    lowest = min(free_energy, before.free_energy)
    after = ClassProgress(
        model.theta,
        expected,
        lowest,
        (before.free_energy - lowest) / weight,
        LAST_DIGITS * abs(lowest) / weight,
        before.e_steps + 1,
        Rebuilt(model),
    )
    return LearnerState(steps, after), _info(after)


def fitted(state: LearnerState) -> Any:
    """Return the model, with words about what is wrong with it."""
    return state.problem.judged(state.progress.model.value, state.progress.expected)


def kept(state: LearnerState) -> LearnerState | None:
    """Return where EM by chunks goes on: the sums of the rows of a fit, where these add."""
    steps, progress = state.problem, state.progress
    if not hasattr(steps, "additive"):
        return None
    model, sums = progress.model.value, steps.additive(progress.expected)
    return LearnerState((model, None), ChunkProgress(model.theta, sums.mass, sums.sums, 1))


def restored(state: LearnerState, progress: ClassProgress) -> LearnerState:
    """Put the parameters that a checkpoint held into the model of a fresh state."""
    model = state.progress.model.value.replace(progress.theta)
    return LearnerState(state.problem, replace(progress, model=Rebuilt(model)))


def _info(progress: ClassProgress) -> StepInfo:
    return StepInfo(progress.free_energy, progress.fall, 1.0, progress.e_steps, noise=progress.noise)


def _expect(steps: Any, model: Any, before: Any, step: int) -> tuple[float, Any]:
    with np.errstate(all="ignore"):  # what overflows shows in the free energy
        free_energy, expected = steps.expect(model, before)
    if not np.isfinite(free_energy):
        raise DataError(
            f"the free energy is {free_energy} at step {step}",
            "scale the columns, or give a variance or kappa that is less extreme",
        )
    return free_energy, expected
