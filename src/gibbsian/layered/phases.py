"""The free phase of a restricted machine: moments under the model, by chains (YK15's free phase).

CD-k starts its chains at the minibatch every time (Hinton 2002), PCD-k goes on where it stopped (Tieleman 2008). Other
ways are other files of this folder: anything with `init` and a call is a free phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.layered.rows import LayerRows
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel
from gibbsian.registry import Registry

FREE_PHASES = Registry("free_phase", "gibbsian.layered", "FREE_PHASES")


class FreeMoments(NamedTuple):
    """Means under the model, not centred.

    Parameters
    ----------
    visible, hidden : ndarray
        Mean of each column of values.
    products : ndarray of shape (visible.width, hidden.width)
        Mean of ``v h^T``.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.phases import FreeMoments
    >>> FreeMoments(np.zeros(2), np.zeros(3), np.zeros((2, 3))).products.shape
    (2, 3)
    """

    visible: np.ndarray
    hidden: np.ndarray
    products: np.ndarray


@runtime_checkable
class FreePhase(Protocol):
    """How the moments under the model are found.

    Examples
    --------
    >>> from gibbsian.layered.phases import FREE_PHASES, FreePhase
    >>> isinstance(FREE_PHASES.create("pcd"), FreePhase)
    True
    """

    def init(self, model: RestrictedModel, rows: LayerRows, rng: np.random.Generator) -> Any:
        """Return the state before the first minibatch: a dataclass or named tuple of plain arrays."""

    def __call__(
        self, model: RestrictedModel, state: Any, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, Any]:
        """Return the moments, given the values of the minibatch, and the next state."""


class Samples(NamedTuple):
    """Rows of visible values, and the means of the hidden units given each of them.

    Parameters
    ----------
    values, hidden : ndarray
        One row for each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.phases import Samples
    >>> Samples(np.ones((4, 2)), np.full((4, 1), 0.5)).moments().products.tolist()
    [[0.5], [0.5]]
    """

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

    Examples
    --------
    >>> from gibbsian.layered.phases import ContrastiveDivergence, SampledPhase
    >>> isinstance(ContrastiveDivergence(), SampledPhase)
    True
    """

    def samples(
        self, model: RestrictedModel, state: Any, hidden_fields: np.ndarray, rng: np.random.Generator
    ) -> tuple[Samples, Any]:
        """Return the samples and the next state."""


class NoChains(NamedTuple):
    """The state of a phase that remembers nothing.

    Examples
    --------
    >>> from gibbsian.layered.phases import NoChains
    >>> NoChains()
    NoChains()
    """


class Chains(NamedTuple):
    """Chains that go on.

    Parameters
    ----------
    hidden : ndarray of shape (n_chains, hidden.width)
        Values of the hidden layer.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.phases import Chains
    >>> Chains(np.zeros((10, 3))).hidden.shape
    (10, 3)
    """

    hidden: np.ndarray


@FREE_PHASES.register("cd", consistent=False)
@dataclass(frozen=True)
class ContrastiveDivergence:
    """CD-k: chains that start at the rows of the minibatch and make `n_steps` steps.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.phases import ContrastiveDivergence, NoChains
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm, rng = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1)), np.random.default_rng(0)
    >>> moments, _ = ContrastiveDivergence()(rbm, NoChains(), np.ones((5000, 2)), rng)
    >>> moments.visible.round(1)
    array([0.5, 0.5])
    """

    n_steps: int = 1

    def __post_init__(self) -> None:
        check_whole_number("n_steps", self.n_steps)

    def init(self, model: RestrictedModel, rows: LayerRows, rng: np.random.Generator) -> NoChains:
        """Nothing is remembered."""
        return NoChains()

    def samples(
        self, model: RestrictedModel, state: NoChains, hidden_fields: np.ndarray, rng: np.random.Generator
    ) -> tuple[Samples, NoChains]:
        """Run the chains of one minibatch."""
        hidden = model.draw_hidden_at(hidden_fields, rng)
        values, fields = _gibbs(model, hidden, self.n_steps, rng)
        return Samples(values, model.hidden_means_at(fields)), state

    def __call__(
        self, model: RestrictedModel, state: NoChains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, NoChains]:
        """Return the moments over the chains of one minibatch."""
        samples, state = self.samples(model, state, model.hidden_fields(values), rng)
        return samples.moments(), state


@FREE_PHASES.register("pcd")
@dataclass(frozen=True)
class PersistentChains:
    """PCD-k: `n_chains` chains that make `n_steps` steps at every minibatch.

    The chains are kept as hidden values: one step is then two matrix products, the hidden means of the statistics
    included.

    Parameters
    ----------
    n_steps : int
        Steps a minibatch.
    n_chains : int
        Number of chains, whatever the size of the minibatches.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.phases import PersistentChains
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm, rng = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1)), np.random.default_rng(0)
    >>> PersistentChains(n_chains=5).init(rbm, LayerRows(np.eye(2)), rng).hidden.shape
    (5, 1)
    """

    n_steps: int = 1
    n_chains: int = 100

    def __post_init__(self) -> None:
        check_whole_number("n_steps", self.n_steps)
        check_whole_number("n_chains", self.n_chains)

    def init(self, model: RestrictedModel, rows: LayerRows, rng: np.random.Generator) -> Chains:
        """Start from the biases alone, which the start of a fit sets to the means of the data."""
        fields = np.tile(model.visible_biases / model.temperature, (self.n_chains, 1)).astype(model.theta.dtype)
        return Chains(model.draw_hidden(model.draw_visible_at(fields, rng), rng))

    def samples(
        self, model: RestrictedModel, state: Chains, hidden_fields: np.ndarray, rng: np.random.Generator
    ) -> tuple[Samples, Chains]:
        """Go on with the chains."""
        values, fields = _gibbs(model, state.hidden, self.n_steps, rng)
        return Samples(values, model.hidden_means_at(fields)), Chains(model.draw_hidden_at(fields, rng))

    def __call__(
        self, model: RestrictedModel, state: Chains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, Chains]:
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
    """Turn a registered name with settings, or a free phase that brings its own, into a free phase.

    Examples
    --------
    >>> from gibbsian.layered.phases import as_free_phase
    >>> as_free_phase("cd", n_steps=3)
    ContrastiveDivergence(n_steps=3)
    """
    if isinstance(phase, str):
        return FREE_PHASES.create(phase, **settings)
    if not isinstance(phase, FreePhase) or isinstance(phase, type):
        raise ArgumentError(
            f"must be one of {', '.join(FREE_PHASES)} or a free phase object", argument="free_phase", value=phase
        )
    if settings:
        raise ArgumentError(f"{', '.join(settings)}", "a free phase object brings its own settings, so give them there")
    return phase


__all__ = [
    "FREE_PHASES",
    "Chains",
    "ContrastiveDivergence",
    "FreeMoments",
    "FreePhase",
    "NoChains",
    "PersistentChains",
    "SampledPhase",
    "Samples",
    "as_free_phase",
]
