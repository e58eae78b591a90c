"""The one base of all estimators: reading, learning, questions, files. A family says what is its own, and no more."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np

from gibbsian import __version__
from gibbsian.answers import answers_about
from gibbsian.answers.decisions import column_probabilities, decided_codes, joint_probabilities
from gibbsian.backends.device import PRECISIONS, here, on_device
from gibbsian.data import Dataset, OneHot, drop_empty_rows
from gibbsian.data.fitted import read_for
from gibbsian.data.hidden_columns import hidden_names
from gibbsian.data.readers import is_dask, read_table
from gibbsian.data.table import Table
from gibbsian.data.two_values import same_labels
from gibbsian.display import facts_in_html
from gibbsian.domain import Coding
from gibbsian.errors import (
    ArgumentError,
    CodingError,
    ConvergenceWarning,
    DataError,
    EstimatedScoreWarning,
    FileFormatError,
    MissingValuesError,
    TooExpensiveError,
    notify,
)
from gibbsian.estimators.frames import are_chosen, is_list, like_frame, shorten, stacked
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.penalty import ChoosesPenalty
from gibbsian.estimators.queries import Asking
from gibbsian.estimators.reported import Reported
from gibbsian.estimators.row_questions import filled_frame, keeps_columns, unusual_cells, unusual_rows
from gibbsian.learners.base import LEARNERS, Learner, as_learner, is_penalised
from gibbsian.learners.callbacks import Interrupt, Printer, as_callbacks
from gibbsian.learners.result import FitResult, HeldOut, Trace
from gibbsian.learners.run import run
from gibbsian.models.interactions import Interactions
from gibbsian.registry import check_settings
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator
from gibbsian.scikit import BaseEstimator, DensityMixin, available_if, check_is_fitted, validate_data
from gibbsian.settings import Setting, check, check_method, check_value, choice, declared, free, number, whole
from gibbsian.storage import StoredModel, write_model
from gibbsian.storage.checkpoints import as_checkpoint

if TYPE_CHECKING:
    from gibbsian.answers.modes import Modes
    from gibbsian.diagnostics.moments import DataMoments
    from gibbsian.diagnostics.partition import LogPartitionInterval

# What scikit-learn keeps of the columns of a fit.
COLUMNS_SEEN = ("n_features_in_", "feature_names_in_")
# Temperatures of the annealing behind a score: fewer than where log Z itself is asked for, and so a wider interval.
FEWER_BETAS = 1000
# Walkers and temperatures for each row that lacks too many cells to sum over.
ROW_WALKERS, ROW_BETAS = 20, 200
# What a log-probability may be above zero by rounding, as a share of the log-weights.
ROUNDING = 1e-9
_N_SAMPLES = Setting("How many rows.", "whole", low=1)
_HOW = Setting("How log Z is found.", "choice", words=("auto", "ais"))
_TEMPERATURE = Setting("T.", "number", low=0, open_low=True)

Method = TypeVar("Method", bound=Callable[..., Any])


def on_own_device(method: Method) -> Method:
    """Run the kernels of a method on the estimator's device."""

    @wraps(method)
    def run_there(self: Any, *args: Any, **kwargs: Any) -> Any:
        with on_device(self.device, self.precision):
            return method(self, *args, **kwargs)

    return cast(Method, run_there)


class ScoreInterval(NamedTuple):
    """A score between two sides, where log Z is known between two sides.

    Parameters
    ----------
    lower, upper : float
        The mean log-likelihood per row lies between them.
    log_partition : LogPartitionInterval
        What is known of log Z.
    """

    lower: float
    upper: float
    log_partition: LogPartitionInterval


