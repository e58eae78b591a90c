"""Where the samples of an expectation come from: the data, chains that restart at them or go on, walkers, ladders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from gibbsian.arrays import Floats, Integers, States
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError, MixingWarning, notify
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import NoSamples, Starts
from gibbsian.expectations.error_rules import (
    ErrorOfChanges,
    ErrorRule,
    bernoulli_error,
    floored_spread,
    spread_of_groups,
)
from gibbsian.expectations.imputation import column_frequencies, fill_cells
from gibbsian.expectations.mixing import MixingCheck
from gibbsian.expectations.rows import MaskedRows
from gibbsian.expectations.samples import Samples
from gibbsian.models.base import ExponentialFamily, Model
from gibbsian.models.variables import Variables
from gibbsian.resources import require_memory
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, Chains, Kernel, ReplicaLadder, Transition, kernel_for, variable_path
from gibbsian.sampling.paths import check_base
from gibbsian.settings import check, declared, flag, free, whole

S = TypeVar("S")
# Chains where no number is given: of the free expectation; of one copy of the rows, at most.
N_CHAINS, MAX_CHAINS = 500, 10_000
# Sweeps over missing cells, which start at values drawn from their columns, before the first call.
BURN_IN = 10
# Chains that start at rows of a cluster, at most.
MAX_OF_A_CLUSTER = 10_000
SAMPLER = "Scan order: 'gibbs' (in the order of the variables), 'random-scan', 'chromatic', or a transition."


class Drawn(NamedTuple):
    """What a source gives in one call.

    Parameters
    ----------
    samples : Samples
        Complete states with what they count for.
    rule : ErrorRule
        How their plain mean gets its standard errors.
    parts : mapping
        What else is known, for the parts of the estimate.
    row_of : ndarray of int or None
        The row with missing cells that each sample completes; None of the free expectation.
    """

    samples: Samples
    rule: ErrorRule
    parts: Mapping[str, object] = {}
    row_of: Integers | None = None


class BoundSource(Protocol[S]):
    """A source bound to a family and rows."""

    def init(self, theta: Floats, key: Key) -> S:
        """Return the state before the first call."""

    def advance(self, theta: Floats, state: S, starts: Starts | None = None) -> tuple[Drawn, S]:
        """Return samples at theta, and the next state."""

    def samples(self, state: S, copy: int | None = None) -> Samples | None:
        """Return the complete states where the state stands; None if it holds none."""


class SampleSource(Protocol[S]):
    """Settings of where samples come from."""

    # whether rows with missing cells are sampled one by one, each by a free source of its conditional distribution
    row_by_row: ClassVar[bool]
    # whether every call begins at complete rows
    needs_starts: ClassVar[bool]

    def bind(self, model: Model[ExponentialFamily], rows: MaskedRows, starts: Starts | None) -> BoundSource[S]:
        """Return the source of a family and rows."""


@runtime_checkable
class Resizable(Protocol):
    """A source whose number of samples can be chosen."""

    def with_samples(self, n_samples: int) -> Self:
        """Return the source with about so many samples in a call."""


def n_starts(starts: Starts) -> int:
    """Return the number of rows that starts stand for."""
    return starts.n_rows if isinstance(starts, Rows) else int(starts.n_independent)


def drawn_starts(starts: Starts, n: int, rng: np.random.Generator) -> States:
    """Draw states from starts by weight."""
    if isinstance(starts, Rows):
        return starts.sample(n, rng).rows()[0]
    return starts.states[rng.choice(starts.n_samples, n, p=starts.shares)]


def spread(shares: Floats, n_chains: int) -> tuple[Integers, Floats]:
    """Give rows their parts of the chains, rounded up: return the row of each chain and its share of the weight."""
    # a hair is taken off so that a whole number of chains is not rounded up to the next
    copies = np.ceil(n_chains * shares / shares.sum() * (1 - 1e-12)).astype(np.int64)
    row_of = np.repeat(np.arange(len(shares)), copies)
    return row_of, (shares / np.maximum(copies, 1))[row_of]


def spread_over_starts(starts: Starts, n_chains: int) -> tuple[States, Floats]:
    """Return the states at which about as many chains start, and the share of the weight of each."""
    samples = Samples.of(starts)
    row_of, shares = spread(samples.shares, n_chains)
    return samples.states[row_of], shares


def require_chains(n_chains: int, n_variables: int) -> None:
    """Refuse more chains than the memory holds."""
    # states as int8 and as float64 with their fields, and the streams
    needed = n_chains * (20.0 * n_variables + 64.0)
    require_memory(needed, f"running {n_chains} chains of {n_variables} variables", "lower `n_chains`")


def refuse_clamped(rows: MaskedRows, source: str) -> None:
    """Refuse a source of complete states where cells of rows are held."""
    if not rows.all_missing:
        raise ArgumentError(f"{source} has no form that holds the present cells of rows", "use 'pcd' or 'exact'")


# -- the data themselves -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class FixedSamples:
    """Samples that stay: those given, or the starts that are bound, which are the data (Y18; "fix" in YU20).

    Parameters
    ----------
    samples : Samples, Rows, ndarray or None
        The samples; None takes the starts.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> rows = gb.expectations.FixedSamples(np.array([[1, 1], [1, 0]]))
    >>> estimate, _ = gb.expectations.Sampled(rows, region=1).bind(model)(model.theta, ())
    >>> estimate.value.round(4).tolist()
    [0.0, 0.4621, 0.4621]
    """

    row_by_row: ClassVar[bool] = False
    needs_starts: ClassVar[bool] = True

    samples: Samples | Rows | States | None = None

    def bind(self, model: Model[ExponentialFamily], rows: MaskedRows, starts: Starts | None) -> BoundSamples:
        """Take the samples; none may still come with each call."""
        given = starts if self.samples is None else self.samples
        refuse_clamped(rows, "a fixed sample")
        bound = None if given is None else Samples.of(given)
        if bound is not None:
            bound.check(model)
        return BoundSamples(bound, self.samples is None)


@dataclass(frozen=True, eq=False)
class BoundSamples:
    """Fixed samples of a family; starts of a call take their place where they are the data's."""

    fixed: Samples | None
    replaceable: bool

    def init(self, theta: Floats, key: Key) -> tuple[()]:
        """Return the state, which is empty."""
        return ()

    def advance(self, theta: Floats, state: tuple[()], starts: Starts | None = None) -> tuple[Drawn, tuple[()]]:
        """Return the samples."""
        given = starts if starts is not None and self.replaceable else self.fixed
        if given is None:
            raise ArgumentError("a fixed sample needs the samples", "give them as `starts=`")
        return Drawn(Samples.of(given), spread_of_groups), state

    def samples(self, state: tuple[()], copy: int | None = None) -> Samples | None:
        """Return the samples."""
        return self.fixed


