"""Standard errors and confidence intervals of a fitted machine's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gibbsian.data import Dataset, drop_empty_rows
from gibbsian.diagnostics import data_moments
from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators import Estimator
from gibbsian.learners import Learner
from gibbsian.models import Model
from gibbsian.objectives import Equations, Likelihood
from gibbsian.startup import check_is_fitted
from gibbsian.uncertainty import information
from gibbsian.uncertainty.tables import ConfidenceIntervals, ErrorTables, check_level
from gibbsian.uncertainty.weights import RowShares, WeightMeaning

# Entries of the curvature are right to about 1e-10, so a share of information below this is not one.
_LEAST_INFORMATION = 1e-9


@dataclass(frozen=True, repr=False)
class StandardErrors(ErrorTables):
    """How far the parameters may be from the truth because the data are a sample.

    Parameters
    ----------
    covariance : ndarray of shape (n_parameters, n_parameters)
        Covariance of the estimates in the layout of ``model.theta``; NaN at couplings that an L1 penalty set to zero.
    kind : {"sandwich", "fisher"}
        Where it comes from.
    n_rows : float
        Number of rows it counts on.
    model : Model
        The fitted model; one with tables in the zero-sum gauge, where parameters are determined.
    names : tuple of str
        The variables.
    notes : tuple of str
        What to keep in mind.
    monte_carlo : ndarray of shape (n_parameters,), optional
        The part of the errors that the samples of a Monte Carlo learner add to those of the data; None without any.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> errors = gb.uncertainty.standard_errors(gb.BoltzmannMachine(l2=0).fit(rows), rows)
    >>> errors.couplings.loc["x0", "x1"].round(3).item()
    0.468
    """

    covariance: np.ndarray
    kind: str
    n_rows: float
    model: Model
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    monte_carlo: np.ndarray | None = None

    def _facts(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "rows": self.n_rows,
            "parameters": len(self.covariance),
            "notes": "; ".join(self.notes) or None,
        }

    @property
    def theta_se(self) -> np.ndarray:
        """Standard errors in the layout of theta."""
        return np.sqrt(np.diag(self.covariance))

    def intervals(self, level: float = 0.95) -> ConfidenceIntervals:
        """Return ``theta`` plus and minus the normal quantile times the standard error."""
        from gibbsian.startup import ndtri

        check_level(level)
        reach = ndtri(0.5 + level / 2) * self.theta_se
        return ConfidenceIntervals(self.model.theta - reach, self.model.theta + reach, level, self.model, self.names)


def standard_errors(
    machine: Estimator,
    X: Any,
    kind: Literal["auto", "sandwich", "fisher"] = "auto",
    *,
    sample_weight: Any = None,
    weights: WeightMeaning = "frequencies",
    max_seconds: float = 60.0,
) -> StandardErrors:
    """Return the standard errors of a fitted machine's parameters.

    Parameters
    ----------
    machine : Estimator
        Fitted by exact or Monte Carlo likelihood, by EM, by an objective on flip costs such as pseudolikelihood, or
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
    Where cells are missing and the learner completes them, the derivatives go through the completions as well.

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
    model = machine.model_
    if warning := machine.result_.warning:
        raise DataError(f"a degenerate fit has no errors ({warning})", "fit fewer classes, or from other starts")
    data = machine._shown(model, drop_empty_rows(machine._read(X, sample_weight=sample_weight)))
    learner, shares = fitted_learner(machine, data), RowShares.of(data, weights)
    settled = _settle_kind(kind, learner)
    covariance, sampled = _covariance(learner, model, data, shares, settled, max_seconds)
    reported, unit = machine.reported_model, machine.temperature
    return StandardErrors(
        unit**2 * covariance,
        settled,
        shares.n_rows,
        reported if getattr(learner, "l1", 0.0) else reported.canonical(),
        names_of(machine),
        _notes(machine, learner),
        None if sampled is None else unit * sampled,
    )


def confidence_intervals(
    machine: Estimator,
    X: Any,
    level: float = 0.95,
    kind: Literal["auto", "sandwich", "fisher"] = "auto",
    **settings: Any,
) -> ConfidenceIntervals:
    """Return normal confidence intervals of every parameter, of a pairwise machine also shaped like ``couplings_``.

    Parameters
    ----------
    machine, X, kind, **settings
        As for `standard_errors`.
    level : float
        Share of the intervals that shall cover the truth.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> intervals = gb.uncertainty.confidence_intervals(gb.BoltzmannMachine(l2=0).fit(rows), rows, level=0.9)
    >>> [table.loc["x0", "x1"].round(2).item() for table in (intervals.couplings_low, intervals.couplings_high)]
    [-0.6, 0.94]
    """
    check_level(level)
    return standard_errors(machine, X, kind, **settings).intervals(level)


