"""One interface of rows: whatever `Rows` promises is the same in memory, on disk and on a cluster."""

from __future__ import annotations

import inspect

import numpy as np
import pandas
import pytest

import gibbsian as gb
from gibbsian.cluster import DistributedDataset
from gibbsian.data import Dataset, DataStream
from gibbsian.data.rows import Rows

pytest.importorskip("distributed")
N_ROWS, NAMES = 400, ("a", "b", "c", "d")
CONTAINERS = ["memory", "disk", "cluster"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    cells = (rng.random((N_ROWS, len(NAMES))) < [0.2, 0.5, 0.6, 0.9]).astype(float)
    cells[rng.random(cells.shape) < 0.05] = np.nan
    cells[np.isnan(cells).all(axis=1), 0] = 1.0
    return cells


@pytest.fixture(scope="module", params=CONTAINERS)
def rows(request, table, client, tmp_path_factory):
    if request.param == "memory":
        return Dataset.read(table, names=NAMES)
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pandas.DataFrame(table, columns=NAMES).to_parquet(path, row_group_size=64)
    if request.param == "disk":
        return DataStream.open(path, memory=6000)
    return DistributedDataset.read(str(path), client=client, partition_cells=1)


@pytest.fixture(scope="module")
def data(table):
    return Dataset.read(table, names=NAMES)


def present_sums(part, factor=1.0):
    return part.weights @ np.where(part.holes, 0, part.states) * factor


def present_means(part):
    return present_sums(part) / part.total_weight


def with_opposites(part):
    """The rows, and beside each cell the other value."""
    names = (*part.names, *(f"not {name}" for name in part.names))
    opposite = np.where(part.holes, 0, 1 - part.states).astype(np.int8)
    states = np.hstack([part.states, opposite])
    return Dataset.of_states(
        states[part.row_of],
        part.coding,
        names=names,
        missing=np.hstack([part.holes, part.holes])[part.row_of],
        sample_weight=part.row_weights,
    )


def same(one, other):
    np.testing.assert_array_equal(one.states, other.states)
    np.testing.assert_array_equal(one.holes, other.holes)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert (one.names, one.coding) == (other.names, other.coding)


def test_every_method_of_the_interface_is_called_here():
    """A new method of `Rows` fails this test until another one calls it."""
    methods = {name for name, member in vars(Rows).items() if inspect.isfunction(member) and not name.startswith("_")}
    sums = {"partitions", "reduce", "mean", "bind", "map", "sample", "at_most", "collect", "minibatches"}
    assert methods == sums | {"decode", "places", "empty_rows"}


@pytest.mark.parametrize("name", ["reduce", "mean", "bind", "map", "sample", "at_most", "collect", "minibatches"])
def test_signatures_are_those_of_the_interface(name):
    listed = list(inspect.signature(getattr(Rows, name)).parameters)
    for kind in (Dataset, DataStream, DistributedDataset):
        assert list(inspect.signature(getattr(kind, name)).parameters) == listed


def test_sizes(rows, data):
    assert (rows.n_rows, rows.total_weight, rows.n_variables) == (N_ROWS, N_ROWS, len(NAMES))
    assert (rows.names, rows.coding, rows.variables) == (data.names, data.coding, data.variables)
    assert data.n_states <= rows.n_states <= N_ROWS
    if not rows.on_disk:  # where missing cells are found when they are read
        assert (rows.n_missing, rows.has_missing) == (data.n_missing, True)


def test_columns_and_labels(rows, data):
    assert rows.labels == data.labels
    assert rows.decode(data.states).tolist() == data.decode(data.states).tolist()
    assert rows.places(["c", 0]).tolist() == [2, 0]
    assert not rows.empty_rows().any()


def test_partitions_and_reduce(rows, data):
    parts = list(rows.partitions())
    assert sum(part.n_rows for part in parts) == N_ROWS
    np.testing.assert_array_equal(rows.reduce(present_sums), present_sums(data))
    factors = np.arange(1.0, len(parts) + 1)
    expected = sum(present_sums(part, factor) for part, factor in zip(parts, factors, strict=True))
    np.testing.assert_array_equal(rows.reduce(present_sums, list(factors)), expected)
    total, shape = rows.reduce(lambda part: (part.total_weight, np.ones(2) * part.n_rows))
    assert total == N_ROWS
    np.testing.assert_array_equal(shape, [N_ROWS, N_ROWS])


def test_mean_and_bind(rows, data):
    np.testing.assert_allclose(rows.mean(present_means), present_means(data), rtol=0, atol=1e-14)
    function = rows.bind(lambda part: lambda theta: (present_means(part) @ theta, theta * part.n_variables))
    for theta in np.eye(4)[:2]:
        value, gradient = function(theta)
        assert value == pytest.approx(present_means(data) @ theta, rel=0, abs=1e-14)
        np.testing.assert_allclose(gradient, 4 * theta, rtol=0, atol=1e-14)


def test_map(rows, data):
    spins = rows.map(lambda part: part.convert("spin"))
    assert (type(spins), spins.n_rows, spins.total_weight) == (type(rows), N_ROWS, N_ROWS)
    same(spins.collect(), data.convert("spin"))
    wider = rows.map(with_opposites)
    assert (wider.n_variables, wider.names[-1]) == (8, "not d")
    same(wider.collect(), with_opposites(data))
    same(wider.map(lambda part: part.convert("spin")).collect(), with_opposites(data).convert("spin"))
    batches = list(wider.minibatches(50, np.arange(4), epoch=0))
    means = np.mean([batch.states.mean(axis=0) for batch in batches], axis=0)
    np.testing.assert_allclose(means, present_sums(with_opposites(data)) / N_ROWS, rtol=0, atol=1e-14)


def test_collect(rows, data):
    same(rows.collect(), data)


def test_samples_have_the_law_of_the_rows(rows, data):
    n = 20_000
    drawn = rows.sample(n, np.random.default_rng(1))
    assert (drawn.n_rows, drawn.total_weight, drawn.names, drawn.coding) == (n, n, data.names, data.coding)
    places = {row.tobytes(): k for k, row in enumerate(np.hstack([data.states, data.holes]).astype(np.int8))}
    counts = np.zeros(data.n_states)
    for row, weight in zip(np.hstack([drawn.states, drawn.holes]).astype(np.int8), drawn.weights, strict=True):
        counts[places[row.tobytes()]] += weight
    expected = n * data.weights / N_ROWS
    chi_square = np.sum((counts - expected) ** 2 / expected)
    assert chi_square < data.n_states + 5 * np.sqrt(2 * data.n_states)
    again = rows.sample(n, np.random.default_rng(1))
    same(again, drawn)
    np.testing.assert_array_equal(again.row_of, drawn.row_of)


def test_at_most(rows, data):
    same(rows.at_most(N_ROWS, np.random.default_rng(0)), data)
    few = rows.at_most(5, np.random.default_rng(0))
    assert few.n_rows == few.total_weight == 5


def test_minibatches(rows, data):
    seed = np.arange(4)
    one, again, other = (list(rows.minibatches(50, seed, epoch)) for epoch in (3, 3, 4))
    assert [batch.n_rows for batch in one] == [50] * 8
    for batch, same_batch in zip(one, again, strict=True):
        np.testing.assert_array_equal(batch.states, same_batch.states)
    assert any((batch.states != moved.states).any() for batch, moved in zip(one, other, strict=True))
    shown = Dataset.of_states(
        np.concatenate([batch.states for batch in one]),
        data.coding,
        names=data.names,
        missing=np.concatenate([batch.holes for batch in one]),
    )
    same(shown, data)


def test_a_learner_learns_the_same_from_all(rows, data):
    """Preflight and hidden units run over the interface alone."""
    from gibbsian.data.hidden_columns import with_hidden
    from gibbsian.data.pairs import count_pairs

    edges = gb.graphs.complete(len(NAMES)).edges
    there, here = (count_pairs(source, edges) for source in (rows, data))
    np.testing.assert_array_equal(there.missing, here.missing)
    same(with_hidden(rows, 2).collect(), with_hidden(data, 2))
