from gibbsian.diagnostics.chains import (
    ChainReport as ChainReport,
    chain_report as chain_report,
    effective_sample_size as effective_sample_size,
    r_hat as r_hat,
)
from gibbsian.diagnostics.existence import maximum_exists as maximum_exists
from gibbsian.diagnostics.moments import DataMoments as DataMoments, data_moments as data_moments
from gibbsian.diagnostics.partition import (
    LogPartitionInterval as LogPartitionInterval,
    log_partition_interval as log_partition_interval,
)
