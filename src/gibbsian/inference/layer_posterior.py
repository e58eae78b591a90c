"""Posteriors of machines with two layers: missing cells and hidden units summed out exactly.

Given the present cells of a row, its missing cells and the hidden units are a smaller restricted machine: one side is
enumerated, and the other is summed in closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, Slice, States
from gibbsian.backends.parallel import map_in_order
from gibbsian.errors import MissingValuesError
from gibbsian.inference.completions import count_completions
from gibbsian.inference.posterior import POSTERIORS, InParts, Split
from gibbsian.models.base import Units
from gibbsian.models.layers.units import count_states, enumerate_values, spread
from gibbsian.models.rows import patterns_of
from gibbsian.resources import LEAST_ROWS, row_blocks, spans

# Maximum number of states that are enumerated for a row.
MAX_STATES = 2**16
# Number of complete rows in a block.
ROWS_AT_ONCE = 4096
# Seconds for one parameter and one enumerated state of a row.
PARAMETER_SECONDS = 2e-9


class PartsOfRows(Protocol):
    """The parameters of a hidden layer and of the shown ones below it, in which hidden units are independent."""

    def upward(self) -> tuple[Floats, Floats]:
        """Return the biases of the hidden units, and the weights from the shown ones."""

    def linear_form(self, v: Floats) -> tuple[Floats, Floats]:
        """Return what of each row's log-weight is linear in the last shown layer, and its derivative by each value."""

    def gather(self, v: Floats, present: Floats, hidden: Floats, products: Floats) -> Floats:
        """Return statistics from weighted expected values of each row, and sums over rows of h and of ``v h^T``."""


