"""The pairwise Boltzmann machine as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gibbsian.data import Dataset, drop_empty_rows, preflight
from gibbsian.data.stream import DataStream
from gibbsian.diagnostics import data_moments
from gibbsian.domain import Coding, as_coding
from gibbsian.errors import ArgumentError, ConvergenceWarning, DataError
from gibbsian.estimators.answers import AnswersMixin
from gibbsian.estimators.fitting import (
    are_chosen,
    check_memory,
    check_numbers,
    check_runaway,
    choose_learner,
    fingerprint,
    plain_settings,
    provenance,
    shorten,
    start_from,
)
from gibbsian.estimators.online import OnlineMixin
from gibbsian.graphs import as_graph
from gibbsian.learners import FitResult, HeldOut, Learner, as_learner, train
from gibbsian.learners.driver import Callback
from gibbsian.models import PairwiseModel
from gibbsian.rng import RandomState, as_generator
from gibbsian.storage import Checkpoint, StoredModel, write_model

# What scikit-learn keeps of the columns of a fit.
COLUMNS_SEEN = ("n_features_in_", "feature_names_in_")


class BoltzmannMachine(AnswersMixin, OnlineMixin, DensityMixin, BaseEstimator):
    """A fully visible pairwise Boltzmann machine (YU20 eq. 3), learned from two-valued data.

    Parameters
    ----------
    graph : "complete", Graph, networkx graph or list of pairs
        Which variables interact; pairs may use column names. Also ``"empty"``, ``"chain"``, ``"grid:RxC"``.
    learner : "auto", str or Learner
        ``"mle"`` (exact likelihood), ``"mple"`` (pseudolikelihood), any registered name, or a learner object with its
        own settings. ``"auto"`` takes the exact likelihood where one evaluation is quick or cells are missing, else
        pseudolikelihood.
    l1, l2 : float
        Penalties ``l1 sum|coupling|`` and ``(l2/2) sum parameter^2`` on the mean loss per row, in the model's own
        coding.
    coding : "auto", str or pair of labels
        How the two values are written: recognised from the data, or declared (``"spin"``, ``"binary"``, ``"yes/no"``,
        ``("low", "high")``). Parameters belong to the coding: -1/+1 for ``"spin"``, 0/1 for all others.
    bias : bool
        Whether the model has biases.
    temperature : float
        T in ``P(x) = exp(-E(x)/T) / Z`` (YK15).
    max_iter : int
        Most steps of the learner.
    tol : float
        Converged when no entry of the gradient is larger.
    binarize : float, optional
        Turn numbers into 0/1 at this threshold first, in a fit and later; later data of zeros and ones only (samples,
        filled rows) have passed it already.
    start : None, str, model or machine
        Where the learner begins: at zero, at a mean-field solution (``"sessak-monasson"``, ``"bethe"``, ...), or at the
        parameters of another model.
    held_out : float
        Share of the rows to keep out of the fit; ``result_.held_out`` scores them.
    checkpoint : Checkpoint or path, optional
        Where to keep the progress of a fit.
    callback : callable, optional
        Called with the step number and its `StepInfo` after each step.
    random_state : None, int or Generator
        Where randomness comes from.

    Attributes
    ----------
    biases_ : pandas.Series
        The biases by column name.
    couplings_ : pandas.DataFrame
        The symmetric matrix of couplings by column name.
    result_ : FitResult
        Trace, convergence in words, provenance; ``result_.training`` compares moments, ``result_.held_out`` scores.
    model_ : PairwiseModel
        The distribution itself.
    coding_ : Coding
        The coding the machine was fitted in.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes()
    >>> bm = gb.BoltzmannMachine(learner="mple", l2=0.01).fit(votes.complete_rows())
    >>> bm.strongest_couplings(1)[["first", "second"]].values.tolist()
    [['physician-fee-freeze', 'republican']]
    >>> bm.result_.converged
    True
    """

    def __init__(
        self,
        graph: Any = "complete",
        learner: str | Learner = "auto",
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        coding: Any = "auto",
        bias: bool = True,
        temperature: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-6,
        binarize: float | None = None,
        start: Any = None,
        held_out: float = 0.0,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        callback: Callback | None = None,
        random_state: RandomState = None,
    ):
        self.graph = graph
        self.learner = learner
        self.l1 = l1
        self.l2 = l2
        self.coding = coding
        self.bias = bias
        self.temperature = temperature
        self.max_iter = max_iter
        self.tol = tol
        self.binarize = binarize
        self.start = start
        self.held_out = held_out
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing cells are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # -- learning -----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the parameters.

        Parameters
        ----------
        X : array, frame, path, Dataset or DataStream
            Rows of two-valued variables; missing cells (NaN, blank, ``?``) are summed out by the exact likelihood. A
            `DataStream` stays on disk and is learned by minibatches.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
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
        before = {name: self.__dict__[name] for name in COLUMNS_SEEN if name in self.__dict__}
        try:
            return self._fit(X, sample_weight)
        except BaseException:  # a machine that refuses new data stays the machine it was
            for name in COLUMNS_SEEN:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        check_numbers(self)
        if isinstance(X, DataStream):
            return self._fit_stream(X, sample_weight)
        data = self._read(X, fitting=True, sample_weight=sample_weight)
        if data.row_weights is not None:
            data = data.take(data.row_weights > 0)
        rng = as_generator(self.random_state)
        data, held_out = self._hold_out(data, rng)
        graph = as_graph(self.graph, data.names)
        model = PairwiseModel.zeros(graph, data.domain, self.temperature, self.bias)
        name = choose_learner(self.learner, model, data)
        learner = as_learner(name, l1=self.l1, l2=self.l2)
        l1, l2 = getattr(learner, "l1", 0.0), getattr(learner, "l2", 0.0)
        check_memory(data, model)
        preflight(data, graph, l1=l1, l2=l2, bias=self.bias)
        data = drop_empty_rows(data)
        model = start_from(self.start, model, data)
        result = train(
            learner,
            model,
            data,
            rng,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self.callback,
            checkpoint=self._checkpoint(lambda: fingerprint(learner, model, data)),
        )
        if not (l1 or l2):
            check_runaway(model.replace(result.model.theta), data, learner)
        if not result.converged:
            warnings.warn(result.reason, ConvergenceWarning, stacklevel=2)
        result = replace(
            result,
            provenance={**result.provenance, **provenance(name, learner, data, result)},
            moments=data_moments(model, data),
            penalised=bool(l1 or l2),
        )
        self._set_fitted(result, data.coding, data.names)
        if held_out is not None:
            self.result_ = replace(result, held_out=self.score_or_pseudo_score(held_out))
        return self

    def _hold_out(self, data: Dataset, rng: np.random.Generator) -> tuple[Dataset, Dataset | None]:
        """Split off the rows that the fit shall not see."""
        if not 0 <= self.held_out < 1:
            raise ArgumentError(f"held_out={self.held_out} must be a share of the rows, from 0 to less than 1")
        return data.split(1 - self.held_out, rng) if self.held_out else (data, None)

    def _set_fitted(self, result: FitResult, coding: Coding, names: tuple[str, ...]) -> Self:
        self.__dict__.pop("_progress", None)  # what partial_fit kept belongs to the model it learned
        self.result_ = result
        self.model_: PairwiseModel = result.model  # type: ignore[assignment]
        self.coding_ = coding
        self.names_ = names
        return self

    def _checkpoint(self, identify: Callable[[], str]) -> Checkpoint | None:
        """Return the checkpoint of this fit; only then is the data hashed."""
        if self.checkpoint is None:
            return None
        given = self.checkpoint if isinstance(self.checkpoint, Checkpoint) else Checkpoint(self.checkpoint)
        return Checkpoint(given.path, given.every, given.resume, identify())

    def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset:
        """Read data for a fit, or for use with the fitted machine in its coding and columns."""
        if fitting:
            coding, who = self.coding, None
        else:
            check_is_fitted(self)
            coding, who = self.coding_, "the model"
        threshold = None if isinstance(X, Dataset) else self.binarize
        options = {"coding": coding, "sample_weight": sample_weight, "declared_by": who}
        try:  # what the machine gave back itself (samples, filled rows) has passed the threshold already
            data = Dataset.read(X, **options, binarize=threshold if fitting else None)
        except DataError:
            if fitting or threshold is None:
                raise
            data = Dataset.read(X, **options, binarize=threshold)
        self._check_columns(X, data, fitting)
        return data

    def _check_columns(self, X: Any, data: Dataset, fitting: bool) -> None:
        """Keep the columns' names in a fit; afterwards refuse other columns or another order."""
        if not isinstance(X, Dataset | str | os.PathLike):
            validate_data(self, X if hasattr(X, "shape") else data.states, reset=fitting, skip_check_array=True)
        elif fitting:
            self._set_columns(data.names)
        elif data.names != self.names_ and (data.n_variables != self.n_features_in_ or are_chosen(data.names)):
            raise ArgumentError(
                f"the columns are {shorten(data.names)} but the machine was fitted on {shorten(self.names_)}: "
                "give the same columns in the same order"
            )

    def _set_columns(self, names: tuple[str, ...]) -> None:
        self.n_features_in_ = len(names)
        if are_chosen(names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def convert(self, coding: Any) -> BoltzmannMachine:
        """Return the same distribution written in another coding, exactly.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> other = bm.convert("binary")
        >>> bool(abs(other.score([[1, 0]]) - bm.score([[1, -1]])) < 1e-12)
        True
        """
        check_is_fitted(self)
        target = as_coding(coding)
        model, _ = self.model_.to_domain(target.domain)
        told = {**self.result_.provenance, "converted_from": self.coding_.name}
        result = replace(self.result_, model=model, moments=None, provenance=told)
        converted = type(self)(**self.get_params(deep=False))
        converted.coding = target
        converted._set_columns(self.names_)
        return converted._set_fitted(result, target, self.names_)

    # -- files --------------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the machine to a file: whole or not at all, and no pickle.

        Examples
        --------
        >>> import tempfile, pathlib, gibbsian as gb
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).save(path)
        >>> gb.load(path).names_
        ('x0', 'x1')
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
        write_model(
            path, StoredModel(self.model_, self.coding_, self.names_, settings, told, result.trace, result.moments)
        )

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted machine from what a file holds."""
        told = dict(stored.provenance)
        converged, reason = told.pop("converged", False), told.pop("reason", "")
        penalised, held_out = told.pop("penalised", False), told.pop("held_out", None)
        machine = cls(**{**stored.settings, "graph": stored.model.graph, "coding": stored.coding})
        machine._set_columns(stored.names)
        result = FitResult(
            stored.model,
            stored.trace,
            converged,
            reason,
            told,
            stored.moments,
            penalised,
            None if held_out is None else HeldOut(*held_out),
        )
        return machine._set_fitted(result, stored.coding, stored.names)
