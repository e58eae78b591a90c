"""Bootstrap: refit on resampled rows; refits that fail are counted and left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.arrays import Floats
from gibbsian.backends.processes import map_fits
from gibbsian.data import Dataset, drop_empty_rows
from gibbsian.errors import ArgumentError, DataError, DegenerateDataWarning, GibbsianError, GibbsianWarning, notify
from gibbsian.estimators import Estimator
from gibbsian.learning import FitResult, Learner, run
from gibbsian.models.base import Family, Model
from gibbsian.progress import counted
from gibbsian.rng import RandomState, as_generator
from gibbsian.startup import check_is_fitted, pandas
from gibbsian.uncertainty.information import WeightMeaning, check_meaning
from gibbsian.uncertainty.standard_errors import fitted_learner
from gibbsian.uncertainty.tables import ConfidenceIntervals, ErrorTables, check_level


@dataclass(frozen=True, repr=False)
class BootstrapResult(ErrorTables):
    """The parameters of every refit that succeeded.

    Parameters
    ----------
    thetas : ndarray of shape (n_succeeded, n_parameters)
        One row per refit, in the layout of ``model.theta``.
    model : Model
        The machine's own model; one with tables in the zero-sum gauge, as the refits are.
    names : tuple of str
        The variables.
    n_replicates : int
        Number of refits that were requested.
    failures : tuple of (int, str)
        Number and reason of each refit that failed.
    n_unconverged : int
        Refits that are kept although they ended before their gradient was small.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]] * 20
    >>> result = gb.uncertainty.bootstrap(gb.BoltzmannMachine().fit(rows), rows, n_replicates=20, random_state=0)
    >>> result.thetas.shape, result.failures
    ((20, 3), ())
    """

    thetas: Floats
    model: Model[Family]
    names: tuple[str, ...]
    n_replicates: int
    failures: tuple[tuple[int, str], ...] = ()
    n_unconverged: int = 0

    def _facts(self) -> dict[str, object]:
        return {"refits": len(self.thetas), "of": self.n_replicates, "parameters": self.thetas.shape[1]}

    @property
    def theta_se(self) -> Floats:
        """Standard deviation of each parameter over the refits."""
        deviations: Floats = self.thetas.std(axis=0, ddof=1)
        return deviations

    @property
    def stability(self) -> pandas.DataFrame:
        """Every interaction with the middle 95% of its refits, and the fraction of them with its sign.

        Strengths that are norms have no sign: theirs is the fraction of refits in which they are not zero.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]] * 20
        >>> result = gb.uncertainty.bootstrap(gb.BoltzmannMachine().fit(rows), rows, n_replicates=20, random_state=0)
        >>> result.stability.index.tolist(), result.stability.columns.tolist()
        (['x0*x1'], ['estimate', 'low', 'high', 'share'])
        """
        estimate = self.model.interactions()
        refits = np.array([self.model.replace(theta).interactions().strengths for theta in self.thetas])
        low, high = np.quantile(refits, [0.025, 0.975], axis=0)
        same_sign = (np.sign(refits) == np.sign(estimate.strengths)).mean(axis=0)
        names = ["*".join(self.names[i] for i in scope) for scope in estimate.scopes]
        columns = {"estimate": estimate.strengths, "low": low, "high": high, "share": same_sign}
        return pandas.DataFrame(columns, index=names)

    def intervals(self, level: float = 0.95, kind: Literal["basic", "percentile"] = "basic") -> ConfidenceIntervals:
        """Return confidence intervals: the quantiles of the refits mirrored at the estimate, or as they are.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level.
        kind : {"basic", "percentile"}, default "basic"
            Basic intervals correct for the bias of the estimate; under a penalty they cover 0.953 of the truth where
            percentile intervals cover 0.929.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]] * 20
        >>> result = gb.uncertainty.bootstrap(gb.BoltzmannMachine().fit(rows), rows, n_replicates=50, random_state=0)
        >>> bool(result.intervals().covers(result.model.theta).all())
        True
        """
        check_level(level)
        if kind not in ("percentile", "basic"):
            raise ArgumentError("must be 'percentile' or 'basic'", argument="kind", value=kind)
        low, high = np.quantile(self.thetas, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        if kind == "basic":
            low, high = 2 * self.model.theta - high, 2 * self.model.theta - low
        return ConfidenceIntervals(low, high, level, self.model, self.names)


def bootstrap(
    machine: Estimator,
    X: object,
    n_replicates: int = 200,
    *,
    random_state: RandomState = None,
    sample_weight: ArrayLike | None = None,
    weights: WeightMeaning = "frequencies",
    n_jobs: int | None = None,
) -> BootstrapResult:
    """Refit the machine on rows drawn with replacement.

    Rows are kept as distinct states with weights, so a replicate is only new weights. Each refit has the machine's own
    settings and starts at its parameters. A refit that fails, for example because its rows have no finite maximum, is
    left out and counted, with its reason; one warning reports them.

    Parameters
    ----------
    machine : Estimator
        A fitted machine.
    X : array, frame, path or Dataset
        The data it was fitted on.
    n_replicates : int
        Number of refits.
    random_state : None, int or Generator
        Replicate k depends on this and on k only.
    sample_weight : array of shape (n_rows,), optional
        The weights of the fit.
    weights : {"frequencies", "importance"}
        A weight of 3 counts as three rows, drawn one by one, or as one row that is drawn with its weight.
    n_jobs : int, optional
        Processes to refit in, as in scikit-learn; inside `gibbsian.cluster.fits_on` the workers of a cluster.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]] * 20
    >>> bm = gb.BoltzmannMachine().fit(rows)
    >>> result = gb.uncertainty.bootstrap(bm, rows, n_replicates=50, random_state=0)
    >>> result.intervals(kind="basic").couplings_low.shape
    (2, 2)
    """
    check_is_fitted(machine)
    check_meaning(weights)
    if n_replicates < 2:
        raise ArgumentError("must be at least 2", argument="n_replicates", value=n_replicates)
    data = drop_empty_rows(machine._read(X, sample_weight=sample_weight))
    learner = fitted_learner(machine, data)
    streams = as_generator(random_state).spawn(n_replicates)
    replicates = map_fits(partial(_replicate, machine, learner, data, weights), streams, n_jobs)
    refits = list(counted(replicates, "bootstrap refits", n_replicates))
    failures = [(k, refit) for k, refit in enumerate(refits) if isinstance(refit, str)]
    fits = [refit for refit in refits if not isinstance(refit, str)]
    thetas, n_unconverged = [theta for theta, _ in fits], sum(not converged for _, converged in fits)
    _report(failures, len(thetas), n_replicates)
    return BootstrapResult(
        machine.temperature * np.array(thetas),
        machine.reported_model.canonical(),
        machine.variable_names_,
        n_replicates,
        tuple(failures),
        n_unconverged,
    )


def _replicate(
    machine: Estimator, learner: Learner, data: Dataset, weights: str, rng: np.random.Generator
) -> tuple[Floats, bool] | str:
    """Return the parameters of one refit and whether it converged, or why it failed."""
    try:
        result = _refit(machine, learner, _resample(data, weights, rng), rng)
    except (GibbsianError, ArithmeticError, np.linalg.LinAlgError) as error:
        return str(error)
    return result.model.canonical().theta, result.converged


def _resample(data: Dataset, weights: str, rng: np.random.Generator) -> Dataset:
    """Draw as many rows as there are; states that were not drawn are left out."""
    if weights == "frequencies" or data.row_weights is None:
        total = data.total_weight
        if round(total) < 2:
            raise DataError(
                f"the weights add up to {total:g} rows, too few to draw from",
                "scale them to the number of rows, or say `weights='importance'`",
            )
        drawn = rng.multinomial(round(total), data.weights / total)
    else:
        rows = rng.integers(0, data.n_rows, size=data.n_rows)
        drawn = np.bincount(data.row_of[rows], data.row_weights[rows], minlength=data.n_states)
    return _reweight(data, drawn.astype(np.float64))


def _reweight(data: Dataset, drawn: Floats) -> Dataset:
    used = np.flatnonzero(drawn)
    missing = None if data.missing is None else data.missing[used]
    return replace(
        data,
        states=data.states[used],
        weights=drawn[used],
        missing=missing if missing is not None and missing.any() else None,
        row_of=np.arange(len(used)),
        row_weights=drawn[used],
    )


def _refit(machine: Estimator, learner: Learner, data: Dataset, rng: np.random.Generator) -> FitResult:
    """Fit as the machine was, from where it ended, with the same refusals and without the warnings."""
    model = machine.model_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GibbsianWarning)
        machine._preflight(data, model, learner)
        rows = machine._shown(model, data)
        result = run(learner, model, rows, rng, max_iter=machine._most_steps, tol=machine.tol)
        return machine._judged(result, rows, learner)


def _report(failures: list[tuple[int, str]], n_succeeded: int, n_replicates: int) -> None:
    if not failures:
        return
    first = failures[0][1]
    if n_succeeded < 2:
        raise DataError(f"{len(failures)} of {n_replicates} bootstrap replicates failed, the first because", f"{first}")
    notify(
        DegenerateDataWarning(
            f"{len(failures)} of {n_replicates} bootstrap replicates failed and are left out, the first because",
            f"{first}",
        )
    )
