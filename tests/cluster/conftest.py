"""A real cluster of two worker processes for all modules that ask for no other."""

import pytest


@pytest.fixture(scope="session")
def client():
    import dask
    from distributed import Client, LocalCluster

    from gibbsian.cluster.connection import RESTART

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": RESTART}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
