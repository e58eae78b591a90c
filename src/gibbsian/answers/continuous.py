"""Answers about fields of real variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.answers.base import Answers
from gibbsian.data import Dataset
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import exact
from gibbsian.samplers import Gibbs, draw


class ContinuousAnswers(Answers):
    """Answers about one field of real variables; integrals are sums over the nodes of its domain.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> box = gb.domain.Continuum("interval", -1.0, 1.0)
    >>> field = gb.models.PotentialField.build(["product"], gb.graphs.complete(2), box, theta=[3.0])
    >>> rows, _ = gb.answers.answers_about(field).sample(1000, np.random.default_rng(0))
    >>> bool((rows[:, 0] * rows[:, 1]).mean() > 0.3)
    True
    """

    def _drawn(self, n_samples: int, rng: np.random.Generator, method: str) -> np.ndarray:
        """Draw nodes exactly and then each variable given the others: the law of that is exact as the integrals are."""
        if method in ("auto", "exact"):
            try:
                nodes = exact(self.model).sample(n_samples, rng)
                sampler = Gibbs()
                return sampler.step(self.model, sampler.init(self.model, n_samples, rng, states=nodes))[0].states
            except TooExpensiveError:
                if method == "exact":
                    raise
                method = "gibbs"
        return draw(self.model, n_samples, rng, sampler=method).reshape(-1, self.model.n_variables)[:n_samples]

    def log_partition_interval(self, *args: Any, **settings: Any) -> LogPartitionInterval:
        """Return log Z between two sides, by annealing over the nodes there and back."""
        return Answers(self.model.discretised).log_partition_interval(*args, **settings)

    def log_evidence_interval(self, data: Dataset, *_: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-evidence, which is exact, twice."""
        evidence = self.log_evidence(data)
        return evidence, evidence

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Refuse: cells have densities."""
        raise ArgumentError(
            "cells of continuous variables have densities, not probabilities", "draw them with `sample`, or ask `score`"
        )
