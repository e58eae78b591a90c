"""Gaussian visible units in standard units: a fit's steps then do not depend on the scale of the columns.

With ``v = m + s u`` a machine over u is a machine over v: energies agree up to a constant when the deviations are
``s sigma``, the weights ``W / s``, the visible biases ``b / s + m / (s sigma)^2`` and the hidden ones
``c - W^T m / s``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gibbsian.layered.rows import LayerRows
from gibbsian.models.layers import GaussianLayer
from gibbsian.models.restricted import RestrictedModel

# Least residual deviation, as a share of the column's own: columns that determine each other would have none.
SMALLEST_RESIDUAL = 0.1


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """Where the columns of real numbers lie and how wide they are.

    Parameters
    ----------
    centres, spreads : ndarray of shape (n_columns,)
        Mean and standard deviation of each; a constant column has spread one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.scaling import ColumnScale
    >>> rows = LayerRows(np.array([[0.0], [10.0]]))
    >>> ColumnScale.of(rows).standard(rows).states.ravel()
    array([-1.,  1.])
    """

    centres: np.ndarray
    spreads: np.ndarray

    @classmethod
    def of(cls, rows: LayerRows) -> ColumnScale:
        """Measure the columns of rows."""
        centres, spreads = _centres_and_spreads(rows)
        constant = _are_constant(rows, spreads)
        return cls(np.where(constant, rows.states[0], centres), np.where(constant, 1.0, spreads))

    def standard(self, rows: LayerRows) -> LayerRows:
        """Return rows in standard units."""
        return replace(rows, states=(rows.states - self.centres) / self.spreads)

    def to_data(self, model: RestrictedModel) -> RestrictedModel:
        """Return the machine over the data of one over standard units.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.scaling import ColumnScale
        >>> from gibbsian.models.layers import BinaryLayer, GaussianLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> standard = RestrictedModel.build(GaussianLayer(1), BinaryLayer(1), weights=[[1.0]])
        >>> ColumnScale(np.array([5.0]), np.array([2.0])).to_data(standard).visible_means(np.array([[0.0], [1.0]]))
        array([[5.],
               [7.]])
        """
        layer = model.visible
        assert isinstance(layer, GaussianLayer)
        deviations = self.spreads * np.asarray(layer.deviations)
        scaled = model.weights / self.spreads[:, None]
        return RestrictedModel.build(
            GaussianLayer(layer.n_units, tuple(deviations)),
            model.hidden,
            (model.visible_biases / self.spreads + self.centres / deviations**2).astype(model.theta.dtype),
            (model.hidden_biases - self.centres @ scaled).astype(model.theta.dtype),
            scaled.astype(model.theta.dtype),
            model.temperature,
        )

    def from_data(self, model: RestrictedModel) -> RestrictedModel:
        """Return the machine over standard units of one over the data.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.scaling import ColumnScale
        >>> from gibbsian.models.layers import BinaryLayer, GaussianLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> scale = ColumnScale(np.array([5.0]), np.array([2.0]))
        >>> model = RestrictedModel.build(GaussianLayer(1), BinaryLayer(1), [0.5], [0.25], [[1.0]])
        >>> scale.from_data(scale.to_data(model)).theta
        array([0.5 , 0.25, 1.  ])
        """
        return ColumnScale(-self.centres / self.spreads, 1.0 / self.spreads).to_data(model)


def constant_columns(rows: LayerRows) -> np.ndarray:
    """Say of each column whether it never varies.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.scaling import constant_columns
    >>> constant_columns(LayerRows(np.array([[0.1, 1.0], [0.1, 2.0]]))).tolist()
    [True, False]
    """
    return _are_constant(rows, _centres_and_spreads(rows)[1])


def _centres_and_spreads(rows: LayerRows) -> tuple[np.ndarray, np.ndarray]:
    centres = rows.shares @ rows.states
    apart = rows.states - centres
    farthest = np.abs(apart).max(axis=0)
    farthest = np.where(farthest > 0, farthest, 1.0)  # squares of tiny numbers would vanish
    return centres, farthest * np.sqrt(rows.shares @ np.square(apart / farthest))


def _are_constant(rows: LayerRows, spreads: np.ndarray) -> np.ndarray:
    # rounding leaves a constant column a spread of its last digits
    return spreads <= 1e-12 * np.abs(rows.states).max(axis=0)


def residual_deviations(rows: LayerRows) -> np.ndarray:
    """Return the standard deviation of what the other columns leave of each, as a linear regression finds it.

    Hidden units explain what columns have in common, so this is what is left to a visible unit given them. The
    covariance is shrunk (Ledoit and Wolf 2004), and no deviation is below a tenth of the column's own. A constant
    column has deviation one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.scaling import residual_deviations
    >>> rng = np.random.default_rng(0)
    >>> common = rng.normal(size=(5000, 1))
    >>> columns = common + 0.5 * rng.normal(size=(5000, 2))
    >>> residual_deviations(LayerRows(columns)).round(1)          # sqrt(1.25 - 1 / 1.25) = 0.67
    array([0.7, 0.7])
    """
    from sklearn.covariance import ledoit_wolf

    scale = ColumnScale.of(rows)
    varies = ~constant_columns(rows)
    shares = np.ones(len(varies))
    if varies.any():
        standard = scale.standard(rows).states[:, varies] * np.sqrt(rows.shares * rows.n_rows)[:, None]
        covariance, _ = ledoit_wolf(standard, assume_centered=True)
        residual = 1.0 / np.sqrt(np.diagonal(np.linalg.pinv(covariance, hermitian=True)))
        shares[varies] = np.clip(residual, SMALLEST_RESIDUAL, 1.0)
    return shares * scale.spreads


__all__ = ["ColumnScale", "constant_columns", "residual_deviations"]
