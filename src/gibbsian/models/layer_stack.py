"""What models of several layers in a row share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models.layers import Layer
from gibbsian.models.parameters import check_temperature


class LayerStack:
    """A visible layer with hidden layers above it, and parameters; subclasses are dataclasses of these three fields.

    Examples
    --------
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> dbm = DeepModel.build([BinaryLayer(4), BinaryLayer(3), BinaryLayer(2)])
    >>> dbm.n_variables, dbm.n_hidden_layers
    (4, 2)
    """

    layers: tuple[Layer, ...]
    theta: np.ndarray
    temperature: float

    if TYPE_CHECKING:

        def __init__(self, layers: Sequence[Layer], theta: np.ndarray, temperature: float = 1.0): ...

    def _settle(self) -> None:
        """Check the layers and bring all fields into their form."""
        check_temperature(self.temperature)
        layers, theta = tuple(self.layers), np.asarray(self.theta)
        if len(layers) < 2:
            raise ArgumentError(f"layers has {len(layers)} layers", "give the visible one and at least one hidden")
        if not all(np.isfinite(layer.n_states) for layer in layers[1:]):
            raise ArgumentError("layers holds a hidden Gaussian layer", "hidden units are binary, spin or categorical")
        object.__setattr__(self, "layers", layers)
        object.__setattr__(self, "theta", theta if theta.dtype == np.float32 else theta.astype(np.float64))

    def _check_size(self, size: int) -> None:
        if self.theta.shape != (size,):
            widths = [layer.width for layer in self.layers]
            raise ArgumentError(
                f"theta has shape {self.theta.shape}, but layers of {widths} columns need {size} parameters"
            )

    def replace(self, theta: np.ndarray) -> Self:
        """Return the same layers with other parameters."""
        return type(self)(self.layers, theta, self.temperature)

    @property
    def visible(self) -> Layer:
        """The layer that data give."""
        return self.layers[0]

    @property
    def n_variables(self) -> int:
        """Number of visible units."""
        return self.layers[0].n_units

    @property
    def n_hidden_layers(self) -> int:
        """Number of hidden layers."""
        return len(self.layers) - 1

    @cached_property
    def tempered(self) -> tuple[Layer, ...]:
        """The layers with their own measures divided by T."""
        return tuple(layer.tempered(self.temperature) for layer in self.layers)


__all__ = ["LayerStack"]
