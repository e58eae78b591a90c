"""Learning a restricted machine by minibatches: the clamped phase at the rows, the free phase by chains (YK15, RBM)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gibbsian.data.minibatches import draw_seed, seeded
from gibbsian.errors import ArgumentError
from gibbsian.layered.gradient import Gradient, Offsets
from gibbsian.layered.monitors import Monitor
from gibbsian.layered.phases import FreePhase, SampledPhase, Samples, as_free_phase
from gibbsian.layered.progress import Point, Problem, RestrictedProgress
from gibbsian.layered.rates import FallingRate
from gibbsian.layered.rows import LayerRows
from gibbsian.learners.base import Learner, LearnerState
from gibbsian.learners.objective import check_penalties
from gibbsian.learners.result import FitResult
from gibbsian.learners.run import run
from gibbsian.models.restricted import RestrictedModel
from gibbsian.optimizers import Decay, StepInfo

# The offsets of the centred gradient follow the means of the minibatches by this share at every step.
_OFFSET_SHARE = 0.01
# Numbers that tell the generators of one seed apart: the start, and the epochs from there on.
_START = 0


@dataclass(frozen=True)
class RestrictedLearner(FallingRate, Learner):
    """Follow the gradient of the log-likelihood, clamped less free phase, on shuffled minibatches.

    A step of the fit is an epoch. Rows with whole numbers as weights occur that many times in it.

    Parameters
    ----------
    n_epochs : int
        Epochs after which the machine counts as trained.
    learning_rate : float
        Rate of the first step. The default was chosen on held-out rows of digits (20 hidden units) and MNIST (16 and
        500); machines of a few units learn faster with up to ten times as much.
    schedule : "linear", "constant" or Decay
        How the rate falls: evenly to zero at the end of the last epoch, not at all, or as a `Decay` counted in
        minibatches says.
    batch_size : int, optional
        About how many rows a minibatch has; by default such that an epoch has a hundred, within 10 to 100 rows.
    free_phase : str or FreePhase
        ``"pcd"`` (persistent chains), ``"cd"`` (chains from the minibatch), another registered name, or an object.
    n_steps, n_chains : int, optional
        Settings of the free phase given by name: steps a minibatch, and number of chains.
    momentum : float
        Share of the last step that is made again.
    centred : bool
        Use the centred gradient.
    l1, l2 : float
        Penalties ``l1 sum |W| + l2 sum W^2 / 2`` on the weights; biases are free.
    dtype : "float64" or "float32"
        Precision of parameters and chains. Random numbers do not depend on threads; the products of BLAS may round
        differently with other numbers of them.
    monitor : callable, optional
        Called with the model before the first epoch and after every one; the figures it returns are kept in the
        history beside the pseudolikelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.start import start_model
    >>> from gibbsian.layered.training import RestrictedLearner, train_restricted
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rng = np.random.default_rng(0)
    >>> rows = LayerRows(np.repeat(rng.random((1000, 1)) < 0.5, 4, axis=1).astype(np.int8))     # all on or all off
    >>> start = start_model(BinaryLayer(4), BinaryLayer(2), rows, rng)
    >>> fit = train_restricted(RestrictedLearner(n_epochs=30, learning_rate=1.0), start, rows, rng)
    >>> fit.result.reason
    'trained for 30 epochs'
    >>> bool(fit.history["log_pseudolikelihood"][-1] > -0.5)                                  # from -2.77
    True
    """

    n_epochs: int = 50
    learning_rate: float = 0.2
    schedule: Decay | str = "linear"
    batch_size: int | None = None
    free_phase: FreePhase | str = "pcd"
    n_steps: int | None = None
    n_chains: int | None = None
    momentum: float = 0.0
    centred: bool = True
    l1: float = 0.0
    l2: float = 0.0
    dtype: str = "float64"
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        check_penalties(self.l1, self.l2)
        for name, number in (("n_epochs", self.n_epochs), ("batch_size", self.batch_size)):
            if number is not None and number < 1:
                raise ArgumentError(f"{name}={number} must be at least 1")
        self._check_rate()
        if self.dtype not in ("float64", "float32"):
            raise ArgumentError("must be 'float64' or 'float32'", argument="dtype", value=self.dtype)
        settings = {"n_steps": self.n_steps, "n_chains": self.n_chains}
        given = {name: value for name, value in settings.items() if value is not None}
        object.__setattr__(self, "free_phase", as_free_phase(self.free_phase, **given))
        # the phase has them now: the learner can be copied with other settings
        object.__setattr__(self, "n_steps", None)
        object.__setattr__(self, "n_chains", None)

    def init(self, model: RestrictedModel, rows: LayerRows, rng: np.random.Generator) -> LearnerState:
        """Draw the seed, start chains and missing cells."""
        problem = Problem.of(model, rows, isinstance(self.free_phase, SampledPhase))
        return LearnerState(problem, self._start(problem, draw_seed(rng)))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Learn from every row once."""
        problem, progress = state.problem, state.progress
        if progress.epoch < self.n_epochs:
            progress = self._watched(problem, self.epoch(problem, progress))
        verdict = ""
        if progress.epoch >= self.n_epochs and np.isfinite(progress.gradient_norm):
            verdict = f"trained for {self.n_epochs} epoch{'s' * (self.n_epochs != 1)}"
        rate = self.rate_after(progress.steps - 1, len(problem.cuts(self.batch_size)) * self.n_epochs)
        info = StepInfo(progress.value, progress.gradient_norm, rate, progress.steps, verdict=verdict)
        return LearnerState(problem, progress), info

    def epoch(self, problem: Problem, progress: RestrictedProgress) -> RestrictedProgress:
        """Learn from every row once, in minibatches; the progress that is given stays as it is."""
        rng = seeded(progress.seed, progress.epoch + 1)
        cuts = problem.cuts(self.batch_size)
        order = rng.permutation(problem.filling.rows.draws(rng))
        here = Point.copy_of(problem.model, progress)
        last, moved = len(cuts) * self.n_epochs, 0.0
        for k in range(len(cuts)):
            start, stop = cuts[k]
            rate = self.rate_after(progress.steps + k, last) / problem.model.temperature
            self._learn(problem, here, order[start:stop], rate, rng)
            moved += rate / (1.0 - self.momentum)
        change = np.abs(here.model.theta - progress.theta).max() / moved if moved else 0.0
        return replace(
            progress,
            theta=here.model.theta,
            velocity=here.velocity,
            offsets=here.offsets,
            free=here.free,
            filled=here.filled,
            epoch=progress.epoch + 1,
            steps=progress.steps + len(cuts),
            gradient_norm=float(change),
        )

    def direction(self, problem: Problem, here: Point, values: np.ndarray, rng: np.random.Generator) -> Gradient:
        """Return the gradient at a minibatch; the chains move on."""
        fields = here.model.hidden_fields(values)
        data = Samples(values, here.model.hidden_means_at(fields))
        phase: Any = self.free_phase
        if problem.sampled:
            free, here.free = phase.samples(here.model, here.free, fields, rng)
        else:
            free, here.free = phase(here.model, here.free, values, rng)
        return problem.gradient(data, free, here.offsets if self.centred else None)

    def _learn(self, problem: Problem, here: Point, places: np.ndarray, rate: float, rng: np.random.Generator) -> None:
        """Take one step, in place."""
        values = problem.filling.renew(here.model, places, here.filled, rng)
        gradient = self.direction(problem, here, values, rng)
        here.move(gradient, rate, self.momentum, self.l1, self.l2)
        here.offsets = here.offsets.towards(gradient.data, _OFFSET_SHARE)

    def _start(self, problem: Problem, seed: np.ndarray) -> RestrictedProgress:
        model = problem.model.replace(problem.model.theta.astype(self.dtype))
        rng = seeded(seed, _START)
        rows = problem.filling.rows
        visible = rows.mean_values(model.visible).astype(self.dtype)
        progress = RestrictedProgress(
            theta=model.theta,
            velocity=np.zeros_like(model.theta),
            offsets=Offsets(visible, model.hidden_means(visible[None])[0]),
            free=self.free_phase.init(model, rows, rng),  # type: ignore[union-attr]
            filled=problem.filling.start(model, rng),
            seed=seed,
            epoch=0,
            steps=0,
            value=0.0,
            gradient_norm=np.inf,
            history=np.empty((0, 0)),
        )
        return self._watched(problem, progress)

    def _watched(self, problem: Problem, progress: RestrictedProgress) -> RestrictedProgress:
        """Add a row to the history."""
        model = problem.model.replace(progress.theta)
        own = problem.watched(model, progress.filled)
        figures = own | (dict(self.monitor(model)) if self.monitor is not None else {})
        problem.names = tuple(figures)
        name, value = next(iter(own.items()))
        row = np.array([list(figures.values())], dtype=np.float64)
        history = np.concatenate([progress.history, row]) if len(progress.history) else row
        return replace(progress, value=-value if name == "log_pseudolikelihood" else value, history=history)


