"""What the learners of deep machines share: epochs of shuffled minibatches, the rate, momentum and penalties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gibbsian.data.minibatches import Cuts, draw_seed, seeded
from gibbsian.layered.filling import check_rows
from gibbsian.layered.rates import FallingRate
from gibbsian.layered.rows import LayerRows
from gibbsian.learners.base import Learner, LearnerState
from gibbsian.learners.objective import check_penalties
from gibbsian.learners.result import FitResult
from gibbsian.learners.run import run
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel
from gibbsian.optimizers import Decay, StepInfo
from gibbsian.optimizers.base import soft_threshold

# Numbers that tell the generators of one seed apart: the start, and the epochs from there on.
_START = 0


@dataclass(frozen=True)
class EpochProgress:
    """All that the next epoch needs besides the rows: plain arrays and numbers.

    Parameters
    ----------
    theta, velocity : ndarray
        The parameters, and the step that momentum carries on.
    phases : Any
        What a learner remembers from one minibatch to the next: chains, offsets.
    seed : ndarray
        What the order of the rows and all draws follow from.
    epoch, steps : int
        Epochs and minibatches so far.
    value, gradient_norm : float
        As told after the last epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_training import DeepLearner
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> dbm = DeepModel.build([BinaryLayer(2), BinaryLayer(1), BinaryLayer(1)])
    >>> DeepLearner().init(dbm, LayerRows(np.eye(2)), np.random.default_rng(0)).progress.epoch
    0
    """

    theta: np.ndarray
    velocity: np.ndarray
    phases: Any
    seed: np.ndarray
    epoch: int
    steps: int
    value: float
    gradient_norm: float


class Direction(NamedTuple):
    """What a learner makes of one minibatch.

    Parameters
    ----------
    gradient : ndarray
        The direction of the step, in the layout of theta.
    phases : Any
        What it remembers for the next.
    misfit : float
        The mean of ``-log P(v | h)`` over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.epochs import Direction
    >>> Direction(np.zeros(3), None, 0.5).misfit
    0.5
    """

    gradient: np.ndarray
    phases: Any
    misfit: float


@dataclass(frozen=True)
class EpochLearner(FallingRate, Learner, ABC):
    """A learner whose step is an epoch; subclasses say what one minibatch teaches.

    Parameters
    ----------
    n_epochs : int
        Epochs after which the machine counts as trained.
    learning_rate : float
        Rate of the first step.
    schedule : "linear", "constant" or Decay
        How the rate falls: evenly to zero at the end of the last epoch, not at all, or as a `Decay` counted in
        minibatches says.
    batch_size : int
        About how many rows a minibatch has.
    momentum : float
        Share of the last step that is made again.
    l1, l2 : float
        Penalties ``l1 sum |W| + l2 sum W^2 / 2`` on the weights; biases are free.
    n_chains, n_steps : int
        Chains of the free phase, and their steps a minibatch.
    """

    n_epochs: int = 50
    learning_rate: float = 0.05
    schedule: Decay | str = "linear"
    batch_size: int = 100
    momentum: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    n_chains: int = 100
    n_steps: int = 1

    def __post_init__(self) -> None:
        check_penalties(self.l1, self.l2)
        for name in ("n_epochs", "batch_size", "n_chains", "n_steps"):
            check_whole_number(name, getattr(self, name))
        self._check_rate()

    @abstractmethod
    def start(self, model: Any, rows: LayerRows, rng: np.random.Generator) -> Any:
        """Return what is remembered before the first minibatch."""

    @abstractmethod
    def direction(self, model: Any, phases: Any, batch: LayerRows, rng: np.random.Generator) -> Direction:
        """Return what one minibatch teaches the model as it stands."""

    def init(self, model: Any, rows: LayerRows, rng: np.random.Generator) -> LearnerState:
        """Draw the seed, and start the chains."""
        check_rows(RestrictedModel.build(model.visible, model.layers[1]), rows)
        seed = draw_seed(rng)
        phases = self.start(model, rows, seeded(seed, _START))
        progress = EpochProgress(model.theta, np.zeros_like(model.theta), phases, seed, 0, 0, 0.0, np.inf)
        return LearnerState((model, rows), progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Learn from every row once.

        The value reported is the mean of ``-log P(v | h)`` over the rows, h what the row makes of the lowest hidden
        layer: a likelihood needs log Z, which nobody knows during a fit.
        """
        (model, rows), progress = state.problem, state.progress
        if progress.epoch < self.n_epochs:
            progress = self.epoch(model, rows, progress)
        verdict = ""
        if progress.epoch >= self.n_epochs and np.isfinite(progress.gradient_norm):
            verdict = f"trained for {self.n_epochs} epoch{'s' * (self.n_epochs != 1)}"
        rate = self.rate_after(progress.steps, self.n_epochs * n_batches(rows, self.batch_size))
        info = StepInfo(progress.value, progress.gradient_norm, rate, progress.steps, verdict=verdict)
        return LearnerState(state.problem, progress), info

    def epoch(self, model: Any, rows: LayerRows, progress: EpochProgress) -> EpochProgress:
        """Go through the rows once, in minibatches."""
        rng = seeded(progress.seed, progress.epoch + 1)
        n = n_batches(rows, self.batch_size)
        theta, velocity, phases = progress.theta, progress.velocity, progress.phases
        mean, misfit = np.zeros_like(theta), 0.0
        for k, batch in enumerate(minibatches(rows, self.batch_size, rng)):
            found = self.direction(model.replace(theta), phases, batch, rng)
            phases = found.phases
            rate = self.rate_after(progress.steps + k, self.n_epochs * n)
            theta, velocity = self._moved(model, theta, velocity, found.gradient, rate)
            mean += found.gradient / n
            misfit += found.misfit / n
        return replace(
            progress,
            theta=theta,
            velocity=velocity,
            phases=phases,
            epoch=progress.epoch + 1,
            steps=progress.steps + n,
            value=misfit,
            gradient_norm=float(np.abs(mean).max()),
        )

    def _moved(
        self, model: Any, theta: np.ndarray, velocity: np.ndarray, gradient: np.ndarray, rate: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Make a step: momentum for all, penalties on the weights."""
        if self.l2:
            gradient = gradient - self.l2 * np.where(model.penalised, theta, 0.0)
        velocity = (self.momentum * velocity + rate * gradient).astype(theta.dtype)
        theta = theta + velocity
        if self.l1:
            # with momentum a step of the gradient adds up to 1 / (1 - momentum) times its length
            threshold = np.where(model.penalised, rate * self.l1 / (1.0 - self.momentum), 0.0)
            theta = soft_threshold(theta, threshold).astype(theta.dtype)
        return theta, velocity


def train_epochs(
    learner: EpochLearner,
    model: Any,
    rows: LayerRows,
    rng: np.random.Generator,
    *,
    callbacks: Sequence[Any] = (),
) -> FitResult:
    """Train a machine for the learner's epochs.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_training import DeepLearner
    >>> from gibbsian.layered.epochs import train_epochs
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> dbm = DeepModel.build([BinaryLayer(2), BinaryLayer(1), BinaryLayer(1)])
    >>> train_epochs(DeepLearner(n_epochs=3), dbm, LayerRows(np.eye(2)), np.random.default_rng(0)).reason
    'trained for 3 epochs'
    """
    # one step more than there are epochs: a run that is resumed at its end tells what it has without learning more
    limits = {"max_iter": learner.n_epochs + 1, "tol": np.finfo(np.float64).tiny}
    return run(learner, model, rows, rng, callbacks=callbacks, **limits)  # type: ignore[arg-type]


def update_epoch(
    learner: EpochLearner, progress: EpochProgress | None, model: Any, rows: LayerRows, rng: np.random.Generator
) -> EpochProgress:
    """Learn from one chunk of rows as it arrives, in one epoch over it.

    Parameters
    ----------
    learner : EpochLearner
        The settings; a linear schedule counts as constant, because there is no last chunk.
    progress : EpochProgress or None
        What the call before returned; None for the first chunk, which starts from the model's parameters.
    model : DeepModel or BeliefNetwork
        The machine; after the first call only its layers count.
    rows : LayerRows
        The chunk.
    rng : Generator
        Used by the first call only.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_training import DeepLearner
    >>> from gibbsian.layered.epochs import update_epoch
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rng, progress = np.random.default_rng(0), None
    >>> dbm = DeepModel.build([BinaryLayer(3), BinaryLayer(2), BinaryLayer(2)])
    >>> for chunk in rng.integers(0, 2, (2, 50, 3)):
    ...     progress = update_epoch(DeepLearner(batch_size=10), progress, dbm, LayerRows(chunk), rng)
    >>> progress.epoch, progress.steps
    (2, 10)
    """
    if learner.schedule == "linear":
        learner = replace(learner, schedule="constant")
    if progress is None:
        progress = learner.init(model, rows, rng).progress
    else:
        check_rows(RestrictedModel.build(model.visible, model.layers[1]), rows)
    assert progress is not None
    return learner.epoch(model, rows, progress)


def n_batches(rows: LayerRows, batch_size: int) -> int:
    """Return the number of minibatches of an epoch."""
    return len(Cuts(rows.n_draws, batch_size))


def minibatches(rows: LayerRows, batch_size: int, rng: np.random.Generator) -> Iterator[LayerRows]:
    """Go through the rows once in random order; weighted rows occur as often as their weights say.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.epochs import minibatches
    >>> from gibbsian.layered.rows import LayerRows
    >>> rows = LayerRows(np.array([[0], [1]]), weights=np.array([1.0, 3.0]))
    >>> batches = minibatches(rows, 1, np.random.default_rng(0))
    >>> sorted(batch.states.item() for batch in batches)
    [0, 1, 1, 1]
    """
    order, cuts = rng.permutation(rows.draws(rng)), Cuts(rows.n_draws, batch_size)
    for k in range(len(cuts)):
        start, stop = cuts[k]
        places = order[start:stop]
        yield LayerRows(rows.states[places], None, None if rows.missing is None else rows.missing[places])


__all__ = ["Direction", "EpochLearner", "EpochProgress", "minibatches", "n_batches", "train_epochs", "update_epoch"]
