"""The clamped phase by Gibbs sampling: chains that hold the present cells of their row and draw the missing ones."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.numba import clamped as kernels
from gibbsian.backends.parallel import in_slices
from gibbsian.data import Dataset
from gibbsian.estimate import Estimate
from gibbsian.expectations.chains import require_chains, spread
from gibbsian.expectations.clamped import CLAMPED, ClampedRows, column_frequencies, fill_cells, spin_system
from gibbsian.expectations.legacy import Rebuilt
from gibbsian.models.base import Array, DiscreteFamily, ExponentialFamily, Family, Model
from gibbsian.models.ising import is_ising
from gibbsian.old_sampling import ChainState, Gibbs
from gibbsian.settings import check, declared, whole

# Chains of one copy where n_chains is not given: enough for the noise of any fit.
MOST_CHAINS = 10_000


@dataclass(frozen=True, eq=False)
class ChainPlan:
    """Which row each chain of a copy completes and what it counts for; all copies are alike."""

    rows: ClampedRows
    row_of: Array
    shares: Array

    @classmethod
    def of(cls, rows: ClampedRows, n_chains: int | None) -> ChainPlan:
        """Give each row its part of the chains, and at least one."""
        if rows.data is None:
            return cls(rows, np.zeros(0, np.int64), np.zeros(0))
        wanted = min(rows.n_rows, MOST_CHAINS) if n_chains is None else n_chains
        return cls(rows, *spread(rows.shares, wanted))

    @property
    def n_chains(self) -> int:
        """Chains of one copy."""
        return len(self.row_of)


class ClampedState(NamedTuple):
    """The chains, copy after copy, and whether their burn-in is still to come."""

    plan: Rebuilt[ChainPlan]
    chains: ChainState
    fresh: bool


@CLAMPED.register("chains")
@declared(frozen=True)
class ClampedChains:
    """Average the statistics over persistent Gibbs chains of the missing cells given the present ones.

    Every row has a chain in each of several independent copies of the data. Each copy gives an estimate of the same
    quantity, and the standard error is their spread: honest for any model, and zero for statistics that no missing cell
    enters.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations import ClampedChains
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [0.5])
    >>> data = gb.Dataset.read([[1, float("nan")]] * 1000, coding="spin")
    >>> expectation = ClampedChains(copies=10)
    >>> estimate, _ = expectation(model, expectation.init(model, data, np.random.default_rng(0)))
    >>> bool(abs(estimate.value[1] - np.tanh(0.5)) < 4 * estimate.stderr[1])
    True
    """

    copies: int = whole(2, "Copies of the data.", least=2)
    n_steps: int = whole(1, "Sweeps over the missing cells in each call.", least=1)
    burn_in: int = whole(10, "Further sweeps before the first call.")
    n_chains: int | None = whole(
        None,
        "About how many chains in each copy, spread over the rows by weight, at least one for each; by default one for "
        "each row with missing cells, up to 10,000.",
        least=1,
        optional=True,
    )

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model[DiscreteFamily], data: Dataset, rng: np.random.Generator) -> ClampedState:
        """Start the chains with missing cells drawn from their columns."""
        plan = ChainPlan.of(ClampedRows.of(model, data), self.n_chains)
        if plan.rows.data is None:
            return ClampedState(Rebuilt(plan), _no_chains(model), fresh=False)
        require_chains(self.copies * plan.n_chains, model)
        row_of = np.tile(plan.row_of, self.copies)
        part = plan.rows.data
        assert part.missing is not None
        missing = part.missing[row_of]
        starts = fill_cells(part.states[row_of], missing, column_frequencies(data), data.variables, rng)
        chains = Gibbs().init(model, len(row_of), rng, states=starts, clamped=~missing)
        return ClampedState(Rebuilt(plan), chains, fresh=True)

    def __call__(self, model: Model[DiscreteFamily], state: ClampedState) -> tuple[Estimate, ClampedState]:
        """Run the chains on under `model` and return the mean statistics over them."""
        state = self.advance(model, state)
        rows, means = state.plan.value.rows, self._means(model, state)
        stderr = means.std(axis=0, ddof=1) / np.sqrt(self.copies)
        return Estimate(rows.constant + rows.share * means.mean(axis=0), rows.share * stderr), state

    def advance(self, model: Model[DiscreteFamily], state: ClampedState) -> ClampedState:
        """Run the chains on under `model`."""
        n_sweeps = self.n_steps + (self.burn_in if state.fresh else 0)
        if not state.plan.value.n_chains:
            return state
        return state._replace(chains=clamped_sweeps(model, state.plan.value, state.chains, n_sweeps), fresh=False)

    def _means(self, model: Model[ExponentialFamily], state: ClampedState) -> Array:
        """The mean statistics of the incomplete rows, copy by copy."""
        plan = state.plan.value
        if not plan.n_chains:
            return np.zeros((self.copies, model.theta.size))
        copies = state.chains.states.reshape(self.copies, plan.n_chains, -1)
        return np.array([self._mean(model, plan, states) for states in copies])

    def _mean(self, model: Model[ExponentialFamily], plan: ChainPlan, states: Array) -> Array:
        """The mean statistics of the incomplete rows over the chains of one copy."""
        return model.family.mean_statistics(states, plan.shares)

    def completions(self, data: Dataset, state: ClampedState, copy: int = 0) -> Dataset:
        """Return the data with the missing cells as one copy of the chains has them now.

        Rows of zero weight are left out.
        """
        plan, used = state.plan.value, data.weights > 0
        whole = used & ~data.missing.any(axis=1) if data.missing is not None else used
        states = np.vstack([data.states[whole], state.chains.states[copy * plan.n_chains : (copy + 1) * plan.n_chains]])
        weights = np.concatenate([data.weights[whole], plan.shares * data.total_weight])
        place = np.zeros(data.n_states, np.int64)  # where each state, or the first chain that completes it, stands now
        place[whole] = np.arange(whole.sum())
        place[used & ~whole] = whole.sum() + np.unique(plan.row_of, return_index=True)[1]
        kept = used[data.row_of]
        row_weights = None if data.row_weights is None else data.row_weights[kept]
        row_of = place[data.row_of[kept]]
        return dataclasses.replace(
            data, states=states, weights=weights, missing=None, row_of=row_of, row_weights=row_weights
        )


def clamped_sweeps(model: Model[DiscreteFamily], plan: ChainPlan, chains: ChainState, n_sweeps: int) -> ChainState:
    """Return the chains some sweeps over their missing cells later.

    Of pairs of spins nothing but the missing cells of each chain is visited; others go through their Gibbs sampler.
    """
    if not is_ising(model.family):
        return Gibbs().step(model, chains, n_sweeps)[0]
    form, spins, streams = model.family.ising(model.theta), 2 * chains.states - 1, chains.streams.copy()
    row_of = np.tile(plan.row_of, len(spins) // plan.n_chains)
    system = (plan.rows.pointers, plan.rows.cells, *spin_system(form), n_sweeps)
    n_updates = len(plan.rows.cells) / max(1, len(plan.rows.shares)) * len(spins) * n_sweeps
    draw: Any = kernels.dense_sweeps if form.graph.is_dense else kernels.sparse_sweeps
    in_slices(
        lambda part: draw(spins[part], streams[part], row_of[part], *system),
        len(spins),
        n_updates * max(1.0, form.graph.degrees.mean()),
    )
    return ChainState((spins > 0).view(np.int8), streams, chains.clamped, chains.n_sweeps + n_sweeps)


def _no_chains(model: Model[Family]) -> ChainState:
    n = model.n_variables
    return ChainState(np.zeros((0, n), np.int8), np.zeros((0, 4), np.uint64), np.zeros((0, n), bool), 0)
