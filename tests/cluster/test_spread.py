"""Many fits on real worker processes; late workers of other versions, and a scheduler that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas
import pytest

import gibbsian as gb
from gibbsian.backends.processes import map_fits
from gibbsian.cluster import DistributedDataset, connect, fits_on
from gibbsian.errors import ClusterError
from gibbsian.learning.callbacks import Callback
from gibbsian.progress import reporting

pytest.importorskip("distributed")
# A worker that says it has another version of NumPy.
OTHER_VERSIONS = """
import sys, importlib.metadata
own = importlib.metadata.version
importlib.metadata.version = lambda name: "0.0" if name == "numpy" else own(name)
from distributed.cli.dask_worker import main
main(["--scheduler-file", sys.argv[1], "--no-nanny", "--nthreads", "1", "--no-dashboard"])
"""


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """A scheduler and a worker, processes of their own, and the file that leads to the scheduler."""
    path = str(tmp_path_factory.mktemp("scheduler") / "scheduler.json")
    cli = [sys.executable, "-m", "distributed.cli.dask_"]
    started = [
        subprocess.Popen([*cli[:-1], cli[-1] + name, "--scheduler-file", path, "--no-dashboard", *own], stderr=-3)
        for name, own in (("scheduler", ["--port", "0"]), ("worker", ["--no-nanny", "--nthreads", "1"]))
    ]
    while not os.path.exists(path):
        assert started[0].poll() is None
        time.sleep(0.1)
    yield path, *started
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def client(processes):
    from distributed import Client

    with Client(scheduler_file=processes[0], set_as_default=False, timeout=10) as client:
        client.wait_for_workers(1, timeout=60)
        yield connect(client)


@pytest.fixture(scope="module")
def votes():
    return gb.datasets.load_house_votes().complete_rows()


# pseudolikelihood of these few rows misses some moments; here the bits of many quick fits count
@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")
def test_many_fits_find_the_same_bits_and_tell_their_progress(client, votes):
    machine = gb.BoltzmannMachine(learner="mple", l2=0.01).fit(votes)
    seen, rows, learners = [], votes.states[:, :5], ["mple", "minibatch", "rise"]
    with fits_on(client), reporting(lambda *told: seen.append(told)):
        # what workers that know nothing of the tests can read: a function of this function
        assert set(map_fits(lambda _: os.getpid(), range(3))) == set(client.run(os.getpid).values())  # not here
        there = gb.uncertainty.bootstrap(machine, votes, 6, random_state=0)
        chosen = gb.BoltzmannMachine(learner="mple", l2="cv", random_state=0).fit(votes)
        compared = gb.comparison.compare(rows, learners, random_state=0)
    assert ("bootstrap refits", 6, 6) in seen
    here = gb.uncertainty.bootstrap(machine, votes, 6, random_state=0)
    np.testing.assert_array_equal(here.thetas, there.thetas)
    again = gb.BoltzmannMachine(learner="mple", l2="cv", random_state=0).fit(votes)
    np.testing.assert_array_equal(again.model_.theta, chosen.model_.theta)
    for one, other in zip(compared, gb.comparison.compare(rows, learners, random_state=0), strict=True):
        assert (one.failure, one.held_out, one.distance) == (other.failure, other.held_out, other.distance)
        if not one.failure:
            np.testing.assert_array_equal(one.machine.model_.theta, other.machine.model_.theta)


def test_walkers_find_the_same_bits_on_workers(client):
    model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
    walk = gb.sampling.Annealing(70, 100)
    with fits_on(client):
        there = walk.forward(model, 0)
    here = walk.forward(model, 0)
    np.testing.assert_array_equal(there.log_weights, here.log_weights)
    np.testing.assert_array_equal(there.states, here.states)


def test_a_late_worker_of_other_versions_is_refused(client, processes):
    ended = subprocess.run(
        [sys.executable, "-c", OTHER_VERSIONS, processes[0]], capture_output=True, text=True, timeout=120
    )
    assert "has numpy 0.0 but the client has" in ended.stderr
    assert len(client.scheduler_info()["workers"]) == 1


class KillAt(Callback):
    """Ends a process by SIGKILL after a step."""

    def __init__(self, process, step):
        self.process, self.step = process, step

    def on_step(self, run):
        if run.n_steps == self.step:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


@pytest.mark.long
def test_a_killed_scheduler_is_said_and_the_fit_goes_on_from_its_checkpoint(client, processes, tmp_path):
    """The last test on these processes."""
    rng = np.random.default_rng(0)
    for k in range(3):
        frame = pandas.DataFrame(rng.choice([-1, 1], (200, 4)), columns=list("abcd"))
        frame.assign(d=np.where(rng.random(200) < 0.8, frame["a"], frame["d"])).to_parquet(tmp_path / f"{k}.parquet")
    path, settings = tmp_path / "fit.checkpoint", {"learner": "mple", "tol": 1e-10}
    there = DistributedDataset.read(f"{tmp_path}/*.parquet", client=client, partition_cells=1)
    with pytest.raises(ClusterError, match=r"scheduler at .* is lost"):
        gb.BoltzmannMachine(**settings, checkpoint=path, callbacks=KillAt(processes[1], 2)).fit(there)
    with connect("local", 1) as own:
        data = DistributedDataset.read(f"{tmp_path}/*.parquet", client=own, partition_cells=1)
        resumed = gb.BoltzmannMachine(**settings, checkpoint=gb.storage.Checkpoint(path, resume=True)).fit(data)
        whole = gb.BoltzmannMachine(**settings).fit(data)
        own.shutdown()
    assert resumed.result_.provenance["resumed_at_step"] == 2
    np.testing.assert_array_equal(resumed.model_.theta, whole.model_.theta)
