"""Rows and fits on a cluster of machines, by Dask: partitions that stay on the workers, and sums that come back.

Depends on data and what stands below it; dask and distributed are imported when a cluster is used.
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
