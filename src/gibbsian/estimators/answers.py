"""Questions to a fitted machine: parameters, scores, expectations, samples, missing cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.data import Dataset
from gibbsian.domain import Coding
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.estimators.fitting import like_frame
from gibbsian.expectations import EXPECTATIONS, Estimate, Expectation
from gibbsian.expectations.missing_cells import fill_probabilities
from gibbsian.inference import exact
from gibbsian.inference.missing import log_evidence
from gibbsian.learners import HeldOut
from gibbsian.models import PairwiseModel
from gibbsian.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator
from gibbsian.samplers import draw


class AnswersMixin:
    """What can be asked of a machine that has ``model_``, ``coding_`` and ``names_`` and reads data by ``_read``."""

    model_: PairwiseModel
    coding_: Coding
    names_: tuple[str, ...]
    random_state: RandomState

    if TYPE_CHECKING:

        def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset: ...

    # -- parameters ---------------------------------------------------------------------------------------------------
    @property
    def biases_(self) -> Any:
        """The biases by column name."""
        import pandas

        check_is_fitted(self)
        return pandas.Series(self.model_.biases, index=list(self.names_), name="bias")

    @property
    def couplings_(self) -> Any:
        """The symmetric matrix of couplings by column name, zero where the graph has no edge."""
        import pandas

        check_is_fitted(self)
        require_memory(
            8.0 * self.model_.n_variables**2,
            f"the full matrix of couplings of {self.model_.n_variables:,} variables",
            "use strongest_couplings(), which lists the edges only",
        )
        names = list(self.names_)
        return pandas.DataFrame(self.model_.coupling_matrix, index=names, columns=names)

    def strongest_couplings(self, n: int | None = None) -> Any:
        """Return the couplings as a table with columns first, second, coupling, the largest in size first.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.strongest_couplings().round(3).values.tolist()          # log(2) / 4
        [['x0', 'x1', 0.173]]
        """
        import pandas

        check_is_fitted(self)
        order = np.argsort(-np.abs(self.model_.couplings), kind="stable")[:n]
        first, second = self.model_.graph.edges[order].T
        names = np.array(self.names_, dtype=object)
        return pandas.DataFrame(
            {"first": names[first], "second": names[second], "coupling": self.model_.couplings[order]}
        )

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
        return (log_evidence(self.model_, data) - self.log_partition())[data.row_of]

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
        evidence = np.average(log_evidence(self.model_, data), weights=data.weights)
        return float(evidence - self.log_partition())

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
        """Return the score where the partition function is in reach, else the pseudo-score, and say which it is.

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
            return HeldOut(self.pseudo_score(data), "log-pseudolikelihood", data.n_rows)

    def log_partition(self) -> float:
        """Return the exact log Z.

        Examples
        --------
        >>> import gibbsian as gb
        >>> round(gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).log_partition(), 4)
        1.3863
        """
        check_is_fitted(self)
        return exact(self.model_).log_partition()

    def expect(self, method: str | Expectation = "auto") -> Estimate:
        """Return the expected statistics of the model, in the layout of ``model_.theta``, with standard errors.

        Parameters
        ----------
        method : "auto", str or Expectation
            ``"exact"``, ``"monte-carlo"``, any registered name or an object; ``"auto"`` is exact where possible.

        Examples
        --------
        >>> import gibbsian as gb
        >>> estimate = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]).expect()
        >>> estimate.mean.round(4).tolist(), estimate.stderr.tolist()
        ([0.2, 0.2, 0.2], [0.0, 0.0, 0.0])
        """
        check_is_fitted(self)
        if method == "auto":
            try:
                return self.expect("exact")
            except TooExpensiveError:
                return self.expect("monte-carlo")
        expectation = EXPECTATIONS.create(method) if isinstance(method, str) else method
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
        if n_samples < 1:
            raise ArgumentError(f"n_samples={n_samples} must be at least 1")
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
        sampling.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.predict_proba([[1, np.nan]]).round(3)
        array([[1.   , 0.667]])
        """
        data = self._read(X)
        return fill_probabilities(self.model_, data, as_generator(self.random_state))[data.row_of]

    def impute(self, X: Any) -> Any:
        """Return X with each missing cell set to its more probable value; frames come back as frames.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.impute([[1, np.nan]])
        array([[1, 1]], dtype=int8)
        """
        data = self._read(X)
        upper = fill_probabilities(self.model_, data, as_generator(self.random_state)) > 0.5
        domain = self.model_.domain
        filled = self.coding_.decode(np.where(upper, domain.high, domain.low))
        return like_frame(filled[data.row_of], X)
