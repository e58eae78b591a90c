"""How likely rows are: scores, exact or between two sides, and log Z."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, EstimatedScoreWarning, MissingValuesError, TooExpensiveError, notify
from gibbsian.estimators.reading import ReadsTables, on_own_device
from gibbsian.learning.result import HeldOut
from gibbsian.settings import Setting, check_method, check_value

if TYPE_CHECKING:
    from gibbsian.diagnostics.partition import LogPartitionInterval

# Temperatures of the annealing behind a score: fewer than where log Z itself is asked for, and so a wider interval.
FEWER_BETAS = 1000
# Walkers and temperatures for each row that lacks too many cells to sum over.
ROW_WALKERS, ROW_BETAS = 20, 200
# What a log-probability may be above zero by rounding, as a share of the log-weights.
ROUNDING = 1e-9
BOTH_SIDES = "`score_interval` has both sides"
_HOW = Setting("How log Z is found.", "choice", words=("auto", "ais"))


class ScoreInterval(NamedTuple):
    """A score between two sides, where log Z is known between two sides.

    Parameters
    ----------
    lower, upper : float
        The mean log-likelihood per row lies between them.
    log_partition : LogPartitionInterval
        What is known of log Z.
    """

    lower: float
    upper: float
    log_partition: LogPartitionInterval


class Scores(ReadsTables):
    """What every fitted estimator says of the likelihood of rows."""

    # What scores are: log-likelihoods (estimates of them where log Z is out of reach), or minus an energy.
    has_density: ClassVar[bool] = True
    columns_may_be_independent: ClassVar[bool] = True  # as directions cannot
    scores_are_bounds: ClassVar[bool] = False  # also where log Z is exact

    @on_own_device
    def score_samples(self, X: Any, *, log_partition: float | LogPartitionInterval | None = None) -> np.ndarray:
        """Return the log-probability of each row, in nats; missing cells and hidden units are summed out.

        Where log Z is out of reach of exact sums it is estimated once for a fitted model, by annealed importance
        sampling there and back (`random_state`), and a warning says how well. Its error moves all scores alike, so
        their order does not depend on it; `score_interval` has both sides.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        log_partition : float or LogPartitionInterval, default=None
            log Z, where it is known better or otherwise: what `log_partition` returns.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> bool(np.allclose(bm.score_samples([[1, 1]]), -2 * np.log(2)))
        True
        """
        data = self._read(X)
        return self._log_densities(data, log_partition)[data.row_of]

    @on_own_device
    def score(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood per row, in nats: the mean of `score_samples`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> round(gb.BoltzmannMachine(l2=0).fit(rows).score(rows), 4)
        -1.3322
        """
        data = self._read(X, sample_weight=sample_weight)
        if data.on_cluster:
            self._log_partition_estimate()  # once, and here
        return float(data.mean(self._mean_score))

    def _mean_score(self, data: Dataset) -> float:
        return np.average(self._log_densities(data), weights=data.weights)

    def _log_densities(self, data: Dataset, log_partition: Any = None) -> np.ndarray:
        evidence = self._log_weights(data)
        if log_partition is None:
            log_partition = self._log_partition_estimate()
        scores = evidence - (log_partition if np.isscalar(log_partition) else log_partition.combined().value)
        if not self.has_density or data.states.dtype.kind != "i":  # densities and shares of values may be above one
            return scores
        if scores.max() > ROUNDING * max(1.0, np.abs(evidence).max()):
            raise ArgumentError(
                f"a row would have the log-probability {scores.max():.6g}, which is above zero, so log Z is not "
                "known well enough",
                "ask for `score_interval`, or for `pseudo_score`, which needs no log Z",
            )
        return np.minimum(scores, 0.0)

    def _log_weights(self, data: Dataset) -> np.ndarray:
        """Return ``log P + log Z`` of each distinct row, exactly where that is in reach and else by annealing."""
        answers = self._answers
        try:
            return answers.log_evidence(data)
        except TooExpensiveError:
            sides = self._ask("log_evidence_interval")(data, self._rng(), ROW_WALKERS, ROW_BETAS)
        apart = float(np.subtract(*sides).min()) / -2.0
        reason = f"rows with many missing cells are annealed, their scores are known to {apart:.2g} only"
        notify(EstimatedScoreWarning(reason, BOTH_SIDES))
        return np.mean(sides, axis=0)

    @on_own_device
    def score_interval(
        self,
        X: Any,
        sample_weight: ArrayLike | None = None,
        n_samples: int | None = None,
        betas: int | None = None,
        method: str = "auto",
    ) -> ScoreInterval:
        """Return the mean log-likelihood per row between two sides, for models whose log Z is out of reach.

        Parameters
        ----------
        X, sample_weight
            The rows.
        n_samples : int, default=None
            Walkers of the annealing behind it; by default its own number.
        betas : int, default=None
            Temperatures of the annealing; by default its own number.
        method : {"auto", "ais"}, default="auto"
            How log Z is found: see `log_partition`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> bm = gb.BoltzmannMachine(random_state=0).fit(rows)
        >>> interval = bm.score_interval(rows, betas=1000)
        >>> interval.upper - interval.lower < 0.1
        True
        """
        check_value("method", method, _HOW)
        data, rng = self._read(X, sample_weight=sample_weight), self._rng()
        bracket = self._ask("log_partition_interval")(rng, n_samples, betas, data, method=method)
        evidence = self._ask("log_evidence_interval")(data, self._rng(), n_samples, betas)
        lower, upper = (float(np.average(side, weights=data.weights)) for side in evidence)
        return ScoreInterval(lower - bracket.upper, upper - bracket.lower, bracket)

    @on_own_device
    def pseudo_score(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-pseudolikelihood per row, which needs no partition function and so suits any size.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> round(gb.BoltzmannMachine(l2=0).fit(rows).pseudo_score(rows), 4)
        -1.3184
        """
        return float(self._read(X, sample_weight=sample_weight).mean(self._answers.log_pseudolikelihood))

    @on_own_device
    def conditional_score(self, X: Any, columns: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of ``log P(columns | present cells of the others)`` per row (YK15): minus the log-loss.

        It needs no partition function: it is the log-evidence of the rows less that of the rows without the columns.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> round(gb.BoltzmannMachine(l2=0).fit(rows).conditional_score(rows, "x1"), 4)
        -0.6592
        """
        data = self._read(X, sample_weight=sample_weight)
        parts = (data, data.hide(columns))
        whole, free = (np.average(self._answers.log_evidence(rows), weights=rows.weights) for rows in parts)
        return float(whole - free)

    @on_own_device
    def score_or_pseudo_score(self, X: Any) -> HeldOut:
        """Return the score where it is exact, else the pseudo-score, else the score's lower side; say which it is.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> gb.BoltzmannMachine(l2=0).fit(rows).score_or_pseudo_score(rows).kind
        'log-likelihood'
        """
        data = self._read(X)
        try:
            score = self._answers.log_evidence(data) - self._answers.log_partition()
            return HeldOut(float(np.average(score, weights=data.weights)), "log-likelihood", data.n_rows)
        except TooExpensiveError:
            pass
        try:
            return HeldOut(self.pseudo_score(data), "log-pseudolikelihood", data.n_rows)
        except (MissingValuesError, TooExpensiveError):
            lower = self.score_interval(data, betas=FEWER_BETAS).lower
            return HeldOut(lower, "lower side of the log-likelihood", data.n_rows)

    # -- log Z ---------------------------------------------------------------------------------------------------------
    @on_own_device
    def log_partition(
        self, method: str = "auto", n_samples: int | None = None, betas: int | None = None
    ) -> float | LogPartitionInterval:
        """Return log Z: exactly where that is in reach, else between two sides.

        Parameters
        ----------
        method : {"auto", "exact", "ais"}, default="auto"
            ``"auto"`` goes beyond the reach of exact sums by two methods that are to agree: annealed importance
            sampling there and back, and tempered chains with Bennett's ratio between neighbouring temperatures. Where
            they do not, all runs once more and longer; then a `MixingWarning` says it, and the interval has both.
            ``"ais"`` is the annealing alone, back from Gibbs chains.
        n_samples, betas : int, default=None
            Walkers and temperatures of the annealing; by default its own numbers.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> round(bm.log_partition(), 4)
        1.3863
        """
        answers, asked = self._answers, n_samples is not None or betas is not None
        check_method(method)
        if method not in (known := ("auto", "exact", "ais")):
            raise ArgumentError("is not known", f"use one of {', '.join(known)}", argument="method", value=method)
        if n_samples is not None:
            n_samples = check_value("n_samples", n_samples, Setting("Walkers.", "whole", low=2))
        if method == "exact" and asked:
            raise ArgumentError("`n_samples` and `betas` belong to `method='ais'`", "leave them out")
        if method == "exact" or (method == "auto" and not asked):
            try:
                self._log_z = answers.log_partition()
                return self._log_z
            except TooExpensiveError as error:
                if method == "exact":
                    raise TooExpensiveError(error.reason, error.also("bracket log Z by `method='ais'`")) from None
        ask = self._ask("log_partition_interval")
        return ask(self._rng(), n_samples, betas, method="ais" if method == "ais" else "auto")

    def sums_exactly(self) -> bool:
        """Whether log Z is in reach of an exact sum, so that scores are likelihoods and no bounds.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).sums_exactly()
        True
        """
        try:
            self.log_partition("exact")
        except TooExpensiveError:
            return False
        return True

    def _log_partition_estimate(self) -> float:
        """Return log Z or an estimate of it; found once for a fitted model."""
        if "_log_z" not in self.__dict__ and not self.sums_exactly():  # an exact sum is kept where it is made
            interval: Any = self.log_partition(betas=FEWER_BETAS)
            log_z = interval.combined()
            self._log_z = log_z.value
            between = f"(between {interval.lower:.6g} and {interval.upper:.6g})"
            reason = f"log Z is estimated, {self._log_z:.6g} with a standard error of {log_z.stderr:.2g} {between}"
            notify(EstimatedScoreWarning(f"{reason}, so all scores are off by the same amount", BOTH_SIDES))
        return self._log_z
