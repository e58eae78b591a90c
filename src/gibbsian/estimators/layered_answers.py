"""Questions to a fitted restricted machine about its units: hidden ones given rows, rows given hidden ones, samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.estimators.layered_data import VisibleRows
from gibbsian.inference import exact, is_affordable
from gibbsian.layered.missing import fill
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.sampling import draw, gibbs_steps
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel
from gibbsian.rng import RandomState, as_generator

# "auto" samples exactly where listing a layer takes no longer.
QUICK_SECONDS = 2.0


class RestrictedAnswersMixin(TransformerMixin):
    """What can be asked of a machine that has a `RestrictedModel` as ``model_`` and reads data by ``_read``."""

    model_: RestrictedModel
    names_: tuple[str, ...]
    random_state: RandomState

    if TYPE_CHECKING:

        def _read(self, X: Any, sample_weight: Any = None) -> VisibleRows: ...
        def _labels(self, states: np.ndarray) -> np.ndarray: ...

    # -- between the layers ---------------------------------------------------------------------------------------
    def transform(self, X: Any) -> np.ndarray:
        """Return the probability of the upper value of each hidden unit given each row.

        Missing cells are averaged over, given the present ones.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.transform([[0, 1], [1, None]]).shape
        (2, 3)
        """
        data = self._read(X)
        if data.rows.missing is None:
            means = self.model_.hidden_means(self.model_.visible.encode(data.rows.states))
        else:
            means = fill(self.model_, data.rows, as_generator(self.random_state)).hidden
        return 0.5 * (1.0 + means) if self.model_.hidden.kind == "spin" else means

    def inverse_transform(self, H: Any) -> np.ndarray:
        """Return the expected visible values given hidden probabilities: what the machine expects to see.

        Probabilities of the upper value for two-valued columns, means of real ones, and for categories the probability
        of each value, one column for each.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.inverse_transform(rbm.transform([[0, 1]])).shape
        (1, 2)
        """
        check_is_fitted(self)
        try:
            shares = np.asarray(H, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError("H holds what is no number", "give the probabilities that transform gives") from None
        if shares.ndim != 2 or shares.shape[1] != self.model_.hidden.n_units:
            raise ArgumentError(
                f"H has shape {shares.shape}", f"give a column for each of {self.model_.hidden.n_units} hidden units"
            )
        if np.isnan(shares).any():
            row, column = np.argwhere(np.isnan(shares))[0]
            raise MissingValuesError(
                f"row {row}, column {column} of H is NaN, but inverse_transform needs every hidden probability",
                "fill it",
            )
        means = self.model_.visible_means(2.0 * shares - 1.0 if self.model_.hidden.kind == "spin" else shares)
        return 0.5 * (1.0 + means) if self.model_.visible.kind == "spin" else means

    def reconstruct(self, X: Any) -> np.ndarray:
        """Return ``inverse_transform(transform(X))``: what is left of rows after the way to the hidden units and back.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.reconstruct([[0, 1]]).shape
        (1, 2)
        """
        return self.inverse_transform(self.transform(X))

    def gibbs(self, v: Any, n_steps: int = 1, random_state: RandomState = None) -> np.ndarray:
        """Draw the hidden units given rows and then the rows anew, in the coding of the data.

        Parameters
        ----------
        v : array, frame, path or Dataset
            The rows.
        n_steps : int
            How often.
        random_state : None, int or Generator
            Overrides the machine's own.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.gibbs([[0, 1], [1, 1]]).shape
        (2, 2)
        """
        values = self._values(v, "gibbs")
        check_whole_number("n_steps", n_steps, least=1)
        return self._decoded(gibbs_steps(self.model_, values, n_steps, self._generator(random_state)))

    def sample(
        self,
        n_samples: int = 1,
        method: str = "auto",
        n_steps: int | None = None,
        start: Any = None,
        random_state: RandomState = None,
    ) -> np.ndarray:
        """Draw rows from the machine, in the coding of the data it was fitted on.

        Parameters
        ----------
        n_samples : int
            How many rows.
        method : "auto", "exact" or "gibbs"
            ``"exact"`` lists the smaller layer (at most 25 two-valued units); ``"gibbs"`` runs a chain for each row.
            ``"auto"`` is exact where that is quick.
        n_steps : int, optional
            Steps of each chain; 1000 by default.
        start : array, frame, path or Dataset, optional
            Rows at which the chains begin; by default at draws from the visible biases.
        random_state : None, int or Generator
            Overrides the machine's own.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit([["yes", "no"], ["no", "yes"], ["no", "no"]])
        >>> rbm.sample(4).shape
        (4, 2)
        """
        check_is_fitted(self)
        check_whole_number("n_samples", n_samples, least=1)
        if method not in ("auto", "exact", "gibbs"):
            raise ArgumentError("is not known", "use one of auto, exact, gibbs", argument="method", value=method)
        if n_steps is not None:
            check_whole_number("n_steps", n_steps, least=1)
        rng = self._generator(random_state)
        chains_asked = n_steps is not None or start is not None
        quick = is_affordable(self.model_, QUICK_SECONDS)
        if method == "exact" or (method == "auto" and quick and not chains_asked):
            if chains_asked:
                raise ArgumentError("n_steps and start belong to `method='gibbs'`", "leave them out")
            return self._labels(exact(self.model_, instead="draw with `method='gibbs'`").sample(n_samples, rng))
        settings: dict[str, Any] = {"n_chains": n_samples}
        if n_steps is not None:
            settings["burn_in"] = n_steps
        if start is not None:
            values = self._values(start, "sample")
            settings["values"] = values[np.arange(n_samples) % len(values)]
        return self._labels(draw(self.model_, n_samples, rng, **settings)[:, 0])

    # -- parts ----------------------------------------------------------------------------------------------------
    def _generator(self, random_state: RandomState) -> np.random.Generator:
        return as_generator(self.random_state if random_state is None else random_state)

    def _values(self, X: Any, what: str) -> np.ndarray:
        return self._complete(self._read(X), what)

    def _complete(self, data: VisibleRows, what: str) -> np.ndarray:
        if data.rows.missing is not None:
            row, column = np.argwhere(data.rows.missing)[0]
            raise MissingValuesError(
                f"row {row}, column {self.names_[column]!r} is missing, but {what} needs complete rows",
                "fill it with impute, or leave the row out",
            )
        return self.model_.visible.encode(data.rows.states)

    def _expected_visible(self, rows: LayerRows) -> np.ndarray:
        return fill(self.model_, rows, as_generator(self.random_state)).visible

    def _decoded(self, values: np.ndarray) -> np.ndarray:
        return self._labels(self.model_.visible.decode(values))
