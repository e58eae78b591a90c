"""Several fits of one learner, one after the other: starts of which the best is kept, or stages of annealing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.learning.around import Around
from gibbsian.learning.base import LEARNERS, Fit, name_of
from gibbsian.learning.optimizers import Converged, Running, StepInfo, Stopped
from gibbsian.learning.run import outcome_of
from gibbsian.models.base import Family, Model
from gibbsian.models.mixtures.base import WeightedSample
from gibbsian.models.mixtures.gaussian import variance_schedule
from gibbsian.rng import Key
from gibbsian.settings import check, declared, free, number, positional, whole

# Steps of a run that ends when its learner says so.
ENDLESS = 10**9
# Classes that coincide never part by themselves: each stage moves them by this share of their width.
PERTURBATION = 1e-3


class SeveralFits(Around):
    """A learner that runs the learner within several times; a step is one of its steps."""

    def __post_init__(self) -> None:
        check(self)
        if isinstance(self.learner, str):
            object.__setattr__(self, "learner", LEARNERS.create(self.learner))

    def start(self, model: Model[Family], data: Dataset, rng: np.random.Generator) -> Any:
        """Return the model itself: each fit begins by itself."""
        return model


def continuing(info: StepInfo, metrics: dict[str, float]) -> StepInfo:
    """Return a step after which the fit continues, whatever the inner learner said of it."""
    return info._replace(noise=0.0, outcome=Running(), metrics={**info.metrics, **metrics})


# -- several starts ---------------------------------------------------------------------------------------------------
class RestartsState(NamedTuple):
    """The present start and the best of those that have ended; before any has, that is the present one.

    Parameters
    ----------
    present, best : dataclass or tuple
        States of the learner within.
    start, n_steps : int
        The present start and its steps so far.
    best_start : int
        The best start; -1 while none has ended.
    best_value : float
        Its value, or its loss.
    best_converged : bool
        Whether it converged.
    best_reason, best_hint, best_warning : str
        How it ended, and what is wrong with its solution.
    key : Key
        The key that starts are folded from.
    """

    present: Any
    best: Any
    start: int
    n_steps: int
    best_start: int
    best_value: float
    best_converged: bool
    best_reason: str
    best_hint: str
    best_warning: str
    key: Key


@declared(frozen=True)
class Restarts(SeveralFits):
    """Runs a learner from several starts, each with a key of its own, and keeps the one of least value.

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
    n_init: int = positional(kw_only=False, default=whole(5, "Number of starts.", least=1))
    max_iter: int | None = whole(
        1000,
        "Maximum number of steps of each start; None where the learner says itself when it is done.",
        least=1,
        optional=True,
    )
    tol: float = number(1e-6, "A start has converged when no entry of the gradient is larger.", least=0)
    loss: Callable[[Any, Any, np.random.Generator], float] | None = free(
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

    def bind(self, model: Model[Any], data: Rows) -> RestartsFit:
        """Bind the learner within, once for all starts."""
        return RestartsFit(self, model, data)


class RestartsFit(Fit[RestartsState]):
    """Starts of one learner in turn."""

    def __init__(self, learner: Restarts, start: Model[Any], data: Rows):
        self.learner, self.start, self.data = learner, start, data
        self.inner: Fit[Any] = learner.learner.bind(start, data)

    def init(self, key: Key, theta: np.ndarray | None = None) -> tuple[RestartsState, StepInfo]:
        """Begin the first start; `theta` is not used, because each start begins by itself."""
        first, info = self._begin(key, 0)
        return RestartsState(first, first, 0, 0, -1, np.inf, False, "", "", "", key), info

    def _begin(self, key: Key, number: int) -> tuple[Any, StepInfo]:
        own = key.fold("start", number)
        begun = self.learner.learner.start(self.start, self.data, own.generator())
        return self.inner.init(own.fold("fit"), begun.theta)

    def step(self, state: RestartsState) -> tuple[RestartsState, StepInfo]:
        """Take a step of the present start; after its last one compare it with the best and begin the next."""
        learner = self.learner
        present, info = self.inner.step(state.present)
        state = state._replace(present=present, n_steps=state.n_steps + 1)
        outcome = outcome_of(info, state.n_steps, learner.max_iter, learner.tol)
        number = state.start
        if isinstance(outcome, Running):
            if state.best_start < 0:
                state = state._replace(best=present)
        else:
            value = self._value(state, info)
            before = bool(state.best_warning), state.best_value
            if state.best_start < 0 or (bool(info.warning), value) < before:
                state = state._replace(
                    best=present,
                    best_start=number,
                    best_value=value,
                    best_converged=isinstance(outcome, Converged),
                    best_reason=outcome.reason,
                    best_hint=outcome.hint,
                    best_warning=info.warning,
                )
            if number + 1 < learner.n_init:
                following, _ = self._begin(state.key, number + 1)
                state = state._replace(present=following, start=number + 1, n_steps=0)
                outcome = Running()
            else:
                reason = state.best_reason + f" (the best of {learner.n_init} starts)" * (learner.n_init > 1)
                outcome = Converged(reason) if state.best_converged else Stopped(reason, state.best_hint)
        info = continuing(info, {"start": float(number), "best": float(max(state.best_start, 0))})
        return state, info._replace(outcome=outcome, warning=state.best_warning)

    def _value(self, state: RestartsState, info: StepInfo) -> float:
        """Return the value of a start that has ended, or its loss where it has none."""
        if np.isfinite(info.value) or self.learner.loss is None:
            return info.value
        rng = state.key.fold("loss", state.start).generator()
        return float(self.learner.loss(self.inner.model(state.present), self.data, rng))

    def model(self, state: RestartsState) -> Any:
        """Return the model of the best start so far."""
        return self.inner.model(state.best)

    def handover(self, state: RestartsState) -> Any:
        """Return what the learner within keeps of the best start."""
        return self.inner.handover(state.best)


# -- annealing --------------------------------------------------------------------------------------------------------
class AnnealedState(NamedTuple):
    """The learner within at the present stage.

    Parameters
    ----------
    present : dataclass or tuple
        Its state.
    stage, n_steps, n_before : int
        The stage, its steps so far and the steps of the stages before it.
    key : Key
        The key of the perturbations that move the classes apart, one for each stage.
    """

    present: Any
    stage: int
    n_steps: int
    n_before: int
    key: Key


@declared(frozen=True)
class Annealed(SeveralFits):
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
    max_iter: int = whole(1000, "Maximum number of steps of each stage.", least=1)
    tol: float = number(1e-8, "Convergence tolerance of each stage.", least=0)

    def most_steps(self, model: Model[Family], max_iter: int) -> int:
        """Return no limit: each stage has its own."""
        return ENDLESS

    def bind(self, model: Model[Any], data: Rows) -> AnnealedFit:
        """Choose the variances."""
        return AnnealedFit(self, model, data)


class AnnealedFit(Fit[AnnealedState]):
    """Fits of one learner at falling variances, each bound when its stage comes."""

    def __init__(self, learner: Annealed, start: Model[Any], data: Any):
        family, rows = start.family, WeightedSample.of(data)
        origin = family.frame(rows).origin
        points = family.points(rows.x, rows.mask, origin)
        middle = np.average(points, axis=0, weights=rows.weights) + origin
        self.learner, self.data, self.family = learner, data, family
        self.variances = variance_schedule(points, rows.weights, float(family.variance), learner.cooling)
        self.together = np.tile(middle, (family.n_components, 1))
        self.inner = lru_cache(maxsize=2)(self._inner)  # of the stage under way and the one before it

    def _at(self, stage: int, means: np.ndarray) -> Model[Any]:
        """Return the mixture with these means at the variance of a stage."""
        family = replace(self.family, variance=float(self.variances[stage]))
        return Model(family, family.equal(means))

    def _inner(self, stage: int) -> Fit[Any]:
        """Bind the learner within at the variance of a stage."""
        return self.learner.learner.bind(self._at(stage, self.together), self.data)

    def init(self, key: Key, theta: np.ndarray | None = None) -> tuple[AnnealedState, StepInfo]:
        """Put all classes together at the largest variance; `theta` is not used."""
        present, info = self._begin(self.together, 0, key)
        return AnnealedState(present, 0, 0, 0, key), info

    def _begin(self, means: np.ndarray, stage: int, key: Key) -> tuple[Any, StepInfo]:
        """Begin a stage with the classes moved apart a little."""
        own, width = key.fold("stage", stage), np.sqrt(self.variances[stage])
        apart = means + PERTURBATION * width * own.generator().normal(size=means.shape)
        return self.inner(stage).init(own.fold("fit"), self._at(stage, apart).theta)

    def step(self, state: AnnealedState) -> tuple[AnnealedState, StepInfo]:
        """Take a step of the present stage; after its last one lower the variance."""
        inner, n_stages, metrics = self.inner(state.stage), len(self.variances), {"stage": self.variances[state.stage]}
        present, info = inner.step(state.present)
        state = state._replace(present=present, n_steps=state.n_steps + 1)
        outcome = outcome_of(info, state.n_steps, self.learner.max_iter, self.learner.tol)
        info = continuing(info, metrics)
        if isinstance(outcome, Running):
            return state, info
        if state.stage + 1 < n_stages:
            following, _ = self._begin(inner.model(present).parts.means, state.stage + 1, state.key)
            return AnnealedState(following, state.stage + 1, 0, state.n_before + state.n_steps, state.key), info
        if isinstance(outcome, Converged) and n_stages > 1:
            outcome = Converged(f"converged after {state.n_before + state.n_steps} steps in {n_stages} stages")
        return state, info._replace(outcome=outcome)

    def model(self, state: AnnealedState) -> Any:
        """Return the model of the present stage."""
        return self.inner(state.stage).model(state.present)

    def handover(self, state: AnnealedState) -> Any:
        """Return what the learner within keeps."""
        return self.inner(state.stage).handover(state.present)
