"""Where the training of a machine of layers starts: the visible means of the data, and weights by Glorot's rule.

Far smaller weights leave a machine waiting at the saddle where the hidden units are all alike. At five epochs of 8,000
rows of MNIST, 16 hidden units, the held-out log-likelihood is -158.1 nats by Glorot's rule and -159.1 with a spread of
0.01; at one epoch -180.5 and -186.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError, DataError
from gibbsian.layered.rows import LayerRows
from gibbsian.models.deep import DeepModel
from gibbsian.models.layers import Layer
from gibbsian.models.restricted import RestrictedModel


def glorot_spread(lower: Layer, upper: Layer, temperature: float = 1.0) -> float:
    """Return ``T sqrt(2 / (width + width))``, the standard deviation of weights between two layers.

    Fields, which are divided by T, then vary about as much as the units they come from, in either direction (Glorot and
    Bengio 2010).

    Examples
    --------
    >>> from gibbsian.layered.start import glorot_spread
    >>> from gibbsian.models.layers import BinaryLayer
    >>> glorot_spread(BinaryLayer(28), BinaryLayer(4))
    0.25
    """
    return float(temperature * np.sqrt(2.0 / (lower.width + upper.width)))


def start_model(
    visible: Layer,
    hidden: Layer,
    rows: LayerRows,
    rng: np.random.Generator,
    *,
    scale: float | None = None,
    temperature: float = 1.0,
    dtype: Any = np.float64,
) -> RestrictedModel:
    """Return a machine whose visible units have the means of the data, with random weights.

    The hidden units then have nothing to learn but what the means do not tell (Hinton 2012, "A practical guide").

    Parameters
    ----------
    visible, hidden : Layer
        The layers.
    rows : LayerRows
        The data; one more row, without fields, keeps the biases finite where a column never varies.
    rng : Generator
        For the weights.
    scale : float, optional
        Standard deviation of the weights; by default that of `glorot_spread`.
    temperature : float
        Temperature of the model.
    dtype : dtype
        float64 or float32.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.start import start_model
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rows = LayerRows(np.array([[0, 1], [1, 1], [0, 1]], np.int8))
    >>> start = start_model(BinaryLayer(2), BinaryLayer(1), rows, np.random.default_rng(0))
    >>> start.visible_biases.round(4)                       # log(1.5 / 2.5), log(3.5 / 0.5)
    array([-0.5108,  1.9459])
    """
    spread = _spread(visible, hidden, scale, temperature)
    if rows.n_units != visible.n_units:
        raise DataError(f"the visible layer has {visible.n_units} units but the rows have {rows.n_units} columns")
    flat = visible.tempered(temperature)
    nothing = flat.means(np.zeros((1, visible.width)))[0]
    means = (rows.n_rows * rows.mean_values(visible) + nothing) / (rows.n_rows + 1)
    theta = np.concatenate(
        [
            temperature * flat.fields_of(means),
            np.zeros(hidden.width),
            spread * rng.standard_normal(visible.width * hidden.width),
        ]
    )
    return RestrictedModel(visible, hidden, theta.astype(dtype), temperature)


def start_deep(
    layers: Sequence[Layer],
    rows: LayerRows,
    rng: np.random.Generator,
    *,
    scale: float | None = None,
    temperature: float = 1.0,
    dtype: Any = np.float64,
) -> DeepModel:
    """Return a deep machine whose visible units have the means of the data, with random weights.

    Parameters
    ----------
    layers : sequence of Layer
        From the visible one to the top.
    rows : LayerRows
        The data.
    rng : Generator
        For the weights.
    scale : float, optional
        Standard deviation of all weights; by default that of `glorot_spread` between each two layers.
    temperature, dtype
        As for `start_model`.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.start import start_deep
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rows = LayerRows(np.array([[0, 1], [1, 1], [0, 1]], np.int8))
    >>> layers = [BinaryLayer(2), BinaryLayer(2), BinaryLayer(1)]
    >>> start_deep(layers, rows, np.random.default_rng(0)).biases[0].round(4)   # log(1.5 / 2.5), log(3.5 / 0.5)
    array([-0.5108,  1.9459])
    """
    settings: dict[str, Any] = {"scale": scale, "temperature": temperature, "dtype": dtype}
    lowest = start_model(layers[0], layers[1], rows, rng, **settings)
    upper = [
        _spread(a, b, scale, temperature) * rng.standard_normal((a.width, b.width))
        for a, b in itertools.pairwise(layers[1:])
    ]
    biases = [lowest.visible_biases, *(np.zeros(layer.width, dtype) for layer in layers[1:])]
    weights = [lowest.weights, *(matrix.astype(dtype) for matrix in upper)]
    return DeepModel.build(layers, biases, weights, temperature)


def _spread(lower: Layer, upper: Layer, scale: float | None, temperature: float) -> float:
    if scale is None:
        return glorot_spread(lower, upper, temperature)
    if not (np.isfinite(scale) and scale >= 0):
        raise ArgumentError("must be zero or positive", argument="scale", value=scale)
    return scale


__all__ = ["glorot_spread", "start_deep", "start_model"]
