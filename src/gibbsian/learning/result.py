"""What a fit leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from gibbsian.diagnostics.moments import DataMoments
from gibbsian.display import Shown
from gibbsian.errors import ArgumentError, UntrainedWarning, notify, spelled
from gibbsian.learning.optimizers import StepInfo
from gibbsian.models import Model

if TYPE_CHECKING:
    from gibbsian.learning.trained import TrainingReport

COLUMNS = ("step", "value", "gradient_norm", "step_size", "evaluations", "seconds")


@dataclass(repr=False)
class Trace(Shown):
    """One row per step: value, largest gradient entry, step size, evaluations so far, what the learner adds, seconds.

    Parameters
    ----------
    rows : list of tuple
        The steps.
    details : tuple of str
        Names of the columns that the learner adds (`StepInfo.metrics`).

    Examples
    --------
    >>> import gibbsian as gb
    >>> trace = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).result_.trace
    >>> trace.columns
    ('step', 'value', 'gradient_norm', 'step_size', 'evaluations', 'seconds')
    """

    rows: list[tuple[float, ...]] = field(default_factory=list)
    details: tuple[str, ...] = ()

    def _facts(self) -> dict[str, Any]:
        last = dict(zip(self.columns, self.rows[-1], strict=True)) if self.rows else {}
        return {"steps": len(self), "columns": self.columns, "value": last.get("value")}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return (*COLUMNS[:-1], *self.details, COLUMNS[-1])

    def add(self, step: int, info: StepInfo, seconds: float) -> None:
        """Record one step."""
        if not self.rows:
            self.details = tuple(info.metrics)
        own = (info.metrics[name] for name in self.details)
        self.rows.append((step, info.value, info.gradient_norm, info.step_size, info.evaluations, *own, seconds))

    def column(self, name: str) -> np.ndarray:
        """Return one column as an array."""
        return np.array([row[self.columns.index(name)] for row in self.rows])

    def kept(self, name: str) -> np.ndarray:
        """Return one column over the steps of the start that was kept; over all of them where there was one."""
        values = self.column(name)
        if not {"best", "start"} <= {*self.details} or not len(values):
            return values
        return values[self.column("start") == self.column("best")[-1]]

    def to_array(self) -> np.ndarray:
        """Return all rows as an array of shape (n_steps, n_columns)."""
        return np.array(self.rows, dtype=np.float64).reshape(-1, len(self.columns))

    @classmethod
    def from_array(cls, rows: np.ndarray, details: Sequence[str] = ()) -> Trace:
        """Rebuild a trace from `to_array`."""
        return cls([tuple(row) for row in rows.tolist()], tuple(details))

    def to_frame(self) -> Any:
        """Return the trace as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.to_array(), columns=list(self.columns))

    def __len__(self) -> int:
        return len(self.rows)


