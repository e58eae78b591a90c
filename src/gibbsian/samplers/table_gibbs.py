"""Gibbs sampling of models made of tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.backends.numba import table_gibbs as kernels
from gibbsian.backends.table_entries import Entries
from gibbsian.models.base import Model
from gibbsian.models.potts import PottsModel
from gibbsian.models.tables import MarkovRandomField
from gibbsian.samplers.base import SWEEPS, ChainState, SweepInfo
from gibbsian.samplers.gibbs import Gibbs, once_a_model
from gibbsian.samplers.plans import SweepPlan


@SWEEPS.register("markov-random-field")
@SWEEPS.register("potts")
def table_sweeps(
    model: MarkovRandomField | PottsModel, sampler: Gibbs, state: ChainState, n_sweeps: int
) -> tuple[ChainState, SweepInfo]:
    """Run any Gibbs sampler on a model of tables; a chromatic one visits the colours of its graph in turn."""
    plan = SweepPlan.of(model, sampler, state)
    sizes = model.cardinalities
    done = plan.run_there(
        "table_gibbs", lambda twins, *groups: twins.sweeps(*_tables_of(model), sizes, *groups), model, state, n_sweeps
    )
    if done is not None:
        return done
    tables, entries = _tables_of(model)

    def sweep(codes: np.ndarray, streams: np.ndarray, held: np.ndarray | None) -> int:
        return kernels.sweeps(codes, streams, tables, *entries, sizes, plan.sites, held, plan.random_scan, n_sweeps)

    return plan.run(sweep, model, state, n_sweeps, kernels.GROUP)


@SWEEPS.register("exponential-family")
def factor_sweeps(model: Model, sampler: Gibbs, state: ChainState, n_sweeps: int) -> tuple[ChainState, SweepInfo]:
    """Run any Gibbs sampler on a model of factors, by their tables."""
    return table_sweeps(_as_tables(model), sampler, state, n_sweeps)


@once_a_model
def _as_tables(model: Model) -> MarkovRandomField:
    tables = {factor.nodes: factor.table for factor in model.factors().factors}
    return MarkovRandomField.build(tables, model.n_variables, model.domain)


def _tables_of(model: Any) -> tuple[np.ndarray, Entries]:
    """The tables of each variable: those of a Potts model turned to the variable that is drawn."""
    if hasattr(model, "oriented"):
        return _oriented_tables(model)
    return model.theta, model.layout.entries


def _oriented_tables(model: PottsModel) -> tuple[np.ndarray, Entries]:
    """Each variable has its biases and a block of rows for each neighbour; its own values stand side by side."""
    n = model.n_variables
    orientation = model.layout.orientation
    indptr, heads, _ = model.graph.csr
    degrees = np.diff(indptr)
    biases = model.layout.offsets[: n + 1]
    pointers = indptr + np.arange(n + 1)
    is_bias = np.zeros(pointers[-1], bool)
    is_bias[pointers[:-1]] = True
    bases = np.empty(pointers[-1], np.int64)
    bases[is_bias], bases[~is_bias] = biases[:-1], biases[-1] + orientation.starts[:-1]
    tables = np.concatenate([model.theta[: biases[-1]], model.oriented])
    other_pointers = np.concatenate([[0], np.cumsum(~is_bias)])
    others = other_pointers, heads, np.repeat(orientation.widths, degrees)
    return tables, Entries(pointers, bases, np.ones_like(bases), *others)