@dataclass(frozen=True)
class RestrictedFit:
    """A trained machine with the story of its training.

    Parameters
    ----------
    result : FitResult
        Model, trace and how the fit ended.
    history : dict of str to ndarray
        For each figure, its value before the first epoch and after every one.
    progress : RestrictedProgress
        Chains and all: what `update` needs to go on.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.start import start_model
    >>> from gibbsian.layered.training import RestrictedLearner, train_restricted
    >>> from gibbsian.models.layers import SpinLayer
    >>> rows, rng = LayerRows(2 * np.eye(3, dtype=np.int8) - 1), np.random.default_rng(0)
    >>> start = start_model(SpinLayer(3), SpinLayer(2), rows, rng)
    >>> train_restricted(RestrictedLearner(n_epochs=2), start, rows, rng).history["log_pseudolikelihood"].shape
    (3,)
    """

    result: FitResult
    history: dict[str, np.ndarray]
    progress: RestrictedProgress

    @property
    def model(self) -> RestrictedModel:
        """The trained machine."""
        return self.result.model  # type: ignore[return-value]


def train_restricted(
    learner: RestrictedLearner,
    model: RestrictedModel,
    rows: LayerRows,
    rng: np.random.Generator,
    *,
    callbacks: Sequence[Any] = (),
) -> RestrictedFit:
    """Train a machine for the learner's epochs.

    Parameters
    ----------
    learner, model, rows, rng
        What learns, from where, from what, with which randomness.
    callbacks
        As for `gibbsian.learners.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.start import start_model
    >>> from gibbsian.layered.training import RestrictedLearner, train_restricted
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rows, rng = LayerRows(np.eye(3, dtype=np.int8)), np.random.default_rng(0)
    >>> start = start_model(BinaryLayer(3), BinaryLayer(2), rows, rng)
    >>> len(train_restricted(RestrictedLearner(n_epochs=7), start, rows, rng).result.trace)
    7
    """
    kept = _Kept(learner)
    # one step more than there are epochs: a run that is resumed at its end tells what it has without learning more
    limits = {"max_iter": learner.n_epochs + 1, "tol": np.finfo(np.float64).tiny}
    result = run(kept, model, rows, rng, callbacks=callbacks, **limits)  # type: ignore[arg-type]
    assert kept.last is not None
    return RestrictedFit(result, _columns(kept.last), kept.last.progress)


