"""What a fit of the full-span model did, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

KINDS = ("stop", "append", "adjust", "remove", "refit", "prune", "restart", "keep", "fill")


@dataclass(frozen=True)
class SpanStep:
    """One step.

    Parameters
    ----------
    kind : str
        ``append``, ``adjust`` or ``remove`` one function (TA22 section 2.2); ``refit`` all by Newton's
        method, ``prune`` several; ``restart`` from nothing to try another road, ``keep`` the better of both;
        ``fill`` missing cells anew; ``stop``: nothing gains enough.
    index : int
        Which function; -1 where several or none.
    gain : float
        By how much the cost fell.
    cost : float
        The cost after the step; with missing cells an upper bound of it, which every fill makes tight, and before the
        first fill that of the complete rows.
    n_functions : int
        How many functions the model has after the step.

    Examples
    --------
    >>> from gibbsian.full_span import SpanStep
    >>> SpanStep("append", 3, 0.1, 0.5, 1).kind
    'append'
    """

    kind: str
    index: int
    gain: float
    cost: float
    n_functions: int


@dataclass
class SpanTrace:
    """All steps of a fit.

    Parameters
    ----------
    steps : list of SpanStep
        In order.

    Examples
    --------
    >>> from gibbsian.full_span import SpanStep, SpanTrace
    >>> trace = SpanTrace([SpanStep("append", 3, 0.1, 0.5, 1)])
    >>> SpanTrace.from_array(trace.to_array()) == trace
    True
    """

    steps: list[SpanStep] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.steps)

    def to_array(self) -> np.ndarray:
        """Return the steps as rows of numbers, for files; kinds by their place in `KINDS`."""
        rows = [(KINDS.index(s.kind), s.index, s.gain, s.cost, s.n_functions) for s in self.steps]
        return np.array(rows, dtype=np.float64).reshape(-1, 5)

    @classmethod
    def from_array(cls, rows: np.ndarray) -> SpanTrace:
        """Return the trace that `to_array` wrote."""
        return cls([SpanStep(KINDS[int(k)], int(y), float(g), float(c), int(n)) for k, y, g, c, n in rows])
