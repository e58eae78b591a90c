"""Several fits of one learner, one after the other: starts of which the best is kept, or stages of annealing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.learning.around import Around
from gibbsian.learning.base import LEARNERS, LearnerState, name_of
from gibbsian.learning.optimizers import Converged, Failed, Outcome, Running, StepInfo, Stopped
from gibbsian.learning.run import outcome_of
from gibbsian.models.base import Family, Model
from gibbsian.models.mixtures.base import WeightedSample
from gibbsian.models.mixtures.gaussian import GaussianMixtureFamily, variance_schedule
from gibbsian.rng import as_pcg64, generator_of, generator_words
from gibbsian.settings import check, declared, flag, free, number, positional, whole

# Steps of a run that ends when its learner says so.
ENDLESS = 10**9
# Classes that coincide never part by themselves: each stage moves them by this share of their width.
NUDGE = 1e-3


@dataclass(frozen=True)
class Within:
    """Model, data and what the learner within has made of them once."""

    model: Any
    data: Any
    state: LearnerState


class Ending(NamedTuple):
    """How a fit within has ended: where, at what step, and with what outcome."""

    state: LearnerState
    info: StepInfo
    outcome: Converged | Stopped | Failed


class Staged(Around):
    """Runs the learner within several times. A step is one of its steps, so that callbacks work across the stages.

    `progress` has the fields `present` (where the present fit stands), `stage`, `n_steps` (of this fit) and `theta`.
    """

    max_iter: int | None
    tol: float

    def __post_init__(self) -> None:
        check(self)
        if isinstance(self.learner, str):
            object.__setattr__(self, "learner", LEARNERS.create(self.learner))

    def stepped(self, progress: Any) -> Any:
        """Return the progress after a step of the present fit."""
        raise NotImplementedError

    def details(self, progress: Any) -> dict[str, float]:
        """Return the columns of the trace that say which stage a step belongs to."""
        raise NotImplementedError

    def ended(self, problem: Within, progress: Any, ending: Ending) -> Any:
        """Return the progress after the last step of a fit."""
        raise NotImplementedError

    def outcome(self, progress: Any, ending: Ending) -> Outcome:
        """Return the outcome of the whole, `Running` while there are stages to come."""
        raise NotImplementedError

    def following(self, problem: Within, progress: Any, ending: Ending) -> tuple[LearnerState, Any]:
        """Begin the next fit."""
        raise NotImplementedError

    def start(self, model: Model[Family], data: Dataset, rng: np.random.Generator) -> Any:
        """Return the model itself: each fit begins by itself."""
        return model

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Take a step of the present fit; after its last one begin the next."""
        inner, info = self.learner.step(self.present(state))
        problem = replace(state.problem, state=inner)  # which a learner of several stages makes anew for each
        progress = replace(state.progress, present=inner.progress, n_steps=state.progress.n_steps + 1)
        progress = self.stepped(progress)
        ended = outcome_of(info, progress.n_steps, self.max_iter, self.tol)
        if isinstance(ended, Running):
            return LearnerState(problem, progress), continuing(info, self.details(progress))
        ending = Ending(inner, info, ended)
        progress = self.ended(problem, progress, ending)
        details, outcome = self.details(progress), self.outcome(progress, ending)
        info = continuing(info, details)._replace(outcome=outcome)
        if not isinstance(outcome, Running):
            return LearnerState(problem, progress), info
        inner, progress = self.following(problem, progress, ending)
        progress = replace(progress, present=inner.progress, stage=progress.stage + 1, n_steps=0)
        return LearnerState(replace(problem, state=inner), progress), info

    def present(self, state: LearnerState) -> LearnerState:
        """Return where the present fit stands."""
        return LearnerState(state.problem.state.problem, state.progress.present)

    def within(self, state: LearnerState) -> LearnerState:
        """Return where the present fit stands."""
        return self.present(state)

    def kept(self, state: LearnerState) -> LearnerState | None:
        """Return what the learner within keeps of it for `partial_fit`."""
        return self.learner.kept(self.within(state))


