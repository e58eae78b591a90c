"""Adam: steps scaled entry by entry (Kingma and Ba 2015)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.learning.optimizers.base import OPTIMIZERS, ByMoves, soft_threshold
from gibbsian.learning.optimizers.schedules import Decay, rate_after
from gibbsian.settings import check, declared, free, number, positional


class AdamMoments(NamedTuple):
    """Running means of the gradient and of its square, and the number of moves behind them."""

    t: int
    mean: Floats
    square: Floats


@OPTIMIZERS.register("adam")
@declared(frozen=True)
class Adam(ByMoves[AdamMoments]):
    """Steps along the running mean of the gradient, each entry divided by the size it usually has.

    The steps do not depend on the scale of the gradient's entries, which suits noisy gradients and parameters of
    unequal curvature (biases and couplings in 0/1 coding). With an L1 penalty each step is followed by the proximal
    step in the same scaling; the penalty itself stays out of the running means, so zeros are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.learning.optimizers import Adam
    >>> scale = np.array([1.0, 1e4])
    >>> valley = lambda theta: (float(scale @ theta**2) / 2, scale * theta)
    >>> optimizer, l1 = Adam(learning_rate=0.1), np.zeros(2)
    >>> state = optimizer.init(valley, np.array([1.0, -1.0]), l1)
    >>> state, info = optimizer.step(valley, state, l1)
    >>> state.theta.round(6).tolist()                                  # both entries moved alike
    [0.9, -0.9]
    """

    learning_rate: float = positional(
        kw_only=False, default=number(0.01, "About the largest change of a parameter in one step.", above=0)
    )
    decay: Decay | None = positional(
        kw_only=False, default=free(None, "How the rate falls with time; by default it stays.", doc="Decay or None")
    )
    beta1: float = number(0.9, "What share of the running mean of the gradient a step keeps.", least=0, below=1)
    beta2: float = number(0.999, "What share of the running mean of its square a step keeps.", least=0, below=1)
    eps: float = number(1e-8, "Keeps the division finite where gradients vanish.", above=0)

    def __post_init__(self) -> None:
        check(self)

    def rate_at(self, t: int) -> float:
        """Return the rate after `t` steps."""
        return rate_after(t, self.learning_rate, self.decay)

    def init_move(self, theta: Floats) -> AdamMoments:
        """Start the running means at zero; the moves correct for it."""
        return AdamMoments(0, np.zeros_like(theta), np.zeros_like(theta))

    def move(self, theta: Floats, gradient: Floats, l1: Floats, state: AdamMoments) -> tuple[Floats, AdamMoments]:
        """Take one scaled step, then the proximal step of the penalty in the same scaling."""
        t = state.t + 1
        mean = self.beta1 * state.mean + (1 - self.beta1) * gradient
        square = self.beta2 * state.square + (1 - self.beta2) * gradient**2
        usual_size = np.sqrt(square / (1 - self.beta2**t)) + self.eps
        rates = self.rate_at(state.t) / usual_size
        moved = theta - rates * mean / (1 - self.beta1**t)
        return soft_threshold(moved, rates * l1), AdamMoments(t, mean, square)
