"""The free phase of machines of layers: moments under the model, by chains that draw one layer given the other.

CD-k starts its chains at the minibatch every time (Hinton 2002), PCD-k goes on where it stopped (Tieleman 2008), with
copies at higher temperatures where plain chains get stuck. Spatial Monte Carlo integration (YU20, whose conclusion
proposes it for restricted machines) does not average a moment over the samples, but its expectation over a region of
units given the rest of each sample (YU20 eq. 8). Anything with `init` and a call is a free phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.backends.device import twin
from gibbsian.errors import ArgumentError
from gibbsian.expectations.layer_regions import layer_products, pair_products
from gibbsian.inference.layer_flips import FlipSums, is_two_valued
from gibbsian.models.base import Model, StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import as_units
from gibbsian.old_sampling.layer_paths import IndependentUnits, PathUnits
from gibbsian.old_sampling.tempering import TemperedState, Tempering
from gibbsian.registry import Registry
from gibbsian.resources import spans
from gibbsian.settings import check, choice, declared, free, whole

FREE_PHASES = Registry("free_phase", "gibbsian.expectations", "FREE_PHASES")
REGIONS = ("layer", "pair")

Array = Any


class FreeMoments(NamedTuple):
    """Means of the columns of all layers, and of products of neighbours, under the model; not centred."""

    firsts: list[np.ndarray]
    products: list[np.ndarray]


@runtime_checkable
class FreePhase(Protocol):
    """How the moments under the model are found, minibatch by minibatch.

    What they are means over are values of all layers, row by row: samples of the even ones, means of the odd ones
    given these. Arrays are those of the parameters' library.
    """

    def init(self, stack: Model[StackFamily], base: Callable[[], IndependentUnits], rng: np.random.Generator) -> Any:
        """Return the state before the first minibatch: a named tuple of arrays; `base` tells the rates of the data."""

    def __call__(
        self, family: StackFamily, parts: StackParts, state: object, fields: list[Array], rng: np.random.Generator
    ) -> tuple[list[Array] | FreeMoments, Any]:
        """Return samples or moments and the next state, given the fields of the odd layers at the minibatch."""


class NoChains(NamedTuple):
    """The state of a phase that remembers nothing."""


class HiddenChains(NamedTuple):
    """Chains that go on, kept as values of the odd layers."""

    hidden: tuple[Array, ...]


@declared(frozen=True)
class _HiddenChainsGoOn:
    """Chains that are kept as hidden values from one minibatch to the next."""

    n_steps: int = whole(1, "Steps of each chain for each minibatch.", least=1)
    n_chains: int = whole(100, "Number of chains, whatever the size of the minibatches.", least=1)

    def __post_init__(self) -> None:
        check(self)

    def init(
        self, stack: Model[StackFamily], base: Callable[[], IndependentUnits], rng: np.random.Generator
    ) -> HiddenChains:
        """Start from the biases alone, which the start of a fit sets to the means of the data."""
        family, parts = stack.family, stack.parts
        fields = [np.tile(parts.biases[place], (self.n_chains, 1)) for place in family.sides[0]]
        values = family.spread_side(0, _draws(family, 0, fields, rng))
        return HiddenChains(tuple(family.draw_side(parts, 1, values, rng)[1::2]))

    def advance(
        self, family: StackFamily, parts: StackParts, state: HiddenChains, rng: np.random.Generator
    ) -> tuple[list[Array], list[Array], HiddenChains]:
        """Return the values after the steps, the fields of their odd layers, and the chains."""
        values, fields = _gibbs(family, parts, state.hidden, self.n_steps, rng)
        return values, fields, HiddenChains(tuple(_draws(family, 1, fields, rng)))


@FREE_PHASES.register("cd", consistent=False)
@declared(frozen=True)
class RestartedBlockChains:
    """CD-k: chains that start at the rows of the minibatch and make `n_steps` steps.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learning.Minibatch(free_phase=gb.expectations.RestartedBlockChains(n_steps=3)).free_phase
    RestartedBlockChains(n_steps=3)
    """

    on_device: ClassVar[bool] = True

    n_steps: int = whole(1, "Steps of each chain.", least=1)

    def __post_init__(self) -> None:
        check(self)

    def init(
        self, stack: Model[StackFamily], base: Callable[[], IndependentUnits], rng: np.random.Generator
    ) -> NoChains:
        """Nothing is remembered."""
        return NoChains()

    def __call__(
        self, family: StackFamily, parts: StackParts, state: NoChains, fields: list[Array], rng: np.random.Generator
    ) -> tuple[list[Array], NoChains]:
        """Run the chains of one minibatch."""
        values, fields = _gibbs(family, parts, _draws(family, 1, fields, rng), self.n_steps, rng)
        return _with_means(family, values, fields), state


@FREE_PHASES.register("pcd")
@declared(frozen=True)
class PersistentBlockChains(_HiddenChainsGoOn):
    """PCD-k: `n_chains` chains that make `n_steps` steps at every minibatch.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learning.Minibatch(free_phase=gb.expectations.PersistentBlockChains(n_chains=20)).free_phase
    PersistentBlockChains(n_steps=1, n_chains=20)
    """

    on_device: ClassVar[bool] = True

    def __call__(
        self, family: StackFamily, parts: StackParts, state: HiddenChains, fields: list[Array], rng: np.random.Generator
    ) -> tuple[list[Array], HiddenChains]:
        """Go on with the chains."""
        values, fields, state = self.advance(family, parts, state, rng)
        return _with_means(family, values, fields), state


@FREE_PHASES.register("smci")
@declared(frozen=True)
class SpatialBlockChains(_HiddenChainsGoOn):
    """Persistent chains whose moments are taken by spatial Monte Carlo integration.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learning.Minibatch(free_phase=gb.expectations.SpatialBlockChains(region="pair")).free_phase.region
    'pair'
    """

    region: str = choice("layer", "What is summed exactly around a visible and a hidden unit.", *REGIONS)

    def __call__(
        self, family: StackFamily, parts: StackParts, state: HiddenChains, fields: list[Array], rng: np.random.Generator
    ) -> tuple[FreeMoments, HiddenChains]:
        """Go on with the chains and integrate around their states."""
        drawn, _, state = self.advance(family, parts, state, rng)
        return spatial_moments(family, parts, np.hstack(drawn[0::2]), np.hstack(state.hidden), self.region), state


class TemperedChains(NamedTuple):
    """The chains, values of the even layers side by side, and the fields at the beginning of their path."""

    chains: TemperedState
    base: tuple[Array, ...]


@FREE_PHASES.register("tempering")
@declared(frozen=True)
class TemperedBlockChains:
    """Chains that go on at the machine's own temperature, each with copies at higher ones to exchange states with.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learning.Minibatch(free_phase=gb.expectations.TemperedBlockChains(betas=4)).free_phase.n_chains
    100
    """

    on_device: ClassVar[bool] = True

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

    def init(
        self, stack: Model[StackFamily], base: Callable[[], IndependentUnits], rng: np.random.Generator
    ) -> TemperedChains:
        """Start all copies at independent units with the base rates of the data."""
        fields = base().fields
        chains = Tempering(self.betas).init(_path(stack.family, stack.parts, fields), self.n_chains, rng)
        return TemperedChains(chains, fields)

    def __call__(
        self,
        family: StackFamily,
        parts: StackParts,
        state: TemperedChains,
        fields: list[Array],
        rng: np.random.Generator,
    ) -> tuple[list[Array], TemperedChains]:
        """Go on with the chains; the samples are those at the machine's own temperature."""
        there = twin("layer_programs")
        if there is None:
            path = _path(family, parts, state.base)
            chains, _ = Tempering(self.betas).step(path, state.chains, rng, self.n_steps)
        else:
            path = PathUnits(family, parts, state.base, 0)
            chains = there.tempered(path, self.ladder, state.chains, self.n_steps, rng)
        coldest = family.spread_side(0, path.split(chains.values[-1], 0))
        return family.means_of_side(parts, 1, coldest), state._replace(chains=chains)


