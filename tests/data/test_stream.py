"""Rows on disk: every row once a pass, within the memory, and bad cells named with file, column and row."""

import itertools

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.data.minibatches import Cuts, draw_seed
from gibbsian.data.pairs import count_pairs
from gibbsian.data.stream import DataStream, as_bytes, in_random_order
from gibbsian.errors import (
    ArgumentError,
    CodingError,
    ConstantColumnError,
    DataError,
    DegenerateDataWarning,
    IdentifierWarning,
    MaximumDoesNotExistError,
)
from preflights import preflight_graph


def numbered_rows(n_rows: int, n_columns: int = 12) -> np.ndarray:
    """Rows that spell their own number in binary, so that each differs from all others."""
    return ((np.arange(n_rows)[:, None] >> np.arange(n_columns)) & 1).astype(np.uint8)


def numbers_of(states: np.ndarray) -> np.ndarray:
    return states.astype(np.int64) @ (1 << np.arange(states.shape[1]))


def batches(stream, batch_size, random_state, passes=1):
    """The minibatches of some passes, one after the other."""
    seed = draw_seed(np.random.default_rng(random_state))
    for epoch in range(passes):
        yield from stream.minibatches(batch_size, seed, epoch)


def write_parquet(path, rows, row_group_size, names=None):
    import pyarrow as pa
    from pyarrow import parquet

    names = names or [f"x{j}" for j in range(np.shape(rows)[1])]
    columns = [pa.array([row[j] for row in rows]) for j in range(len(names))]
    parquet.write_table(pa.table(columns, names=names), path, row_group_size=row_group_size)


@pytest.fixture(params=["npy", "fortran", "parquet", "two files"])
def numbered(request, tmp_path):
    """The same 3000 numbered rows in several forms, opened with a memory of a few hundred rows."""
    rows, memory = numbered_rows(3000), 10_000
    if request.param == "parquet":
        write_parquet(tmp_path / "rows.parquet", rows.tolist(), 70)
        return DataStream.open(tmp_path / "rows.parquet", memory=memory)
    if request.param == "two files":
        np.save(tmp_path / "a.npy", rows[:1000])
        np.save(tmp_path / "b.npy", rows[1000:])
        return DataStream.open([tmp_path / "a.npy", tmp_path / "b.npy"], memory=memory)
    np.save(tmp_path / "rows.npy", np.asfortranarray(rows) if request.param == "fortran" else rows)
    return DataStream.open(tmp_path / "rows.npy", memory=memory)


def test_a_pass_has_every_row_once_in_another_order_each_time(numbered):
    assert numbered.n_rows == 3000
    assert numbered.window_rows < 500
    passes = list(batches(numbered, 100, random_state=0, passes=2))
    assert [batch.n_rows for batch in passes] == [100] * 60
    first, second = (numbers_of(np.concatenate([b.states for b in part])) for part in (passes[:30], passes[30:]))
    assert np.array_equal(np.sort(first), np.arange(3000))
    assert np.array_equal(np.sort(second), np.arange(3000))
    assert not np.array_equal(first, second)


def test_a_window_mixes_rows_from_all_over_the_file(numbered):
    batch = numbers_of(next(batches(numbered, 200, random_state=0)).states)
    assert np.ptp(batch) > 1000  # not one contiguous stretch
    assert (np.diff(batch) == 1).mean() < 0.1


def test_every_order_of_a_window_is_as_likely(rng, monkeypatch):
    monkeypatch.setattr("gibbsian.data.stream.MANY_ROWS", 1)
    monkeypatch.setattr("gibbsian.data.stream.N_PARTS", 2)
    four = np.arange(4)[None, :, None]
    orders = np.array([in_random_order(four, rng).ravel() @ [64, 16, 4, 1] for _ in range(4800)])
    counts = np.unique(orders, return_counts=True)[1]
    assert len(counts) == 24
    assert ((counts - 200) ** 2 / 200).sum() < 56  # 23 degrees of freedom: once in ten thousand
    in_order = np.arange(100_000)[None, :, None] * [[[1, 2]], [[3, 4]]]
    table, other = in_random_order(in_order, rng)  # in parts of hundreds
    many = table[:, 0]
    assert np.array_equal(np.hstack([table, other]), many[:, None] * [1, 2, 3, 4])
    assert np.array_equal(np.sort(many), np.arange(100_000))
    assert abs(np.corrcoef(many, np.arange(100_000))[0, 1]) < 0.015


