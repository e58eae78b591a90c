"""Fits on a real cluster of two worker processes, against fits in memory."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import gibbsian as gb
from cli_runner import run
from gibbsian.cluster import DistributedDataset, connect
from gibbsian.cluster import connection as connections
from gibbsian.cluster.connection import require_versions
from gibbsian.cluster.sources import MOST_PARTITIONS, Piece, in_partitions
from gibbsian.errors import ArgumentError, ClusterError, DataError, TooExpensiveError

pytest.importorskip("distributed")
N, N_PARTS = 6, 5


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    graph = gb.graphs.complete(N)
    model = gb.PairwiseFamily.model(graph, rng.normal(0, 0.3, N), rng.normal(0, 0.3, graph.n_edges))
    return 2 * gb.inference.exact(model).sample(2000, rng) - 1


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """Five Parquet files, with more rows in some than in others."""
    path = tmp_path_factory.mktemp("parts")
    for k, part in enumerate(np.split(rows, [100, 700, 1000, 1900])):
        pandas.DataFrame(part, columns=[f"c{i}" for i in range(N)]).to_parquet(path / f"part-{k}.parquet")
    return path


@pytest.fixture(scope="module")
def data(client, folder):
    return DistributedDataset.read(f"{folder}/part-*.parquet", client=client, partition_cells=1)


@pytest.fixture(scope="module")
def whole(rows):
    return gb.Dataset.read(rows, names=[f"c{i}" for i in range(N)])


# -- rows -------------------------------------------------------------------------------------------------------------
def test_rows_are_read_once_packed_and_counted(data, whole):
    assert (data.n_rows, data.names, data.coding) == (whole.n_rows, whole.names, whole.coding)
    assert len(data.parts) == N_PARTS
    assert data.total_weight == whole.total_weight
    assert data.packed_bytes <= 3 * data.n_states  # a byte of six bits, and the weight
    here = data.collect()
    np.testing.assert_array_equal(here.states, whole.states)
    np.testing.assert_array_equal(here.weights, whole.weights)


def test_sums_do_not_depend_on_where_the_partitions_are(client, data):
    def statistics(part):
        return part.weights @ np.exp(0.1 * part.states)

    sums = [data.reduce(statistics) for _ in range(2)]
    workers = list(client.scheduler_info()["workers"])
    client.replicate(list(data.parts), n=1, workers=workers[:1])  # all partitions are on the first too
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], data.reduce(statistics))
    from gibbsian.data.sums import tree_sum

    np.testing.assert_array_equal(sums[0], tree_sum([statistics(part) for part in data.partitions()]))


def test_many_parameters_reach_each_evaluation_anew(data):
    """Dask keeps a large argument under its bare name, so that a second evaluation could meet the first one's."""
    shifted = data.bind(lambda part: lambda theta: theta + part.n_variables)
    for k in range(4):
        theta = np.full(30_000, float(k))
        np.testing.assert_array_equal(shifted(theta), theta + N)


def test_rows_in_very_many_pieces_make_few_partitions():
    pieces = [Piece("rows.npy", (k, k + 1), 2**23) for k in range(3 * MOST_PARTITIONS)]
    partitions = in_partitions(pieces, None)
    assert len(partitions) == MOST_PARTITIONS
    assert [piece for part in partitions for piece in part] == pieces
    assert len(in_partitions(pieces[:20], None)) == 10
    assert len(in_partitions(pieces, 1)) == len(pieces)


def test_labels_weights_and_holes_agree_over_partitions(client):
    """Partitions that each show some of the labels are read in the coding of all, with weights and missing cells."""
    dask_frame = pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame(
        {"a": ["x", "x", "y", "y", "x", "y"], "b": ["u", "v", None, "w", "u", "u"], "c": [1.0, 2, 0, 1, 3, 1]}
    )
    lazy = dask_frame.from_pandas(frame, npartitions=3)
    data = DistributedDataset.read(lazy, coding="categorical", weight_column="c", client=client)
    here = gb.Dataset.read(frame, coding="categorical", weight_column="c")
    here = here.take(here.row_weights > 0)
    assert data.coding == here.coding
    assert (data.n_rows, data.n_missing, data.total_weight) == (5, 0, 8.0)
    counted = data.collect()
    np.testing.assert_array_equal(counted.states, here.states)
    np.testing.assert_array_equal(counted.weights, here.weights)


