"""Yasuda 2018: learning on a 4x4 grid without biases, against the exact maximum likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbsian.data import Dataset
from gibbsian.graphs import grid
from gibbsian.inference import exact
from gibbsian.learners import LEARNERS, Learner, as_learner, train
from gibbsian.models import PairwiseModel
from gibbsian.optimizers import Ascent
from gibbsian.rng import RandomState, as_generator

# The paper halves the gradient of the pseudolikelihood so that its size is that of the likelihood (eq. 13); ratio
# matching and probability flow follow their own gradients, the latter twice as long at w = 0.
GRADIENT_SCALE = {"mple": 0.5}


@dataclass(frozen=True)
class LearningCurves:
    """Mean absolute error to the maximum likelihood solution after each step, averaged over trials.

    Parameters
    ----------
    curves : dict of str to ndarray of shape (n_steps + 1,)
        The error of each learner, from the start (w = 0) on.
    n_trials : int
        Data sets behind each average.

    Examples
    --------
    >>> from gibbsian.papers.y18 import figure_3
    >>> figure_3(n_trials=1, n_steps=5, random_state=0).n_trials
    1
    """

    curves: dict[str, np.ndarray]
    n_trials: int


def figure_3(
    n_rows: int = 2000,
    n_trials: int = 200,
    n_steps: int = 100,
    rate: float = 0.2,
    learners: Sequence[str] = ("mle", "mple", "rm", "mpf"),
    random_state: RandomState = 0,
) -> LearningCurves:
    """Return the learning curves of Y18 figure 3 (``n_rows=200`` for 3a, 2000 for 3b), for any learners.

    Couplings of the generating 4x4 grid are uniform in [-0.3, 0.3]; each learner starts at zero and takes plain ascent
    steps of size `rate`.

    Examples
    --------
    >>> from gibbsian.papers.y18 import figure_3
    >>> curves = figure_3(n_trials=2, n_steps=60, random_state=0).curves
    >>> bool(curves["mple"][-1] < 0.1 * curves["mple"][0])
    True
    """
    rng = as_generator(random_state)
    totals = {name: np.zeros(n_steps + 1) for name in learners}
    for _ in range(n_trials):
        start, data = _trial(n_rows, rng)
        solution = train(as_learner("mle"), start, data, rng, tol=1e-8).model.theta
        for name in learners:
            path = _path(_by_ascent(name, rate), start, data, n_steps, rng)
            totals[name] += np.abs(path - solution).mean(axis=1)
    return LearningCurves({name: total / n_trials for name, total in totals.items()}, n_trials)


def _trial(n_rows: int, rng: np.random.Generator) -> tuple[PairwiseModel, Dataset]:
    graph = grid(4, 4)
    truth = PairwiseModel.build(graph, None, rng.uniform(-0.3, 0.3, graph.n_edges))
    return truth.replace(np.zeros(graph.n_edges)), Dataset.read(exact(truth).sample(n_rows, rng), coding="spin")


def _by_ascent(name: str, rate: float) -> Learner:
    return LEARNERS.create(name, optimizer=Ascent(rate=rate * GRADIENT_SCALE.get(name, 1.0)))


def _path(learner: Learner, start: PairwiseModel, data: Dataset, n_steps: int, rng: np.random.Generator) -> np.ndarray:
    state = learner.init(start, data, rng)
    path = [state.progress.theta]
    for _ in range(n_steps):
        state, _ = learner.step(state)
        path.append(state.progress.theta)
    return np.array(path)