def continuing(info: StepInfo, details: dict[str, float]) -> StepInfo:
    """Return a step after which the fit continues, whatever the inner learner said of it."""
    return info._replace(noise=0.0, outcome=Running(), metrics={**info.metrics, **details})


# -- several starts ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RestartsProgress:
    """Where the present start stands, and the best one so far.

    `theta` and `best` are those of the best start that has ended, or of the first one while it is under way;
    `best_reason` says in bytes how it ended. `streams` are the generators of the starts.
    """

    theta: np.ndarray
    present: Any
    stage: int
    n_steps: int
    best: Any
    best_start: int
    best_value: float
    best_degenerate: bool
    best_converged: bool
    best_reason: str
    best_hint: str
    streams: np.ndarray


@declared(frozen=True)
class Restarts(Staged):
    """Runs a learner from several starts, each with a generator of its own, and keeps the one of least value.

    A degenerate solution (its likelihood may have no bound) is kept only where no start gave a sound one. A step is a
    step of the present start, so that progress, checkpoints and Ctrl-C work across the starts; the trace says which
    start a step belongs to, and which is the best so far.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learning import Restarts
    >>> few, many = (Restarts(gb.learning.EM(), n_init=n) for n in (1, 5))
    >>> few.n_init, many.n_init
    (1, 5)
    """

    learner: Any = positional(kw_only=False, default=free("em", "What learns from each start.", doc="Learner or str"))
    n_init: int = positional(kw_only=False, default=whole(5, "Starts.", least=1))
    max_iter: int | None = whole(
        1000, "Most steps of each start; None where the learner says itself when it is done.", least=1, optional=True
    )
    tol: float = number(1e-6, "When a start has converged: no entry of the gradient is larger.", least=0)
    spawn: bool = flag(True, "Give each start a generator of its own; otherwise one serves them all in turn.")
    loss: Any = free(
        None,
        "Judges starts whose learner has no value: a function of model, data and generator.",
        doc="callable, optional",
    )

    @property
    def registered_name(self) -> str:
        """The name of what learns."""
        return name_of(self.learner)

    def most_steps(self, model: Model[Family], max_iter: int) -> int:
        """Return how many steps all starts together may take."""
        return ENDLESS if self.max_iter is None else self.n_init * self.max_iter

    def init(self, model: Model[Family], data: Rows, rng: np.random.Generator) -> LearnerState:
        """Prepare the first start."""
        rng = as_pcg64(rng)
        generators = rng.spawn(self.n_init) if self.spawn else [rng] * self.n_init
        streams = np.array([generator_words(one) for one in generators])
        first = generator_of(streams[0])
        inner = self.learner.init(self.learner.start(model, data, first), data, first)
        progress = RestartsProgress(
            theta=inner.progress.theta,
            present=inner.progress,
            stage=0,
            n_steps=0,
            best=inner.progress,
            best_start=-1,
            best_value=float("inf"),
            best_degenerate=True,
            best_converged=False,
            best_reason="",
            best_hint="",
            streams=self._streams_after(streams, 0, first),
        )
        return LearnerState(Within(model, data, inner), progress)

    def _streams_after(self, streams: np.ndarray, start: int, rng: np.random.Generator) -> np.ndarray:
        """Return the generators of the starts after one has begun: where they share one it has moved on."""
        if self.spawn:
            return streams
        later = np.arange(self.n_init)[:, None] > start
        return np.where(later, generator_words(rng), streams)

    def stepped(self, progress: RestartsProgress) -> RestartsProgress:
        """Show the first start while none has ended."""
        if progress.best_start >= 0:
            return progress
        return replace(progress, theta=progress.present.theta, best=progress.present)

    def details(self, progress: RestartsProgress) -> dict[str, float]:
        """Return the start, and the best so far."""
        return {"start": float(progress.stage), "best": float(max(progress.best_start, 0))}

    def ended(self, problem: Within, progress: RestartsProgress, ending: Ending) -> RestartsProgress:
        """Keep the better of the start that has ended and the best before it."""
        degenerate = bool(self.learner.warning(ending.state))
        value = self._value(problem, progress, ending)
        if (progress.best_degenerate, progress.best_value) <= (degenerate, value) and progress.best_start >= 0:
            return progress
        return replace(
            progress,
            theta=ending.state.progress.theta,
            best=ending.state.progress,
            best_start=progress.stage,
            best_value=value,
            best_degenerate=degenerate,
            best_converged=isinstance(ending.outcome, Converged),
            best_reason=ending.outcome.reason,
            best_hint=ending.outcome.hint,
        )

    def _value(self, problem: Within, progress: RestartsProgress, ending: Ending) -> float:
        """Return what a start is judged by: the learner's value, or the loss where it has none."""
        if np.isfinite(ending.info.value) or self.loss is None:
            return ending.info.value
        rng = generator_of(progress.streams[progress.stage])
        return float(self.loss(self.learner.fitted(problem.model, ending.state), problem.data, rng))

    def outcome(self, progress: RestartsProgress, ending: Ending) -> Outcome:
        """Return the outcome of the best start, after the last of them."""
        if progress.stage + 1 < self.n_init:
            return Running()
        reason = progress.best_reason + f" (the best of {self.n_init} starts)" * (self.n_init > 1)
        return Converged(reason) if progress.best_converged else Stopped(reason, progress.best_hint)

    def following(
        self, problem: Within, progress: RestartsProgress, ending: Ending
    ) -> tuple[LearnerState, RestartsProgress]:
        """Begin the next start, with its generator."""
        following = progress.stage + 1
        inner, rng = self._begun(problem, progress.streams[following])
        return inner, replace(progress, streams=self._streams_after(progress.streams, following, rng))

    def _begun(self, problem: Within, stream: np.ndarray) -> tuple[LearnerState, np.random.Generator]:
        """Return a start before its first step, and the generator that has drawn it."""
        rng = generator_of(stream)
        begun = self.learner.start(problem.model, problem.data, rng)
        return self.learner.restarted(problem.state, begun, problem.data, rng), rng

    def within(self, state: LearnerState) -> LearnerState:
        """Return the best start so far."""
        return LearnerState(state.problem.state.problem, state.progress.best)

    def restored(self, state: LearnerState, progress: RestartsProgress) -> LearnerState:
        """Go on with the start that a checkpoint held, drawn again by its own generator."""
        best = self.learner.restored(state.problem.state, progress.best)
        begun, _ = self._begun(state.problem, progress.streams[progress.stage])
        present = self.learner.restored(begun, progress.present)
        progress = replace(progress, present=present.progress, best=best.progress)
        return LearnerState(replace(state.problem, state=present), progress)


