"""Likelihoods of rows under a fitted restricted machine, and what all machines of layers share about log Z."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, GibbsianWarning, TooExpensiveError, notify
from gibbsian.estimators.answers import ScoreInterval
from gibbsian.estimators.layered_data import VisibleRows
from gibbsian.inference import exact as exactly
from gibbsian.inference import is_affordable
from gibbsian.layered.annealing import LayerAnnealing, log_partition_interval
from gibbsian.layered.likelihood import LogLikelihood, log_likelihood_of
from gibbsian.layered.missing import log_evidence
from gibbsian.layered.pseudolikelihood import log_pseudolikelihood
from gibbsian.layered.rows import LayerRows
from gibbsian.learners import HeldOut
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel
from gibbsian.rng import RandomState, as_generator

# Temperatures of the annealing behind a score: fewer than where log Z itself is asked for, and so a wider interval.
QUICK_BETAS = 1000


class UpperLogPartitionMixin(ABC):
    """Remembers log Z of a fitted model, or its upper side, so that scores err on the low side."""

    model_: Any
    # What the width of the interval does to a score.
    _width_is_said = "scores are lower bounds, up to {width:.2g} too low"

    @abstractmethod
    def log_partition(
        self, method: str = "auto", n_samples: int | None = None, betas: int | None = None
    ) -> float | LogPartitionInterval:
        """Return log Z: exactly, or between two sides."""

    @property
    def _summable(self) -> RestrictedModel:
        """The restricted machine whose log Z is that of the model."""
        return self.model_

    def _log_partition_above(self) -> float:
        """Return log Z or its upper side; found once for a fitted model."""
        known: tuple[Any, float] | None = self.__dict__.get("_log_z")
        if known is not None and known[0] is self.model_:
            return known[1]
        found = self.log_partition(betas=None if is_affordable(self._summable) else QUICK_BETAS)
        if isinstance(found, LogPartitionInterval):
            said = self._width_is_said.format(width=found.upper - found.lower)
            notify(
                GibbsianWarning(
                    f"log Z is known between {found.lower:.6g} and {found.upper:.6g} only, so {said}",
                    "log_likelihood has both sides",
                )
            )
            found = found.upper
        self._log_z = self.model_, found
        return found


class RestrictedScoresMixin(UpperLogPartitionMixin):
    """The likelihoods of a machine that has a `RestrictedModel` as ``model_`` and reads data by ``_read``."""

    model_: RestrictedModel
    names_: tuple[str, ...]
    random_state: RandomState

    if TYPE_CHECKING:

        def _read(self, X: Any, sample_weight: Any = None) -> VisibleRows: ...
        def _values(self, X: Any, what: str) -> np.ndarray: ...
        def _complete(self, data: VisibleRows, what: str) -> np.ndarray: ...

    def free_energy(self, X: Any) -> np.ndarray:
        """Return ``F(v) = -T log sum_h exp(-E(v, h) / T)`` of each row; log P(v) is ``-F(v) / T - log Z``.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> X = [[0, 1], [1, 0], [1, 1], [0, 0]]
        >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit(X)
        >>> np.allclose(rbm.score_samples(X), -rbm.free_energy(X) - rbm.log_partition())
        True
        """
        values = self._values(X, "free_energy")
        return self.model_.free_energy(values)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row, in nats; missing cells are summed out.

        Exact where the smaller layer has at most 25 units. Elsewhere log Z is known between two sides only, and the
        likelihood is given with the upper one, so that it is rather too low than too high; a warning says so once, and
        `log_likelihood` has both sides. scikit-learn's ``BernoulliRBM.score_samples`` is another quantity, a random
        estimate of the pseudolikelihood: `pseudo_score` is its exact mean.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.score_samples([[0, 1], [None, 1]]).round(1)                      # about log 1/4 and log 1/2
        array([-1.4, -0.7])
        """
        data = self._read(X)
        return log_evidence(self.model_, data.rows) - self._log_partition_above()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean of `score_samples`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> round(rbm.score([[0, 1]]), 1)
        -1.4
        """
        data = self._read(X, sample_weight)
        evidence = np.average(log_evidence(self.model_, data.rows), weights=data.rows.shares)
        return float(evidence - self._log_partition_above())

    def pseudo_score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-pseudolikelihood per row, which needs no log Z and so suits a machine of any size.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> round(rbm.pseudo_score([[0, 1]]), 1)
        -1.4
        """
        data = self._read(X)
        if self.model_.visible.kind == "gaussian":
            raise ArgumentError("pseudo_score has no closed form for Gaussian units", "use score")
        self._complete(data, "pseudo_score")
        return float(np.average(log_pseudolikelihood(self.model_, data.rows.states), weights=data.rows.shares))

    def score_or_pseudo_score(self, X: Any) -> HeldOut:
        """Return the score where it is exact, else the pseudo-score of complete rows, and say which it is.

        Gaussian units have no pseudo-score: theirs is the score, with the upper side of log Z.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.score_or_pseudo_score([[0, 1]]).kind
        'log-likelihood'
        """
        return self._score_of_rows(self._read(X).rows)

    def _score_of_rows(self, rows: LayerRows) -> HeldOut:
        if is_affordable(self.model_) or self.model_.visible.kind == "gaussian":
            with contextlib.suppress(TooExpensiveError):  # rows that lack too many cells
                score = np.average(log_evidence(self.model_, rows), weights=rows.shares) - self._log_partition_above()
                return HeldOut(float(score), "log-likelihood", rows.n_rows)
        if rows.missing is not None:
            whole = np.flatnonzero(~rows.missing.any(axis=1))
            if not len(whole):
                return HeldOut(np.nan, "log-pseudolikelihood", 0)
            rows = rows.take(whole)
        scores = log_pseudolikelihood(self.model_, rows.states)
        return HeldOut(float(np.average(scores, weights=rows.shares)), "log-pseudolikelihood", rows.n_rows)

    def log_likelihood(
        self,
        X: Any,
        sample_weight: Any = None,
        n_samples: int | None = None,
        betas: int | None = None,
        exact: bool | None = None,
    ) -> LogLikelihood:
        """Return the mean log-likelihood per row: exact where log Z is, else between two sides with standard errors.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows; missing cells are summed out.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        n_samples, betas : int, optional
            As in `log_partition`.
        exact : bool, optional
            True insists on an exact log Z, False on annealing; by default exact where it is in reach, unless
            `n_samples` or `betas` are given.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.log_likelihood([[0, 1], [1, 1]]).exact
        True
        """
        rows = self._read(X, sample_weight).rows
        exact = checked_exact(exact, n_samples, betas)
        annealing = LayerAnnealing(base=rows, **given_of(n_walkers=n_samples, betas=betas))
        rng = as_generator(self.random_state)
        if exact:
            exactly(self.model_, instead="set `exact=False` for both sides of it")
        return log_likelihood_of(self.model_, rows, annealing=annealing, rng=rng, exact=exact)

    def score_interval(
        self, X: Any, sample_weight: Any = None, n_samples: int | None = None, betas: int | None = None
    ) -> ScoreInterval:
        """Return the mean log-likelihood per row between two sides, by annealed importance sampling.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> found = rbm.score_interval([[0, 1]], n_samples=100, betas=100)
        >>> found.lower <= rbm.score([[0, 1]]) <= found.upper
        True
        """
        found = self.log_likelihood(X, sample_weight, n_samples, betas, exact=False)
        assert isinstance(found.log_partition, LogPartitionInterval)
        return ScoreInterval(found.lower, found.upper, found.log_partition)

    def log_partition(
        self, method: str = "auto", n_samples: int | None = None, betas: int | None = None
    ) -> float | LogPartitionInterval:
        """Return log Z: exactly, or between two sides.

        Parameters
        ----------
        method : "auto", "exact" or "ais"
            ``"exact"`` sums over the smaller layer, of at most 25 two-valued units. ``"ais"`` brackets log Z by
            annealed importance sampling to the machine and back and returns a `LogPartitionInterval`. ``"auto"`` is
            exact where possible, unless `n_samples` or `betas` ask for annealing.
        n_samples, betas : int, optional
            Walkers of annealed importance sampling, and temperatures on their way.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> bracket = rbm.log_partition("ais", n_samples=100, betas=100)
        >>> bracket.lower <= rbm.log_partition() <= bracket.upper
        True
        """
        check_is_fitted(self)
        exact = checked_method(method, n_samples, betas)
        given = given_of(n_walkers=n_samples, betas=betas)
        if is_affordable(self.model_) if exact is None else exact:
            return self._exact_log_partition()
        return log_partition_interval(
            self.model_, annealing=LayerAnnealing(**given), rng=as_generator(self.random_state)
        )

    @property
    def needs_interval(self) -> bool:
        """Whether log Z is out of reach of an exact sum."""
        check_is_fitted(self)
        return not is_affordable(self.model_)

    @property
    def score_kind(self) -> str:
        """What `score_samples` gives: the log-likelihood, or a lower bound where log Z is out of reach."""
        return "log_likelihood_lower_bound" if self.needs_interval else "log_likelihood"

    def _exact_log_partition(self) -> float:
        return exactly(
            self.model_, instead="bracket log Z by `method='ais'` (of scores: log_likelihood)"
        ).log_partition()