# -- chains that restart -----------------------------------------------------------------------------------------------
@declared(frozen=True)
class RestartedChains:
    """Chains that start at the data in every call and run for a few sweeps: CD-k (Hinton 2002).

    Every distinct state of the data starts as many chains as its weight asks for, and at least one; they share its
    weight. So the starts have exactly the data's statistics, and the only noise is that of the sweeps. The standard
    error is a bound on it, from how the changes of the chains scatter: too large by the square root of two at most
    where the model fits the data, by more where it does not.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.2])
    >>> chains = gb.expectations.RestartedChains(n_steps=10, n_chains=10_000)
    >>> bound = gb.expectations.Sampled(chains).bind(model, starts=data)
    >>> estimate, _ = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.2)) < 0.05)
    True
    """

    row_by_row: ClassVar[bool] = False
    needs_starts: ClassVar[bool] = True

    n_steps: int = whole(1, "Sweeps from the data, the k of CD-k.", least=1)
    sampler: str | Transition = free("gibbs", SAMPLER, doc="str or Transition")
    n_chains: int | None = whole(
        None, "About how many chains; by default as many as the data has rows.", least=2, optional=True
    )
    n_updates: int | None = whole(
        None,
        "Updates of single variables in place of sweeps: one is the step of H06 section 5.",
        least=1,
        optional=True,
    )

    def __post_init__(self) -> None:
        check(self)

    def bind(self, model: Model[ExponentialFamily], rows: MaskedRows, starts: Starts | None) -> BoundRestarts:
        """Bind the family; starts may still come with each call."""
        refuse_clamped(rows, "contrastive divergence")
        return BoundRestarts(self, kernel_for(model.family, self.sampler), starts)

    def with_samples(self, n_samples: int) -> RestartedChains:
        """Return the source with about so many chains."""
        return replace(self, n_chains=n_samples)


