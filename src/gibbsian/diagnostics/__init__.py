"""Whether to believe a result. Depends on models and what stands above them."""

from gibbsian.lazy import attach

_MODULES = {
    "gibbsian.diagnostics.chains": (
        "ChainReport",
        "chain_report",
        "effective_sample_size",
        "r_hat",
    ),
    "gibbsian.diagnostics.existence": ("maximum_exists",),
    "gibbsian.diagnostics.moments": (
        "DataMoments",
        "data_moments",
    ),
    "gibbsian.diagnostics.partition": (
        "LogPartitionInterval",
        "log_partition_interval",
    ),
}
__getattr__, __dir__, __all__ = attach(__name__, {name: module for module, names in _MODULES.items() for name in names})