class HeldOut(NamedTuple):
    """The score of rows that a fit did not see.

    Parameters
    ----------
    score : float
        Mean per row, in nats.
    kind : str
        ``"log-likelihood"``, or ``"log-pseudolikelihood"`` where the former is out of reach.
    n_rows : int
        How many rows.
    fitted : float, optional
        The same score of the rows that were fitted; None where it is not known.
    independent : float, optional
        The same score of the held-out rows under independent columns with the margins of the fitted rows.
    stderr : float, optional
        Standard error of ``score - independent`` over the held-out rows; None where the score is a lower bound, which
        proves nothing where it is below that of independent columns.
    with_penalty, with_penalty_stderr : float, optional
        The same score of the held-out rows after a fit with ``l2 = 1 / rows``, where that was tried, and the standard
        error of its difference to `score`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes()
    >>> machine = gb.BoltzmannMachine(learner="mle", l2=0.01, validation_fraction=0.2, random_state=0).fit(votes)
    >>> found = machine.result_.held_out
    >>> found.n_rows, found.fitted > found.score > found.independent, found.problem()
    (87, True, '')
    """

    score: float
    kind: str
    n_rows: int
    fitted: float | None = None
    independent: float | None = None
    stderr: float | None = None
    with_penalty: float | None = None
    with_penalty_stderr: float | None = None

    def problem(self) -> str:
        """Return what speaks against the fit, in a sentence; empty where nothing does.

        Every fit scores the rows that it saw higher than others, so that a difference alone is no fault. Three things
        are, each beyond two standard errors. Held-out rows score lower than independent columns, by more than a
        hundredth of that score (a fit of columns that are independent loses a little): nothing was learned.
        A penalty of one over the number of rows raises their score by more than a hundredth of what the fit gains over
        independent columns: less would have been more. Or they gain less than a third of what the fitted rows gain over
        independent columns (where that is more than a hundredth of the score): the loss of a fit is about half the
        difference of the two scores, so that it is then as large as the gain.
        """
        fitted, independent, stderr, with_penalty, with_penalty_stderr = (
            float("nan") if figure is None else figure for figure in self[3:]
        )
        gain, noise, little = self.score - independent, 2 * stderr, 0.01 * abs(independent)
        if gain < -max(noise, little):
            return (
                f"held-out rows score {self.score:.4g} nats, worse than independent columns ({independent:.4g}): "
                "the fit tells nothing about rows that it did not see"
            )
        better = with_penalty - self.score
        if better > 2 * with_penalty_stderr and better > 0.01 * gain:
            return (
                f"overfitted: held-out rows score {self.score:.4g} nats, and {with_penalty:.4g} under a penalty "
                "of one over the number of rows: use `l2='auto'`"
            )
        if fitted - independent > little and gain + noise < (fitted - independent) / 3:
            return (
                f"overfitted: fitted rows score {fitted:.4g} nats, held-out rows {self.score:.4g}, independent "
                f"columns {independent:.4g}: use a stronger penalty, a smaller model or more rows"
            )
        return ""

    def describe(self) -> str:
        """Describe the scores in one sentence."""
        beside = {"fitted rows": self.fitted, "independent columns": self.independent}
        known = [f"{name} {value:.4f}" for name, value in beside.items() if value is not None]
        return ", ".join([f"{self.kind} of {self.n_rows} held-out rows {self.score:.4f} nats a row", *known])


