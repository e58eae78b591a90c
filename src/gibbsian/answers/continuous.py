"""Answers about potentials of real variables."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from gibbsian.answers.about import ANSWERS
from gibbsian.answers.base import Answers
from gibbsian.answers.modes import Modes, Search
from gibbsian.data import Dataset
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import exact
from gibbsian.models.base import Model
from gibbsian.models.families.quadrature import QuadratureFamily
from gibbsian.rng import Key
from gibbsian.sampling import draw, kernel_for


@ANSWERS.register("quadrature")
class ContinuousAnswers(Answers[QuadratureFamily]):
    """Answers about one density of real variables; integrals are sums over the nodes of its rule.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> box = gb.domain.Continuum("interval", -1.0, 1.0)
    >>> family = gb.models.QuadratureFamily.build(["product"], gb.models.Quadrature.of(box, 2), gb.graphs.complete(2))
    >>> answers = gb.answers.answers_about(gb.Model(family, np.array([3.0])))
    >>> rows, _ = answers.sample(1000, np.random.default_rng(0))
    >>> bool((rows[:, 0] * rows[:, 1]).mean() > 0.3)
    True
    """

    def _drawn(self, n_samples: int, rng: np.random.Generator, method: str) -> np.ndarray:
        """Draw nodes exactly, then each variable given the others: the draws are exact as the integrals are."""
        if method in ("auto", "exact"):
            try:
                nodes = exact(self.model).sample(n_samples, rng)
                kernel = kernel_for(self.model.family)
                return kernel.step(self.model.theta, kernel.init(n_samples, Key.of(rng), nodes))[0].states
            except TooExpensiveError:
                if method == "exact":
                    raise
                method = "gibbs"
        return draw(self.model, n_samples, rng, method).reshape(-1, self.model.n_variables)[:n_samples]

    def log_partition_interval(self, *args: Any, **settings: Any) -> LogPartitionInterval:
        """Return log Z between two sides, by annealing over the nodes there and back."""
        nodes = self.model.family.to_tables(self.model.theta)
        return Answers(nodes).log_partition_interval(*args, **settings)

    def log_evidence_interval(self, data: Dataset, *_: object) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-evidence, which is exact, twice."""
        evidence = self.log_evidence(data)
        return evidence, evidence

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Refuse: cells have densities."""
        raise ArgumentError(
            "cells of continuous variables have densities, not probabilities",
            "ask `impute` for means, `sample` for draws, or `score`",
        )

    def completed_states(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the distinct rows with missing cells at their means given the present ones."""
        states = np.array(data.states, dtype=np.float64)
        for state, holes in zip(states, data.holes, strict=True):
            if holes.any():
                state[holes] = exact(self._given(state, holes)).means
        return states

    def _given(self, state: np.ndarray, holes: np.ndarray) -> Model[QuadratureFamily]:
        """The density of the missing cells of a row given the others."""
        held = np.flatnonzero(~holes)
        return self.model.given(held, state[held])[0] if held.size else self.model

    def mode_of(self, data: Dataset, state: np.ndarray, free: np.ndarray, search: Search, joint: bool) -> Modes:
        """Return the row of largest density that has the `free` cells anew: climbed to from the best nodes."""
        search.require_one_peak()
        row = np.array(state, dtype=np.float64)
        if free.any():
            row[free] = _climbed(self._given(row, free), search)
        log_density = float(self.model.log_weights(row[None])[0])
        bound = np.inf if free.any() else log_density
        return Modes.one(row, log_density, bound, "a climb from the best nodes" if free.any() else "given")

    def joint(self) -> NoReturn:
        """Refuse: tables are for values that can be listed."""
        raise ArgumentError(
            "real numbers have densities and no probabilities of single values",
            "ask `expect` for moments, and `score_samples` for densities",
        )


def _climbed(model: Model[QuadratureFamily], search: Search) -> np.ndarray:
    """Climb the density from the best combination of nodes, which is exact or annealed."""
    from scipy.optimize import minimize

    support, at_nodes = model.family.variables.support, Model(model.family.at_nodes, model.theta)
    start = support.nodes[search.of_model(at_nodes)[0]]
    ends = [(support.low, support.high) if support.bounded else (None, None)] * start.size
    return minimize(lambda x: -float(model.log_weights(x[None])[0]), start, method="L-BFGS-B", bounds=ends).x
