"""The contract every learner keeps: `Learner.bind` gives a `Fit`, whose `init` and `step` are functions of a state."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.diagnostics.moments import DataMoments
from gibbsian.errors import ArgumentError
from gibbsian.learning.objectives.base import Equations
from gibbsian.learning.optimizers import StepInfo
from gibbsian.models.base import ExponentialFamily, Family, Layered, Mixture, Model, keeps
from gibbsian.registry import Registry
from gibbsian.rng import Key
from gibbsian.settings import settings_of

LEARNERS = Registry("learner", "gibbsian.learning", "LEARNERS")

State = TypeVar("State")


class Fit(ABC, Generic[State]):
    """A learner bound to a model and rows: it holds plans, tables and kernels, and is never saved.

    A state holds all that the next step needs besides: plain arrays and numbers, keys instead of generators. `step` is
    a pure function of it, so a fit goes on to the same bits from any state that a checkpoint has kept.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.rng import Key
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> fit = gb.learning.as_learner("mple").bind(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2))), data)
    >>> state, info = fit.init(Key.of(0))
    >>> state, info = fit.step(state)
    >>> fit.model(state).theta.shape
    (3,)
    """

    @abstractmethod
    def init(self, key: Key, theta: np.ndarray | None = None) -> tuple[State, StepInfo]:
        """Return the state before the first step, from the model's parameters or from `theta`."""

    @abstractmethod
    def step(self, state: State) -> tuple[State, StepInfo]:
        """Take one step; `StepInfo.outcome` says whether it was the last."""

    @abstractmethod
    def model(self, state: State) -> Any:
        """Return the model at a state."""

    def carry(self, state: State) -> State:
        """Return a state after other rows, or before the first step, as one whose next step learns from these rows."""
        raise ArgumentError("needs all rows at once", argument="learner", value=type(self).__name__)

    def restored(self, fresh: State, state: State) -> State:
        """Bridge: what a checkpoint held needs nothing else."""
        return state

    def moments(self, state: State) -> DataMoments | None:
        """Bridge: the moments of the data as the learner has filled their missing cells, where it knows them."""
        return None

    def kept(self, state: State) -> State | None:
        """Bridge: the state at the end of a fit, where `carry` takes it."""
        return None if type(self).carry is Fit.carry else state


class OldFit(Fit[Any]):
    """Bridge of this issue: a learner that still has `init` and `step` of its own, behind `Fit`."""

    def __init__(self, learner: Learner, start: Any, data: Any, chunk: bool = False):
        self.learner, self.start, self.data, self.chunk, self.problem = learner, start, data, chunk, None

    def init(self, key: Key, theta: np.ndarray | None = None) -> tuple[Any, StepInfo]:
        """Return the progress before the first step."""
        return self.begin(key.generator(), theta)

    def begin(self, rng: np.random.Generator, theta: np.ndarray | None = None) -> tuple[Any, StepInfo]:
        """Do so by a generator, whose draws are those of the old contract."""
        if self.chunk:
            self.rng = rng
            return None, StepInfo()
        model = self.start if theta is None else self.start.replace(theta)
        if self.problem is None:
            state = self.learner.init(model, self.data, rng)
        else:
            state = self.learner.restarted(LearnerState(self.problem, None), model, self.data, rng)
        self.problem = state.problem
        return state.progress, StepInfo(metrics=self.learner.figures(state))

    def step(self, state: Any) -> tuple[Any, StepInfo]:
        """Take one step, or learn from the chunk."""
        if self.chunk:
            after, info = self.learner.update(state, self.start, self.data, self.rng)
            return after, self._told(after, info)
        after, info = self.learner.step(LearnerState(self.problem, state))
        self.problem = after.problem
        return after.progress, self._told(after, info)

    def _told(self, state: LearnerState, info: StepInfo) -> StepInfo:
        metrics = {**info.metrics, **self.learner.figures(state)}
        return info._replace(warning=self.learner.warning(state), metrics=metrics)

    def model(self, state: Any) -> Any:
        """Return the model at a progress."""
        return self.learner.fitted(self.start, self.whole(state))

    def whole(self, state: Any) -> LearnerState:
        """Return a progress with what it belongs to."""
        return state if self.chunk else LearnerState(self.problem, state)

    def carry(self, state: Any) -> Any:
        """Return the state as it is: the next step learns from the chunk."""
        if state is not None:
            self.rng = np.random.default_rng(0)  # which learners that go on do not draw from
        return state

    def restored(self, fresh: Any, state: Any) -> Any:
        """Return a progress that a checkpoint held, with the problem made anew."""
        after = self.learner.restored(LearnerState(self.problem, fresh), state)
        self.problem = after.problem
        return after.progress

    def moments(self, state: Any) -> DataMoments | None:
        """Return what the learner knows."""
        return self.learner.moments(self.start, self.whole(state))

    def kept(self, state: Any) -> Any:
        """Return what the next chunk goes on from."""
        return self.learner.kept(self.whole(state))


