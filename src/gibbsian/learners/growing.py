"""Growing subsets of the rows before the full data.

Far from the optimum a thousand rows show the way as well as a million. The rows are put in random order once; each
stage learns from the first so many of them until its gradient is as small as the noise of so few rows, then hands its
parameters, and what its optimiser remembers of the curvature, to the next. The last stage has all rows and the
tolerance of the fit, so the answer is that of the plain fit.

What it saves is the way from the start to the noise of the largest subset: with L-BFGS a quarter of the work at a
tolerance near the noise of the data, less at a tighter one. It is no default for that reason.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.minibatches import draw_seed, seeded
from gibbsian.learners.around import Around
from gibbsian.learners.base import Learner, LearnerState, as_learner
from gibbsian.models import Model
from gibbsian.optimizers import StepInfo
from gibbsian.optimizers.base import with_memory_of
from gibbsian.settings import check, declared, free, number, positional, whole

# A stage that needs more steps than this is left to the next one.
_MOST_STEPS = 100


@dataclass(frozen=True)
class GrowingProgress:
    """The learner's own progress, and whether it is that on all rows.

    Parameters
    ----------
    inner : Any
        The progress of the learner inside.
    stage : int
        0 before the subsets are done, then 1: all rows.
    evaluations : float
        What the subsets cost, in evaluations on all rows.
    seed : ndarray
        What the random order of the rows follows from.
    """

    inner: Any
    stage: int
    evaluations: float
    seed: np.ndarray

    @property
    def theta(self) -> np.ndarray:
        """The parameters."""
        return self.inner.theta


@declared(frozen=True)
class Growing(Around):
    """Let a learner go through growing subsets of the rows first.

    All subsets together are the first step of the fit, because a gradient on a subset must not end it; every step
    reports the gradient on all rows. Evaluations are counted by rows: one on half of them counts half.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learners.growing import Growing
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> plain = gb.BoltzmannMachine(learner="mple", l2=0.01, tol=1e-7).fit(votes)
    >>> learner = Growing(gb.learners.as_learner("mple", l2=0.01), first=50)
    >>> grown = gb.BoltzmannMachine(learner=learner, tol=1e-7, random_state=0).fit(votes)
    >>> bool(np.abs(grown.model_.theta - plain.model_.theta).max() < 1e-4)
    True
    """

    learner: Learner | str = positional(
        kw_only=False, default=free("mple", "What learns: an objective with an optimiser.", doc="Learner or str")
    )
    first: int = whole(1000, "Rows of the first stage.", least=1)
    factor: float = number(10.0, "How much each stage is larger than the one before.", above=1)
    noise: float = number(
        2.0,
        "A stage of m rows ends when no entry of the gradient is larger than `noise / sqrt(m)`: gradients of single "
        "rows vary by about two.",
        above=0,
    )

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "learner", as_learner(self.learner))

    def sizes(self, n_rows: int) -> list[int]:
        """Return the rows of the subsets, none of them more than half of all.

        Examples
        --------
        >>> from gibbsian.learners.growing import Growing
        >>> Growing("mple").sizes(200_000)
        [1000, 10000, 100000]
        """
        sizes, size = [], float(self.first)
        while size <= n_rows / 2:
            sizes.append(int(size))
            size *= self.factor
        return sizes

    def init(self, model: Model, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Draw the order of the rows and bind the learner to the first of them."""
        problem = _Problem(self.learner, model, data)  # type: ignore[arg-type]
        seed = draw_seed(rng)
        few = data.take(_first_rows(seed, data, min(self.first, data.n_rows)))
        return LearnerState(problem, GrowingProgress(problem.start(few, seed).progress, 0, 0.0, seed))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take one step on all rows, the first one after going through the subsets."""
        problem, progress = state.problem, state.progress
        if progress.stage == 0:
            progress = self._through_subsets(problem, progress)
        inner, info = problem.learner.step(LearnerState(problem.bound, progress.inner))
        total = math.ceil(info.evaluations + progress.evaluations)
        progress = dataclasses.replace(progress, inner=inner.progress)
        return LearnerState(problem, progress), info._replace(evaluations=total)

    def within(self, state: LearnerState) -> LearnerState:
        """Return the state of the learner on the rows of the stage."""
        return LearnerState(state.problem.bound, state.progress.inner)

    def restored(self, state: LearnerState, progress: GrowingProgress) -> LearnerState:
        """Return a fresh state with the progress that a checkpoint held, bound to all rows if that was."""
        if progress.stage:
            state.problem.start(state.problem.data, progress.seed)
        return LearnerState(state.problem, progress)

    def _through_subsets(self, problem: _Problem, progress: GrowingProgress) -> GrowingProgress:
        data, before, cost = problem.data, None, 0.0
        for size in self.sizes(data.n_rows):
            subset = data.take(_first_rows(progress.seed, data, size))
            learning = problem.start(subset, progress.seed, before)
            for _ in range(_MOST_STEPS):
                learning, info = problem.learner.step(learning)
                if info.gradient_norm <= self.noise / math.sqrt(size) or info.stalled:
                    break
            cost += info.evaluations * subset.n_states / data.n_states
            before = learning.progress
        return GrowingProgress(problem.start(data, progress.seed, before).progress, 1, cost, progress.seed)


@dataclass
class _Problem:
    """What learns from what; `bound` is what the learner has made of the rows it was last bound to."""

    learner: Learner
    model: Model
    data: Dataset
    bound: Any = None

    def start(self, data: Dataset, seed: np.ndarray, before: Any = None) -> LearnerState:
        """Bind the learner to some rows, at the parameters of an earlier stage and with its memory."""
        model = self.model if before is None else self.model.replace(before.theta)
        state = self.learner.init(model, data, seeded(seed, data.n_rows))
        self.bound = state.problem
        if before is None:
            return state
        return LearnerState(state.problem, with_memory_of(before, state.progress))


def _first_rows(seed: np.ndarray, data: Dataset, size: int) -> np.ndarray:
    """Return the first rows in the random order of the seed; larger subsets hold the smaller ones."""
    return seeded(seed).permutation(data.n_rows)[:size]
