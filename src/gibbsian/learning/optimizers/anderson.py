"""Anderson's acceleration: finds where a gradient vanishes without asking for a value (Anderson 1965)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.learning.optimizers.base import OPTIMIZERS, ByMoves, soft_threshold
from gibbsian.settings import check, declared, number, positional, whole

# A step this many times as long as the shortest one remembered leads away.
_TOO_FAR = 2.0
# Directions that the past hardly spans are left out of the extrapolation.
_RANK = 1e-8
# Rounds of an alternation that are extrapolated together.
_ROUNDS = 8


class AndersonMemory(NamedTuple):
    """The last points with the gradients there, oldest first, and the size of the plain steps."""

    points: Floats
    gradients: Floats
    rate: float

    def plain_steps(self, l1: Floats) -> Floats:
        """Return the plain step from each point."""
        return soft_threshold(self.points - self.rate * self.gradients, self.rate * l1) - self.points


@OPTIMIZERS.register("anderson")
@declared(frozen=True)
class Anderson(ByMoves[AndersonMemory]):
    """Plain gradient steps, extrapolated from the last few of them to where they would end.

    It solves ``gradient = 0`` as a fixed point, so it serves equations that are the gradient of nothing, such as those
    of spatial Monte Carlo integration over a fixed sample, where a line search has no value to search along. Near the
    solution it is a quasi-Newton method. From a point where the gradient has grown it returns to the best one
    remembered, forgets the others, and halves the plain steps.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.learning.optimizers import Anderson
    >>> bowl = lambda theta: (float(theta @ (theta * [1, 2])) / 2, theta * [1, 2])
    >>> optimizer, l1 = Anderson(), np.zeros(2)
    >>> state = optimizer.init(bowl, np.array([1.0, -2.0]), l1)
    >>> for _ in range(4):
    ...     state, info = optimizer.step(bowl, state, l1)
    >>> bool(info.gradient_norm < 1e-10)
    True

    References
    ----------
    D. G. Anderson, "Iterative procedures for nonlinear integral equations", Journal of the ACM 12 (1965).
    """

    learning_rate: float = positional(kw_only=False, default=number(0.2, "Size of the plain steps at first.", above=0))
    memory: int = whole(8, "Earlier steps that are remembered.", least=1)

    def __post_init__(self) -> None:
        check(self)

    def rate_at(self, t: int) -> float:
        """Return the size of the plain steps at first."""
        return self.learning_rate

    def init_move(self, theta: Floats) -> AndersonMemory:
        """Remember nothing."""
        return AndersonMemory(np.empty((0, theta.size)), np.empty((0, theta.size)), self.learning_rate)

    def move(self, theta: Floats, gradient: Floats, l1: Floats, state: AndersonMemory) -> tuple[Floats, AndersonMemory]:
        """Extrapolate the steps so far and this one."""
        memory = AndersonMemory(
            np.vstack([state.points, theta])[-self.memory - 1 :],
            np.vstack([state.gradients, gradient])[-self.memory - 1 :],
            state.rate,
        )
        steps = memory.plain_steps(l1)
        lengths = np.linalg.norm(steps, axis=1)
        if not lengths[-1] <= _TOO_FAR * lengths.min():
            memory = _back_to(memory, int(np.argmin(lengths)))
            steps = memory.plain_steps(l1)
        target = extrapolate(memory.points, steps)
        stays_zero = (l1 > 0) & (memory.points[-1] + steps[-1] == 0)
        return np.where(stays_zero, 0.0, target), memory


def _back_to(memory: AndersonMemory, best: int) -> AndersonMemory:
    """Remember the best point only, with steps of half the size."""
    return AndersonMemory(memory.points[best : best + 1], memory.gradients[best : best + 1], memory.rate / 2)


def extrapolate(points: Floats, steps: Floats) -> Floats:
    """Return the step from the mixture of remembered points whose own step is shortest, by linear extrapolation.

    `points` are where some fixed-point map was applied, oldest first, and `steps` those that it took from there.
    """
    theta, step = points[-1], steps[-1]
    if len(points) == 1:
        return theta + step
    moves, changes = np.diff(points, axis=0), np.diff(steps, axis=0)
    scales = np.linalg.norm(changes, axis=1)
    kept = scales > 0
    moves, changes = moves[kept] / scales[kept, None], changes[kept] / scales[kept, None]
    mixture, *_ = np.linalg.lstsq(changes.T, step, rcond=_RANK)
    return theta + step - mixture @ (moves + changes)


class LastRounds(NamedTuple):
    """The last rounds of an alternation, a fixed-point map: where each began, oldest first, and its step."""

    points: Floats
    steps: Floats

    @classmethod
    def none(cls, theta: Floats) -> LastRounds:
        """Remember nothing."""
        return cls(np.empty((0, theta.size)), np.empty((0, theta.size)))

    @property
    def is_first(self) -> bool:
        """Whether there is one only."""
        return len(self.points) == 1

    def added(self, before: Floats, after: Floats) -> LastRounds:
        """Remember one more round, and forget the oldest of many."""
        points, steps = np.vstack([self.points, before]), np.vstack([self.steps, after - before])
        return LastRounds(points[-_ROUNDS:], steps[-_ROUNDS:])

    def last(self) -> LastRounds:
        """Forget all but the last."""
        return LastRounds(self.points[-1:], self.steps[-1:])

    def end(self, theta: Floats, l1: Floats) -> Floats:
        """Return where the rounds would end; what the penalty holds at zero in theta, the last one's end, stays."""
        return np.where((l1 > 0) & (theta == 0), 0.0, extrapolate(self.points, self.steps))
