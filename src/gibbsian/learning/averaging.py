"""Polyak's mean of noisy steps: where they settle, and when to stop within their noise.

Running means weigh step s of t by about s^3 (Shamir and Zhang 2013): the last half of the steps makes up 94% of them,
whatever their number, and the way from the start is soon forgotten.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from gibbsian.arrays import Floats

FORGETTING = 3.0
# Samples of slow chains repeat each other; no more than so many count as one.
MAX_REPEATS = 100.0
# Steps have settled when no entry of the mean gradient, of hundreds, is more standard errors from zero.
MAX_Z = 2.0
# Slow chains settle late, and thousands of parameters never all at once. After so many steps it is enough that the
# largest of n entries is no larger than that of n normal errors, sqrt(2 log n) standard errors.
PATIENCE = 500
# Fewer minibatches say too little about the noise of their gradients.
MIN_BATCHES = 20


class PolyakMean(NamedTuple):
    """Running means over the steps so far: of the iterate, and of the gradient and its noise.

    Parameters
    ----------
    n_steps : int
        Steps so far.
    iterate, zero : array
        Means of the iterate, and of whether its entries are exactly zero.
    gradient, square : array
        Means of the gradient, and of its squared Monte Carlo error; where that is not known, of its own square.
    roughness : array
        Mean of half the squared change of the gradient from one step to the next.
    last : array
        The gradient of the last step.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.learning.averaging import PolyakMean
    >>> mean = PolyakMean.start(np.zeros(1))
    >>> for t in range(1, 5):
    ...     mean = mean.add(np.array([float(t)]), np.zeros(1))
    >>> mean.iterate.round(6).tolist()                                         # with the weights s (s + 1) (s + 2)
    [3.4]
    """

    n_steps: int
    iterate: Floats
    zero: Floats
    gradient: Floats
    square: Floats
    roughness: Floats
    last: Floats

    @classmethod
    def start(cls, theta: Floats) -> Self:
        """Return the means before the first step."""
        return cls(0, theta, *[np.zeros_like(theta)] * 5)

    def add(self, iterate: Floats, gradient: Floats, stderr: Floats | None = None) -> Self:
        """Return the means with one more step: where it has led, and the gradient that it followed."""
        weight = (FORGETTING + 1) / (FORGETTING + 1 + self.n_steps)
        square = gradient**2 if stderr is None else stderr**2
        roughness = self.roughness
        if stderr is not None:
            change = (gradient - self.last) ** 2 / 2 if self.n_steps else square
            roughness = roughness + weight * (change - roughness)
        return type(self)(
            self.n_steps + 1,
            self.iterate + weight * (iterate - self.iterate),
            self.zero + weight * ((iterate == 0) - self.zero),
            self.gradient + weight * (gradient - self.gradient),
            self.square + weight * (square - self.square),
            roughness,
            gradient,
        )

    @property
    def answer(self) -> Floats:
        """The mean iterate; an entry that was zero in most steps is zero."""
        return np.where(self.zero > 0.5, 0.0, self.iterate)

    def chain_noise(self, rest: Floats, min_steps: int = 1, patience: int = PATIENCE) -> float:
        """Return what of the largest entry of the mean gradient is Monte Carlo noise, judged by the entry furthest off.

        Persistent chains repeat themselves: where the gradient changes from step to step by the part ``q = 1 -
        correlation`` of what independent samples would make it, a step is worth ``q / (2 - q)`` of an independent one.
        Changes, unlike spreads, do not take steps that are on their way for noise (von Neumann 1941).

        Parameters
        ----------
        rest : array
            The size of each entry of the mean (sub)gradient.
        min_steps, patience : int
            Before so many steps it is too early to say (zero is returned); after so many the largest of all entries
            may be as large as chance makes it.
        """
        if self.n_steps < min_steps:
            return 0.0
        known = self.square > 0
        fresh = np.clip(self.roughness[known] / self.square[known], 1 / MAX_REPEATS, 1.0)
        weights = (FORGETTING + 1) ** 2 / (2 * FORGETTING + 1) / self.n_steps  # the sum of their squares
        largest = np.sqrt(2.0 * np.log(max(fresh.size, 1))) if self.n_steps >= patience else 0.0
        error = max(MAX_Z, largest) * np.sqrt(weights * self.square[known] * (2 - fresh) / fresh)
        worst = (rest[known] / error).max(initial=0.0)
        return float(rest.max(initial=0.0) / worst) if worst else 0.0

    def share_of_sampling_error(self, rest: Floats, n_batches: int) -> float:
        """Return the mean gradient as a share of the error of a mean over all rows, infinite where that is not known.

        It is the root of the mean square over the entries of `rest`, the mean (sub)gradient of minibatches of which
        `n_batches` have all rows. Near the optimum it is the gradient at the mean iterate.
        """
        variance = np.maximum(self.square - self.gradient**2, 0.0) / n_batches
        known = variance > 0
        if n_batches == 1 or self.n_steps < MIN_BATCHES or not known.any():
            return np.inf
        return float(np.sqrt(np.mean(rest[known] ** 2 / variance[known])))
