"""Defects of today that the kernels issue repairs: strict expected failures, so that a repair is seen at once."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from gibbsian.cluster import DistributedDataset


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="issue 31 item 10, empty partitions: repaired in the kernels issue"
)
def test_a_dask_frame_with_an_empty_partition_is_read():
    """A filter leaves partitions without rows."""
    distributed, dask_frame = pytest.importorskip("distributed"), pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame({"a": [0, 0, 1, 1, 0, 1], "b": [0, 1, 0, 1, 1, 0], "part": [0, 0, 0, 1, 1, 1]})
    lazy = dask_frame.from_pandas(frame, npartitions=2)
    lazy = lazy[lazy["part"] == 1][["a", "b"]]
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        data = DistributedDataset.read(lazy, client=client)
        assert data.n_rows == 3
        np.testing.assert_array_equal(np.sort(data.collect().states, axis=0)[-1], [1, 1])
