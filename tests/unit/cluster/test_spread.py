"""Many fits and many files on real worker processes; late workers of other versions, and a scheduler that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas
import pytest

import gibbsian as gb
from cli_runner import answer, refused
from gibbsian.backends.processes import map_fits
from gibbsian.cluster import DistributedDataset, connect, fits_on
from gibbsian.errors import ClusterError
from gibbsian.learners.callbacks import Callback
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
    model, walk = gb.PairwiseModel.build(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12), gb.samplers.Annealing(70, 100)
    with fits_on(client):
        there = walk.forward(model, rng=0)
    here = walk.forward(model, rng=0)
    np.testing.assert_array_equal(there.log_weights, here.log_weights)
    np.testing.assert_array_equal(there.states, here.states)


# -- many files -------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A model, three files with missing cells, and the same rows in one."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.choice([0, 1], (90, 4)), columns=list("abcd"))
    frame["d"] = np.where(rng.random(90) < 0.8, frame["a"], frame["d"])
    gb.BoltzmannMachine(learner="mple").fit(frame).save(folder / "model.gibbs")
    holed = frame.astype("Int64").mask(rng.random(frame.shape) < 0.1)
    holed.assign(who=range(90)).to_csv(folder / "all.csv", index=False)
    for k in range(3):
        holed.assign(who=range(90))[30 * k : 30 * k + 30].to_csv(folder / f"part-{k}.csv", index=False)
    return folder


def test_a_pattern_is_answered_as_its_rows_in_one_file(parts, tmp_path):
    model, files, whole = parts / "model.gibbs", parts / "part-*.csv", parts / "all.csv"
    together, alone = (answer("score", model, data) for data in (files, whole))
    assert together["mean_log_likelihood"] == pytest.approx(alone["mean_log_likelihood"], rel=1e-12)
    assert (together["files"], together["rows"]) == (3, 90)
    told = answer("impute", model, files, "-o", tmp_path / "filled")
    one = answer("impute", model, whole, "-o", tmp_path / "all.csv")
    assert told["filled_cells"] == one["filled_cells"] > 0
    filled = pandas.concat(pandas.read_csv(tmp_path / "filled" / f"part-{k}.csv") for k in range(3))
    pandas.testing.assert_frame_equal(filled.reset_index(drop=True), pandas.read_csv(tmp_path / "all.csv"))
    least, of_all = (answer("unusual", model, data, "--top", 4) for data in (files, whole))
    for kind in ("unusual_rows", "unusual_cells"):
        assert [row["who"] for row in least[kind]] == [row["who"] for row in of_all[kind]]
    assert least["unusual_rows"][0]["file"].endswith(".csv")


def test_files_are_answered_by_workers_as_in_turn(client, parts, tmp_path):
    model, address = parts / "model.gibbs", client.scheduler.address
    for where, cluster in ((tmp_path / "here", ()), (tmp_path / "there", ("--cluster", address))):
        where.mkdir()
        answer("score", model, parts / "part-*.csv", "--per-row", "-o", where / "score-*.csv", *cluster)
        answer("sample", model, "-n", 10, "--files", 3, "--seed", 1, "-o", where / "rows-*.csv", *cluster)
        answer("impute", model, parts / "part-*.csv", "--safe-csv", "--probabilities", "-o", where, *cluster)
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert names == [*(f"{kind}{k}.csv" for kind in ("part-", "rows-", "score-part-") for k in range(3))]
    for name in names:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    drawn = [Path(tmp_path / "here" / f"rows-{k}.csv").read_text() for k in range(3)]
    assert [len(text.splitlines()) for text in drawn] == [5, 4, 4]
    assert drawn[1] != drawn[2]


def test_many_files_are_refused_in_one_sentence(parts, tmp_path):
    model, files = parts / "model.gibbs", parts / "part-*.csv"
    assert "give --out" in refused("impute", model, files)
    assert "give --out" in refused("score", model, files, "--per-row")
    assert "is one file" in refused("impute", model, files, "-o", tmp_path / "one.csv")
    assert "is a data file" in refused("impute", model, files, "-o", parts)
    assert "no file is called" in refused("score", model, parts / "none-*.csv")
    assert "ask for many" in refused("score", model, parts / "all.csv", "--cluster", "local")
    assert "--weights" in refused("score", model, files, "--weights", "who")
    (tmp_path / "bad-1.csv").write_text("a,b,c,d\n0,1,7,0\n")
    assert "bad-1.csv" in refused("score", model, tmp_path / "bad-*.csv")


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