def _path(family: StackFamily, parts: StackParts, base: tuple[Array, ...]) -> PathUnits:
    """Return the path from independent units that all steps share, in float64."""
    return PathUnits(family, StackParts(*([np.asarray(part, np.float64) for part in some] for some in parts)), base, 0)


def as_free_phase(phase: str | FreePhase, **settings: object) -> FreePhase:
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
    family: StackFamily,
    parts: StackParts,
    values: np.ndarray,
    hidden: np.ndarray | None = None,
    region: str = "layer",
) -> FreeMoments:
    """Return moments by spatial Monte Carlo integration over samples.

    Parameters
    ----------
    family, parts : StackFamily and StackParts
        A machine; where the even layers are of one two-valued kind, and the odd ones too, sums are compiled.
    values : ndarray of shape (n_samples, width)
        Visible values; of a deep machine those of the even layers side by side.
    hidden : ndarray of shape (n_samples, width), optional
        Hidden values, or those of the odd layers side by side, which the region ``"pair"`` needs.
    region : {"layer", "pair"}
        What is summed exactly around two units of neighbouring layers: the pair alone (1-SMCI, YU20 eq. 15), or the
        unit of the even layer with all odd layers, analytically; the larger never has the larger variance (YU20
        theorem 2).
    """
    if region not in REGIONS:
        raise ArgumentError("is not known", "use 'pair' or 'layer'", argument="region", value=region)
    ends = [spans(family.layers[place].width for place in side) for side in family.sides]
    given = family.spread_side(0, [values[:, at] for at in ends[0]])
    odd = [family.means(parts, place, given) for place in family.sides[1]]
    if hidden is not None:
        for place, at in zip(family.sides[1], ends[1], strict=True):
            given[place] = hidden[:, at]
    folded = _folded(family, parts, ends)
    if region == "pair":
        if hidden is None:
            reason = "needs the hidden values of the samples"
            raise ArgumentError(reason, "give `hidden=`", argument="region", value="pair")
        even = [family.means(parts, place, given).mean(axis=0) for place in family.sides[0]]
        if folded is None:
            products = pair_products(family, parts, given)
        else:
            products = _unfolded(FlipSums(*folded, values).pair_products(hidden), family, ends)
    elif folded is None:
        even, products = layer_products(family, parts, given)
    else:
        flat, every = FlipSums(*folded, values).layer_moments()
        even, products = [flat[at] for at in ends[0]], _unfolded(every, family, ends)
    firsts = family.spread_side(0, even)
    firsts[1::2] = [means.mean(axis=0) for means in odd]
    return FreeMoments(firsts, products)


