"""Expected statistics of a model, each with a standard error.

Exact, sampled and approximate expectations share one result, `Estimate`; an exact one reports an error of zero.
Depends on models, samplers, inference and diagnostics.
"""

from gibbsian.expectations.annealed import AnnealedImportance
from gibbsian.expectations.base import EXPECTATIONS, Estimate, Expectation
from gibbsian.expectations.contrastive import PersistentChains, RestartedChains
from gibbsian.expectations.exact import Exact
from gibbsian.expectations.monte_carlo import MonteCarlo
from gibbsian.expectations.regions import ForestAround, GivenRegions, IndependentNeighbours, Neighbourhood
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.spatial import Spatial, SpatialPlan, plan_regions, spatial_statistics
from gibbsian.expectations.spatial_chains import SpatialChains
from gibbsian.expectations.targets import expect_of

__all__ = [
    "EXPECTATIONS",
    "AnnealedImportance",
    "Estimate",
    "Exact",
    "Expectation",
    "ForestAround",
    "GivenRegions",
    "IndependentNeighbours",
    "MonteCarlo",
    "Neighbourhood",
    "PersistentChains",
    "RestartedChains",
    "Samples",
    "Spatial",
    "SpatialChains",
    "SpatialPlan",
    "expect_of",
    "plan_regions",
    "spatial_statistics",
]
