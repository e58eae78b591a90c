"""Expectations over the rows of a cluster, taken by its workers: each has its own rows, and nothing stays there.

Chains that a worker kept would be lost with it. Those of its rows begin anew in every call, from a generator that the
seed of the fit, the number of the call and the rows decide; those that go on from call to call are few, so that they
travel, in blocks. So the bits depend neither on where a partition or a block is nor on what happened.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.minibatches import Cuts, draw_seed, seeded
from gibbsian.data.rows import Rows
from gibbsian.estimate import Estimate
from gibbsian.expectations.legacy import Rebuilt
from gibbsian.models.base import Array, Family, Model

# Interactions that the chains of a block meet in a call, 1 to 20 milliseconds of work where a task costs 3 to 5; and
# the most blocks, of which each costs the client 1 to 2 milliseconds.
BLOCK_WORK, MOST_BLOCKS = 2**22, 32


class ThereState(NamedTuple):
    """The model's kind and the rows, the parameters of the last call, the seed, and the calls so far."""

    model: Rebuilt[Model[Family]]
    data: Rebuilt[Any]
    theta: Array
    seed: Array
    calls: int


class SpreadState(NamedTuple):
    """The way to the workers, the states of blocks of chains, which come back after every call, and their shares."""

    data: Rebuilt[Any]
    blocks: tuple[Any, ...]
    shares: Array


@dataclass(frozen=True)
class There:
    """An expectation given the data, free or clamped, that the workers take of their rows: see `Expectation`."""

    phase: Any

    @property
    def copies(self) -> int:
        """Copies of the data, of which each has its chains."""
        return self.phase.copies

    def init(self, model: Model[Family], data: Rows, rng: np.random.Generator) -> ThereState:
        """Take the seed, and leave the generator as it is: what needs no seed then goes on as it does in memory."""
        return ThereState(Rebuilt(model), Rebuilt(data), model.theta, draw_seed(deepcopy(rng)), 0)

    def __call__(self, model: Model[Family], state: ThereState) -> tuple[Estimate, ThereState]:
        """Return the mean over all rows, and its standard error from those of the partitions."""
        state, data = self.advance(model, state), state.data.value
        mean, variance, value = data.mean(partial(_taken, self.phase, model, [*state.seed, state.calls]))
        parts = {} if np.isnan(value) else {"log_partition": Estimate(float(value))}
        return Estimate(mean, np.sqrt(variance / data.total_weight), parts), state

    def advance(self, model: Model[Family], state: ThereState) -> ThereState:
        """Return the state of the next call."""
        return state._replace(theta=model.theta, calls=state.calls + 1)

    def completions(self, data: Rows, state: ThereState, copy: int = 0) -> Any:
        """Return the rows as one copy of the chains completes them."""
        return self.completed(state, partial(_copy, copy))

    def completed(self, state: ThereState, make: Callable[[object, object, Dataset], Dataset]) -> Any:
        """Return the rows as a function of the phase, its state and the rows of a partition completes them."""
        model = state.model.value.replace(state.theta)
        return state.data.value.map(partial(_made, self.phase, model, [*state.seed, state.calls], make))


class GoesOn:
    """A free phase whose chains go on: where the rows are on a cluster, its workers move them, in blocks.

    A phase says how chains `start`, how they are `moved`, and what is a `part` of their state.
    """

    def init(self: Any, model: Model[Family], data: Rows, rng: np.random.Generator) -> Any:
        """Start the chains; the number of blocks depends on the work alone, little of which is one that stays here."""
        state = self.start(model, data, rng)
        n_chains = len(state.states)
        work = n_chains * self.n_steps * model.theta.size // BLOCK_WORK
        n_blocks = min(work, n_chains // 2, MOST_BLOCKS)
        if data is None or not data.on_cluster or n_blocks < 2:
            return state
        cuts = Cuts(n_chains, -(-n_chains // n_blocks))
        blocks = tuple(self.part(state, slice(*cuts[k])) for k in range(len(cuts)))
        return SpreadState(Rebuilt(data), blocks, np.diff(cuts.ends) / n_chains)

    def __call__(self: Any, model: Model[Family], state: Any) -> tuple[Estimate, Any]:
        """Let the chains go on under a model; return the expected statistics over them, and where they stand."""
        if not isinstance(state, SpreadState):
            return self.moved(model, state)
        mean, variance, blocks = state.data.value.spread(partial(_moved, self, model), state.blocks, state.shares)
        return Estimate(mean, np.sqrt(variance)), state._replace(blocks=tuple(blocks))


def _moved(phase: Any, model: Model[Family], block: Any, share: float) -> tuple[Array, Array, list[Any]]:
    """Return what a block adds to the mean and to its variance, and where its chains stand."""
    estimate, after = phase.moved(model, block)
    return share * estimate.value, (share * estimate.monte_carlo_error) ** 2, [after]


def where_rows_are(phase: object, data: Rows) -> Any:
    """Return an expectation for data: of rows on a cluster, one that its workers take."""
    return There(phase) if data.on_cluster else phase


def own_generator(seed: Any, data: Dataset) -> np.random.Generator:
    """Return the generator of a partition: a function of the seed and of its rows."""
    holes = b"" if data.missing is None else data.missing.tobytes()
    return seeded(seed, zlib.crc32(holes, zlib.crc32(np.ascontiguousarray(data.states).tobytes())))


def _taken(phase: Any, model: Model[Family], seed: object, data: Dataset) -> tuple[Array, Array, float]:
    """Return what a partition says: mean, variance times weight, and log-evidence or NaN."""
    estimate, _ = phase(model, phase.init(model, data, own_generator(seed, data)))
    value = float(estimate.parts.get("log_partition", np.nan))
    return estimate.value, data.total_weight * estimate.monte_carlo_error**2, value


def _made(
    phase: Any, model: Model[Family], seed: object, make: Callable[[Any, Any, Dataset], Dataset], data: Dataset
) -> Dataset:
    if not data.has_missing:
        return data
    return make(phase, phase.advance(model, phase.init(model, data, own_generator(seed, data))), data)


def _copy(copy: int, phase: Any, state: Any, data: Dataset) -> Dataset:
    return phase.completions(data, state, copy)
