"""Missing cells of rows, filled given the present ones, by machines of layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from gibbsian.errors import ArgumentError
from gibbsian.estimators.fitting import like_frame
from gibbsian.estimators.layered_data import VisibleRows
from gibbsian.layered.rows import LayerRows
from gibbsian.models.layers import CategoricalLayer


def _is_discrete(machine: Any) -> bool:
    """Whether the visible units have values that can be counted."""
    return machine.visible != "gaussian"


class MissingCellsMixin:
    """What can be asked about missing cells of a machine that says what it expects of the visible units."""

    model_: Any
    coding_: Any
    names_: tuple[str, ...]
    visible: str

    if TYPE_CHECKING:

        def _read(self, X: Any, sample_weight: Any = None) -> VisibleRows: ...
        def _labels(self, states: np.ndarray) -> np.ndarray: ...
        def _expected_visible(self, rows: LayerRows) -> np.ndarray: ...

    @available_if(_is_discrete)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return, for every cell, the probability of its upper value given the present cells of its row.

        Present cells give 0 or 1; missing ones their conditional probability. In a restricted machine it is exact where
        few enough are missing, else by Gibbs sampling; in a deep Boltzmann machine by mean field. Categories give the
        probability of each value, an array of shape (rows, variables, values) with zeros after the last value of a
        variable that has fewer.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> rbm.predict_proba([[1, None]]).round(1)
        array([[1. , 0.5]])
        """
        if sparse.issparse(X):
            raise ArgumentError("predict_proba is about missing cells, which a sparse array does not have")
        data = self._read(X)
        layer = self.model_.visible
        values = self._expected_visible(data.rows)
        if not isinstance(layer, CategoricalLayer):
            return 0.5 * (1.0 + values) if layer.kind == "spin" else values
        shaped = np.zeros((len(values), layer.n_units, max(layer.sizes)))
        for unit, (start, size) in enumerate(zip(layer.starts, layer.sizes, strict=True)):
            shaped[:, unit, :size] = values[:, start : start + size]
        return shaped

    @available_if(_is_discrete)
    def impute(self, X: Any) -> Any:
        """Return X with each missing cell set to its most probable value; frames come back as frames.

        Examples
        --------
        >>> import gibbsian as gb
        >>> X = [["yes", "yes"], ["no", "no"]] * 20
        >>> rbm = gb.RestrictedBoltzmannMachine(2, n_iter=200, learning_rate=1.0, random_state=0).fit(X)
        >>> rbm.impute([["yes", None], [None, "no"]]).tolist()
        [['yes', 'yes'], ['no', 'no']]
        """
        probabilities = self.predict_proba(X)
        codes = probabilities > 0.5 if probabilities.ndim == 2 else probabilities.argmax(axis=2)
        return like_frame(self._labels(self.coding_.domain.from_codes(codes)), X, self.names_)
