"""The contract every expectation keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from gibbsian.estimate import Estimate
from gibbsian.expectations.base import EXPECTATIONS as EXPECTATIONS
from gibbsian.models.base import Model

Part = TypeVar("Part")


@dataclass(frozen=True)
class Rebuilt(Generic[Part]):
    """A part of a state that ``init`` makes from model and data alone, so that a checkpoint leaves it out."""

    value: Part


@runtime_checkable
class Expectation(Protocol):
    """Takes the expected statistics of a model, carrying a state (chains, messages) from one call to the next.

    Examples
    --------
    >>> import gibbsian as gb
    >>> isinstance(gb.expectations.MonteCarlo(), gb.expectations.Expectation)
    True
    """

    def init(self, model: Model[Any], data: Any, rng: np.random.Generator) -> Any:
        """Return the state that the first call needs."""

    def __call__(self, model: Model[Any], state: Any) -> tuple[Estimate, Any]:
        """Return the expectation under `model` and the state for the next call."""