def test_any_batch_is_to_be_had_without_those_before_it(numbered):
    seed = draw_seed(np.random.default_rng(5))
    in_order = numbered.minibatches(130, seed, epoch=1)
    states = [in_order[k].states for k in range(len(in_order))]
    again = numbered.minibatches(130, seed, epoch=1)
    for k in (17, 3, 22):
        assert np.array_equal(again[k].states, states[k])


def test_only_one_window_is_in_memory(numbered):
    shuffled = numbered.minibatches(100, np.arange(4), epoch=0)
    for k in range(len(shuffled)):
        shuffled[k]
        held = shuffled.states.nbytes + 2 * shuffled.places.nbytes
        assert held <= numbered.memory


def test_codings_are_recognised_and_read_as_dataset_does(tmp_path):
    for values, name in (([-1, 1], "spin"), ([False, True], "true/false"), ([0.0, 1.0], "binary")):
        rows = np.array(values)[numbered_rows(64, 6)]
        np.save(tmp_path / "rows.npy", rows)
        stream = DataStream.open(tmp_path / "rows.npy")
        data = gb.Dataset.read(rows)
        assert stream.coding.name == data.coding.name == name
        batch = next(batches(stream, 64, 0))
        assert np.array_equal(np.unique(batch.states, axis=0), np.unique(data.states, axis=0))


@pytest.mark.parametrize("low", [-1, 0])
def test_windows_in_bits_give_back_states_and_missing_cells(tmp_path, low, rng):
    cells = numbered_rows(300, 70).astype(float)
    cells[:, 12:] = rng.random((300, 58)) < 0.5
    for holes in (False, rng.random(cells.shape) < 0.1):
        rows = np.where(holes, np.nan, cells)
        np.save(tmp_path / "rows.npy", np.where(rows == 0, low, rows))
        stream = DataStream.open(tmp_path / "rows.npy", memory=14_000)
        shuffled = stream.minibatches(80, np.arange(4), epoch=0)
        assert len(shuffled.windows) > 1  # so that minibatches reach over two
        batches = [shuffled[k] for k in range(len(shuffled))]
        assert shuffled.states.dtype == np.uint64
        found = np.concatenate([np.where(batch.holes, np.nan, batch.states) for batch in batches])
        in_order = [np.unique(table, axis=0) for table in (np.nan_to_num(found, nan=2), np.nan_to_num(rows, nan=2))]
        assert np.array_equal(*in_order)
        assert batches[0].states.dtype == np.int8
        assert batches[0].has_missing == bool(np.any(holes))


def test_a_file_that_was_cut_meanwhile_is_named(tmp_path):
    np.save(tmp_path / "rows.npy", numbered_rows(1000))
    stream = DataStream.open(tmp_path / "rows.npy")
    with open(tmp_path / "rows.npy", "r+b") as file:
        file.truncate(5000)
    with pytest.raises(DataError, match=r"rows\.npy"):
        next(batches(stream, 100, 0))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_large_blocks_of_bytes_are_read_as_small_ones(dtype, monkeypatch):
    rows = numbered_rows(40, 6).astype(dtype)
    tables = [rows, 2 * rows, rows + rows[::-1], *([2 * rows - 1] if dtype == np.int8 else [])]

    def read(table):
        try:
            data = gb.Dataset.read(table, names=list("abcdef"))
        except DataError as error:
            return str(error)
        return data.coding.name, data.states.tolist()

    expected = [read(table) for table in tables]
    monkeypatch.setattr("gibbsian.data.two_values.MANY_CELLS", 1)
    assert [read(table) for table in tables] == expected


def test_labels_in_parquet_with_chosen_columns(tmp_path):
    rows = [["a", "yes", "No"], ["b", "NO", "yes"], ["c", "yes", "yes"], ["d", "no", "no"]]
    write_parquet(tmp_path / "rows.parquet", rows, 2, ["id", "p", "q"])
    stream = DataStream.open(tmp_path / "rows.parquet", drop="id")
    assert stream.names == ("p", "q")
    assert stream.coding.name == "yes/no"
    states = np.concatenate([batch.states for batch in batches(stream, 2, 0)])
    assert sorted(states.tolist()) == [[0, 0], [0, 1], [1, 0], [1, 1]]
    swapped = DataStream.open(tmp_path / "rows.parquet", columns=["q", "p"], names=["second", "first"])
    assert swapped.names == ("second", "first")
    assert sum(part.states.sum(axis=0) for part in swapped.partitions()).tolist() == [2, 2]


