"""Negative phases of machines of layers: a source of samples, and what is summed exactly around each of them.

CD-k starts its chains at the minibatch every time (Hinton 2002), PCD-k goes on where it stopped (Tieleman 2008), with
replicas at higher temperatures where plain chains get stuck. Around each sample the odd layers are summed out, or, by
spatial Monte Carlo integration (YU20 eq. 8, whose conclusion proposes it for restricted machines), a unit or a pair of
units too. Arrays are those of the parameters' library, NumPy or PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from gibbsian.arrays import Floats, Integers, Slice, Tensor
from gibbsian.backends.device import twin
from gibbsian.errors import ArgumentError
from gibbsian.expectations.layer_regions import layer_products, pair_products
from gibbsian.inference.layer_flips import FlipSums, is_two_valued
from gibbsian.models.base import Model, StackParts
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import as_units
from gibbsian.registry import Registry
from gibbsian.resources import spans
from gibbsian.sampling.layer_paths import PathUnits
from gibbsian.settings import check, check_whole_number, choice, declared, free, positional, whole

NEGATIVE_PHASES = Registry("negative_phase", "gibbsian.expectations", "NEGATIVE_PHASES")
REGIONS = ("hidden", "layer", "pair")

S = TypeVar("S")


class LayerMoments(NamedTuple):
    """Means of the columns of all layers, and of products of neighbours, under the model; not centred."""

    firsts: list[Floats]
    products: list[Floats]


class LayerPoint(NamedTuple):
    """A machine, and the fields of its odd layers given the rows of a minibatch."""

    family: StackFamily
    parts: StackParts
    clamped: Sequence[Tensor]


# Values of all layers, row by row, over which the moments are means, or the moments themselves.
Found: TypeAlias = list[Tensor] | LayerMoments


@runtime_checkable
class LayerExpectation(Protocol[S]):
    """How the moments of a stack under the model are taken, minibatch by minibatch."""

    def init(self, stack: Model[StackFamily], base: Sequence[Floats], rng: np.random.Generator) -> S:
        """Return the state before the first minibatch: a named tuple of arrays.

        Independent units with the fields `base` have the base rates of the data.
        """

    def __call__(self, at: LayerPoint, state: S, rng: np.random.Generator) -> tuple[Found, S]:
        """Return samples or moments, and the next state."""

    def n_samples(self, batch_size: int) -> int:
        """Return the number of rows that are in memory together."""

    @property
    def capturable(self) -> bool:
        """Whether its calls can be captured on a device."""


# -- sources ----------------------------------------------------------------------------------------------------------
class LayerSamples(NamedTuple):
    """Values of the even layers at their places, the fields of the odd ones, and draws of these where there are any."""

    values: list[Tensor]
    fields: list[Tensor]
    odd: tuple[Tensor, ...]


class LayerSource(Protocol[S]):
    """Where samples of a stack come from."""

    def init(self, stack: Model[StackFamily], base: Sequence[Floats], rng: np.random.Generator) -> S:
        """Return the state before the first minibatch."""

    def advance(self, at: LayerPoint, state: S, rng: np.random.Generator) -> tuple[LayerSamples, S]:
        """Return samples and the next state."""

    def n_samples(self, batch_size: int) -> int:
        """Return the number of rows that are in memory together."""


class NoChains(NamedTuple):
    """The state of a source that remembers nothing."""


class HiddenChains(NamedTuple):
    """Persistent chains, kept as values of the odd layers."""

    hidden: tuple[Tensor, ...]


class ReplicaState(NamedTuple):
    """Replicas of all temperatures and chains, values of the even layers side by side; their path begins at `base`."""

    values: Floats
    n_steps: Integers
    base: tuple[Tensor, ...]


@declared(frozen=True)
class RestartedBlockChains:
    """Chains that start at the rows of the minibatch and make `n_steps` steps (the k of CD-k).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.expectations.RestartedBlockChains(n_steps=3)
    RestartedBlockChains(n_steps=3)
    """

    n_steps: int = whole(1, "Steps of each chain.", least=1)

    def __post_init__(self) -> None:
        check(self)

    def init(self, stack: Model[StackFamily], base: Sequence[Floats], rng: np.random.Generator) -> NoChains:
        """Nothing is remembered."""
        return NoChains()

    def advance(self, at: LayerPoint, state: NoChains, rng: np.random.Generator) -> tuple[LayerSamples, NoChains]:
        """Run the chains of one minibatch."""
        values, fields = _gibbs(at, _draws(at.family, 1, at.clamped, rng), self.n_steps, rng)
        return LayerSamples(values, fields, ()), state

    def n_samples(self, batch_size: int) -> int:
        """Return a chain for each row."""
        return batch_size


@declared(frozen=True)
class PersistentBlockChains:
    """Chains that continue from minibatch to minibatch, `n_steps` steps each time.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.expectations.PersistentBlockChains(n_chains=20)
    PersistentBlockChains(n_steps=1, n_chains=20)
    """

    n_steps: int = whole(1, "Steps of each chain for each minibatch.", least=1)
    n_chains: int = whole(100, "Number of chains, whatever the size of the minibatches.", least=1)

    def __post_init__(self) -> None:
        check(self)

    def init(self, stack: Model[StackFamily], base: Sequence[Floats], rng: np.random.Generator) -> HiddenChains:
        """Start from the biases alone, which the start of a fit sets to the means of the data."""
        family, parts = stack.family, stack.parts
        fields = [np.tile(parts.biases[place], (self.n_chains, 1)) for place in family.sides[0]]
        values = family.spread_side(0, _draws(family, 0, fields, rng))
        return HiddenChains(tuple(family.draw_side(parts, 1, values, rng)[1::2]))

    def advance(
        self, at: LayerPoint, state: HiddenChains, rng: np.random.Generator
    ) -> tuple[LayerSamples, HiddenChains]:
        """Continue the chains."""
        values, fields = _gibbs(at, state.hidden, self.n_steps, rng)
        odd = tuple(_draws(at.family, 1, fields, rng))
        return LayerSamples(values, fields, odd), HiddenChains(odd)

    def n_samples(self, batch_size: int) -> int:
        """Return the number of chains."""
        return self.n_chains


@declared(frozen=True)
class TemperedBlockChains:
    """Persistent chains, each with replicas at higher temperatures to exchange states with.

    Desjardins, Courville, Bengio, Vincent and Delalleau (2010); Cho, Raiko and Ilin (2010).

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.expectations.TemperedBlockChains(betas=4).n_chains
    100
    """

    n_steps: int = whole(1, "Steps of each chain for each minibatch.", least=1)
    n_chains: int = whole(100, "Chains at the machine's own temperature.", least=1)
    betas: int | Floats = free(
        10, "Number of inverse temperatures, evenly from 0 to 1, or these themselves.", doc="int or array"
    )

    def __post_init__(self) -> None:
        check(self)
        if not np.ndim(self.betas):
            check_whole_number("betas", self.betas, least=2)
        ladder = self.ladder
        if ladder.ndim != 1 or ladder.size < 2 or ladder[0] < 0 or ladder[-1] != 1 or (np.diff(ladder) <= 0).any():
            raise ArgumentError("betas must rise, from 0 or more, to 1", "give their number, or all of them")

    @property
    def ladder(self) -> Floats:
        """The inverse temperatures."""
        betas = np.asarray(self.betas, dtype=np.float64)
        return betas if betas.ndim else np.linspace(0.0, 1.0, int(betas))

    def init(self, stack: Model[StackFamily], base: Sequence[Floats], rng: np.random.Generator) -> ReplicaState:
        """Start all replicas at independent units with the base rates of the data."""
        family, shape = stack.family, (len(self.ladder), self.n_chains)
        fields = [np.tile(base[place], (shape[0] * shape[1], 1)) for place in family.sides[0]]
        values = np.hstack(_draws(family, 0, fields, rng)).reshape(*shape, -1)
        return ReplicaState(values, np.zeros(1, np.int64), tuple(base))

    def advance(
        self, at: LayerPoint, state: ReplicaState, rng: np.random.Generator
    ) -> tuple[LayerSamples, ReplicaState]:
        """Continue the chains; the samples are those at the machine's own temperature."""
        (family, parts, _), there = at, twin("layer_programs")
        exchanged, doubles = exchange_replicas, parts
        if there is not None:
            exchanged = there.exchange_replicas
        else:
            doubles = StackParts(*([np.asarray(part, np.float64) for part in some] for some in parts))
        path = PathUnits(family, doubles, state.base, 0)
        number, replicas = state.n_steps, state.values.reshape(-1, *state.values.shape[2:])
        for _ in range(self.n_steps):
            replicas = exchanged(path, replicas, self.ladder, number, rng)
            number = number + 1
        replicas = replicas.reshape(state.values.shape)
        values = family.spread_side(0, path.split(replicas[-1], 0))
        fields = [family.fields(parts, place, values) for place in family.sides[1]]
        return LayerSamples(values, fields, ()), ReplicaState(replicas, number, state.base)

    def n_samples(self, batch_size: int) -> int:
        """Return the number of replicas."""
        return self.n_chains * len(self.ladder)


