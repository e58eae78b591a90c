"""Curves of the training of machines of layers, of rows of the fit and of rows held out. They are drawn where asked."""

from __future__ import annotations

import numpy as np

from gibbsian.arrays import Floats, States
from gibbsian.data import Dataset
from gibbsian.inference import exact, is_affordable
from gibbsian.learning.imputation import BatchRows
from gibbsian.learning.layer_fits import as_layers, scale_of
from gibbsian.learning.run import Run
from gibbsian.models.base import Model, StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import columns_of, value_tables
from gibbsian.startup import log_softmax

# Rows that are scored: so many that products of visible and hidden units stay below this.
MAX_PRODUCTS, MIN_ROWS, MAX_ROWS = 5e7, 50, 1000
# log Z is summed after every epoch where it takes no longer.
QUICK_SECONDS = 0.05


class RowScore:
    """The mean log-pseudolikelihood of some rows under a restricted machine; of real numbers minus the squared error.

    The rows are always the same ones, so that curves are smooth. Missing cells are given and not scored.
    """

    def __init__(self, rows: BatchRows, family: StackFamily):
        visible, hidden = family.layers
        n_rows = int(np.clip(MAX_PRODUCTS / (visible.width * hidden.width), MIN_ROWS, MAX_ROWS))
        self.rows, self.family = rows, family
        self.places = np.arange(0, rows.n_rows, -(-rows.n_rows // n_rows))
        shares = rows.data.shares[self.places]
        self.shares = shares / shares.sum()
        self.missing = rows.missing(self.places)

    def __call__(self, parts: StackParts, imputed: States) -> float:
        """Return the mean over the rows."""
        values = self.rows.values(self.family.layers[0], self.places, imputed, np.dtype(np.float64))
        if self.family.layers[0].variables.real:
            again = self.family.means(parts, 0, self.family.means_of_side(parts, 1, [values, None]))
            return -float(self.shares @ np.square(values - again).mean(axis=1))
        scores = cell_scores(self.family, parts, values)
        if self.missing is None:
            return float(self.shares @ scores.sum(axis=1))
        shown = self.shares[:, None] * ~self.missing
        return scores.shape[1] * float((shown * scores).sum() / max(shown.sum(), 1e-300))


def curve_of(family: StackFamily) -> tuple[str, float]:
    """Return the name of what an epoch is scored by, and the sign that turns the score into it."""
    if len(family.layers) > 2:
        return "log_reconstruction", 1.0
    return ("reconstruction_error", -1.0) if family.layers[0].variables.real else ("log_pseudolikelihood", 1.0)


def cell_scores(family: StackFamily, parts: StackParts, values: Floats) -> Floats:
    """Return ``log P(v_i | all others)`` of each unit of each row, for a discrete visible layer.

    A binary unit that holds a probability is scored by the mean over its two values.
    """
    (visible, hidden), ((biases, _), (weights,)) = family.layers, parts
    fields = family.fields(parts, 1, [values, None])
    scores = np.empty((len(values), visible.n_units))
    for unit, (at, table) in enumerate(zip(columns_of(visible), value_tables(visible), strict=True)):
        own, ones = values[:, at], np.ones((len(table), 1))
        without = fields - own @ weights[at]
        logs = [row @ biases[at] + hidden.log_normaliser(without + row @ weights[at]) for row in table]
        # how much each value of the unit counts: whole, unless the unit holds a probability
        shares = np.column_stack([own, np.ones(len(own))]) @ np.linalg.pinv(np.hstack([table, ones]))
        scores[:, unit] = (shares * log_softmax(np.column_stack(logs), axis=1)).sum(axis=1)
    return scores


class HeldOutCurves:
    """Follow rows that a fit does not see beside those it does: figures for `gibbsian.learning.callbacks.Monitor`.

    The gap of the mean free energies needs no partition function: when it grows, the machine has begun to learn its
    rows by heart (Hinton 2012). Where log Z is quickly summed, the likelihoods of both too. Rows with missing cells are
    left aside, and of many an even selection is taken.
    """

    def __init__(self, training: Dataset, held_out: Dataset):
        self.shown = [_selected(part) for part in (training, held_out)]

    def __call__(self, run: Run) -> dict[str, float]:
        """Return the figures of the model as a run has it."""
        training, held_out = self.shown
        if training is None or held_out is None:
            return {}
        model, _ = as_layers(run.fitted(), training)
        if len(model.family.layers) > 2:
            return {}
        if (scale := scale_of(model, training)) is not None:
            model = scale.from_data(model)
            training, held_out = scale.standard(training), scale.standard(held_out)
        name, sign = curve_of(model.family)
        rows = [BatchRows(part) for part in (training, held_out)]
        score, held_out_score = (sign * RowScore(part, model.family)(model.parts, np.empty(0)) for part in rows)
        figures = {} if name in run.curves else {name: score}
        seen, unseen = (_mean_evidence(model, part) for part in rows)
        figures |= {f"held_out_{name}": held_out_score, "free_energy_gap": seen - unseen}
        if is_affordable(model.family, QUICK_SECONDS):
            log_z = exact(model).log_partition
            figures |= {"log_likelihood": seen - log_z, "held_out_log_likelihood": unseen - log_z}
        return figures


def _mean_evidence(model: Model[StackFamily], rows: BatchRows) -> float:
    """Return the mean log-weight of complete rows, the hidden units summed out."""
    values = model.family.layers[0].encode(rows.states(np.arange(rows.n_rows), np.empty(0)))
    return float(rows.data.shares @ model.family.log_evidence(model.theta, values))


def _selected(data: Dataset) -> Dataset | None:
    """Return complete rows, not too many; None where there are none."""
    complete = np.arange(data.n_rows)
    if data.missing is not None:
        complete = np.flatnonzero(~data.missing[data.row_of].any(axis=1))
    return data.take(complete[:: -(-len(complete) // MAX_ROWS)]) if len(complete) else None
