"""Strengths, epsilon and whatever else chosen by the likelihood of rows that no fit has seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.full_span.averaging import bootstrap_average
from gibbsian.full_span.checks import check_known, check_number, checked_counts, listed_candidates, plain
from gibbsian.full_span.fit import fit_full_span
from gibbsian.full_span.hidden import fit_hidden
from gibbsian.full_span.problem import SpanProblem
from gibbsian.models.span_basis import SpanBasis
from gibbsian.rng import RandomState, as_generator

Rows = tuple[np.ndarray, np.ndarray]
Settings = Mapping[str, Any]


class Distribution(Protocol):
    """What every kind of fit has: probabilities of all states, and their logarithms for some."""

    def log_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the logarithm of the probability of each row of codes."""
        ...

    def probabilities(self) -> np.ndarray:
        """Return the probability of every state, in the order of their indices."""
        ...


@dataclass(frozen=True)
class Trial:
    """One candidate.

    Parameters
    ----------
    settings : dict
        What was tried.
    log_likelihood : float
        Mean over the held-out rows.

    Examples
    --------
    >>> from gibbsian.full_span.selection import Trial
    >>> Trial({"l2": 0.1}, -2.5).log_likelihood
    -2.5
    """

    settings: Settings
    log_likelihood: float


@dataclass(frozen=True)
class Selection:
    """The candidates as they did, and the model of the best.

    Parameters
    ----------
    model : Distribution
        FullSpanModel, SpanAverage or HiddenFit.
    best : Trial
        The settings that were chosen.
    trials : tuple of Trial
        All of them, in the order in which they were given.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import select_on
    >>> states = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> rows, held_out = (states, np.array([90, 10, 20, 80])), (states, np.array([30, 10, 15, 25]))
    >>> selection = select_on(rows, held_out, (2, 2), [{"l2": 0.0}, {"l2": 0.1}])
    >>> selection.best.settings, len(selection.trials)
    ({'l2': 0.1}, 2)
    """

    model: Distribution
    best: Trial
    trials: tuple[Trial, ...]


def fit_with(rows: Rows, cardinalities: Sequence[int], settings: Settings) -> Distribution:
    """Fit with settings of any kind: ``n_fits`` asks for a bootstrap average, ``n_hidden`` for a hidden variable.

    Parameters
    ----------
    rows : tuple of ndarray
        States and counts.
    cardinalities : (n,) of int
        Number of values of each variable.
    settings : dict
        Of `bootstrap_average`, `fit_hidden` or `fit_full_span`.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.selection import fit_with
    >>> rows = np.array([[0, 0], [0, 1], [1, 1]]), np.array([40, 10, 30])
    >>> type(fit_with(rows, (2, 2), {"n_fits": 3, "random_state": 0})).__name__
    'SpanAverage'
    """
    if "n_fits" in settings and "n_hidden" in settings:
        raise ArgumentError("n_fits and `n_hidden` are given together", "choose one of them")
    check_known(settings, *_takers(settings))
    if "n_fits" in settings:
        return bootstrap_average(*rows, cardinalities, **settings)
    if "n_hidden" in settings:
        return fit_hidden(*rows, cardinalities, **settings)
    return fit_full_span(*rows, cardinalities, **settings).model


def _takers(settings: Settings) -> tuple[Callable[..., Any], ...]:
    """Return the functions whose keywords the settings may be."""
    if "n_fits" in settings:
        return bootstrap_average, fit_full_span
    return (fit_hidden, SpanProblem.build) if "n_hidden" in settings else (fit_full_span,)


def mean_log_likelihood(model: Distribution, rows: Rows, cardinalities: Sequence[int]) -> float:
    """Return the mean log-probability of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import FullSpanModel
    >>> from gibbsian.full_span.selection import mean_log_likelihood
    >>> model = FullSpanModel.build((2,), [1], [0.0])
    >>> round(mean_log_likelihood(model, (np.array([[0], [1]]), np.array([3, 5])), (2,)), 4)
    -0.6931
    """
    states = np.asarray(rows[0])
    SpanBasis(tuple(cardinalities)).indices(states)
    counts = checked_counts(rows[1], len(states))
    return float(counts @ model.log_probabilities(states) / counts.sum())


