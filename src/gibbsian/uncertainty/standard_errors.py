"""Standard errors and confidence intervals of a fitted machine's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.backends.numba.flip_losses import half_exponential, logistic
from gibbsian.data import Dataset, drop_empty_rows
from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators import BoltzmannMachine
from gibbsian.learners import LEARNERS, Learner, as_learner
from gibbsian.learners.directed import DirectedModel
from gibbsian.learners.nodewise import Nodewise
from gibbsian.models import PairwiseModel
from gibbsian.objectives import FlipCostObjective, Likelihood
from gibbsian.objectives.curvature import flip_cost_curvature, likelihood_curvature
from gibbsian.uncertainty import information
from gibbsian.uncertainty.tables import ConfidenceIntervals, biases_table, check_level, couplings_table
from gibbsian.uncertainty.weights import RowShares, WeightMeaning

# Entries of the curvature are right to about 1e-10, so a share of information below this is not one.
_LEAST_INFORMATION = 1e-9


@dataclass(frozen=True)
class StandardErrors:
    """How far the parameters may be from the truth because the data are a sample.

    Parameters
    ----------
    covariance : ndarray of shape (n_parameters, n_parameters)
        Covariance of the estimates in the layout of ``model.theta``; NaN at couplings that an L1 penalty set to zero.
    kind : {"sandwich", "fisher"}
        Where it comes from.
    n_rows : float
        Number of rows it counts on.
    model : PairwiseModel
        The fitted model.
    names : tuple of str
        The variables.
    notes : tuple of str
        What to keep in mind.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> errors = gb.uncertainty.standard_errors(gb.BoltzmannMachine().fit(rows), rows)
    >>> errors.couplings.loc["x0", "x1"].round(3).item()
    0.468
    """

    covariance: np.ndarray
    kind: str
    n_rows: float
    model: PairwiseModel
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def theta_se(self) -> np.ndarray:
        """Standard errors in the layout of theta."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def biases(self) -> Any:
        """Standard errors of the biases by column name."""
        return biases_table(self.model, self.names, self.theta_se)

    @property
    def couplings(self) -> Any:
        """Standard errors of the couplings, shaped like ``couplings_``; zero where there is no edge."""
        return couplings_table(self.model, self.names, self.theta_se)

    def intervals(self, level: float = 0.95) -> ConfidenceIntervals:
        """Return ``theta`` plus and minus the normal quantile times the standard error."""
        from scipy.special import ndtri

        check_level(level)
        reach = ndtri(0.5 + level / 2) * self.theta_se
        return ConfidenceIntervals(self.model.theta - reach, self.model.theta + reach, level, self.model, self.names)