def test_identifiers_are_left_out(client, rows):
    dask_frame = pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame(rows[:300, :3], columns=list("abc")).assign(user_id=np.arange(300))
    with pytest.warns(gb.errors.IdentifierWarning, match="user_id"):
        data = DistributedDataset.read(dask_frame.from_pandas(frame, npartitions=2), client=client)
    assert data.names == ("a", "b", "c")
    assert data.dropped == ("user_id",)


# -- learners ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "learner", ["mle", "mple", "rm", "mpf", "rise", "smci", gb.learning.SMCI(region="s2")], ids=str
)
def test_learners_find_what_they_find_in_memory(data, whole, learner):
    settings = {"tol": 1e-4} if "smci" in str(learner).lower() else {"tol": 1e-7, "l2": 0.01}
    there, here = (gb.BoltzmannMachine(learner=learner, **settings).fit(rows) for rows in (data, whole))
    np.testing.assert_allclose(there.model_.theta, here.model_.theta, rtol=0, atol=1e-12)
    assert there.result_.n_steps == here.result_.n_steps
    np.testing.assert_allclose(there.result_.moments.mean, here.result_.moments.mean, rtol=0, atol=1e-14)


# a chain does not describe rows of a complete graph; here its sums count
@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")
def test_sparse_graphs_count_their_neighbourhoods_once(data, whole):
    chain = gb.graphs.grid(1, N)
    there, here = (gb.BoltzmannMachine(chain, learner="mple", tol=1e-4).fit(rows) for rows in (data, whole))
    np.testing.assert_allclose(there.model_.theta, here.model_.theta, rtol=0, atol=1e-12)


def test_a_dask_array_is_fitted_with_binary_coding(client, rows):
    array = pytest.importorskip("dask.array")
    binary = (rows + 1) // 2
    with client.as_current():
        there = gb.BoltzmannMachine(learner="smci", tol=1e-3).fit(array.from_array(binary, chunks=(700, 4)))
    here = gb.BoltzmannMachine(learner="smci", tol=1e-3).fit(binary)
    np.testing.assert_allclose(there.model_.theta, here.model_.theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("learner", [gb.learning.as_learner("pcd"), gb.learning.Online(batch_size=50)])
def test_chains_and_minibatches_come_near(data, whole, learner):
    """Their randomness is another than in memory, and the same in every fit on these partitions."""
    fits = [gb.BoltzmannMachine(learner=learner, random_state=0, max_iter=200).fit(data) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].model_.theta, fits[1].model_.theta)
    best = gb.BoltzmannMachine(learner="mle").fit(whole)
    assert np.abs(fits[0].model_.theta - best.model_.theta).max() < 0.15


def test_missing_cells_are_summed_out_on_the_workers(client, rows):
    dask_frame = pytest.importorskip("dask.dataframe")
    holed = np.where(np.random.default_rng(1).random(rows.shape) < 0.05, np.nan, rows)[:, :4]
    holed[7] = np.nan
    lazy = dask_frame.from_pandas(pandas.DataFrame(holed, columns=list("abcd")), npartitions=3)
    with pytest.warns(gb.errors.MissingValuesWarning, match="1 row"):
        data = DistributedDataset.read(lazy, client=client)
    there = gb.BoltzmannMachine(learner="mle", tol=1e-4).fit(data)
    here = gb.BoltzmannMachine(learner="mle", tol=1e-4).fit(np.delete(holed, 7, axis=0))
    np.testing.assert_allclose(there.model_.theta, here.model_.theta, rtol=0, atol=1e-12)
    with pytest.raises(gb.errors.MissingValuesError, match="on a cluster"):
        gb.learning.objectives.Pseudolikelihood().bind(there.model_, data)


@pytest.mark.parametrize("machine", [gb.FullSpan(), gb.DeepBeliefNetwork((2,), max_iter=1, random_state=0)])
def test_some_machines_learn_from_the_counts(data, machine):
    there = machine.fit(data).model_.theta
    np.testing.assert_array_equal(there, machine.fit(data.collect()).model_.theta)


def test_what_is_not_served_is_refused_in_one_sentence(data):
    with pytest.raises(ArgumentError, match=r"needs the rows in one process.*collect"):
        gb.diagnostics.maximum_exists(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(N))), data)
    with pytest.raises(ArgumentError, match="OnlineKMeans takes no rows on a cluster"):
        gb.OnlineKMeans().fit(data)
    with pytest.raises(ArgumentError, match="compares each row"):
        gb.BoltzmannMachine(learner=gb.learning.as_learner("mpf", skip_data=True)).fit(data)


