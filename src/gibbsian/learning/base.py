"""The contract every learner keeps: `Learner.bind` gives a `Fit`, whose `init` and `step` are functions of a state."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError
from gibbsian.learning.objectives.base import Equations
from gibbsian.learning.optimizers import StepInfo
from gibbsian.models.base import ExponentialFamily, Family, Mixture, Model, keeps
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

    # Number of steps that `partial_fit` takes with the rows of one chunk.
    steps_per_chunk: int = 1

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

    def handover(self, state: State) -> Any:
        """Return what `carry` of a fit to other rows takes from a final state; None where that begins anew."""
        return None if type(self).carry is Fit.carry else state


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
    requires: ClassVar[tuple[type, ...]] = (ExponentialFamily,)
    # What it takes rows from besides memory: "chunks" that arrive one by one, rows on "disk", "partitions" of a cluster
    # where they stay; and whether they may be "reals".
    takes: ClassVar[frozenset[str]] = frozenset({"chunks", "partitions"})

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

    def targets_in(self, data: Rows) -> np.ndarray | None:
        """Return the numbers of the columns that are learned given the others; None where all are learned."""
        targets = None if self.objective is None else self.objective.targets
        return None if targets is None else data.places(targets, "targets")

    def start(self, model: Any, data: Any, rng: np.random.Generator) -> Any:
        """Return where learning begins when nothing is said: hidden units must not all be alike."""
        from gibbsian.learning.initial import scattered

        return scattered(model, rng) if model.n_hidden and not keeps(model.family, Mixture) else model

    def most_steps(self, model: Model[Family], max_iter: int) -> int:
        """Return the most steps of a run, given what was asked for; learners by epochs know their number."""
        return max_iter

    def at_most(self, epochs: int) -> Learner:
        """Return the learner with no more than this number of epochs, where it has a number of its own."""
        return self

    def monitors(self, data: Any, held_out: Any) -> list[Any]:
        """Return callbacks that keep in the history of a run what the learner measures, of data and rows held out."""
        return []

    # Why it cannot learn from chunks, where that is a matter of mathematics.
    why_all_rows: ClassVar[str] = ""

    def bind(self, model: Any, data: Any) -> Fit[Any]:
        """Bind the learner to a model, where learning begins, and to rows."""
        raise NotImplementedError

    def require_chunks(self) -> None:
        """Raise `ArgumentError` unless rows may come in chunks."""
        if "chunks" not in self.takes:
            raise self.needs_all_rows()

    def by_chunks(self, batch_size: int) -> Learner:
        """Return the learner as it takes chunks of rows: in minibatches of about this size, where it has a size."""
        if "batch_size" in settings_of(self) and vars(self)["batch_size"] is None:
            return replace(self, batch_size=batch_size)  # type: ignore[type-var]
        self.require_chunks()
        return self

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
