"""The full-span log-linear model (TA22) as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data import Columns, Dataset
from gibbsian.diagnostics.moments import DataMoments, data_moments
from gibbsian.domain import BINARY, SPIN
from gibbsian.errors import ArgumentError, DataError, DegenerateDataWarning, notify
from gibbsian.estimators.held_out import one_over
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.penalty import l2_setting
from gibbsian.estimators.span_questions import SpanQuestions, hidden_values
from gibbsian.estimators.span_tables import basis_table, function_texts, trace_table
from gibbsian.learning import FitResult, Learner, as_learner
from gibbsian.learning.initial import model_to_start_from
from gibbsian.learning.span.learner import SpanHidden, SpanLearner
from gibbsian.learning.span.problem import FunctionCosts
from gibbsian.learning.stages import Restarts
from gibbsian.models.base import FAMILIES, Model
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.settings import Setting, check_value, choice, declared, free, non_defaults, number, positional, whole
from gibbsian.startup import TransformerTags, check_is_fitted, pandas

# Settings that a learner named by text is made with.
OF_THE_LEARNER = ("tol", "mdl_scale", "l1", "l2", "l2_growth", "dtype")
_VALUES = Setting("Values of a hidden variable.", "whole", low=1)


@ESTIMATORS.register("full-span", about="functions of any order, chosen by what they save")
@declared
class FullSpan(SpanQuestions):
    """The full-span log-linear model of TA22: functions of any order are chosen by what they save in nats.

    ``P(x) = exp(sum_y theta_y Phi_y(x)) / Z``. There is nothing to tune: a function enters when it lowers
    ``KL(data || model) + sum_y r_y``, r_y the nats per row that it takes to describe it. A fit holds two tables over
    all states, so it is for up to about 27 two-valued columns, or as many states in columns of any number of values.

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
    result_ : FitResult
        Trace, convergence in words, provenance; ``result_.training`` compares means, ``result_.held_out`` scores.
    model_ : Model
        The distribution itself, of a `FullSpanFamily`.
    coding_, names_, n_features_in_, feature_names_in_
        As in `BoltzmannMachine`.

    Notes
    -----
    Missing cells are summed out by expectation-maximisation (`gibbsian.learning.span.fill`): the cost on the
    observed cells never rises from fill to fill, but where it ends may be a local minimum, also with ``"span-newton"``.

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
    >>> model.most_probable().rows.tolist()
    [[0, 0, 0]]
    >>> smooth = gb.FullSpan("span-dense", l2=0.01, l2_growth=3.0).fit(rows)
    >>> round(smooth.score(rows), 2)
    -1.45
    """

    learner: Any = positional(
        kw_only=False,
        default=free(
            "auto",
            "TA22's algorithm ('span-greedy', which 'auto' is); the one that also re-fits all parameters at once, "
            "whose cost is never higher ('span-newton'); or all at once under L2, none selected ('span-dense'), which "
            "often predicts new rows better, but needs `l2` and seven times the memory; or all under L1 alone "
            "('span-l1'), with the conditions of its minimum held to `tol`. Or a learner object with its own settings.",
            doc="str or Learner",
        ),
    )
    tol: float = number(1e-4, "Stop when no move lowers the cost by as much, in nats per row.", above=0)
    max_iter: int = whole(100_000, "Most steps.", least=1)
    mdl_scale: float = number(1.0, "Factor on the description lengths of functions: less takes more of them.", least=0)
    l1: float = number(0.0, "Penalty `l1 sum|theta|` on the cost per row.", least=0)
    l2: Any = l2_setting("Penalty `(l2/2) sum theta^2` on the cost per row, for functions of one column.")
    l2_growth: float = number(1.0, "By what factor `l2` grows with every further column of a function.", least=1)
    dtype: str = choice(
        "float64", "Of the tables of a fit; float32 takes half the memory, down to gains of 1e-6.", "float64", "float32"
    )
    coding: Any = free(
        "auto",
        "How values are written: 'auto' reads two-valued data where all columns are written in one way (0/1, -1/+1, "
        "yes/no, ...), and otherwise the labels of each column. Or declared, as for other machines.",
        doc="str, pair of labels, Coding or CategoryCoding",
    )
    start: Any = free(
        None,
        "Begin with the functions and parameters of another model of the same columns.",
        doc="Model or fitted FullSpan, optional",
        flag=False,
    )
    n_components: Any = free(
        1,
        "Values of a hidden variable besides the columns, 1 for none; of several hidden variables the values of each, "
        "as in (2, 3).",
        doc="int or sequence of int",
    )
    n_init: int = whole(1, "Starts of the hidden variables; the one of lowest cost is kept.", least=1)

    _welcome = ("categorical", "three_d_array")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a hidden variable makes new columns."""
        tags = super().__sklearn_tags__()
        if hidden_values(self):
            tags.transformer_tags = TransformerTags()
        return tags

    learners = ("span-greedy", "span-newton", "span-l1", "span-dense")
    auto_learner = "span-greedy"

    # -- learning -----------------------------------------------------------------------------------------------------
    def _coding(self) -> Any:
        if isinstance(self.coding, Mapping):
            return Columns(self.coding, "auto-categorical")
        return "auto-categorical" if isinstance(self.coding, str) and self.coding == "auto" else self.coding

    _counts_rows = True  # a table of counts is all that it learns from

    def _read(self, X: Any, fitting: bool = False, sample_weight: ArrayLike | None = None) -> Dataset:
        data: Any = super()._read(X, fitting, sample_weight)
        if (
            hidden_values(self) and data.coding.domain == SPIN
        ):  # hidden variables are numbered from 0, and so are the others
            data = data.in_coding(replace(data.coding, domain=BINARY))
        return data

    def _start(self, data: Dataset, rng: np.random.Generator) -> Model[FullSpanFamily]:
        given, hidden = model_to_start_from(self.start), hidden_values(self)
        for q in hidden:
            check_value("n_components", q, _VALUES)
        if given is None:
            return FullSpanFamily.model({}, data.variables, hidden)
        if not isinstance(given, Model) or FAMILIES.name_for(given.family) != FullSpanFamily.registered_name:
            raise ArgumentError(
                "must be None, a fitted FullSpan or a model of a FullSpanFamily", argument="start", value=self.start
            )
        if given.variables.sizes != data.variables.sizes:
            raise ArgumentError(
                "start has other columns or values than the data", "start from a model of the same ones"
            )
        return Model(FullSpanFamily.uniform(data.variables).append(given.family.functions), given.theta)

    def _learner(self, model: Model[FullSpanFamily], data: Dataset) -> Learner:
        """Return the learner, with hidden variables and several starts around it as they are asked for."""
        given = {name: value for name, value in non_defaults(self).items() if name in OF_THE_LEARNER}
        dense = isinstance(self._asked, str) and self._asked == "span-dense"  # which is nothing without a penalty
        given["l2"] = self._l2 or (one_over(data) if dense and isinstance(self.l2, str) else 0.0)
        learner = as_learner(self._asked, **given)
        if hidden_values(self):
            if isinstance(learner, SpanLearner):  # it learns complete rows, as one round does
                learner = SpanHidden(learner=learner, tol=0.1 * self.tol)
            if self.n_init > 1:
                learner = Restarts(learner, self.n_init, max_iter=self.max_iter, tol=0.0)
        return learner

    def _learner_of_fit(self, data: Dataset) -> Learner:
        """Return exact likelihood of the functions in use, as if they had been given."""
        if self.model_.n_hidden:
            raise ArgumentError(
                "parameters of hidden variables have no errors of their own",
                "compare scores over rows that were not seen",
            )
        return as_learner("mle", l2=self.result_.provenance.get("l2", 0.0))

    def _learns_by_chunks(self) -> bool:
        as_learner(self._asked).require_chunks()
        return True

    def _preflight(self, data: Dataset, model: Model[FullSpanFamily], learner: Any) -> None:
        """Refuse tables that do not fit; say which columns hold one value only."""
        span = span_learner(learner)
        if span is None:
            if model.theta.size:
                return
            reason = "learns the parameters of given functions, and a full-span model begins without any"
            raise ArgumentError(reason, argument="learner", value=self.learner)
        span.require_memory(model.family.basis, self.checkpoint is not None, data.has_missing)
        present = ~data.holes
        for j, name in enumerate(data.names):
            seen = np.unique(data.states[present[:, j], j])
            if seen.size == 0:
                raise DataError(f"column {name!r} has no observed cell", f"drop the column (`drop=[{name!r}]`)")
            if seen.size == 1 and model.variables.sizes[j] > 1 and data.total_weight > 1.0:
                label = data.labels[j][int(seen[0])]
                rests = "the probability of its other values rests on the number of rows alone"
                reason = f"column {name!r} holds {label!r} only, so {rests}"
                notify(DegenerateDataWarning(reason, "drop the column, or give rows that show them"))

    def _judged(self, result: FitResult, data: Dataset, learner: Any) -> FitResult:
        model: Any = result.model
        provenance = {
            "distinct_rows": data.n_states,
            "samples": data.total_weight,
            "functions": int(model.theta.size),
        }
        if (span := span_learner(learner)) is None:
            moments = self._moments(model, data)
        else:
            strengths = {"mdl_scale": span.mdl_scale, "l1": span.l1, "l2": span.l2, "l2_growth": span.l2_growth}
            provenance |= {**strengths, **span.costs(model, data)}
            moments = DataMoments(span.data_means(model, data), np.full(model.theta.size, data.total_weight))
        return replace(result, provenance={**result.provenance, **provenance}, moments=moments)

    def _moments(self, model: Model[FullSpanFamily], data: Dataset) -> DataMoments | None:
        return data_moments(model, data)

    @classmethod
    def _structure_of(cls, model: Model[FullSpanFamily], coding: Any) -> dict[str, object]:
        hidden = {"n_components": model.variables.sizes[-model.n_hidden :]} if model.n_hidden else {}
        return {"coding": coding, **hidden}

    # -- the fitted model ---------------------------------------------------------------------------------------------
    @property
    def labels_(self) -> dict[str, tuple[Any, ...]]:
        """The values of each column as they are written, in the order of their codes; hidden values by number."""
        check_is_fitted(self)
        shown = dict(zip(self.names_, [tuple(labels) for labels in self._column_labels], strict=True))
        hidden = self.model_.variables.sizes[len(self.names_) :]
        return {**shown, **{f"hidden {k}": tuple(range(q)) for k, q in enumerate(hidden)}}

    @property
    def basis_(self) -> Any:
        """The functions in use, those that are worth most first; see `gibbsian.estimators.span_tables.basis_table`."""
        check_is_fitted(self)
        moments, story = self.result_.moments, self.result_.provenance
        family = self.model_.family
        costs = FunctionCosts.of_samples(family.basis, story["samples"], story.get("mdl_scale", 0.0))
        return basis_table(
            self.model_,
            list(self.labels_),
            list(self.labels_.values()),
            self._answers.means(),
            None if moments is None else moments.mean,
            costs.lengths(family.functions),
        )

    def figures(self) -> dict[str, object]:
        """Return the numbers of variables and functions, the largest order, and what the fit cost."""
        costs = {"cost": self.cost_, "divergence from the data": self.divergence_}
        return {
            "variables": self.model_.n_variables,
            "functions": self.model_.theta.size,
            "variables in the largest": int(self.model_.family.scopes.sizes.max(initial=0)),
            **{name: value for name, value in costs.items() if np.isfinite(value)},
        }

    def statistics(self) -> dict[str, object]:
        """Return the functions in use, with the values at which a factor is +1 in braces."""
        family, names, labels = self.model_.family, list(self.labels_), list(self.labels_.values())
        texts = function_texts(family.basis, family.functions, names, labels)
        return {"functions": pandas.DataFrame({"function": texts})}

    def tables(self, n: int = 10) -> dict[str, object]:
        """Return the functions that are worth most."""
        return {"basis": self.basis_.head(n)}

    @property
    def trace_(self) -> Any:
        """The steps of the fit: step, kind, variables, gain, cost, n_functions, seconds."""
        check_is_fitted(self)
        return trace_table(self.result_.trace, self.model_.family.basis, list(self.labels_))

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


def span_learner(learner: object) -> SpanLearner[Any] | None:
    """Return the learner of functions within several starts and rounds of expectation-maximisation, if there is one."""
    while isinstance(learner, Restarts | SpanHidden):
        learner = learner.learner
    return learner if isinstance(learner, SpanLearner) else None