class LayersOfRows(Protocol):
    """A family of layers: rows show all but the last one, whose units are independent given the others."""

    @property
    def layers(self) -> tuple[Units, ...]:
        """All layers."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""

    def split(self, theta: Floats) -> PartsOfRows:
        """Return named views of theta."""

    def log_evidence(self, theta: Floats, v: Floats) -> Floats:
        """Return the log-weight of complete rows of values, the hidden units summed out."""


class _Sums(NamedTuple):
    """Of some rows: values, log-evidence, weighted expected values of the shown and hidden units, sum of ``v h^T``."""

    values: Floats
    evidence: Floats
    present: Floats
    hidden: Floats
    products: Floats


@dataclass(frozen=True, eq=False)
class LayerRows:
    """Rows of a machine with two layers that have the same missing cells (see `Posterior`).

    Parameters
    ----------
    family : LayersOfRows
        A stack of two layers, or a conditional family.
    x : ndarray of shape (n_rows, n_units)
        The rows.
    cells : ndarray of bool, shape (n_units,)
        Mask of the missing cells, which are in the last shown layer.
    """

    family: LayersOfRows
    x: States
    cells: Mask

    @cached_property
    def _layers(self) -> list[tuple[Units, Slice]]:
        """The shown layers, and their units."""
        below = self.family.layers[:-1]
        return list(zip(below, spans(layer.n_units for layer in below), strict=True))

    @cached_property
    def _missing(self) -> Mask:
        """Mask of the columns of values of the missing units."""
        return np.concatenate([spread(layer, self.cells[at]) for layer, at in self._layers])

    @cached_property
    def _sides(self) -> tuple[Units, Units]:
        """The units that are enumerated, and those that are summed out: the missing and the hidden ones."""
        hidden, (layer, at) = self.family.layers[-1], self._layers[-1]
        sides = layer.take(np.flatnonzero(self.cells[at])), hidden
        return sides if count_states(sides[:1]) <= count_states(sides[1:]) else sides[::-1]

    @cached_property
    def _states(self) -> Floats:
        """The values of the enumerated units in all their states."""
        return enumerate_values(self._sides[:1], 0, int(count_states(self._sides[:1])))[0]

    @property
    def _over_hidden(self) -> bool:
        return self._sides[0] is self.family.layers[-1]

    def _encode(self, block: Slice) -> Floats:
        """Return the values of some rows, zero at missing cells."""
        codes = self.x[block].copy()
        codes[:, self.cells] = 0
        values: Floats = np.hstack([layer.encode(codes[:, at]) for layer, at in self._layers])
        values[:, self._missing] = 0.0
        return values

    @cached_property
    def _values(self) -> Floats:
        return self._encode(slice(0, len(self.x)))

    @property
    def _blocks(self) -> list[Slice]:
        n_cells = len(self._states) * max(1, self.family.layers[-1].width) + len(self._missing)
        return list(row_blocks(len(self.x), n_cells, least_rows=max(1, LEAST_ROWS // len(self._states))))

    @property
    def seconds(self) -> float:
        """Predicted time of one evaluation."""
        return PARAMETER_SECONDS * self.family.n_parameters * len(self.x) * len(self._states)

    def log_evidence(self, theta: Floats) -> Floats:
        """Return the log of each row's weight, summed over its missing cells and the hidden units."""
        if not self.cells.any():
            blocks = row_blocks(len(self.x), 1, max_cells=ROWS_AT_ONCE)
            rows = (self.family.log_evidence(theta, self._encode(block)) for block in blocks)
        else:
            parts = self.family.split(theta)
            logs = (self._log_weights(parts, self._values[block])[0] for block in self._blocks)
            rows = (np.logaddexp.reduce(each, axis=1) for each in logs)
        return np.concatenate([np.empty(0), *rows])

    def expect(self, theta: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return each row's log-evidence, and the weighted sum of their expected statistics."""
        evidence, statistics = np.empty(len(self.x)), np.zeros(self.family.n_parameters)
        parts = self.family.split(theta)
        for block, sums in self._sums(theta, weights):
            evidence[block] = sums.evidence
            statistics += parts.gather(sums.values, sums.present, sums.hidden.sum(axis=0), sums.products)
        return evidence, statistics

    def cell_probabilities(self, theta: Floats) -> Floats:
        """Return the probabilities of the values of all units, in the columns of the layers; means of real units."""
        blocks = self._sums(theta, np.ones(len(self.x)))
        means = np.vstack([np.hstack([sums.present, sums.hidden]) for _, sums in blocks])
        spins = np.concatenate([np.full(layer.width, layer.kind == "spin") for layer in self.family.layers])
        return np.where(spins, 0.5 * (1.0 + means), means)

    def _sums(self, theta: Floats, weights: Floats) -> Iterator[tuple[Slice, _Sums]]:
        sums_of = partial(self._sums_of, self.family.split(theta), weights)
        return zip(self._blocks, map_in_order(sums_of, self._blocks), strict=True)

    def _sums_of(self, parts: PartsOfRows, weights: Floats, block: Slice) -> _Sums:
        values, summed_out = self._values[block], self._sides[1]
        logs, fields = self._log_weights(parts, values)
        evidence = np.logaddexp.reduce(logs, axis=1)
        posterior: Floats = np.exp(logs - evidence[:, None]) * weights[block, None]
        means: Floats = posterior[:, :, None] * summed_out.means(fields).reshape(*posterior.shape, summed_out.width)
        filled, hidden, joint = posterior @ self._states, means.sum(axis=1), self._states.T @ means.sum(axis=0)
        if self._over_hidden:
            filled, hidden, joint = hidden, filled, joint.T
        present, products = values * weights[block, None], values.T @ hidden
        present[:, self._missing], products[self._missing] = filled, joint
        return _Sums(values, evidence, present, hidden, products)

    def _log_weights(self, parts: PartsOfRows, values: Floats) -> tuple[Floats, Floats]:
        """Return the log-weights of rows and enumerated states, and the fields of the units that are summed out."""
        (biases, weights), (constants, slopes), last = parts.upward(), parts.linear_form(values), self._layers[-1][0]
        constants = constants + last.log_measure(values[:, values.shape[1] - last.width :])
        summed_out, shape = self._sides[1], (len(values), len(self._states))
        # fields of the enumerated units from the row, of the others from the row, and couplings of both
        given, fields, couplings = slopes[:, self._missing], values @ weights + biases, weights[self._missing]
        if self._over_hidden:
            given, fields, couplings = fields, given, couplings.T
        fields = np.broadcast_to(fields[:, None] + self._states @ couplings, (*shape, summed_out.width))
        fields = fields.reshape(shape[0] * shape[1], summed_out.width)  # a side without units has no width
        logs = constants[:, None] + given @ self._states.T + summed_out.log_normaliser(fields).reshape(shape)
        return logs, fields


@POSTERIORS.register("layered")
def split_layers(family: LayersOfRows, x: States, missing: Mask | None) -> Split:
    """Bind the rows whose missing units, or whose hidden units, have few states; refuse missing real cells."""
    below, mask = family.layers[:-1], np.zeros(x.shape, bool) if missing is None else missing
    units, last = spans(layer.n_units for layer in below), below[-1]
    assert units[-1].stop == x.shape[1]  # deep machines have bounds alone
    if any(layer.variables.real and mask[:, at].any() for layer, at in zip(below, units, strict=True)):
        raise MissingValuesError("missing cells of Gaussian units cannot be treated as hidden units", "fill them first")
    light, complete = np.ones(len(x), bool), ~mask.any(axis=1)
    if not last.variables.real and count_states(family.layers[-1:]) > MAX_STATES:
        light = count_completions(last.variables, mask[:, units[-1]], len(x)) <= MAX_STATES
    incomplete = np.flatnonzero(light & ~complete)
    groups: list[tuple[Integers, Mask]] = [(np.flatnonzero(complete), np.zeros(x.shape[1], bool))]
    if incomplete.size:
        groups += [(incomplete[rows], cells) for rows, cells in patterns_of(x[incomplete], mask[incomplete])]
    index = np.cumsum(light) - 1
    parts = ((index[rows], LayerRows(family, x[rows], cells)) for rows, cells in groups if len(rows))
    return Split(np.flatnonzero(light), InParts([*parts]), np.flatnonzero(~light))