def exchange_replicas(
    path: PathUnits, replicas: Floats, ladder: Floats, number: Integers, rng: np.random.Generator
) -> Floats:
    """Move the replicas of all temperatures, rows of one matrix, and let neighbours exchange states in turn."""
    n_betas, n_chains = len(ladder), len(replicas) // len(ladder)
    own, down, up = (
        np.repeat(ladder[(np.arange(n_betas) + step).clip(0, n_betas - 1)], n_chains)[:, None] for step in (0, -1, 1)
    )
    replicas = path.step(path.features(replicas), own, rng)
    features = path.features(replicas)
    here = path.log_weights(replicas, features, own)
    lower, upper = ((path.log_weights(replicas, features, at) - here).reshape(n_betas, -1) for at in (down, up))
    turn = (np.arange(n_betas - 1)[:, None] + number) % 2 == 0
    taken = (np.log(rng.random((n_betas - 1, n_chains))) < upper[:-1] + lower[1:]) & turn
    rows = np.arange(len(replicas)).reshape(n_betas, n_chains)
    rows[:-1] += n_chains * taken
    rows[1:] -= n_chains * taken
    return replicas[rows.ravel()]


def _gibbs(
    at: LayerPoint, hidden: Sequence[Tensor], n_steps: int, rng: np.random.Generator
) -> tuple[list[Tensor], list[Tensor]]:
    """Draw even layers, then odd ones, in turn; return the last values of the even ones, and the odd ones' fields."""
    family, parts, _ = at
    values = family.draw_side(parts, 0, family.spread_side(1, hidden), rng)
    for _ in range(n_steps - 1):
        values = family.draw_side(parts, 0, family.draw_side(parts, 1, values, rng), rng)
    return values, [family.fields(parts, place, values) for place in family.sides[1]]


