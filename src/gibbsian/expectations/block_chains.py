"""The free phase of machines of layers: moments under the model, by chains that draw one layer given the other.

CD-k starts its chains at the minibatch every time (Hinton 2002), PCD-k goes on where it stopped (Tieleman 2008), with
copies at higher temperatures where plain chains get stuck. Spatial Monte Carlo integration (YU20, whose conclusion
proposes it for restricted machines) does not average a moment over the samples, but its expectation over a region of
units given the rest of each sample (YU20 eq. 8). Anything with `init` and a call is a free phase.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.expectations.layer_regions import layer_products, pair_products
from gibbsian.models.layer_flips import FlipSums, is_two_valued
from gibbsian.models.restricted import RestrictedModel
from gibbsian.registry import Registry
from gibbsian.samplers.layer_paths import IndependentUnits, LayerPath, as_units
from gibbsian.samplers.tempering import TemperedState, Tempering
from gibbsian.settings import check, choice, declared, free, whole

FREE_PHASES = Registry("free_phase", "gibbsian.expectations", "FREE_PHASES")
REGIONS = ("layer", "pair")


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


class _MeansOverSamples:
    """The call of a phase whose moments are plain means over its samples."""

    def __call__(
        self: Any, model: RestrictedModel, state: Any, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, Any]:
        """Return the moments over the chains after their steps."""
        samples, state = self.samples(model, state, model.hidden_fields(values), rng)
        return samples.moments(), state


@declared(frozen=True)
class _HiddenChainsGoOn:
    """Chains that are kept as hidden values from one minibatch to the next."""

    n_steps: int = whole(1, "Steps of each chain for each minibatch.", least=1)
    n_chains: int = whole(100, "Number of chains, whatever the size of the minibatches.", least=1)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: RestrictedModel, data: Any, rng: np.random.Generator) -> HiddenChains:
        """Start from the biases alone, which the start of a fit sets to the means of the data."""
        fields = np.tile(model.visible_biases / model.temperature, (self.n_chains, 1)).astype(model.theta.dtype)
        return HiddenChains(model.draw_hidden(model.draw_visible_at(fields, rng), rng))

    def advance(
        self, model: RestrictedModel, state: HiddenChains, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, HiddenChains]:
        """Return the visible values after the steps, their hidden fields, and the chains; a step is two products."""
        values, fields = _gibbs(model, state.hidden, self.n_steps, rng)
        return values, fields, HiddenChains(model.draw_hidden_at(fields, rng))


@FREE_PHASES.register("cd", consistent=False)
@declared(frozen=True)
class RestartedBlockChains(_MeansOverSamples):
    """CD-k: chains that start at the rows of the minibatch and make `n_steps` steps.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learners.Minibatch(free_phase=gb.expectations.RestartedBlockChains(n_steps=3)).free_phase
    RestartedBlockChains(n_steps=3)
    """

    on_device = "restarted"

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


@FREE_PHASES.register("pcd")
@declared(frozen=True)
class PersistentBlockChains(_HiddenChainsGoOn, _MeansOverSamples):
    """PCD-k: `n_chains` chains that make `n_steps` steps at every minibatch.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learners.Minibatch(free_phase=gb.expectations.PersistentBlockChains(n_chains=20)).free_phase
    PersistentBlockChains(n_steps=1, n_chains=20)
    """

    on_device = "persistent"

    def samples(
        self, model: RestrictedModel, state: HiddenChains, hidden_fields: np.ndarray, rng: np.random.Generator
    ) -> tuple[BlockSamples, HiddenChains]:
        """Go on with the chains."""
        values, fields, state = self.advance(model, state, rng)
        return BlockSamples(values, model.hidden_means_at(fields)), state


@FREE_PHASES.register("smci")
@declared(frozen=True)
class SpatialBlockChains(_HiddenChainsGoOn):
    """Persistent chains whose moments are taken by spatial Monte Carlo integration.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learners.Minibatch(free_phase=gb.expectations.SpatialBlockChains(region="pair")).free_phase.region
    'pair'
    """

    region: str = choice("layer", "What is summed exactly around a visible and a hidden unit.", *REGIONS)

    def __call__(
        self, model: RestrictedModel, state: HiddenChains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, HiddenChains]:
        """Go on with the chains and integrate around their states."""
        drawn, _, state = self.advance(model, state, rng)
        return spatial_moments(model, drawn, state.hidden, self.region), state


class TemperedChains(NamedTuple):
    """The chains, and the fields of the independent units at the beginning of their path."""

    chains: TemperedState
    visible_base: np.ndarray
    hidden_base: np.ndarray

    def path(self, model: RestrictedModel) -> LayerPath:
        """Return the path to a machine from the independent units that all steps share."""
        return LayerPath(model, model, IndependentUnits(self.visible_base, self.hidden_base))


@FREE_PHASES.register("tempering")
@declared(frozen=True)
class TemperedBlockChains:
    """Chains that go on at the machine's own temperature, each with copies at higher ones to exchange states with.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learners.Minibatch(free_phase=gb.expectations.TemperedBlockChains(betas=4)).free_phase.n_chains
    100
    """

    on_device = "tempered"

    n_steps: int = whole(1, "Steps of each chain for each minibatch.", least=1)
    n_chains: int = whole(100, "Chains at the machine's own temperature.", least=1)
    betas: int | np.ndarray = free(
        10, "Number of inverse temperatures, evenly from 0 to 1, or these themselves.", doc="int or array"
    )

    def __post_init__(self) -> None:
        check(self)
        Tempering(self.betas)  # checks them

    @property
    def ladder(self) -> np.ndarray:
        """The inverse temperatures."""
        return Tempering(self.betas).ladder

    def init(self, model: RestrictedModel, data: Any, rng: np.random.Generator) -> TemperedChains:
        """Start all copies at independent units with the base rates of the data."""
        base = as_units(data, model, rng)
        chains = Tempering(self.betas).init(LayerPath(model, model, base), self.n_chains, rng)
        return TemperedChains(chains, base.visible, base.hidden)

    def __call__(
        self, model: RestrictedModel, state: TemperedChains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, TemperedChains]:
        """Go on with the chains; the moments are those at the machine's own temperature."""
        chains, _ = Tempering(self.betas).step(state.path(model), state.chains, rng, self.n_steps)
        coldest = chains.values[-1]
        return BlockSamples(coldest, model.hidden_means(coldest)).moments(), state._replace(chains=chains)


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