def test_a_foreign_value_far_down_names_file_column_and_row(tmp_path):
    rows = numbered_rows(100_000).astype(np.int8)
    rows[95_000, 7] = -1
    np.save(tmp_path / "bad.npy", rows)
    stream = DataStream.open(tmp_path / "bad.npy", memory=200_000)
    sentence = r"bad\.npy', row 95000 .*: column 'x7' holds -1, .* coding binary \(0/1\): declare .*recognised"
    with pytest.raises(CodingError, match=sentence):
        list(batches(stream, 5000, 0))
    with pytest.raises(CodingError, match=sentence):
        list(stream.partitions())
    declared = DataStream.open(tmp_path / "bad.npy", memory=200_000, coding="binary")
    with pytest.raises(CodingError, match=r"row 95000 .*: declare another, or mend the file"):
        list(batches(declared, 100, 0))


def test_a_foreign_label_in_parquet_is_named(tmp_path):
    rows = [["yes", "no"]] * 10 + [["no", "perhaps"]]
    write_parquet(tmp_path / "bad.parquet", rows, 4)
    with pytest.raises(CodingError, match=r"row 10 .*: column 'x1' holds 'perhaps'"):
        list(batches(DataStream.open(tmp_path / "bad.parquet"), 4, 0))


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_missing_cells_stay_missing(tmp_path, kind):
    rows = numbered_rows(300).astype(float)
    rows[211, 3] = np.nan
    path = tmp_path / f"holes.{kind}"
    if kind == "npy":
        np.save(path, rows)
    else:
        write_parquet(path, [[None if np.isnan(v) else v for v in row] for row in rows.tolist()], 50)
    stream = DataStream.open(path)
    found = list(batches(stream, 100, 0))
    assert sum(batch.has_missing for batch in found) == 1
    (batch,) = (batch for batch in found if batch.has_missing)
    row, column = np.argwhere(batch.missing)[0]
    assert (column, batch.states[row, 3], batch.missing.sum()) == (3, 0, 1)
    assert numbers_of(batch.states[[row]]).item() == 211
    edges = gb.graphs.complete(12).edges
    on_disk, in_memory = (count_pairs(data, edges) for data in (stream, gb.Dataset.read(rows)))
    assert on_disk.missing.tolist() == in_memory.missing.tolist() == [0, 0, 0, 1] + [0] * 8
    np.testing.assert_array_equal(on_disk.possible, in_memory.possible)


def test_numbers_are_binarized_at_a_threshold(tmp_path):
    rows = np.arange(20.0).reshape(10, 2)
    np.save(tmp_path / "rows.npy", rows)
    stream = DataStream.open(tmp_path / "rows.npy", coding=gb.data.Threshold(9.5))
    assert sum(part.states.sum(axis=0) for part in stream.partitions()).tolist() == [5, 5]
    rows[6, 1] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    (batch,) = batches(DataStream.open(tmp_path / "rows.npy", coding=gb.data.Threshold(9.5)), 10, 0)
    assert batch.missing.sum(axis=0).tolist() == [0, 1]


def test_partitions_add_up_to_the_whole(numbered):
    rows, edges = numbered_rows(3000), gb.graphs.complete(12).edges
    assert numbered.total_weight == sum(part.total_weight for part in numbered.partitions()) == 3000
    assert np.array_equal(sum(part.weights @ part.states for part in numbered.partitions()), rows.sum(axis=0))
    on_disk, in_memory = (count_pairs(data, edges, differences=True) for data in (numbered, gb.Dataset.read(rows)))
    for name, counted in vars(in_memory).items():
        np.testing.assert_array_equal(getattr(on_disk, name), counted)