class Calls(NamedTuple):
    """What seeds the next call, and the number of calls so far: calls owe nothing to each other."""

    key: Key
    n_calls: int = 0

    def take(self) -> tuple[Key, Calls]:
        """Return the key of this call, and the next state."""
        return self.key.fold(self.n_calls), self._replace(n_calls=self.n_calls + 1)


@dataclass(frozen=True, eq=False)
class BoundRestarts(NoSamples):
    """Chains that restart: the streams are those of the call, the states the data's."""

    settings: RestartedChains
    kernel: Kernel
    starts: Starts | None

    def init(self, theta: Floats, key: Key) -> Calls:
        """Return what seeds the chains."""
        return Calls(key)

    def advance(self, theta: Floats, state: Calls, starts: Starts | None = None) -> tuple[Drawn, Calls]:
        """Run chains from the data."""
        own = self.starts if starts is None else starts
        if own is None:
            raise ArgumentError("contrastive divergence needs rows to start at", "give them as `starts=`, or use 'pcd'")
        settings, (key, state) = self.settings, state.take()
        states, shares, rule = self._bound if starts is None else self._placed(own)
        chains = Chains(states, key.chains(len(states)))
        ends, _ = self.kernel.step(theta, chains, settings.n_steps, settings.n_updates)
        return Drawn(Samples(ends.states, shares), rule), state

    def _placed(self, starts: Starts) -> tuple[States, Floats, ErrorOfChanges]:
        states, shares = spread_over_starts(starts, self.settings.n_chains or n_starts(starts))
        require_chains(*states.shape)
        return states, shares, ErrorOfChanges(states)

    @cached_property
    def _bound(self) -> tuple[States, Floats, ErrorOfChanges]:
        assert self.starts is not None
        return self._placed(self.starts)


