"""Gibbs sampling of higher-order machines."""

from __future__ import annotations

import numpy as np

from gibbsian.backends.numba import clique_gibbs as kernels
from gibbsian.models.higher_order import HigherOrderModel
from gibbsian.samplers.base import SWEEPS, ChainState, SweepInfo
from gibbsian.samplers.gibbs import Gibbs
from gibbsian.samplers.plans import SweepPlan


@SWEEPS.register("higher-order")
def clique_sweeps(
    model: HigherOrderModel, sampler: Gibbs, state: ChainState, n_sweeps: int
) -> tuple[ChainState, SweepInfo]:
    """Run any Gibbs sampler on a higher-order machine; a chromatic one visits the colours of its graph in turn."""
    plan = SweepPlan.of(model, sampler, state)
    entries, held = model.membership
    pointers, places = model.scopes.companions
    cliques = (entries, model.theta[held], pointers, model.clique_csr[1][places])
    values = (model.level_table, model.domain.cardinalities(model.n_variables))
    done = plan.run_there(
        "clique_gibbs", lambda twins, *by: twins.ordered_sweeps(*cliques, *values, *by), model, state, n_sweeps
    )
    if done is not None:
        return done
    kernel = kernels.random_sweeps if plan.random_scan else kernels.ordered_sweeps

    def sweep(codes: np.ndarray, streams: np.ndarray, held: np.ndarray | None) -> int:
        return kernel(codes, streams, *cliques, *values, model.domain.two_valued, plan.sites, held, n_sweeps)

    return plan.run(sweep, model, state, n_sweeps, kernels.GROUP)