def standard_errors(
    machine: BoltzmannMachine,
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
    machine : BoltzmannMachine
        Fitted by exact likelihood, by an objective on flip costs such as pseudolikelihood, or nodewise.
    X : array, frame, path or Dataset
        The data it was fitted on.
    kind : {"auto", "sandwich", "fisher"}
        ``"fisher"``, for the exact likelihood, trusts the model: the inverse information over N (the observed one
        where cells are missing). ``"sandwich"`` does not, and is the only one for other objectives, whose curvature is
        not their precision. ``"auto"`` is fisher for the likelihood and sandwich for all else.
    sample_weight : array of shape (n_rows,), optional
        The weights of the fit.
    weights : {"frequencies", "importance"}
        A weight of 3 counts as three rows (the default), or as one row that counts thrice.
    max_seconds : float
        Refuse what is predicted to take longer.

    Notes
    -----
    A penalty pulls estimates towards zero. Its L2 part enters the curvature, but intervals around penalised estimates
    do not account for that bias. Couplings that an L1 penalty set to zero have no standard error (NaN), and the
    others' are as if the rest had never been candidates.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> bm = gb.BoltzmannMachine(learner="mple", l2=0.01).fit(votes)
    >>> errors = gb.uncertainty.standard_errors(bm, votes)
    >>> errors.kind, errors.couplings.shape
    ('sandwich', (17, 17))
    """
    check_is_fitted(machine)
    data = drop_empty_rows(machine._read(X, sample_weight=sample_weight))
    learner, shares = fitted_learner(machine), RowShares.of(data, weights)
    settled = _settle_kind(kind, learner)
    if isinstance(learner, Nodewise):
        covariance = _nodewise_covariance(learner, machine.model_, data, shares, max_seconds)
    else:
        covariance = _covariance(learner, machine.model_, data, shares, settled, max_seconds)
    penalised = getattr(learner, "l1", 0.0) or getattr(learner, "l2", 0.0)
    notes = ("the bias of the penalty is not in the standard errors",) if penalised else ()
    return StandardErrors(covariance, settled, shares.n_rows, machine.model_, machine.names_, notes)


def confidence_intervals(
    machine: BoltzmannMachine,
    X: Any,
    level: float = 0.95,
    kind: Literal["auto", "sandwich", "fisher"] = "auto",
    **settings: Any,
) -> ConfidenceIntervals:
    """Return normal confidence intervals of every parameter, as tables shaped like ``biases_`` and ``couplings_``.

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
    >>> intervals = gb.uncertainty.confidence_intervals(gb.BoltzmannMachine().fit(rows), rows, level=0.9)
    >>> [table.loc["x0", "x1"].round(2).item() for table in (intervals.couplings_low, intervals.couplings_high)]
    [-0.6, 0.94]
    """
    check_level(level)
    return standard_errors(machine, X, kind, **settings).intervals(level)


def fitted_learner(machine: BoltzmannMachine) -> Learner:
    """Return the learner of a fitted machine, also where ``"auto"`` chose it.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.uncertainty.standard_errors import fitted_learner
    >>> bm = gb.BoltzmannMachine(l2=0.1).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> type(fitted_learner(bm).objective).__name__, fitted_learner(bm).l2
    ('Likelihood', 0.1)
    """
    told = machine.result_.provenance
    if "converted_from" in told:
        raise ArgumentError(
            f"the machine was converted from the coding {told['converted_from']}, in which its "
            "penalties and biases were set",
            "ask the machine as it was fitted",
        )
    if not isinstance(machine.learner, str):
        return machine.learner
    name = told.get("learner", machine.learner)
    if name not in LEARNERS:
        raise ArgumentError(
            f"the machine was fitted by {name}, which its file does not hold", "set machine.learner to that object"
        )
    return as_learner(name, l1=told.get("l1", machine.l1), l2=told.get("l2", machine.l2))


def _settle_kind(kind: str, learner: Learner) -> str:
    likelihood = isinstance(getattr(learner, "objective", None), Likelihood)
    if kind == "auto":
        return "fisher" if likelihood else "sandwich"
    if kind not in ("sandwich", "fisher"):
        raise ArgumentError("must be 'auto', 'sandwich' or 'fisher'", argument="kind", value=kind)
    if kind == "fisher" and not likelihood:
        raise ArgumentError("kind='fisher' belongs to the exact likelihood", "use kind='sandwich' for other objectives")
    return kind


def _covariance(
    learner: Learner, model: PairwiseModel, data: Dataset, shares: RowShares, kind: str, max_seconds: float
) -> np.ndarray:
    """Of the parameters that are estimated; NaN at couplings that an L1 penalty set to zero."""
    size = model.theta.size
    information.check_cost(size, data.n_states, max_seconds)
    curvature, scores = _parts(getattr(learner, "objective", None), learner, model, data, max_seconds)
    estimated = (model.theta != 0) | ~model.penalised if getattr(learner, "l1", 0.0) else np.ones(size, dtype=bool)
    chosen = np.ix_(estimated, estimated)
    inverse = _inverse((curvature + getattr(learner, "l2", 0.0) * np.eye(size))[chosen])
    covariance = np.full((size, size), np.nan)
    if kind == "fisher":
        covariance[chosen] = inverse / shares.n_rows
    else:
        covariance[chosen] = inverse @ information.variance_of_mean_score(scores, shares, size)[chosen] @ inverse
    return covariance


def _parts(
    objective: Any, learner: Learner, model: PairwiseModel, data: Dataset, max_seconds: float
) -> tuple[np.ndarray, information.Scores]:
    """Curvature and scores of the objectives for which they are known."""
    if isinstance(objective, FlipCostObjective):
        data.require_complete(objective.name)
        return flip_cost_curvature(objective, model, data), information.flip_cost_scores(objective, model, data)
    if isinstance(objective, Likelihood):
        curvature = likelihood_curvature(model, data, max_seconds)
        return curvature, information.likelihood_scores(model, data, max_seconds)
    raise ArgumentError(
        f"standard errors are known for exact likelihood and for objectives on flip costs, not for {learner!r}",
        "use gibbsian.uncertainty.bootstrap",
    )


def _nodewise_covariance(
    learner: Nodewise, model: PairwiseModel, data: Dataset, shares: RowShares, max_seconds: float
) -> np.ndarray:
    """Sandwich of the directed parameters, carried over to their averages.

    It is taken at the averages, which are as near to the truth as the directed estimates. Without penalty logRISE
    solves the equations of RISE.
    """
    if learner.l1 or (learner.l2 and learner.loss == "logrise"):
        raise ArgumentError(f"standard errors are not known for {learner!r}", "use gibbsian.uncertainty.bootstrap")
    data.require_complete(f"learner={learner.loss!r}")
    directed = DirectedModel(model)
    size = directed.owner.size
    information.check_cost(size, data.n_states, max_seconds)
    objective = FlipCostObjective(logistic if learner.loss == "rple" else half_exponential, learner.loss)
    curvature = flip_cost_curvature(objective, model, data, directed=True)
    scores = information.flip_cost_scores(objective, model, data, directed=True)
    inverse = _inverse(curvature + learner.l2 * np.eye(size))
    average = np.array([directed.symmetrise(unit) for unit in np.eye(size)])
    carried = inverse @ average
    return carried.T @ information.variance_of_mean_score(scores, shares, size) @ carried


def _inverse(curvature: np.ndarray) -> np.ndarray:
    """Invert by Cholesky factors, refusing a matrix that is singular up to the rounding of its entries."""
    from scipy.linalg import LinAlgError, cho_solve, cholesky

    scales = 1.0 / np.sqrt(np.maximum(np.diag(curvature), np.finfo(float).tiny))
    try:
        factor = cholesky(curvature * np.outer(scales, scales), lower=True)
        # a squared pivot is the part of a parameter's information that the parameters before it leave
        determined = bool((np.diag(factor) ** 2).min(initial=1.0) > _LEAST_INFORMATION)
    except LinAlgError:
        determined = False
    if not determined:
        raise DataError(
            "the data do not determine every parameter (the information matrix is singular)",
            "fit with a penalty such as `l2=0.01`, or drop columns that determine each other",
        )
    return np.outer(scales, scales) * cho_solve((factor, True), np.eye(len(curvature)))
