"""The verdict on a fit: whether its parameters may be read, and what speaks against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from gibbsian.errors import UntrainedWarning, notify

if TYPE_CHECKING:
    from gibbsian.learning.result import FitResult


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


def judge(result: FitResult) -> Verdict:
    """Return the verdict on a fit from its ending, the moments of its model and the rows that were held out."""
    bad: list[str] = []
    unknown: list[str] = []
    if not result.converged and "chunks" not in result.provenance:
        bad.append(result.reason)
    if result.moments is not None and result.training.status != "trained":
        (bad if result.training.status == "untrained" else unknown).append(result.training.describe())
    if result.held_out is not None and (problem := result.held_out.problem()):
        bad.append(problem)
    if result.moments is None and result.held_out is None:
        unknown.append("nothing was checked: hold out rows with `validation_fraction=0.2`")
    if "doubt" in result.provenance:
        unknown.append(result.provenance["doubt"])
    return Verdict("bad" if bad else "unknown" if unknown else "good", (*bad, *unknown))


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
