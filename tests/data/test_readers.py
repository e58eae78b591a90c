"""Every door that data comes in by, and every bad input."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gibbsian as gb
from gibbsian.data.readers import read_table
from gibbsian.domain import CODINGS
from gibbsian.errors import ArgumentError, DataError

NAMES = ["first vote", "b", "c,d"]


@st.composite
def tables(draw):
    shape = (draw(st.integers(1, 12)), 3)
    missing = draw(arrays(bool, shape))
    return draw(arrays(bool, shape)) & ~missing, missing


def frame_of(high, missing, coding):
    cells = np.where(high, coding.high, coding.low).astype(object)
    cells[missing] = None
    return pd.DataFrame(cells, columns=NAMES)


def write_csv(frame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def write_tsv(frame, folder):
    frame.to_csv(folder / "t.tsv", index=False, sep="\t", na_rep="NA")
    return folder / "t.tsv"


def write_txt(frame, folder):
    frame.to_csv(folder / "t.txt", index=False, sep=";", na_rep="?")
    return folder / "t.txt"


def write_parquet(frame, folder):
    frame.set_index(pd.Index([f"row {k}" for k in range(len(frame))])).to_parquet(folder / "t.parquet")
    return str(folder / "t.parquet")


def write_npz(frame, folder):
    cells = np.array([["" if v is None else str(v) for v in row] for row in frame.to_numpy(dtype=object)])
    np.savez(folder / "t.npz", x=cells, names=np.array(NAMES))
    return folder / "t.npz"


def to_polars(frame, folder):
    cells = frame.astype(object).where(frame.notna(), None)
    return pl.DataFrame({name: cells[name].tolist() for name in frame.columns})


def to_categories(frame, folder):
    return frame.astype("category")


def to_best_dtypes(frame, folder):
    return frame.convert_dtypes()


def as_is(frame, folder):
    return frame


WRITERS = [write_csv, write_tsv, write_txt, write_parquet, write_npz, to_polars, to_categories, to_best_dtypes, as_is]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables(), st.sampled_from(sorted(CODINGS)))
def test_round_trip_through_files_and_frames(write, tmp_path, table, name):
    high, missing = table
    source = write(frame_of(high, missing, CODINGS[name]), tmp_path)
    data = gb.Dataset.read(source, coding=name)
    holes = np.zeros(data.states.shape, bool) if data.missing is None else data.missing
    np.testing.assert_array_equal(holes[data.row_of], missing)
    np.testing.assert_array_equal((data.states == 1)[data.row_of], high)
    assert data.names == tuple(NAMES)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables())
def test_round_trip_through_npy(tmp_path, table):
    high, missing = table
    np.save(tmp_path / "t.npy", np.where(missing, np.nan, np.where(high, 1, -1)))
    data = gb.Dataset.read(tmp_path / "t.npy", coding="spin")
    np.testing.assert_array_equal((data.states == 1)[data.row_of], high)
    assert data.names == ("x0", "x1", "x2")


def test_drop_columns_and_weights(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a,b,w\nann,0,1,2.5\nbob,1,1,1\n")
    data = gb.Dataset.read(path, drop=["id"], weight_column="w")
    assert data.names == ("a", "b")
    assert data.weights.tolist() == [2.5, 1.0]
    assert gb.Dataset.read(path, columns=["b", "a"]).names == ("b", "a")
    assert gb.Dataset.read(path, columns="a").states.tolist() == [[0], [1]]
    assert gb.Dataset.read(path, drop="w").labels == (("ann", "bob"), (0, 1), (0, 1))
    with pytest.raises(DataError, match=r"drop names the column 'zz', which the data does not have \(it has id, a"):
        gb.Dataset.read(path, drop=["zz"])
    with pytest.raises(DataError, match="columns names the column 'zz'"):
        gb.Dataset.read(path, columns=["a", "zz"])
    with pytest.raises(DataError, match="weight_column='id' must name a column of numbers, but it holds 'ann'"):
        gb.Dataset.read(path, weight_column="id")
    with pytest.raises(ArgumentError, match="both given"):
        gb.Dataset.read(path, weight_column="w", sample_weight=[1, 1])
    with pytest.raises(DataError, match="no columns are left"):
        gb.Dataset.read(path, drop=["id", "a", "b", "w"])


def test_an_index_written_as_a_column_is_named(tmp_path):
    pd.DataFrame({"a": [0, 1, 1], "b": [1, 0, 0]}).to_csv(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"column '' holds 3 different values \(0, 1, 2\).*drop=\[''\]"):
        gb.Dataset.read(tmp_path / "t.csv")


def test_names_replace_the_sources_own():
    assert gb.Dataset.read([[0, 1]], names=["a", "b"]).names == ("a", "b")
    assert gb.Dataset.read(pd.DataFrame([[0, 1]])).names == ("0", "1")
    with pytest.raises(DataError, match="names has 1 entries but the data has 2 columns"):
        gb.Dataset.read([[0, 1]], names=["a"])
    with pytest.raises(DataError, match="column name 'a' occurs 2 times"):
        gb.Dataset.read([[0, 1]], names=["a", "a"])


def test_a_file_without_header_needs_names(tmp_path):
    np.savetxt(tmp_path / "t.txt", [[0, 1, 1], [1, 0, 1]], fmt="%d")
    with pytest.raises(DataError, match=r"first line of '.*t.txt' holds values \(0, 1, 1\): add a row .* names="):
        gb.Dataset.read(tmp_path / "t.txt")
    data = gb.Dataset.read(tmp_path / "t.txt", names=["a", "b", "c"])
    assert data.states[data.row_of].tolist() == [[0, 1, 1], [1, 0, 1]]
    with pytest.raises(DataError, match="names has 2 entries"):
        gb.Dataset.read(tmp_path / "t.txt", names=["a", "b"])


def test_numbered_header_of_a_frame_is_a_header(tmp_path):
    pd.DataFrame([[0, 1, 1], [1, 0, 1]]).to_csv(tmp_path / "t.csv", index=False)
    assert gb.Dataset.read(tmp_path / "t.csv").n_rows == 2


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.csv", b"", r"file '.*t.csv' is empty \(0 bytes\)"),
        ("t.csv", b"\n\n  \n", r"is empty \(blank lines only\)"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,b\n0,1\n0,1,1\n", r"is ragged: the row '0,1,1' has 3 fields but the first line has 2"),
        ("t.csv", b"a,b\n0,1\n0\n", r"is ragged: the row '0' has 1 fields but the first line has 2"),
        ("t.csv", b"a,a\n0,1\n", "column name 'a' occurs 2 times"),
        ("t.csv", b"yes,no,no\nno,no,no\n", r"first line of .* holds values \(yes, no, no\)"),
        ("t.csv", "a,b\n0,é\n".encode("utf-16"), "is not UTF-8 text"),
        ("t.csv", b"day,b\n2024-01-01,1\n2024-01-02,1\n2024-01-03,0\n", r"column 'day' holds text"),
        ("t.parquet", b"not parquet at all", "is not a readable Parquet file"),
        ("t.npy", b"not numpy at all", "is not a readable .npy file"),
        ("t.npz", b"not a zip at all", "is not a readable .npz file"),
        ("t.ods", b"PK", r"unknown extension '.ods': use one of .csv"),
        ("t.xlsx", b"PK", r"is not a readable .xlsx file: "),
    ],
)
def test_refuses_bad_files(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        gb.Dataset.read(tmp_path / name)


def test_refuses_a_path_to_nothing_and_a_folder(tmp_path):
    with pytest.raises(DataError, match=r"file '.*nothing.csv' was not found"):
        gb.Dataset.read(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="is a folder"):
        gb.Dataset.read(tmp_path)


def test_truncated_files_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.eye(40))
    np.save(tmp_path / "t.npy", np.eye(40))
    pd.DataFrame(np.eye(40), columns=[f"c{j}" for j in range(40)]).to_parquet(tmp_path / "t.parquet")
    for name in ("t.npz", "t.npy", "t.parquet"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataError, match="is not a readable"):
            gb.Dataset.read(tmp_path / name)


def test_npz_takes_the_only_table(tmp_path):
    np.savez(tmp_path / "t.npz", table=np.eye(3), other=np.arange(3), items=np.array(["a", "b", "c"]))
    assert gb.Dataset.read(tmp_path / "t.npz").names == ("a", "b", "c")
    np.savez(tmp_path / "t.npz", train=np.eye(3), test=np.eye(3))
    with pytest.raises(DataError, match=r"holds 2 two-dimensional arrays \(train, test\): name one of them as"):
        gb.Dataset.read(tmp_path / "t.npz")


def test_pickled_arrays_are_not_opened(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[{}, 1]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"is not a readable .npy file"):
        gb.Dataset.read(tmp_path / "t.npy")


@pytest.mark.parametrize(
    ("source", "error", "sentence"),
    [
        (np.array([0, 1]), DataError, "Reshape your data"),
        (np.array(1), DataError, "Reshape your data"),
        (np.zeros((2, 2, 2)), DataError, "Found array with dim 3"),
        (np.zeros((0, 3)), DataError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required."),
        (np.zeros((12, 0)), DataError, r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required."),
        (pd.DataFrame({"a": []}), DataError, r"0 sample\(s\)"),
        (pl.DataFrame({"a": []}), DataError, r"0 sample\(s\)"),
        (np.eye(2) + 1j, DataError, "Complex data not supported"),
        (np.array([[1j, 1]], dtype=object), DataError, "Complex data not supported"),
        (pd.DataFrame({"a": [1j, 0]}), DataError, "Complex data not supported"),
        ([[0, 1], [1]], DataError, "rows of the list have different lengths"),
        (
            np.array([[{"a": 1}, 0]], dtype=object),
            TypeError,
            "'x0' holds {'a': 1}.*argument must be .* string.* number",
        ),
        (pd.DataFrame([[0, 1]], columns=["a", "a"]), DataError, "column name 'a' occurs 2 times"),
        (pl.DataFrame({"a": [[0], [1]], "b": [0, 1]}), DataError, "column 'a' holds .*list.* not numbers or labels"),
    ],
)
def test_refuses_bad_arrays_and_frames(source, error, sentence):
    with pytest.raises(error, match=sentence):
        gb.Dataset.read(source)


def test_masked_arrays_keep_their_mask():
    for cells in (np.array([[0, 1], [1, 1]]), np.array([["no", "yes"], ["yes", "yes"]])):
        data = gb.Dataset.read(np.ma.masked_array(cells, mask=[[False, True], [False, False]]))
        assert data.missing[data.row_of].tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "float32", "Int64", "Float64", "boolean", "bool", "category", "string"]
)
def test_pandas_dtypes(dtype):
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [1, 1, 0]}).astype(dtype)
    data = gb.Dataset.read(frame)
    assert data.states[data.row_of].tolist() == [[0, 1], [1, 1], [1, 0]]
    assert data.coding.name == ("true/false" if dtype in ("bool", "boolean") else "binary")


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.String, pl.Enum(["no", "yes", "maybe"])])
def test_polars_labels(dtype):
    data = gb.Dataset.read(pl.DataFrame({"a": ["yes", "no", None]}, schema={"a": dtype}))
    assert data.coding.name == "yes/no"
    assert data.states[data.row_of, 0].tolist() == [1, 0, 0]
    assert data.missing[data.row_of, 0].tolist() == [False, False, True]


@pytest.mark.parametrize(
    "text",
    ["a,b\n+1,-1\n ,1\n", "\ufeffa,b\r\n1.0,-1\r\nNA,1\r\n", 'a;b\n"1";" -1"\n"?";1\n\n', "a\tb\n1\t-1\n\t1\n"],
)
def test_spellings_of_delimited_text(tmp_path, text):
    (tmp_path / "t.csv").write_bytes(text.encode())
    data = gb.Dataset.read(tmp_path / "t.csv")
    assert data.names == ("a", "b")
    np.testing.assert_array_equal(
        data.decode(data.states[data.row_of], data.missing[data.row_of]), [[1, -1], [np.nan, 1]]
    )


def test_unused_categories_do_not_count():
    frame = pd.DataFrame({"a": pd.Categorical(["no", "yes"], categories=["no", "yes", "maybe"])})
    assert gb.Dataset.read(frame).coding.name == "yes/no"


def test_reading_an_array_imports_neither_pandas_nor_pyarrow():
    code = (
        "import sys, numpy, gibbsian; gibbsian.Dataset.read(numpy.eye(3)); "
        "assert not {'pandas', 'pyarrow', 'polars'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_array_of_an_archive_is_named_after_a_colon(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.full((2, 3), 9), flat=np.eye(3))
    assert gb.Dataset.read(str(tmp_path / "t.npz:flat")).n_rows == 3
    with pytest.raises(DataError, match=r"holds no array 'grey' \(x, flat\)"):
        gb.Dataset.read(tmp_path / "t.npz:grey")


def test_names_are_stripped_and_headless_words_refused(tmp_path):
    (tmp_path / "spaces.csv").write_text("a , b\n0, 1\n1, 1\n")
    assert gb.Dataset.read(tmp_path / "spaces.csv").names == ("a", "b")
    (tmp_path / "headless.csv").write_text("yes,no\nyes,yes\nno,no\n")
    with pytest.raises(DataError, match="first line"):
        gb.Dataset.read(tmp_path / "headless.csv")


@pytest.mark.parametrize("n_columns", [3, 70_000])
def test_arrays_of_any_width_are_recognised_beyond_their_first_rows(n_columns):
    """Of a wide table only the first row is tried in every coding, and ones alone may be either."""
    rows = np.ones((70, n_columns), np.int8)
    rows[-1, -1] = -1
    data = gb.Dataset.read(rows)
    assert data.coding.name == "spin"
    assert data.decode(*data.rows()).tolist() == rows.tolist()
    assert (data.names[0], data.names[-1], len(data.names)) == ("x0", f"x{n_columns - 1}", n_columns)
    rows[0, 0] = 2
    rows[1, 0] = 3
    with pytest.raises(DataError, match="column 'x0'"):
        gb.Dataset.read(rows)


@pytest.mark.parametrize(
    ("last", "values"),
    [
        ("1,,yes,300", [{0.0, 1.0}, {1.0}, {"no", "yes"}, {7.0, 300.0}]),
        ("1.5,x,yes,3", [{0.0, 1.5}, {1.0, "x"}, {"no", "yes"}, {3.0, 7.0}]),
    ],
)
def test_cells_of_later_blocks_decide_what_a_column_holds(tmp_path, last, values):
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,c,d", *["0,1,no,7"] * 200_000, last, ""]))
    columns = read_table(tmp_path / "rows.csv").factors().cells
    assert [set(column.spellings) for column in columns] == values
    assert [column.places[-1] < 0 for column in columns] == [cell == "" for cell in last.split(",")]


def test_narrow_numbers_are_cut_where_the_threshold_says(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n100,1\n101,2\n,3\n")
    data = gb.Dataset.read(tmp_path / "rows.csv", coding=gb.data.Threshold(100.9999999))
    states, missing = data.rows()
    assert states[:2].tolist() == [[0, 0], [1, 0]]
    assert missing[2].tolist() == [True, False]