def checked_method(method: str, n_samples: int | None, betas: int | None) -> bool | None:
    """Refuse what no way to log Z can use; return whether it shall be exact, None where the machine decides.

    Examples
    --------
    >>> from gibbsian.estimators.layered_scores import checked_method
    >>> checked_method("auto", None, None), checked_method("auto", 100, None)
    (None, False)
    >>> checked_method("exact", 100, None)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: n_samples and betas belong to method='ais': leave them out
    """
    if not isinstance(method, str) or method not in ("auto", "exact", "ais"):
        raise ArgumentError("is not known", "use one of auto, exact, ais", argument="method", value=method)
    asked = _checked_annealing(n_samples, betas)
    if method == "exact" and asked:
        raise ArgumentError("`n_samples` and betas belong to `method='ais'`", "leave them out")
    return (False if asked else None) if method == "auto" else method == "exact"


def checked_exact(exact: bool | None, n_samples: int | None, betas: int | None) -> bool | None:
    """The same where exactness is asked for by True and False.

    Examples
    --------
    >>> from gibbsian.estimators.layered_scores import checked_exact
    >>> checked_exact("no", None, None)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: exact='no' must be True, False or None
    """
    if exact is not None and not isinstance(exact, bool | np.bool_):
        raise ArgumentError("must be True, False or None", argument="exact", value=exact)
    asked = _checked_annealing(n_samples, betas)
    if exact and asked:
        raise ArgumentError("`n_samples` and betas belong to `exact=False`", "leave them out")
    return (False if asked else None) if exact is None else bool(exact)


def _checked_annealing(n_samples: int | None, betas: int | None) -> bool:
    """Whether annealing is asked for, in numbers that it can use."""
    if n_samples is not None:
        check_whole_number("n_samples", n_samples, least=2)
    return bool(given_of(n_samples=n_samples, betas=betas))


def given_of(**settings: Any) -> dict[str, Any]:
    """Return the settings that are not None.

    Examples
    --------
    >>> from gibbsian.estimators.layered_scores import given_of
    >>> given_of(n_walkers=None, betas=10)
    {'betas': 10}
    """
    return {name: value for name, value in settings.items() if value is not None}