@declared
class Estimator(ChoosesPenalty, Reported, Asking, DensityMixin, BaseEstimator):
    """A model with a learner as a scikit-learn estimator; the estimators are its subclasses."""

    max_iter: int = whole(1000, "Most steps of the learner; epochs where it learns by minibatches.", least=1)
    tol: float = number(1e-6, "When the learner has converged.", least=0.0)
    validation_fraction: float = number(
        0.0, "Share of the rows kept out of the fit and scored after it.", least=0, below=1
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

    registered_name: ClassVar[str]

    # kinds of tables that are welcome besides numbers with missing cells, by scikit-learn's names
    _welcome: ClassVar[tuple[str, ...]] = ()

    # whether chunks after a fit are steps like its own, and so continue its trace
    _one_trace = False

    # What scores are: log-likelihoods (estimates of them where log Z is out of reach), or minus an energy.
    has_density: ClassVar[bool] = True
    scores_are_bounds: ClassVar[bool] = False  # also where log Z is exact

    # What ``learner="auto"`` is where nothing has to be chosen; the empty string where model and data decide.
    auto_learner: ClassVar[str] = ""

    @property
    def _asked(self) -> Any:
        """The learner that was asked for, by name or as an object."""
        is_auto = isinstance(self.learner, str) and self.learner == "auto"
        return self.auto_learner if is_auto and self.auto_learner else self.learner

    # -- how it is shown ----------------------------------------------------------------------------------------------
    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # scikit-learn's own argument
        written = BaseEstimator.__repr__(self, N_CHAR_MAX)
        return f"{written}  # {self.result_.reason}" if hasattr(self, "result_") else written

    def _html_repr(self) -> str:
        """Return the settings that were given, and whether and how it was fitted."""
        result = getattr(self, "result_", None)
        fitted = {} if result is None else {**self.figures(), **result._facts()}
        return facts_in_html(BaseEstimator.__repr__(self), fitted or {"fit": "not fitted"})

    # -- what a family says -------------------------------------------------------------------------------------------
    def _coding(self) -> Any:
        """Return what `Dataset.read` is to take the labels of a fit for."""
        return "auto"

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
        penalties = {name: provenance.get(name, getattr(self, name, None)) for name in ("l1", "l2", "log_prior")}
        return as_learner(name, **penalties)

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
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        check(self)
        with self._unchanged_on_error():
            data = self._counting(self._read(X, fitting=True, sample_weight=sample_weight))
            rng = as_generator(self.random_state)
            data, unseen = self._split(data, rng)
            learner, result = self._learn(data, unseen, rng)
            self._set_fitted(replace(result, state=None), data.coding, data.names)
            self._state = result.state
        if unseen is not None:
            targets = learner.targets_in(unseen)
            if targets is None:
                held_out = self.score_or_pseudo_score(unseen)
            else:
                score = self.conditional_score(unseen, targets)
                held_out = HeldOut(score, "conditional log-likelihood", unseen.n_rows)
            self.result_ = replace(result, state=None, held_out=held_out)
        return self

    def _learn_once(
        self, data: Dataset, unseen: Dataset | None, rng: np.random.Generator, said: dict[str, Any]
    ) -> tuple[Learner, FitResult]:
        """Make the start and the learner, and run it; return it with its result, of which something may be `said`."""
        start = self._start(data, rng)
        learner = self._learner(start, data)
        learner.require_able(start)
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
        max_iter = learner.most_steps(start, self.max_iter)
        result = run(learner, start, shown, rng, callbacks, max_iter=max_iter, tol=self.tol)
        result = self._judged(result, shown, learner)
        if not result.converged:
            notify(ConvergenceWarning(result.reason.partition(": ")[0], result.remedy))
        provenance = {
            **result.provenance,
            **self._provenance(learner, data),
            "steps": result.n_steps,
            "seconds": round(result.seconds, 4),
        }
        story = {**provenance, **result.provenance}
        return replace(result, provenance=story, penalised=is_penalised(learner))

    def _learns_by_chunks(self) -> bool:
        """Say whether rows may come in chunks; a refusal may be raised with its reason."""
        return True

    @available_if(lambda self: self._learns_by_chunks())
    @on_own_device
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        check(self)
        first = not hasattr(self, "model_")
        if getattr(X, "on_disk", False):
            raise DataError("a DataStream is learned by fit", "`partial_fit` takes rows in memory")
        with self._unchanged_on_error():
            data = self._counting(self._read(X, fitting=first, sample_weight=sample_weight))
            rng = as_generator(self.random_state)
            start = self._chunk_start(data, rng) if first else self.model_
            learner = self._chunk_learner(start, data)
            known = None if first else self.result_
            before = self.__dict__.get("_state")  # none after a load: then learning begins anew at that model
            shown = self._shown(start, data)
            state, info = learner.update(before, start, shown, rng)
            if info.failure:
                reason, _, remedy = info.failure.partition(": ")
                raise ArgumentError(reason, remedy)
            model, provenance = learner.fitted(start, state), self._provenance(learner, data)
            result = _chunk_result(model, info, known, data, provenance, self._moments(model, shown), self._one_trace)
            result = replace(result, history=_longer_history(known, learner.figures(state)))
            self._set_fitted(result, data.coding, data.names if first else self.names_)
            self._state = state
        return self

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
        if share == 0:
            return data, None
        if data.on_disk or data.on_cluster:
            raise ArgumentError(
                "is for data in memory",
                "keep rows of a stream in a file of their own",
                argument="validation_fraction",
                value=share,
            )
        if not 0 < round((1 - share) * data.n_rows) < data.n_rows:
            raise ArgumentError(
                f"of {data.n_rows} rows leaves no row out or none to fit",
                "give another share, or more rows",
                argument="validation_fraction",
                value=share,
            )
        return data.split(1 - share, rng)

    def _provenance(self, learner: Learner, data: Any) -> dict[str, Any]:
        """Return what a later reader of the model wants to know of its making."""
        prior = getattr(learner, "log_prior", None)
        return {
            "gibbsian": __version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "learner": getattr(learner, "registered_name", repr(learner)),
            "rows": data.n_rows,
            "missing_cells": data.n_missing,
            **({"dropped": list(data.dropped)} if data.dropped else {}),
            "l1": getattr(learner, "l1", 0.0),
            "l2": getattr(learner, "l2", 0.0),
            **({} if prior is None else {"log_prior": prior if isinstance(prior, str) else repr(prior)}),
            **({} if (device := here()) is None else {"device": device.described(), "precision": device.precision}),
        }

    def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self:
        for kept in ("_state", "_log_z"):  # what belongs to the model that was there before
            self.__dict__.pop(kept, None)
        self.result_ = result
        self.model_: Any = result.model
        self.coding_: Any = coding
        self.names_ = names
        self.n_iter_ = max(1, result.n_steps)
        return self

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

    # -- reading ------------------------------------------------------------------------------------------------------
    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn which tables are welcome."""
        tags = super().__sklearn_tags__()
        for kind in ("allow_nan", *self._welcome):
            setattr(tags.input_tags, kind, True)
        return tags

    @property
    def _column_labels(self) -> list[Any]:
        """The labels of each column, in the order of the values."""
        return [self.coding_.labels_of(j) for j in range(len(self.names_))]

    def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset:
        """Read data for a fit, or for use with the fitted model in its coding and columns."""
        if getattr(X, "on_cluster", False) or is_dask(X):
            return self._read_cluster(X, fitting, sample_weight)
        if getattr(X, "on_disk", False):
            if not fitting:
                raise DataError("a DataStream is learned by fit", "give `stream.in_memory()`, its distinct rows")
            if sample_weight is not None:
                raise ArgumentError("`sample_weight` is for data in memory", "a stream has no weights")
            X = X.in_memory()
        if fitting:
            data = Dataset.read(X, coding=self._coding(), sample_weight=sample_weight)
        else:
            check_is_fitted(self)
            X = self._modelled(X)
            self._check_width(X)
            data = Dataset.read(X, coding=self.coding_, sample_weight=sample_weight, declared_by="the model")
        self._check_columns(X, data, fitting)
        return data

    # What becomes of rows on a cluster: they stay there, or their distinct ones are counted there and come here.
    _learns_on_cluster: ClassVar[bool] = False
    _counts_rows: ClassVar[bool] = False

    def _read_cluster(self, X: Any, fitting: bool, sample_weight: Any) -> Any:
        """Read a Dask collection on its workers, or take rows that are there already."""
        from gibbsian.cluster import DistributedDataset

        if sample_weight is not None:
            raise ArgumentError(
                "`sample_weight` is for data in memory",
                "name a column of weights, `DistributedDataset.read(..., weight_column=...)`",
            )
        coding, columns = (self._coding(), None) if fitting else (self.coding_, self.names_)
        data = X if isinstance(X, DistributedDataset) else DistributedDataset.read(X, coding=coding, columns=columns)
        if isinstance(coding, Coding) and not (isinstance(data.coding, Coding) and same_labels(data.coding, coding)):
            reason = f"was declared but the rows are {data.coding.describe()}"
            raise CodingError(reason, "read them in that coding", argument="coding", value=coding)
        if fitting:
            self._set_columns(data.names)
        if self._counts_rows:
            return Dataset.read(data.in_memory(), coding=coding)
        if not self._learns_on_cluster:
            raise ArgumentError(
                f"a {type(self).__name__} takes no rows on a cluster",
                "give `data.in_memory()`, its distinct rows, where they fit this machine",
            )
        return data

    @property
    def dropped_(self) -> tuple[str, ...]:
        """Columns of the fit's table that are no part of the model: identifiers, and those that were to be left out."""
        check_is_fitted(self)
        return tuple(self.result_.provenance.get("dropped", ()))

    def _modelled(self, X: Any) -> Any:
        """Return a table without the columns that the fit left out, where it has them."""
        if not self.dropped_ or isinstance(X, Dataset):
            return X
        table = read_table(X)
        others = [name for name in self.dropped_ if name in table.names]
        if others and len(table.names) == len(self.names_) + len(others):
            return table.without(others)
        return table if isinstance(X, str | os.PathLike) else X  # a file is read once

    def read(
        self, source: Any, *, drop: Any = (), weights: str | None = None, convert: bool = False, unseen: Any = ()
    ) -> Dataset:
        """Read a table as this estimator takes it: for a fit in its coding, afterwards in the model's own columns.

        Parameters
        ----------
        source : path, frame or array
            The table. Columns that a fitted model does not know are left aside.
        drop : str or list of str, default=()
            Columns to leave out of a fit.
        weights : str, default=None
            The column of row weights.
        convert : bool, default=False
            Write two-valued columns in the model's coding: lower for lower, upper for upper.
        unseen : list of str, default=()
            Columns of a fitted model that the table need not have: they are missing then.

        Examples
        --------
        >>> import pandas, gibbsian as gb
        >>> frame = pandas.DataFrame({"id": [1, 2, 3, 4], "a": [0, 1, 1, 0], "b": [1, 0, 1, 0]})
        >>> bm = gb.BoltzmannMachine()
        >>> bm.fit(bm.read(frame, drop="id")).read(frame).names
        ('a', 'b')
        """
        if not hasattr(self, "model_"):
            return Dataset.read(source, coding=self._coding(), drop=drop, weight_column=weights)
        return read_for(self.coding_, self.names_, source, weights, convert, unseen)

    def _counting(self, data: Dataset) -> Dataset:
        """Leave out rows of weight zero."""
        weights = getattr(data, "row_weights", None)
        return data if weights is None else data.take(weights > 0)

    def _check_width(self, X: Any) -> None:
        """Refuse another number of columns in scikit-learn's own words, before their labels are looked at."""
        if getattr(X, "ndim", 0) == 2 and X.shape[1] != self.n_features_in_ and not self._regrouped(X):
            validate_data(self, X, reset=False, skip_check_array=True)

    def _regrouped(self, X: Any) -> bool:
        """Whether several columns of the table are one variable."""
        return isinstance(self.coding_.rule, OneHot)

    def _check_columns(self, X: Any, data: Dataset, fitting: bool) -> None:
        """Keep the columns' names in a fit; afterwards refuse other columns or another order."""
        regrouped = hasattr(X, "shape") and len(X.shape) > 1 and X.shape[1] != data.n_variables
        if fitting and type(X) is np.ndarray and not regrouped:  # nothing that scikit-learn would look at
            self._set_columns(data.names)
        elif not isinstance(X, Dataset | Table | str | os.PathLike) and not regrouped:
            validate_data(self, X if hasattr(X, "shape") else data.states, reset=fitting, skip_check_array=True)
        elif fitting:
            self._set_columns(data.names)
        elif data.names != self.names_ and (data.n_variables != self.n_features_in_ or are_chosen(data.names)):
            raise ArgumentError(
                f"the columns are {shorten(data.names)} but the machine was fitted on {shorten(self.names_)}",
                "give the same columns in the same order",
            )

    def _set_columns(self, names: tuple[str, ...]) -> None:
        for name in COLUMNS_SEEN:
            self.__dict__.pop(name, None)
        self.n_features_in_ = len(names)
        if are_chosen(names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _rng(self, random_state: RandomState = None) -> np.random.Generator:
        return as_generator(self.random_state if random_state is None else random_state)

    @property
    def _answers(self) -> Any:
        check_is_fitted(self)
        return answers_about(self.model_)

    def _ask(self, question: str) -> Any:
        """Return what answers a question that not every model has an answer to."""
        found = getattr(self._answers, question, None)
        if found is None:
            kind = getattr(self, "registered_name", type(self).__name__)
            raise ArgumentError(f"{question} is not known for a {kind} model", "`score` and `log_partition` are exact")
        return found

    # -- likelihoods --------------------------------------------------------------------------------------------------
    @on_own_device
    def score_samples(self, X: Any, *, log_partition: float | LogPartitionInterval | None = None) -> np.ndarray:
        """Return the log-probability of each row, in nats; missing cells and hidden units are summed out.

        Where log Z is out of reach of exact sums it is estimated once for a fitted model, by annealed importance
        sampling there and back (`random_state`), and a warning says how well. Its error moves all scores alike, so
        their order does not depend on it; `score_interval` has both sides.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        log_partition : float or LogPartitionInterval, default=None
            log Z, where it is known better or otherwise: what `log_partition` returns.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> bool(np.allclose(bm.score_samples([[1, 1]]), -2 * np.log(2)))
        True
        """
        data = self._read(X)
        return self._log_densities(data, log_partition)[data.row_of]

    @on_own_device
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood per row, in nats: the mean of `score_samples`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> round(gb.BoltzmannMachine().fit(rows).score(rows), 4)
        -1.3322
        """
        data = self._read(X, sample_weight=sample_weight)
        if data.on_cluster:
            self._log_partition_estimate()  # once, and here
        return float(data.averaged(self._mean_score))

    def _mean_score(self, data: Dataset) -> float:
        return np.average(self._log_densities(data), weights=data.weights)

    def _log_densities(self, data: Dataset, log_partition: Any = None) -> np.ndarray:
        evidence = self._log_weights(data)
        if log_partition is None:
            log_partition = self._log_partition_estimate()
        scores = evidence - (log_partition if np.isscalar(log_partition) else log_partition.combined()[0])
        if not self.has_density or data.states.dtype.kind != "i":  # densities and shares of values may be above one
            return scores
        if scores.max() > ROUNDING * max(1.0, np.abs(evidence).max()):
            raise ArgumentError(
                f"a row would have the log-probability {scores.max():.6g}, which is above zero, so log Z is not "
                "known well enough",
                "ask for `score_interval`, or for `pseudo_score`, which needs no log Z",
            )
        return np.minimum(scores, 0.0)

    def _log_weights(self, data: Dataset) -> np.ndarray:
        """Return ``log P + log Z`` of each distinct row, exactly where that is in reach and else by annealing."""
        answers = self._answers
        try:
            return answers.log_evidence(data)
        except TooExpensiveError:
            sides = self._ask("log_evidence_interval")(data, self._rng(), ROW_WALKERS, ROW_BETAS)
        apart = float(np.subtract(*sides).min()) / -2.0
        reason = f"rows with many missing cells are annealed, their scores are known to {apart:.2g} only"
        notify(EstimatedScoreWarning(reason, "`score_interval` has both sides"))
        return np.mean(sides, axis=0)

    def _log_partition_estimate(self) -> float:
        """Return log Z or an estimate of it; found once for a fitted model."""
        if "_log_z" not in self.__dict__:
            found = self.log_partition(betas=None if self.sums_exactly() else FEWER_BETAS)
            if not isinstance(found, float):
                interval, (found, error) = found, found.combined()
                notify(
                    EstimatedScoreWarning(
                        f"log Z is estimated, {found:.6g} with a standard error of {error:.2g} (between "
                        f"{interval.lower:.6g} and {interval.upper:.6g}), so all scores are off by the same amount",
                        "`score_interval` has both sides",
                    )
                )
            self._log_z = found
        return self._log_z

    def sums_exactly(self) -> bool:
        """Whether log Z is in reach of an exact sum, so that scores are likelihoods and no bounds.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).sums_exactly()
        True
        """
        try:
            self.log_partition("exact")
        except TooExpensiveError:
            return False
        return True

    @on_own_device
    def score_interval(
        self,
        X: Any,
        sample_weight: Any = None,
        n_samples: int | None = None,
        betas: int | None = None,
        method: str = "auto",
    ) -> ScoreInterval:
        """Return the mean log-likelihood per row between two sides, for models whose log Z is out of reach.

        Parameters
        ----------
        X, sample_weight
            The rows.
        n_samples : int, default=None
            Walkers of the annealing behind it; by default its own number.
        betas : int, default=None
            Temperatures of the annealing; by default its own number.
        method : {"auto", "ais"}, default="auto"
            How log Z is found: see `log_partition`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> bm = gb.BoltzmannMachine(random_state=0).fit(rows)
        >>> interval = bm.score_interval(rows, betas=1000)
        >>> interval.upper - interval.lower < 0.1
        True
        """
        check_value("method", method, _HOW)
        data, rng = self._read(X, sample_weight=sample_weight), self._rng()
        bracket = self._ask("log_partition_interval")(rng, n_samples, betas, data, method=method)
        evidence = self._ask("log_evidence_interval")(data, self._rng(), n_samples, betas)
        lower, upper = (float(np.average(side, weights=data.weights)) for side in evidence)
        return ScoreInterval(lower - bracket.upper, upper - bracket.lower, bracket)

    @on_own_device
    def pseudo_score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-pseudolikelihood per row, which needs no partition function and so suits any size.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> round(gb.BoltzmannMachine().fit(rows).pseudo_score(rows), 4)
        -1.3184
        """
        return float(self._read(X, sample_weight=sample_weight).averaged(self._answers.log_pseudolikelihood))

    @on_own_device
    def conditional_score(self, X: Any, columns: Any, sample_weight: Any = None) -> float:
        """Return the mean of ``log P(columns | present cells of the others)`` per row (YK15): minus the log-loss.

        It needs no partition function: it is the log-evidence of the rows less that of the rows without the columns.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> round(gb.BoltzmannMachine().fit(rows).conditional_score(rows, "x1"), 4)
        -0.6592
        """
        data = self._read(X, sample_weight=sample_weight)
        parts = (data, data.hide(columns))
        whole, free = (np.average(self._answers.log_evidence(rows), weights=rows.weights) for rows in parts)
        return float(whole - free)

    @on_own_device
    def score_or_pseudo_score(self, X: Any) -> HeldOut:
        """Return the score where it is exact, else the pseudo-score, else the score's lower side; say which it is.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> gb.BoltzmannMachine().fit(rows).score_or_pseudo_score(rows).kind
        'log-likelihood'
        """
        data = self._read(X)
        try:
            score = self._answers.log_evidence(data) - self._answers.log_partition()
            return HeldOut(float(np.average(score, weights=data.weights)), "log-likelihood", data.n_rows)
        except TooExpensiveError:
            pass
        try:
            return HeldOut(self.pseudo_score(data), "log-pseudolikelihood", data.n_rows)
        except (MissingValuesError, TooExpensiveError):
            lower = self.score_interval(data, betas=FEWER_BETAS).lower
            return HeldOut(lower, "lower side of the log-likelihood", data.n_rows)

    @on_own_device
    def log_partition(
        self, method: str = "auto", n_samples: int | None = None, betas: int | None = None
    ) -> float | LogPartitionInterval:
        """Return log Z: exactly where that is in reach, else between two sides.

        Parameters
        ----------
        method : {"auto", "exact", "ais", "trajectory"}, default="auto"
            ``"auto"`` goes beyond the reach of exact sums by two methods that are to agree: annealed importance
            sampling there and back, and tempered chains with Bennett's ratio between neighbouring temperatures. Where
            they do not, all runs once more and longer; then a `MixingWarning` says it, and the interval has both.
            ``"ais"`` is the annealing alone, back from Gibbs chains. ``"trajectory"`` is the same two methods along the
            models that the fit has passed, where it was given ``callbacks=KeepTrajectory()``: a check that owes nothing
            to temperatures, and for machines that were learned in small steps.
        n_samples, betas : int, default=None
            Walkers and temperatures of the annealing; by default its own numbers.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> round(bm.log_partition(), 4)
        1.3863
        """
        answers, asked = self._answers, n_samples is not None or betas is not None
        check_method(method)
        if method not in (known := ("auto", "exact", "ais", "trajectory")):
            raise ArgumentError("is not known", f"use one of {', '.join(known)}", argument="method", value=method)
        if n_samples is not None:
            n_samples = check_value("n_samples", n_samples, Setting("Walkers.", "whole", low=2))
        if method == "exact" and asked:
            raise ArgumentError("`n_samples` and `betas` belong to `method='ais'`", "leave them out")
        if method == "exact" or (method == "auto" and not asked):
            try:
                self._log_z = answers.log_partition()
                return self._log_z
            except TooExpensiveError as error:
                if method == "exact":
                    raise TooExpensiveError(error.reason, error.also("bracket log Z by `method='ais'`")) from None
        ask = self._ask("log_partition_interval")
        if method == "trajectory":
            from gibbsian.answers.base import annealing_of
            from gibbsian.diagnostics.partition import log_partition_interval
            from gibbsian.samplers.trajectories import trajectory_path

            path = trajectory_path([*self._passed(), self.model_])
            return log_partition_interval(path, annealing=annealing_of(n_samples, betas), rng=self._rng())
        return ask(self._rng(), n_samples, betas, method="ais" if method == "ais" else "auto")

    def _passed(self) -> list[Any]:
        """Return the models that the fit has passed, where a callback has kept them."""
        kept = [one.models for one in as_callbacks(self.callbacks) if getattr(one, "models", None)]
        if not kept:
            remedy = "fit with `callbacks=KeepTrajectory()` of gibbsian.learners.callbacks"
            raise ArgumentError("the fit kept no models on its way", remedy, argument="method", value="trajectory")
        return kept[-1]

    # -- the distribution ---------------------------------------------------------------------------------------------
    @on_own_device
    def expect(self, method: Any = "auto", n_samples: int | None = None) -> Any:
        """Return the expected statistics of the model, in the layout of ``model_.theta``, with standard errors.

        Parameters
        ----------
        method : str or Expectation, default="auto"
            A registered expectation, such as ``"exact"``, ``"monte-carlo"`` or ``"1-smci"``; ``"auto"`` is exact where
            that is in reach and samples else.
        n_samples : int, default=None
            Samples of an expectation that draws some.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]).expect().mean.round(2).tolist()
        [0.2, 0.2, 0.2]
        """
        check_method(method)
        if n_samples is not None:
            n_samples = check_value("n_samples", n_samples, _N_SAMPLES)
        return self._ask("expect")(self._rng(), method, n_samples)

    @on_own_device
    def sample(
        self,
        n_samples: int = 1,
        method: str = "auto",
        random_state: RandomState = None,
        return_hidden: bool = False,
        temperature: float | None = None,
        **options: Any,
    ) -> Any:
        """Draw rows from the model, in the labels of the data it was fitted on.

        Parameters
        ----------
        n_samples : int, default=1
            How many rows.
        method : str, default="auto"
            ``"exact"``, or a sampler's name; ``"auto"`` draws exactly where possible and otherwise by Gibbs sampling.
        random_state : None, int or Generator, default=None
            Overrides the estimator's own.
        return_hidden : bool, default=False
            Also return the values of the hidden units, or the classes, of each row.
        temperature : float, default=None
            Divide energies by this instead of the model's own temperature, those of hidden units with the others: near
            zero rows are close to `most_probable`, far above they are uniform (YK15). Mixtures and belief networks have
            none.
        **options
            What the sampler of this model takes besides.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(random_state=0).fit([["yes", "no"], ["no", "no"], ["yes", "yes"], ["no", "yes"]])
        >>> bm.sample(3).shape
        (3, 2)
        """
        answers = self._answers
        n_samples = check_value("n_samples", n_samples, _N_SAMPLES)
        check_method(method)
        if temperature is not None:
            temperature = check_value("temperature", temperature, _TEMPERATURE)
            answers = answers_about(self.model_.at_temperature(temperature))
        states, hidden = answers.sample(n_samples, self._rng(random_state), method, **options)
        narrow = self.coding_.decode(states[:1]).dtype.itemsize == 1  # else codes and labels take eight bytes each
        require_memory(states.size * (3.0 if narrow else 18.0), f"{n_samples:,} rows of labels", "draw fewer at a time")
        rows = self.coding_.decode(states)
        return (rows, hidden) if return_hidden else rows

    @on_own_device
    def most_probable(
        self,
        X: Any = None,
        evidence: Mapping[str, Any] | None = None,
        *,
        n_states: int = 1,
        joint: bool = False,
        method: str = "auto",
        restarts: int | None = None,
        random_state: RandomState = None,
    ) -> Modes:
        """Return the most probable row, given some of its cells or none: the limit of temperature zero (YK15).

        It is exact where an engine is quick or all rows can be listed, and else found by simulated annealing from many
        starts, with an upper bound on what a better one could have. Densities of real numbers are climbed.

        Parameters
        ----------
        X : array, frame or path, default=None
            Rows to complete: their missing cells get the values that are the most probable ones *together*, where
            `impute` takes the best of each cell by itself. Without it one row is asked for.
        evidence : mapping from column to label, default=None
            What is known of that one row.
        n_states : int, default=1
            So many rows from the most probable one on; more than one where all rows can be listed.
        joint : bool, default=False
            Whether hidden units (or the class) are part of the state. By default they are summed out: the most probable
            row need not be a part of the most probable joint state.
        method : {"auto", "exact", "annealing"}, default="auto"
            Whether to insist on one way.
        restarts : int, default=None
            Chains of a round of annealing; by default 32.
        random_state : None, int or Generator, default=None
            Overrides the estimator's own.

        Returns
        -------
        Modes
            ``rows`` in the labels of the data, ``log_weights``, ``bounds``, ``gaps``, ``exact``, ``methods``,
            ``hidden`` and, where log Z is in reach, ``probabilities``.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [["yes", "yes"], ["yes", "yes"], ["no", "no"], ["no", "no"], ["yes", "no"], ["no", "yes"]]
        >>> gb.BoltzmannMachine().fit(rows).most_probable(evidence={"x0": "no"}).rows.tolist()
        [['no', 'no']]
        """
        from gibbsian.answers.modes import Search  # which loads engines and kernels

        for name, value in (("n_states", n_states), ("restarts", 1 if restarts is None else restarts)):
            check_value(name, value, _N_SAMPLES)
        answers, search = self._answers, Search(self._rng(random_state), int(n_states), method, restarts)
        if X is not None and (evidence is not None or n_states > 1):
            raise ArgumentError("evidence and `n_states` are about one row", "leave them out where rows are given")
        if joint and n_states > 1:
            raise ArgumentError("several joint states are not listed", "leave `joint` or `n_states` out")
        data = self._given({} if evidence is None else evidence) if X is None else self._read(X)
        found = answers.most_probable(data, search, joint)
        if np.isnan(found.log_partition) and self.has_density and found.exact.all() and self.sums_exactly():
            found = replace(found, log_partition=self._log_partition_estimate())
        return replace(found, rows=like_frame(self.coding_.decode(found.rows), X, self.names_))

    def _given(self, evidence: Mapping[str, Any]) -> Dataset:
        """Return one row that holds the evidence, all other cells missing."""
        import pandas

        if unknown := [name for name in evidence if name not in self.names_]:
            raise ArgumentError(
                f"column {unknown[0]!r} is not one of {shorten(self.names_)}", "name a column of the fit"
            )
        cells = [[evidence.get(name) for name in self.names_]]
        row = self.read(pandas.DataFrame(cells, columns=list(self.names_), dtype=object))
        return self._read(row) if evidence else row

    # -- missing cells ------------------------------------------------------------------------------------------------
    @on_own_device
    def predict_proba(self, X: Any, columns: Any = None, joint: bool = False) -> Any:
        """Return, for every cell, the probability of its upper value given the present cells of its row.

        Present cells give 0 or 1; missing ones their conditional probability, exact where possible, else by Gibbs
        sampling. Variables with many values give the probability of each, an array of shape (rows, variables, values)
        with zeros after the last value of a variable that has fewer.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        columns : str, int or list, default=None
            Columns to be predicted from the present cells of all others, whatever X has there (YK15): then the
            probabilities of the values of one column, an array of shape (rows, values), or a list of such arrays.
        joint : bool, default=False
            The probabilities of all combinations of the values of these columns instead, the last column's changing
            fastest.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.predict_proba([[1, np.nan]]).round(3)
        array([[1.   , 0.667]])
        >>> bm.predict_proba([[1, -1]], columns="x1").round(3)
        array([[0.333, 0.667]])
        """
        data = self._read(X)
        if columns is None:
            return self._answers.cell_probabilities(data, self._rng())[data.row_of]
        places, unseen = data.places(columns), data.hide(columns)
        if joint:
            return joint_probabilities(self._answers, unseen, places)[unseen.row_of]
        found = column_probabilities(self._answers, unseen, places, self._rng())
        each = [probabilities[unseen.row_of] for probabilities in found]
        return each if is_list(columns) else each[0]

    @on_own_device
    def predict(self, X: Any, columns: Any = None, losses: Any = None) -> Any:
        """Return the most probable value of what a row does not show: X with its missing cells filled.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        columns : str, int or list, default=None
            Columns to be predicted from the present cells of all others: then the values of these alone, an array of
            shape (rows,) for one column and (rows, columns) for a list.
        losses : matrix, list of matrices or "joint", default=None
            What a decision costs: the entry (i, j) is the loss where the value number i is true and j is decided, for
            each column its own matrix; the values of least expected loss are decided (the Bayes decision, YK15). By
            default 0 for the true value and 1 for others, in every column by itself (the Hamming loss); "joint" is 0
            where all columns are true and else 1, for which the most probable combination is decided.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.predict([[1, np.nan]])
        array([[1, 1]], dtype=int8)
        >>> bm.predict([[1, np.nan]], columns="x1", losses=[[0, 5], [1, 0]])         # a wrong 1 costs five times more
        array([-1])
        """
        if columns is None:
            return self.impute(X)
        data = self._read(X)
        places, unseen = data.places(columns), data.hide(columns)
        codes = decided_codes(self._answers, unseen, places, losses, self._rng())[unseen.row_of]
        predicted = [np.array(self.coding_.labels_of(j))[codes[:, k]] for k, j in enumerate(places)]
        return stacked(predicted) if is_list(columns) else predicted[0]

    @on_own_device
    def impute(self, X: Any) -> Any:
        """Return X with missing values at the most probable one and missing numbers at their mean, each by itself.

        A cell is filled given the present cells of its row. Frames come back as frames, with the types of their
        columns; columns that the model does not know stay as they are.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.impute([[1, np.nan]])
        array([[1, 1]], dtype=int8)
        """
        check_is_fitted(self)
        if hasattr(X, "iloc") and keeps_columns(self, list(map(str, X.columns))):
            return filled_frame(self, X)
        data = self._read(X)
        filled = self.coding_.decode(self._answers.completed_states(data, self._rng()))
        return like_frame(filled[data.row_of], X, self.names_)

    @on_own_device
    def unusual(self, X: Any, n: int = 20, cells: bool = False) -> Any:
        """Return the least probable rows of a table, or its least probable cells, as a frame, the least first.

        The order of rows needs no log Z, so it is there for models of any size. Missing cells and hidden units are
        summed out; columns that the model does not know, such as identifiers, are carried along. Files and large
        tables are gone through a part at a time.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        n : int, default=20
            How many.
        cells : bool, default=False
            Single cells instead of rows: those whose value is least probable given the other present cells.

        Returns
        -------
        pandas.DataFrame
            Of rows: ``row`` (counted from 0), ``log_weight`` (``log P + log Z``), ``below_mean`` (how far that is
            below the mean of all rows, in nats) and, where columns have values, the least probable cell. Of a cell:
            ``column``, ``value``, ``probability`` given the rest of the row, and the ``likelier`` value.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1]] * 5 + [[-1, -1]] * 5 + [[1, -1], [-1, 1]]
        >>> bm = gb.BoltzmannMachine().fit(rows)
        >>> bm.unusual(rows, n=2)[["row", "column", "value", "likelier"]].values.tolist()
        [[10, 'x0', 1, -1], [11, 'x0', -1, 1]]
        """
        check_value("n", n, _N_SAMPLES)
        check_is_fitted(self)
        return (unusual_cells if cells else unusual_rows)(self, X, int(n))

    # -- what a reader is shown ---------------------------------------------------------------------------------------
    def figures(self) -> dict[str, Any]:
        """Return a few numbers that say what the fitted model is, by name.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).figures()
        {'variables': 2, 'couplings': 1}
        """
        return {"columns": len(self.names_), "parameters": self.model_.theta.size}

    def statistics(self) -> dict[str, Any]:
        """Return tables that name the entries of ``model_.theta`` (and of `expect`), one after the other.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> {title: table.values.tolist() for title, table in bm.statistics().items()}
        {'means': [['x0'], ['x1']], 'pairs': [['x0', 'x1']]}
        """
        import pandas

        return {"statistics": pandas.DataFrame({"statistic": range(self.model_.theta.size)})}

    def interactions(self) -> Interactions:
        """Return the network that was learned: columns and hidden units by name, and what interacts how strongly.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.interactions().strongest(1).table.round(3).values.tolist()                     # log(2) / 4
        [[('x0', 'x1'), 2, 0.173]]
        """
        check_is_fitted(self)
        found = self.model_.interactions()
        hidden = hidden_names(self.names_, found.n_variables - len(self.names_), found.hidden)
        return replace(found, names=(*self.names_, *hidden))

    def tables(self, n: int = 10) -> dict[str, Any]:
        """Return the parameters as tables by title, at most `n` of those that can be many, the strongest first.

        Examples
        --------
        >>> import gibbsian as gb
        >>> list(gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).tables())
        ['biases', 'strongest couplings']
        """
        tables, start = {}, 0
        for title, named in self.statistics().items():
            values = self.model_.theta[start : start + len(named)]
            strongest = np.argsort(-np.abs(values), kind="stable")[:n]
            tables[title] = named.iloc[strongest].assign(parameter=values[strongest]).reset_index(drop=True)
            start += len(named)
        return tables

    # -- files --------------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file: whole or not at all, and no pickle; `gibbsian.load` reads it.

        Examples
        --------
        >>> import tempfile, pathlib, gibbsian as gb
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).save(path)
        >>> gb.load(path).names_
        ('x0', 'x1')
        """
        check_is_fitted(self)
        write_model(path, self.to_stored())

    def to_stored(self) -> StoredModel:
        """Return what a file holds of the fitted estimator."""
        result = self.result_
        story = {name: getattr(result, name) for name in ("converged", "reason", "penalised", "held_out")}
        return StoredModel(
            self.model_,
            self.coding_,
            self.names_,
            plain_settings(self),
            {**result.provenance, **story},
            result.trace,
            result.moments,
            result.history,
            type(self).registered_name,
        )

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted estimator from what a file holds, with settings that it may have."""
        check_settings("settings", cls, stored.settings)
        provenance = dict(stored.provenance)
        held_out = provenance.pop("held_out", None)
        result = FitResult(
            stored.model,
            stored.trace,
            provenance.pop("converged", False),
            provenance.pop("reason", ""),
            provenance,
            stored.moments,
            provenance.pop("penalised", False),
            None if held_out is None else HeldOut(*held_out),
            stored.history,
        )
        estimator = cls(**{**cls._structure_of(stored.model, stored.coding), **stored.settings})
        check(estimator)
        estimator._set_columns(stored.names)
        return estimator._set_fitted(result, stored.coding, stored.names)

    @classmethod
    def _structure_of(cls, model: Any, coding: Any) -> dict[str, Any]:
        """Return the settings that a model and its coding stand for."""
        return {}