def _folded(
    family: StackFamily, parts: StackParts, ends: Sequence[Sequence[slice]]
) -> tuple[StackFamily, StackParts] | None:
    """Return the machine of two layers that has the even and the odd layers, where each side is of one kind."""
    if not is_two_valued(family):
        return None
    if len(family.layers) == 2:
        return family, parts
    sides = [[family.layers[place] for place in side] for side in family.sides]
    if any(len({layer.kind for layer in side}) > 1 for side in sides):
        return None
    units: list[Any] = [as_units(side[0].kind, sum(layer.n_units for layer in side)) for side in sides]
    weights = np.zeros([layer.width for layer in units], parts.weights[0].dtype)
    for block, matrix in zip(_unfolded(weights, family, ends), parts.weights, strict=True):
        block[:] = matrix
    biases = [np.concatenate([parts.biases[place] for place in side]) for side in family.sides]
    return StackFamily(tuple(units)), StackParts(biases, [weights])


def _unfolded(matrix: np.ndarray, family: StackFamily, ends: Sequence[Sequence[slice]]) -> list[np.ndarray]:
    """Return the parts of a matrix, of even by odd layers, that are between neighbours: views."""
    at = [ends[place % 2][place // 2] for place in range(len(family.layers))]
    pairs = enumerate(pairwise(at))
    return [matrix[upper, lower].T if place % 2 else matrix[lower, upper] for place, (lower, upper) in pairs]


def _draws(family: StackFamily, side: int, fields: list[Array], rng: np.random.Generator) -> list[Array]:
    """Draw the layers of a side whose fields are known."""
    return [family.layers[at].draw(own, rng) for at, own in zip(family.sides[side], fields, strict=True)]


def _with_means(family: StackFamily, values: list[Array], fields: list[Array]) -> list[Array]:
    """Return values of the even layers with the means of the odd ones, whose fields are known."""
    means = list(values)
    for place, own in zip(family.sides[1], fields, strict=True):
        means[place] = family.layers[place].means(own)
    return means


def _gibbs(
    family: StackFamily, parts: StackParts, hidden: Any, n_steps: int, rng: Any
) -> tuple[list[Array], list[Array]]:
    """Draw even layers, then odd ones, in turn; return the last values of the even ones, and the odd ones' fields."""
    values = family.draw_side(parts, 0, family.spread_side(1, hidden), rng)
    for _ in range(n_steps - 1):
        values = family.draw_side(parts, 0, family.draw_side(parts, 1, values, rng), rng)
    return values, [family.fields(parts, place, values) for place in family.sides[1]]
