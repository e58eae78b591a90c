"""The log-weight of rows with missing cells: exact, or between a lower and an upper bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.diagnostics.partition import log_partition_interval
from gibbsian.errors import TooExpensiveError
from gibbsian.inference import exact
from gibbsian.inference.posterior import OneByOne, log_evidence, split_rows
from gibbsian.models.base import DiscreteFamily, F, Model, keeps
from gibbsian.progress import counted
from gibbsian.rng import RandomState, as_generator
from gibbsian.sampling.annealing import Annealing

# A row whose missing cells would take longer to sum is annealed instead.
MAX_SECONDS_A_ROW = 1.0


class EvidenceInterval(NamedTuple):
    """The log-weight of each state summed over its missing cells, between two bounds; these are equal where exact.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_states,)
        The bounds; subtract log Z for log-probabilities.
    """

    lower: Floats
    upper: Floats

    @property
    def is_exact(self) -> bool:
        """Whether the bounds are equal everywhere."""
        return bool((self.lower == self.upper).all())


def log_evidence_interval(
    model: Model[F],
    data: Dataset,
    annealing: Annealing | None = None,
    rng: RandomState = None,
    max_seconds: float = MAX_SECONDS_A_ROW,
) -> EvidenceInterval:
    """Return the log-weight of each state summed over its missing cells: exactly where that is quick, else bracketed.

    A row with its present cells fixed is a model of its missing cells, and its weight is the partition function of
    that model: annealed importance sampling there and back brackets it.

    Parameters
    ----------
    model : Model
        The distribution.
    data : Dataset
        The rows.
    annealing : Annealing, optional
        Walkers and temperatures for each row that is annealed; by default 100 walkers and 1,000 temperatures.
    rng : None, int or Generator
        Source of randomness.
    max_seconds : float
        A row that would take longer exactly is annealed.
    """
    chosen = Annealing(betas=1000) if annealing is None else annealing
    lower, upper, generator = np.empty(data.n_states), np.empty(data.n_states), as_generator(rng)
    light, together, heavy = split_rows(model.family, data.states, data.missing)
    if len(light):
        lower[light] = upper[light] = together.log_evidence(model.theta)
    if not len(heavy):
        return EvidenceInterval(lower, upper)
    assert data.missing is not None  # complete rows are light
    assert keeps(model.family, DiscreteFamily)
    rows = OneByOne(model.family, data.states[heavy], data.missing[heavy], max_seconds)
    for each in counted(rows.conditionals(model.theta), "rows one by one", len(heavy)):
        state = heavy[each.row]
        try:
            lower[state] = upper[state] = each.constant + rows.answers(each).log_partition
        except TooExpensiveError:
            rest = Model(each.given.family, each.theta)
            interval = log_partition_interval(rest, "gibbs", chosen, generator, warn=False)
            lower[state], upper[state] = each.constant + interval.lower, each.constant + interval.upper
    return EvidenceInterval(lower, upper)


@dataclass(frozen=True)
class MinusLogLikelihood:
    """Minus the mean log-likelihood as a loss of models, or its upper bound where exact sums are out of reach."""

    betas: int = 1000

    def __call__(self, model: Model[F], data: Dataset, rng: np.random.Generator) -> float:
        """Return the loss."""
        try:
            log_partition, evidence = exact(model).log_partition, log_evidence(model, data)
        except TooExpensiveError:
            annealing = Annealing(betas=self.betas)
            log_partition = log_partition_interval(model, annealing=annealing, rng=rng, warn=False).upper
            evidence = log_evidence_interval(model, data, annealing, rng)[0]
        return float(log_partition - np.average(evidence, weights=data.weights))
