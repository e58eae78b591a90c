"""What is told while a machine of layers learns: likelihoods of rows held out, and a line for each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.inference import exact, is_affordable
from gibbsian.layered.filling import Filling
from gibbsian.layered.monitors import Watched
from gibbsian.layered.rows import LayerRows
from gibbsian.models.restricted import RestrictedModel

# log Z is summed after every epoch where it takes no longer.
QUICK_SECONDS = 0.05
MOST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class HeldOutCurves:
    """Follow rows that a fit does not see, beside those it does: a monitor of `RestrictedLearner`.

    Rows with missing cells are left aside.

    Parameters
    ----------
    training, held_out : LayerRows
        The rows; of many an even selection is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.layered_curves import HeldOutCurves
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rows = LayerRows(np.eye(2))
    >>> found = HeldOutCurves(rows, rows)(RestrictedModel.build(BinaryLayer(2), BinaryLayer(1)))
    >>> sorted(found)
    ['free_energy_gap', 'held_out_log_likelihood', 'held_out_log_pseudolikelihood', 'log_likelihood']
    """

    training: LayerRows
    held_out: LayerRows

    @cached_property
    def _shown(self) -> tuple[LayerRows, LayerRows] | None:
        """Complete rows of both, not too many; None where one has none."""
        parts = [_selected(part) for part in (self.training, self.held_out)]
        return None if parts[0] is None or parts[1] is None else (parts[0], parts[1])

    @cached_property
    def _watched(self) -> Watched | None:
        return None if self._shown is None else Watched(Filling(self._shown[1]))

    def __call__(self, model: RestrictedModel) -> dict[str, float]:
        """Return the figures of a model."""
        if self._shown is None or self._watched is None:
            return {}
        seen, unseen = (float(p.shares @ model.log_weights(p.states)) for p in self._shown)
        own = self._watched(model, np.empty(0))
        figures = {f"held_out_{name}": value for name, value in own.items()}
        figures["free_energy_gap"] = model.temperature * (seen - unseen)
        if is_affordable(model, QUICK_SECONDS):
            log_z = exact(model).log_partition()
            figures |= {"log_likelihood": seen - log_z, "held_out_log_likelihood": unseen - log_z}
        return figures


def _selected(rows: LayerRows) -> LayerRows | None:
    whole = np.arange(rows.n_rows) if rows.missing is None else np.flatnonzero(~rows.missing.any(axis=1))
    if not len(whole):
        return None
    chosen = rows.take(whole[:: -(-len(whole) // MOST_ROWS)])
    return LayerRows(chosen.states, chosen.weights)
