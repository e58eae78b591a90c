"""Steps along a gradient alone: plain ones, Adam's, tied ones, and how their rate falls with time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.learning.optimizers.base import OPTIMIZERS, ByMoves, GradientStep, M, soft_threshold
from gibbsian.settings import check, declared, free, number, positional


@declared(frozen=True)
class Decay:
    """Multiply the rate by ``1 / (1 + t / delay)^power`` after `t` steps (Robbins and Monro 1951).

    Noisy steps converge when the rates sum to infinity and their squares do not: ``1/2 < power <= 1``.

    Examples
    --------
    >>> from gibbsian.learning.optimizers import Decay
    >>> decay = Decay(power=1.0, delay=100)
    >>> decay(0), decay(100), decay(900)
    (1.0, 0.5, 0.1)
    """

    power: float = positional(
        kw_only=False,
        default=number(
            0.75,
            "How fast the rate falls in the end; zero keeps it, and above one the steps end too soon.",
            least=0,
            most=1,
        ),
    )
    delay: float = positional(kw_only=False, default=number(100.0, "Steps before the fall sets in.", above=0))

    def __post_init__(self) -> None:
        check(self)

    def __call__(self, t: int) -> float:
        """Return the factor of the rate after `t` steps."""
        return float((1.0 + t / self.delay) ** -self.power)


def rate_after(t: int, rate: float, decay: Decay | None) -> float:
    """Return the rate after `t` steps; without a decay it stays."""
    return rate if decay is None else rate * decay(t)


@OPTIMIZERS.register("ascent")
@declared(frozen=True)
class Ascent(ByMoves[int]):
    """``theta <- theta - learning_rate * gradient``, followed by soft thresholding where there is an L1 penalty.

    The papers' own steps (H06 eq. 21-22, Y18 section 5). Ascent on the likelihood is descent on the loss; they speak of
    the former.

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


class AdamMoments(NamedTuple):
    """Running means of the gradient and of its square, and the number of moves behind them."""

    t: int
    mean: Floats
    square: Floats


@OPTIMIZERS.register("adam")
@declared(frozen=True)
class Adam(ByMoves[AdamMoments]):
    """Steps along the running mean of the gradient, each entry divided by its usual size (Kingma and Ba 2015).

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


@dataclass(frozen=True, eq=False)
class Tied(Generic[M]):
    """Moves the parameters of each group alike, along the mean of their gradients.

    Parameters that begin equal stay so: any learner by gradients then learns one value for each group.

    Parameters
    ----------
    optimizer : GradientStep
        What makes the steps.
    groups : array of int of shape (n_parameters,)
        The group of each parameter, counted from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.learning.optimizers import Ascent, Tied
    >>> steps = Tied(Ascent(learning_rate=1.0), np.array([0, 0, 1]))
    >>> theta = np.zeros(3)
    >>> steps.move(theta, np.array([1.0, 3.0, 5.0]), np.zeros(3), steps.init_move(theta))[0].tolist()
    [-2.0, -2.0, -5.0]
    """

    optimizer: GradientStep[M]
    groups: Floats

    def init_move(self, theta: Floats) -> M:
        """Return the state before the first move."""
        return self.optimizer.init_move(theta)

    def move(self, theta: Floats, gradient: Floats, l1: Floats, state: M) -> tuple[Floats, M]:
        """Return the next point and the state there."""
        means = np.bincount(self.groups, gradient) / np.bincount(self.groups)
        return self.optimizer.move(theta, means[self.groups], l1, state)

    def rate_at(self, t: int) -> float:
        """Return the rate of the move after `t` others."""
        return self.optimizer.rate_at(t)