@pytest.mark.parametrize("coding", ["real", "categorical", "auto-visible"])
def test_streams_of_other_columns(tmp_path, coding):
    rows = np.arange(40).reshape(20, 2) % 7
    if coding == "auto-visible":
        rows = rows / 6
    np.save(tmp_path / "rows.npy", rows)
    stream = DataStream.open(tmp_path / "rows.npy", coding=coding)
    data = gb.Dataset.read(rows, coding=coding)
    assert stream.coding == data.coding
    np.testing.assert_array_equal(np.concatenate([part.states for part in stream.partitions()]), data.rows()[0])
    assert sum(batch.n_rows for batch in batches(stream, 5, 0)) == 20


def test_preflight_speaks_as_for_data_in_memory(tmp_path):
    """The same classes and sentences as `preflight`, whatever is wrong."""
    rng = np.random.default_rng(0)
    good = rng.integers(0, 2, (200, 4))
    constant, never, equal = good.copy(), good.copy(), good.copy()
    constant[:, 2] = 1
    never[:, 1] &= 1 - never[:, 0]
    equal[:, 3] = equal[:, 0]
    graph = gb.graphs.complete(4)
    for rows, error in ((constant, ConstantColumnError), (never, MaximumDoesNotExistError)):
        np.save(tmp_path / "rows.npy", rows)
        with pytest.raises(error) as in_memory:
            preflight_graph(gb.Dataset.read(rows), graph)
        with pytest.raises(error) as on_disk:
            preflight_graph(DataStream.open(tmp_path / "rows.npy"), graph)
        assert str(on_disk.value) == str(in_memory.value)
    np.save(tmp_path / "rows.npy", equal)
    with pytest.warns(DegenerateDataWarning, match="'x0' and 'x3' are equal in every row"):
        preflight_graph(DataStream.open(tmp_path / "rows.npy"), graph, l2=0.1)
    np.save(tmp_path / "rows.npy", good)
    assert preflight_graph(DataStream.open(tmp_path / "rows.npy"), graph).n_rows == 200


def test_a_column_of_nothing_is_named(tmp_path):
    rows = numbered_rows(30, 5).astype(float)
    rows[:, 4] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(DataError, match="column 'x4' has no observed cell"):
        preflight_graph(DataStream.open(tmp_path / "rows.npy"), gb.graphs.complete(5))


def test_files_that_cannot_be_used_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    np.save(tmp_path / "wide.npy", np.zeros((3, 3)))
    np.save(tmp_path / "cube.npy", np.zeros((3, 2, 2)))
    np.save(tmp_path / "empty.npy", np.zeros((0, 2)))
    np.save(tmp_path / "numbers.npy", np.arange(12.0).reshape(6, 2))
    (tmp_path / "rows.csv").write_text("a,b\n0,1\n")
    (tmp_path / "torn.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    write_parquet(tmp_path / "large.parquet", [[0, 1]] * 5000, 5000)
    for names, sentence in (
        (["a.npy", "wide.npy"], "wide.npy' has other columns than"),
        (["cube.npy"], "3 dimensions"),
        (["empty.npy"], "0 sample"),
        (["numbers.npy"], r"numbers.npy': column 'x0' holds"),
        (["rows.csv"], "for others use Dataset.read"),
        (["torn.npy"], "not a readable .npy file"),
        (["torn.parquet"], "not a readable Parquet file"),
        (["large.parquet"], "row group of 5000 rows .* raise memory"),
        ([], "no files"),
    ):
        with pytest.raises(DataError, match=sentence):
            DataStream.open([tmp_path / name for name in names], memory=20_000)
    with pytest.raises(ArgumentError, match="too small"):
        DataStream.open(tmp_path / "a.npy", memory=10)
    with pytest.raises(DataError, match="names has 1 entries"):
        DataStream.open(tmp_path / "a.npy", names=["only"])


def test_amounts_of_memory():
    assert as_bytes("2GB") == as_bytes(2_000_000_000) == as_bytes("2 g")
    assert as_bytes("1KiB") == 1024
    for bad in ("much", "-1", 0, "1.2.3MB"):
        with pytest.raises(ArgumentError, match="memory="):
            as_bytes(bad)


def test_batches_of_a_pass_are_alike_in_size():
    for n_rows, size in ((1000, 300), (7, 10), (1, 1), (999, 10)):
        cuts = Cuts(n_rows, size)
        bounds = [cuts[k] for k in range(len(cuts))]
        sizes = [stop - start for start, stop in bounds]
        assert sum(sizes) == n_rows
        assert max(sizes) - min(sizes) <= 1
        assert all(before[1] == after[0] for before, after in itertools.pairwise(bounds))
    with pytest.raises(IndexError):
        Cuts(10, 5)[2]


def test_rows_in_memory_come_as_often_as_their_weights_say():
    data = gb.Dataset.read([[0, 0], [0, 1], [1, 0], [1, 1]], sample_weight=[0.0, 1.0, 2.5, 0.5])
    counts = np.zeros(4)
    for epoch in range(2000):
        states = data.minibatches(4, np.arange(4), epoch)[0].states
        seen = np.bincount(states @ [2, 1], minlength=4)
        assert seen.sum() == 4
        assert seen[0] == 0
        assert seen[2] in (2, 3)
        counts += seen
    np.testing.assert_allclose(counts / 2000, [0, 1, 2.5, 0.5], atol=0.05)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_distinct_rows_of_a_stream_fit_into_memory(tmp_path, kind):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (500, 4)).astype(float)
    rows[rng.random(rows.shape) < 0.02] = np.nan
    path = tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(path, rows)
    else:
        write_parquet(path, [[None if np.isnan(v) else v for v in row] for row in rows.tolist()], 50)
    data, whole = gb.Dataset.read(rows), DataStream.open(path, memory=2000).collect()
    for name in ("states", "weights", "missing"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(data, name))
    assert (whole.n_rows, whole.total_weight) == (data.n_states, 500)


