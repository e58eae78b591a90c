"""The free phase of machines of layers: moments under the model, by chains that draw one layer given the other.

CD-k starts its chains at the minibatch every time (Hinton 2002), PCD-k goes on where it stopped (Tieleman 2008). Other
ways are other files of this folder: anything with `init` and a call is a free phase.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models.restricted import RestrictedModel
from gibbsian.registry import Registry
from gibbsian.settings import check, declared, whole

FREE_PHASES = Registry("free_phase", "gibbsian.expectations", "FREE_PHASES")


class FreeMoments(NamedTuple):
    """Means of the columns of both layers, and of ``v h^T``, under the model; not centred."""

    visible: np.ndarray
    hidden: np.ndarray
    products: np.ndarray


@runtime_checkable
class FreePhase(Protocol):
    """How the moments under the model are found, minibatch by minibatch."""

    def init(self, model: RestrictedModel, data: Any, rng: np.random.Generator) -> Any:
        """Return the state before the first minibatch: a dataclass or named tuple of plain arrays."""

    def __call__(
        self, model: RestrictedModel, state: Any, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, Any]:
        """Return the moments, given the values of the minibatch, and the next state."""


class BlockSamples(NamedTuple):
    """Rows of visible values, and the means of the hidden units given each of them."""

    values: np.ndarray
    hidden: np.ndarray

    def moments(self) -> FreeMoments:
        """Return the means over the samples."""
        products = self.values.T @ self.hidden / len(self.values)
        return FreeMoments(self.values.mean(axis=0), self.hidden.mean(axis=0), products)


@runtime_checkable
class SampledPhase(FreePhase, Protocol):
    """A free phase whose moments are plain means over samples.

    The learner then makes the products of both phases in one go, and gives the hidden fields of the minibatch, which
    it has, instead of its values.
    """

    def samples(
        self, model: RestrictedModel, state: Any, hidden_fields: np.ndarray, rng: np.random.Generator
    ) -> tuple[BlockSamples, Any]:
        """Return the samples and the next state."""


class NoChains(NamedTuple):
    """The state of a phase that remembers nothing."""


class HiddenChains(NamedTuple):
    """Chains that go on, kept as values of the hidden layer."""

    hidden: np.ndarray


@FREE_PHASES.register("cd", consistent=False)
@declared(frozen=True)
class RestartedBlockChains:
    """CD-k: chains that start at the rows of the minibatch and make `n_steps` steps.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learners.Minibatch(free_phase=gb.expectations.RestartedBlockChains(n_steps=3)).free_phase
    RestartedBlockChains(n_steps=3)
    """

    n_steps: int = whole(1, "Steps of each chain.", least=1)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: RestrictedModel, data: Any, rng: np.random.Generator) -> NoChains:
        """Nothing is remembered."""
        return NoChains()

    def samples(
        self, model: RestrictedModel, state: NoChains, hidden_fields: np.ndarray, rng: np.random.Generator
    ) -> tuple[BlockSamples, NoChains]:
        """Run the chains of one minibatch."""
        hidden = model.draw_hidden_at(hidden_fields, rng)
        values, fields = _gibbs(model, hidden, self.n_steps, rng)
        return BlockSamples(values, model.hidden_means_at(fields)), state

    def __call__(
        self, model: RestrictedModel, state: NoChains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, NoChains]:
        """Return the moments over the chains of one minibatch."""
        samples, state = self.samples(model, state, model.hidden_fields(values), rng)
        return samples.moments(), state


@FREE_PHASES.register("pcd")
@declared(frozen=True)
class PersistentBlockChains:
    """PCD-k: `n_chains` chains that make `n_steps` steps at every minibatch.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learners.Minibatch(free_phase=gb.expectations.PersistentBlockChains(n_chains=20)).free_phase
    PersistentBlockChains(n_steps=1, n_chains=20)
    """

    n_steps: int = whole(1, "Steps of each chain for each minibatch.", least=1)
    n_chains: int = whole(100, "Number of chains, whatever the size of the minibatches.", least=1)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: RestrictedModel, data: Any, rng: np.random.Generator) -> HiddenChains:
        """Start from the biases alone, which the start of a fit sets to the means of the data."""
        fields = np.tile(model.visible_biases / model.temperature, (self.n_chains, 1)).astype(model.theta.dtype)
        return HiddenChains(model.draw_hidden(model.draw_visible_at(fields, rng), rng))

    def samples(
        self, model: RestrictedModel, state: HiddenChains, hidden_fields: np.ndarray, rng: np.random.Generator
    ) -> tuple[BlockSamples, HiddenChains]:
        """Go on with the chains; kept as hidden values, one step is two products, the hidden means included."""
        values, fields = _gibbs(model, state.hidden, self.n_steps, rng)
        return BlockSamples(values, model.hidden_means_at(fields)), HiddenChains(model.draw_hidden_at(fields, rng))

    def __call__(
        self, model: RestrictedModel, state: HiddenChains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, HiddenChains]:
        """Return the moments over the chains after their steps."""
        samples, state = self.samples(model, state, values, rng)
        return samples.moments(), state


def _gibbs(
    model: RestrictedModel, hidden: np.ndarray, n_steps: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw visible values, then hidden ones, in turn; return the last visible values and their hidden fields."""
    values = model.draw_visible(hidden, rng)
    for _ in range(n_steps - 1):
        values = model.draw_visible(model.draw_hidden(values, rng), rng)
    return values, model.hidden_fields(values)


def as_free_phase(phase: str | FreePhase, **settings: Any) -> FreePhase:
    """Turn a registered name with settings, or a free phase that brings its own, into a free phase."""
    if isinstance(phase, str):
        return FREE_PHASES.create(phase, **settings)
    if not isinstance(phase, FreePhase) or isinstance(phase, type):
        raise ArgumentError(
            f"must be one of {', '.join(FREE_PHASES)} or a free phase object", argument="free_phase", value=phase
        )
    if settings:
        raise ArgumentError(f"{', '.join(settings)}", "a free phase object brings its own settings, so give them there")
    return phase
