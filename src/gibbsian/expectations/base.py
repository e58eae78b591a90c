"""The contract every expectation keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from gibbsian.display import Shown
from gibbsian.models.base import Model
from gibbsian.registry import Registry

EXPECTATIONS = Registry("expectation", "gibbsian.expectations", "EXPECTATIONS")

Part = TypeVar("Part")


@dataclass(frozen=True, repr=False)
class Estimate(Shown):
    """The expected statistics of a model, in the layout of theta.

    Parameters
    ----------
    mean : ndarray
        Expected statistics.
    stderr : ndarray
        Standard error of each; zeros when the expectation is exact.
    log_partition : float, optional
        log Z, where the method gives it.
    diagnostics : mapping
        Whatever else the method has to say, by name; ``"approximate"`` where its error is not known.
    log_partition_stderr : float
        Standard error of `log_partition`; zero when it is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.expectations import Estimate
    >>> Estimate(mean=np.array([0.5]), stderr=np.zeros(1)).is_exact
    True
    """

    mean: np.ndarray
    stderr: np.ndarray
    log_partition: float | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    log_partition_stderr: float = 0.0

    def _facts(self) -> dict[str, Any]:
        rough = self.diagnostics.get("approximate", False)
        return {
            "statistics": self.mean.size,
            "between": None if not self.mean.size else f"{self.mean.min():.4g} and {self.mean.max():.4g}",
            "largest standard error": "not known" if rough else float(np.max(self.stderr, initial=0.0)),
            "exact": self.is_exact,
            "log Z": self.log_partition,
        }

    @property
    def is_exact(self) -> bool:
        """Whether every standard error is zero, and no other error is made."""
        return not np.any(self.stderr) and not self.diagnostics.get("approximate", False)


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

    def init(self, model: Model, data: Any, rng: np.random.Generator) -> Any:
        """Return the state that the first call needs."""

    def __call__(self, model: Model, state: Any) -> tuple[Estimate, Any]:
        """Return the expectation under `model` and the state for the next call."""
