"""EM by chunks: the sums of each class add up over rows, so that rows may come in chunks (Neal and Hinton 1998)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.learners.base import LEARNERS, Learner, LearnerState
from gibbsian.models.class_shares import ClassSums
from gibbsian.optimizers import StepInfo
from gibbsian.settings import check, choice, declared


@dataclass(frozen=True)
class ChunkProgress:
    """The parameters, the sums of each class over all chunks so far, and their number."""

    theta: np.ndarray
    mass: np.ndarray
    sums: np.ndarray
    chunks: int


@LEARNERS.register("em-by-chunks", models=("gaussian-mixture", "k-means", "vmf-mixture", "categorical-mixture"))
@declared(frozen=True)
class ChunkEM(Learner):
    """Shares the rows of each chunk among the classes as they stand, and learns from the sums of all chunks so far.

    Every row is shared out once, by the parameters of its time: incremental EM in one pass. It needs a mixture of
    exponential families, where the sums of chunks add.

    References
    ----------
    R. M. Neal and G. E. Hinton, "A view of the EM algorithm that justifies incremental, sparse, and other variants",
    Learning in Graphical Models (1998).

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> mixture = gb.GaussianMixture(random_state=0)
    >>> rows = np.random.default_rng(0).normal(size=(300, 1)) + 9 * (np.arange(300) % 2)[:, None]
    >>> for chunk in np.array_split(rows, 3):
    ...     mixture = mixture.partial_fit(chunk)
    >>> np.sort(mixture.means_.ravel()).round()
    array([0., 9.])
    """

    assignment: str = choice("soft", "Share each row among the classes or give it to the best.", "soft", "hard")

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, model: Any) -> str:
        """Only mixtures have classes to learn."""
        return "" if hasattr(model, "em_steps") else "learns classes, and the model has no hidden label"

    def init(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Place the classes by the first chunk, where the model has none yet."""
        if not hasattr(model, "class_sums"):
            raise ArgumentError(
                "a mixture of machines needs all rows at once: each step fits the machines anew",
                "use `fit`, or `machine='categorical'`",
            )
        if not model.is_placed:
            model = model.em_steps(data, self.assignment == "hard").start(rng)
        return LearnerState((model, data), ChunkProgress(model.theta, np.zeros(0), np.zeros(0), 0))

    def rebound(self, state: LearnerState, data: Any) -> LearnerState:
        """Go on with another chunk."""
        return replace(state, problem=(state.problem[0], data))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Share the rows of the chunk, add their sums, and learn from all."""
        (model, data), before = state.problem, state.progress
        model = model.replace(before.theta)
        free_energy, found = model.class_sums(data, self.assignment == "hard")
        total = found if not before.chunks else ClassSums(before.mass + found.mass, before.sums + found.sums)
        model = model.maximise(total)
        moved = float(np.abs(model.theta - before.theta).max())
        after = ChunkProgress(model.theta, total.mass, total.sums, before.chunks + 1)
        return LearnerState((model, data), after), StepInfo(free_energy, moved, 1.0, after.chunks)

    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the mixture, with words about what is wrong with it."""
        fitted = state.problem[0].replace(state.progress.theta)
        return replace(fitted, trouble=fitted.what_is_wrong(state.progress.mass) if state.progress.chunks else "")
