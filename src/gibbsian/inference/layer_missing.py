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
from gibbsian.models.family import Model, Units
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import count_states, enumerate_values, spread, values_of
from gibbsian.startup import logsumexp

# States of missing cells or hidden units that are summed for one row.
MOST_STATES = 2**16
ROWS_AT_ONCE = 4096


def layer_evidence(model: Model[StackFamily], data: Dataset) -> np.ndarray:
    """Return ``log P(present cells) + log Z`` of each state: missing cells and hidden units are summed out."""
    evidence, (visible, hidden) = np.empty(data.n_states), model.family.layers
    holes = incomplete_states(data)
    whole = np.setdiff1d(np.arange(data.n_states), holes)
    for start in range(0, len(whole), ROWS_AT_ONCE):
        block = whole[start : start + ROWS_AT_ONCE]
        evidence[block] = model.family.log_evidence(model.theta, values_of(visible, data.states[block]))
    if not holes.size:
        return evidence
    sums, missing = LayerRowSums(model), np.asarray(data.missing)
    check_discrete(visible.take(np.flatnonzero(missing.any(axis=0))))
    for state in holes:
        if not sums.in_reach(missing[state]):
            row = int(np.flatnonzero(data.row_of == state)[0])
            raise TooExpensiveError(
                f"row {row} lacks {int(missing[state].sum())} cells, too many to sum over beside "
                f"{hidden.n_units} hidden units",
                "leave the row out, or fill its cells first (impute samples them)",
            )
        evidence[state] = sums.log_evidence(data.states[state], missing[state])
    return evidence


def incomplete_states(data: Dataset) -> np.ndarray:
    """Return the numbers of the states that lack cells."""
    return np.flatnonzero(data.missing.any(axis=1)) if data.missing is not None else np.empty(0, dtype=np.int64)


def check_discrete(layer: Units) -> None:
    """Refuse missing cells of real numbers, which are not summed over."""
    if layer.variables.real:
        raise MissingValuesError("missing cells of Gaussian units cannot be treated as hidden units", "fill them first")


@dataclass
class LayerRowSums:
    """Sums over the missing cells and the hidden units of single rows."""

    model: Model[StackFamily]

    def in_reach(self, missing: np.ndarray) -> bool:
        """Say whether a row without some cells can be summed."""
        visible, hidden = self.model.family.layers
        return min(count_states([visible.take(np.flatnonzero(missing))]), count_states([hidden])) <= MOST_STATES

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
        family, parts = self.model.family, self.model.parts
        visible, hidden = family.layers
        part, holes = visible.take(np.flatnonzero(missing)), spread(visible, missing)
        row = values_of(visible, np.where(missing, states.dtype.type(0), states)[None])[0]
        n_states = count_states([part])
        if n_states <= count_states([hidden]):
            values = np.tile(row, (int(n_states), 1))
            values[:, holes] = enumerate_values([part], 0, int(n_states))[0]
            both = [values, None]
            return family.log_weights_of_side(parts, 0, both), values, family.means(parts, 1, both)
        h, fields, linear = self._hidden_states
        present = fields[:, ~holes] @ row[~holes]
        means = np.where(holes, visible.means(fields), row)
        return linear + present + part.log_normaliser(fields[:, holes]), means, h

    @cached_property
    def _hidden_states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All hidden states, the visible fields at each, and the log-weights of the hidden biases."""
        family, parts = self.model.family, self.model.parts
        listed = family.states_of_side(1)
        return listed[1], family.fields(parts, 0, listed), listed[1] @ parts.biases[1]
