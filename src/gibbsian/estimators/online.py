"""Learning from rows that arrive in chunks or stay on disk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.coding import same_coding
from gibbsian.data.stream import DataStream
from gibbsian.data.stream_checks import preflight_stream
from gibbsian.diagnostics import DataMoments, data_moments
from gibbsian.domain import as_coding, require_two_values
from gibbsian.errors import ArgumentError, CodingError, ConvergenceWarning, notify
from gibbsian.estimators.fitting import check_numbers, provenance_of, start_from
from gibbsian.graphs import as_graph
from gibbsian.learners import FitResult, ObjectiveLearner, Trace, as_learner, run
from gibbsian.learners.online import Online, OnlineProgress, update
from gibbsian.models import PairwiseModel
from gibbsian.optimizers import StepInfo
from gibbsian.rng import as_generator

# Rows of a stream that are summed at a time for its moments.
MOMENT_ROWS = 2**16


class OnlineMixin:
    """`partial_fit`, and `fit` for a `DataStream`."""

    if TYPE_CHECKING:
        graph: Any
        learner: Any
        l1: float
        l2: float
        bias: bool
        temperature: float
        max_iter: int
        tol: float
        start: Any
        coding: Any
        binarize: float | None
        held_out: float
        callback: Any
        random_state: Any
        names_: tuple[str, ...]
        model_: PairwiseModel
        result_: FitResult
        _progress: OnlineProgress

        def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset: ...
        def _set_columns(self, names: tuple[str, ...]) -> None: ...
        def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self: ...
        def _callbacks(self, number: int = 0) -> list[Any]: ...

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one chunk of rows, in one pass of minibatches, keeping what was learned before (YK15).

        The coding and the columns are those of the first chunk. A chunk may be anything `fit` takes; rows must be
        complete. After a ``fit`` or a load it goes on from there; ``fit`` starts afresh.

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
        check_numbers(self)
        if isinstance(X, DataStream):
            raise ArgumentError("a DataStream is learned by fit; partial_fit takes rows in memory")
        first = not hasattr(self, "model_")
        chunk = self._read(X, fitting=first, sample_weight=sample_weight)
        domain = require_two_values(chunk.domain)
        learner = self._online_learner(chunk.n_rows)
        if first:
            model = PairwiseModel.zeros(as_graph(self.graph, chunk.names), domain, self.temperature, self.bias)
            model, moments, n_rows = start_from(self.start, model, chunk), None, 0
        else:
            model, moments, n_rows = self.model_, self.result_.moments, self.result_.provenance.get("rows", 0)
        before = getattr(self, "_progress", None)  # None after a fit or a load: then steps begin anew from that model
        trace = Trace() if before is None else Trace(list(self.result_.trace.rows))
        model, progress = update(learner, before, model, chunk, as_generator(self.random_state))
        moments = _merge(moments, data_moments(model, chunk))
        norm = float(np.abs(progress.gradient).max(initial=0.0))
        trace.add(len(trace) + 1, StepInfo(progress.value, norm, float("nan"), progress.steps), float("nan"))
        n_rows += chunk.n_rows
        chunks = f"{len(trace)} chunk{'s' * (len(trace) != 1)}"
        told = {**provenance_of("online", n_rows), "chunks": len(trace)}
        result = FitResult(
            model,
            trace,
            False,
            f"learned from {n_rows} rows in {chunks}",
            told,
            moments,
            bool(learner.l1 or learner.l2),
        )
        self._set_fitted(result, chunk.coding, chunk.names if first else self.names_)
        self._progress = progress
        return self

    def _fit_stream(self, stream: DataStream, sample_weight: Any = None) -> Self:
        """Learn from rows on disk by minibatches; `max_iter` counts them."""
        for given, sentence in (
            (self.held_out, "held_out= is for data in memory: keep rows of a stream in a file of their own"),
            (sample_weight is not None, "sample_weight= is for data in memory: a stream has no weights"),
            (self.start is not None, "start= is for data in memory: a stream is learned from zero"),
            (self.binarize not in (None, stream.binarize), "binarize= belongs to DataStream.open: give it there"),
        ):
            if given:
                raise ArgumentError(sentence)
        if self.coding != "auto" and not same_coding(as_coding(self.coding), stream.coding):
            raise CodingError(
                f"was declared but the stream is {stream.coding.describe()}",
                "open it in that coding",
                argument="coding",
                value=self.coding,
            )
        learner = self._online_learner(stream.n_rows)
        graph = as_graph(self.graph, stream.names)
        preflight_stream(stream, graph, l1=learner.l1, l2=learner.l2, bias=self.bias)
        model = PairwiseModel.zeros(graph, stream.domain, self.temperature, self.bias)
        self._set_columns(stream.names)
        result = run(
            learner,
            model,
            stream,  # type: ignore[arg-type]
            as_generator(self.random_state),
            max_iter=self.max_iter,
            tol=self.tol,
            callbacks=self._callbacks(),
        )
        if not result.converged:
            notify(ConvergenceWarning(result.reason))
        told = {**result.provenance, **provenance_of("online", stream.n_rows), "steps": result.n_steps}
        moments: DataMoments | None = None
        for batch in stream.batches(MOMENT_ROWS, random_state=0):
            moments = _merge(moments, data_moments(model, batch))
        penalised = bool(learner.l1 or learner.l2)
        return self._set_fitted(
            replace(result, provenance=told, moments=moments, penalised=penalised), stream.coding, stream.names
        )

    def _online_learner(self, n_rows: int) -> Online:
        """Return the learner by minibatches: the machine's own, or one with the objective of its learner.

        Minibatches are sized for about 500 steps a pass: enough to settle, not so small that overhead rules.
        """
        settings: dict[str, Any] = {"batch_size": int(np.clip(n_rows // 500, 50, 50_000))}
        if self.learner in ("auto", "online"):
            return Online(l1=self.l1, l2=self.l2, **settings)
        learner = as_learner(self.learner, l1=self.l1, l2=self.l2)
        if isinstance(learner, Online):
            return learner
        if not isinstance(learner, ObjectiveLearner):
            raise ArgumentError(
                "needs all rows at once",
                "use `learner='online'`, 'mple', 'rm' or 'mpf'",
                argument="learner",
                value=self.learner,
            )
        return Online(objective=learner.objective, l1=learner.l1, l2=learner.l2, **settings)


def _merge(before: DataMoments | None, new: DataMoments) -> DataMoments:
    if before is None:
        return new
    count = before.count + new.count
    return DataMoments((before.mean * before.count + new.mean * new.count) / count, count)
