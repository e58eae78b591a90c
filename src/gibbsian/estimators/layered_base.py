"""What machines made of layers share: settings, reading, columns, parts of a fit, files and checkpoints."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gibbsian.domain import AnyCoding
from gibbsian.errors import ArgumentError, DataError, DegenerateDataWarning, notify
from gibbsian.estimators.fitting import are_chosen, plain_settings, provenance_of, shorten
from gibbsian.estimators.layered_data import VisibleRows, read_again, read_visible
from gibbsian.estimators.layered_settings import check_count, check_deviations, check_layered_settings, precision
from gibbsian.layered.phases import FreePhase
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.scaling import ColumnScale, constant_columns, residual_deviations
from gibbsian.layered.training import RestrictedLearner
from gibbsian.learners import FitResult, HeldOut
from gibbsian.learners.callbacks import Printer, as_callbacks
from gibbsian.models.layers import Layer
from gibbsian.optimizers import Decay
from gibbsian.rng import RandomState
from gibbsian.storage import Checkpoint, StoredModel, write_model
from gibbsian.storage.checkpoints import as_checkpoint

# What scikit-learn keeps of the columns of a fit.
COLUMNS_SEEN = ("n_features_in_", "feature_names_in_")

# Columns of real numbers that vary by less cannot be measured in their own deviations.
SMALLEST_SPREAD = 1e-100


class LayeredMachine(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator, ABC):
    """A machine of layers as a scikit-learn estimator; subclasses say what is learned and how."""

    learning_rate: float
    batch_size: int
    n_iter: int
    verbose: int
    visible: str
    hidden: str
    free_phase: str | FreePhase
    n_steps: int | None
    n_chains: int | None
    centred: bool
    momentum: float
    l1: float
    l2: float
    schedule: Decay | str
    temperature: float
    deviations: Any
    dtype: str
    coding: Any
    binarize: float | None
    held_out: float
    checkpoint: Checkpoint | str | os.PathLike[str] | None
    callback: Any
    random_state: RandomState

    model_: Any
    result_: FitResult
    coding_: AnyCoding | None
    names_: tuple[str, ...]

    many_layers = False
    # What belongs to the course of a fit in this session, and is not in files.
    _progress: Any = None
    _scale: ColumnScale | None = None

    @property
    def total_epochs(self) -> int:
        """Epochs of a fit, over all its stages."""
        return self.n_iter

    def _guard(self, learner: Any) -> Any:
        """Return the learner as a fit runs it; the command line puts in one that Ctrl-C stops after its epoch."""
        return learner

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing cells of discrete units, and sparse arrays, are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.visible != "gaussian"
        tags.input_tags.sparse = True
        return tags

    # -- reading ------------------------------------------------------------------------------------------------------
    @property
    def _visible_layer(self) -> Layer:
        """The visible layer of the fitted model."""
        return self.model_.visible

    @property
    def _hidden_layer(self) -> Layer:
        """The lowest hidden layer of the fitted model."""
        return self.model_.hidden

    def _read_to_fit(self, X: Any, sample_weight: Any = None) -> VisibleRows:
        """Read data for a fit."""
        if isinstance(X, VisibleRows):
            data = X
        else:
            data = read_visible(X, self.visible, self.coding, binarize=self.binarize, sample_weight=sample_weight)
        self._keep_columns(X, data.names)
        return self._to_learn_from(data)

    def _to_learn_from(self, data: VisibleRows) -> VisibleRows:
        """Leave out rows of weight zero, and weights that say nothing; refuse what holds nothing."""
        rows = data.rows.telling()
        if rows.missing is not None and rows.missing.all():
            raise DataError(f"all cells of all {rows.n_rows} rows are missing", "there is nothing to fit")
        return replace(data, rows=rows)

    def _read(self, X: Any, sample_weight: Any = None) -> VisibleRows:
        """Read data in the fitted machine's columns and coding."""
        check_is_fitted(self)
        if isinstance(X, VisibleRows):  # read before, by `read_again`
            return X if sample_weight is None else replace(X, rows=replace(X.rows, weights=sample_weight))
        if getattr(X, "ndim", 0) == 2:  # another number of columns is refused in scikit-learn's own words
            validate_data(self, X, reset=False, skip_check_array=True)
        kind = self._visible_layer.kind
        data = read_again(X, kind, self.coding_, binarize=self.binarize, sample_weight=sample_weight)
        if not hasattr(X, "shape") and (
            len(data.names) != len(self.names_) or (data.names != self.names_ and are_chosen(data.names))
        ):
            raise ArgumentError(
                f"the columns are {shorten(data.names)} but the machine was fitted on {shorten(self.names_)}",
                "give the same columns in the same order",
            )
        return data

    def _keep_columns(self, X: Any, names: tuple[str, ...]) -> None:
        if hasattr(X, "shape"):
            validate_data(self, X, reset=True, skip_check_array=True)
        else:
            self._set_columns(names)

    def _set_columns(self, names: tuple[str, ...]) -> None:
        for name in COLUMNS_SEEN:
            self.__dict__.pop(name, None)
        self.n_features_in_ = len(names)
        if are_chosen(names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _keeping_columns(self, fit: Callable[[], Self]) -> Self:
        """Run a fit; a machine that refuses new data stays the machine it was."""
        before = {name: self.__dict__[name] for name in COLUMNS_SEEN if name in self.__dict__}
        try:
            return fit()
        except BaseException:
            for name in COLUMNS_SEEN:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _labels(self, states: np.ndarray) -> np.ndarray:
        """Write states of the visible layer as the data did."""
        return states if self.coding_ is None else self.coding_.decode(states)

    # -- learning -----------------------------------------------------------------------------------------------------
    def _check_settings(self) -> None:
        """Refuse settings that no fit can use, before any work is done."""
        check_layered_settings(self)

    def _check_count(self, name: str, least: int) -> None:
        check_count(self, name, least)

    def _restricted_learner(self, n_epochs: int) -> RestrictedLearner:
        """Return how a restricted machine, or each one of a stack, learns."""
        return RestrictedLearner(
            n_epochs=n_epochs,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            batch_size=self.batch_size,
            free_phase=self.free_phase,
            n_steps=self.n_steps,
            n_chains=self.n_chains,
            momentum=self.momentum,
            centred=self.centred,
            l1=self.l1,
            l2=self.l2,
            dtype=precision(self.dtype),
        )

    def _told_learner(self) -> str:
        """Return the way of learning in a few words."""
        return self._phase_name

    def _told(self, result: FitResult, data: VisibleRows) -> dict[str, Any]:
        """Return what a file will tell of a fit."""
        return {
            **result.provenance,
            **provenance_of(self._told_learner(), data.rows.n_rows),
            "l1": self.l1,
            "l2": self.l2,
            "missing_cells": data.n_missing,
            "steps": result.n_steps,
            "seconds": round(result.seconds, 4),
        }

    @property
    def _phase_name(self) -> str:
        return self.free_phase if isinstance(self.free_phase, str) else repr(self.free_phase)

    @property
    def _penalised(self) -> bool:
        return bool(self.l1 or self.l2)

    def _check_finite(self, theta: np.ndarray, n_steps: int) -> None:
        if not np.isfinite(theta).all():
            raise ArgumentError(
                f"the parameters have run to infinity in {n_steps} minibatches",
                f"lower `learning_rate={self.learning_rate:g}`",
            )

    def _visible_units(self, data: VisibleRows, rows: LayerRows, scale: ColumnScale | None) -> Layer:
        """Return the visible layer of a fit, in standard units where the columns are real numbers.

        The deviations asked for are those of the conditional law, which the temperature widens by its root.
        """
        if scale is None:
            return data.layer()
        narrowest = int(scale.spreads.argmin())
        if scale.spreads[narrowest] < SMALLEST_SPREAD:
            raise DataError(
                f"column {data.names[narrowest]!r} varies by {scale.spreads[narrowest]:.1g} only, which has no square",
                "multiply it by a large number",
            )
        widths = check_deviations(self.deviations, len(data.names))
        if widths is None:
            constant = tuple(np.asarray(data.names, dtype=object)[constant_columns(rows)])
            if constant:
                notify(
                    DegenerateDataWarning(
                        f"columns that never vary have no deviation to estimate and get 1 ({shorten(constant)})",
                        "drop them, or give `deviations=`",
                    )
                )
            widths = residual_deviations(rows) if self.deviations == "residual" else scale.spreads
        return data.layer(tuple(widths / scale.spreads / np.sqrt(float(self.temperature))))

    def _hold_out(self, rows: LayerRows, rng: np.random.Generator) -> tuple[LayerRows, LayerRows | None]:
        """Split off the rows that the fit shall not see."""
        if not 0 <= self.held_out < 1:
            raise ArgumentError(
                "must be a share of the rows, from 0 to less than 1", argument="held_out", value=self.held_out
            )
        if self.held_out == 0:
            return rows, None
        n_kept = round((1 - self.held_out) * rows.n_rows)
        if not 0 < n_kept < rows.n_rows:
            raise ArgumentError(
                f"of {rows.n_rows} rows leaves no row out or none to fit",
                "give another share, or more rows",
                argument="held_out",
                value=self.held_out,
            )
        order = rng.permutation(rows.n_rows)
        return rows.take(np.sort(order[:n_kept])), rows.take(np.sort(order[n_kept:]))

    def _callbacks(self) -> list[Any]:
        callbacks = as_callbacks(self.callback)
        if self.verbose:
            callbacks.insert(0, Printer(type(self).__name__))
        return callbacks if self.checkpoint is None else [*callbacks, as_checkpoint(self.checkpoint)]

    def _visible_of(self, model: Any) -> Layer:
        return model.visible

    def _set_fitted(self, result: FitResult, coding: AnyCoding | None, names: tuple[str, ...]) -> Self:
        self.result_ = result
        self.model_ = result.model
        self.coding_ = coding
        self.names_ = names
        self.n_iter_ = result.n_steps
        # whoever has the course of a fit sets it anew
        for name in ("_progress", "_scale", "_chains_of", "_log_z"):
            self.__dict__.pop(name, None)
        return self

    # -- files --------------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the machine to a file: whole or not at all, and no pickle. `gibbsian.load` reads it.

        Examples
        --------
        >>> import tempfile, pathlib, gibbsian as gb
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rbm.gibbs"
        >>> gb.RestrictedBoltzmannMachine(2, random_state=0).fit([["yes", "no"], ["no", "yes"]]).save(path)
        >>> gb.load(path).coding_.name
        'yes/no'
        """
        check_is_fitted(self)
        result = self.result_
        told = {
            **result.provenance,
            "converged": result.converged,
            "reason": result.reason,
            "penalised": result.penalised,
            "held_out": result.held_out,
        }
        settings = plain_settings(self.get_params(deep=False))
        write_model(path, StoredModel(self.model_, self.coding_, self.names_, settings, told, result.trace))

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted machine from what a file holds."""
        told = dict(stored.provenance)
        converged, reason = told.pop("converged", False), told.pop("reason", "")
        penalised, held_out = told.pop("penalised", False), told.pop("held_out", None)
        machine = cls(**stored.settings)
        machine._set_columns(stored.names)
        scored = None if held_out is None else HeldOut(*held_out)
        result = FitResult(stored.model, stored.trace, converged, reason, told, None, penalised, scored)
        return machine._set_fitted(result, stored.coding, stored.names)
