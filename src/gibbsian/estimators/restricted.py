"""The restricted Boltzmann machine as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from gibbsian.errors import ConvergenceWarning, notify
from gibbsian.estimators.fitting import check_hooks
from gibbsian.estimators.layered_answers import RestrictedAnswersMixin
from gibbsian.estimators.layered_chunks import ChunkedMachine
from gibbsian.estimators.layered_curves import HeldOutCurves
from gibbsian.estimators.layered_data import VisibleRows, hidden_kind
from gibbsian.estimators.layered_memory import require_fit_memory
from gibbsian.estimators.layered_missing import MissingCellsMixin
from gibbsian.estimators.layered_scores import RestrictedScoresMixin
from gibbsian.layered.phases import FreePhase
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.scaling import ColumnScale
from gibbsian.layered.start import start_model
from gibbsian.layered.training import RestrictedLearner, RestrictedProgress, train_restricted, update
from gibbsian.models.layers import as_layer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.optimizers import Decay
from gibbsian.rng import RandomState, as_generator

# Parameters, their last step, both phases' products and the gradient: what a fit keeps of the size of the weights.
COPIES_OF_WEIGHTS = 6


class RestrictedBoltzmannMachine(RestrictedAnswersMixin, RestrictedScoresMixin, MissingCellsMixin, ChunkedMachine):
    """Restricted Boltzmann machine: visible and hidden units, and weights between the two layers only (YK15, "RBM").

    ``P(v, h) = exp((b . v + c . h + v W h) / T) / Z``, for Gaussian units times ``exp(-sum_i v_i^2 / (2 d_i^2))`` with
    their `deviations` d. A drop-in for scikit-learn's ``BernoulliRBM``, whose settings come first, with its defaults;
    `score_samples` differs (a log-likelihood, not a random pseudolikelihood).

    Those defaults are cautious. ``learning_rate=0.2`` learns more in few epochs (10 on digits, 20 hidden units: -18.8
    instead of -19.7 nats a held-out row), the more so with larger minibatches, which make fewer steps; machines of a
    few units bear up to 1. Raise the rate, or `n_iter`, where the pseudolikelihood in ``history_`` still climbs at the
    last epoch; lower the rate where it falls back.

    Parameters
    ----------
    n_components : int
        Number of hidden units.
    learning_rate : float
        Rate of the first step.
    batch_size : int
        Rows of a minibatch.
    n_iter : int
        Epochs: how often all rows are shown.
    verbose : int
        Print a line after every epoch.
    random_state : None, int or Generator
        Where randomness comes from.
    visible : "auto", "binary", "spin", "gaussian" or "categorical"
        Kind of the visible units. ``"auto"`` takes two-valued columns as they are coded (spin for -1/1, else binary,
        whatever their labels, if all columns have the same two), numbers from 0 to 1 as probabilities of binary units,
        and words with more than two values as categories. Real numbers are Gaussian when asked for.
    hidden : "auto", "binary" or "spin"
        Kind of the hidden units: by default as two-valued visible ones, else binary.
    free_phase : "pcd", "cd", "smci", "tempering" or FreePhase
        How the moments under the model are found: persistent chains, chains from the minibatch, spatial Monte Carlo
        integration over persistent chains, or parallel tempering.
    n_steps, n_chains : int, optional
        Steps of the chains for each minibatch, and how many chains, instead of the free phase's own numbers.
    centred : bool
        Use the centred gradient, which does not depend on which value is called 0 and which 1.
    momentum : float
        Share of the last step that is made again.
    l1, l2 : float
        Penalties ``l1 sum |W| + l2 sum W^2 / 2`` on the weights.
    schedule : "linear", "constant" or Decay
        How the rate falls: to zero at the end of the last epoch, not at all, or as a `Decay` says.
    temperature : float
        T of YK15.
    deviations : "residual", "plain" or sequence of float
        Standard deviations of Gaussian units given the hidden ones, at the temperature of the machine, which are not
        learned: what a linear regression on the other columns leaves of each, its whole standard deviation, or the
        numbers themselves.
    coding : "auto", str, pair of labels, Coding or CategoryCoding
        How the values are written in the table, as in `Dataset.read`.
    binarize : float, optional
        Numbers above this threshold become the upper value, all others the lower.
    held_out : float
        Share of the rows that the fit does not see and that are scored instead.
    monitor : bool
        Follow the likelihoods of rows held out in ``history_``, besides the pseudolikelihood of the fit's own rows.
    dtype : "float64" or "float32"
        Precision of parameters and chains.
    checkpoint : Checkpoint or path, optional
        Keeps the progress of the fit in a file, every so many epochs.
    callback : callable, optional
        Called with the number of the epoch and its `StepInfo`.

    Attributes
    ----------
    model_ : RestrictedModel
        The distribution, in the units of the data.
    components_ : ndarray of shape (n_components, n_visible)
        The weights; for categories one column for each value of each column of the table.
    intercept_hidden_, intercept_visible_ : ndarray
        The biases.
    h_samples_ : ndarray of shape (n_chains, n_components)
        Hidden values of the persistent chains, where the free phase has them.
    history_ : dict of str to ndarray
        For each figure its value before the first epoch and after every one.
    result_ : FitResult
        Trace, reason of the end, score of rows held out.
    coding_ : Coding, CategoryCoding or None
        How the values are written; None for real numbers.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.random((200, 2)) < 0.5, 3, axis=1).astype(int)       # two groups of three equal columns
    >>> rbm = gb.RestrictedBoltzmannMachine(4, n_iter=200, random_state=0).fit(X)
    >>> bool(rbm.score(X) > -2.0)                                              # at best 2 log 1/2 = -1.39
    True
    >>> rbm.transform(X).shape
    (200, 4)
    """

    model_: RestrictedModel
    _progress: RestrictedProgress | None

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        verbose: int = 0,
        random_state: RandomState = None,
        visible: str = "auto",
        hidden: str = "auto",
        free_phase: str | FreePhase = "pcd",
        n_steps: int | None = None,
        n_chains: int | None = None,
        centred: bool = True,
        momentum: float = 0.0,
        l1: float = 0.0,
        l2: float = 0.0,
        schedule: Decay | str = "linear",
        temperature: float = 1.0,
        deviations: Any = "residual",
        coding: Any = "auto",
        binarize: float | None = None,
        held_out: float = 0.0,
        monitor: bool = True,
        dtype: str = "float64",
        checkpoint: Any = None,
        callback: Any = None,
    ):
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state
        self.visible = visible
        self.hidden = hidden
        self.free_phase = free_phase
        self.n_steps = n_steps
        self.n_chains = n_chains
        self.centred = centred
        self.momentum = momentum
        self.l1 = l1
        self.l2 = l2
        self.schedule = schedule
        self.temperature = temperature
        self.deviations = deviations
        self.coding = coding
        self.binarize = binarize
        self.held_out = held_out
        self.monitor = monitor
        self.dtype = dtype
        self.checkpoint = checkpoint
        self.callback = callback

    # -- learning -----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the parameters.

        Parameters
        ----------
        X : array, sparse array, frame, path or Dataset
            Rows of variables. Missing cells (NaN, blank, ``?``) of discrete units are drawn anew, given the rest of
            their row, whenever the row is visited.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.RestrictedBoltzmannMachine(2, random_state=0).fit([["yes", "no"], ["no", "?"]]).coding_.name
        'yes/no'
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
        unseen = held_out
        if scale is not None:
            rows, unseen = scale.standard(rows), None if held_out is None else scale.standard(held_out)
        if self.monitor and unseen is not None:
            learner = replace(learner, monitor=HeldOutCurves(rows, unseen))
        fitted = train_restricted(self._guard(learner), start, rows, rng, callbacks=self._callbacks())
        result = fitted.result
        self._check_finite(fitted.progress.theta, fitted.progress.steps)
        if not result.converged:
            notify(ConvergenceWarning(result.reason))
        history = {name: values.tolist() for name, values in fitted.history.items()}
        told = {**self._told(result, data), "history": history}
        model: Any = self._in_data_units(fitted.model, scale)
        result = replace(result, model=model, provenance=told, penalised=self._penalised)
        self._set_fitted(result, data.coding, data.names)
        self._progress, self._scale, self._chains_of = fitted.progress, scale, repr(learner.free_phase)
        if held_out is not None:
            self.result_ = replace(self.result_, held_out=self._score_of_rows(held_out))
        return self

    # -- parts of a fit -----------------------------------------------------------------------------------------------
    def _check_settings(self) -> None:
        self._check_count("n_components", 1)
        super()._check_settings()

    def _learner(self) -> RestrictedLearner:
        return self._restricted_learner(self.n_iter)

    def _sizes(self) -> tuple[int, ...]:
        return (self.n_components,)

    def _known_sizes(self) -> tuple[int, ...]:
        return (self.model_.hidden.n_units,)

    def _start(
        self, data: VisibleRows, rows: LayerRows, rng: np.random.Generator
    ) -> tuple[RestrictedModel, ColumnScale | None]:
        scale = ColumnScale.of(rows) if data.kind == "gaussian" else None
        visible = self._visible_units(data, rows, scale)
        hidden = as_layer(hidden_kind(self.hidden, data.kind), self.n_components)
        require_fit_memory([visible.width, hidden.width], rows.n_rows, self._learner(), COPIES_OF_WEIGHTS)
        standard = rows if scale is None else scale.standard(rows)
        temperature, dtype = float(self.temperature), np.dtype(self.dtype)
        return start_model(visible, hidden, standard, rng, temperature=temperature, dtype=dtype), scale

    def _free_phase(self) -> Any:
        return self._learner().free_phase

    def _with_new_chains(
        self, progress: RestrictedProgress, model: RestrictedModel, rows: LayerRows, rng: np.random.Generator
    ) -> RestrictedProgress:
        return replace(progress, free=self._free_phase().init(model.replace(progress.theta), rows, rng))

    def _learn(
        self, progress: RestrictedProgress | None, model: RestrictedModel, rows: LayerRows, rng: np.random.Generator
    ) -> RestrictedProgress:
        if progress is not None:  # what a fit measured besides is no part of this story
            progress = replace(progress, history=progress.history[:, :1])
        return update(self._learner(), progress, model, rows, rng)[1]

    def _story(self, data: VisibleRows, progress: RestrictedProgress) -> dict[str, Any]:
        figure = "reconstruction_error" if data.kind == "gaussian" else "log_pseudolikelihood"
        return {"history": {figure: progress.history[:, 0].tolist()}}

    def _in_data_units(self, model: RestrictedModel, scale: ColumnScale | None) -> RestrictedModel:
        return model if scale is None else scale.to_data(model)

    def _in_standard_units(self, model: RestrictedModel, scale: ColumnScale | None) -> RestrictedModel:
        return model if scale is None else scale.from_data(model)

    # -- the model by scikit-learn's names ----------------------------------------------------------------------------
    @property
    def components_(self) -> np.ndarray:
        """The weights, shape (n_components, n_visible)."""
        return self.model_.weights.T

    @property
    def intercept_hidden_(self) -> np.ndarray:
        """Biases of the hidden units."""
        return self.model_.hidden_biases

    @property
    def intercept_visible_(self) -> np.ndarray:
        """Biases of the visible units."""
        return self.model_.visible_biases

    @property
    def h_samples_(self) -> np.ndarray:
        """Hidden values of the persistent chains."""
        chains = getattr(getattr(self._progress, "free", None), "hidden", None)
        if chains is None:
            raise AttributeError("h_samples_ are the persistent chains of a fit in this session with free_phase='pcd'")
        return chains

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """For each figure its value before the first epoch and after every one."""
        return {name: np.asarray(values) for name, values in self.result_.provenance.get("history", {}).items()}

    @property
    def _n_features_out(self) -> int:
        return self.model_.hidden.n_units
