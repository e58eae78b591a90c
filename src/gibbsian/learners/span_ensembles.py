"""Several fits of the full-span model as one: averages over resampled rows, a choice or a mixture on unseen rows."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.learners.around import Around
from gibbsian.learners.base import LEARNERS, Learner, LearnerState
from gibbsian.learners.run import run
from gibbsian.learners.span_base import as_span_learner
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.span_average import SpanAverage
from gibbsian.models.span_basis import SpanBasis
from gibbsian.models.span_completions import log_evidence
from gibbsian.optimizers import StepInfo
from gibbsian.settings import check, choice, declared, free, non_defaults, number, positional, whole
from gibbsian.special import logsumexp, softmax

# Rounds of EM over the shares of a mixture, whose likelihood is concave: no start matters, and nor does the end.
_MOST_ROUNDS = 500


@dataclass(frozen=True)
class Members:
    """Models that were fitted so far, one after the other: what a checkpoint can hold.

    Parameters
    ----------
    indices, theta : (all functions of all models,)
        Their functions and parameters.
    ends : (n_models,)
        Where those of each end.
    """

    indices: np.ndarray
    theta: np.ndarray
    ends: np.ndarray

    @classmethod
    def none(cls) -> Self:
        """Return no models."""
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))

    def added(self, model: FullSpanModel) -> Members:
        """Return these models and one more."""
        indices, theta = np.append(self.indices, model.indices), np.append(self.theta, model.theta)
        return Members(indices, theta, np.append(self.ends, indices.size))

    def models(self, like: FullSpanModel) -> tuple[FullSpanModel, ...]:
        """Return the models of the variables of another one."""
        parts = zip([0, *self.ends[:-1].tolist()], self.ends.tolist(), strict=True)
        return tuple(
            FullSpanModel(like.basis, self.indices[a:b], self.theta[a:b], like.domain, like.temperature)
            for a, b in parts
        )


@dataclass(frozen=True)
class EnsembleProgress:
    """The fits so far.

    Parameters
    ----------
    members : Members
        Their models.
    scores : (n_members,)
        Mean log-likelihood of unseen rows under each; empty where there are none.
    n_steps : int
        Fits so far.
    done : bool
        Whether they are all.
    """

    members: Members
    scores: np.ndarray
    n_steps: int = 0
    done: bool = False

    @property
    def verdict(self) -> str:
        """How fits that are done ended."""
        return f"converged: {self.n_steps} fits" if self.done else ""

    @property
    def theta(self) -> np.ndarray:
        """The parameters of all models."""
        return self.members.theta


def _step_info(value: float, n_functions: int, n_steps: int, verdict: str) -> StepInfo:
    details = {"n_functions": float(n_functions)}
    return StepInfo(value, 0.0 if verdict else 1.0, 1.0, n_steps, verdict=verdict, details=details)


# -- averages over resampled rows -------------------------------------------------------------------------------------
class _Resampled(NamedTuple):
    """The model that every fit starts from, the rows, how often each was drawn for each fit, and a generator."""

    model: FullSpanModel
    data: Dataset
    drawn: np.ndarray
    rng: np.random.Generator


@LEARNERS.register("span-average", models=("full-span",), stochastic=True)
@declared(frozen=True)
class SpanBagging(Around):
    """Fits to resampled rows, averaged: what one greedy path decides by chance, many decide in proportion.

    Every fit sees as many rows as there are, drawn with replacement. A step is one fit.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[0, 0]] * 40 + [[0, 1]] * 10 + [[1, 1]] * 30)
    >>> learner = gb.learners.SpanBagging("span-greedy", n_averages=5)
    >>> gb.learners.run(learner, gb.FullSpanModel.build((2, 2)), data, 0).reason
    'converged: 5 fits are averaged'
    """

    learner: Any = positional(
        kw_only=False, default=free("span-greedy", "What fits resampled rows.", doc="str or learner")
    )
    n_averages: int = whole(20, "How many fits.", least=1)
    max_iter: int = whole(100_000, "Most steps of each fit.", least=1)

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "learner", as_span_learner(self.learner))

    def start(self, model: Any, data: Dataset, rng: np.random.Generator) -> Any:
        """Return the model itself: hidden values differ by the rows around which they start."""
        return model

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Draw the rows of all fits."""
        n_rows, shares = round(data.total_weight), data.weights / data.total_weight
        drawn = rng.multinomial(n_rows, shares, size=self.n_averages)
        return LearnerState(_Resampled(model, data, drawn, rng), EnsembleProgress(Members.none(), np.empty(0)))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Fit one resampled set of rows."""
        (model, data, drawn, rng), before = state.problem, state.progress
        rows = replace(data, weights=drawn[before.n_steps].astype(np.float64), row_weights=None)
        result: Any = run(self.learner, model, rows, rng, max_iter=self.max_iter)
        n_steps = before.n_steps + 1
        verdict = f"converged: {n_steps} fits are averaged" if n_steps == self.n_averages else ""
        members = before.members.added(result.model.without_hidden())
        progress = EnsembleProgress(members, before.scores, n_steps, bool(verdict))
        value = float(result.trace.column("value")[-1])
        return LearnerState(state.problem, progress), _step_info(value, result.model.theta.size, n_steps, verdict)

    def restored(self, state: LearnerState, progress: EnsembleProgress) -> LearnerState:
        """Return a fresh state with the progress that a checkpoint held."""
        return LearnerState(state.problem, progress)

    def require_memory(self, basis: SpanBasis, checkpoint: bool = False, missing: bool = False) -> None:
        """Raise `TooExpensiveError` where the tables of a fit do not fit."""
        self.learner.require_memory(basis, missing=missing)

    def average(self, model: Any, state: LearnerState) -> SpanAverage:
        """Return the average of the fits so far."""
        return SpanAverage(state.progress.members.models(model.without_hidden()))

    def fitted(self, model: Any, state: LearnerState) -> FullSpanModel:
        """Return the average of the fits so far as one model."""
        return self.average(model, state).to_model() if state.progress.n_steps else model.without_hidden()


# -- chosen or mixed on unseen rows -----------------------------------------------------------------------------------
class _Split(NamedTuple):
    """The model that every fit starts from, all rows, those to fit, those to judge by, and a generator."""

    model: FullSpanModel
    data: Dataset
    kept: Dataset
    unseen: Dataset
    rng: np.random.Generator


@LEARNERS.register("span-selection", models=("full-span",), stochastic=True)
@declared(frozen=True)
class SpanSelection(Learner):
    """Several learners judged by rows that they have not seen: the best of them, or their mixture.

    A step is one fit. Each candidate has the same rows and the same random numbers. The best one is fitted once
    more, to all rows; a mixture has the shares under which the unseen rows are most likely (Smyth and Wolpert 1999).

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[0, 0]] * 40 + [[0, 1]] * 10 + [[1, 1]] * 30)
    >>> learner = gb.learners.SpanSelection("span-greedy, span-dense:l2=0.01, span-dense:l2=1")
    >>> gb.learners.run(learner, gb.FullSpanModel.build((2, 2)), data, 0).reason
    'converged: SpanDense(l2=0.01) is the best of 3 candidates'
    """

    candidates: Any = positional(
        kw_only=False,
        default=free(
            "span-greedy, span-newton",
            "Learners, or their names with settings, as in 'span-greedy, span-dense:l2=0.01:l2_growth=3'.",
            doc="str or list of learners",
        ),
    )
    combine: str = choice("best", "Keep the best candidate, or mix all of them.", "best", "stack")
    unseen_fraction: float = number(0.2, "Share of the rows that candidates are judged by.", above=0, below=1)
    max_iter: int = whole(100_000, "Most steps of each fit.", least=1)

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "candidates", as_candidates(self.candidates))

    def start(self, model: Any, data: Dataset, rng: np.random.Generator) -> Any:
        """Return the model itself: hidden values differ by the rows around which they start."""
        return model

    def refusal(self, model: Any) -> str:
        """Ask the candidates."""
        return next(filter(None, (candidate.refusal(model) for candidate in self.candidates)), "")

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Keep some rows back."""
        kept, unseen = split_weights(data.weights, self.unseen_fraction, copy.deepcopy(rng))
        seen, others = (replace(data, weights=weights, row_weights=None) for weights in (kept, unseen))
        return LearnerState(_Split(model, data, seen, others, rng), EnsembleProgress(Members.none(), np.empty(0)))

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Fit the next candidate, or the best one to all rows."""
        problem, before = state.problem, state.progress
        again = before.n_steps == len(self.candidates)
        learner = self.candidates[int(np.argmax(before.scores)) if again else before.n_steps]
        rows = problem.data if again else problem.kept
        result: Any = run(learner, problem.model, rows, copy.deepcopy(problem.rng), max_iter=self.max_iter)
        model, n_steps = result.model.without_hidden(), before.n_steps + 1
        scores, value = before.scores, float("nan")
        if not again:
            value = -mean_log_likelihood(model, problem.unseen)
            scores = np.append(scores, -value)
        verdict = self._verdict(scores, n_steps)
        progress = EnsembleProgress(before.members.added(model), scores, n_steps, bool(verdict))
        return LearnerState(problem, progress), _step_info(value, result.model.theta.size, n_steps, verdict)

    def require_memory(self, basis: SpanBasis, checkpoint: bool = False, missing: bool = False) -> None:
        """Raise `TooExpensiveError` where the tables of a fit do not fit."""
        for candidate in self.candidates:
            candidate.require_memory(basis, missing=missing)

    def _verdict(self, scores: np.ndarray, n_steps: int) -> str:
        n_candidates = len(self.candidates)
        if self.combine == "stack":
            return f"converged: {n_candidates} candidates are mixed" if n_steps == n_candidates else ""
        if n_steps <= n_candidates:
            return ""
        best = self.candidates[int(np.argmax(scores))]
        settings = ", ".join(f"{name}={value}" for name, value in non_defaults(best).items())
        return f"converged: {type(best).__name__}({settings}) is the best of {n_candidates} candidates"

    def fitted(self, model: Any, state: LearnerState) -> FullSpanModel:
        """Return the mixture, the best candidate on all rows, or the best so far."""
        progress = state.progress
        models = progress.members.models(model.without_hidden())
        if not models:
            return model.without_hidden()
        if self.combine == "stack":
            return stack(models, state.problem.unseen).to_model()
        return models[-1] if progress.n_steps > len(self.candidates) else models[int(np.argmax(progress.scores))]


def as_candidates(given: Any) -> tuple[Any, ...]:
    """Return learners, given as such, by name, or as text with a colon before each setting and commas between them."""
    listed = given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    if not listed:
        raise ArgumentError("names no learner", "give at least one learner", argument="candidates", value=given)
    return tuple(_candidate(one) for one in listed)


def _candidate(given: Any) -> Learner:
    if not isinstance(given, str):
        return as_span_learner(given)
    name, *settings = given.strip().split(":")
    return as_span_learner(name, **dict(_setting(text) for text in settings))


def _setting(text: str) -> tuple[str, Any]:
    name, mark, value = text.partition("=")
    if not mark:
        raise ArgumentError(f"candidate setting {text!r} has no value", "write it as in `l2=0.01`")
    try:
        return name.strip(), float(value)
    except ValueError:
        return name.strip(), value.strip()


def split_weights(weights: np.ndarray, fraction: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the rows that are kept and of those held back, drawn without replacement."""
    counts = np.asarray(weights).astype(np.int64)
    if not np.array_equal(counts, weights):
        raise ArgumentError("the weights hold fractions of rows", "only whole rows can be kept back")
    n_unseen = round(fraction * counts.sum())
    if not 0 < n_unseen < counts.sum():
        raise ArgumentError(
            f"of {counts.sum()} rows leaves nothing to fit or nothing to choose on",
            argument="unseen_fraction",
            value=fraction,
        )
    unseen = rng.multivariate_hypergeometric(counts, n_unseen)
    return (counts - unseen).astype(np.float64), unseen.astype(np.float64)


