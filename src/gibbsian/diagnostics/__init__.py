"""Whether to believe a result. Depends on models and what stands above them."""

from gibbsian.diagnostics.chains import ChainReport, chain_report, effective_sample_size, r_hat
from gibbsian.diagnostics.existence import maximum_exists
from gibbsian.diagnostics.moments import DataMoments, data_moments
from gibbsian.diagnostics.partition import LogPartitionInterval, log_partition_interval

__all__ = [
    "ChainReport",
    "DataMoments",
    "LogPartitionInterval",
    "chain_report",
    "data_moments",
    "effective_sample_size",
    "log_partition_interval",
    "maximum_exists",
    "r_hat",
]
