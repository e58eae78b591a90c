"""The contract every expectation keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gibbsian.models.base import Model
from gibbsian.registry import Registry

EXPECTATIONS = Registry("expectation", "gibbsian.expectations")


@dataclass(frozen=True)
class Estimate:
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
        Whatever else the method has to say, by name.

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

    @property
    def is_exact(self) -> bool:
        """Whether every standard error is zero."""
        return not np.any(self.stderr)


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
