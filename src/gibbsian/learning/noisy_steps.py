"""Steps along gradients with Monte Carlo noise: how fast, averages over the steps, and when to end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.expectations.imputation import shrunk_means
from gibbsian.learning.objectives.centring import LinearMap
from gibbsian.learning.optimizers import Adam, Converged, Decay, GradientStep, StepInfo
from gibbsian.learning.optimizers.base import largest, subgradient
from gibbsian.learning.preconditioners import preconditioning
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.models.ising import is_ising

# Running means weigh step s by about s^3 (Shamir and Zhang 2013): the last quarter of the steps counts, whatever
# their number, and the way from the start is soon forgotten.
_FORGETTING = 3.0
# Samples of slow chains repeat each other; no more than so many are taken for one.
_MOST_REPEATS = 100.0
# A fit has come to rest when no entry of its mean gradient, of hundreds, is more standard errors from zero.
_AT_REST = 2.0
# Slow chains come to rest late, and thousands of parameters never all at once. After so many steps it is enough that
# the largest of n entries is no larger than of n normal errors (sqrt(2 log n) standard errors), or that no moment is
# further from the data's than this part of the data's own standard error, which adds an eighth to the error of the
# answer at most.
_PATIENCE = 500
_OF_DATA_ERROR = 0.5
# Parameters have unequal curvatures, and noise must fade: Adam with a Robbins-Monro rate.
DEFAULT_OPTIMIZER = Adam(learning_rate=0.05, decay=Decay(power=0.75, delay=100))
# Chains have more noise than minibatches: on the house votes they settle sooner when it fades sooner.
OF_CHAINS = replace(DEFAULT_OPTIMIZER, decay=Decay(power=0.75, delay=50))
# What the parameters around a variable may move in one step, all together. Two synthetic tables of 60 columns, learned
# with 10 hidden units (35 interactions a variable), ended lower at the rate 0.05 than at 0.03 or less, at times by
# nats; complete graphs of 100 variables fared as well at 0.01 as at 0.05. A tuned rate may still be better.
MOST_FIELD = 1.0


@dataclass(frozen=True)
class Walk:
    """The answer so far, the point the steps have reached, and all that the next step needs."""

    theta: np.ndarray
    iterate: np.ndarray
    motion: object
    gradient: np.ndarray
    mean_gradient: np.ndarray
    variance: np.ndarray
    roughness: np.ndarray
    noise: float
    evaluations: int


@dataclass(frozen=True)
class OnWalk:
    """The progress of a learner that walks; its own states come on top."""

    walk: Walk

    @property
    def theta(self) -> np.ndarray:
        """The parameters."""
        return self.walk.theta

    @property
    def noise(self) -> float:
        """The noise of the gradient."""
        return self.walk.noise


@dataclass(frozen=True, eq=False)
class NoisySteps:
    """How a walk moves: by which optimiser, under which penalty, in which parameters, averaged or not."""

    optimizer: GradientStep
    l1: np.ndarray
    centring: LinearMap | None
    average: bool
    min_iter: int
    data_error: np.ndarray | None = None  # standard errors of the gradient as rows are few

    def start(self, theta: np.ndarray) -> Walk:
        """Return the walk before its first step."""
        zeros = np.zeros_like(theta)
        return Walk(theta, theta, self.optimizer.init_move(theta), zeros, zeros, zeros, zeros, 0.0, 0)

    def step(self, walk: Walk, gradient: np.ndarray, stderr: np.ndarray) -> tuple[Walk, StepInfo]:
        """Take one step; the norm reported is that of the gradient that was followed, or of its running mean."""
        iterate, motion = self._move(walk, gradient)
        t, square = walk.evaluations, stderr**2
        weight = self._weight(t)
        mean = _towards(gradient, walk.mean_gradient, weight)
        variance = _towards(square, walk.variance, weight)
        roughness = _towards((gradient - walk.gradient) ** 2 / 2 if t else square, walk.roughness, weight)
        rest = np.abs(subgradient(walk.iterate, mean, self.l1))
        norm = largest(rest)
        noise = self._noise(rest, variance, roughness, t + 1)
        new = Walk(self._answer(walk, iterate), iterate, motion, gradient, mean, variance, roughness, noise, t + 1)
        outcome = self._outcome(rest, norm, noise, t + 1)
        return new, StepInfo(float("nan"), norm, self.optimizer.rate_at(t), t + 1, noise, outcome)

    def _outcome(self, rest: np.ndarray, norm: float, noise: float, n_steps: int) -> Converged | None:
        """Return that the moments agree within the data's error, for slow chains, where they do."""
        if not noise or norm <= noise or n_steps < _PATIENCE or self.data_error is None:
            return None
        near = (rest <= _OF_DATA_ERROR * self.data_error).all()
        agree = f"the moments agree with the data's to {_OF_DATA_ERROR:g} of their standard errors"
        return Converged(f"converged after {n_steps} steps: {agree}") if near else None

    def _move(self, walk: Walk, gradient: np.ndarray) -> tuple[np.ndarray, Any]:
        centring = self.centring
        if centring is None:
            return self.optimizer.move(walk.iterate, gradient, self.l1, walk.motion)
        here = centring.inwards(walk.iterate)
        there, motion = self.optimizer.move(here, centring.gradient(gradient), centring.l1(self.l1), walk.motion)
        return centring.outwards(there), motion

    def _weight(self, t: int) -> float:
        """Weight of the newest of ``t + 1`` steps in the running means."""
        return (_FORGETTING + 1) / (_FORGETTING + 1 + t) if self.average else 1.0

    def _noise(self, gradient: np.ndarray, variance: np.ndarray, roughness: np.ndarray, n_steps: int) -> float:
        """Return what of the largest entry is noise, judged by the entry furthest off; zero while it is too early.

        Persistent chains repeat themselves: where the gradient changes from step to step by the part ``q = 1 -
        correlation`` of what independent samples would make it, a step is worth ``q / (2 - q)`` of an independent one.
        Changes, unlike spreads, do not take a walk that is under way for noise (von Neumann 1941).
        """
        if not self.average or n_steps < self.min_iter:
            return 0.0
        known = variance > 0
        fresh = np.clip(roughness[known] / variance[known], 1 / _MOST_REPEATS, 1.0)
        weights = (_FORGETTING + 1) ** 2 / (2 * _FORGETTING + 1) / n_steps  # the sum of their squares
        largest = np.sqrt(2.0 * np.log(max(fresh.size, 1))) if n_steps >= _PATIENCE else 0.0
        error = max(_AT_REST, largest) * np.sqrt(weights * variance[known] * (2 - fresh) / fresh)
        worst = (gradient[known] / error).max(initial=0.0)
        return float(gradient.max() / worst) if worst else 0.0

    def _answer(self, walk: Walk, iterate: np.ndarray) -> np.ndarray:
        """Average the iterates; what the penalty holds at zero now is zero in the answer."""
        mean = _towards(iterate, walk.theta, self._weight(walk.evaluations))
        return np.where((self.l1 > 0) & (iterate == 0), 0.0, mean) if self.l1.any() else mean