def update(
    learner: RestrictedLearner,
    progress: RestrictedProgress | None,
    model: RestrictedModel,
    rows: LayerRows,
    rng: np.random.Generator,
) -> tuple[RestrictedModel, RestrictedProgress]:
    """Learn from one chunk of rows as it arrives, in one epoch over it.

    Parameters
    ----------
    learner : RestrictedLearner
        The settings; a linear schedule counts as constant, because there is no last chunk.
    progress : RestrictedProgress or None
        What the call before returned; None for the first chunk, which starts from the model's parameters.
    model : RestrictedModel
        The machine; after the first call only its layers count.
    rows : LayerRows
        The chunk.
    rng : Generator
        Used by the first call only.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.start import start_model
    >>> from gibbsian.layered.training import RestrictedLearner, update
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rng = np.random.default_rng(0)
    >>> first, second = (LayerRows(rng.integers(0, 2, (50, 3))) for _ in range(2))
    >>> model, progress = start_model(BinaryLayer(3), BinaryLayer(2), first, rng), None
    >>> for chunk in (first, second):
    ...     model, progress = update(RestrictedLearner(batch_size=10), progress, model, chunk, rng)
    >>> progress.epoch, progress.steps
    (2, 10)
    """
    if learner.schedule == "linear":
        learner = replace(learner, schedule="constant")
    if progress is None:
        state = learner.init(model, rows, rng)
    else:
        problem = Problem.of(model, rows, isinstance(learner.free_phase, SampledPhase))
        # other rows, other missing cells: they are drawn afresh
        filled = problem.filling.start(model.replace(progress.theta), seeded(progress.seed, _START, progress.epoch))
        state = LearnerState(problem, replace(progress, filled=filled))
    progress = learner._watched(state.problem, learner.epoch(state.problem, state.progress))
    return model.replace(progress.theta), progress


@dataclass
class _Kept(Learner):
    """A learner that remembers its last state, which the driver does not give back."""

    learner: RestrictedLearner
    last: LearnerState | None = None

    def init(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        return self.learner.init(model, data, rng)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        self.last, info = self.learner.step(state)
        return self.last, info


def _columns(state: LearnerState) -> dict[str, np.ndarray]:
    return dict(zip(state.problem.names, state.progress.history.T, strict=True))


__all__ = ["RestrictedFit", "RestrictedLearner", "RestrictedProgress", "train_restricted", "update"]