# -- annealing --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class AnnealedProgress:
    """Where the learner of the present stage stands; `nudges` move the classes apart, one for each stage."""

    theta: np.ndarray
    present: Any
    stage: int
    n_steps: int
    n_before: int
    widths: np.ndarray
    nudges: np.ndarray

    @property
    def n_after(self) -> int:
        """Steps of all stages so far."""
        return self.n_before + self.n_steps


@declared(frozen=True)
class Annealed(Staged):
    """Learns a mixture of fixed variance at a falling one (YK15, "Soft K-means").

    Every stage begins where the one before has ended, the first at a variance where all classes coincide; that avoids
    most poor local minima.

    Examples
    --------
    >>> from gibbsian.learning import Annealed
    >>> Annealed(cooling=0.5).cooling
    0.5
    """

    learner: Any = positional(kw_only=False, default=free("em", "What learns at each variance.", doc="Learner or str"))
    cooling: float = number(0.8, "The factor between two variances.", above=0, below=1)
    max_iter: int = whole(1000, "Most steps of each stage.", least=1)
    tol: float = number(1e-8, "When a stage has converged.", least=0)

    def most_steps(self, model: Model[Family], max_iter: int) -> int:
        """Return no limit: each stage has its own."""
        return ENDLESS

    def init(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Put all classes together, at the largest variance."""
        return self._begun(model, data, rng, lambda first: self.learner.init(first, data, rng))

    def restarted(self, state: LearnerState, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Begin again with other nudges."""
        within = state.problem.state
        return self._begun(model, data, rng, lambda first: self.learner.restarted(within, first, data, rng))

    def _begun(self, model: Any, data: Any, rng: np.random.Generator, begin: Any) -> LearnerState:
        family: GaussianMixtureFamily = model.family
        rows = WeightedSample.of(data)
        origin = family.frame(rows).origin
        points = family.points(rows.x, rows.mask, origin)
        widths = variance_schedule(points, rows.weights, float(family.variance), self.cooling)
        middle = np.average(points, axis=0, weights=rows.weights) + origin
        together = model.replace(family.equal(np.tile(middle, (family.n_components, 1))))
        nudges = rng.normal(size=(len(widths), *together.parts.means.shape))
        inner = begin(_cooled(together, widths[0], nudges[0]))
        progress = AnnealedProgress(inner.progress.theta, inner.progress, 0, 0, 0, widths, nudges)
        return LearnerState(Within(model, data, inner), progress)

    def stepped(self, progress: AnnealedProgress) -> AnnealedProgress:
        """Show the present stage."""
        return replace(progress, theta=progress.present.theta)

    def details(self, progress: AnnealedProgress) -> dict[str, float]:
        """Return the variance of the stage."""
        return {"stage": float(progress.widths[progress.stage])}

    def ended(self, problem: Within, progress: AnnealedProgress, ending: Ending) -> AnnealedProgress:
        """Return the progress as it is."""
        return progress

    def outcome(self, progress: AnnealedProgress, ending: Ending) -> Outcome:
        """Return the outcome of the last stage."""
        n_stages = len(progress.widths)
        if progress.stage + 1 < n_stages:
            return Running()
        if isinstance(ending.outcome, Converged) and n_stages > 1:
            return Converged(f"converged after {progress.n_after} steps in {n_stages} stages")
        return ending.outcome

    def following(
        self, problem: Within, progress: AnnealedProgress, ending: Ending
    ) -> tuple[LearnerState, AnnealedProgress]:
        """Lower the variance."""
        model = self.learner.fitted(problem.model, ending.state)
        inner = self._at_stage(ending.state, model, problem.data, progress, progress.stage + 1)
        return inner, replace(progress, n_before=progress.n_after)

    def _at_stage(
        self, within: LearnerState, model: Any, data: Rows, progress: AnnealedProgress, stage: int
    ) -> LearnerState:
        """Begin a stage at a model, whose classes are where they are: nothing is drawn."""
        cooled = _cooled(model, progress.widths[stage], progress.nudges[stage])
        return self.learner.restarted(within, cooled, data, np.random.default_rng(0))

    def restored(self, state: LearnerState, progress: AnnealedProgress) -> LearnerState:
        """Go on with the stage that a checkpoint held."""
        problem = state.problem
        model = self.learner.fitted(problem.model, problem.state)
        fresh = self._at_stage(problem.state, model, problem.data, progress, progress.stage)
        present = self.learner.restored(fresh, progress.present)
        return LearnerState(replace(problem, state=present), replace(progress, present=present.progress))


def _cooled(model: Any, variance: float, nudge: np.ndarray) -> Any:
    """The classes at another variance, moved apart a little."""
    family = replace(model.family, variance=float(variance))
    return Model(family, family.equal(model.parts.means + NUDGE * np.sqrt(variance) * nudge))
