from gibbsian.expectations.base import (
    EXPECTATIONS as EXPECTATIONS,
    BoundExpectation as BoundExpectation,
    Expectation as Expectation,
    as_expectation as as_expectation,
)
from gibbsian.expectations.bethe import Bethe as Bethe
from gibbsian.expectations.layer_chains import (
    NEGATIVE_PHASES as NEGATIVE_PHASES,
    PersistentBlockChains as PersistentBlockChains,
    RestartedBlockChains as RestartedBlockChains,
    SampledLayers as SampledLayers,
    TemperedBlockChains as TemperedBlockChains,
)
from gibbsian.expectations.deep_mean_field import DeepMeanField as DeepMeanField
from gibbsian.expectations.exact import ListedCompletions as ListedCompletions, Exact as Exact
from gibbsian.expectations.mean_field import MeanField as MeanField
from gibbsian.expectations.mixing import MixingCheck as MixingCheck
from gibbsian.expectations.per_call import RestartedPerCall as RestartedPerCall
from gibbsian.expectations.regions import (
    ForestAround as ForestAround,
    GivenRegions as GivenRegions,
    IndependentNeighbours as IndependentNeighbours,
    Neighbourhood as Neighbourhood,
    PlanarAround as PlanarAround,
)
from gibbsian.expectations.sampled import Sampled as Sampled
from gibbsian.expectations.samples import Samples as Samples
from gibbsian.expectations.sources import (
    AnnealedWalkers as AnnealedWalkers,
    FixedSamples as FixedSamples,
    PersistentChains as PersistentChains,
    RestartedChains as RestartedChains,
    TemperedReplicas as TemperedReplicas,
)
from gibbsian.expectations.spatial import (
    SpatialPlan as SpatialPlan,
    plan_regions as plan_regions,
    spatial_statistics as spatial_statistics,
)
from gibbsian.expectations.targets import expect_of as expect_of
