"""States of machines in layers by block Gibbs chains: one side given the other, in matrix products."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.errors import ArgumentError
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel
from gibbsian.registry import Registry
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator

LAYER_SAMPLERS = Registry("layer sampler", "gibbsian.samplers", "LAYER_SAMPLERS")


@runtime_checkable
class LayerSampler(Protocol):
    """Moves chains that are rows of a matrix, so that a distribution stays as it is; they share a random stream."""

    def init(self, target: Any, n_chains: int, rng: np.random.Generator, values: np.ndarray | None = None) -> Any:
        """Start chains at visible values, one row for each, or at independent units."""

    def step(self, target: Any, state: Any, rng: np.random.Generator, n_steps: int = 1) -> tuple[Any, Any]:
        """Return the chains some steps later, and what happened; `state` is left as it is."""


class BlockState(NamedTuple):
    """Where block Gibbs chains stand.

    Parameters
    ----------
    values : ndarray of shape (n_chains, visible.width)
        Values of the visible layer.
    n_steps : int
        Steps made so far.
    """

    values: np.ndarray
    n_steps: int


class BlockInfo(NamedTuple):
    """What happened in one call of ``step``: the steps that were made."""

    n_steps: int


@LAYER_SAMPLERS.register("block-gibbs")
class BlockGibbs:
    """Draws the hidden layer given the visible one and back; a model of more layers goes folded.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> layers = gb.models.SpinLayer(2), gb.models.SpinLayer(1)
    >>> rbm, rng = gb.models.RestrictedModel.build(*layers, weights=[[20.0], [20.0]]), np.random.default_rng(0)
    >>> sampler = gb.samplers.BlockGibbs()
    >>> chains = sampler.init(rbm, 2, rng, values=np.array([[1.0, 1.0], [-1.0, -1.0]]))
    >>> sampler.step(rbm, chains, rng, n_steps=5)[0].values
    array([[ 1.,  1.],
           [-1., -1.]])
    """

    def init(
        self, machine: RestrictedModel, n_chains: int, rng: np.random.Generator, values: np.ndarray | None = None
    ) -> BlockState:
        """Start chains at visible values, by default at draws from the visible biases alone."""
        check_whole_number("n_chains", n_chains)
        if values is None:
            fields = np.tile(machine.visible_biases / machine.temperature, (n_chains, 1))
            return BlockState(machine.draw_visible_at(fields, rng), 0)
        if np.shape(values) != (n_chains, machine.visible.width):
            raise ArgumentError(f"values has shape {np.shape(values)}", f"give {(n_chains, machine.visible.width)}")
        return BlockState(np.asarray(values), 0)

    def step(
        self, machine: RestrictedModel, state: BlockState, rng: np.random.Generator, n_steps: int = 1
    ) -> tuple[BlockState, BlockInfo]:
        """Return the chains some steps later."""
        check_whole_number("n_steps", n_steps, least=0)
        values, there = state.values, twin("layers")
        if there is not None:
            values = there.gibbs(machine, values, n_steps, rng)
        else:
            for _ in range(n_steps):
                values = machine.draw_visible(machine.draw_hidden(values, rng), rng)
        return BlockState(values, state.n_steps + n_steps), BlockInfo(n_steps)


def draw_layers(
    model: Any,
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
    model : RestrictedModel, DeepModel or BeliefNetwork
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
        Visible states at which the chains of a restricted machine start; by default draws from the visible biases.

    Returns
    -------
    list of ndarray of shape (n_chains, n_draws, width)
        Values of the layers from the bottom, chain by chain.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rbm = gb.models.RestrictedModel.build(gb.models.BinaryLayer(3), gb.models.BinaryLayer(2))
    >>> [part.shape for part in gb.samplers.draw_layers(rbm, 40, rng=0, n_chains=20)]
    [(20, 2, 3), (20, 2, 2)]
    """
    for name, value, least in (("n_samples", n_samples, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        check_whole_number(name, value, least)
    machine, generator, sampler = model.folded(), as_generator(rng), BlockGibbs()
    n_draws = -(-n_samples // n_chains)
    require_memory(
        8.0 * n_chains * (n_draws + 4) * sum(layer.width for layer in model.layers),
        f"keeping {n_chains * n_draws} draws of {sum(layer.n_units for layer in model.layers)} units",
        "draw fewer at a time with n_samples=",
    )
    values = None if states is None else machine.visible.encode(np.asarray(states))
    chains = sampler.init(machine, n_chains, generator, values)
    draws = []
    for number in range(n_draws):
        chains, _ = sampler.step(machine, chains, generator, burn_in + thin if number == 0 else thin)
        draws.append(chains.values)
    visible = np.concatenate(draws)
    # from a stream of its own: what is drawn below the machine does not depend on whether its hidden layer is wanted
    hidden = machine.draw_hidden(visible, generator.spawn(1)[0])
    parts = model.unfold_values(visible, hidden, generator)
    return [part.reshape(n_draws, n_chains, -1).swapaxes(0, 1) for part in parts]
