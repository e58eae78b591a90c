"""Learning from chunks of rows as they arrive, for machines of layers whose parameters all learn together."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.estimators.fitting import check_hooks, provenance_of
from gibbsian.estimators.layered_base import LayeredMachine
from gibbsian.estimators.layered_data import VisibleRows
from gibbsian.estimators.layered_settings import check_belongs_to_fit, check_goes_on
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.scaling import ColumnScale
from gibbsian.learners import FitResult, Trace
from gibbsian.optimizers import StepInfo
from gibbsian.rng import as_generator


class ChunkedMachine(LayeredMachine):
    """A machine of layers that learns chunk by chunk; subclasses say how one chunk is learned from."""

    n_components: Any

    # The free phase that the chains in `_progress` belong to, in words.
    _chains_of: str = ""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one chunk of rows, in one pass of minibatches, keeping what was learned before.

        The coding and the columns are those of the first chunk, and the rate does not fall unless `schedule` is a
        `Decay`. The first chunk starts from random weights, a deep machine without pretraining. After a ``fit`` or a
        load it goes on from there, and after a load with new chains: a file holds the model, not the chains. So it does
        where `free_phase`, `n_steps` or `n_chains` have changed; the layers, their temperature and their precision
        cannot. ``fit`` starts afresh.

        Parameters
        ----------
        X : array, sparse array, frame, path or Dataset
            Rows of variables.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> rbm, dbm = gb.RestrictedBoltzmannMachine(4, random_state=0), gb.DeepBoltzmannMachine((4, 3), random_state=0)
        >>> for rows in np.random.default_rng(0).integers(0, 2, (3, 50, 6)):
        ...     rbm, dbm = rbm.partial_fit(rows), dbm.partial_fit(rows)
        >>> dbm.result_.reason
        'learned from 150 rows in 3 chunks'
        """
        check_hooks(self)
        self._check_settings()
        self._learner()  # refuses what it cannot use before anything is read
        rng = as_generator(self.random_state)
        known: FitResult | None = getattr(self, "result_", None)
        if known is None or not _was_fitted(known):
            check_belongs_to_fit(self)
        if known is None:
            return self._keeping_columns(lambda: self._first_chunk(X, sample_weight, rng))
        sizes = self._known_sizes()
        if self._sizes() != sizes:
            raise ArgumentError(
                f"but there are {', '.join(map(str, sizes))} hidden units already",
                "call fit, or partial_fit on a new machine",
                argument="n_components",
                value=self.n_components,
            )
        check_goes_on(self)
        data, scale = self._to_learn_from(self._read(X, sample_weight)), self._scale
        if scale is None and data.kind == "gaussian":
            scale = ColumnScale.of(data.rows)
        return self._chunk(data, self._in_standard_units(self.model_, scale), scale, rng)

    def _first_chunk(self, X: Any, sample_weight: Any, rng: np.random.Generator) -> Self:
        data = self._read_to_fit(X, sample_weight)
        return self._chunk(data, *self._start(data, data.rows, rng), rng)

    def _chunk(self, data: VisibleRows, model: Any, scale: ColumnScale | None, rng: np.random.Generator) -> Self:
        rows = data.rows if scale is None else scale.standard(data.rows)
        before, phase = self._progress, repr(self._free_phase())
        if before is not None and phase != self._chains_of:
            before = self._with_new_chains(before, model, rows, rng)
        progress = self._learn(before, model, rows, rng)
        self._check_finite(progress.theta, progress.steps)
        known: FitResult | None = getattr(self, "result_", None)
        earlier = {} if known is None else known.provenance
        trace = Trace() if known is None else Trace(list(known.trace.rows))
        info = StepInfo(progress.value, progress.gradient_norm, self.learning_rate, progress.steps)
        trace.add(len(trace) + 1, info, float("nan"))
        n_rows, n_chunks = earlier.get("rows", 0) + rows.n_rows, earlier.get("chunks", 0) + 1
        reason = f"learned from {n_rows} rows in {n_chunks} chunk{'s' * (n_chunks != 1)}"
        told = {
            **provenance_of(self._told_chunk_learner(), n_rows),
            "missing_cells": earlier.get("missing_cells", 0) + data.n_missing,
            "chunks": n_chunks,
            **{name: earlier[name] for name in ("greedy_epochs",) if name in earlier},
            **self._story(data, progress),
        }
        if known is not None and _was_fitted(known):
            reason += " after a fit"
            told["after_fit"] = True
        learned = self._in_data_units(model.replace(progress.theta), scale)
        result = FitResult(learned, trace, False, reason, told, None, self._penalised)
        self._set_fitted(result, data.coding, data.names if known is None else self.names_)
        self._progress, self._scale, self._chains_of = progress, scale, phase
        return self

    def _told_chunk_learner(self) -> str:
        """Return the way of learning from chunks in a few words."""
        return self._told_learner()

    # -- what differs -------------------------------------------------------------------------------------------------
    @abstractmethod
    def _learner(self) -> Any:
        """How the machine learns."""

    @abstractmethod
    def _sizes(self) -> tuple[int, ...]:
        """Units of the hidden layers that are asked for."""

    @abstractmethod
    def _known_sizes(self) -> tuple[int, ...]:
        """Units of the hidden layers of the fitted model."""

    @abstractmethod
    def _start(self, data: VisibleRows, rows: LayerRows, rng: np.random.Generator) -> tuple[Any, ColumnScale | None]:
        """Where learning begins, in standard units where the columns are real numbers, and these units."""

    @abstractmethod
    def _free_phase(self) -> Any:
        """How the moments under the model are found."""

    @abstractmethod
    def _with_new_chains(self, progress: Any, model: Any, rows: LayerRows, rng: np.random.Generator) -> Any:
        """The same progress with chains that begin anew, as the free phase wants them."""

    @abstractmethod
    def _learn(self, progress: Any, model: Any, rows: LayerRows, rng: np.random.Generator) -> Any:
        """Go on from some progress, or from the model, with one epoch over a chunk; return the progress after it."""

    def _story(self, data: VisibleRows, progress: Any) -> dict[str, Any]:
        """What else is told of the chunks."""
        return {}

    @abstractmethod
    def _in_data_units(self, model: Any, scale: ColumnScale | None) -> Any:
        """A model of standard units as one of the data's."""

    @abstractmethod
    def _in_standard_units(self, model: Any, scale: ColumnScale | None) -> Any:
        """The way back."""


def _was_fitted(result: FitResult) -> bool:
    """Whether a fit came before the chunks."""
    return "chunks" not in result.provenance or bool(result.provenance.get("after_fit"))
