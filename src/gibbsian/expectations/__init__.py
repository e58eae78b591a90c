"""Expected statistics of a model, each with a standard error.

Exact, sampled and approximate expectations share one result, `Estimate`; an exact one reports an error of zero.
Depends on models, samplers, inference and diagnostics.
"""

from gibbsian.expectations.annealed import AnnealedImportance
from gibbsian.expectations.base import EXPECTATIONS, Estimate, Expectation
from gibbsian.expectations.bethe import Bethe
from gibbsian.expectations.block_chains import FREE_PHASES, PersistentBlockChains, RestartedBlockChains
from gibbsian.expectations.block_spatial import SpatialBlockChains
from gibbsian.expectations.block_tempering import TemperedBlockChains
from gibbsian.expectations.clamped import CLAMPED, as_clamped
from gibbsian.expectations.clamped_chains import ClampedChains
from gibbsian.expectations.clamped_exact import ClampedExact
from gibbsian.expectations.clamped_mean_field import ClampedMeanField
from gibbsian.expectations.clamped_spatial import ClampedSpatial
from gibbsian.expectations.contrastive import PersistentChains, RestartedChains
from gibbsian.expectations.deep_mean_field import DeepMeanField
from gibbsian.expectations.exact import Exact
from gibbsian.expectations.mean_field import MeanField
from gibbsian.expectations.monte_carlo import MonteCarlo
from gibbsian.expectations.regions import ForestAround, GivenRegions, IndependentNeighbours, Neighbourhood
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.spatial import Spatial, SpatialPlan, plan_regions, spatial_statistics
from gibbsian.expectations.spatial_chains import SpatialChains
from gibbsian.expectations.targets import expect_of

__all__ = [
    "CLAMPED",
    "EXPECTATIONS",
    "FREE_PHASES",
    "AnnealedImportance",
    "Bethe",
    "ClampedChains",
    "ClampedExact",
    "ClampedMeanField",
    "ClampedSpatial",
    "DeepMeanField",
    "Estimate",
    "Exact",
    "Expectation",
    "ForestAround",
    "GivenRegions",
    "IndependentNeighbours",
    "MeanField",
    "MonteCarlo",
    "Neighbourhood",
    "PersistentBlockChains",
    "PersistentChains",
    "RestartedBlockChains",
    "RestartedChains",
    "Samples",
    "Spatial",
    "SpatialBlockChains",
    "SpatialChains",
    "SpatialPlan",
    "TemperedBlockChains",
    "as_clamped",
    "expect_of",
    "plan_regions",
    "spatial_statistics",
]
