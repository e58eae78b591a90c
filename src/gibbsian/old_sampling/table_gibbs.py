"""Gibbs sampling of tables, and of families that can be written out as tables."""

from __future__ import annotations

import numpy as np

from gibbsian.backends.numba import table_gibbs as kernels
from gibbsian.backends.table_entries import Entries
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.families.potentials import PotentialsFamily
from gibbsian.models.families.tables import TablesFamily, is_potts
from gibbsian.old_sampling.base import SWEEPS, ChainState, SweepInfo
from gibbsian.old_sampling.gibbs import Gibbs, once_a_model
from gibbsian.old_sampling.plans import SweepPlan


@SWEEPS.register("tables")
def table_sweeps(
    model: Model[TablesFamily], sampler: Gibbs, state: ChainState, n_sweeps: int
) -> tuple[ChainState, SweepInfo]:
    """Run any Gibbs sampler on tables; a chromatic one visits the colours of their graph in turn."""
    plan, sizes = SweepPlan.of(model, sampler, state), np.array(model.variables.sizes)
    done = plan.run_there(
        "table_gibbs", lambda twins, *groups: twins.sweeps(*_tables_of(model), sizes, *groups), model, state, n_sweeps
    )
    if done is not None:
        return done
    tables, entries = _tables_of(model)

    def sweep(codes: np.ndarray, streams: np.ndarray, held: np.ndarray | None) -> int:
        n_picks = plan.sites.size * plan.random_scan
        return kernels.sweeps(codes, streams, tables, *entries, sizes, plan.sites, held, n_picks, n_sweeps)

    return plan.run(sweep, model, state, n_sweeps, kernels.GROUP)


@SWEEPS.register("potentials")
def potential_sweeps(
    model: Model[PotentialsFamily], sampler: Gibbs, state: ChainState, n_sweeps: int
) -> tuple[ChainState, SweepInfo]:
    """Run any Gibbs sampler on potentials, by their tables."""
    return table_sweeps(_entries_of(model), sampler, state, n_sweeps)


@once_a_model
def _entries_of(model: Model[PotentialsFamily]) -> Model[TablesFamily]:
    return model.family.to_tables(model.theta)


@SWEEPS.register("full-span")
def factor_sweeps(
    model: Model[DiscreteFamily], sampler: Gibbs, state: ChainState, n_sweeps: int
) -> tuple[ChainState, SweepInfo]:
    """Run any Gibbs sampler on a distribution that is a product of factors, by their tables."""
    return table_sweeps(_factors_of(model), sampler, state, n_sweeps)


@once_a_model
def _factors_of(model: Model[DiscreteFamily]) -> Model[TablesFamily]:
    factors = model.family.factors(model.theta).factors
    return TablesFamily.model({factor.nodes: factor.table for factor in factors}, model.variables)


@once_a_model
def _tables_of(model: Model[TablesFamily]) -> tuple[np.ndarray, Entries]:
    """Return the tables of each variable: those of a Potts family turned to the variable that is drawn.

    There each variable has its biases and a block of rows for each neighbour; its own values stand side by side.
    """
    family = model.family
    if not is_potts(family):
        return model.theta, family.layout.entries
    indptr, heads, _ = family.graph.csr
    biases, orientation = family.layout.offsets[: family.scopes.n_singles + 1], family.layout.orientation
    pointers = indptr + np.arange(indptr.size)
    is_bias = np.zeros(pointers[-1], bool)
    is_bias[pointers[:-1]] = True
    bases = np.empty(pointers[-1], np.int64)
    bases[is_bias], bases[~is_bias] = biases[:-1], biases[-1] + orientation.starts[:-1]
    tables = np.concatenate([model.theta[: biases[-1]], orientation.of(model.theta[biases[-1] :])])
    other_pointers = np.concatenate([[0], np.cumsum(~is_bias)])
    others = other_pointers, heads, np.repeat(orientation.widths, np.diff(indptr))
    return tables, Entries(pointers, bases, np.ones_like(bases), *others)