def _towards(newest: np.ndarray, mean: np.ndarray, weight: float) -> np.ndarray:
    """Return a running mean with the newest value; of a walk that does not average that is all there is."""
    return newest if weight == 1.0 else mean + weight * (newest - mean)


# -- the rate that suits a model ---------------------------------------------------------------------------------------
def paced_adam(model: Model[DiscreteFamily]) -> Adam:
    """Return Adam at the default rate, lower where variables have more than twenty interactions.

    Adam moves all parameters by about the rate at once, in the first steps all the same way, so that the field on a
    variable moves by the rate times the number of its interactions. Chains do not keep up with fields that jump.
    """
    rate = min(OF_CHAINS.learning_rate, MOST_FIELD / max(_interactions_around(model), 1.0))
    return replace(OF_CHAINS, learning_rate=rate)


def _interactions_around(model: Model[DiscreteFamily]) -> float:
    """Interactions of a variable, in the mean over the ends of all interactions: hubs count as often as they act."""
    if is_ising(model.family):
        degrees = model.family.graph.degrees
    else:
        scopes = model.family.scopes
        larger = np.repeat(scopes.sizes > 1, scopes.sizes)
        degrees = np.bincount(scopes.csr[1][larger], minlength=model.n_variables)
    total = float(degrees.sum())
    return float(degrees @ degrees) / total if total else 0.0


# -- where the steps begin ---------------------------------------------------------------------------------------------
def from_independent(model: Model[Family], data: Dataset) -> Model[Any]:
    """Return the machine of independent columns with the data's means, where learning would begin at zero."""
    if model.theta.any() or model.n_hidden:
        return model
    theta = preconditioning(model.family).independent(shrunk_means(model, data))
    return model if theta is None else model.replace(theta)
