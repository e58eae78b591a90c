"""The contract every expectation keeps: settings, bound once to a model and rows, then functions of theta and a state.

Clamped is a mask: the present cells of the rows are held, and the expectation is the mean over the rows given them. The
free expectation is that of one row whose cells are all missing.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from gibbsian.arrays import Floats
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations.samples import Samples
from gibbsian.models.base import ExponentialFamily, Model
from gibbsian.registry import Registry
from gibbsian.rng import Key

EXPECTATIONS = Registry("expectation", "gibbsian.expectations", "EXPECTATIONS")

S = TypeVar("S")
# complete states that an expectation starts at, or averages over: samples here, or rows wherever they are
Starts = Samples | Rows


@runtime_checkable
class Expectation(Protocol[S]):
    """How the expected statistics of a model are taken: settings alone, of which one object serves any model.

    Examples
    --------
    >>> import gibbsian as gb
    >>> isinstance(gb.expectations.Exact(), gb.expectations.Expectation)
    True
    """

    @property
    def needs_starts(self) -> bool:
        """Whether every call begins at complete rows: at the data (CD), or with the data for samples (SMCI)."""

    def bind(
        self, model: Model[ExponentialFamily], clamp: Rows | None = None, starts: Starts | None = None
    ) -> BoundExpectation[S]:
        """Return the expectation of a family and of rows.

        Parameters
        ----------
        model : Model
            Its family counts; theta comes with each call.
        clamp : Rows or None, default None
            Rows whose present cells are held; None is one row whose cells are all missing, the free expectation.
        starts : Samples, Rows or None, default None
            Complete states where chains start, or that are the samples (CD, PCD, SMCI over the data). None lets chains
            start at random states.
        """


class BoundExpectation(Protocol[S]):
    """An expectation of one family and one set of rows: plans, tables and lists of completions live here.

    A state holds arrays, numbers and keys alone, so that a checkpoint can keep it.
    """

    def init(self, theta: Floats, key: Key) -> S:
        """Return the state before the first call."""

    def __call__(self, theta: Floats, state: S, starts: Starts | None = None) -> tuple[Estimate, S]:
        """Return the expected statistics at theta, and the next state.

        The part `log_partition` of the estimate, where it is known, is log Z, or the mean log-evidence of the rows.
        `starts` replaces those that were bound, in this call: chains that restart at the data (CD), and data that are
        the samples (SMCI), go by the rows as their missing cells are completed now.
        """

    def samples(self, state: S, copy: int | None = None) -> Starts | None:
        """Return the complete states behind the last call, completions of the rows or chains; None without any.

        `copy` asks for one of several independent copies of the rows, the default for all.
        """


class NoSamples:
    """A bound expectation behind which there are no samples."""

    def samples(self, state: object, copy: int | None = None) -> None:
        """Return nothing."""


def as_expectation(
    expectation: str | Expectation[S], argument: str = "expectation", needs_starts: bool = False
) -> Expectation[S]:
    """Turn a registered name into an expectation with default settings; pass an expectation through.

    Names of those that begin at complete rows in every call are known only if there are such rows (`needs_starts`).

    Examples
    --------
    >>> from gibbsian.expectations.base import as_expectation
    >>> as_expectation("exact")
    Exact(max_seconds=60.0)
    """

    def is_known(name: str) -> bool:
        return name in EXPECTATIONS.names() and (needs_starts or not EXPECTATIONS.trait(name, "needs_starts"))

    if isinstance(expectation, str) and is_known(expectation):
        created: Expectation[S] = EXPECTATIONS.create(expectation)
        return created
    if isinstance(expectation, Expectation) and not isinstance(expectation, type):
        return expectation
    known = ", ".join(filter(is_known, EXPECTATIONS))
    if isinstance(expectation, str):
        raise ArgumentError("is not known", f"use one of {known}", argument=argument, value=expectation)
    raise ArgumentError(f"must be one of {known}, or an expectation", argument=argument, value=expectation)
