"""What a minibatch of rows teaches a model: the part of learning by minibatches that differs by the kind of model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.registry import Registry

# classes by the names of the models that they teach
LESSONS = Registry("learning by minibatches", "gibbsian.learners", "LESSONS")


class Lesson(NamedTuple):
    """What is made of one minibatch: a direction in the layout of theta, what is remembered, and the misfit of it."""

    gradient: np.ndarray
    memory: Any
    misfit: float


class Lessons:
    """Made from a `Minibatch` learner, a model and its rows."""

    # whether missing cells are drawn and kept (else they are hidden units, or refused)
    fills_missing = False
    # whether chunks of rows after a fit go on with its chains, instead of new ones
    goes_on = False
    # what `backends.torch` knows them by; they have `offset_parts` and `remembered`
    on_device = ""
    # by what the rate is divided
    divisor = 1.0

    def start(self, model: Any, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        """Return what is remembered before the first minibatch, plain arrays, and what stands in missing cells."""
        raise NotImplementedError

    def restarted(self, model: Any, memory: Any, rng: np.random.Generator) -> Any:
        """Return the same memory with chains that begin anew."""
        raise NotImplementedError

    def teach(
        self, model: Any, memory: Any, filled: np.ndarray, places: np.ndarray, rng: np.random.Generator
    ) -> Lesson:
        """Return what the rows at some places teach; what stands in their missing cells may change in place."""
        raise NotImplementedError

    def value(self, model: Any, filled: np.ndarray, misfit: float) -> float:
        """Return what an epoch reports: its mean of ``-log P(v | h)``, because log Z is unknown during a fit."""
        return misfit

    def figures(self, value: float, n_epochs: int) -> dict[str, float]:
        """Return the same by name, for the history of a fit."""
        return {"log_reconstruction": -value} if n_epochs else {}
