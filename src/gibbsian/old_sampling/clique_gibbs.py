"""Gibbs sampling of products of any order."""

from __future__ import annotations

import numpy as np

from gibbsian.backends.numba import clique_gibbs as kernels
from gibbsian.models.base import Model
from gibbsian.models.families.products import ProductsFamily
from gibbsian.old_sampling.base import SWEEPS, ChainState, SweepInfo
from gibbsian.old_sampling.gibbs import Gibbs
from gibbsian.old_sampling.plans import SweepPlan


@SWEEPS.register("products")
def clique_sweeps(
    model: Model[ProductsFamily], sampler: Gibbs, state: ChainState, n_sweeps: int
) -> tuple[ChainState, SweepInfo]:
    """Run any Gibbs sampler on products of scores; a chromatic one visits the colours of their graph in turn."""
    plan, family = SweepPlan.of(model, sampler, state), model.family
    entries, held = family.scopes.membership
    pointers, places = family.scopes.companions
    cliques = (entries, model.theta[held], pointers, family.scopes.csr[1][places])
    values = (family.variables.padded_levels, np.array(family.variables.sizes))
    done = plan.run_there(
        "clique_gibbs", lambda twins, *by: twins.ordered_sweeps(*cliques, *values, *by), model, state, n_sweeps
    )
    if done is not None:
        return done

    def sweep(codes: np.ndarray, streams: np.ndarray, held: np.ndarray | None) -> int:
        system = (*cliques, *values, family.variables.two_valued, plan.sites, held)
        if plan.random_scan:
            return kernels.random_sweeps(codes, streams, *system, plan.sites.size, n_sweeps)
        return kernels.ordered_sweeps(codes, streams, *system, n_sweeps)

    return plan.run(sweep, model, state, n_sweeps, kernels.GROUP)
