"""A number, or an array of numbers, and how well it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.display import Shown


@dataclass(frozen=True, repr=False)
class Estimate(Shown):
    """A number, or an array of numbers, with its standard error.

    Parameters
    ----------
    value : float or ndarray
        What is estimated: information in nats, or expected statistics in the layout of theta.
    stderr : float, ndarray or None, default=0.0
        Its standard error; zero where it is exact, None where it is not known.
    parts : mapping
        What else the method tells, by name: ``"log_partition"`` is an estimate of log Z, or in a clamped phase of the
        mean log-evidence of the rows; others are diagnostics of the method.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimate import Estimate
    >>> Estimate(0.5, 0.01)
    Estimate(value=0.5, standard_error=0.01)
    >>> float(Estimate(0.5)), Estimate(np.array([0.5])).is_exact, Estimate(0.5, None).is_exact
    (0.5, True, False)
    """

    value: Any
    stderr: Any = 0.0
    parts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("value", "stderr"):  # a number is Python's, also where NumPy has computed it
            if isinstance(number := getattr(self, name), np.generic):
                object.__setattr__(self, name, number.item())

    def _facts(self) -> dict[str, object]:
        facts: dict[str, object] = {"value": self.value}
        if np.ndim(self.value):
            ends = f"{self.value.min():.4g} and {self.value.max():.4g}" if self.value.size else None
            facts = {"numbers": self.value.size, "between": ends}
        error = "not known" if self.stderr is None else float(np.max(self.stderr, initial=0.0))
        facts["largest standard error" if np.ndim(self.value) else "standard error"] = error
        if "log_partition" in self.parts:
            facts["log Z"] = float(self.parts["log_partition"])
        return facts

    def __float__(self) -> float:
        return float(self.value)

    @property
    def is_exact(self) -> bool:
        """Whether every standard error is zero."""
        return self.stderr is not None and not np.any(self.stderr)

    @property
    def monte_carlo_error(self) -> Any:
        """The standard error of each number as far as it comes from sampling: zeros where it is not known."""
        return np.broadcast_to(0.0 if self.stderr is None else self.stderr, np.shape(self.value))