def spatial_moments(
    model: RestrictedModel, values: np.ndarray, hidden: np.ndarray | None = None, region: str = "layer"
) -> FreeMoments:
    """Return moments by spatial Monte Carlo integration over samples.

    Parameters
    ----------
    model : RestrictedModel
        A machine; those of two-valued units have compiled sums.
    values : ndarray of shape (n_samples, visible.width)
        Visible values.
    hidden : ndarray of shape (n_samples, hidden.width), optional
        Hidden values, which the region ``"pair"`` needs.
    region : {"layer", "pair"}
        What is summed exactly around a visible and a hidden unit: the pair alone (1-SMCI, YU20 eq. 15), or the visible
        unit with the whole hidden layer, analytically; the larger never has the larger variance (YU20 theorem 2).
    """
    if region not in REGIONS:
        raise ArgumentError("is not known", "use 'pair' or 'layer'", argument="region", value=region)
    compiled = FlipSums(model, values) if is_two_valued(model) else None
    hidden_means = model.hidden_means(values).mean(axis=0)
    if region == "layer":
        visible, products = compiled.layer_moments() if compiled else layer_products(model, values)
        return FreeMoments(visible, hidden_means, products)
    if hidden is None:
        raise ArgumentError("needs the hidden values of the samples", "give `hidden=`", argument="region", value="pair")
    products = compiled.pair_products(hidden) if compiled else pair_products(model, values, hidden)
    return FreeMoments(model.visible_means(hidden).mean(axis=0), hidden_means, products)


def _gibbs(
    model: RestrictedModel, hidden: np.ndarray, n_steps: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw visible values, then hidden ones, in turn; return the last visible values and their hidden fields."""
    values = model.draw_visible(hidden, rng)
    for _ in range(n_steps - 1):
        values = model.draw_visible(model.draw_hidden(values, rng), rng)
    return values, model.hidden_fields(values)
