"""How much memory a fit of a machine of layers takes, asked for before it is taken."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsian.layered.monitors import WATCHED_ROWS
from gibbsian.layered.training import RestrictedLearner
from gibbsian.resources import require_memory

# Fields, means and draws of the rows that are treated together, and what they are made from.
COPIES_OF_ROWS = 6


def fit_memory(widths: Sequence[int], n_rows: int, learner: RestrictedLearner, copies: int) -> float:
    """Return the bytes of a fit besides the data.

    Parameters
    ----------
    widths : sequence of int
        Columns of the layers from the visible one.
    n_rows : int
        Rows of the data; a limited number of them is watched after every epoch.
    learner : RestrictedLearner
        For its chains and minibatches.
    copies : int
        Arrays of the size of the weights.

    Examples
    --------
    >>> from gibbsian.estimators.layered_memory import fit_memory
    >>> from gibbsian.layered.training import RestrictedLearner
    >>> fit_memory([2, 10**7], 50, RestrictedLearner(batch_size=10), copies=6) > 2**35     # a hundred chains
    True
    """
    phase: Any = learner.free_phase
    n_copies = int(np.size(phase.betas) if np.ndim(phase.betas) else phase.betas) if hasattr(phase, "betas") else 1
    together = min(WATCHED_ROWS, n_rows) + getattr(phase, "n_chains", 0) * n_copies + (learner.batch_size or 0)
    n_weights = sum(lower * upper for lower, upper in itertools.pairwise(widths))
    return 8.0 * (copies * n_weights + COPIES_OF_ROWS * together * float(sum(widths)))


def require_fit_memory(widths: Sequence[int], n_rows: int, learner: RestrictedLearner, copies: int) -> None:
    """Refuse a fit that would not fit the memory."""
    require_memory(
        fit_memory(widths, n_rows, learner, copies),
        f"fitting layers of {', '.join(f'{width:,}' for width in widths)} columns",
        "ask for fewer hidden units, or fewer chains (n_chains=)",
    )


__all__ = ["fit_memory", "require_fit_memory"]
