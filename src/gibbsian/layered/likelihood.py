"""The log-likelihood of rows under a restricted machine: one exact number, or two ends with their errors.

log P(v) is the log-weight of v, which is cheap, less log Z. Where the smaller layer can be summed over, log Z is exact.
Elsewhere annealing to the machine gives a log Z that is too small in expectation, hence a likelihood that is too good,
and annealing back from it the opposite; both are reported, never the optimistic one alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError
from gibbsian.inference import exact as exactly
from gibbsian.inference import is_affordable
from gibbsian.layered.annealing import LayerAnnealing, log_partition_interval
from gibbsian.layered.missing import log_evidence
from gibbsian.layered.rows import LayerRows
from gibbsian.models.restricted import RestrictedModel
from gibbsian.rng import RandomState

ENDS = ("lower", "upper", "optimistic", "pessimistic")


@dataclass(frozen=True, eq=False)
class LogLikelihood:
    """Mean log-likelihood of rows, in nats a row.

    Parameters
    ----------
    log_weights : ndarray of shape (n_rows,)
        ``log P(v) + log Z`` of each row.
    shares : ndarray of shape (n_rows,)
        Weights of the rows, adding up to 1.
    log_partition : float or LogPartitionInterval
        log Z, exact or between two annealed runs.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.likelihood import LogLikelihood
    >>> found = LogLikelihood(np.array([1.0, 3.0]), np.array([0.5, 0.5]), log_partition=4.0)
    >>> found.exact, found.lower, found.upper
    (True, -2.0, -2.0)
    """

    log_weights: np.ndarray
    shares: np.ndarray
    log_partition: float | LogPartitionInterval

    @property
    def exact(self) -> bool:
        """Whether log Z is exact."""
        return not isinstance(self.log_partition, LogPartitionInterval)

    @property
    def mean_log_weight(self) -> float:
        """Mean of the rows' log-weights."""
        return float(self.shares @ self.log_weights)

    @property
    def lower(self) -> float:
        """Lower end: with the largest log Z that the reverse run and its errors allow."""
        return self.mean_log_weight - self._log_partition("lower")

    @property
    def upper(self) -> float:
        """Upper end: with the smallest log Z that the forward run and its errors allow."""
        return self.mean_log_weight - self._log_partition("upper")

    @property
    def optimistic(self) -> float:
        """The estimate by the forward run, too large in expectation."""
        return self.mean_log_weight - self._log_partition("optimistic")

    @property
    def pessimistic(self) -> float:
        """The estimate by the reverse run, too small in expectation as far as it started at the machine's law."""
        return self.mean_log_weight - self._log_partition("pessimistic")

    @property
    def stderrs(self) -> tuple[float, float]:
        """Standard errors of `optimistic` and `pessimistic`, those of log Z; zero when exact."""
        return self.log_partition.stderrs if isinstance(self.log_partition, LogPartitionInterval) else (0.0, 0.0)

    @property
    def rows_stderr(self) -> float:
        """Standard error of the mean as an estimate for other rows of the same kind: how much rows differ."""
        effective = 1.0 / float(np.square(self.shares).sum())
        spread = float(self.shares @ np.square(self.log_weights - self.mean_log_weight))
        return float(np.sqrt(spread / max(effective - 1.0, 1.0)))

    @property
    def trouble(self) -> str | None:
        """Say why log Z is not settled, or None."""
        return self.log_partition.trouble if isinstance(self.log_partition, LogPartitionInterval) else None

    def per_row(self, end: str = "lower") -> np.ndarray:
        """Return log P(v) of each row at one end: ``"lower"``, ``"upper"``, ``"optimistic"`` or ``"pessimistic"``.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.likelihood import LogLikelihood
        >>> LogLikelihood(np.array([1.0, 3.0]), np.array([0.5, 0.5]), log_partition=4.0).per_row()
        array([-3., -1.])
        """
        if end not in ENDS:
            raise ArgumentError("is not known", f"use one of {', '.join(ENDS)}", argument="end", value=end)
        return self.log_weights - self._log_partition(end)

    def _log_partition(self, end: str) -> float:
        found = self.log_partition
        if not isinstance(found, LogPartitionInterval):
            return found
        there, back = found.forward.log_partition, found.reverse.log_partition
        # by chance the two estimates may stand the wrong way round: the interval holds both all the same
        choices = {
            "lower": max(found.upper, there, back),
            "upper": min(found.lower, there, back),
            "optimistic": there,
            "pessimistic": back,
        }
        return choices[end]

    def describe(self) -> str:
        """Say in words what is known.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.likelihood import LogLikelihood
        >>> print(LogLikelihood(np.array([1.0, 3.0]), np.array([0.5, 0.5]), 4.0).describe())
        mean log-likelihood -2.00 nats a row, exact (2 rows, which differ by a standard error of 1.00)
        """
        rows = f"{len(self.log_weights)} rows, which differ by a standard error of {self.rows_stderr:.2f}"
        if self.exact:
            return f"mean log-likelihood {self.lower:.2f} nats a row, exact ({rows})"
        assert isinstance(self.log_partition, LogPartitionInterval)
        above, below = self.stderrs
        text = (
            f"mean log-likelihood between {self.lower:.2f} and {self.upper:.2f} nats a row ({rows}): annealing to the "
            f"machine gives {self.optimistic:.2f} +- {above:.2f}, too large in expectation; annealing back gives "
            f"{self.pessimistic:.2f} +- {below:.2f}, too small in expectation as far as its start, "
            f"{self.log_partition.start}, has the machine's law"
        )
        return f"{text}; beware: {self.trouble}" if self.trouble else text

    def __str__(self) -> str:
        return self.describe()


