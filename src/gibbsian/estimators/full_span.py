"""The full-span log-linear model (TA22) as a scikit-learn estimator."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.data import Dataset, DataStream, drop_empty_rows
from gibbsian.diagnostics import DataMoments
from gibbsian.errors import ArgumentError, ConvergenceWarning, DataError, DegenerateDataWarning, notify
from gibbsian.estimators.fitting import model_to_start_from, provenance_of
from gibbsian.estimators.full_span_answers import SpanAnswersMixin
from gibbsian.estimators.full_span_comparison import SpanComparisonMixin
from gibbsian.estimators.full_span_result import SpanResult, how_it_ended
from gibbsian.estimators.machine import Machine
from gibbsian.full_span import FillAndFit, IncompleteRows, SpanAnswers, SpanRun, TimedStep, train_span
from gibbsian.full_span.checks import check_number, table_dtype
from gibbsian.full_span.dense import check_dense
from gibbsian.full_span.fit import ALGORITHMS, check_algorithm
from gibbsian.full_span.greedy import refreshed
from gibbsian.full_span.memory import require_tables
from gibbsian.full_span.missing import FillProgress, empty_problem, observed_cost, span_of, started
from gibbsian.full_span.penalty import DescriptionLength
from gibbsian.full_span.problem import SpanProblem
from gibbsian.full_span.table import basis_table, trace_table
from gibbsian.learners import FitResult, LearnerState
from gibbsian.models import FullSpanModel, SpanBasis
from gibbsian.models.parameters import check_whole_number
from gibbsian.rng import RandomState, as_generator
from gibbsian.storage import Checkpoint

# What the penalties are when they are not set.
NO_SHRINKAGE = {"mdl_scale": 1.0, "l1": 0.0, "l2": 0.0, "l2_growth": 1.0}


class FullSpan(SpanComparisonMixin, SpanAnswersMixin, Machine):  # type: ignore[misc]  # one answer for each question, so fewer arguments
    """The full-span log-linear model of TA22: functions of any order are chosen by what they save in nats.

    ``P(x) = exp(sum_y theta_y Phi_y(x)) / Z``. There is nothing to tune: a function enters when it lowers
    ``KL(data || model) + sum_y r_y``, r_y the nats per row that it takes to describe it. A fit holds two tables over
    all states, so it is for up to about 27 two-valued columns, or as many states in columns of any number of values.

    Parameters
    ----------
    algorithm : {"greedy", "newton", "dense"}
        TA22's algorithm; the one that also re-fits all parameters at once, whose cost is never higher; or all functions
        at once under L2, none selected, which often predicts new rows better: it needs l2 above 0 (choose `l2` and
        `l2_growth` on held-out rows) and seven times the memory.
    epsilon : float
        Stop when no move lowers the cost by as much, in nats per row.
    mdl_scale : float
        Factor on the description lengths r_y, which a dense fit does not have.
    l1, l2, l2_growth : float
        Shrinkage of the parameters, `gibbsian.full_span.Shrinkage`; none by default.
    coding : "auto", str, pair of labels or CategoryCoding
        ``"auto"`` reads two-valued data where all columns are written in one way (0/1, -1/+1, yes/no, ...), and
        otherwise the labels of each column.
    categories : sequence, or mapping from column to sequence, optional
        Labels of all columns, or of some, also those that do not occur in a fit.
    one_hot : str or mapping, optional
        Dummy columns to put together, as in `PottsMachine`.
    dtype : {"float64", "float32"} or NumPy type
        Of the tables of a fit; float32 takes half the memory and resolves gains down to 1e-6.
    max_iter : int
        Most steps.
    binarize : float, optional
        Read numbers above this threshold as 1, all others as 0.
    start : FullSpanModel or fitted FullSpan, optional
        Begin with the functions and parameters of another model of the same columns; give ``model_`` of a FullSpan
        where scikit-learn clones the estimator, because a clone of a FullSpan is not fitted.
    held_out : float
        Share of the rows to keep out of the fit; ``result_.held_out`` scores them.
    checkpoint : Checkpoint or path, optional
        Where to keep the progress of a fit; it holds one table over all states. A resumed fit ends in the same bits.
    callback : callable, optional
        Called with the number of each step and its `TimedStep` (kind, gain, cost, n_functions, seconds).
    random_state : None, int or Generator
        Where the randomness of `sample` and `held_out` comes from; a fit has none.

    Attributes
    ----------
    basis_ : pandas.DataFrame
        The functions in use: variables, function, order, theta, dual, data_dual, gain, penalty.
    trace_ : pandas.DataFrame
        The steps of the fit.
    cost_, divergence_ : float
        The cost at the end, and the part of it that is ``KL(data || model)``. With missing cells the cost is minus the
        mean log-likelihood of the observed cells plus the penalties, without the entropy of the data, and the
        divergence is NaN: rows that miss different cells overlap and have no distribution to diverge from. Both are
        NaN where the model was not fitted itself, as after `condition`.
    result_ : SpanResult
        Trace, convergence in words, provenance; ``result_.training`` compares means, ``result_.held_out`` scores.
    model_ : FullSpanModel
        The distribution itself.
    coding_, names_, n_features_in_, feature_names_in_
        As in `BoltzmannMachine`.

    Notes
    -----
    Missing cells are summed out by expectation-maximisation (`gibbsian.full_span.missing`): the cost on the observed
    cells never rises from fill to fill, but where it ends may be a local minimum, also with ``"newton"``.

    Ctrl-C ends a fit after the present step and leaves the model so far, with a `ConvergenceWarning` that says how to
    go on.

    Sample weights are frequencies: N, which the penalty depends on, is their sum.

    Questions about all states (`marginal`, `sample`, `most_probable`, `entropy`) share one table of 8 bytes a state,
    which is kept up to 64 MiB (2^23 states); a larger one is made for each of them and let go. Scores need it once,
    for log Z. `predict_proba`, `impute` and `conditional` sum over the free cells only. Where rows times functions are
    more than the states, scores and `predict_proba` read a second table, which is kept likewise.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 25
    >>> model = gb.FullSpan().fit(rows)
    >>> model.basis_[["variables", "order"]].values.tolist()
    [[('x0', 'x1', 'x2'), 3]]
    >>> model.most_probable(1)[["x0", "x1", "x2"]].values.tolist()
    [[0, 0, 0]]
    >>> smooth = gb.FullSpan("dense", l2=0.01, l2_growth=3.0).fit(rows)
    >>> round(smooth.score(rows), 2)
    -1.45
    """

    def __init__(
        self,
        algorithm: str = "greedy",
        *,
        epsilon: float = 1e-4,
        mdl_scale: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        l2_growth: float = 1.0,
        coding: Any = "auto",
        categories: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        one_hot: str | Mapping[str, Sequence[str]] | None = None,
        dtype: str = "float64",
        max_iter: int = 100_000,
        binarize: float | None = None,
        start: Any = None,
        held_out: float = 0.0,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        callback: Callable[[int, TimedStep], None] | None = None,
        random_state: RandomState = None,
    ):
        self.algorithm = algorithm
        self.epsilon = epsilon
        self.mdl_scale = mdl_scale
        self.l1 = l1
        self.l2 = l2
        self.l2_growth = l2_growth
        self.coding = coding
        self.categories = categories
        self.one_hot = one_hot
        self.dtype = dtype
        self.max_iter = max_iter
        self.binarize = binarize
        self.start = start
        self.held_out = held_out
        self.checkpoint = checkpoint
        self.callback: Any = callback
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that labels and one-hot arrays are welcome too."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.three_d_array = True
        return tags

    # -- what a machine decides ---------------------------------------------------------------------------------------
    def _zeros(self, data: Dataset) -> FullSpanModel:
        return FullSpanModel.build(data.domain.cardinalities(data.n_variables).tolist(), [], [])

    def _preflight(self, data: Dataset, model: FullSpanModel, l1: float, l2: float) -> None:
        """Refuse tables that do not fit; say which columns hold one value only."""
        if data.total_weight < 1.0:
            raise DataError(
                f"`sample_weight` adds up to {data.total_weight:.3g}",
                "weights count rows here, so scale them to a sum of 1 or more",
            )
        if self.checkpoint is not None:
            folder = Path(_path_of(self.checkpoint)).resolve().parent
            if not folder.is_dir():
                raise ArgumentError(
                    "lies in no folder",
                    f"create {folder} first",
                    argument="checkpoint",
                    value=_path_of(self.checkpoint),
                )
        require_tables(
            model.basis,
            table_dtype(self.dtype),
            self.algorithm,
            checkpoint=self.checkpoint is not None,
            missing=data.missing is not None,
        )
        present = np.ones(data.states.shape, bool) if data.missing is None else ~data.missing
        for j, name in enumerate(data.names):
            seen = np.unique(data.states[present[:, j], j])
            if seen.size == 0:
                raise DataError(f"column {name!r} has no observed cell", f"drop the column (drop=[{name!r}])")
            if seen.size == 1 and model.cardinalities[j] > 1 and data.total_weight > 1.0:
                label = data.labels[j][int(data.domain.to_codes(seen)[0])]
                notify(
                    DegenerateDataWarning(
                        f"column {name!r} holds {label!r} only, so the probability of its other values rests "
                        "on the number of rows alone",
                        "drop the column, or give rows that show them",
                    )
                )

    @classmethod
    def _structure_of(cls, model: FullSpanModel) -> dict[str, Any]:
        return {}

    def _table_options(self) -> dict[str, Any]:
        return {"categories": self.categories}

    def _column_options(self) -> dict[str, Any]:
        return {"binarize": self.binarize, "one_hot": self.one_hot}

    def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset:
        """Read data; where the coding is left open, as two-valued data, or else by the labels of each column."""
        told = isinstance(X, Dataset) or not isinstance(self.coding, str) or self.coding != "auto"
        if told or not fitting:
            return super()._read(X, fitting, sample_weight)
        options = {"sample_weight": sample_weight, **self._table_options(), **self._column_options()}
        try:
            data = Dataset.read(X, **options)
        except DataError:
            data = Dataset.read(X, coding="categorical", **options)
        self._check_columns(X, data, fitting)
        return data

    # -- learning -----------------------------------------------------------------------------------------------------
    def _fit(self, X: Any, sample_weight: Any) -> Self:
        self._check_settings()
        if isinstance(X, DataStream):
            return self._fit_stream(X, sample_weight)
        data = self._read(X, fitting=True, sample_weight=sample_weight)
        if data.row_weights is not None:
            data = data.take(data.row_weights > 0)
        data, held_out = self._hold_out(data, as_generator(self.random_state))
        data = drop_empty_rows(data)
        self._preflight(data, self._zeros(data), self.l1, self.l2)
        result = self._learn(data)
        if not result.converged:
            notify(ConvergenceWarning(result.reason))
        self._set_fitted(result, data.coding, data.names)
        if held_out is not None:
            self.result_ = replace(self.result_, held_out=self.score_or_pseudo_score(held_out))
        return self

    def _check_settings(self) -> None:
        check_algorithm(self.algorithm)
        dtype = table_dtype(self.dtype)
        for name in ("epsilon", "mdl_scale", "l1", "l2", "l2_growth", "held_out"):
            check_number(name, getattr(self, name))
        check_whole_number("max_iter", self.max_iter)
        if self.algorithm == "dense":
            check_dense(self.l1, self.l2, dtype)

    def _learn(self, data: Dataset) -> SpanResult:
        """Run the algorithm; its tables are gone when this returns."""
        learner, state = self._start(data)
        checkpoint: Any = None
        run = train_span(learner, state, max_iter=self.max_iter, callback=self.callback, checkpoint=checkpoint)
        return self._result(run, data, getattr(learner, "rows", None))

    def _start(self, data: Dataset) -> tuple[Any, LearnerState]:
        """Return the algorithm for these data, and where it begins."""
        codes = data.domain.to_codes(data.states)
        cardinalities = tuple(data.domain.cardinalities(data.n_variables).tolist())
        shrinkage = {name: getattr(self, name) for name, none in NO_SHRINKAGE.items() if getattr(self, name) != none}
        settings: dict[str, Any] = {"dtype": table_dtype(self.dtype), **shrinkage}
        learner: Any = ALGORITHMS[self.algorithm](self.epsilon)
        if data.missing is None:
            state = learner.init(SpanProblem.build(codes, data.weights, cardinalities, **settings))
        else:
            rows = IncompleteRows(SpanBasis(cardinalities), codes, data.missing, data.weights)
            learner = FillAndFit(learner, rows)
            state = learner.init(empty_problem(rows, **settings))
        return learner, state if self.start is None else self._started_at(learner, state)

    def _started_at(self, learner: Any, state: LearnerState) -> LearnerState:
        """Begin at the parameters of another model."""
        given = model_to_start_from(self.start)
        if not isinstance(given, FullSpanModel):
            raise ArgumentError(
                "must be None, a fitted FullSpan or a FullSpanModel", argument="start", value=self.start
            )
        if given.cardinalities != state.problem.basis.cardinalities:
            raise ArgumentError(
                "start has other columns or values than the data", "start from a model of the same ones"
            )
        table = span_of(state.progress).dual
        span = refreshed(state.problem, table, given.indices, given.theta)
        if isinstance(state.progress, FillProgress):
            return LearnerState(state.problem, replace(state.progress, inner=started(learner.learner, span, road=1)))
        return LearnerState(state.problem, started(learner, span))

    def _fingerprint(self, data: Dataset) -> str:
        """Digest what decides the course of a fit: a checkpoint is resumed by the same fit only."""
        dtype = table_dtype(self.dtype).name
        settings = [self.algorithm, float(self.epsilon), dtype, *(getattr(self, n) for n in NO_SHRINKAGE)]
        digest = hashlib.sha256(repr((settings, data.domain.cardinalities(data.n_variables).tolist())).encode())
        given = model_to_start_from(self.start)
        parts = [] if given is None else [given.indices, given.theta]
        missing = [] if data.missing is None else [data.missing]
        for array in (data.domain.to_codes(data.states), data.weights, *missing, *parts):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _result(self, run: SpanRun, data: Dataset, incomplete: IncompleteRows | None) -> SpanResult:
        fitted = run.state.problem
        problem = getattr(fitted, "whole", fitted)  # of all rows, also where only the complete ones were fitted so far
        indices, theta, cost = run.best()
        model = FullSpanModel(problem.basis, indices, theta)
        means = problem.data_dual[indices].astype(np.float64)
        measures = {"cost": cost}
        if incomplete is None:
            penalties = float(problem.penalties(indices).sum()) + problem.shrinks(indices, theta)
            measures["divergence"] = cost - penalties
        else:
            measures["cost"] = observed_cost(incomplete, problem, span_of(run.state.progress).dual, indices, theta)
        told = {
            **provenance_of(f"full-span-{self.algorithm}", data.n_rows),
            "distinct_rows": data.n_states,
            "missing_cells": 0 if data.missing is None else int(data.missing[data.row_of].sum()),
            **{name: getattr(self, name) for name in NO_SHRINKAGE},
            **({"mdl_scale": 0.0} if problem.penalty.is_zero else {}),
            "samples": problem.n_samples,
            "functions": int(model.indices.size),
            **measures,
            "steps": len(run.trace),
            "seconds": round(run.trace.seconds, 4),
        }
        if run.resumed_at is not None:
            told["resumed_at_step"] = run.resumed_at
        # an interruption in the middle of a fill leaves the data's table half filled
        sound = run.between_steps or data.missing is None
        moments = DataMoments(means, np.full(means.size, fitted.n_samples)) if sound else None
        path = None if self.checkpoint is None else _path_of(self.checkpoint)
        reason = how_it_ended(run, self.epsilon, self.max_iter, path)
        return SpanResult(model, run.trace, run.converged, reason, told, moments, True)  # type: ignore[arg-type]

    def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self:
        told = SpanResult(*(getattr(result, part.name) for part in fields(FitResult)))
        super()._set_fitted(told, coding, names)
        self.n_iter_ = max(1, told.n_steps)
        self._answers = SpanAnswers(told.model)  # type: ignore[arg-type]
        return self

    # -- the fitted model ---------------------------------------------------------------------------------------------
    @property
    def labels_(self) -> dict[str, tuple[Any, ...]]:
        """The values of each column as they are written, in the order of their codes."""
        check_is_fitted(self)
        return {name: tuple(self.coding_.labels_of(j)) for j, name in enumerate(self.names_)}

    @property
    def basis_(self) -> Any:
        """The functions in use, those that are worth most first; see `gibbsian.full_span.table.basis_table`."""
        check_is_fitted(self)
        moments, told = self.result_.moments, self.result_.provenance
        length = DescriptionLength.of_samples(self.model_.basis, told["samples"])
        return basis_table(
            self.model_,
            self.names_,
            list(self.labels_.values()),
            self._answers.means(),
            None if moments is None else moments.mean,
            told["mdl_scale"] * length(self.model_.basis, self.model_.indices),
        )

    @property
    def trace_(self) -> Any:
        """The steps of the fit: step, kind, variables, gain, cost, n_functions, seconds."""
        check_is_fitted(self)
        return trace_table(self.result_.trace, self.model_.basis, self.names_)

    @property
    def cost_(self) -> float:
        """The cost at the end of the fit, TA22 eq. 2.5, in nats per row; NaN where there was no fit.

        With missing cells: minus the mean log-likelihood of the observed cells, plus the penalties.
        """
        check_is_fitted(self)
        return float(self.result_.provenance.get("cost", np.nan))

    @property
    def divergence_(self) -> float:
        """``KL(data || model)`` at the end of the fit, in nats per row; NaN with missing cells, or without a fit."""
        check_is_fitted(self)
        return float(self.result_.provenance.get("divergence", np.nan))


def _path_of(checkpoint: Checkpoint | str | os.PathLike[str]) -> str:
    return os.fspath(checkpoint.path if isinstance(checkpoint, Checkpoint) else checkpoint)
