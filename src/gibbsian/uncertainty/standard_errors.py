"""Standard errors and confidence intervals of a fitted machine's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.arrays import Floats, Mask
from gibbsian.data import Dataset, drop_empty_rows
from gibbsian.diagnostics import data_moments
from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators import Estimator
from gibbsian.learning import Learner
from gibbsian.learning.objectives import Equations
from gibbsian.models.base import FAMILIES, F, Family, Model
from gibbsian.startup import check_is_fitted, ndtri
from gibbsian.uncertainty.information import RowWeights, WeightMeaning, check_cost, variance_of_mean_score
from gibbsian.uncertainty.tables import ConfidenceIntervals, ErrorTables, check_level

Kind = Literal["auto", "sandwich", "fisher"]

# Entries of the curvature are right to about 1e-10, so a share of information below this is not one.
_LEAST_INFORMATION = 1e-9


@dataclass(frozen=True, repr=False)
class StandardErrors(ErrorTables):
    """Standard errors of the parameters, from the sampling of the data.

    Parameters
    ----------
    covariance : ndarray of shape (n_parameters, n_parameters)
        Covariance of the estimates in the layout of ``model.theta``; NaN at couplings that an L1 penalty set to zero.
    kind : {"sandwich", "fisher"}
        The estimator of the covariance.
    n_rows : float
        Effective number of rows.
    model : Model
        The fitted model; one with tables in the zero-sum gauge, where parameters are determined.
    names : tuple of str
        The variables.
    notes : tuple of str
        Caveats.
    monte_carlo : ndarray of shape (n_parameters,), optional
        The part of the errors that is due to the samples of a Monte Carlo learner; None for other learners.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> errors = gb.uncertainty.standard_errors(gb.BoltzmannMachine(l2=0).fit(rows), rows)
    >>> errors.couplings.loc["x0", "x1"].round(3).item()
    0.468
    """

    covariance: Floats
    kind: str
    n_rows: float
    model: Model[Family]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    monte_carlo: Floats | None = None

    def _facts(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "rows": self.n_rows,
            "parameters": len(self.covariance),
            "notes": "; ".join(self.notes) or None,
        }

    @property
    def theta_se(self) -> Floats:
        """Standard errors in the layout of theta."""
        return np.sqrt(np.diag(self.covariance))

    def intervals(self, level: float = 0.95) -> ConfidenceIntervals:
        """Return ``theta`` plus and minus the normal quantile times the standard error."""
        check_level(level)
        reach = ndtri(0.5 + level / 2) * self.theta_se
        return ConfidenceIntervals(self.model.theta - reach, self.model.theta + reach, level, self.model, self.names)


def standard_errors(
    machine: Estimator,
    X: object,
    kind: Kind = "auto",
    *,
    sample_weight: ArrayLike | None = None,
    weights: WeightMeaning = "frequencies",
    max_seconds: float = 60.0,
) -> StandardErrors:
    """Return the standard errors of a fitted machine's parameters.

    Parameters
    ----------
    machine : Estimator
        Fitted by exact or Monte Carlo likelihood, by EM, by an objective on conditionals such as pseudolikelihood, or
        nodewise.
    X : array, frame, path or Dataset
        The data it was fitted on.
    kind : {"auto", "sandwich", "fisher"}
        ``"fisher"``, for the exact likelihood, trusts the model: the inverse information I over N (the observed one
        where cells are missing), under an L2 penalty ``(I + l2)^-1 I (I + l2)^-1 / N``, where cells or units are
        hidden with the variance of the scores in the middle. ``"sandwich"`` does not, and is the only one for other
        objectives, whose curvature is not their precision. ``"auto"`` is fisher for the likelihood and sandwich for
        all else.
    sample_weight : array of shape (n_rows,), optional
        The weights of the fit.
    weights : {"frequencies", "importance"}
        A weight of 3 counts as three rows (the default), or as one row that counts thrice.
    max_seconds : float
        Refuse what is predicted to take longer.

    Notes
    -----
    Of models whose tables leave a gauge open (Potts, Markov random fields) the errors are those of the zero-sum gauge.
    Of numbers they are those of parameters in the standard units of the fit, which are taken as given. Hidden units and
    classes can be exchanged, so that errors are those of the maximum that was found; shares of classes
    sum to one and mean directions have unit norm, and the errors keep to that. Functions of a full-span model are taken
    as given, though the same rows have chosen them. Where a learner solves no equations, `bootstrap` refits.
    If cells are missing and the learner completes them, the derivatives go through the completions as well.

    A penalty pulls estimates towards zero. Its L2 part enters the curvature, but intervals around penalised estimates
    do not account for that bias. Couplings that an L1 penalty set to zero have no standard error (NaN), and the
    others' are as if the rest had never been candidates.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> bm = gb.BoltzmannMachine(learner="mle", l2=0.01).fit(votes)
    >>> errors = gb.uncertainty.standard_errors(bm, votes)
    >>> errors.kind, errors.couplings.shape
    ('fisher', (17, 17))
    """
    check_is_fitted(machine)
    model, unit = machine.model_, machine.temperature
    if warning := machine.result_.warning:
        raise DataError(f"a degenerate fit has no errors ({warning})", "fit fewer classes, or from other starts")
    data = machine._shown(model, drop_empty_rows(machine._read(X, sample_weight=sample_weight)))
    learner, row_weights = fitted_learner(machine, data), RowWeights.of(data, weights)
    if kind not in ("auto", "sandwich", "fisher"):
        raise ArgumentError("must be 'auto', 'sandwich' or 'fisher'", argument="kind", value=kind)
    check_cost(model.theta.size, data.n_states, max_seconds)
    equations = learner.equations(model, data, max_seconds)
    if kind == "fisher" and not equations.is_information:
        raise ArgumentError(
            "`kind='fisher'` belongs to the exact likelihood", "use `kind='sandwich'` for other objectives"
        )
    fisher = equations.is_information and kind != "sandwich"
    # under a penalty, the observed information of rows seen in part is not the variance of their scores
    partly_seen = bool(data.has_missing or model.n_hidden)
    by_information = fisher and not (partly_seen and learner.penalties.l2)
    covariance, sampled = _covariance(learner, model, equations, row_weights, by_information)
    reported = machine.reported_model if learner.penalties.l1 else machine.reported_model.canonical()
    caveats = {
        "the bias of the penalty is not in the standard errors": learner.penalties.l1 or learner.penalties.l2,
        "functions were chosen by the same rows: errors are as if they had been given": (
            FAMILIES.name_for(model.family) == "full-span" and model.theta.size
        ),
        "hidden units or classes can be exchanged: errors are those of the maximum that was found": model.n_hidden,
    }
    return StandardErrors(
        unit**2 * covariance,
        "fisher" if fisher else "sandwich",
        row_weights.effective_rows,
        reported,
        machine.variable_names_,
        tuple(caveat for caveat, holds in caveats.items() if holds),
        None if sampled is None else unit * sampled,
    )


def confidence_intervals(
    machine: Estimator,
    X: object,
    level: float = 0.95,
    kind: Kind = "auto",
    *,
    sample_weight: ArrayLike | None = None,
    weights: WeightMeaning = "frequencies",
    max_seconds: float = 60.0,
) -> ConfidenceIntervals:
    """Return normal confidence intervals of every parameter, of a pairwise machine also shaped like ``couplings_``.

    Parameters
    ----------
    machine, X, kind, sample_weight, weights, max_seconds
        As for `standard_errors`.
    level : float
        Confidence level.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> intervals = gb.uncertainty.confidence_intervals(gb.BoltzmannMachine(l2=0).fit(rows), rows, level=0.9)
    >>> [table.loc["x0", "x1"].round(2).item() for table in (intervals.couplings_low, intervals.couplings_high)]
    [-0.6, 0.94]
    """
    check_level(level)
    errors = standard_errors(machine, X, kind, sample_weight=sample_weight, weights=weights, max_seconds=max_seconds)
    return errors.intervals(level)


def check_same_data(machine: Estimator, data: Dataset) -> None:
    """Refuse data whose moments differ from those that a machine was fitted to.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> machine = gb.BoltzmannMachine().fit(rows)
    >>> gb.uncertainty.check_same_data(machine, machine.read(rows[1:]))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: the data is not that which the model was fitted to (its means differ): ...
    """
    fitted, held_out = machine.result_.moments, machine.result_.held_out
    has_held_out = held_out is not None and data.n_rows == machine.result_.provenance.get("rows", 0) + held_out.n_rows
    if fitted is None or has_held_out:  # held-out rows are in the file, not in the moments
        return
    given = data_moments(machine.model_, data)
    assert given is not None  # a fit had them
    same = np.allclose(given.mean, fitted.mean, rtol=0, atol=1e-9, equal_nan=True)
    if not (same and np.allclose(given.count, fitted.count)):
        raise ArgumentError(
            "the data is not that which the model was fitted to (its means differ)", "intervals need the same rows"
        )


def fitted_learner(machine: Estimator, data: Dataset) -> Learner:
    """Return the learner of a fitted machine, also where ``"auto"`` chose it."""
    provenance = machine.result_.provenance
    if "converted_from" in provenance:
        raise ArgumentError(
            f"the machine was converted from the coding {provenance['converted_from']}, in which its "
            "penalties and biases were set",
            "use the machine before its conversion",
        )
    return machine._learner_of_fit(data)


def _covariance(
    learner: Learner, model: Model[F], equations: Equations, weights: RowWeights, by_information: bool
) -> tuple[Floats, Floats | None]:
    """Return the covariance of the parameters, NaN where L1 set them to zero, and their errors by sampling."""
    carried = _inverse_for(learner, model, equations)
    if by_information:
        # the scores vary by the information under any penalty, which changes the curvature of the equations only
        covariance = carried @ equations.jacobian @ carried.T / weights.effective_rows
    else:
        middle = variance_of_mean_score(equations.scores, weights, len(equations.jacobian))
        covariance = carried @ middle @ carried.T
    if learner.penalties.l1:
        zero = (model.theta == 0) & model.penalised
        covariance[zero] = covariance[:, zero] = np.nan
    if equations.noise is None:
        return covariance, None
    sampled = carried @ equations.noise.T
    return covariance + sampled @ sampled.T, np.sqrt(np.square(sampled).sum(axis=1))


def _inverse_for(learner: Learner, model: Model[F], equations: Equations) -> Floats:
    """Return the matrix that maps scores to the parameters that are reported."""
    l1, l2, _ = learner.penalties
    if l1:
        return _inverse_on((model.theta != 0) | ~model.penalised, equations.jacobian, l2)
    if equations.carry is not None:
        return equations.carry.T @ _inverse_along(None, equations.jacobian, l2)
    gauge = _gauge(model)
    inverse = _inverse_along(gauge, equations.jacobian, l2)
    return inverse if gauge is None else gauge @ inverse


def _inverse_on(chosen: Mask, jacobian: Floats, l2: float) -> Floats:
    """Invert the equations of the parameters that an L1 penalty left, as if the others had never been candidates."""
    inverse, both = np.zeros_like(jacobian), np.ix_(chosen, chosen)
    inverse[both] = _inverse((jacobian + l2 * np.eye(len(jacobian)))[both])
    return inverse


def _gauge(model: Model[F]) -> Floats | None:
    """Return the matrix that takes parameters to the gauge in which they are reported; None where there is one only."""
    if model.canonical() is model:
        return None
    columns: Floats = np.array([model.replace(unit).canonical().theta for unit in np.eye(model.theta.size)])
    return columns.T


def _inverse_along(gauge: Floats | None, jacobian: Floats, l2: float) -> Floats:
    """Invert the equations; without a penalty only along what the gauge leaves, because the rest is not determined."""
    if l2 or gauge is None:
        return _inverse(jacobian + l2 * np.eye(len(jacobian)))
    _, sizes, rows = np.linalg.svd(gauge)
    determined: Floats = rows[: int((sizes > _LEAST_INFORMATION).sum())].T
    inverse: Floats = determined @ _inverse(determined.T @ jacobian @ determined) @ determined.T
    return inverse


def _inverse(jacobian: Floats) -> Floats:
    """Invert a matrix, refusing one that is singular up to the rounding of its entries."""
    scales = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(jacobian)), np.finfo(float).tiny))
    scaled = jacobian * np.outer(scales, scales)
    symmetric = np.array_equal(scaled, scaled.T)
    inverse = _inverse_by_pivots(scaled) if symmetric else _inverse_by_singular_values(scaled)
    if inverse is None:
        raise DataError(
            "the data do not determine every parameter (the information matrix is singular)",
            "fit with a penalty, such as one over the number of rows, or drop columns that determine each other",
        )
    return np.outer(scales, scales) * inverse


def _inverse_by_pivots(matrix: Floats) -> Floats | None:
    """Invert a positive matrix. A squared pivot is the information on a parameter that the ones before do not have."""
    from scipy.linalg import LinAlgError, cho_solve, cholesky

    try:
        factor = cholesky(matrix, lower=True)
    except LinAlgError:
        return None
    if (np.diag(factor) ** 2).min(initial=1.0) <= _LEAST_INFORMATION:
        return None
    inverse: Floats = cho_solve((factor, True), np.eye(len(matrix)))
    return inverse


def _inverse_by_singular_values(matrix: Floats) -> Floats | None:
    """Invert any matrix, None where a singular value is too small."""
    u, sizes, vt = np.linalg.svd(matrix)
    return None if sizes.min(initial=1.0) <= _LEAST_INFORMATION else (vt.T / sizes) @ u.T