def log_likelihood_of(
    model: RestrictedModel,
    rows: LayerRows | np.ndarray,
    *,
    annealing: LayerAnnealing | None = None,
    start: str | np.ndarray | LayerRows = "gibbs",
    rng: RandomState = None,
    burn_in: int = 1000,
    exact: bool | None = None,
    warn: bool = True,
) -> LogLikelihood:
    """Return the log-likelihood of rows: exact where the smaller layer has at most 25 units, else an interval.

    Parameters
    ----------
    model : RestrictedModel
        The machine.
    rows : LayerRows or array-like
        Visible states; missing cells are summed out.
    annealing : LayerAnnealing, optional
        Walkers, temperatures and base; by default 100 walkers, 10,000 temperatures and the base rates of `rows`.
    start, burn_in : optional
        Where annealing back starts; see `gibbsian.layered.annealing.log_partition_interval`.
    rng : None, int or Generator
        Source of randomness.
    exact : bool, optional
        True insists on the exact sum, False on annealing; by default the exact sum where it is in reach.
    warn : bool
        Whether to give a `MixingWarning` when the two ends disagree beyond their errors.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.annealing import LayerAnnealing
    >>> from gibbsian.layered.likelihood import log_likelihood_of
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> weights = np.random.default_rng(0).normal(size=(8, 5))
    >>> rbm = RestrictedModel.build(BinaryLayer(8), BinaryLayer(5), weights=weights)
    >>> truth = log_likelihood_of(rbm, np.eye(8))
    >>> found = log_likelihood_of(rbm, np.eye(8), exact=False, annealing=LayerAnnealing(betas=1000), rng=0)
    >>> truth.exact, found.exact, found.lower < truth.lower < found.upper
    (True, False, True)
    """
    if not isinstance(rows, LayerRows):
        rows = LayerRows(np.asarray(rows))
    if rows.n_units != model.visible.n_units:
        raise ArgumentError(
            f"rows has {rows.n_units} columns, but the machine has {model.visible.n_units} visible units"
        )
    # summing over missing cells is the cheaper thing to be refused for
    log_weights = np.asarray(log_evidence(model, rows), dtype=np.float64)
    if exact is None:
        exact = is_affordable(model)
    if exact:
        return LogLikelihood(log_weights, rows.shares, exactly(model).log_partition())
    chosen = LayerAnnealing(base=rows) if annealing is None else annealing
    return LogLikelihood(
        log_weights, rows.shares, log_partition_interval(model, start, chosen, rng, burn_in=burn_in, warn=warn)
    )


__all__ = ["LogLikelihood", "log_likelihood_of"]
