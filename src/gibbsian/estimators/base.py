"""The one base of all estimators: reading, learning, questions, files. A family says what is its own, and no more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gibbsian import __version__
from gibbsian.backends.device import PRECISIONS, here
from gibbsian.data import Dataset, drop_empty_rows
from gibbsian.data.readers import is_on_disk
from gibbsian.diagnostics.moments import DataMoments
from gibbsian.errors import ArgumentError, ConvergenceWarning, DataError, notify
from gibbsian.estimators.cells import FillsCells
from gibbsian.estimators.distribution import Distribution
from gibbsian.estimators.files import KeptInFiles
from gibbsian.estimators.frames import empty_frame
from gibbsian.estimators.held_out import beside_fitted, measured, score_held_out
from gibbsian.estimators.penalty import ChoosesPenalty
from gibbsian.estimators.queries import Asking
from gibbsian.estimators.reading import on_own_device
from gibbsian.estimators.reported import Reported
from gibbsian.estimators.shown import ShowsParameters
from gibbsian.learning.base import LEARNERS, Learner, as_learner, check_supported, name_of
from gibbsian.learning.callbacks import Interrupt, Printer, as_callbacks
from gibbsian.learning.objectives.priors import natural_penalties
from gibbsian.learning.optimizers import Failed, StepInfo
from gibbsian.learning.result import FitResult, Trace, warn_untrained
from gibbsian.learning.run import run
from gibbsian.rng import Key, RandomState, as_generator
from gibbsian.settings import check, choice, declared, free, number, whole
from gibbsian.startup import available_if
from gibbsian.storage.checkpoints import as_checkpoint


@declared
class Estimator(ChoosesPenalty, Reported, ShowsParameters, Distribution, FillsCells, Asking, KeptInFiles):
    """A model with a learner as a scikit-learn estimator; the estimators are its subclasses."""

    max_iter: int = whole(1000, "Most steps of the learner; epochs where it learns by minibatches.", least=1)
    tol: float = number(1e-6, "When the learner has converged.", least=0.0)
    validation_fraction: Any = number(
        0.0,
        "Share of the rows kept out of the fit and scored after it. 'auto', which the command line takes by default, "
        "fits all rows, and scores each by one of three fits to two thirds of the others, where these are predicted to "
        "take at most 30 s.",
        least=0,
        below=1,
        words=("auto",),
    )
    checkpoint: Any = free(
        None, "File in which the progress is kept; a Checkpoint can also resume.", doc="path or Checkpoint, optional"
    )
    callbacks: Any = free(
        None,
        "What happens after every step: functions of a step's number and its StepInfo, or Callback objects.",
        doc="callable, Callback or list, optional",
        flag=False,
    )
    verbose: int = whole(0, "Print a line after every step.", flag=False)
    random_state: RandomState = free(None, "Seed of all random numbers.", doc="int, Generator or None", flag=False)
    device: str = free(
        "cpu",
        "Where kernels run: 'cpu'; a card by PyTorch, 'cuda' or 'cuda:1'; 'torch', PyTorch on the CPU; 'auto', a card "
        "where there is one.",
        doc="str",
    )
    precision: str = choice(
        "auto",
        "Numbers on a card: 'auto' is float32 with long sums in float64 ('torch': float64); 'tf32' multiplies matrices "
        "by short numbers. Where a learner has a dtype of its own, the shorter of the two counts.",
        *PRECISIONS,
    )

    # whether chunks after a fit are steps like its own, and so continue its trace
    _one_trace = False

    # Names of the learners that learn this model; objects bring their own settings and say themselves what they need.
    learners: ClassVar[tuple[str, ...]] = ()
    # What ``learner="auto"`` is where nothing has to be chosen; the empty string where model and data decide.
    auto_learner: ClassVar[str] = ""

    @property
    def _most_steps(self) -> int:
        """The maximum number of steps of a run."""
        return self.max_iter

    @property
    def _asked(self) -> Any:
        """The learner that was asked for, by name or as an object."""
        is_auto = isinstance(self.learner, str) and self.learner == "auto"
        return self.auto_learner if is_auto and self.auto_learner else self.learner

    def _check_settings(self) -> None:
        """Refuse settings that cannot be, before anything is read."""
        check(self)
        if self.learners and isinstance(self.learner, str):
            self.check_learner(self.learner)

    @classmethod
    def check_learner(cls, name: str) -> None:
        """Refuse the name of a learner that does not learn this model.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.GaussianMachine.check_learner("cd")
        Traceback (most recent call last):
            ...
        gibbsian.errors.ArgumentError: learner='cd' does not learn a GaussianMachine: use one of auto, ...
        """
        if name not in ("auto", *cls.learners):
            known = ", ".join(("auto", *sorted(cls.learners)))
            reason = f"does not learn a {cls.__name__}" if name in LEARNERS else "is not known"
            raise ArgumentError(reason, f"use one of {known}", argument="learner", value=name)

    # -- what a family says -------------------------------------------------------------------------------------------
    def _start(self, data: Dataset, rng: np.random.Generator) -> Any:
        """Return the model that learning starts from."""
        raise NotImplementedError

    def _learner(self, model: Any, data: Dataset) -> Learner:
        """Return what learns."""
        raise NotImplementedError

    def _learner_of_fit(self, data: Dataset) -> Learner:
        """Return what has learned the parameters, also where ``"auto"`` chose it, without starts around it."""
        if not isinstance(self.learner, str):
            return self.learner
        provenance = self.result_.provenance
        name = provenance.get("learner", self.learner)
        if name not in LEARNERS:
            raise ArgumentError(
                f"the machine was fitted by {name}, which its file does not hold", "set machine.learner to that object"
            )
        names = ("l1", "l2", "log_prior")
        penalties: dict[str, Any] = {name: provenance.get(name, getattr(self, name, None)) for name in names}
        return as_learner(name, **natural_penalties(**penalties, temperature=self.temperature))

    def _chunk_start(self, data: Dataset, rng: np.random.Generator) -> Any:
        """Return the model that learning from chunks starts from."""
        return self._start(data, rng)

    def _chunk_learner(self, model: Any, data: Dataset) -> Learner:
        """Return what learns from chunks as they arrive."""
        return self._learner(model, data)

    def _shown(self, model: Any, data: Dataset) -> Any:
        """Return the data as the learner is to see them."""
        return data

    def _preflight(self, data: Dataset, model: Any, learner: Learner) -> None:
        """Refuse data that cannot determine the parameters, before anything is learned."""

    def _judged(self, result: FitResult, data: Dataset, learner: Learner) -> FitResult:
        """Return the result with what is to be said of it, or refuse it."""
        return result

    def _moments(self, model: Any, data: Dataset) -> DataMoments | None:
        """Return the moments of the data, where the model's can be compared with them."""
        return None

    # -- learning -----------------------------------------------------------------------------------------------------
    @on_own_device
    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the parameters.

        Parameters
        ----------
        X : array, frame, path, Dataset or DataStream
            Rows of variables; missing cells (NaN, blank, ``?``) are summed out, or sampled by chains.
        y : ignored
            For scikit-learn's pipelines: all columns of a distribution stand in X. To learn to tell some of them from
            the others see ``learner="mcl"``, and `GibbsClassifier` for ``fit(X, y)``.
        sample_weight : array of shape (n_rows,), default=None
            How much each row counts.

        Returns
        -------
        self

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.BoltzmannMachine().fit([["yes", "no"], ["no", "no"], ["yes", "yes"], ["no", "yes"]]).coding_.name
        'yes/no'
        """
        self._check_settings()
        with self._unchanged_on_error():
            data = self._counting(self._read(X, fitting=True, sample_weight=sample_weight))
            self._frame_of_fit = empty_frame(X, data.names)
            rng = as_generator(self.random_state)
            data, unseen = self._split(data, rng)
            _, result = self._learn(data, unseen, rng)
            self._set_fitted(replace(result, state=None), data.coding, data.names)
            self._state = result.state
        if unseen is not None:
            self.result_ = replace(self.result_, held_out=score_held_out(self, data, unseen))
        elif result.held_out is not None:  # of the folds that chose the penalty
            self.result_ = replace(self.result_, held_out=beside_fitted(self, data, result.held_out))
        if self.validation_fraction == "auto":
            self.result_ = measured(self, data)
        warn_untrained(self.result_)
        return self

    def _learn_once(
        self, data: Dataset, unseen: Dataset | None, rng: np.random.Generator, said: dict[str, Any]
    ) -> tuple[Learner, FitResult]:
        """Make the start and the learner, and run it; return it with its result, of which something may be `said`."""
        start = self._start(data, rng)
        learner = self._learner(start, data)
        check_supported(learner, start)
        self._preflight(data, start, learner)
        data = drop_empty_rows(data) if data.has_missing else data
        result = self._run(learner, start, data, rng, unseen)
        return learner, replace(result, provenance={**result.provenance, **said})

    def _run(
        self, learner: Learner, start: Any, data: Dataset, rng: np.random.Generator, unseen: Dataset | None = None
    ) -> FitResult:
        """Run the learner and write down where its result came from."""
        shown = self._shown(start, data)
        callbacks = [*learner.monitors(data, unseen), *self._all_callbacks()]
        max_iter = learner.most_steps(start, self._most_steps)
        result = run(learner, start, shown, rng, callbacks, max_iter=max_iter, tol=self.tol)
        result = self._judged(result, shown, learner)
        if not result.converged:
            notify(ConvergenceWarning(result.without_hint, result.remedy))
        took = {"steps": result.n_steps, "seconds": round(result.seconds, 4)}
        story = {**result.provenance, **self._provenance(learner, data), **took, **result.provenance}
        return replace(result, provenance=story, penalised=learner.penalties.any)

    def _learns_by_chunks(self) -> bool:
        """Say whether rows may come in chunks; a refusal may be raised with its reason."""
        return True

    @available_if(lambda self: self._learns_by_chunks())
    @on_own_device
    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one chunk of rows, in one pass, keeping what was learned before (YK15).

        The coding and the columns are those of the first chunk. A chunk may be anything `fit` takes. After a ``fit`` or
        a load it goes on from there; ``fit`` starts afresh.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> votes = gb.datasets.load_house_votes().complete_rows()
        >>> bm = gb.BoltzmannMachine(l2=0.01, random_state=0)
        >>> for rows in np.array_split(np.arange(votes.n_rows), 4):
        ...     bm = bm.partial_fit(votes.take(rows))
        >>> bm.result_.reason
        'learned from 232 rows in 4 chunks'
        """
        self._check_settings()
        first = not self._is_fitted
        if is_on_disk(X):
            raise DataError("a DataStream is learned by fit", "`partial_fit` takes rows in memory")
        with self._unchanged_on_error():
            data = self._counting(self._read(X, fitting=first, sample_weight=sample_weight))
            if first:
                self._frame_of_fit = empty_frame(X, data.names)
            rng = as_generator(self.random_state)
            start = self._chunk_start(data, rng) if first else self.model_
            learner = self._chunk_learner(start, data)
            check_supported(learner, start)
            before = self.__dict__.get("_state")  # none after a load: then learning begins anew at that model
            shown = self._shown(start, data)
            fit = learner.bind(start, shown)
            state = fit.carry(fit.init(Key.of(rng))[0] if before is None else before)
            for _ in range(fit.steps_per_chunk):
                state, info = fit.step(state)
            if isinstance(info.outcome, Failed):
                raise ArgumentError(info.outcome.reason, info.outcome.hint)
            result = self._chunk_result(learner, fit.model(state), info, data, shown)
            self._set_fitted(result, data.coding, data.names if first else self.names_)
            self._state = state
        return self

    def _chunk_result(self, learner: Learner, model: Any, info: StepInfo, data: Dataset, shown: Any) -> FitResult:
        """Return the result of one chunk more, after what was learned before."""
        before = self.result_ if self._is_fitted else FitResult(model, Trace(), False, "", {})
        earlier, story, moments = before.provenance, self._provenance(learner, data), self._moments(model, shown)
        if before.moments is not None and moments is not None:
            moments = before.moments + moments
        goes_on = self._one_trace or "chunks" in earlier
        trace = Trace(list(before.trace.rows), before.trace.details) if goes_on else Trace()
        own = info._replace(metrics={name: x for name, x in info.metrics.items() if name in before.trace.details})
        trace.add(len(trace) + 1, own, float("nan"))
        n_rows, n_chunks = earlier.get("rows", 0) + data.n_rows, earlier.get("chunks", 0) + 1
        after_fit = bool(earlier) and (earlier.get("after_fit", False) or "chunks" not in earlier)
        reason = f"learned from {n_rows} rows in {n_chunks} chunk{'s' * (n_chunks != 1)}" + " after a fit" * after_fit
        story["missing_cells"] += earlier.get("missing_cells", 0)
        story |= {"rows": n_rows, "chunks": n_chunks, "after_fit": after_fit}
        history = {name: np.append(before.history.get(name, ()), value) for name, value in info.metrics.items()}
        penalised = any(story.get(name) for name in ("l1", "l2", "log_prior"))
        return FitResult(model, trace, False, reason, story, moments, penalised, history=history, warning=info.warning)

    def _all_callbacks(self) -> list[Any]:
        """Return what happens beside learning: the user's callbacks, lines, the checkpoint, Ctrl-C."""
        callbacks = as_callbacks(self.callbacks)
        if self.verbose:
            callbacks.append(Printer(type(self).__name__))
        remedy = ""
        if self.checkpoint is not None:
            checkpoint = as_checkpoint(self.checkpoint)
            callbacks.append(checkpoint)
            remedy = f"resume with `checkpoint=Checkpoint({os.fspath(checkpoint.path)!r}, resume=True)`"
        return [*callbacks, Interrupt(remedy)]

    def _split(self, data: Dataset, rng: np.random.Generator) -> tuple[Dataset, Dataset | None]:
        """Split off the rows that the fit shall not see."""
        share = self.validation_fraction
        if share in (0, "auto"):
            return data, None
        if data.on_disk or data.on_cluster:
            reason, remedy = "is for data in memory", "keep rows of a stream in a file of their own"
        elif not 0 < round((1 - share) * data.n_rows) < data.n_rows:
            reason = f"of {data.n_rows} rows leaves no row out or none to fit"
            remedy = "give another share, or more rows"
        else:
            return data.split(1 - share, rng)
        raise ArgumentError(reason, remedy, argument="validation_fraction", value=share)

    def _provenance(self, learner: Learner, data: Any) -> dict[str, Any]:
        """Return what a later reader of the model wants to know of its making."""
        return {
            "gibbsian": __version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "learner": name_of(learner),
            "rows": data.n_rows,
            "missing_cells": data.n_missing,
            **({"dropped": list(data.dropped)} if data.dropped else {}),
            **self._reported_penalties(learner),
            **({} if (device := here()) is None else {"device": device.described(), "precision": device.precision}),
        }

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """An estimator that refuses new data stays what it was."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
