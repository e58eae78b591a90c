"""The way to a cluster: a client, the versions of its workers, and what is said when it is lost."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from typing import Any

from gibbsian.backends.processes import dealt_by
from gibbsian.errors import ArgumentError, ClusterError

# Libraries whose versions decide the bits of a result, or whether a task can be read at all.
SAME_ON_ALL = ("gibbsian", "numpy", "scipy", "numba", "dask", "distributed", "cloudpickle")
# Seconds to wait for a scheduler.
PATIENCE = 30
# Time for a worker of this machine that died to come back. Dask gives it up for good after 15 seconds, which starting a
# process and loading libraries takes where the machine is busy; a fit would wait for ever for the last one.
RESTART = "10 minutes"
# Runs of small fits that each thread gets, so that one that is done early finds another.
RUNS_A_THREAD = 32
# What Dask says of tasks that it cancels because the scheduler no longer answers.
_LOST = "scheduler-connection-lost"
_ABSENT = "pip install 'gibbsian[cluster]'"


def connect(cluster: Any = None, n_workers: int | None = None) -> Any:
    """Return a Dask client of a cluster whose workers have the versions of this process.

    Parameters
    ----------
    cluster : str, Client or None, default=None
        ``"local"`` starts processes on this machine, one for each core; an address such as ``tcp://host:8786`` is that
        of a scheduler; None is the client that this process has already.
    n_workers : int, optional
        How many processes ``"local"`` starts.

    Examples
    --------
    >>> from gibbsian.cluster import connect
    >>> connect("host")
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: cluster='host' must be 'local' or the address of a scheduler: ...
    """
    if isinstance(cluster, str) and cluster != "local" and "://" not in cluster:
        raise ArgumentError(
            "must be 'local' or the address of a scheduler",
            "write it as in 'tcp://host:8786'",
            argument="cluster",
            value=cluster,
        )
    client = _client(cluster, n_workers)
    require_versions(client)
    return client


def _client(cluster: Any, n_workers: int | None) -> Any:
    try:
        from dask.config import set as set_config
        from distributed import Client, LocalCluster, default_client
    except ImportError:
        raise ArgumentError("a cluster needs the packages dask and distributed", _ABSENT) from None
    if cluster is None:
        try:
            return default_client()
        except ValueError:
            raise ArgumentError(
                "there is no cluster in this process",
                "start one on this machine by `gibbsian.cluster.connect('local')`",
            ) from None
    if not isinstance(cluster, str):
        return cluster
    if cluster == "local":
        n_workers = n_workers or os.cpu_count() or 1
        set_config({"distributed.deploy.lost-worker-timeout": RESTART})
        started = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        )
        return Client(started)
    try:
        return Client(cluster, timeout=PATIENCE)
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"no scheduler answers at {cluster} ({error})", "check the address, and start it") from None


@contextmanager
def connected(cluster: Any) -> Iterator[Any]:
    """Give the client of a cluster; end what was started here."""
    client = connect(cluster)
    try:
        yield client
    finally:
        if client is not cluster:
            if cluster == "local":
                client.shutdown()
            client.close()


@contextmanager
def fits_on(cluster: Any) -> Iterator[None]:
    """Have many fits, and walkers of annealing, of a block done by the workers of a cluster; here where it is None.

    What is found depends neither on the number of workers nor on which of them does what.

    Parameters
    ----------
    cluster : str, Client or None
        As for `connect`; None changes nothing.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]] * 20
    >>> machine, cluster = gb.BoltzmannMachine().fit(rows), None  # or "tcp://host:8786", with the same result
    >>> with gb.cluster.fits_on(cluster):
    ...     gb.uncertainty.bootstrap(machine, rows, 10, random_state=0).n_replicates
    10
    """
    if cluster is None:
        yield
        return
    with connected(cluster) as client, dealt_by(partial(_dealt, client)):
        yield


def _dealt(client: Any, function: Callable[[Any], Any], items: list[Any]) -> Iterator[Any]:
    """Yield what workers find for each item, in order; they get small runs of items, and the function once each."""
    size = max(1, len(items) // (RUNS_A_THREAD * n_threads_of(client)))
    runs = [items[start : start + size] for start in range(0, len(items), size)]
    with guarded(client):
        shared = sent_once(client, function)
        for future in client.map(_found, runs, function=shared, pure=False):
            yield from future.result()


def n_threads_of(client: Any) -> int:
    """Return how many tasks the workers do at once."""
    return max(1, sum(client.nthreads().values()))


def sent_once(client: Any, value: Any) -> Any:
    """Return a task whose result is a value, which each worker gets once; it is there before others ask for it."""
    task = client.submit(_itself, value, pure=False)
    if (error := task.exception()) is not None:  # waits for it
        raise error
    return task


def _itself(value: Any) -> Any:
    return value


def _found(items: list[Any], function: Callable[[Any], Any]) -> list[Any]:
    from gibbsian.cluster.packed import on_one_thread

    return on_one_thread(lambda: [function(item) for item in items])


def own_versions() -> dict[str, str]:
    """Return the versions that must be the same in all processes."""
    found = {"python": platform.python_version()}
    for name in SAME_ON_ALL:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def require_versions(client: Any) -> None:
    """Refuse workers with other versions than this process has, also later ones, and a cluster without any."""
    from distributed import WorkerPlugin

    own = own_versions()

    class SameVersions(WorkerPlugin):
        """Ends a worker of other versions when it joins, with the reason in its log."""

        def setup(self, worker: Any) -> None:
            try:
                _require_same(own_versions(), own, worker.address)
            except ClusterError as error:  # one that is raised here would only be logged
                logging.getLogger("distributed.worker").error("refused: %s", error)
                worker.loop.add_callback(worker.close, reason="gibbsian-versions")

    with guarded(client):
        found = client.run(own_versions)
        if not found:
            raise ClusterError(f"the cluster at {address_of(client)} has no workers", "start 1 or more")
        for worker, versions in found.items():
            _require_same(versions, own, worker)
        client.register_plugin(SameVersions(), name="gibbsian-versions")


def _require_same(versions: dict[str, str], own: dict[str, str], worker: str) -> None:
    for name, version in own.items():
        if versions.get(name) != version:
            raise ClusterError(
                f"the worker {worker} has {name} {versions.get(name)} but the client has {version}",
                "install the same versions on all machines",
            )


def address_of(client: Any) -> str:
    """Return the address of the scheduler."""
    return str(getattr(client.scheduler, "address", "?"))


@contextmanager
def guarded(client: Any) -> Iterator[None]:
    """Say in one sentence that workers keep dying, that tasks were cancelled, or that the scheduler is gone."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    address = address_of(client)
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"several workers died one after the other on the same partition ({error.task})",
            "give workers more memory, or cut the rows into more partitions",
        ) from None
    except (ClosedClientError, CommClosedError, CancelledError) as error:
        reason = _why_cancelled(error)
        if reason != _LOST and client.status == "running":
            raise ClusterError(
                f"the scheduler at {address} cancelled what was asked of it ({reason}), so that rows there may be lost",
                "read them again, and go on from the checkpoint where there is one",
            ) from error
        raise ClusterError(
            f"the scheduler at {address} is lost", "start it again, and go on from the checkpoint where there is one"
        ) from error


def _why_cancelled(error: Any) -> str:
    """Return why tasks were cancelled, in Dask's words; other errors are those of a lost scheduler."""
    first = next(iter(getattr(error, "error_groups", ())), error)
    return str(getattr(first, "reason", _LOST))
