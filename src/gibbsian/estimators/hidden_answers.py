"""Questions to a machine with hidden units: about the units, and about the columns with the units summed out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import without_hidden
from gibbsian.domain import require_two_values
from gibbsian.errors import ArgumentError
from gibbsian.estimators.answers import AnswersMixin
from gibbsian.expectations.mean_field_evidence import mean_field_evidence
from gibbsian.expectations.missing_cells import fill_probabilities
from gibbsian.inference.missing import log_evidence
from gibbsian.rng import RandomState, as_generator


class HiddenAnswersMixin(TransformerMixin, AnswersMixin):
    """What is asked otherwise of a machine whose model has units after its columns, called ``hidden_names_``."""

    hidden_names_: tuple[str, ...]

    @property
    def _n_hidden(self) -> int:
        check_is_fitted(self)
        return len(self.hidden_names_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the probability of the upper value of each hidden unit given the present cells of a row.

        Exact where summing over the hidden units is quick, else by Gibbs sampling with the row clamped.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25
        >>> gb.HiddenBoltzmannMachine(2, l2=0.001, random_state=0).fit(rows).transform(rows[:3]).shape
        (3, 2)
        """
        data = self._read(X)
        return self._fill_all(data)[data.row_of, -self._n_hidden :]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the hidden units, the columns that `transform` gives.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25
        >>> gb.HiddenBoltzmannMachine(2, l2=0.1, random_state=0).fit(rows).get_feature_names_out().tolist()
        ['h0', 'h1']
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array(self.hidden_names_, dtype=object)

    def free_energy(self, X: Any, method: str = "exact") -> np.ndarray:
        """Return ``F(v) = -T log sum_h exp(-E(v, h) / T)`` of each row; missing cells are summed out too.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        method : "exact" or "mean-field"
            ``"mean-field"`` gives the free energy of a factorised law of the hidden units that sweeps over them have
            lowered (YK15), which is never below F.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25
        >>> machine = gb.HiddenBoltzmannMachine(2, l2=0.001, random_state=0).fit(rows)
        >>> bool((machine.free_energy(rows) <= machine.free_energy(rows, "mean-field") + 1e-12).all())
        True
        """
        data = self._read(X)
        if method == "exact":
            evidence = log_evidence(self.model_, data)
        elif method == "mean-field":
            evidence = mean_field_evidence(self.model_, data, as_generator(self.random_state))
        else:
            raise ArgumentError("is not known", "use one of exact, mean-field", argument="method", value=method)
        return -self.model_.temperature * evidence[data.row_of]

    def pseudo_score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-pseudolikelihood per row: of each column given the others, hidden units summed out.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25
        >>> machine = gb.HiddenBoltzmannMachine(1, l2=1e-5, random_state=0).fit(rows)
        >>> machine.pseudo_score(rows) > -0.05                     # each column is settled by the two others
        True
        """
        data = self._read(X)
        without_hidden(data, self._n_hidden).require_complete("the pseudolikelihood", "")
        here, domain = log_evidence(self.model_, data), require_two_values(data.domain)
        total = np.zeros(data.n_states)
        for i in range(len(self.names_)):
            states = data.states.copy()
            states[:, i] = domain.low + domain.high - states[:, i]
            total -= np.logaddexp(0.0, log_evidence(self.model_, replace(data, states=states)) - here)
        return float(np.average(total, weights=data.weights))

    def sample(
        self,
        n_samples: int = 1,
        method: str = "auto",
        random_state: RandomState = None,
        return_hidden: bool = False,
    ) -> Any:
        """Draw rows from the model, in the coding of the data it was fitted on.

        Parameters
        ----------
        n_samples, method, random_state
            As in `BoltzmannMachine.sample`.
        return_hidden : bool
            Whether to return the hidden units as well: a pair of arrays.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25
        >>> machine = gb.HiddenBoltzmannMachine(2, l2=0.001, random_state=0).fit(rows)
        >>> columns, hidden = machine.sample(5, return_hidden=True)
        >>> columns.shape, hidden.shape
        ((5, 3), (5, 2))
        """
        units = super().sample(n_samples, method, random_state)
        columns, hidden = units[:, : len(self.names_)], units[:, len(self.names_) :]
        return (columns, hidden) if return_hidden else columns

    def _fill_all(self, data: Dataset) -> np.ndarray:
        """Probabilities of the upper value of every unit of each distinct state."""
        return fill_probabilities(self.model_, data, as_generator(self.random_state))

    def _fill(self, data: Dataset) -> np.ndarray:
        return self._fill_all(data)[:, : len(self.names_)]
