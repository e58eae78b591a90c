"""The restricted Boltzmann machine as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.layered import LayeredMachine
from gibbsian.expectations.layer_chains import HiddenChains
from gibbsian.learning.layer_fits import ScaledState
from gibbsian.learning.minibatch import EpochState
from gibbsian.models.base import Model, Units
from gibbsian.models.layers.stack import StackFamily
from gibbsian.rng import RandomState
from gibbsian.settings import Setting, check_value, declared, positional, whole

_N_STEPS = Setting("How often.", "whole", low=1)


@ESTIMATORS.register("rbm", about="visible and hidden units in two layers, learned by minibatches", epochs=True)
@declared
class RestrictedBoltzmannMachine(LayeredMachine):
    """Restricted Boltzmann machine: visible and hidden units, and weights between the two layers only (YK15, "RBM").

    ``P(v, h) = exp((b . v + c . h + v W h) / T) / Z``, for Gaussian units times ``exp(-sum_i v_i^2 / (2 d_i^2))`` with
    their `deviations` d. It is a `HiddenBoltzmannMachine` on the graph of all pairs between columns and hidden units,
    and learns by the same learners; ``"minibatch"`` makes use of the layers, and has its settings on the object
    ``gb.learning.Minibatch``. With ``curves=True`` it keeps the pseudolikelihood after every epoch in ``history_``:
    raise its `learning_rate`, or `max_iter`, if it still climbs at the end; lower the rate if it falls back.
    `score_samples` is the log-likelihood, not the random pseudolikelihood of scikit-learn's ``BernoulliRBM``.

    Attributes
    ----------
    model_ : Model of a StackFamily
        The distribution, in the units of the data.
    components_ : ndarray of shape (n_components, n_visible)
        The weights; for categories one column for each value of each column of the table.
    intercept_hidden_, intercept_visible_ : ndarray
        The biases.
    h_samples_ : ndarray of shape (n_chains, n_components)
        Hidden values of the persistent chains, if the negative phase has them.
    history_ : dict of str to ndarray
        Curves, with ``curves=True`` or rows held out: values before the first epoch and after every one.
    result_ : FitResult
        Trace, reason of the end, score of rows held out.
    coding_ : Coding, CategoryCoding or RealCoding
        How the values are written.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.random((200, 2)) < 0.5, 3, axis=1).astype(int)       # two groups of three equal columns
    >>> rbm = gb.RestrictedBoltzmannMachine(4, max_iter=200, random_state=0).fit(X)
    >>> bool(rbm.score(X) > -2.0)                                              # at best 2 log 1/2 = -1.39
    True
    >>> rbm.transform(X).shape
    (200, 4)
    """

    n_components: int = positional(kw_only=False, default=whole(256, "Number of hidden units.", least=1))

    def _sizes(self) -> tuple[int, ...]:
        return (int(self.n_components),)

    def _model(self, layers: list[Units]) -> Model[StackFamily]:
        return StackFamily(tuple(layers)).build()

    @classmethod
    def _structure_of(cls, model: Model[StackFamily], coding: Any) -> dict[str, object]:
        return {"n_components": model.family.layers[1].n_units}

    # -- between the layers -------------------------------------------------------------------------------------------
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
        answers, n_units = self._answers, self.model_.family.layers[1].n_units
        try:
            shares = np.asarray(H, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError("H holds what is no number", "give the probabilities that transform gives") from None
        if shares.ndim != 2 or shares.shape[1] != n_units:
            raise ArgumentError(f"H has shape {shares.shape}", f"give a column for each of {n_units} hidden units")
        if np.isnan(shares).any():
            row, column = np.argwhere(np.isnan(shares))[0]
            raise MissingValuesError(
                f"row {row}, column {column} of H is NaN, but inverse_transform needs every hidden probability",
                "fill it",
            )
        return answers.visible_probabilities(shares)

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
        n_steps : int, default=1
            How often.
        random_state : None, int or Generator, default=None
            Overrides the machine's own.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.gibbs([[0, 1], [1, 1]]).shape
        (2, 2)
        """
        data = self._read(v)
        data.require_complete("gibbs", "fill them with impute, or ")
        check_value("n_steps", n_steps, _N_STEPS)
        return self.coding_.decode(self._answers.gibbs(data.rows()[0], n_steps, self._rng(random_state)))

    def free_energy(self, X: Any) -> np.ndarray:
        """Return ``F(v) = -T log sum_h exp(-E(v, h) / T)`` of each row; log P(v) is ``-F(v) / T - log Z``.

        Missing cells are summed out too.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> X = [[0, 1], [1, 0], [1, 1], [0, 0]]
        >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit(X)
        >>> bool(np.allclose(rbm.score_samples(X), -rbm.free_energy(X) - rbm.log_partition()))
        True
        """
        data = self._read(X)
        return -self.temperature * self._answers.log_evidence(data)[data.row_of]

    @property
    def h_samples_(self) -> np.ndarray:
        """Hidden values of the persistent chains."""
        state = self.__dict__.get("_state")
        if isinstance(state, ScaledState):
            state = state.inner
        chains = state.phases.free if isinstance(state, EpochState) else None
        if not isinstance(chains, HiddenChains):
            raise AttributeError("h_samples_ are the persistent chains of a fit in this session by minibatches")
        return chains.hidden[0]
