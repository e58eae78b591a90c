"""What models made of layers share: the contract of models with hidden units."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gibbsian.blocks import spans
from gibbsian.domain import AnyDomain
from gibbsian.errors import ArgumentError
from gibbsian.models.base import ExponentialFamily
from gibbsian.models.file_parts import Listed, Tensor
from gibbsian.models.interactions import Interactions, between_layers
from gibbsian.models.layers import LAYER, Layer, read_layer, written_layer
from gibbsian.models.parameters import check_temperature


class LayeredModel(ExponentialFamily):
    """A visible layer with hidden layers above it, and one vector of parameters."""

    theta: np.ndarray
    temperature: float

    parts_in_file: ClassVar[dict[str, Any]] = {
        "layers": Listed(LAYER),
        "theta": Tensor(("parameters",), ("float64", "float32")),
    }
    registered_name: ClassVar[str] = "layered"

    if TYPE_CHECKING:
        layers: Any
        visible: Any

        @classmethod
        def of_layers(cls, layers: Sequence[Layer], theta: np.ndarray, temperature: float) -> Self:
            """Return a model of these layers."""

        @property
        def layer_weights(self) -> Sequence[np.ndarray]:
            """The weights between neighbouring layers, from the lowest."""

        def value_log_weights(self, v: np.ndarray) -> np.ndarray:
            """Return ``log P + log Z`` of each row of visible values."""

    def canonical(self) -> Self:
        """Return the model itself: no two are one distribution but by exchanging units."""
        return self

    def parameter_names(self: Any, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""
        joint = self.joint()
        units = [f"h{number}" for number in range(joint.n_variables - len(names))]
        return joint.parameter_names([*names, *units])

    def _settle(self, size: int) -> None:
        """Check the temperature and theta, which is to hold so many parameters, in float64 or float32."""
        check_temperature(self.temperature)
        theta = as_floats(self.theta)
        if theta.shape != (size,):
            widths = [layer.width for layer in self.layers]
            raise ArgumentError(f"theta has shape {theta.shape}, but layers of {widths} columns need {size} parameters")
        object.__setattr__(self, "theta", theta)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays that make up the model, for a file."""
        layers = [written_layer(layer) for layer in self.layers]
        return {"layers": layers, "temperature": self.temperature}, {"theta": self.theta}

    @classmethod
    def from_parts(cls, header: dict[str, Any], tensors: dict[str, np.ndarray], domain: Any) -> Self:
        """Put a model together again; `domain` is that of the columns."""
        return cls.of_layers([read_layer(layer) for layer in header["layers"]], tensors["theta"], header["temperature"])

    @property
    def n_variables(self) -> int:
        """Number of visible units: columns of the data."""
        return self.visible.n_units

    @property
    def n_hidden(self) -> int:  # type: ignore[override]
        """Number of hidden units, in all hidden layers."""
        return sum(layer.n_units for layer in self.layers[1:])

    @property
    def domain(self) -> AnyDomain:
        """The values of the visible units, and how states write them."""
        return self.visible.domain

    @cached_property
    def tempered(self) -> tuple[Layer, ...]:
        """The layers with their own measures divided by T."""
        return tuple(layer.tempered(self.temperature) for layer in self.layers)

    def at(self, beta: float) -> Self:
        """Return the distribution at an inverse temperature."""
        return dataclasses.replace(self, temperature=self.temperature / beta)  # type: ignore[type-var]

    @property
    def penalised(self) -> np.ndarray:
        """Which parameters a penalty applies to: the weights."""
        return np.arange(self.theta.size) >= sum(layer.width for layer in self.layers)

    def log_weights(self, x: np.ndarray) -> np.ndarray:
        """Return ``log P + log Z`` of each state of the visible units, the hidden ones summed out."""
        return self.value_log_weights(self.visible.encode(np.asarray(x)))

    def layered(self) -> Self:
        """Return the model itself: what learns by layers asks any model for them."""
        return self

    def from_layers(self, model: Self) -> Self:
        """Return the model that was learned."""
        return model

    def interactions(self) -> Interactions:
        """Return the weights between units of neighbouring layers."""
        return between_layers(self.layers, self.layer_weights)

    # -- flips of the visible units, hidden ones summed out --------------------------------------------------------
    def conditional_costs(self, x: np.ndarray) -> np.ndarray:
        """Return ``log P(x) - log P(x with a unit changed)``, hidden units summed out: a column for each other value.

        Where units have more than two values there is one for each of them, that of the present value zero.
        """
        domain, here = self.domain, self.log_weights(x)
        costs, codes = [], domain.to_codes(np.asarray(x))
        for unit, size in enumerate(domain.cardinalities(self.n_variables)):
            others = [1 - codes[:, unit]] if domain.two_valued else [np.full(len(codes), k) for k in range(size)]
            for value in others:
                changed = codes.copy()
                changed[:, unit] = value
                costs.append(here - self.log_weights(domain.from_codes(changed)))
        return np.column_stack(costs)