# -- chains that go on -------------------------------------------------------------------------------------------------
@declared(frozen=True)
class PersistentChains:
    """Chains that go on from one call to the next while theta changes under them: PCD (Tieleman 2008), long runs.

    The chains start at rows of the data drawn by weight, at copies of all rows (YU20 Algorithm 2), or at uniformly
    random states if there are no data. Given rows, chains hold the present cells of a row and draw the missing ones, in
    several independent copies of the rows, whose spread gives the standard error.

    Chains read once in a call are independent draws, whose variance the means imply. Chains read more often give
    standard errors by the spread of their own means, whatever the autocorrelation within a chain.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> bound = gb.expectations.Sampled(gb.expectations.PersistentChains(n_chains=10_000, n_steps=20)).bind(model)
    >>> estimate, state = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> bool(abs(estimate.value[2] - np.tanh(0.5)) < 4 * estimate.stderr[2])
    True
    """

    row_by_row: ClassVar[bool] = False
    needs_starts: ClassVar[bool] = False

    n_chains: int | None = whole(
        None,
        "Number of independent chains, by default 500; given rows, about how many in each copy, at least one for each "
        "row with missing cells, and by default one for each, up to 10,000.",
        least=1,
        optional=True,
    )
    n_steps: int = whole(1, "Sweeps before each draw.", least=1)
    n_draws: int = whole(1, "Draws of each chain in each call.", least=1)
    burn_in: int | None = whole(
        None, "Further sweeps before the first draw; by default 10 over missing cells, else none.", optional=True
    )
    copies: int | None = whole(
        None,
        "Chains for each row of the data: e in YU20. Given rows, copies of them, by default 2.",
        least=1,
        optional=True,
    )
    data_first: bool = flag(
        False, "Whether the first call takes the data themselves for samples, before any sweep: YU20 Algorithm 2."
    )
    sampler: str | Transition = free("gibbs", SAMPLER, doc="str or Transition")
    mixing: MixingCheck | None = free(None, "How the mixing of the chains is checked.", doc="MixingCheck or None")

    def __post_init__(self) -> None:
        check(self)

    def bind(
        self, model: Model[ExponentialFamily], rows: MaskedRows, starts: Starts | None
    ) -> FreeChains | ClampedChains:
        """Bind the family, and the rows or the starts."""
        if rows.all_missing:
            return FreeChains(self, model.family, kernel_for(model.family, self.sampler), starts)
        return ClampedChains.of(self, model.family, rows)

    @property
    def n_copies(self) -> int:
        """Number of copies of rows with missing cells."""
        return self.copies or 2

    def with_samples(self, n_samples: int) -> PersistentChains:
        """Return the source with about so many draws in a call.

        As many chains as each has draws, but no more than its own number: many chains make the standard error reliable,
        many draws R-hat.
        """
        n_chains = int(np.clip(np.sqrt(n_samples), 2, max(2, self.n_chains or N_CHAINS)))
        return replace(self, n_chains=n_chains, n_draws=-(-n_samples // n_chains))

    def run(
        self, kernel: Kernel, theta: Floats, chains: Chains, burn_in: int, n_draws: int, between: int
    ) -> tuple[States, Chains]:
        """Run chains on and keep the states, some sweeps apart, that follow the burn-in, by chain."""
        n_chains, n = chains.states.shape
        require_memory(
            n_chains * (1.0 * n * n_draws + 8.0 * theta.size),
            f"keeping {n_chains * n_draws} draws of {n} variables",
            "lower `n_chains` or `n_draws`",
        )
        draws = np.empty((n_chains, n_draws, n), chains.states.dtype)
        if burn_in:
            chains, _ = kernel.step(theta, chains, burn_in)
        for t in range(n_draws):
            chains, _ = kernel.step(theta, chains, between)
            draws[:, t] = chains.states
        return draws, chains


class ChainsState(NamedTuple):
    """The chains, the share of each (None if they are all the same), and whether they have not moved yet."""

    chains: Chains
    shares: Floats | None
    fresh: bool


@dataclass(frozen=True, eq=False)
class FreeChains:
    """Chains of all variables."""

    settings: PersistentChains
    family: ExponentialFamily
    kernel: Kernel
    starts: Starts | None

    def init(self, theta: Floats, key: Key) -> ChainsState:
        """Start the chains."""
        settings, starts = self.settings, self.starts
        n_chains, states, shares = settings.n_chains or N_CHAINS, None, None
        if starts is not None and settings.copies is not None and isinstance(starts, Samples | Dataset):
            states, shares = spread_over_starts(starts, settings.copies * n_starts(starts))
            n_chains = len(states)
        elif starts is not None:
            if settings.copies is not None:  # as many chains as a cluster has rows would not travel
                n_chains = min(settings.copies * n_starts(starts), MAX_OF_A_CLUSTER)
            states = drawn_starts(starts, n_chains, key.fold("starts").generator())
        require_chains(n_chains, len(self.family.variables))
        return ChainsState(self.kernel.init(n_chains, key, states), shares, True)

    def advance(self, theta: Floats, state: ChainsState, starts: Starts | None = None) -> tuple[Drawn, ChainsState]:
        """Run the chains on; starts of a call are not used."""
        settings, (chains, shares, fresh) = self.settings, state
        if settings.n_draws == 1:
            if not (fresh and settings.data_first and self.starts is not None):
                burn_in = (settings.burn_in or 0) if fresh else 0
                chains, _ = self.kernel.step(theta, chains, burn_in + settings.n_steps)
            return Drawn(Samples(chains.states, shares), bernoulli_error), ChainsState(chains, shares, False)
        burn_in, early, mixing = (settings.burn_in or 0) if fresh else 0, None, settings.mixing
        between = 1 if mixing is None else mixing.between_looks
        if between > 1 and burn_in:
            n_looks = burn_in // (2 * between)
            early, chains = settings.run(self.kernel, theta, chains, burn_in - between * n_looks, n_looks, between)
            burn_in = 0
        draws, chains = settings.run(self.kernel, theta, chains, burn_in, settings.n_draws, settings.n_steps)
        parts: dict[str, float] = {}
        if mixing is not None and (fresh or between == 1):
            looks = draws[:, ::between] if early is None else np.concatenate([early, draws[:, ::between]], axis=1)
            remedy = f"raise `n_draws={settings.n_draws}` or `burn_in={settings.burn_in}`, or temper the chains"
            parts = mixing.parts(Model(self.family, theta), looks, remedy)
        return Drawn(Samples.of(draws), floored_spread, parts), ChainsState(chains, shares, False)

    def samples(self, state: ChainsState, copy: int | None = None) -> Samples:
        """Return where the chains stand."""
        return Samples(state.chains.states, state.shares)


@dataclass(frozen=True, eq=False)
class ClampedChains:
    """Chains of the missing cells of rows given the present ones: the row of each, and its share, in every copy."""

    settings: PersistentChains
    rows: MaskedRows
    variables: Variables
    row_of: Integers
    shares: Floats
    kernel: Kernel

    @classmethod
    def of(cls, settings: PersistentChains, family: ExponentialFamily, rows: MaskedRows) -> ClampedChains:
        """Give each row its part of the chains, and at least one."""
        copies, n_chains = settings.n_copies, settings.n_chains or min(rows.n_rows, MAX_CHAINS)
        row_of, shares = spread(rows.shares, n_chains)
        row_of, shares = np.tile(row_of, copies), np.tile(shares, copies)
        require_chains(len(row_of), len(family.variables))
        kernel = kernel_for(family, settings.sampler, ~rows.missing[row_of])
        return cls(settings, rows, family.variables, row_of, shares, kernel)

    def init(self, theta: Floats, key: Key) -> ChainsState:
        """Start the chains with missing cells drawn from their columns."""
        rows = self.rows
        assert rows.data is not None
        states, rng = rows.states[self.row_of], key.fold("cells").generator()
        frequencies = column_frequencies(rows.data)
        starts = fill_cells(states, rows.missing[self.row_of], frequencies, self.variables, rng)
        return ChainsState(self.kernel.init(len(starts), key, starts), None, True)

    def advance(self, theta: Floats, state: ChainsState, starts: Starts | None = None) -> tuple[Drawn, ChainsState]:
        """Run the chains on; starts of a call are not used."""
        settings, (chains, _, fresh) = self.settings, state
        burn_in = (BURN_IN if settings.burn_in is None else settings.burn_in) if fresh else 0
        draws, chains = settings.run(self.kernel, theta, chains, burn_in, settings.n_draws, settings.n_steps)
        n_chains, n_draws, n = draws.shape
        groups = np.repeat(np.arange(self.settings.n_copies), n_chains // self.settings.n_copies * n_draws)
        samples = Samples(draws.reshape(-1, n), np.repeat(self.shares, n_draws), groups)
        return Drawn(samples, spread_of_groups, {}, np.repeat(self.row_of, n_draws)), ChainsState(chains, None, False)

    def samples(self, state: ChainsState, copy: int | None = None) -> Samples:
        """Return the rows as one copy of the chains completes them, or as all copies, which share their weight."""
        each = len(self.row_of) // self.settings.n_copies
        some = slice(None) if copy is None else slice(copy * each, (copy + 1) * each)
        shares = self.shares[some] / (self.settings.n_copies if copy is None else 1)
        return self.rows.completed(state.chains.states[some], shares)


# -- walkers and ladders -----------------------------------------------------------------------------------------------
@declared(frozen=True)
class AnnealedWalkers:
    """Walkers of annealed importance sampling, with weights and an estimate of log Z (YU20 section 4.2).

    Every call sends out new walkers, which owe nothing to those before. Over a region their states are samples with
    weights: SMCI+AIS.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(2, 2), [0.2] * 4, [0.5] * 4)
    >>> walkers = gb.expectations.AnnealedWalkers(n_walkers=200, betas=100)
    >>> bound = gb.expectations.Sampled(walkers, region=1).bind(model)
    >>> estimate, _ = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> truth = gb.inference.exact(model).moments
    >>> bool((abs(estimate.value - truth) < 5 * estimate.stderr).all())
    True
    """

    row_by_row: ClassVar[bool] = True
    needs_starts: ClassVar[bool] = False

    n_walkers: int = whole(1000, "Independent walkers.", least=2)
    betas: int | Floats = free(
        1000,
        "Number of equal steps of the inverse temperature from 0 to 1, or the inverse temperatures themselves.",
        doc="int or array",
    )
    base: str | Dataset | Floats | None = free(
        None,
        "The independent variables to start from: 'biases', 'uniform', the base rates of data, or "
        "log-probabilities of all values; by default the base rates of the starts, else the model's biases.",
        doc="str, Dataset, ndarray or None",
    )
    warn: bool = flag(True, "Whether to warn when few walkers hold most of the weight.")

    def __post_init__(self) -> None:
        check(self)
        Annealing(self.n_walkers, self.betas)  # checks the inverse temperatures
        if self.base is not None:
            check_base(self.base)

    def bind(self, model: Model[ExponentialFamily], rows: MaskedRows, starts: Starts | None) -> BoundWalkers:
        """Bind the family; rows of data as starts give the base rates."""
        base = self.base
        if base is None:
            base = starts if isinstance(starts, Dataset) else "biases"
        return BoundWalkers(self, model.family, base)

    def with_samples(self, n_samples: int) -> AnnealedWalkers:
        """Return the source with so many walkers."""
        return replace(self, n_walkers=n_samples)


@dataclass(frozen=True, eq=False)
class BoundWalkers(NoSamples):
    """Walkers of a family; the state is what seeds the next call."""

    settings: AnnealedWalkers
    family: ExponentialFamily
    base: str | Dataset | Floats

    def init(self, theta: Floats, key: Key) -> Calls:
        """Return what seeds the walkers."""
        return Calls(key)

    def advance(self, theta: Floats, state: Calls, starts: Starts | None = None) -> tuple[Drawn, Calls]:
        """Send out walkers."""
        settings, model, (key, state) = self.settings, Model(self.family, theta), state.take()
        path = variable_path(model, self.base)
        run = Annealing(settings.n_walkers, settings.betas).forward(path, key.generator())
        if settings.warn and run.warning:
            notify(MixingWarning(run.warning, f"raise `betas={run.n_betas}` or `n_walkers=`"))
        parts = {
            "log_partition": Estimate(run.log_partition, run.log_partition_stderr),
            "effective_sample_size": run.effective_sample_size,
            "pareto_k": run.pareto_k,
        }
        return Drawn(Samples(run.states, run.weights), floored_spread, parts), state


@declared(frozen=True)
class TemperedReplicas:
    """Chains that exchange states with others at higher temperatures, where all modes are within reach.

    Standard errors come from the spread over independent columns of such chains, half of which start at random states
    and half at cold ones. Every call starts anew, and estimates log Z by the bridges between temperatures.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.expectations.Sampled(gb.expectations.TemperedReplicas(n_draws=100)).with_samples(1000).source.n_chains
    31
    """

    row_by_row: ClassVar[bool] = True
    needs_starts: ClassVar[bool] = False

    n_chains: int = whole(32, "Independent columns of chains.", least=2)
    n_draws: int = whole(500, "Rounds of each column; every one gives a draw.", least=2)
    mixing: MixingCheck = free(
        MixingCheck(max_r_hat=1.1), "How the mixing of the columns is checked.", doc="MixingCheck"
    )

    def __post_init__(self) -> None:
        check(self)

    def bind(self, model: Model[ExponentialFamily], rows: MaskedRows, starts: Starts | None) -> BoundLadder:
        """Bind the family."""
        return BoundLadder(self, model.family)

    def with_samples(self, n_samples: int) -> TemperedReplicas:
        """Return the source with about so many draws in a call."""
        n_chains = int(np.clip(np.sqrt(n_samples), 2, self.n_chains))
        return replace(self, n_chains=n_chains, n_draws=max(2, -(-n_samples // n_chains)))


@dataclass(frozen=True, eq=False)
class BoundLadder(NoSamples):
    """A ladder of a family; the state is what seeds the next call."""

    settings: TemperedReplicas
    family: ExponentialFamily

    def init(self, theta: Floats, key: Key) -> Calls:
        """Return what seeds the ladder."""
        return Calls(key)

    def advance(self, theta: Floats, state: Calls, starts: Starts | None = None) -> tuple[Drawn, Calls]:
        """Run a ladder."""
        settings, model, (key, state) = self.settings, Model(self.family, theta), state.take()
        ladder = ReplicaLadder.settled(variable_path(model), key, settings.n_chains)
        _, run = ladder.run(settings.n_draws, settings.n_draws * settings.n_chains)
        draws = np.swapaxes(run.states.reshape(settings.n_draws, settings.n_chains, -1), 0, 1)
        parts: dict[str, object] = {
            "log_partition": Estimate(run.log_partition, run.log_partition_stderr),
            **settings.mixing.parts(model, draws, f"raise `n_draws={settings.n_draws}`"),
            "warning": run.warning,
        }
        return Drawn(Samples.of(draws), floored_spread, parts), state
