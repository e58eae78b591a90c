"""Scores of held-out rows, compared with those of the fitted rows and of independent columns."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.processes import map_fits
from gibbsian.data import Dataset
from gibbsian.errors import ConstantColumnError, GibbsianError, GibbsianWarning, MaximumDoesNotExistError
from gibbsian.learning.result import FitResult, HeldOut
from gibbsian.startup import clone

# Every row is scored by a fit that did not see it, to the other folds, where that takes no longer than so many seconds.
N_FOLDS = 3
PATIENT_SECONDS = 30.0
# Fewer rows say nothing about rows that were not seen.
FEWEST_ROWS = 20
# Pseudolikelihoods are means over rows; their standard error is that of the means of so many batches.
N_BATCHES = 10
# Fits that are only scored end earlier: closer to the maximum their scores no longer differ.
TRIAL_TOL = 1e-4
# The settings of fits that are made to be scored.
ALONE: dict[str, object] = {
    "validation_fraction": 0.0,
    "checkpoint": None,
    "callbacks": None,
    "verbose": 0,
    "random_state": 0,
}
PSEUDO = "log-pseudolikelihood"


def one_over(data: Any) -> float:
    """Return one over the number of rows: over their total weight, or, where weights add up to less, over Kish's size.

    Weights that count rows add up to their number. Those that are normalised do not, and say nothing of it; Kish's
    effective sample size, ``(sum w)^2 / sum w^2``, does not depend on their scale.
    """
    n_rows = float(data.total_weight)
    if not (data.on_disk or data.on_cluster):
        n_rows = max(n_rows, 1.0 / float(np.square(data.shares).sum()))
    return 1.0 / max(n_rows, 1.0)


def score_held_out(machine: Any, shown: Dataset, unseen: Dataset) -> HeldOut:
    """Score held-out rows, fitted rows and independent columns.

    Where the default penalty is stronger, a quick fit under it is scored too.
    """
    found, rows = _scored(machine, shown, unseen)
    if machine.result_.seconds > PATIENT_SECONDS or not machine.is_underpenalised(shown):
        return found
    try:
        other, others = _score_trial(machine, shown, unseen, 1.0)
    except GibbsianError:
        return found
    if other.kind != found.kind:
        return found
    stderr = _known(_stderr(rows - others, unseen.shares, found.kind))
    return found._replace(with_penalty=other.score, with_penalty_stderr=stderr)


def _scored(machine: Any, shown: Dataset, unseen: Dataset) -> tuple[HeldOut, np.ndarray]:
    """Return the scores, and what tells those of the unseen rows apart."""
    targets = machine._learner(machine.model_, shown).targets_in(shown)
    if targets is None:
        found = machine.score_or_pseudo_score(unseen)
    else:  # learned given the other columns
        score = machine.conditional_score(unseen, targets)
        found = HeldOut(score, "conditional log-likelihood", unseen.n_rows)
    rows = _row_scores(machine, unseen, found.kind, targets)
    independent = independent_scores(machine, shown, unseen, targets)
    found = found._replace(
        fitted=_fitted_score(machine, shown, unseen, found, targets),
        independent=_known(np.average(independent, weights=unseen.shares)),
        # a lower side below independent columns proves nothing
        stderr=None
        if found.kind.startswith("lower")
        else _known(_stderr(rows - independent, unseen.shares, found.kind)),
    )
    return found, rows


def _fitted_score(machine: Any, shown: Dataset, unseen: Dataset, found: HeldOut, targets: Any) -> float:
    """Return the score of the rows that were fitted, of the same kind as that of the others."""
    if found.kind == PSEUDO:
        return float(machine.pseudo_score(shown))
    if targets is not None:
        return float(machine.conditional_score(shown, targets))
    # both have the same log Z, which may be estimated and is then found once
    means = [np.average(machine._log_weights(rows), weights=rows.weights) for rows in (shown, unseen)]
    return float(found.score + means[0] - means[1])


def independent_scores(machine: Any, shown: Dataset, unseen: Dataset, targets: Any = None) -> np.ndarray:
    """Return the log-probability of each unseen row under independent columns with the margins of the rows shown.

    Counts begin at one for each value, so that a value that was not shown has a probability. Missing cells are left
    out. NaN where columns cannot be independent (directions), or have values of several kinds.
    """
    seen, left_out = shown.holes, unseen.holes
    columns = np.arange(unseen.n_variables) if targets is None else unseen.places(targets)
    total = np.zeros(unseen.n_states)
    if not machine.has_density or not machine.columns_may_be_independent or unseen.has_shares:
        return np.full(unseen.n_rows, np.nan)
    if unseen.states.dtype.kind == "i":
        for j in columns:
            codes, size = shown.states[~seen[:, j], j], unseen.variables.sizes[j]
            counts = np.bincount(codes, shown.weights[~seen[:, j]], minlength=size) + 1.0
            total += np.where(left_out[:, j], 0.0, np.log(counts / counts.sum())[unseen.states[:, j]])
    elif unseen.coding.name == "real" and isinstance(unseen.states, np.ndarray):
        for j in columns:
            values, weights = shown.states[~seen[:, j], j], shown.weights[~seen[:, j]]
            mean = np.average(values, weights=weights)
            variance = np.average((values - mean) ** 2, weights=weights)
            density = -0.5 * ((unseen.states[:, j] - mean) ** 2 / variance + np.log(2 * np.pi * variance))
            total += np.where(left_out[:, j], 0.0, density)
    else:
        total[:] = np.nan
    return total[unseen.row_of]


def _row_scores(machine: Any, data: Dataset, kind: str, targets: Any) -> np.ndarray:
    """Return what tells the rows' scores apart: log-weights, which lack log Z, or the mean of each row's batch."""
    if kind == PSEUDO:
        batch = np.arange(data.n_rows) % N_BATCHES
        return np.array([machine.pseudo_score(data.take(batch == k)) for k in range(batch.max() + 1)])[batch]
    log_weights = machine._log_weights(data)[data.row_of]
    if targets is None:
        return log_weights
    given = data.hide(targets)
    return log_weights - machine._log_weights(given)[given.row_of]


def _known(figure: float) -> float | None:
    """Return a figure; None for NaN."""
    return None if np.isnan(figure) else float(figure)


def _stderr(difference: np.ndarray, shares: np.ndarray, kind: str) -> float:
    """Return the standard error of the mean of a difference over rows."""
    group = np.arange(difference.size) % (N_BATCHES if kind == PSEUDO else difference.size)
    weight = np.bincount(group, shares)
    if weight.size < 2:
        return float("nan")
    spread = np.bincount(group, shares * difference) - weight * np.average(difference, weights=shares)
    return float(np.sqrt((spread**2).sum() * weight.size / (weight.size - 1)))


# -- folds ------------------------------------------------------------------------------------------------------------
class Folds(NamedTuple):
    """Rows scored by fits that did not see them.

    Parameters
    ----------
    held_out : HeldOut
        The scores of all rows.
    rows : list of ndarray
        What tells the scores of the rows of each fold apart.
    shares : list of ndarray
        The shares of these rows in the weight of all.
    """

    held_out: HeldOut
    rows: list[np.ndarray]
    shares: list[np.ndarray]

    def stderr_of_difference(self, other: Folds) -> float:
        """Return the standard error of the difference of two mean scores of the same rows."""
        pairs = zip(self.rows, other.rows, self.shares, strict=True)
        parts = [share.sum() * _stderr(a - b, share / share.sum(), self.held_out.kind) for a, b, share in pairs]
        return float(np.linalg.norm(parts))


def score_in_folds(machine: Any, data: Dataset, strengths: Sequence[float | None]) -> list[Folds]:
    """Score every row by a fit to the other folds, under penalties `strengths / rows`; None leaves the machine's own.

    Equal rows stand together before they are dealt, so that the order of the table does not matter.
    """
    order = np.argsort(data.row_of, kind="stable")
    places = np.array_split(order[np.random.default_rng(0).permutation(data.n_rows)], N_FOLDS)
    trials = [(fold, strength) for strength in strengths for fold in places]
    found = list(map_fits(partial(_score_fold, clone(machine), data), trials))
    shares = [data.shares[np.sort(fold)] for fold in places]
    return [_combined(found[k : k + N_FOLDS], shares, data.n_rows) for k in range(0, len(found), N_FOLDS)]


def _combined(found: list[tuple[HeldOut, np.ndarray]], shares: list[np.ndarray], n_rows: int) -> Folds:
    parts, weights = [part for part, _ in found], np.array([share.sum() for share in shares])
    kinds = list(dict.fromkeys(part.kind for part in parts))
    figures = np.array([(part.score, part.fitted, part.independent, part.stderr) for part in parts], dtype=float)
    score, fitted, independent, _ = weights @ figures
    stderr = float(np.linalg.norm(weights * figures[:, 3]))
    known = (_known(fitted), _known(independent), _known(stderr))
    whole = HeldOut(float(score), " or ".join(kinds), n_rows, *known)
    return Folds(whole, [rows for _, rows in found], shares)


def _score_fold(machine: Any, data: Dataset, trial: tuple[np.ndarray, float | None]) -> tuple[HeldOut, np.ndarray]:
    """Fit the rows outside a fold, and score the fold."""
    fold, strength = np.sort(trial[0]), trial[1]
    return _score_trial(machine, data.take(np.setdiff1d(np.arange(data.n_rows), fold)), data.take(fold), strength)


def _score_trial(machine: Any, shown: Dataset, unseen: Dataset, strength: float | None) -> tuple[HeldOut, np.ndarray]:
    """Fit some rows under a penalty `strength / rows`, and score others; None leaves the machine's own."""
    settings = {**ALONE, "tol": max(machine.tol, TRIAL_TOL)}
    settings |= {} if strength is None else {"l2": strength * one_over(shown)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GibbsianWarning)
        fit = clone(machine).set_params(**settings).fit(shown)
        if "interrupted_at_step" in fit.result_.provenance:  # else Ctrl-C would end one fit of many
            raise KeyboardInterrupt
        return _scored(fit, shown, unseen)


