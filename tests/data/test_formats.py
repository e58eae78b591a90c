"""Every format of tables, written and read back; stdin; packages that are not installed."""

import bz2
import gzip
import io
import lzma
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest

import gibbsian as gb
from gibbsian.cli.options import OUT_FORMATS
from gibbsian.cli.output import write_table
from gibbsian.data import files
from gibbsian.errors import DataError, TooExpensiveError

NAMES = ["left", "right, quoted", "ünï"]
ROWS = np.array([["yes", "no", "no"], ["no", "no", "yes"], ["no", "yes", "yes"]], dtype=object)


def states(path) -> np.ndarray:
    data = gb.Dataset.read(path, coding="yes/no")
    assert data.names == tuple(NAMES) or path.suffix == ".npy"
    return data.states[data.row_of]


def packed(text: bytes, ending: str) -> bytes:
    """Compress text as the ending of its file says."""
    if ending == ".zst":
        return pyarrow.compress(text, codec="zstd", asbytes=True)
    return {".gz": gzip, ".bz2": bz2, ".xz": lzma}[ending].compress(text)


@pytest.mark.parametrize("ending", OUT_FORMATS)
def test_what_commands_write_is_read_back(tmp_path, ending):
    path = tmp_path / f"rows{ending}"
    write_table(path, NAMES, ROWS)
    assert states(path).tolist() == (ROWS == "yes").astype(int).tolist()


@pytest.mark.parametrize("ending", [".csv.bz2", ".csv.xz", ".csv.zst", ".txt.gz", ".tsv.zst"])
def test_text_may_be_compressed(tmp_path, ending):
    path = tmp_path / f"rows{ending}"
    text = pd.DataFrame(ROWS, columns=NAMES).to_csv(index=False, sep="," if "csv" in ending else "\t").encode()
    path.write_bytes(packed(text, path.suffix))
    assert states(path).tolist() == (ROWS == "yes").astype(int).tolist()


@pytest.mark.parametrize("ending", [".tsv", ".feather", ".xlsx", ".npy"])
def test_formats_that_are_read_only(tmp_path, ending):
    path, frame = tmp_path / f"rows{ending}", pd.DataFrame(ROWS, columns=NAMES)
    if ending == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif ending == ".feather":
        frame.to_feather(path)
    elif ending == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        np.save(path, ROWS.astype(str))
    assert states(path).tolist() == (ROWS == "yes").astype(int).tolist()


def test_spss_keeps_the_order_of_its_labels(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    labels = {0.0: "never", 1.0: "sometimes", 2.0: "always"}
    frame = pd.DataFrame({"often": [0.0, 2.0, 1.0, np.nan], "x": [1.0, 0.0, 1.0, 1.0]})
    pyreadstat.write_sav(frame, str(tmp_path / "t.sav"), variable_value_labels={"often": labels})
    data = gb.Dataset.read(tmp_path / "t.sav", coding="categorical")
    assert data.names == ("often", "x")
    assert list(data.coding.labels_of(0)) == ["never", "sometimes", "always"]
    assert data.has_missing


def test_stata(tmp_path):
    path = tmp_path / "t.dta"
    frame = pd.DataFrame({"a": [0.0, 1.0, 1.0], "b": [1.0, 0.0, 1.0]})
    frame.to_stata(path, write_index=False)
    data = gb.Dataset.read(path)
    assert data.states[data.row_of].tolist() == frame.to_numpy(int).tolist()


def test_a_sas_file_that_is_none_is_named(tmp_path):
    (tmp_path / "t.sas7bdat").write_bytes(b"no SAS file" * 1000)
    with pytest.raises(DataError, match=r"t\.sas7bdat' is not a readable \.sas7bdat file"):
        gb.Dataset.read(tmp_path / "t.sas7bdat")


@pytest.mark.parametrize(("ending", "package"), [(".xlsx", "openpyxl"), (".sav", "pyreadstat")])
def test_a_package_that_is_not_installed_is_named_with_the_command(tmp_path, monkeypatch, ending, package):
    pd.DataFrame(ROWS).to_excel(tmp_path / f"t{ending}.xlsx")
    (tmp_path / f"t{ending}.xlsx").rename(tmp_path / f"t{ending}")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=rf"needs the package {package}: pip install 'gibbsian\[files\]'"):
        gb.Dataset.read(tmp_path / f"t{ending}")


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_stdin_is_text(monkeypatch, separator):
    text = separator.join("ab") + "\n" + separator.join("01") + "\n" + separator.join("10") + "\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    data = gb.Dataset.read(Path("-"))
    assert data.names == ("a", "b")
    assert data.n_rows == 2


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_damaged_compression_is_one_sentence(tmp_path, ending):
    path = tmp_path / f"t.csv{ending}"
    path.write_bytes(packed(b"a,b\n0,1\n" * 100, ending)[:-12])
    with pytest.raises(DataError, match="is not a readable"):
        gb.Dataset.read(path)


def test_what_is_small_on_disk_and_large_in_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed(b"a,b\n" + b"0,1\n" * 1_000_000, ".gz"))
    monkeypatch.setattr(files, "PIECE", 1 << 16)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.004")
    with pytest.raises(TooExpensiveError, match="reading"):
        gb.Dataset.read(path)


def test_words_that_differ_in_every_row_are_read_in_one_piece():
    """Arrow gives every chunk the dictionary of all, so that putting chunks together would be quadratic."""
    column = pyarrow.chunked_array([[f"r{i}"] for i in range(3000)])
    started = time.process_time()
    table = files.table_from_arrow(pyarrow.table({"id": column}))
    assert time.process_time() - started < 0.3  # 9 million comparisons take longer
    assert table.cells[0].written == tuple(f"r{i}" for i in range(3000))
    assert table.cells[0].places.tolist() == list(range(3000))
