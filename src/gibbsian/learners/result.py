"""What a fit leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.models import Model
from gibbsian.optimizers import StepInfo

COLUMNS = ("step", "value", "gradient_norm", "step_size", "evaluations", "seconds")


@dataclass
class Trace:
    """One row per step: value, largest gradient entry, step size, evaluations so far, seconds so far.

    Examples
    --------
    >>> import gibbsian as gb
    >>> trace = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).result_.trace
    >>> trace.columns
    ('step', 'value', 'gradient_norm', 'step_size', 'evaluations', 'seconds')
    """

    rows: list[tuple[float, ...]] = field(default_factory=list)
    columns = COLUMNS

    def add(self, step: int, info: StepInfo, seconds: float) -> None:
        """Record one step."""
        self.rows.append((step, info.value, info.gradient_norm, info.step_size, info.evaluations, seconds))

    def column(self, name: str) -> np.ndarray:
        """Return one column as an array."""
        return np.array([row[self.columns.index(name)] for row in self.rows])

    def to_array(self) -> np.ndarray:
        """Return all rows as an array of shape (n_steps, 6)."""
        return np.array(self.rows, dtype=np.float64).reshape(-1, len(self.columns))

    @classmethod
    def from_array(cls, rows: np.ndarray) -> Trace:
        """Rebuild a trace from `to_array`."""
        return cls([tuple(row) for row in rows.tolist()])

    def to_frame(self) -> Any:
        """Return the trace as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.to_array(), columns=list(self.columns))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class FitResult:
    """A fitted model with the story of its fit.

    Parameters
    ----------
    model : Model
        The model at the last step.
    trace : Trace
        Every step.
    converged : bool
        Whether the gradient fell below the tolerance.
    reason : str
        Why the fit ended, in a sentence: what to do about it where it did not converge.
    provenance : dict
        Learner, version, rows, time: what a later reader wants to know.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).result_.reason
    'converged after 1 step: gradient 0'
    """

    model: Model
    trace: Trace
    converged: bool
    reason: str
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def n_steps(self) -> int:
        """Number of steps taken."""
        return len(self.trace)

    @property
    def seconds(self) -> float:
        """Time spent on the steps."""
        return self.trace.rows[-1][-1] if self.trace.rows else 0.0