def test_potts_machines_learn_and_score_where_the_rows_are(client):
    dask_frame = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(3)
    first = rng.choice(["x", "y", "z"], 400)
    frame = pandas.DataFrame(
        {"a": first, "b": np.where(rng.random(400) < 0.5, first, "x"), "c": rng.choice(list("uv"), 400)}
    )
    lazy = dask_frame.from_pandas(frame, npartitions=3)
    with client.as_current():
        there = gb.PottsMachine(learner="mple", l2=0.01, tol=1e-3).fit(lazy)
        scores = there.score(lazy), there.pseudo_score(lazy)
        filled = lazy.map_partitions(there.impute, meta=frame.head(0)).compute()
    here = gb.PottsMachine(learner="mple", l2=0.01, tol=1e-3).fit(frame)
    np.testing.assert_allclose(there.model_.theta, here.model_.theta, rtol=0, atol=1e-12)
    np.testing.assert_allclose(scores, (here.score(frame), here.pseudo_score(frame)), rtol=1e-12)
    assert (filled.to_numpy() == frame.to_numpy()).all()


def test_the_command_line_learns_on_a_cluster(client, folder, data, tmp_path):
    out = tmp_path / "model.gibbs"
    settings = ("--learner", "mple", "--l2", "0.01", "--coding", "spin")
    told = run(
        "fit", f"file://{folder}/part-*.parquet", "--cluster", client.scheduler.address, *settings, "-o", str(out)
    )
    assert told.exit_code == 0, told.stderr
    assert "dashboard: http" in told.stderr
    here = gb.BoltzmannMachine(learner="mple", l2=0.01).fit(data.collect())
    np.testing.assert_allclose(gb.load(out).model_.theta, here.model_.theta, rtol=0, atol=1e-12)


# -- failures ---------------------------------------------------------------------------------------------------------
def test_a_bad_cell_is_named_by_file_row_and_column(client, folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    frame = pandas.read_parquet(tmp_path / "part-3.parquet")
    frame.loc[17, "c2"] = 5
    frame.to_parquet(tmp_path / "part-3.parquet")
    with pytest.raises(DataError, match=r"part-3.parquet', row 17 .*'c2'"):
        DistributedDataset.read(f"{tmp_path}/part-*.parquet", coding="spin", client=client)
    (tmp_path / "part-3.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"part-3.parquet' is not a readable Parquet file"):
        DistributedDataset.read(f"{tmp_path}/part-*.parquet", coding="spin", client=client)


def test_other_versions_and_too_little_memory_are_refused(client, folder, monkeypatch):
    own = connections.own_versions()
    monkeypatch.setattr(connections.metadata, "version", lambda name: "1.0" if name == "numpy" else own[name])
    with pytest.raises(ClusterError, match=r"has numpy .* but the client has 1.0"):
        require_versions(client)
    monkeypatch.undo()
    monkeypatch.setattr("gibbsian.cluster.dataset.BYTES_WHILE_READ", 1e12)
    with pytest.raises(TooExpensiveError, match="each of the 2 workers needs up to"):
        DistributedDataset.read(f"{folder}/part-*.parquet", client=client)


def test_without_a_cluster_it_is_said_what_to_do(monkeypatch):
    with pytest.raises(ArgumentError, match="no cluster in this process"):
        connect()
    monkeypatch.setattr(connections, "PATIENCE", 0.2)
    with pytest.raises(ClusterError, match="no scheduler answers"):
        connect("tcp://127.0.0.1:9")
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ArgumentError, match=r"gibbsian\[cluster\]"):
        connect("local")


def test_cancelled_tasks_are_not_a_lost_scheduler(client, folder):
    data = DistributedDataset.read(f"{folder}/part-0.parquet", coding="spin", client=client)
    client.cancel(list(data.parts))
    with pytest.raises(ClusterError, match=r"cancelled what was asked of it \(.*\).*read them again"):
        data.reduce(len)


@pytest.mark.parametrize(
    "method",
    ["logrise", *(pytest.param(name, marks=pytest.mark.long) for name in ("l1-ebic", "decimation"))],
)
def test_structure_is_learned_where_the_rows_are(data, whole, method):
    settings = {"n_penalties": 2, "ratio": 0.3, "tol": 1e-3} if "ebic" in method else {}
    there, here = (gb.structure.learn_structure(rows, method, **settings) for rows in (data, whole))
    assert there.graph == here.graph
    np.testing.assert_allclose(there.machine.model_.theta, here.machine.model_.theta, rtol=0, atol=1e-6)
