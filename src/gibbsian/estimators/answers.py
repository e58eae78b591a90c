"""Questions to a fitted machine: scores, expectations, samples, missing cells."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.data import Dataset
from gibbsian.diagnostics.evidence import log_evidence_interval
from gibbsian.diagnostics.partition import LogPartitionInterval, log_partition_interval
from gibbsian.errors import ArgumentError, MissingValuesError, TooExpensiveError
from gibbsian.estimators.fitting import by_value, like_frame
from gibbsian.expectations import EXPECTATIONS, Estimate, Expectation
from gibbsian.expectations.missing_cells import fill_probabilities
from gibbsian.inference import exact
from gibbsian.inference.missing import log_evidence
from gibbsian.learners import HeldOut
from gibbsian.models.parameters import check_whole_number
from gibbsian.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.rng import RandomState, as_generator
from gibbsian.samplers import draw
from gibbsian.samplers.annealing import Annealing

# A number of samples is shared among as many chains as each has draws, but at most so many: many chains make the
# standard error reliable, many draws R-hat.
MOST_CHAINS = 100
# Temperatures for likelihoods that nobody asked for by name: those of several starts, and of rows held out of a fit.
FEWER_BETAS = 1000


class ScoreInterval(NamedTuple):
    """A score between two sides, where log Z is known between two sides.

    Parameters
    ----------
    lower, upper : float
        Mean log-likelihood per row, in nats.
    log_partition : LogPartitionInterval
        Where log Z lies.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine(random_state=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> found = bm.score_interval([[1, 1]], n_samples=200, betas=200)
    >>> found.lower <= bm.score([[1, 1]]) <= found.upper
    True
    """

    lower: float
    upper: float
    log_partition: LogPartitionInterval


class AnswersMixin:
    """What can be asked of a machine that has ``model_``, ``coding_`` and ``names_`` and reads data by ``_read``."""

    model_: Any
    coding_: Any
    names_: tuple[str, ...]
    random_state: RandomState

    if TYPE_CHECKING:

        def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset: ...

    # -- questions ----------------------------------------------------------------------------------------------------
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the exact log-probability of each row; missing cells are summed out.

        Raises `TooExpensiveError`, with the predicted cost, where the partition function is out of reach.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> np.exp(bm.score_samples([[1, 1], [1, np.nan]])).round(3)
        array([0.25, 0.5 ])
        """
        data = self._read(X)
        return (self._exact_evidence(data) - self._exact_log_partition())[data.row_of]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean exact log-likelihood per row.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> round(bm.score([[1, 1]]), 4)                         # log 1/4
        -1.3863
        """
        data = self._read(X, sample_weight=sample_weight)
        evidence = np.average(self._exact_evidence(data), weights=data.weights)
        return float(evidence - self._exact_log_partition())

    def score_interval(
        self, X: Any, sample_weight: Any = None, n_samples: int | None = None, betas: int | None = None
    ) -> ScoreInterval:
        """Return the mean log-likelihood per row between two sides, for machines whose log Z is out of reach.

        The sides reach two standard errors beyond the estimates of log Z, so that now and then the truth lies just
        outside; where log Z is in reach `score` has no error.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows; missing cells are summed out exactly where that is quick, else between two sides as log Z is.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        n_samples, betas : int, optional
            As in `log_partition`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(random_state=0).fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> [round(side, 3) for side in bm.score_interval([[1, 1]], n_samples=10, betas=10)[:2]]     # log 1/4
        [-1.386, -1.386]
        """
        data = self._read(X, sample_weight=sample_weight)
        bracket = self.log_partition("ais", n_samples=n_samples, betas=betas)
        annealing = None if n_samples is betas is None else _annealing(n_samples, betas)
        evidence = log_evidence_interval(self.model_, data, annealing, as_generator(self.random_state))
        lower, upper = (float(np.average(side, weights=data.weights)) for side in evidence)
        return ScoreInterval(lower - bracket.upper, upper - bracket.lower, bracket)

    def pseudo_score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-pseudolikelihood per row, which needs no partition function and so suits any size.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> round(bm.pseudo_score([[1, 1]]), 4)                  # twice log 1/2
        -1.3863
        """
        return -value_and_gradient(Pseudolikelihood(), self.model_, self._read(X))[0]

    def score_or_pseudo_score(self, X: Any) -> HeldOut:
        """Return the score where it is in reach, else the pseudo-score, else the score's lower side; say which it is.

        The pseudo-score needs complete rows, and hidden units that can be summed out.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> bm.score_or_pseudo_score([[1, 1]]).kind
        'log-likelihood'
        """
        data = self._read(X)
        try:
            return HeldOut(self.score(data), "log-likelihood", data.n_rows)
        except TooExpensiveError:
            pass
        try:
            return HeldOut(self.pseudo_score(data), "log-pseudolikelihood", data.n_rows)
        except (MissingValuesError, TooExpensiveError):
            lower = self.score_interval(data, betas=FEWER_BETAS).lower
            return HeldOut(lower, "lower side of the log-likelihood", data.n_rows)

    @overload
    def log_partition(self, method: Literal["exact"] = ..., n_samples: None = ..., betas: None = ...) -> float: ...

    @overload
    def log_partition(
        self, method: Literal["ais"], n_samples: int | None = ..., betas: int | None = ...
    ) -> LogPartitionInterval: ...

    def log_partition(
        self, method: str = "exact", n_samples: int | None = None, betas: int | None = None
    ) -> float | LogPartitionInterval:
        """Return log Z: exactly, or between two sides.

        Parameters
        ----------
        method : "exact" or "ais"
            ``"ais"`` brackets log Z by annealed importance sampling to the model and back, and returns a
            `LogPartitionInterval`: a single run would only be a lower bound in expectation.
        n_samples : int, optional
            Walkers of annealed importance sampling.
        betas : int, optional
            Temperatures on their way; where the two sides disagree more are needed.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(random_state=0).fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> round(bm.log_partition(), 4)
        1.3863
        >>> round(bm.log_partition(method="ais").upper, 4)
        1.3863
        """
        check_is_fitted(self)
        if method == "ais":
            annealing = _annealing(n_samples, betas)
            return log_partition_interval(self.model_, annealing=annealing, rng=as_generator(self.random_state))
        if method != "exact":
            raise ArgumentError("is not known", "use one of exact, ais", argument="method", value=method)
        if n_samples is not None or betas is not None:
            raise ArgumentError("`n_samples` and betas belong to `method='ais'`", "leave them out")
        return self._exact_log_partition()

    def _exact_evidence(self, data: Dataset) -> np.ndarray:
        try:
            return log_evidence(self.model_, data)
        except TooExpensiveError as error:
            raise TooExpensiveError(f"{error}, or ask for score_interval, which brackets it") from None

    def _exact_log_partition(self) -> float:
        check_is_fitted(self)
        try:
            return exact(self.model_).log_partition()
        except TooExpensiveError as error:
            raise TooExpensiveError(
                f"{error}, or bracket log Z by `method='ais'` (of scores: score_interval)"
            ) from None

    def expect(self, method: str | Expectation = "auto", n_samples: int | None = None) -> Estimate:
        """Return the expected statistics of the model, in the layout of ``model_.theta``, with standard errors.

        Parameters
        ----------
        method : "auto", str or Expectation
            ``"exact"``, ``"monte-carlo"``, ``"s2-smci"``, any registered name or an object; ``"auto"`` is exact where
            possible.
        n_samples : int, optional
            How many samples a method that draws them takes (rounded up to whole sweeps of its chains), instead of its
            own number; ``"auto"`` then samples by ``"monte-carlo"``.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(random_state=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.expect().mean.round(4).tolist(), bm.expect().stderr.tolist()
        ([0.2, 0.2, 0.2], [0.0, 0.0, 0.0])
        >>> plain, spatial = (bm.expect(method, n_samples=2500) for method in ("monte-carlo", "1-smci"))
        >>> bool((spatial.stderr < plain.stderr).all())
        True
        """
        check_is_fitted(self)
        if method == "auto":
            if n_samples is not None:
                return self.expect("monte-carlo", n_samples)
            try:
                return self.expect("exact")
            except TooExpensiveError:
                return self.expect("monte-carlo")
        expectation = EXPECTATIONS.create(method) if isinstance(method, str) else method
        if n_samples is not None:
            expectation = _with_samples(expectation, method, n_samples)
        state = expectation.init(self.model_, None, as_generator(self.random_state))
        return expectation(self.model_, state)[0]

    def sample(self, n_samples: int = 1, method: str = "auto", random_state: RandomState = None) -> np.ndarray:
        """Draw rows from the model, in the coding of the data it was fitted on.

        Parameters
        ----------
        n_samples : int
            How many rows.
        method : "auto", "exact" or a sampler's name
            ``"auto"`` draws exactly where possible and otherwise by Gibbs sampling.
        random_state : None, int or Generator
            Overrides the machine's own.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(random_state=0).fit([["yes", "no"], ["no", "no"], ["yes", "yes"], ["no", "yes"]])
        >>> bm.sample(3).shape
        (3, 2)
        """
        check_is_fitted(self)
        check_whole_number("n_samples", n_samples, least=1)
        rng = as_generator(self.random_state if random_state is None else random_state)
        return self.coding_.decode(self._draw(n_samples, method, rng))

    def _draw(self, n_samples: int, method: str, rng: np.random.Generator) -> np.ndarray:
        if method in ("auto", "exact"):
            try:
                return exact(self.model_).sample(n_samples, rng)
            except TooExpensiveError:
                if method == "exact":
                    raise
                method = "gibbs"
        draws = draw(self.model_, n_samples, rng, sampler=method)
        return draws.reshape(-1, self.model_.n_variables)[:n_samples]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return, for every cell, the probability of its upper value given the present cells of its row.

        Present cells give 0 or 1; missing ones their conditional probability, exact where possible, else by Gibbs
        sampling. Variables with many values give the probability of each, an array of shape (rows, variables, values)
        with zeros after the last value of a variable that has fewer.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.predict_proba([[1, np.nan]]).round(3)
        array([[1.   , 0.667]])
        """
        data = self._read(X)
        return self._fill(data)[data.row_of]

    def impute(self, X: Any) -> Any:
        """Return X with each missing cell set to its most probable value; frames come back as frames.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.impute([[1, np.nan]])
        array([[1, 1]], dtype=int8)
        """
        data = self._read(X)
        probabilities = self._fill(data)
        codes = probabilities > 0.5 if probabilities.ndim == 2 else probabilities.argmax(axis=2)
        filled = self.coding_.decode(self.model_.domain.from_codes(codes))
        return like_frame(filled[data.row_of], X, self.names_)

    def _fill(self, data: Dataset) -> np.ndarray:
        """Probabilities of the values of each distinct state's cells, in the form that `predict_proba` returns."""
        flat = fill_probabilities(self.model_, data, as_generator(self.random_state))
        return flat if self.model_.domain.two_valued else by_value(flat, self.model_)


def _annealing(n_samples: int | None, betas: int | None) -> Annealing:
    """Annealing with the numbers that are given and its own for the others."""
    settings: dict[str, Any] = {"n_walkers": n_samples, "betas": betas}
    return Annealing(**{name: value for name, value in settings.items() if value is not None})


def _with_samples(expectation: Any, method: Any, n_samples: int) -> Any:
    """Return the expectation with so many samples in a call."""
    known = {field.name for field in dataclasses.fields(expectation)} if dataclasses.is_dataclass(expectation) else ()
    if "n_walkers" in known:
        return dataclasses.replace(expectation, n_walkers=n_samples)
    if "n_sweeps" not in known:
        raise ArgumentError("draws no samples", "leave `n_samples=` out", argument="method", value=method)
    if n_samples < 2:
        raise ArgumentError("must be at least 2", argument="n_samples", value=n_samples)
    n_chains = int(np.clip(np.sqrt(n_samples), 2, MOST_CHAINS))
    return dataclasses.replace(expectation, n_chains=n_chains, n_sweeps=-(-n_samples // n_chains))
