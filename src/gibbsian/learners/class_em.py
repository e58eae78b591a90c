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

from gibbsian.errors import ArgumentError, DataError
from gibbsian.expectations.base import Rebuilt
from gibbsian.learners.base import LearnerState
from gibbsian.models.class_shares import ClassSums
from gibbsian.models.mixture import FAR_APART, PLACINGS
from gibbsian.optimizers import StepInfo
from gibbsian.settings import choice

# Rises below this, per unit of free energy and row, are rounding.
ROUNDING = 1e-10
# Falls below this share of the free energy are rounding, too.
LAST_DIGITS = 1e-14
# What stands for the fall of the first step, before which there is none to compare with.
NOT_YET = float(np.finfo(np.float64).max)


PLACING = (
    "How classes that have no parameters begin: at rows far apart, at any rows, or as those of a random partition "
    "(YK15)."
)


def placing_setting() -> Any:
    """Declare where classes begin."""
    return choice(FAR_APART, PLACING, *PLACINGS)


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


@dataclass(frozen=True, eq=False)
class ClassAlternation:
    """Both steps in turn over the same rows."""

    steps: Any
    placing: str = FAR_APART

    def begin(self, model: Any, rng: np.random.Generator) -> ClassProgress:
        """Take the E-step at the model's parameters, or at a random start where it has none."""
        start = self.steps.adopted(model) if model.is_placed else self.steps.start(rng, self.placing)
        free_energy, expected = self._expect(start, None, 0)
        return ClassProgress(start.theta, expected, free_energy, NOT_YET, self._noise(free_energy), 0, Rebuilt(start))

    def advance(self, before: ClassProgress) -> tuple[ClassProgress, StepInfo]:
        """Take an M-step and an E-step; the first step only reports the E-step at the start."""
        if before.e_steps == 0:
            after = replace(before, e_steps=1)
            return after, _info(after)
        model = self.steps.maximise(before.expected, before.model.value)
        free_energy, expected = self._expect(model, before.expected, before.e_steps)
        weight = self.steps.total_weight
        if free_energy > before.free_energy + ROUNDING * (abs(before.free_energy) + weight):
            words = f"stopped at step {before.e_steps}: the free energy rose, so a component's own fit is not a maximum"
            return before, _info(before)._replace(failure=words)
        lowest = min(free_energy, before.free_energy)
        fall = (before.free_energy - lowest) / weight
        noise, e_steps = self._noise(lowest), before.e_steps + 1
        after = ClassProgress(model.theta, expected, lowest, fall, noise, e_steps, Rebuilt(model))
        return after, _info(after)

    def fitted(self, model: Any, progress: ClassProgress) -> Any:
        """Return the model, with words about what is wrong with it."""
        return self.steps.judged(progress.model.value, progress.expected)

    def kept(self, progress: ClassProgress) -> LearnerState | None:
        """Return where EM by chunks goes on: the sums of the rows of a fit, where these add."""
        if not hasattr(self.steps, "additive"):
            return None
        model, sums = progress.model.value, self.steps.additive(progress.expected)
        return LearnerState(Chunk(model, None, False), ChunkProgress(model.theta, sums.mass, sums.sums, 1))

    def restored(self, fresh: ClassProgress, progress: ClassProgress) -> ClassProgress:
        """Put the parameters that a checkpoint held into the model of a fresh start."""
        return replace(progress, model=Rebuilt(fresh.model.value.replace(progress.theta)))

    def restarted(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Begin again from another model with the same rows."""
        return LearnerState(self, self.begin(model, rng))

    def _noise(self, free_energy: float) -> float:
        """Return what of a fall may be rounding."""
        return LAST_DIGITS * abs(free_energy) / self.steps.total_weight

    def _expect(self, model: Any, before: Any, step: int) -> tuple[float, Any]:
        with np.errstate(all="ignore"):  # what overflows shows in the free energy
            free_energy, expected = self.steps.expect(model, before)
        if not np.isfinite(free_energy):
            raise DataError(
                f"the free energy is {free_energy} at step {step}",
                "scale the columns, or give a variance or kappa that is less extreme",
            )
        return free_energy, expected


def _info(progress: ClassProgress) -> StepInfo:
    return StepInfo(progress.free_energy, progress.fall, 1.0, progress.e_steps, noise=progress.noise)


# -- rows that come in chunks -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ChunkProgress:
    """The parameters, the sums of each class over all chunks so far, and their number."""

    theta: np.ndarray
    mass: np.ndarray
    sums: np.ndarray
    chunks: int


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows that are shared out once, by the parameters of their time: incremental EM in one pass.

    It needs a mixture of exponential families, where the sums of chunks add.
    """

    model: Any
    data: Any
    hard: bool

    @classmethod
    def first(cls, model: Any, data: Any, hard: bool, placing: str, rng: np.random.Generator) -> LearnerState:
        """Place the classes by the first chunk, where the model has none yet."""
        require_sums(model)
        if not model.is_placed:
            model = model.em_steps(data, hard).start(rng, placing)
        return LearnerState(cls(model, data, hard), ChunkProgress(model.theta, np.zeros(0), np.zeros(0), 0))

    def advance(self, before: ChunkProgress) -> tuple[ChunkProgress, StepInfo]:
        """Share the rows of the chunk, add their sums, and learn from all."""
        model = self.model.replace(before.theta)
        free_energy, found = model.class_sums(self.data, self.hard)
        total = found if not before.chunks else ClassSums(before.mass + found.mass, before.sums + found.sums)
        theta = model.maximise(total).theta
        moved = float(np.abs(theta - before.theta).max())
        after = ChunkProgress(theta, total.mass, total.sums, before.chunks + 1)
        return after, StepInfo(free_energy, moved, 1.0, after.chunks)

    def fitted(self, model: Any, progress: ChunkProgress) -> Any:
        """Return the mixture, with words about what is wrong with it."""
        fitted = self.model.replace(progress.theta)
        return replace(fitted, trouble=fitted.what_is_wrong(progress.mass) if progress.chunks else "")


def require_sums(model: Any) -> None:
    """Raise `ArgumentError` unless sums over the rows of a class are all that its M-step asks for."""
    if not hasattr(model, "class_sums"):
        raise ArgumentError(
            "a mixture of machines needs all rows at once: each step fits the machines anew",
            "use `fit` with `learner='em'`, or `machine='categorical'`",
        )