@dataclass(frozen=True)
class LearnerState:
    """A learner between two steps.

    Parameters
    ----------
    problem : Any
        What was made once from the model and the data (functions, samples' layout). Rebuilt on resume, never saved.
    progress : Any
        A dataclass of arrays and numbers with a field ``theta``: all that a checkpoint needs.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> learner = gb.learning.as_learner("mple")
    >>> state = learner.init(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2))), data, np.random.default_rng(0))
    >>> state, info = learner.step(state)
    >>> state.progress.theta.shape
    (3,)
    """

    problem: Any
    progress: Any


class Penalties(NamedTuple):
    """What keeps the parameters of a learner small: strengths of L1 and L2, and a prior."""

    l1: float | str = 0.0
    l2: float = 0.0
    log_prior: object = None

    @property
    def any(self) -> bool:
        """Whether there is a penalty or a prior."""
        return bool(self.l1 or self.l2 or self.log_prior is not None)


class Learner:
    """One step at a time, so that progress bars, checkpoints and early stops cost nothing.

    Examples
    --------
    >>> from gibbsian.learning import LEARNERS, Learner
    >>> all(isinstance(LEARNERS.create(name), Learner) for name in LEARNERS)
    True
    """

    # Protocols or classes of which a family must keep one.
    requires: ClassVar[tuple[type, ...]] = (ExponentialFamily, Layered)
    # Whether rows on a cluster are counted there and come here, where they must fit.
    counts_rows: ClassVar[bool] = False

    @property
    def objective(self) -> Any:
        """The objective that learning minimises; None where it minimises none."""
        return None

    @property
    def penalties(self) -> Penalties:
        """The penalties; none unless the learner has settings for them."""
        return Penalties()

    def equations(self, model: Any, data: Any, max_seconds: float = 60.0) -> Equations:
        """Return the equations that a fit solves, or refuse where it solves none."""
        raise ArgumentError(
            f"{getattr(self, 'registered_name', type(self).__name__)} solves no equations of which errors could be "
            "taken",
            "use `gibbsian.uncertainty.bootstrap`",
        )

    def refusal(self, model: Any) -> str:
        """Say why the learner cannot learn a kind of model; the empty string where it can."""
        return ""

    def require_able(self, model: Model[Family]) -> None:
        """Raise `ArgumentError` where the learner cannot learn a kind of model."""
        if refusal := self.refusal(model):
            raise ArgumentError(refusal, argument="learner", value=name_of(self))

    def targets_in(self, data: Rows) -> np.ndarray | None:
        """Return the numbers of the columns that are learned given the others; None where all are learned."""
        targets = None if self.objective is None else self.objective.targets
        return None if targets is None else data.places(targets, "targets")

    def start(self, model: Any, data: Any, rng: np.random.Generator) -> Any:
        """Return where learning begins when nothing is said: hidden units must not all be alike."""
        from gibbsian.learning.hidden import scattered

        return scattered(model, rng) if model.n_hidden and not has_classes(model) else model

    def most_steps(self, model: Model[Family], max_iter: int) -> int:
        """Return the most steps of a run, given what was asked for; learners by epochs know their number."""
        return max_iter

    def at_most(self, epochs: int) -> Learner:
        """Return the learner with no more than this number of epochs, where it has a number of its own."""
        return self

    def monitors(self, data: Any, held_out: Any) -> list[Any]:
        """Return callbacks that keep in the history of a run what the learner measures, of data and rows held out."""
        return []

    def figures(self, state: LearnerState) -> dict[str, float]:
        """Return what the learner measures after a step besides its `StepInfo`, by name."""
        return {}

    # Why it cannot learn from chunks, where that is a matter of mathematics.
    why_all_rows: ClassVar[str] = ""
    # Whether it learns models of real numbers.
    takes_numbers: Any = False
    # Whether it reads rows on disk as it goes.
    reads_disk: ClassVar[bool] = False

    # Whether rows may come in chunks, where `bind` is its own.
    takes_chunks: ClassVar[bool] = True

    def init(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Bridge: bind, for wrappers of the old contract."""
        fit = self.bind(model, data)
        return LearnerState(fit, fit.init(Key.of(rng))[0])

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Bridge: take one step of what was bound."""
        after, info = state.problem.step(state.progress)
        return LearnerState(state.problem, after), info

    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the model as a state has it, given the one that learning started from."""
        return (
            state.problem.model(state.progress)
            if isinstance(state.problem, Fit)
            else model.replace(state.progress.theta)
        )

    def warning(self, state: LearnerState) -> str:
        """Say what is wrong with the solution; the empty string when nothing is."""
        return ""

    def moments(self, model: Any, state: LearnerState) -> DataMoments | None:
        """Return the moments of the data as the learner has filled their missing cells, where it knows them."""
        return None

    def restored(self, state: LearnerState, progress: Any) -> LearnerState:
        """Return a fresh state with the progress that a checkpoint held."""
        return LearnerState(state.problem, progress)

    def update(
        self, state: LearnerState | None, model: Any, data: Any, rng: np.random.Generator
    ) -> tuple[LearnerState, StepInfo]:
        """Learn from one chunk of rows as it arrives; `state` is what the call before returned, None for the first."""
        self.require_chunks()
        return self.step(self.init(model, data, rng) if state is None else self.rebound(state, data))

    def bind(self, model: Any, data: Any) -> Fit[Any]:
        """Bind the learner to a model, where learning begins, and to rows."""
        return OldFit(self, model, data)

    def bind_chunk(self, model: Any, data: Any) -> Fit[Any]:
        """Bridge: bind the learner to rows of `partial_fit`, of which a step learns once."""
        return self.bind(model, data) if type(self).bind is not Learner.bind else OldFit(self, model, data, chunk=True)

    def require_chunks(self) -> None:
        """Raise `ArgumentError` unless rows may come in chunks."""
        old = {type(self).update, type(self).rebound, type(self).bind} == {
            Learner.update,
            Learner.rebound,
            Learner.bind,
        }
        if old or not self.takes_chunks:
            raise self.needs_all_rows()

    def by_chunks(self, batch_size: int) -> Learner:
        """Return the learner as it takes chunks of rows: in minibatches of about this size, where it has a size."""
        if "batch_size" in settings_of(self) and vars(self)["batch_size"] is None:
            return replace(self, batch_size=batch_size)  # type: ignore[type-var]
        self.require_chunks()
        return self

    def kept(self, state: LearnerState) -> LearnerState | None:
        """Return the state at the end of a fit where `partial_fit` can go on from it, None where it begins anew."""
        return None

    def for_layers(self) -> Learner:
        """Return the learner as it takes models of layers: by their joint form with all units as variables."""
        from gibbsian.learning.around import OnJoint

        return OnJoint(self)

    def restarted(
        self, state: LearnerState, model: Model[Family], data: Dataset, rng: np.random.Generator
    ) -> LearnerState:
        """Begin again from another model with the same data; a learner may keep what it has made of them."""
        return self.init(model, data, rng)

    def rebound(self, state: LearnerState, data: Dataset) -> LearnerState:
        """Go on with other rows of the same kind, keeping what was learned: what `partial_fit` asks for."""
        raise self.needs_all_rows()

    def needs_all_rows(self) -> ArgumentError:
        """Return the error that says so."""
        return ArgumentError(f"needs all rows at once{self.why_all_rows}", argument="learner", value=name_of(self))


def as_learner(learner: str | Learner, /, *, epochs: int | None = None, **settings: Any) -> Learner:
    """Turn a registered name (with settings) or a learner object (which brings its own) into a learner.

    Learners by epochs need their number (`epochs`) for the rate to fall, an object of its own number and `epochs` the
    smaller one; others leave it to the run.

    Examples
    --------
    >>> from gibbsian.learning import as_learner
    >>> as_learner("mple", l2=0.1).l2
    0.1
    """
    if isinstance(learner, str):
        if epochs is not None and LEARNERS.trait(learner, "epochs", False):
            settings["max_iter"] = epochs
        known = settings_of(LEARNERS.factory(learner))
        # a penalty of zero is none, also to a learner that has no penalties
        return LEARNERS.create(learner, **{name: value for name, value in settings.items() if name in known or value})
    if not isinstance(learner, Learner) or isinstance(learner, type):
        raise ArgumentError(
            f"must be one of {', '.join(LEARNERS)} or a learner object", argument="learner", value=learner
        )
    if given := [f"{name}={value}" for name, value in settings.items() if value]:
        raise ArgumentError(f"{', '.join(given)}", "a learner object brings its own settings, so give it there")
    return learner if epochs is None else learner.at_most(epochs)


def name_of(learner: Learner) -> str:
    """Return the registered name of a learner, or what it is where it has none."""
    return getattr(learner, "registered_name", repr(learner))


def has_classes(model: Model[Family]) -> bool:
    """Say whether a model is a mixture, whose label no row shows."""
    return keeps(model.family, Mixture)


def check_supported(learner: Learner, model: Model[Family]) -> None:
    """Raise `ArgumentError` unless a learner learns models of this family, which must keep one of `requires`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning.base import check_supported
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> check_supported(gb.learning.as_learner("graphical-lasso"), model)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: learner='graphical-lasso' learns Gaussian families, and a PairwiseFamily is none
    """
    family, kinds = model.family, learner.requires
    if any(keeps(family, kind) for kind in kinds):
        return
    words = [re.sub("(?<=[a-z])(?=[A-Z])", " ", kind.__name__).removesuffix("Family").strip() for kind in kinds]
    reason = f"learns {' or '.join(words)} families, and a {type(family).__name__} is none"
    if protocols := [kind for kind in kinds if Protocol in kind.__bases__]:
        lacks: list[list[str]] = [
            sorted({name for name in vars(kind) if name[0] != "_"} - {*dir(family)}) for kind in protocols
        ]
        reason += f": it has no {', '.join(sorted(lacks, key=len)[0])}"
    raise ArgumentError(reason, argument="learner", value=name_of(learner))
