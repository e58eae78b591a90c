"""The pairwise Boltzmann machine as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gibbsian.data import Dataset
from gibbsian.data.preflight import drop_empty_rows, preflight
from gibbsian.domain import Coding, as_coding
from gibbsian.errors import ArgumentError, ConvergenceWarning, TooExpensiveError
from gibbsian.estimators.fitting import (
    are_chosen,
    check_runaway,
    choose_learner,
    fingerprint,
    like_frame,
    plain_settings,
    provenance,
    shorten,
)
from gibbsian.expectations import EXPECTATIONS, Estimate, Expectation
from gibbsian.expectations.missing_cells import fill_probabilities
from gibbsian.graphs import as_graph
from gibbsian.inference import exact
from gibbsian.inference.missing import log_evidence
from gibbsian.learners import FitResult, Learner, as_learner, train
from gibbsian.learners.driver import Callback
from gibbsian.models import PairwiseModel
from gibbsian.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator
from gibbsian.samplers import draw
from gibbsian.storage import Checkpoint, StoredModel, write_model


class BoltzmannMachine(DensityMixin, BaseEstimator):
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
        Turn numbers into 0/1 at this threshold first.
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
        Trace, convergence in words, provenance.
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
        X : array, frame, path or Dataset
            Rows of two-valued variables; missing cells (NaN, blank, ``?``) are summed out by the exact likelihood.
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
        data = self._read(X, fitting=True, sample_weight=sample_weight)
        graph = as_graph(self.graph, data.names)
        model = PairwiseModel.zeros(graph, data.domain, self.temperature, self.bias)
        name = choose_learner(self.learner, model, data)
        learner = as_learner(name, l1=self.l1, l2=self.l2)
        l1, l2 = getattr(learner, "l1", 0.0), getattr(learner, "l2", 0.0)
        preflight(data, graph, l1=l1, l2=l2, bias=self.bias)
        data = drop_empty_rows(data)
        result = train(
            learner,
            model,
            data,
            as_generator(self.random_state),
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self.callback,
            checkpoint=self._checkpoint(learner, model, data),
        )
        if not (l1 or l2):
            check_runaway(model.replace(result.model.theta), data, learner)
        if not result.converged:
            warnings.warn(result.reason, ConvergenceWarning, stacklevel=2)
        result.provenance.update(provenance(name, learner, data, result))
        return self._set_fitted(result, data.coding, data.names)

    def _set_fitted(self, result: FitResult, coding: Coding, names: tuple[str, ...]) -> Self:
        self.result_ = result
        self.model_: PairwiseModel = result.model  # type: ignore[assignment]
        self.coding_ = coding
        self.names_ = names
        return self

    def _checkpoint(self, learner: Learner, model: PairwiseModel, data: Dataset) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        given = self.checkpoint if isinstance(self.checkpoint, Checkpoint) else Checkpoint(self.checkpoint)
        return Checkpoint(given.path, given.every, given.resume, fingerprint(learner, model, data))

    def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset:
        """Read data for a fit, or for use with the fitted machine in its coding and columns."""
        if fitting:
            coding, who = self.coding, None
        else:
            check_is_fitted(self)
            coding, who = self.coding_, "the model"
        threshold = None if isinstance(X, Dataset) else self.binarize
        data = Dataset.read(X, coding=coding, sample_weight=sample_weight, binarize=threshold, declared_by=who)
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

    # -- parameters ---------------------------------------------------------------------------------------------------
    @property
    def biases_(self) -> Any:
        """The biases by column name."""
        import pandas

        check_is_fitted(self)
        return pandas.Series(self.model_.biases, index=list(self.names_), name="bias")

    @property
    def couplings_(self) -> Any:
        """The symmetric matrix of couplings by column name, zero where the graph has no edge."""
        import pandas

        check_is_fitted(self)
        require_memory(
            8.0 * self.model_.n_variables**2,
            f"the full matrix of couplings of {self.model_.n_variables:,} variables",
            "use strongest_couplings(), which lists the edges only",
        )
        names = list(self.names_)
        return pandas.DataFrame(self.model_.coupling_matrix, index=names, columns=names)

    def strongest_couplings(self, n: int | None = None) -> Any:
        """Return the couplings as a table with columns first, second, coupling, the largest in size first.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.strongest_couplings().round(3).values.tolist()          # log(2) / 4
        [['x0', 'x1', 0.173]]
        """
        import pandas

        check_is_fitted(self)
        order = np.argsort(-np.abs(self.model_.couplings), kind="stable")[:n]
        first, second = self.model_.graph.edges[order].T
        names = np.array(self.names_, dtype=object)
        return pandas.DataFrame(
            {"first": names[first], "second": names[second], "coupling": self.model_.couplings[order]}
        )

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
        result = FitResult(
            model,
            self.result_.trace,
            self.result_.converged,
            self.result_.reason,
            dict(self.result_.provenance),
        )
        converted = type(self)(**self.get_params(deep=False))
        converted.coding = target
        converted._set_columns(self.names_)
        return converted._set_fitted(result, target, self.names_)

    # -- questions ----------------------------------------------------------------------------------------------------
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the exact log-probability of each row; missing cells are summed out.

        Raises `TooExpensiveError`, with the predicted cost, where the partition function is out of reach.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> np.exp(bm.score_samples([[1, 1], [1, np.nan]])).round(3)
        array([0.25, 0.5 ])
        """
        data = self._read(X)
        return (log_evidence(self.model_, data) - self.log_partition())[data.row_of]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean exact log-likelihood per row.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> round(bm.score([[1, 1]]), 4)                         # log 1/4
        -1.3863
        """
        data = self._read(X, sample_weight=sample_weight)
        evidence = np.average(log_evidence(self.model_, data), weights=data.weights)
        return float(evidence - self.log_partition())

    def pseudo_score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-pseudolikelihood per row, which needs no partition function and so suits any size.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> round(bm.pseudo_score([[1, 1]]), 4)                  # twice log 1/2
        -1.3863
        """
        return -value_and_gradient(Pseudolikelihood(), self.model_, self._read(X))[0]

    def log_partition(self) -> float:
        """Return the exact log Z.

        Examples
        --------
        >>> import gibbsian as gb
        >>> round(gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).log_partition(), 4)
        1.3863
        """
        check_is_fitted(self)
        return exact(self.model_).log_partition()

    def expect(self, method: str | Expectation = "auto") -> Estimate:
        """Return the expected statistics of the model, in the layout of ``model_.theta``, with standard errors.

        Parameters
        ----------
        method : "auto", str or Expectation
            ``"exact"``, ``"monte-carlo"``, any registered name or an object; ``"auto"`` is exact where possible.

        Examples
        --------
        >>> import gibbsian as gb
        >>> estimate = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]).expect()
        >>> estimate.mean.round(4).tolist(), estimate.stderr.tolist()
        ([0.2, 0.2, 0.2], [0.0, 0.0, 0.0])
        """
        check_is_fitted(self)
        if method == "auto":
            try:
                return self.expect("exact")
            except TooExpensiveError:
                return self.expect("monte-carlo")
        expectation = EXPECTATIONS.create(method) if isinstance(method, str) else method
        state = expectation.init(self.model_, None, as_generator(self.random_state))
        return expectation(self.model_, state)[0]

    def sample(self, n_samples: int = 1, method: str = "auto", random_state: RandomState = None) -> np.ndarray:
        """Draw rows from the model, in the coding of the data it was fitted on.

        Parameters
        ----------
        n_samples : int
            How many rows.
        method : "auto", "exact" or a sampler's name
            ``"auto"`` draws exactly where possible and otherwise by Gibbs sampling.
        random_state : None, int or Generator
            Overrides the machine's own.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(random_state=0).fit([["yes", "no"], ["no", "no"], ["yes", "yes"], ["no", "yes"]])
        >>> bm.sample(3).shape
        (3, 2)
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ArgumentError(f"n_samples={n_samples} must be at least 1")
        rng = as_generator(self.random_state if random_state is None else random_state)
        return self.coding_.decode(self._draw(n_samples, method, rng))

    def _draw(self, n_samples: int, method: str, rng: np.random.Generator) -> np.ndarray:
        if method in ("auto", "exact"):
            try:
                return exact(self.model_).sample(n_samples, rng)
            except TooExpensiveError:
                if method == "exact":
                    raise
                method = "gibbs"
        draws = draw(self.model_, n_samples, rng, sampler=method)
        return draws.reshape(-1, self.model_.n_variables)[:n_samples]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return, for every cell, the probability of its upper value given the present cells of its row.

        Present cells give 0 or 1; missing ones their conditional probability, exact where possible, else by Gibbs
        sampling.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.predict_proba([[1, np.nan]]).round(3)
        array([[1.   , 0.667]])
        """
        data = self._read(X)
        return fill_probabilities(self.model_, data, as_generator(self.random_state))[data.row_of]

    def impute(self, X: Any) -> Any:
        """Return X with each missing cell set to its more probable value; frames come back as frames.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.impute([[1, np.nan]])
        array([[1, 1]], dtype=int8)
        """
        data = self._read(X)
        upper = fill_probabilities(self.model_, data, as_generator(self.random_state)) > 0.5
        domain = self.model_.domain
        filled = self.coding_.decode(np.where(upper, domain.high, domain.low))
        return like_frame(filled[data.row_of], X)

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
        told = {**result.provenance, "converged": result.converged, "reason": result.reason}
        settings = plain_settings(self.get_params(deep=False))
        write_model(path, StoredModel(self.model_, self.coding_, self.names_, settings, told, result.trace))

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted machine from what a file holds."""
        told = dict(stored.provenance)
        converged, reason = told.pop("converged", False), told.pop("reason", "")
        machine = cls(**{**stored.settings, "graph": stored.model.graph, "coding": stored.coding})
        machine._set_columns(stored.names)
        return machine._set_fitted(
            FitResult(stored.model, stored.trace, converged, reason, told), stored.coding, stored.names
        )
