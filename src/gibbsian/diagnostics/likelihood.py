"""The mean log-likelihood of rows as a result: one exact number, two ends with their errors, or a lower bound.

log P(v) is the log-weight of v less log Z. Where log Z is not exact, annealing to the machine gives one that is too
small in expectation, hence a likelihood that is too good, and annealing back from it the opposite; both are reported,
never the optimistic one alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError

ENDS = ("lower", "upper", "optimistic", "pessimistic")


@dataclass(frozen=True, eq=False)
class LogLikelihood:
    """Mean log-likelihood of rows, in nats a row.

    Parameters
    ----------
    log_weights : ndarray of shape (n_rows,)
        ``log P(v) + log Z`` of each row.
    weights : ndarray of shape (n_rows,)
        Weights of the rows, adding up to 1.
    log_partition : float or LogPartitionInterval
        log Z, exact or between two annealed runs.
    """

    log_weights: Floats
    weights: Floats
    log_partition: float | LogPartitionInterval

    @property
    def exact(self) -> bool:
        """Whether log Z is exact."""
        return not isinstance(self.log_partition, LogPartitionInterval)

    @property
    def mean_log_weight(self) -> float:
        """Mean of the rows' log-weights."""
        return float(self.weights @ self.log_weights)

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
        """The estimate by the reverse run, too small in expectation as far as it started at the machine."""
        return self.mean_log_weight - self._log_partition("pessimistic")

    @property
    def stderrs(self) -> tuple[float, float]:
        """Standard errors of `optimistic` and `pessimistic`, those of log Z; zero when exact."""
        return self.log_partition.stderrs if isinstance(self.log_partition, LogPartitionInterval) else (0.0, 0.0)

    @property
    def rows_stderr(self) -> float:
        """Standard error of the mean as an estimate for other rows of the same kind: how much rows differ."""
        effective = 1.0 / float(np.square(self.weights).sum())
        variance = float(self.weights @ np.square(self.log_weights - self.mean_log_weight))
        return float(np.sqrt(variance / max(effective - 1.0, 1.0)))

    @property
    def trouble(self) -> str | None:
        """Why log Z is uncertain, or None."""
        return self.log_partition.trouble if isinstance(self.log_partition, LogPartitionInterval) else None

    def per_row(self, end: str = "lower") -> Floats:
        """Return log P(v) of each row at one end: ``"lower"``, ``"upper"``, ``"optimistic"`` or ``"pessimistic"``."""
        if end not in ENDS:
            raise ArgumentError("is not known", f"use one of {', '.join(ENDS)}", argument="end", value=end)
        return self.log_weights - self._log_partition(end)

    def _log_partition(self, end: str) -> float:
        interval = self.log_partition
        if not isinstance(interval, LogPartitionInterval):
            return interval
        forward, reverse = interval.forward.log_partition, interval.reverse.log_partition
        # by chance the forward estimate may be the larger: the interval contains both all the same
        choices = {
            "lower": max(interval.upper, forward, reverse),
            "upper": min(interval.lower, forward, reverse),
            "optimistic": forward,
            "pessimistic": reverse,
        }
        return choices[end]

    def describe(self) -> str:
        """Return the result as text."""
        if not isinstance(self.log_partition, LogPartitionInterval):
            return f"mean log-likelihood {self.lower:.2f} nats a row, exact ({self._rows})"
        text = f"mean log-likelihood between {self.lower:.2f} and {self.upper:.2f} nats a row ({self._rows})"
        return f"{text}: {self._sides(self.log_partition, 'annealing to the machine gives', 'annealing back gives')}"

    @property
    def _rows(self) -> str:
        return f"{len(self.log_weights)} rows, which differ by a standard error of {self.rows_stderr:.2f}"

    def _sides(self, interval: LogPartitionInterval, forward: str, reverse: str) -> str:
        """Describe the estimates of both runs, and a reason to distrust them."""
        above, below = interval.stderrs
        text = (
            f"{forward} {self.optimistic:.2f} +- {above:.2f}, too large in expectation; {reverse} "
            f"{self.pessimistic:.2f} +- {below:.2f}, too small in expectation as far as its start, "
            f"{interval.start}, has the machine's distribution"
        )
        return f"{text}; beware: {interval.trouble}" if interval.trouble else text

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, eq=False)
class LogLikelihoodBound(LogLikelihood):
    """A lower bound on the mean log-likelihood of rows, in nats a row: the truth may be well above it.

    Parameters
    ----------
    log_weights : ndarray of shape (n_rows,)
        Lower bounds on ``log P(v) + log Z`` of each row.
    weights : ndarray of shape (n_rows,)
        Weights of the rows, adding up to 1.
    log_partition : float or LogPartitionInterval
        log Z, exact or between two annealed runs.
    method : str
        The origin of the bound, as text.
    bound_stderr : float
        Standard error of the mean of `log_weights` from sampling; zero by mean field.
    """

    method: str = "mean field"
    bound_stderr: float = 0.0

    @property
    def exact(self) -> bool:
        """Never: the hidden units are not summed over."""
        return False

    @property
    def lower(self) -> float:
        """The bound with the largest log Z that the reverse run and all errors allow."""
        return self.mean_log_weight - 2.0 * self.bound_stderr - self._log_partition("lower")

    @property
    def upper(self) -> float:
        """Infinite: a lower bound says nothing about how far above it the truth is."""
        return float("inf")

    def describe(self) -> str:
        """Return the result as text."""
        sampled = f" (sampling error {self.bound_stderr:.2f})" if self.bound_stderr else ""
        text = f"mean log-likelihood at least {self.lower:.2f} nats a row, a lower bound by {self.method}{sampled}"
        if not isinstance(self.log_partition, LogPartitionInterval):
            return f"{text} with exact log Z ({self._rows})"
        forward = "with log Z by annealing to the machine the bound is"
        return f"{text} ({self._rows}): {self._sides(self.log_partition, forward, 'with that by annealing back')}"
