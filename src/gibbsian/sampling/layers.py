"""Block Gibbs sampling of machines in layers: the odd layers given the even ones and back, in matrix products.

The layers of one side are independent given the other, so a sweep draws them side by side (Salakhutdinov and Hinton
2009). Rows of a matrix are chains; each draws from its own stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Mask, States, Tensor
from gibbsian.backends.device import twin
from gibbsian.backends.numba.random import fill_normals, fill_uniforms
from gibbsian.errors import ArgumentError
from gibbsian.models.base import Layered, Model
from gibbsian.models.layers.stack import StackFamily, top_of
from gibbsian.models.layers.units import codes_of, spread
from gibbsian.resources import require_memory, spans
from gibbsian.rng import Key, RandomState, Words
from gibbsian.sampling.base import SWEEPS, Chains, TransitionInfo, start_chains
from gibbsian.sampling.gibbs import Gibbs, OnceATheta
from gibbsian.settings import check_whole_number

L = TypeVar("L", bound=Layered)


class RowStreams:
    """The streams of chains, as the generator that layers draw their rows from."""

    def __init__(self, streams: Words):
        self.streams = streams

    @classmethod
    def of(cls, streams: Words) -> np.random.Generator:
        """Return the streams as layers take them, which advance in place."""
        return cast("np.random.Generator", cls(streams))

    def random(self, shape: tuple[int, int], dtype: type = np.float64) -> Floats:
        """Return uniform numbers, each row from its own stream."""
        numbers = np.empty(shape)
        fill_uniforms(self.streams, numbers)
        return numbers.astype(dtype, copy=False)

    def standard_normal(self, shape: tuple[int, int]) -> Floats:
        """Return standard normal numbers, each row from its own stream."""
        numbers = np.empty(shape)
        fill_normals(self.streams, numbers)
        return numbers


def seed_of(streams: Words) -> int:
    """Return a seed for what a device draws, and advance the stream it comes from."""
    number = np.empty((1, 1))
    fill_uniforms(streams[:1], number)
    return int(number[0, 0] * 2.0**52)


@SWEEPS.register("stack")
class BlockKernel:
    """Block Gibbs sampling of a stack; the states of chains are rows of all units, from the visible layer."""

    def __init__(self, family: StackFamily, scan: Gibbs, mask: Mask | None):
        if scan.random_scan:
            raise ArgumentError("layers are drawn as a whole", "use the transition 'gibbs'")
        self.family, self.mask = family, mask
        units = spans(layer.n_units for layer in family.layers)
        self.held = None if mask is None else [mask[..., at] for at in units]
        self.n_free = float(len(family.variables) if mask is None else np.atleast_2d(~mask).sum(axis=1).mean())
        self.model = OnceATheta(partial(Model[StackFamily], family))

    def init(self, n_chains: int, key: Key, states: States | None = None) -> Chains:
        """Start chains at rows of all units, or at uniformly random ones; real units then begin at zero."""
        return start_chains(self.family.variables, n_chains, key, states, self.mask)

    def step(
        self, theta: Floats, chains: Chains, n_sweeps: int = 1, n_updates: int | None = None, reverse: bool = False
    ) -> tuple[Chains, TransitionInfo]:
        """Return the chains some sweeps later; a sweep draws the odd layers and then the even ones, or in reverse."""
        check_whole_number("n_sweeps", n_sweeps, least=0)
        if n_updates is not None:
            raise ArgumentError("layers are drawn as a whole, not unit by unit", "use n_sweeps=")
        if chains.states.shape[1] != len(self.family.variables):
            raise ArgumentError(
                f"the chains have {chains.states.shape[1]} variables but the model has {len(self.family.variables)}"
            )
        if not n_sweeps:
            return chains, TransitionInfo(0.0, 0)
        before, streams = self.family.encode(chains.states), chains.streams.copy()
        there = twin("layer_programs") if self.held is None and not reverse else None
        if there is not None:
            values = there.gibbs(self.model(theta), before, n_sweeps, seed_of(streams))
        else:
            values, parts, rng = before, self.family.split(theta), RowStreams.of(streams)
            for _ in range(n_sweeps):
                for side in (0, 1) if reverse else (1, 0):
                    values = self._hold(before, self.family.draw_side(parts, side, values, rng))
        states = decoded(self.family, values)
        changed = float(np.count_nonzero(states != chains.states)) / max(1.0, self.n_free * len(states))
        return Chains(states, streams, chains.n_sweeps + n_sweeps), TransitionInfo(changed, n_sweeps)

    def _hold(self, before: Sequence[Tensor], drawn: list[Tensor]) -> list[Tensor]:
        """Put held units back to their values."""
        if self.held is None:
            return drawn
        each = zip(self.family.layers, self.held, before, drawn, strict=True)
        return [np.where(spread(layer, held), old, new) for layer, held, old, new in each]


def decoded(family: StackFamily, values: Sequence[Tensor]) -> States:
    """Return rows of all units from values of all layers."""
    return cast("States", np.hstack([codes_of(layer, part) for layer, part in zip(family.layers, values, strict=True)]))


def independent_chains(stack: Model[StackFamily], n_chains: int, key: Key) -> tuple[BlockKernel, Chains]:
    """Return the kernel of a stack and chains at draws from its biases alone."""
    kernel = BlockKernel(stack.family, Gibbs(), None)
    # without interactions one sweep is a draw
    alone = np.where(stack.family.penalised, 0.0, stack.theta)
    return kernel, kernel.step(alone, kernel.init(n_chains, key))[0]._replace(n_sweeps=0)


def visible_chains(stack: Model[StackFamily], shown: States, key: Key) -> tuple[BlockKernel, Chains]:
    """Return the kernel of a stack and chains at rows of its visible layer; probabilities go to the likelier value."""
    layer, rows = stack.family.layers[0], np.asarray(shown)
    kernel, chains = independent_chains(stack, len(rows), key)
    if rows.shape[1:] != (layer.n_units,):
        raise ArgumentError(f"states has shape {rows.shape}", f"give {(len(rows), layer.n_units)}")
    chains.states[:, : layer.n_units] = rows if layer.variables.real else np.rint(rows)
    return kernel, chains


def draw_layers(
    model: Model[L],
    n_samples: int,
    random_state: RandomState = None,
    n_chains: int = 100,
    burn_in: int = 1000,
    thin: int = 1,
    states: States | None = None,
) -> list[Floats]:
    """Draw values of all layers of a machine with block Gibbs chains.

    Parameters
    ----------
    model : Model of a Layered family
        The machine.
    n_samples : int
        Number of draws in all; each chain gives ``ceil(n_samples / n_chains)``.
    random_state : None, int or Generator
        Source of randomness.
    n_chains : int, default 100
        Chains, which are rows of a matrix and so cost little.
    burn_in, thin : int
        Sweeps before the first draw, and between two draws of a chain.
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
    >>> [part.shape for part in gb.sampling.draw_layers(rbm, 40, random_state=0, n_chains=20)]
    [(20, 2, 3), (20, 2, 2)]
    """
    for name, value, least in (("n_samples", n_samples, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        check_whole_number(name, value, least)
    top, key, layers = top_of(model), Key.of(random_state), model.family.layers
    n_draws = -(-n_samples // n_chains)
    require_memory(
        8.0 * n_chains * (n_draws + 4) * sum(layer.width for layer in layers),
        f"keeping {n_chains * n_draws} draws of {sum(layer.n_units for layer in layers)} units",
        "draw fewer at a time with n_samples=",
    )
    if states is None:
        kernel, chains = independent_chains(top, n_chains, key)
    elif len(states) == n_chains:
        kernel, chains = visible_chains(top, states, key)
    else:
        raise ArgumentError(f"states has {len(states)} rows", f"give one for each of {n_chains} chains")
    draws = []
    for number in range(n_draws):
        chains, _ = kernel.step(top.theta, chains, burn_in + thin if number == 0 else thin)
        draws.append(chains.states)
    values = top.family.encode(cast("States", np.concatenate(draws)))
    parts = model.family.draw_below(model.theta, values, key.fold("below").generator())
    return [part.reshape(n_draws, n_chains, -1).swapaxes(0, 1) for part in parts]