def test_models_that_count_all_rows_learn_from_the_disk_too(tmp_path):
    rows = np.random.default_rng(0).integers(0, 2, (300, 4))
    np.save(tmp_path / "rows.npy", rows)
    on_disk = gb.FullSpan().fit(DataStream.open(tmp_path / "rows.npy"))
    np.testing.assert_allclose(on_disk.model_.theta, gb.FullSpan().fit(rows).model_.theta, rtol=1e-9)


BY_COLUMN = {"sex": ("M", "F"), "age": gb.data.Threshold(0.5), "x": "drop"}


class TestColumnsOfTheirOwn:
    @pytest.fixture
    def path(self, tmp_path, rng):
        import pandas as pd

        sex = np.array(["F", "M"])[rng.integers(0, 2, 3000)]
        item = np.where(rng.random(3000) < 0.8, sex == "F", sex == "M").astype(int)
        parts = {"id": np.arange(3000), "sex": sex, "item": item, "age": rng.normal(size=3000), "x": np.ones(3000)}
        pd.DataFrame(parts).to_parquet(tmp_path / "rows.parquet", row_group_size=500)
        return tmp_path / "rows.parquet"

    def test_are_read_as_in_memory(self, path):
        with pytest.warns(IdentifierWarning, match="column 'id'"):
            stream = DataStream.open(path, coding=BY_COLUMN)
        with pytest.warns(IdentifierWarning, match="column 'id'"):
            data = gb.Dataset.read(path, coding=BY_COLUMN)
        assert (stream.names, stream.coding, stream.dropped) == (data.names, data.coding, data.dropped)
        whole = stream.collect()
        np.testing.assert_array_equal(whole.states, data.states)
        np.testing.assert_array_equal(whole.weights, data.weights)

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.IdentifierWarning")
    def test_are_learned_in_the_coding_that_was_declared_and_in_no_other(self, path):
        stream = DataStream.open(path, coding=BY_COLUMN)
        machine = gb.BoltzmannMachine(coding=BY_COLUMN, random_state=0).fit(stream)
        assert machine.dropped_ == ("id", "x")
        assert machine.coding_.labels[0] == ("M", "F")
        assert machine.couplings_.loc["sex", "item"] > 1
        with pytest.raises(CodingError, match="was declared but the stream is"):
            gb.BoltzmannMachine(coding={"sex": ("F", "M")}).fit(stream)

    def test_a_learner_of_real_numbers_is_refused(self, tmp_path, rng):
        np.save(tmp_path / "rows.npy", rng.integers(0, 2, (200, 3)))
        machine, stream = gb.BoltzmannMachine(learner="graphical-lasso"), DataStream.open(tmp_path / "rows.npy")
        with pytest.raises(ArgumentError, match="learner='graphical-lasso' does not learn a BoltzmannMachine"):
            machine.fit(stream)
