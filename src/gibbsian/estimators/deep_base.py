"""What the deep machines share as scikit-learn estimators: settings and the course of a fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from gibbsian.errors import ArgumentError, ConvergenceWarning, MissingValuesError, notify
from gibbsian.estimators.deep_answers import DeepAnswersMixin
from gibbsian.estimators.fitting import check_hooks
from gibbsian.estimators.layered_base import LayeredMachine
from gibbsian.estimators.layered_data import VisibleRows, hidden_kind
from gibbsian.estimators.layered_memory import require_fit_memory
from gibbsian.estimators.layered_scores import given_of
from gibbsian.layered.deep_scaling import deep_to_data
from gibbsian.layered.epochs import train_epochs
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.scaling import ColumnScale
from gibbsian.layered.stacking import DeepMachine, Stacking, train_stack
from gibbsian.learners import HeldOut
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.layers import Layer, as_layer
from gibbsian.rng import as_generator
from gibbsian.storage import StoredModel

# Parameters of the machine and of the stack, their last steps, both phases' products and the gradient.
COPIES_OF_WEIGHTS = 10


class DeepMachineEstimator(DeepAnswersMixin, LayeredMachine):
    """What both deep machines share: settings, reading, the course of a fit."""

    n_components: Any
    carried: str

    many_layers = True
    score_kind = "log_likelihood_lower_bound"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the layers one after the other, and then together.

        Parameters
        ----------
        X : array, sparse array, frame, path or Dataset
            Rows of variables. Missing cells (NaN, blank, ``?``) of discrete units are drawn anew by the lowest machine,
            given the rest of their row, whenever the row is visited.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        """
        check_hooks(self)
        self._check_settings()
        return self._keeping_columns(lambda: self._fit(X, sample_weight))

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        learner = self._learner()
        data = self._read_to_fit(X, sample_weight)
        rng = as_generator(self.random_state)
        rows, held_out = self._hold_out(data.rows, rng)
        start, scale = self._start(data, rows, rng)
        if isinstance(start, BeliefNetwork) and held_out is not None and not len(_complete_rows(held_out)):
            raise MissingValuesError(
                f"all {held_out.n_rows} rows held out have missing cells, and a belief network scores "
                "complete rows only",
                "hold out more (held_out=), or none",
            )
        rows = rows if scale is None else scale.standard(rows)
        train = train_stack if isinstance(learner, Stacking) else train_epochs
        result = train(self._guard(learner), start, rows, rng, callbacks=self._callbacks())
        if not result.converged:
            notify(ConvergenceWarning(result.reason))
        told = {**self._told(result, data), "greedy_epochs": self._greedy_epochs}
        model: Any = self._in_data_units(result.model, scale)
        result = replace(result, model=model, provenance=told, penalised=self._penalised)
        self._set_fitted(result, data.coding, data.names)
        if held_out is not None:
            self.result_ = replace(self.result_, held_out=self._score_of_rows(held_out))
        return self

    # -- what differs -------------------------------------------------------------------------------------------------
    @property
    def _hidden_layer(self) -> Layer:
        return self.model_.layers[1]

    @abstractmethod
    def _learner(self) -> Any:
        """How the machine learns."""

    @abstractmethod
    def _start_model(self, layers: Sequence[Layer], rows: LayerRows, rng: np.random.Generator) -> DeepMachine:
        """Where learning begins."""

    @property
    @abstractmethod
    def _greedy_epochs(self) -> int:
        """Epochs of the layers alone."""

    # -- parts of a fit -----------------------------------------------------------------------------------------------
    def _check_settings(self) -> None:
        self._sizes()
        super()._check_settings()

    def _sizes(self) -> tuple[int, ...]:
        """Units of the hidden layers from the lowest; a single number is one layer."""
        given = (self.n_components,) if isinstance(self.n_components, Integral) else self.n_components
        # sets and mappings have no lowest layer
        sizes = tuple(given) if isinstance(given, Sequence) or getattr(given, "ndim", 0) == 1 else ()
        if not sizes or not all(isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 1 for n in sizes):
            raise ArgumentError(
                "must be the numbers of units of the hidden layers from the lowest, such as (64, 32)",
                argument="n_components",
                value=self.n_components,
            )
        return tuple(int(n) for n in sizes)

    def _layers(self, data: VisibleRows, rows: LayerRows, scale: ColumnScale | None) -> tuple[Layer, ...]:
        kind = hidden_kind(self.hidden, data.kind)
        layers = (self._visible_units(data, rows, scale), *(as_layer(kind, n) for n in self._sizes()))
        require_fit_memory(
            [layer.width for layer in layers], rows.n_rows, self._restricted_learner(1), COPIES_OF_WEIGHTS
        )
        return layers

    def _known_sizes(self) -> tuple[int, ...]:
        return tuple(layer.n_units for layer in self.model_.layers[1:])

    def _start(
        self, data: VisibleRows, rows: LayerRows, rng: np.random.Generator
    ) -> tuple[DeepMachine, ColumnScale | None]:
        """Where learning begins, in standard units where the columns are real numbers, and these units."""
        scale = ColumnScale.of(rows) if data.kind == "gaussian" else None
        layers = self._layers(data, rows, scale)
        return self._start_model(layers, rows if scale is None else scale.standard(rows), rng), scale

    def _in_data_units(self, model: Any, scale: ColumnScale | None) -> Any:
        return model if scale is None else deep_to_data(scale, model)

    def _together(self, n_epochs: int) -> dict[str, Any]:
        """The settings of learning together that both machines have."""
        settings = {
            "n_epochs": n_epochs,
            "learning_rate": self.learning_rate,
            "schedule": self.schedule,
            "batch_size": self.batch_size,
            "momentum": self.momentum,
            "l1": self.l1,
            "l2": self.l2,
        }
        return settings | given_of(n_steps=self.n_steps, n_chains=self.n_chains)

    def _score_of_rows(self, rows: LayerRows) -> HeldOut:
        if rows.missing is not None and isinstance(self.model_, BeliefNetwork):
            rows = rows.take(_complete_rows(rows))
        score = float(rows.shares @ self._bounds(rows)) - self._log_partition_above()
        return HeldOut(score, "lower bound on the log-likelihood", rows.n_rows)

    def score_or_pseudo_score(self, X: Any) -> HeldOut:
        """Return the mean of `score_samples`, and say what it is: a lower bound.

        Examples
        --------
        >>> import gibbsian as gb
        >>> dbm = gb.DeepBoltzmannMachine((3, 2), random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> dbm.score_or_pseudo_score([[0, 1]]).kind
        'lower bound on the log-likelihood'
        """
        return self._score_of_rows(self._read(X).rows)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted machine from what a file holds."""
        model: Any = stored.model
        sizes: Any = tuple(layer.n_units for layer in model.layers[1:])
        if sizes == (stored.settings.get("n_components"),):  # given as a number
            sizes = sizes[0]
        return super().from_stored(replace(stored, settings={**stored.settings, "n_components": sizes}))

    # -- the lowest layer by scikit-learn's names ---------------------------------------------------------------------
    @property
    @abstractmethod
    def components_(self) -> np.ndarray:
        """Weights between the visible and the lowest hidden layer, shape (n_hidden, n_visible)."""

    @property
    @abstractmethod
    def intercept_hidden_(self) -> np.ndarray:
        """Biases of the lowest hidden layer."""

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """Mean of ``log P(v | h)``, h as a row shows it, after every epoch of learning together, and every chunk."""
        told = self.result_.provenance
        alone = told.get("greedy_epochs", 0 if "chunks" in told else self._greedy_epochs)
        values = self.result_.trace.column("value")[alone:]
        return {"log_reconstruction": -values} if len(values) else {}

    @property
    def _n_features_out(self) -> int:
        return self.model_.layers[-1].n_units


def _complete_rows(rows: LayerRows) -> np.ndarray:
    return np.arange(rows.n_rows) if rows.missing is None else np.flatnonzero(~rows.missing.any(axis=1))