class Verdict(NamedTuple):
    """Whether the parameters of a fit may be read.

    Parameters
    ----------
    status : {"good", "unknown", "bad"}
        ``"good"`` where everything that was checked is in order, ``"unknown"`` where nothing could be checked (chains
        that have not mixed are no evidence), ``"bad"`` where the fit failed or does not reproduce its data.
    problems : tuple of str
        Why, one sentence each; empty for a good fit.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).result_.verdict.status
    'good'
    """

    status: Literal["good", "unknown", "bad"]
    problems: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the parameters may be read."""
        return self.status == "good"


@dataclass(frozen=True, repr=False)
class FitResult(Shown):
    """A fitted model with the story of its fit.

    Parameters
    ----------
    model : Model
        The model at the last step.
    trace : Trace
        Every step.
    converged : bool
        Whether the gradient fell below the tolerance.
    reason : str
        Why the fit ended, in a sentence: what to do about it where it did not converge.
    provenance : dict
        Learner, version, rows, time: what a later reader wants to know.
    moments : DataMoments, optional
        The data's moments, to compare the model's with.
    penalised : bool
        Whether the fit had a penalty.
    held_out : HeldOut, optional
        The score of rows that were kept out of the fit.
    history : dict of str to ndarray
        Figures that were followed: their values before the first step and after every one.
    remedy : str
        What to do where the fit did not converge, with code between backticks.
    warning : str
        What is wrong with the solution; empty where nothing is.
    state : dataclass or tuple, optional
        What `partial_fit` continues from (`Fit.handover`); no part of files.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).result_.reason
    'converged after 1 step: gradient 0'
    """

    model: Model
    trace: Trace
    converged: bool
    reason: str
    provenance: dict[str, Any] = field(default_factory=dict)
    moments: DataMoments | None = None
    penalised: bool = False
    held_out: HeldOut | None = None
    history: dict[str, np.ndarray] = field(default_factory=dict)
    remedy: str = ""
    warning: str = ""
    state: Any = field(default=None, repr=False)

    def _facts(self) -> dict[str, Any]:
        story, scored = self.provenance, self.held_out
        return {
            "fit": self.reason,
            "learner": story.get("learner"),
            "rows": story.get("rows"),
            "seconds": self.seconds if self.seconds == self.seconds else None,
            "trained": vars(self)["training"].describe() if "training" in vars(self) else None,
            "held out": None if scored is None else scored.describe(),
        }

    @property
    def without_hint(self) -> str:
        """The reason without the remedy."""
        return self.reason.removesuffix(f": {spelled(self.remedy)}")

    @cached_property
    def training(self) -> TrainingReport:
        """Is it trained? Computed when first asked for, with a fixed seed where moments are sampled."""
        from gibbsian.learning.objectives.priors import natural_penalties
        from gibbsian.learning.trained import penalty_pull, training_report

        if self.moments is None:
            raise ArgumentError("moments are not what this model is learned by", "compare `score` of held-out rows")
        rng, pull, story = np.random.default_rng(0), None, self.provenance
        norm = float(self.trace.rows[-1][2]) if self.trace.rows else float("nan")
        if self.penalised:
            l2 = story.get("l2", 0.0)
            if "l2_growth" in story:  # a full-span model, whose penalty grows with the columns of a function
                l2 = l2 * story["l2_growth"] ** (self.model.family.basis.orders(self.model.family.functions) - 1.0)
            given = story.get("l1", 0.0), l2, story.get("log_prior"), story.get("temperature", 1.0)
            pull = penalty_pull(self.model, **natural_penalties(*given), n_rows=float(story.get("rows", 1)))
        return training_report(self.model, self.moments, norm, rng, pull, self.converged)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the parameters may be read, by the ending, the model's moments and the rows that were held out."""
        bad: list[str] = []
        unknown: list[str] = []
        if not self.converged and "chunks" not in self.provenance:
            bad.append(self.reason)
        if self.moments is not None and self.training.status != "trained":
            (bad if self.training.status == "untrained" else unknown).append(self.training.describe())
        if self.held_out is not None and (problem := self.held_out.problem()):
            bad.append(problem)
        if self.moments is None and self.held_out is None:
            unknown.append("nothing was checked: hold out rows with `validation_fraction=0.2`")
        if "doubt" in self.provenance:
            unknown.append(self.provenance["doubt"])
        return Verdict("bad" if bad else "unknown" if unknown else "good", (*bad, *unknown))

    @property
    def n_steps(self) -> int:
        """Number of steps taken, of several starts by the one that was kept."""
        return len(self.trace.kept("step"))

    @property
    def seconds(self) -> float:
        """Time spent on the steps."""
        return self.trace.rows[-1][-1] if self.trace.rows else 0.0


def warn_untrained(result: FitResult) -> None:
    """Warn where a fit has ended well but its model does not reproduce the data.

    Moments are compared where exact ones are quick, in no more time than a step of the fit, and by the learners that
    compare them anyhow (``"auto"``). Of other fits chains would cost more than learning did: `FitResult.verdict` runs
    them when asked, and the command line asks.
    """
    from gibbsian.learning.trained import is_quick

    if not result.converged:  # which was warned of
        return
    if result.provenance.get("moments") == "unknown":
        if result.held_out is not None:  # which is what the warning asks for
            return
        reason = "chains do not mix, so that the moments of the model could not be compared with those of the data"
        notify(UntrainedWarning(reason, "compare the scores of held-out rows, by `validation_fraction=0.2`"))
    elif result.moments is not None and is_quick(result.model):
        report = result.training
        if report.status == "untrained" and not report.is_held_by_penalty:  # a strong penalty was asked for
            notify(UntrainedWarning(report.describe()))
