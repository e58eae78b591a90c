"""Rows of a restricted machine with missing cells, summed out where few enough.

Given the present cells of a row, its missing cells and the hidden units form a smaller restricted machine, so either of
the two may be enumerated and the other summed in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import MissingValuesError, TooExpensiveError
from gibbsian.models.layers import Layer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.startup import logsumexp

# States of missing cells or hidden units that are summed for one row.
MOST_STATES = 2**16
ROWS_AT_ONCE = 4096


def layer_evidence(model: RestrictedModel, data: Dataset) -> np.ndarray:
    """Return ``log P(present cells) + log Z`` of each state: missing cells and hidden units are summed out."""
    evidence = np.empty(data.n_states)
    holes = incomplete_states(data)
    whole = np.setdiff1d(np.arange(data.n_states), holes)
    for start in range(0, len(whole), ROWS_AT_ONCE):
        block = whole[start : start + ROWS_AT_ONCE]
        evidence[block] = model.log_weights(data.states[block])
    if not holes.size:
        return evidence
    sums, missing = LayerRowSums(model), np.asarray(data.missing)
    check_discrete(model.visible.part(np.asarray(missing.any(axis=0))))
    for state in holes:
        if not sums.in_reach(missing[state]):
            row = int(np.flatnonzero(data.row_of == state)[0])
            raise TooExpensiveError(
                f"row {row} lacks {int(missing[state].sum())} cells, too many to sum over beside "
                f"{model.hidden.n_units} hidden units",
                "leave the row out, or fill its cells first (impute samples them)",
            )
        evidence[state] = sums.log_evidence(data.states[state], missing[state])
    return evidence


def incomplete_states(data: Dataset) -> np.ndarray:
    """Return the numbers of the states that lack cells."""
    return np.flatnonzero(data.missing.any(axis=1)) if data.missing is not None else np.empty(0, dtype=np.int64)


def check_discrete(layer: Layer) -> None:
    """Refuse missing cells of real numbers, which are not summed over."""
    if not np.isfinite(layer.n_states):
        raise MissingValuesError("missing cells of Gaussian units cannot be treated as hidden units", "fill them first")


@dataclass
class LayerRowSums:
    """Sums over the missing cells and the hidden units of single rows."""

    model: RestrictedModel

    def in_reach(self, missing: np.ndarray) -> bool:
        """Say whether a row without some cells can be summed."""
        return min(self.model.visible.part(missing).n_states, self.model.hidden.n_states) <= MOST_STATES

    def log_evidence(self, states: np.ndarray, missing: np.ndarray) -> float:
        """Return the log-weight of a row, summed over its missing cells and the hidden units."""
        return float(logsumexp(self._terms(states, missing)[0]))

    def means(self, states: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected values of the visible and of the hidden units."""
        log_weights, visible, hidden = self._terms(states, missing)
        shares = np.exp(log_weights - logsumexp(log_weights))
        return shares @ visible, shares @ hidden

    def _terms(self, states: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log-weights of the states that are listed, and the values or means of both layers at each."""
        model, part = self.model, self.model.visible.part(missing)
        holes = model.visible.spread(missing)
        row = model.visible.encode(np.where(missing, states.dtype.type(0), states)[None])[0]
        if part.n_states <= model.hidden.n_states:
            values = np.tile(row, (int(part.n_states), 1))
            values[:, holes] = part.enumerate(0, int(part.n_states))
            return model.value_log_weights(values), values, model.hidden_means(values)
        h, fields, linear = self._hidden_states
        present = fields[:, ~holes] @ row[~holes]
        visible = np.where(holes, model.visible.means(fields), row)
        return linear + present + part.log_normaliser(fields[:, holes]), visible, h

    @cached_property
    def _hidden_states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All hidden states, the visible fields at each, and the log-weights of the hidden biases."""
        model = self.model
        h = model.hidden.enumerate(0, int(model.hidden.n_states))
        return h, model.visible_fields(h), h @ model.hidden_biases / model.temperature
