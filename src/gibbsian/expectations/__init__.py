"""Expected statistics of a model, each with a standard error.

Exact, sampled and approximate expectations share one result, `Estimate`; an exact one reports an error of zero.
Depends on models, samplers, inference and diagnostics.
"""

from gibbsian.lazy import attach

_MODULES = {
    "annealed": ("AnnealedImportance",),
    "base": ("EXPECTATIONS", "Estimate", "Expectation"),
    "bethe": ("Bethe",),
    "block_chains": (
        "FREE_PHASES",
        "PersistentBlockChains",
        "RestartedBlockChains",
        "SpatialBlockChains",
        "TemperedBlockChains",
    ),
    "chains": ("MonteCarlo", "PersistentChains", "RestartedChains"),
    "clamped": ("CLAMPED", "as_clamped"),
    "clamped_chains": ("ClampedChains",),
    "deep_mean_field": ("DeepMeanField",),
    "exact": ("ClampedExact", "Exact"),
    "mean_field": ("ClampedMeanField", "MeanField"),
    "regions": ("ForestAround", "GivenRegions", "IndependentNeighbours", "Neighbourhood", "PlanarAround"),
    "samples": ("Samples",),
    "spatial": ("Spatial", "SpatialPlan", "plan_regions", "spatial_statistics"),
    "spatial_chains": ("ClampedSpatial", "SpatialChains"),
    "targets": ("expect_of",),
}

__getattr__, __dir__, __all__ = attach(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
