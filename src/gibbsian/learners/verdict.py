"""The verdict on a fit: whether its parameters may be read, and what speaks against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from gibbsian.learners.result import FitResult


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
    return Verdict("bad" if bad else "unknown" if unknown else "good", (*bad, *unknown))
