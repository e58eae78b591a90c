from gibbsian.expectations.annealed import AnnealedImportance as AnnealedImportance
from gibbsian.expectations.legacy import EXPECTATIONS as EXPECTATIONS, Expectation as Expectation
from gibbsian.expectations.bethe import Bethe as Bethe
from gibbsian.expectations.block_chains import (
    FREE_PHASES as FREE_PHASES,
    PersistentBlockChains as PersistentBlockChains,
    RestartedBlockChains as RestartedBlockChains,
    SpatialBlockChains as SpatialBlockChains,
    TemperedBlockChains as TemperedBlockChains,
)
from gibbsian.expectations.chains import (
    MonteCarlo as MonteCarlo,
    PersistentChains as PersistentChains,
    RestartedChains as RestartedChains,
)
from gibbsian.expectations.clamped import CLAMPED as CLAMPED, as_clamped as as_clamped
from gibbsian.expectations.clamped_chains import ClampedChains as ClampedChains
from gibbsian.expectations.deep_mean_field import DeepMeanField as DeepMeanField
from gibbsian.expectations.exact import ClampedExact as ClampedExact, Exact as Exact
from gibbsian.expectations.mean_field import ClampedMeanField as ClampedMeanField, MeanField as MeanField
from gibbsian.expectations.regions import (
    ForestAround as ForestAround,
    GivenRegions as GivenRegions,
    IndependentNeighbours as IndependentNeighbours,
    Neighbourhood as Neighbourhood,
    PlanarAround as PlanarAround,
)
from gibbsian.expectations.samples import Samples as Samples
from gibbsian.expectations.spatial import (
    Spatial as Spatial,
    SpatialPlan as SpatialPlan,
    plan_regions as plan_regions,
    spatial_statistics as spatial_statistics,
)
from gibbsian.expectations.spatial_chains import ClampedSpatial as ClampedSpatial, SpatialChains as SpatialChains
from gibbsian.expectations.targets import expect_of as expect_of
from gibbsian.expectations.tempered import TemperedMonteCarlo as TemperedMonteCarlo
