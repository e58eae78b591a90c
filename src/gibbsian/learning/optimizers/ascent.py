"""Plain gradient steps: the papers' own optimiser (H06 eq. 21-22, Y18 section 5)."""

from __future__ import annotations

from gibbsian.arrays import Floats
from gibbsian.learning.optimizers.base import OPTIMIZERS, ByMoves, soft_threshold
from gibbsian.learning.optimizers.schedules import Decay, rate_after
from gibbsian.settings import check, declared, free, number, positional


@OPTIMIZERS.register("ascent")
@declared(frozen=True)
class Ascent(ByMoves[int]):
    """``theta <- theta - learning_rate * gradient``, followed by soft thresholding where there is an L1 penalty.

    Ascent on the likelihood is descent on the loss; the papers speak of the former.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.learning.optimizers import Ascent
    >>> bowl = lambda theta: (float(theta @ theta) / 2, theta)
    >>> optimizer, l1 = Ascent(learning_rate=0.5), np.zeros(2)
    >>> state = optimizer.init(bowl, np.array([1.0, -2.0]), l1)
    >>> state, info = optimizer.step(bowl, state, l1)
    >>> state.theta, info.gradient_norm
    (array([ 0.5, -1. ]), 1.0)
    """

    learning_rate: float = positional(
        kw_only=False, default=number(0.2, "The step size: eta in Y18 (0.2 there), mu in H06.", above=0)
    )
    decay: Decay | None = positional(
        kw_only=False, default=free(None, "How the rate falls with time; by default it stays.", doc="Decay or None")
    )

    def __post_init__(self) -> None:
        check(self)

    def rate_at(self, t: int) -> float:
        """Return the step size after `t` steps."""
        return rate_after(t, self.learning_rate, self.decay)

    def init_move(self, theta: Floats) -> int:
        """Return the number of moves so far, which is all that a move needs to know."""
        return 0

    def move(self, theta: Floats, gradient: Floats, l1: Floats, state: int) -> tuple[Floats, int]:
        """Take a gradient step, then the proximal step of the penalty."""
        rate = self.rate_at(state)
        return soft_threshold(theta - rate * gradient, rate * l1), state + 1