def check_same_data(machine: Any, data: Dataset) -> None:
    """Refuse data whose moments are not those that a machine was fitted to.

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
    kept_out = held_out is not None and data.n_rows == machine.result_.provenance.get("rows", 0) + held_out.n_rows
    if fitted is None or kept_out:  # rows kept out are in the file, not in the moments
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
            "ask the machine as it was fitted",
        )
    return machine._learner_of_fit(data)


def names_of(machine: Any) -> tuple[str, ...]:
    """Return the names of the variables of a model, hidden ones included where they are its variables."""
    return getattr(machine, "variable_names_", machine.names_)


def _notes(machine: Any, learner: Any) -> tuple[str, ...]:
    """Say what to keep in mind."""
    penalised = getattr(learner, "l1", 0.0) or getattr(learner, "l2", 0.0)
    notes = {
        "the bias of the penalty is not in the standard errors": penalised,
        "functions were chosen by the same rows: errors are as if they had been given": machine.model_.theta.size
        and getattr(machine.model_, "is_full_span", False),
        getattr(machine.model_.family, "exchangeable", ""): True,
    }
    return tuple(note for note, holds in notes.items() if note and holds)


def _settle_kind(kind: str, learner: Learner) -> str:
    likelihood = isinstance(getattr(learner, "objective", None), Likelihood)
    if kind == "auto":
        return "fisher" if likelihood else "sandwich"
    if kind not in ("sandwich", "fisher"):
        raise ArgumentError("must be 'auto', 'sandwich' or 'fisher'", argument="kind", value=kind)
    if kind == "fisher" and not likelihood:
        raise ArgumentError(
            "`kind='fisher'` belongs to the exact likelihood", "use `kind='sandwich'` for other objectives"
        )
    return kind


def _covariance(
    learner: Any, model: Any, data: Dataset, shares: RowShares, kind: str, max_seconds: float
) -> tuple[np.ndarray, np.ndarray | None]:
    """Of the parameters that are reported, NaN at couplings that an L1 penalty set to zero; and what samples add."""
    equations_of = getattr(learner, "equations", None)
    if equations_of is None:
        name = getattr(learner, "registered_name", type(learner).__name__)
        raise ArgumentError(
            f"{name} solves no equations of which errors could be taken",
            "use `gibbsian.uncertainty.bootstrap`",
        )
    information.check_cost(model.theta.size, data.n_states, max_seconds)
    equations = equations_of(model, data, max_seconds)
    carried = _inverse_for(learner, model, equations)
    partly_seen = data.has_missing or model.n_hidden
    if kind == "fisher" and not (partly_seen and getattr(learner, "l2", 0.0)):
        # the scores vary by the information whatever the penalty is, which only bends the equations
        covariance = carried @ equations.jacobian @ carried.T / shares.n_rows
    else:  # away from the maximum of the likelihood the observed information of rows seen in part is no variance
        size = len(equations.jacobian)
        covariance = carried @ information.variance_of_mean_score(equations.scores, shares, size) @ carried.T
    if getattr(learner, "l1", 0.0):
        zero = (model.theta == 0) & model.penalised
        covariance[zero] = covariance[:, zero] = np.nan
    if equations.noise is None:
        return covariance, None
    sampled = carried @ equations.noise.T
    return covariance + sampled @ sampled.T, np.sqrt(np.square(sampled).sum(axis=1))


def _inverse_for(learner: Any, model: Any, equations: Equations) -> np.ndarray:
    """Return the matrix that takes scores to the parameters that are reported."""
    if getattr(learner, "l1", 0.0):
        return _inverse_on((model.theta != 0) | ~model.penalised, equations.jacobian, learner.l2)
    carry = _gauge(model) if equations.carry is None else equations.carry.T
    inverse = _inverse_along(
        carry if equations.carry is None else None, equations.jacobian, getattr(learner, "l2", 0.0)
    )
    return inverse if carry is None else carry @ inverse


def _inverse_on(chosen: np.ndarray, jacobian: np.ndarray, l2: float) -> np.ndarray:
    """Invert the equations of the parameters that an L1 penalty left, as if the others had never been candidates."""
    inverse, both = np.zeros_like(jacobian), np.ix_(chosen, chosen)
    inverse[both] = _inverse((jacobian + l2 * np.eye(len(jacobian)))[both])
    return inverse


def _gauge(model: Any) -> np.ndarray | None:
    """Return the matrix that takes parameters to the gauge in which they are reported; None where there is one only."""
    if model.canonical() is model:
        return None
    return np.array([model.replace(unit).canonical().theta for unit in np.eye(model.theta.size)]).T


def _inverse_along(gauge: np.ndarray | None, jacobian: np.ndarray, l2: float) -> np.ndarray:
    """Invert the equations; without a penalty only along what the gauge leaves, because the rest is not determined."""
    if l2 or gauge is None:
        return _inverse(jacobian + l2 * np.eye(len(jacobian)))
    _, sizes, rows = np.linalg.svd(gauge)
    seen = rows[: int((sizes > _LEAST_INFORMATION).sum())].T
    return seen @ _inverse(seen.T @ jacobian @ seen) @ seen.T


def _inverse(jacobian: np.ndarray) -> np.ndarray:
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


def _inverse_by_pivots(matrix: np.ndarray) -> np.ndarray | None:
    """Of a positive matrix: a squared pivot is the part of a parameter's information that those before it leave."""
    from scipy.linalg import LinAlgError, cho_solve, cholesky

    try:
        factor = cholesky(matrix, lower=True)
    except LinAlgError:
        return None
    if (np.diag(factor) ** 2).min(initial=1.0) <= _LEAST_INFORMATION:
        return None
    return cho_solve((factor, True), np.eye(len(matrix)))


def _inverse_by_singular_values(matrix: np.ndarray) -> np.ndarray | None:
    left, sizes, right = np.linalg.svd(matrix)
    return None if sizes.min(initial=1.0) <= _LEAST_INFORMATION else (right.T / sizes) @ left.T