def _draws(family: StackFamily, side: int, fields: Sequence[Tensor], rng: np.random.Generator) -> list[Tensor]:
    """Draw the layers of a side whose fields are known."""
    return [family.layers[at].draw(own, rng) for at, own in zip(family.sides[side], fields, strict=True)]


# -- a source and a region --------------------------------------------------------------------------------------------
@declared(frozen=True)
class SampledLayers(Generic[S]):
    """Moments over the samples of a source, with a region around each unit summed exactly.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations import PersistentBlockChains, SampledLayers
    >>> gb.learning.Minibatch(negative_phase=SampledLayers(PersistentBlockChains(n_chains=20), "pair")).negative_phase
    SampledLayers(source=PersistentBlockChains(n_steps=1, n_chains=20), region='pair')
    """

    source: LayerSource[S] = positional(
        kw_only=False, default=free(PersistentBlockChains(), "Where samples come from.", doc="LayerSource")
    )
    region: str = positional(
        kw_only=False,
        default=choice(
            "hidden",
            "What is summed exactly: the odd layers given the even ones of each sample ('hidden'), two units of "
            "neighbouring layers ('pair', 1-SMCI), or a unit of an even layer with all odd layers ('layer').",
            *REGIONS,
        ),
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, stack: Model[StackFamily], base: Sequence[Floats], rng: np.random.Generator) -> S:
        """Return the state of the source."""
        return self.source.init(stack, base, rng)

    def __call__(self, at: LayerPoint, state: S, rng: np.random.Generator) -> tuple[Found, S]:
        """Return values of all layers, or moments by spatial Monte Carlo integration."""
        family, (values, fields, odd), state = at.family, *self.source.advance(at, state, rng)
        if self.region == "hidden":
            means = list(values)
            for place, own in zip(family.sides[1], fields, strict=True):
                means[place] = family.layers[place].means(own)
            return means, state
        if self.region == "pair" and not odd:
            odd = tuple(_draws(family, 1, fields, rng))
        hidden = np.hstack(odd) if odd else None
        return spatial_moments(family, at.parts, np.hstack(values[0::2]), hidden, self.region), state

    def n_samples(self, batch_size: int) -> int:
        """Return the number of rows that are in memory together."""
        return self.source.n_samples(batch_size)

    @property
    def capturable(self) -> bool:
        """Whether its calls can be captured on a device, as those with plain samples can."""
        return self.region == "hidden"


