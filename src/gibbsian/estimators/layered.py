"""What machines made of layers share as estimators: which units the columns are, which learner, what is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.answers import answers_about
from gibbsian.data import Dataset
from gibbsian.data.numbers import is_sparse
from gibbsian.data.rules import VISIBLE_KINDS, Units
from gibbsian.errors import ArgumentError, TooExpensiveError, spelled
from gibbsian.estimators.common import HiddenFeatures, LearnedMachine
from gibbsian.inference import exact, is_affordable
from gibbsian.inference.layer_pseudolikelihood import log_pseudolikelihood
from gibbsian.learning import Learner
from gibbsian.learning.around import on_layers
from gibbsian.learning.initial import model_to_start_from
from gibbsian.learning.result import FitResult
from gibbsian.learning.runaway import ALARMING_LOG_ODDS
from gibbsian.learning.standard_units import as_visible, checked_deviations, visible_layer
from gibbsian.models.base import Family, Model
from gibbsian.models.base import Units as LayerUnits
from gibbsian.models.layers.units import (
    as_units,
    hidden_kind,
    idle_means,
    log_probability,
    mean_values,
)
from gibbsian.settings import choice, declared, free, whole
from gibbsian.startup import available_if, check_is_fitted, pandas

# Columns that are listed for each hidden unit.
MOST_COLUMNS = 6
# Steps of a learner that counts no epochs, where nothing is said.
N_STEPS = 10
# Rows by which the end of a fit is judged: so many that products of visible and hidden units stay below this.
MAX_PRODUCTS, MIN_ROWS, MAX_ROWS = 5e7, 50, 1000
# log Z is summed for them where it takes no longer.
QUICK_SECONDS = 0.5
# Nats a column by which a fit may be worse than independent columns: what rounding, penalties and chains cost.
COLUMN_TOLERANCE = 0.01
# Learning begins with random weights, which are worse than none: fewer epochs a layer may not have made up for them.
MIN_EPOCHS = 5


def _refuse_sparse(X: Any) -> None:
    """Refuse what has no missing cells by its kind."""
    if is_sparse(X):
        raise ArgumentError("predictions are about missing cells, which a sparse array does not have")


def _has_values(machine: Any) -> bool:
    """Whether the visible units have values that can be counted."""
    if machine.visible == "gaussian":
        raise AttributeError("real numbers have no most probable value, and Gaussian units need every number of a row")
    return True


def _beside_columns(model: Any, data: Dataset) -> tuple[float, float, float] | None:
    """Return the mean score of some rows, that of independent columns, and the standard error of their difference.

    None where no row is complete. Scores are log-likelihoods where these are quickly summed, else pseudolikelihoods,
    which of independent columns are the same, else ``log P(v | h)`` at the means of the hidden units.
    """
    visible, lowest, *_ = model.family.layers
    n_most = int(np.clip(MAX_PRODUCTS / (visible.width * lowest.width), MIN_ROWS, MAX_ROWS))
    whole = np.arange(data.n_rows) if data.missing is None else np.flatnonzero(~data.missing[data.row_of].any(axis=1))
    if not len(whole):
        return None
    some = data.take(whole[:: -(-len(whole) // n_most)])
    means = (data.n_rows * mean_values(visible, data) + idle_means(visible)) / (data.n_rows + 1)  # as at the start
    values = visible.encode(some.states)
    columns = log_probability(visible, visible.fields_of(means)[None], values)
    with np.errstate(all="ignore"):  # of parameters that are absurd
        gain = _row_scores(model, some) - columns
    weights = some.weights / some.weights.sum()
    mean = float(weights @ gain)
    stderr = float(np.sqrt(weights @ np.square(gain - mean) / some.n_rows))
    return float(weights @ columns) + mean, float(weights @ columns), stderr


def _ran_away(model: Any) -> bool:
    """Whether a weight is larger than the log-odds that any table has; weights of real units have other scales."""
    largest = np.abs(model.family.lowest(model.theta).weights[0]).max()
    return not model.family.layers[0].variables.real and bool(largest > ALARMING_LOG_ODDS)


def _row_scores(model: Any, data: Dataset) -> np.ndarray:
    """Score each distinct row, by sums where these are quick."""
    is_restricted, has_states = len(model.family.layers) == 2, data.states.dtype.kind in "iub"
    answers, visible = answers_about(model), model.family.layers[0]
    values = visible.encode(data.states)
    if has_states or data.coding.name == "real":
        if (is_restricted or answers._sums_hidden(data)) and is_affordable(model.family, QUICK_SECONDS):
            return model.family.log_evidence(model.theta, values) - exact(model).log_partition
        if is_restricted and has_states:
            return log_pseudolikelihood(model, data.states)
    hidden = answers.expected(data, np.random.default_rng(0))[1]
    (biases, _), (weights,) = model.family.lowest(model.theta)
    return log_probability(visible, biases + hidden @ weights.T, values)


@declared
class LayeredMachine(HiddenFeatures, LearnedMachine):
    """A machine of layers; its subclasses say which model it has."""

    learner: Any = free(
        "auto", "How to learn: a registered name, or a learner object; 'auto' is 'minibatch'.", doc="str or Learner"
    )
    visible: str = choice(
        "auto",
        "Kind of the visible units. 'auto' takes two-valued columns as they are coded (spin for -1/1, else binary, "
        "whatever their labels, if all columns have the same two), numbers from 0 to 1 as probabilities of binary "
        "units, and words with more than two values as categories. Real numbers are Gaussian when asked for.",
        *VISIBLE_KINDS,
    )
    hidden: str = choice(
        "auto",
        "Kind of the hidden units: by default as two-valued visible ones, else binary.",
        "auto",
        "binary",
        "spin",
    )
    deviations: Any = free(
        "residual",
        "Standard deviations of Gaussian units given the hidden ones, which are not "
        "learned: what a linear regression on the other columns leaves of each ('residual'), its whole standard "
        "deviation ('plain'), or the numbers themselves.",
        doc="'residual', 'plain', float or sequence of float",
    )
    start: Any = free(
        None,
        "Where learning begins: where the learner says, or at the parameters of another model of the same layers.",
        doc="Model or fitted estimator, optional",
        flag=False,
    )
    max_iter: int | None = whole(  # type: ignore[assignment]
        None,
        "Maximum number of epochs, in which all rows are shown once: by default 10, or what a learner object says, "
        "which a smaller number shortens. For learners without epochs the maximum number of steps, by default 10.",
        least=1,
        optional=True,
    )

    learners: ClassVar[tuple[str, ...]] = ("minibatch", "mle", "em", "mple", "cd", "pcd", "smci-pcd")
    auto_learner = "minibatch"
    _one_trace = True

    _welcome = ("sparse",)
    _learns_on_cluster = True

    @property
    def _most_steps(self) -> int:
        return N_STEPS if self.max_iter is None else self.max_iter

    @property
    def _counts_rows(self) -> bool:  # type: ignore[override]
        return "partitions" not in self._learner_named(self._asked, epochs=self.max_iter).takes

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that Gaussian units need every number."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.visible != "gaussian"
        return tags

    def _read(self, X: Any, fitting: bool = False, sample_weight: ArrayLike | None = None) -> Dataset:
        data = super()._read(X, fitting, sample_weight)
        return as_visible(self._in_units(data) if data.on_cluster else data)

    def _in_units(self, data: Any) -> Any:
        """Return rows on a cluster in the coding that the visible units read."""
        if data.coding.name == "real":
            return data
        coding = self._coding_of(data)
        return data if coding == data.coding else data.convert(coding)

    # -- parts of a fit -----------------------------------------------------------------------------------------------
    def _coding(self) -> Units:
        return Units(self.visible, self.coding)

    def _sizes(self) -> tuple[int, ...]:
        """Return the numbers of units of the hidden layers, from the lowest."""
        raise NotImplementedError

    def _model(self, layers: list[LayerUnits]) -> Model[Family]:
        """Return the model of these layers without parameters."""
        raise NotImplementedError

    def _zeros(self, data: Dataset) -> Any:
        checked_deviations(self.deviations)
        visible = visible_layer(data, self.deviations)
        kind = hidden_kind(self.hidden, visible)
        return self._model([visible, *(as_units(kind, size) for size in self._sizes())])

    def _start(self, data: Dataset, rng: np.random.Generator) -> Any:
        model = self._zeros(data)
        if self.start is None:
            return self._learner(model, data).start(model, data, rng)
        given = model_to_start_from(self.start)
        if not isinstance(given, Model) or given.family != model.family:
            raise ArgumentError("must be a model of the same layers", argument="start", value=self.start)
        return model.replace(given.theta)

    def _learner(self, model: Any, data: Dataset) -> Learner:
        return on_layers(self._learner_named(self._asked, epochs=self.max_iter))

    def _learner_of_fit(self, data: Dataset) -> Learner:
        return self._learner(self.model_, data)

    def _chunk_learner(self, model: Any, data: Dataset) -> Learner:
        if self._is_fitted:
            self._check_same(model)
        else:
            self._check_for_chunks()
        learner = self._learner(model, data)
        return learner.by_chunks(getattr(learner, "batch_size", None) or data.n_rows)

    def _check_for_chunks(self) -> None:
        """Refuse what a machine that has only seen chunks cannot heed."""
        for name, chosen in (("validation_fraction", self.validation_fraction), ("checkpoint", self.checkpoint)):
            if chosen:
                reason = "is for fit, partial_fit learns from all rows of a chunk and is kept by save"
                raise ArgumentError(reason, "leave it out", argument=name, value=chosen)

    def _check_same(self, model: Any) -> None:
        """Refuse settings of a machine that goes on learning where they are not those of what it has learned."""
        visible, *hidden = model.family.layers
        sizes = tuple(layer.n_units for layer in hidden)
        known = {"visible": visible.kind, "hidden": hidden[0].kind}
        if self._sizes() != sizes:
            known = {"n_components": ", ".join(map(str, sizes))}
        for name, learned in known.items():
            if (value := getattr(self, name)) not in ("auto", learned):
                remedy = "call fit, or partial_fit on a new machine"
                raise ArgumentError(f"but the machine has learned with {learned}", remedy, argument=name, value=value)

    def _judged(self, result: FitResult, data: Dataset, learner: Learner) -> FitResult:
        """Refuse parameters that are no numbers, and call a fit that knows less than independent columns a failure."""
        if not np.isfinite(result.trace.column("gradient_norm")[-1]):
            raise ArgumentError(result.without_hint, result.remedy)
        if learner.targets_in(data) is not None:  # the distribution of the other columns was not learned
            return result
        if not isinstance(data, Dataset) or (scores := _beside_columns(result.model, data)) is None:
            return result
        own, columns, stderr = scores
        model: Any = result.model
        ran_away = _ran_away(model)
        has_just_begun = result.n_steps < MIN_EPOCHS * len(model.family.layers) and not ran_away
        tolerance = 2.0 * stderr + (0.0 if ran_away else COLUMN_TOLERANCE * data.n_variables)
        if has_just_begun or columns - own <= tolerance:
            return result
        why = f"after {result.n_steps} steps the fitted rows score {own:.4g} nats, worse than independent columns"
        rate = getattr(getattr(learner, "together", None) or getattr(learner, "alone", learner), "learning_rate", None)
        slower = "" if rate is None else f"lower `learning_rate={rate:g}`, or "
        remedy = f"{slower}raise `max_iter` if its curve (`curves=True`) still climbs"
        return replace(result, converged=False, reason=spelled(f"{why} ({columns:.4g}): {remedy}"), remedy=remedy)

    # -- missing cells ------------------------------------------------------------------------------------------------
    @available_if(_has_values)
    def predict_proba(self, X: Any, columns: Any = None, joint: bool = False) -> Any:
        """Return, for every cell, the probability of its upper value given the present cells of its row.

        As in all machines, also of chosen `columns`; deep ones answer by mean field, and a belief network by a sum over
        the missing cells.
        """
        if columns is None:
            _refuse_sparse(X)
        return super().predict_proba(X, columns, joint)

    @available_if(_has_values)
    def predict(self, X: Any, columns: Any = None, losses: Any = None) -> Any:
        """Return X with its missing cells filled, or decisions about `columns`, as in all machines."""
        if columns is None:
            _refuse_sparse(X)
        return super().predict(X, columns, losses)

    def _feature_names(self) -> list[str]:
        prefix, n_units = type(self).__name__.lower(), self.model_.family.layers[-1].n_units
        return [f"{prefix}{k}" for k in range(n_units)]

    # -- likelihoods --------------------------------------------------------------------------------------------------
    def log_likelihood(
        self,
        X: Any,
        sample_weight: ArrayLike | None = None,
        n_samples: int | None = None,
        betas: int | None = None,
        exact: bool | None = None,
    ) -> Any:
        """Return what is known of the mean log-likelihood per row, in numbers and in words.

        Exact where sums are in reach; else between two sides with standard errors, or a lower bound for deep machines.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        sample_weight : array of shape (n_rows,), default=None
            How much each row counts.
        n_samples, betas : int, default=None
            Walkers of annealed importance sampling, and temperatures on their way.
        exact : bool, default=None
            True insists on exact sums, False on annealing and bounds; by default exact where that is quick, unless
            `n_samples` or `betas` are given.
        """
        data = self._read(X, sample_weight=sample_weight)
        try:
            return self._answers.log_likelihood(data, self._rng(), n_samples, betas, exact)
        except TooExpensiveError as error:
            if not exact:
                raise
            raise TooExpensiveError(error.reason, "set `exact=False` for bounds") from None

    # -- what a reader is shown ---------------------------------------------------------------------------------------
    def figures(self) -> dict[str, object]:
        """Return the numbers of units of every layer, and of parameters."""
        visible, *hidden = self.model_.family.layers
        places = [""] if len(hidden) == 1 else [f" of layer {k}" for k in range(1, len(hidden) + 1)]
        units = {f"{layer.kind} hidden units{at}": layer.n_units for layer, at in zip(hidden, places, strict=True)}
        return {f"{visible.kind} visible units": visible.n_units, **units, "parameters": self.model_.theta.size}

    def tables(self, n: int = 10) -> dict[str, object]:
        """Return the hidden units of the lowest layer with the largest weights, and these weights."""
        weights = self.components_
        norms = np.sqrt(np.square(weights).sum(axis=1))
        units = np.argsort(-norms, kind="stable")[:n]
        columns = np.argsort(-np.abs(weights[units]), axis=1, kind="stable")[:, :MOST_COLUMNS].ravel()
        repeated = np.repeat(units, min(MOST_COLUMNS, weights.shape[1]))
        names = np.array(self.weight_names, dtype=object)
        return {
            "strongest hidden units": pandas.DataFrame(
                {"unit": units, "bias": self.intercept_hidden_[units], "norm of weights": norms[units]}
            ),
            "largest weights": pandas.DataFrame(
                {"unit": repeated, "column": names[columns], "weight": weights[repeated, columns]}
            ),
        }

    @property
    def weight_names(self) -> list[str]:
        """The names of the columns of weights: a column each, or for categories a value each."""
        if self.model_.family.layers[0].kind != "categorical":
            return list(self.names_)
        named = zip(self.names_, self._column_labels, strict=True)
        return [f"{name}={label}" for name, known in named for label in known]

    @property
    def _lowest(self) -> Any:
        return self.model_.family.lowest(self.reported_model.theta)

    # -- the lowest layer by scikit-learn's names ---------------------------------------------------------------------
    @property
    def intercept_visible_(self) -> np.ndarray:
        """Biases of the visible units."""
        return self._lowest.biases[0]

    @property
    def intercept_hidden_(self) -> np.ndarray:
        """Biases of the lowest hidden layer given the visible one."""
        return self._lowest.biases[1]

    @property
    def components_(self) -> np.ndarray:
        """Weights between the lowest hidden and the visible layer, shape (n_hidden, n_visible)."""
        return self._lowest.weights[0].T

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """For each figure that was followed its values before the first epoch, where there is one, and after each."""
        check_is_fitted(self)
        return self.result_.history
