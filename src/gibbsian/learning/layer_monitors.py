"""Figures that are kept after every epoch of a restricted machine, to see how training goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.data import Dataset
from gibbsian.inference import exact, is_affordable
from gibbsian.learning.filling import EpochRows
from gibbsian.models.base import StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import CategoricalUnits
from gibbsian.startup import log_softmax

# Rows that the figures are computed from: enough for two digits of a mean, few enough to cost less than an epoch.
WATCHED_ROWS = 1000
# Of each row as many units are scored as so many products of visible and hidden units allow, and at least some.
MOST_PRODUCTS = 5e7
LEAST_UNITS = 4
# log Z is summed after every epoch where it takes no longer.
QUICK_SECONDS = 0.05


class Watched:
    """Some rows, scored after every epoch: pseudolikelihood, or for numbers the error of reconstruction.

    The pseudolikelihood is that of all observed units where this is cheap, else it is estimated from some units of each
    row: always the same ones, so that curves are smooth, and the same ones whatever the rows, so that those of training
    and held-out rows differ by the rows alone.
    """

    def __init__(self, rows: EpochRows, family: StackFamily):
        # generators of its own: what is watched must not change what is learned, nor differ in a resumed run
        n_units, n_rows = family.layers[0].n_units, min(WATCHED_ROWS, rows.n_rows)
        self.rows, self.family = rows, family
        gaussian = family.layers[0].variables.real
        self.name, self.sign = ("reconstruction_error", 1) if gaussian else ("log_pseudolikelihood", -1)
        self.places = np.random.default_rng(0).choice(rows.n_rows, n_rows, replace=False)
        shares = rows.data.shares[self.places]
        self.shares = shares / shares.sum() if shares.any() else np.full(n_rows, 1.0 / n_rows)
        one_unit = n_rows * n_units * family.n_hidden
        n_scored = int(np.clip(MOST_PRODUCTS // max(one_unit, 1), LEAST_UNITS, n_units))
        order = np.random.default_rng(1).random((n_rows, n_units)).argsort(axis=1)
        self.units = order[:, :n_scored].T
        missing = rows.missing(self.places)
        self.shown = np.ones(self.units.shape) if missing is None else ~missing[np.arange(n_rows), self.units]

    def __call__(self, parts: StackParts, filled: np.ndarray) -> float:
        """Return the figure, given what stands in missing cells."""
        shares, family = self.shares, self.family
        if family.layers[0].variables.real:
            values = self._values(filled)
            again = family.means(parts, 0, family.means_of_side(parts, 1, [values, None]))
            return float(shares @ np.square(values - again).mean(axis=1))
        found = zip(self._scores(parts, filled), self.shown, strict=True)
        scores = sum(shown * of_units for of_units, shown in found)
        weights = self.shown @ shares
        return family.layers[0].n_units * float(shares @ scores) / float(weights.sum() or 1.0)

    def _values(self, filled: np.ndarray) -> np.ndarray:
        return self.rows.values(self.family.layers[0], self.places, filled, np.dtype(np.float64))

    def _scores(self, parts: StackParts, filled: np.ndarray) -> Iterable[np.ndarray]:
        """Return the log-probabilities of a unit of each row, for each row of `units`."""
        there, found = twin("layer_programs"), None
        if there is not None:
            owner = self if self.rows.data.missing is None else None  # rows without holes stay as they are
            found = there.unit_scores(owner, self.family, parts, lambda: self._values(filled), self.units)
        if found is not None:
            return found
        values = self._values(filled)
        return (unit_log_probabilities(self.family, parts, values, units) for units in self.units)


class HeldOutCurves:
    """Follow rows that a fit does not see beside those it does: figures for `gibbsian.learning.callbacks.Monitor`.

    The gap of the mean free energies needs no partition function: when it grows, the machine has begun to learn its
    rows by heart (Hinton 2012). Where log Z is quickly summed, the likelihoods of both too. Rows with missing cells are
    left aside, and of many an even selection is taken.
    """

    def __init__(self, training: Dataset, held_out: Dataset):
        self.shown = [_selected(part) for part in (training, held_out)]
        self.watched: Watched | None = None

    def __call__(self, run: Any) -> dict[str, float]:
        """Return the figures of the model as a run has it."""
        if None in self.shown:
            return {}
        problem, theta = run.fit.problem, run.state.theta
        family = problem.model.family
        parts, rows = family.split(theta), [EpochRows(problem.in_units(part)) for part in self.shown]
        if self.watched is None:
            self.watched = Watched(rows[1], family)
        seen, unseen = (_mean_evidence(family, theta, own) for own in rows)
        figures = {f"held_out_{self.watched.name}": self.watched(parts, np.empty(0)), "free_energy_gap": seen - unseen}
        if is_affordable(family, QUICK_SECONDS):
            log_z = exact(problem.here(run.state)).log_partition
            figures |= {"log_likelihood": seen - log_z, "held_out_log_likelihood": unseen - log_z}
        return figures


def _mean_evidence(family: StackFamily, theta: np.ndarray, rows: EpochRows) -> float:
    """Mean log-weight of complete rows, the hidden units summed out."""
    values = family.layers[0].encode(rows.states(np.arange(rows.n_rows), np.empty(0)))
    return float(rows.data.shares @ family.log_evidence(theta, values))


def _selected(data: Dataset) -> Dataset | None:
    """Complete rows, not too many; None where there are none."""
    whole = np.arange(data.n_rows)
    if data.missing is not None:
        whole = np.flatnonzero(~data.missing[data.row_of].any(axis=1))
    return data.take(whole[:: -(-len(whole) // WATCHED_ROWS)]) if len(whole) else None


def unit_log_probabilities(family: StackFamily, parts: StackParts, values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return ``log P(v_i | all others)`` of one unit of each row, for a discrete visible layer.

    A binary unit that holds a probability is scored by the mean over its two values.
    """
    layer = family.layers[0]
    shares = _shares_of_values(layer, values, units)
    log_weights = np.full(shares.shape, -np.inf)
    for k in range(shares.shape[1]):
        possible = ~np.isnan(shares[:, k])
        other = values[possible].copy()
        _set_unit(layer, other, units[possible], k)
        log_weights[possible, k] = family.log_weights_of_side(parts, 0, [other, None])
    scores = log_softmax(log_weights, axis=1)
    return np.multiply(shares, scores, where=shares > 0, out=np.zeros_like(scores)).sum(axis=1)


def _shares_of_values(layer: Any, values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return which value one unit of each row has, as a share for each value; NaN where there is no such value."""
    here = np.arange(len(values))
    if isinstance(layer, CategoricalUnits):
        sizes = np.asarray(layer.sizes)
        shares = np.full((len(values), sizes.max()), np.nan)
        for k in range(sizes.max()):
            has = sizes[units] > k
            shares[has, k] = values[here[has], layer.edges[units[has]] + k]
        return shares
    up = (values[here, units] - layer.low) / (1.0 - layer.low)
    return np.column_stack([1.0 - up, up])


def _set_unit(layer: Any, values: np.ndarray, units: np.ndarray, k: int) -> None:
    """Give one unit of each row its value number `k`, in place."""
    here = np.arange(len(values))
    if isinstance(layer, CategoricalUnits):
        values[np.repeat(np.arange(layer.n_units), layer.sizes) == units[:, None]] = 0.0
        values[here, layer.edges[units] + k] = 1.0
    else:
        values[here, units] = (layer.low, 1.0)[k]