@NEGATIVE_PHASES.register("cd", consistent=False)
def cd(n_steps: int = 1) -> SampledLayers[NoChains]:
    """CD-k."""
    return SampledLayers(RestartedBlockChains(n_steps=n_steps))


@NEGATIVE_PHASES.register("pcd")
def pcd(n_steps: int = 1, n_chains: int = 100) -> SampledLayers[HiddenChains]:
    """PCD-k."""
    return SampledLayers(PersistentBlockChains(n_steps=n_steps, n_chains=n_chains))


@NEGATIVE_PHASES.register("smci")
def smci(n_steps: int = 1, n_chains: int = 100, region: str = "layer") -> SampledLayers[HiddenChains]:
    """PCD-k with spatial Monte Carlo integration."""
    return SampledLayers(PersistentBlockChains(n_steps=n_steps, n_chains=n_chains), region)


@NEGATIVE_PHASES.register("tempering")
def tempering(n_steps: int = 1, n_chains: int = 100, betas: int | Floats = 10) -> SampledLayers[ReplicaState]:
    """Parallel tempering."""
    return SampledLayers(TemperedBlockChains(n_steps=n_steps, n_chains=n_chains, betas=betas))


def as_negative_phase(phase: str | LayerExpectation[object], **settings: int | None) -> LayerExpectation[object]:
    """Turn a registered name with settings, or an object that brings its own, into a negative phase."""
    given: dict[str, object] = {name: value for name, value in settings.items() if value is not None}
    if isinstance(phase, str):
        created: LayerExpectation[object] = NEGATIVE_PHASES.create(phase, **given)
        return created
    if not isinstance(phase, LayerExpectation) or isinstance(phase, type):
        raise ArgumentError(
            f"must be one of {', '.join(NEGATIVE_PHASES)} or an expectation", argument="negative_phase", value=phase
        )
    if given:
        raise ArgumentError(f"{', '.join(given)}", "an expectation brings its own settings, so give them there")
    return phase


# -- spatial Monte Carlo integration ----------------------------------------------------------------------------------
def spatial_moments(
    family: StackFamily,
    parts: StackParts,
    values: Floats,
    hidden: Floats | None = None,
    region: str = "layer",
) -> LayerMoments:
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
    if region not in REGIONS[1:]:
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
    return LayerMoments(firsts, products)


def _folded(
    family: StackFamily, parts: StackParts, ends: Sequence[Sequence[Slice]]
) -> tuple[StackFamily, StackParts] | None:
    """Return the machine of two layers that has the even and the odd layers, where each side is of one kind."""
    if not is_two_valued(family):
        return None
    if len(family.layers) == 2:
        return family, parts
    sides = [[family.layers[place] for place in side] for side in family.sides]
    if any(len({layer.kind for layer in side}) > 1 for side in sides):
        return None
    units = [as_units(side[0].kind, sum(layer.n_units for layer in side)) for side in sides]
    weights = np.zeros([layer.width for layer in units], parts.weights[0].dtype)
    for block, matrix in zip(_unfolded(weights, family, ends), parts.weights, strict=True):
        block[:] = matrix
    biases = [np.concatenate([parts.biases[place] for place in side]) for side in family.sides]
    return StackFamily(tuple(units)), StackParts(biases, [weights])


def _unfolded(matrix: Floats, family: StackFamily, ends: Sequence[Sequence[Slice]]) -> list[Floats]:
    """Return the parts of a matrix, of even by odd layers, that are between neighbours: views."""
    at = [ends[place % 2][place // 2] for place in range(len(family.layers))]
    pairs = enumerate(pairwise(at))
    return [matrix[upper, lower].T if place % 2 else matrix[lower, upper] for place, (lower, upper) in pairs]
