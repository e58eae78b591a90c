"""States of machines in layers by block Gibbs chains: one side given the other, in matrix products."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.errors import ArgumentError
from gibbsian.models.base import Model
from gibbsian.models.layers.stack import StackFamily, top_of
from gibbsian.registry import Registry
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator
from gibbsian.settings import check_whole_number

LAYER_SAMPLERS = Registry("layer sampler", "gibbsian.old_sampling", "LAYER_SAMPLERS")


@runtime_checkable
class LayerSampler(Protocol):
    """Moves chains that are rows of matrices, so that a distribution stays as it is; they share a random stream."""

    def init(self, target: object, n_chains: int, rng: np.random.Generator, values: object = None) -> Any:
        """Start chains at values, one row for each, or at independent units."""

    def step(self, target: object, state: object, rng: np.random.Generator, n_steps: int = 1) -> tuple[Any, Any]:
        """Return the chains some steps later, and what happened; `state` is left as it is."""


class BlockState(NamedTuple):
    """Where block Gibbs chains stand.

    Parameters
    ----------
    values : tuple of ndarray of shape (n_chains, width)
        Values of the even layers, which decide those of the odd ones.
    n_steps : int
        Steps made so far.
    """

    values: tuple[np.ndarray, ...]
    n_steps: int


class BlockInfo(NamedTuple):
    """What happened in one call of ``step``: the steps that were made."""

    n_steps: int


@LAYER_SAMPLERS.register("block-gibbs")
class BlockGibbs:
    """Draws the odd layers of a stack given the even ones, and back.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> family, rng = gb.models.StackFamily((gb.models.SpinUnits(2), gb.models.SpinUnits(1))), np.random.default_rng(0)
    >>> rbm, sampler = family.build(weights=[[[20.0], [20.0]]]), gb.old_sampling.BlockGibbs()
    >>> chains = sampler.init(rbm, 2, rng, values=[np.array([[1.0, 1.0], [-1.0, -1.0]])])
    >>> sampler.step(rbm, chains, rng, n_steps=5)[0].values[0]
    array([[ 1.,  1.],
           [-1., -1.]])
    """

    def init(
        self, stack: Model[StackFamily], n_chains: int, rng: np.random.Generator, values: Any = None
    ) -> BlockState:
        """Start chains at values of the even layers, by default at draws from their biases alone."""
        check_whole_number("n_chains", n_chains)
        family, biases = stack.family, stack.parts.biases
        places = family.sides[0]
        if values is None:
            drawn = (family.layers[at].draw(np.tile(biases[at], (n_chains, 1)), rng) for at in places)
            return BlockState(tuple(drawn), 0)
        wanted = [(n_chains, family.layers[place].width) for place in places]
        given = [np.shape(part) for part in values]
        if given != wanted:
            raise ArgumentError(f"values have shapes {given[:5]}", f"give {wanted}")
        return BlockState(tuple(np.asarray(part) for part in values), 0)

    def step(
        self, stack: Model[StackFamily], state: BlockState, rng: np.random.Generator, n_steps: int = 1
    ) -> tuple[BlockState, BlockInfo]:
        """Return the chains some steps later."""
        check_whole_number("n_steps", n_steps, least=0)
        family, parts, there = stack.family, stack.parts, twin("layer_programs")
        values = family.spread_side(0, state.values)
        if there is not None:
            values = there.gibbs(stack, values, n_steps, rng)
        else:
            for _ in range(n_steps):
                values = family.draw_side(parts, 0, family.draw_side(parts, 1, values, rng), rng)
        return BlockState(tuple(values[::2]), state.n_steps + n_steps), BlockInfo(n_steps)


def draw_layers(
    model: Model[Any],
    n_samples: int,
    rng: RandomState = None,
    n_chains: int = 100,
    burn_in: int = 1000,
    thin: int = 1,
    states: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Draw values of all layers of a machine with block Gibbs chains.

    Parameters
    ----------
    model : Model of a Layered family
        The machine.
    n_samples : int
        Draws wanted in all; each chain gives ``ceil(n_samples / n_chains)``.
    rng : None, int or Generator
        Source of randomness.
    n_chains : int, default 100
        Chains, which are rows of a matrix and so cost little.
    burn_in, thin : int
        Steps before the first draw, and between two draws of a chain.
    states : ndarray of shape (n_chains, n_units), optional
        Codes of visible units at which the chains of a restricted machine start; by default draws from their biases.

    Returns
    -------
    list of ndarray of shape (n_chains, n_draws, width)
        Values of the layers from the bottom, chain by chain.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rbm = gb.models.StackFamily((gb.models.BinaryUnits(3), gb.models.BinaryUnits(2))).build()
    >>> [part.shape for part in gb.old_sampling.draw_layers(rbm, 40, rng=0, n_chains=20)]
    [(20, 2, 3), (20, 2, 2)]
    """
    for name, value, least in (("n_samples", n_samples, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        check_whole_number(name, value, least)
    top, generator, sampler = top_of(model), as_generator(rng), BlockGibbs()
    n_draws = -(-n_samples // n_chains)
    layers = model.family.layers
    require_memory(
        8.0 * n_chains * (n_draws + 4) * sum(layer.width for layer in layers),
        f"keeping {n_chains * n_draws} draws of {sum(layer.n_units for layer in layers)} units",
        "draw fewer at a time with n_samples=",
    )
    values = None if states is None else [np.asarray(layers[0].encode(states), np.float64)]
    chains = sampler.init(top, n_chains, generator, values)
    draws = []
    for number in range(n_draws):
        chains, _ = sampler.step(top, chains, generator, burn_in + thin if number == 0 else thin)
        draws.append(chains.values)
    even = top.family.spread_side(0, [np.concatenate(parts) for parts in zip(*draws, strict=True)])
    # from a stream of its own: what is drawn below the machine does not depend on whether its hidden layer is wanted
    every = top.family.draw_side(top.parts, 1, even, generator.spawn(1)[0])
    parts = model.family.draw_below(model.theta, every, generator)
    return [part.reshape(n_draws, n_chains, -1).swapaxes(0, 1) for part in parts]