class LayerStack(LayeredModel):
    """Layers in a row; subclasses are dataclasses of layers, theta and temperature."""

    layers: tuple[Layer, ...]

    if TYPE_CHECKING:

        def __init__(self, layers: Sequence[Layer], theta: np.ndarray, temperature: float = 1.0): ...

    def _settle(self, size: int) -> None:
        if not all(np.isfinite(layer.n_states) for layer in self.layers[1:]):
            raise ArgumentError("layers holds a hidden Gaussian layer", "hidden units are binary, spin or categorical")
        super()._settle(size)

    def _settle_layers(self) -> None:
        layers = tuple(self.layers)
        if len(layers) < 2:
            raise ArgumentError(f"layers has {len(layers)} layers", "give the visible one and at least one hidden")
        object.__setattr__(self, "layers", layers)

    @classmethod
    def of_layers(cls, layers: Sequence[Layer], theta: np.ndarray, temperature: float) -> Self:
        """Return a model of these layers."""
        return cls(tuple(layers), theta, temperature)

    @property
    def visible(self) -> Layer:
        """The layer that data give."""
        return self.layers[0]

    @property
    def n_hidden_layers(self) -> int:
        """Number of hidden layers."""
        return len(self.layers) - 1


def glorot_spread(lower: Layer, upper: Layer, temperature: float = 1.0) -> float:
    """Return ``T sqrt(2 / (width + width))``, the standard deviation at which weights between two layers start.

    Fields, which are divided by T, then vary about as much as the units they come from, in either direction (Glorot and
    Bengio 2010). Far smaller weights leave a machine waiting at the saddle where the hidden units are all alike. At
    five epochs of 8,000 rows of MNIST, 16 hidden units, the held-out log-likelihood is -158.1 nats by Glorot's rule and
    -159.1 with a spread of 0.01; at one epoch -180.5 and -186.2.
    """
    return float(temperature * np.sqrt(2.0 / (lower.width + upper.width)))


def checked_parts(given: Any, shapes: Sequence[tuple[int, ...]], name: str) -> list[np.ndarray]:
    """Return parameters of these shapes, in float64 or float32; zeros where None is given for all or for one."""
    parts = list(given) if given is not None else [None] * len(shapes)
    if len(parts) != len(shapes):
        raise ArgumentError(f"{name} has {len(parts)} parts", f"give {len(shapes)}, of shapes {list(shapes)}")
    return [_checked_part(part, shape, name) for part, shape in zip(parts, shapes, strict=True)]


def _checked_part(given: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    part = as_floats(np.zeros(shape) if given is None else given)
    if part.shape != shape or not np.isfinite(part).all():
        raise ArgumentError(f"{name} has shape {part.shape}", f"give finite numbers of shape {shape}")
    return part


def as_floats(numbers: Any) -> np.ndarray:
    """Return numbers as an array of float32 where they are that, and else of float64."""
    array = np.asarray(numbers)
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def joined_parts(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Return arrays one after the other as one vector."""
    return np.concatenate([part.ravel() for part in parts])


def split_parts(vector: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Cut a vector into arrays of these shapes; they are views."""
    places = spans(math.prod(shape) for shape in shapes)
    return [vector[at].reshape(shape) for at, shape in zip(places, shapes, strict=True)]


def pair_shapes(layers: Sequence[Layer]) -> list[tuple[int, ...]]:
    """Return the shapes of the biases of all layers, then of the weights between neighbours."""
    widths = [layer.width for layer in layers]
    return [*((width,) for width in widths), *itertools.pairwise(widths)]