def log_likelihoods(model: FullSpanModel | SpanAverage, data: Dataset) -> np.ndarray:
    """Return the log-probability of each distinct row."""
    members, weights = (model.models, model.weights) if isinstance(model, SpanAverage) else ((model,), (1.0,))
    codes = data.domain.to_codes(data.states)
    logs = [log_evidence(one, codes, data.missing) - one.log_partition for one in members]
    return logsumexp(logs, axis=0, b=np.array(weights)[:, None])


def mean_log_likelihood(model: FullSpanModel | SpanAverage, data: Dataset) -> float:
    """Return the mean log-probability of the rows."""
    seen = data.weights > 0
    return float(np.average(log_likelihoods(model, data)[seen], weights=data.weights[seen]))


def stack(members: Any, data: Dataset) -> SpanAverage:
    """Mix models with the shares under which the rows, which none of them has seen, are most likely.

    An average among the members has one share, which its models divide among them.
    """
    parts = [member if isinstance(member, SpanAverage) else SpanAverage((member,)) for member in members]
    logs = np.column_stack([log_likelihoods(part, data) for part in parts])
    shares = np.full(len(parts), 1.0 / len(parts))
    for _ in range(_MOST_ROUNDS):
        with np.errstate(divide="ignore"):  # a member that has lost its whole share stays without
            shares = data.weights @ softmax(np.log(shares) + logs, axis=1) / data.total_weight
    weights = tuple(float(share) * weight for share, part in zip(shares, parts, strict=True) for weight in part.weights)
    return SpanAverage(tuple(model for part in parts for model in part.models), weights)