def select_on(rows: Rows, held_out: Rows, cardinalities: Sequence[int], candidates: Sequence[Settings]) -> Selection:
    """Fit every candidate to `rows` and keep the one under which the held-out rows are most likely.

    Parameters
    ----------
    rows, held_out : tuple of ndarray
        States and counts.
    cardinalities : (n,) of int
        Number of values of each variable.
    candidates : list of dict
        Settings as `fit_with` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import select_on
    >>> states = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> rows, held_out = (states, np.array([90, 20, 30, 60])), (states, np.array([30, 7, 10, 20]))
    >>> select_on(rows, held_out, (2, 2), [{"epsilon": 1e-4}, {"epsilon": 1.0}]).best.settings
    {'epsilon': 0.0001}
    """
    best: tuple[Distribution, Trial] | None = None
    trials = []
    for number, settings in enumerate(listed_candidates(candidates)):
        try:
            model = fit_with(rows, cardinalities, settings)
        except ArgumentError as error:
            raise ArgumentError(f"candidates[{number}]={dict(settings)!r} cannot be fitted", f"{error}") from None
        trial = Trial(settings, mean_log_likelihood(model, held_out, cardinalities))
        trials.append(trial)
        if best is None or trial.log_likelihood > best[1].log_likelihood:
            best = model, trial
    assert best is not None
    return Selection(*best, tuple(trials))


def fit_selected(
    states: np.ndarray,
    counts: np.ndarray | Sequence[float],
    cardinalities: Sequence[int],
    candidates: Sequence[Settings],
    *,
    held_out: float = 0.2,
    random_state: RandomState = None,
) -> Selection:
    """Hold out a share of the rows at random, choose on them, and fit all rows with what was chosen.

    Parameters
    ----------
    states, counts, cardinalities
        As in `fit_full_span`; counts are whole numbers of rows. Of a dataset: ``*counted(data)``.
    candidates : list of dict
        Settings as `fit_with` takes them.
    held_out : float
        Share of the rows that are held out.
    random_state : None, int or Generator
        For which rows these are.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import fit_selected
    >>> x = np.random.default_rng(0).integers(0, 2, (50, 4))
    >>> grid = [{"algorithm": "dense", "l2": l2, "l2_growth": 4.0} for l2 in (1e-3, 1.0)]
    >>> fit_selected(x, np.ones(50), (2,) * 4, grid, random_state=0).best.settings["l2"]
    1.0
    """
    candidates = listed_candidates(candidates)
    states = np.asarray(states)
    counts = checked_counts(counts, len(states))
    kept, left_out = split_rows(counts, held_out, as_generator(random_state))
    selection = select_on((states, kept), (states, left_out), cardinalities, candidates)
    model = fit_with((states, counts), cardinalities, selection.best.settings)
    return Selection(model, selection.best, selection.trials)


def split_rows(counts: np.ndarray, held_out: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts of the rows that are kept and of those that are held out, drawn without replacement.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.selection import split_rows
    >>> kept, left_out = split_rows(np.array([6, 4]), 0.3, np.random.default_rng(0))
    >>> (kept + left_out).tolist(), int(left_out.sum())
    ([6, 4], 3)
    """
    check_number("held_out", held_out)
    if not 0 < held_out < 1:
        raise ArgumentError("must be a share of the rows, between 0 and 1", argument="held_out", value=plain(held_out))
    whole = np.asarray(counts).astype(np.int64)
    if not np.array_equal(whole, counts):
        raise ArgumentError("counts holds fractions of rows", "only whole rows can be held out")
    n_left_out = round(held_out * whole.sum())
    if not 0 < n_left_out < whole.sum():
        raise ArgumentError(
            f"of {whole.sum()} rows leaves nothing to fit or nothing to choose on", argument="held_out", value=held_out
        )
    left_out = rng.multivariate_hypergeometric(whole, n_left_out)
    return whole - left_out, left_out