def measured(machine: Any, data: Any) -> FitResult:
    """Return the result of a fit with the score of rows that other fits did not see.

    They are made where they are quick; else the provenance says why there is no score. Where the reason is that a part
    of few rows has no maximum it also says so to the verdict.
    """
    result, why = machine.result_, ""
    seconds = (N_FOLDS - 1) * result.seconds
    if result.held_out is not None:
        return result
    if data.on_disk or data.on_cluster:
        why = "the rows are not in memory"
    elif data.n_rows < FEWEST_ROWS:
        why = f"{data.n_rows} rows are too few"
    elif seconds > PATIENT_SECONDS:
        why = f"it would take about {seconds:.0f} s"
    else:
        try:
            return replace(result, held_out=_in_folds(machine, data))
        except GibbsianError as error:
            why = error.reason
            no_maximum = isinstance(error, MaximumDoesNotExistError | ConstantColumnError)
            if no_maximum and machine.is_underpenalised(data):
                doubt = f"perhaps overfitted: without a third of the rows {why}: use `l2='auto'`"
                result = replace(result, provenance={**result.provenance, "doubt": doubt})
    return replace(result, provenance={**result.provenance, "held_out": f"not measured: {why}"})


def beside_fitted(machine: Any, data: Dataset, folds: HeldOut) -> HeldOut:
    """Return the scores of folds with that of the rows that were fitted, by a fit to all rows."""
    return folds._replace(fitted=_scored(machine, data, data.take([0]))[0].fitted)


def _in_folds(machine: Any, data: Dataset) -> HeldOut:
    """Score a fit in folds, and the fit under the default penalty where that is stronger."""
    l2 = machine.result_.provenance.get("l2", 0.0)
    own = l2 / one_over(data) if "l2" in machine.get_params() and machine.takes_l2 else None
    found = score_in_folds(machine, data, [own, 1.0] if machine.is_underpenalised(data) else [own])
    held_out = beside_fitted(machine, data, found[0].held_out)
    if len(found) == 1 or found[1].held_out.kind != held_out.kind:
        return held_out
    return held_out._replace(
        with_penalty=found[1].held_out.score, with_penalty_stderr=found[1].stderr_of_difference(found[0])
    )
