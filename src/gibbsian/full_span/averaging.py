"""Averages over fits to resampled data: what one greedy path decides by chance, many decide in proportion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from gibbsian.errors import ArgumentError
from gibbsian.full_span.checks import check_known, checked_counts
from gibbsian.full_span.fit import fit_full_span
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.span_basis import SpanBasis
from gibbsian.rng import RandomState, as_generator

# Rounds of EM over the shares of a mixture, whose likelihood is concave: no start matters, and nor does the end.
_MOST_ROUNDS = 500


@dataclass(frozen=True, eq=False)
class SpanAverage:
    """Several models of the same variables as one: the mean of their probabilities, a mixture.

    Parameters
    ----------
    models : tuple of FullSpanModel
        What is averaged.
    weights : tuple of float, optional
        Their shares, which add up to 1; equal ones by default.

    Examples
    --------
    >>> from gibbsian.full_span import FullSpanModel, SpanAverage
    >>> models = [FullSpanModel.build((2, 2), [3], [theta]) for theta in (0.2, 0.6)]
    >>> average = SpanAverage(tuple(models))
    >>> average.probabilities().round(4)
    array([0.3418, 0.1582, 0.1582, 0.3418])
    >>> average.geometric_mean().theta
    array([0.4])
    """

    models: tuple[FullSpanModel, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.models:
            raise ArgumentError("models is empty", "give at least one model")
        for number, model in enumerate(self.models):
            if not isinstance(model, FullSpanModel):
                raise ArgumentError(
                    f"models[{number}] is a {type(model).__name__}", "give a FullSpanModel, such as a FullSpan's model_"
                )
        if len({model.cardinalities for model in self.models}) > 1:
            raise ArgumentError("models differ in their cardinalities", "average models of the same variables")
        if not self.weights:
            object.__setattr__(self, "weights", (1.0 / len(self.models),) * len(self.models))
        if len(self.weights) != len(self.models):
            raise ArgumentError(f"there are {len(self.weights)} weights for {len(self.models)} models", "give one each")
        if min(self.weights) < 0 or not np.isclose(sum(self.weights), 1.0):
            raise ArgumentError("must be positive and add up to 1", argument="weights", value=self.weights)

    @property
    def basis(self) -> SpanBasis:
        """The functions that the models choose from."""
        return self.models[0].basis

    def probabilities(self) -> np.ndarray:
        """Return the mean probability of every state, in the order of their indices."""
        total = np.zeros(self.basis.size)
        for model, weight in zip(self.models, self.weights, strict=True):
            if weight > 0:
                total += weight * model.probabilities()
        return total

    def log_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the logarithm of the mean probability of each row of codes."""
        logs = [
            np.log(weight) + model.log_probabilities(states)
            for model, weight in zip(self.models, self.weights, strict=True)
            if weight > 0
        ]
        return logsumexp(logs, axis=0)

    def geometric_mean(self) -> FullSpanModel:
        """Return the normalised geometric mean, a full-span model again: its parameters are the means of theirs."""
        indices = np.unique(np.concatenate([model.indices for model in self.models]))
        theta = np.zeros(indices.size)
        for model, weight in zip(self.models, self.weights, strict=True):
            theta[np.searchsorted(indices, model.indices)] += weight * model.theta
        return FullSpanModel(self.basis, indices, theta)


def bootstrap_average(
    states: np.ndarray,
    counts: np.ndarray | Sequence[float],
    cardinalities: Sequence[int],
    *,
    n_fits: int = 20,
    random_state: RandomState = None,
    **settings: Any,
) -> SpanAverage:
    """Fit as many resampled data sets, each of N rows drawn with replacement, and average the models.

    Parameters
    ----------
    states, counts, cardinalities
        As in `fit_full_span`; counts are rounded to whole rows. Of a dataset: ``*counted(data)``.
    n_fits : int
        How many.
    random_state : None, int or Generator
        For the rows that are drawn.
    **settings
        Of `fit_full_span`.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import bootstrap_average
    >>> states = np.array([[0, 0], [0, 1], [1, 1]])
    >>> average = bootstrap_average(states, [40, 10, 30], (2, 2), n_fits=5, random_state=0)
    >>> len(average.models), bool(np.isclose(average.probabilities().sum(), 1.0))
    (5, True)
    """
    check_known(settings, fit_full_span)
    check_whole_number("n_fits", n_fits)
    rng = as_generator(random_state)
    states = np.asarray(states)
    counts = checked_counts(counts, len(states))
    n_rows = round(counts.sum())
    shares = counts / counts.sum()
    models = []
    for _ in range(n_fits):
        drawn = rng.multinomial(n_rows, shares)
        seen = drawn > 0
        models.append(fit_full_span(states[seen], drawn[seen], cardinalities, **settings).model)
    return SpanAverage(tuple(models))


def stack(
    members: Sequence[FullSpanModel | SpanAverage], states: np.ndarray, counts: np.ndarray | Sequence[float]
) -> SpanAverage:
    """Mix models with the shares under which held-out rows are most likely (Smyth and Wolpert 1999).

    Parameters
    ----------
    members : list of FullSpanModel or SpanAverage
        Models of the same variables; an average has one share, which its models divide among them.
    states, counts
        Rows that no member has seen. Of a dataset: ``*counted(data)[:2]``.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import FullSpanModel, stack
    >>> members = [FullSpanModel.build((2,), [1], [theta]) for theta in (-1.0, 0.2, 1.0)]
    >>> average = stack(members, np.array([[0], [1]]), [30, 70])
    >>> average.probabilities().round(3)
    array([0.3, 0.7])
    """
    parts = _parts(members)
    models = tuple(model for part in parts for model in part.models)
    basis = SpanAverage(models).basis  # which refuses models of other variables
    states = np.asarray(states)
    basis.indices(states)
    counts = checked_counts(counts, len(states))
    logs = np.column_stack([part.log_probabilities(states) for part in parts])
    shares = np.full(len(parts), 1.0 / len(parts))
    for _ in range(_MOST_ROUNDS):
        with np.errstate(divide="ignore"):  # a member that has lost its whole share stays without
            shares = counts @ softmax(np.log(shares) + logs, axis=1) / counts.sum()
    weights = tuple(float(share) * weight for share, part in zip(shares, parts, strict=True) for weight in part.weights)
    return SpanAverage(models, weights)


def _parts(members: Any) -> list[SpanAverage]:
    """Return every member as an average, a model as one of itself alone."""
    if isinstance(members, FullSpanModel | SpanAverage) or not isinstance(members, Iterable):
        raise ArgumentError(f"members is a {type(members).__name__}", "give a list of models")
    members = list(members)
    if not members:
        raise ArgumentError("members is empty", "give at least one model")
    for number, member in enumerate(members):
        if not isinstance(member, FullSpanModel | SpanAverage):
            raise ArgumentError(
                f"members[{number}] is a {type(member).__name__}",
                "give a FullSpanModel, such as a FullSpan's model_, or a SpanAverage",
            )
    return [member if isinstance(member, SpanAverage) else SpanAverage((member,)) for member in members]