def plain_settings(estimator: Any) -> dict[str, Any]:
    """Return the settings that a file's header can hold; structure and labels stand there as model and coding.

    The device belongs to the computer: a file opens where there is none.
    """
    settings = estimator.get_params(deep=False).items()
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings}
    kept = {name: value for name, value in plain.items() if name not in ("device", "precision")}
    return {name: value for name, value in kept.items() if isinstance(value, str | int | float | bool)}


def _chunk_result(
    model: Any,
    info: Any,
    known: FitResult | None,
    data: Dataset,
    provenance: dict[str, Any],
    moments: DataMoments | None,
    one_trace: bool,
) -> FitResult:
    """Return the result of learning from one chunk more."""
    if known is not None and known.moments is not None and moments is not None:
        moments = known.moments + moments
    earlier = {} if known is None else known.provenance
    goes_on = known is not None and (one_trace or "chunks" in earlier)
    trace = Trace(list(known.trace.rows), known.trace.details) if known is not None and goes_on else Trace()
    trace.add(len(trace) + 1, info, float("nan"))
    n_rows, n_chunks = earlier.get("rows", 0) + data.n_rows, earlier.get("chunks", 0) + 1
    after_fit = known is not None and (earlier.get("after_fit", False) or "chunks" not in earlier)
    reason = f"learned from {n_rows} rows in {n_chunks} chunk{'s' * (n_chunks != 1)}" + " after a fit" * after_fit
    story = {**provenance, "rows": n_rows, "chunks": n_chunks, "after_fit": after_fit}
    story["missing_cells"] += earlier.get("missing_cells", 0)
    penalised = any(provenance.get(name) for name in ("l1", "l2", "log_prior"))
    return FitResult(model, trace, False, reason, story, moments, penalised)


def _longer_history(known: FitResult | None, figures: dict[str, float]) -> dict[str, np.ndarray]:
    """Return the history with the figures of one chunk more."""
    earlier = {} if known is None else known.history
    return {name: np.append(earlier.get(name, ()), value) for name, value in figures.items()}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file and return the fitted estimator that wrote it.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.save(path)
    >>> bool((gb.load(path).model_.theta == bm.model_.theta).all())
    True
    """
    from gibbsian.storage import read_model
    from gibbsian.storage.container import reading

    stored = read_model(path)
    if not stored.estimator:
        kind = type(stored.model).__name__
        raise FileFormatError(
            f"{path} holds a {kind}, which no estimator learned", "read it with gibbsian.storage.read_model"
        )
    with reading(path):
        estimator: Any = ESTIMATORS.factory(stored.estimator)
        return estimator.from_stored(stored)
