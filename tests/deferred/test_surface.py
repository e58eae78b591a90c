"""Defects of today that the surface issue repairs: strict expected failures, so that a repair is seen at once."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas
import pytest

import gibbsian as gb
from cli_runner import run
from gibbsian.errors import GibbsianError, PenaltyWarning
from gibbsian.storage import kind_of, read_tensors, write_tensors

BUG = 70


def repaired_in_surface(item: int, **settings: object) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, reason=f"issue 31 item {item}: repaired in the surface issue", **settings)


@pytest.fixture
def rows():
    return np.random.default_rng(0).integers(0, 2, (60, 3))


@pytest.fixture
def table(rows, tmp_path):
    path = tmp_path / "t.csv"
    pandas.DataFrame(rows, columns=list("abc")).to_csv(path, index=False)
    return path


def exit_code_in_a_process(*arguments: object, stdin: object = subprocess.DEVNULL, **environment: str) -> int:
    """Run a command in a process of its own."""
    code = "import sys; from gibbsian.cli.main import run; sys.argv[0] = 'gibbsian'; run()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **environment}, stdin=stdin, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    return done.returncode


# -- ordinary surroundings ------------------------------------------------------------------------------------------
@repaired_in_surface(10, raises=AssertionError)
def test_a_name_that_stdout_cannot_encode(table, tmp_path):
    arguments = ("fit", table, "--l2", "0.1", "--out", tmp_path / "é.gibbs")
    assert exit_code_in_a_process(*arguments, PYTHONIOENCODING="ascii") == 0


def cut_sav(rows, path):
    pytest.importorskip("pyreadstat").write_sav(pandas.DataFrame(rows, columns=list("abc")), path)
    path.write_bytes(path.read_bytes()[:-20])


def cut_dta(rows, path):
    pandas.DataFrame(rows, columns=list("abc")).to_stata(path, write_index=False)
    path.write_bytes(path.read_bytes()[:100])


def npy_with_a_damaged_header(rows, path):
    np.save(path, rows)
    path.write_bytes(path.read_bytes().replace(b"}", b" ", 1))


def parquet_with_damaged_metadata(rows, path):
    pandas.DataFrame(rows, columns=list("abc")).to_parquet(path)
    path.write_bytes(path.read_bytes().replace(b'{"index_columns"', b'{"index_column\xff"'[:16]))


DAMAGED = {"sav": cut_sav, "dta": cut_dta, "npy": npy_with_a_damaged_header, "parquet": parquet_with_damaged_metadata}


@pytest.mark.parametrize("ending", DAMAGED)
@repaired_in_surface(10, raises=AssertionError)
def test_a_damaged_table_is_refused_in_one_sentence(ending, rows, tmp_path):
    path = tmp_path / f"t.{ending}"
    DAMAGED[ending](rows, path)
    assert run("fit", path).exit_code == 1


@repaired_in_surface(10, raises=AssertionError)
def test_standard_input_that_is_closed(tmp_path):
    code = "import os, sys; os.close(0); sys.stdin = None; from gibbsian.cli.main import run; run()"
    command = [sys.executable, "-c", code, "fit", "-"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False, timeout=120)
    assert done.returncode not in (0, BUG)


@repaired_in_surface(10, raises=AssertionError)
def test_labels_with_odd_digits(table):
    assert run("fit", table, "--coding", "1,²").exit_code == 1


@repaired_in_surface(10, raises=AssertionError)
def test_links_in_a_circle(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    assert run("fit", tmp_path / "a.csv").exit_code == 1


@repaired_in_surface(10, raises=AssertionError)
def test_no_threads_for_numba(table):
    assert exit_code_in_a_process("fit", table, "--l2", "0.1", NUMBA_NUM_THREADS="0") != BUG


# -- files ------------------------------------------------------------------------------------------------------------
def loaded_with(machine, change, path):
    """Save a machine, change the header of its file, seal it again, and load it."""
    machine.save(path)
    header, tensors = read_tensors(path, (kind_of(path),))
    change(header)
    write_tensors(path, header.pop("kind"), {k: v for k, v in header.items() if k != "format_version"}, tensors)
    return gb.load(path)


def low_is_true(header):
    header["coding"]["low"] = True


def name_of_a_surrogate(header):
    header["names"][0] = "\ud800"


def another_estimator(header):
    header["estimator"] = "hidden"


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@pytest.mark.parametrize("change", [low_is_true, name_of_a_surrogate, another_estimator])
@repaired_in_surface(12, raises=pytest.fail.Exception)
def test_a_header_that_was_changed_and_sealed_again_is_refused(change, rows, tmp_path):
    machine = gb.BoltzmannMachine(l2=0.1).fit(rows)
    with pytest.raises(GibbsianError):
        loaded_with(machine, change, tmp_path / "m.gibbs")


# -- sizes ------------------------------------------------------------------------------------------------------------
WIDE = """
import resource, numpy as np, gibbsian as gb
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
try:
    gb.BoltzmannMachine(l2=0.1).fit(np.random.default_rng(0).integers(0, 2, (1, 20_000)))
except gb.errors.GibbsianError:
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@repaired_in_surface(13, raises=(AssertionError, subprocess.TimeoutExpired))
def test_a_row_of_many_columns_is_fitted_or_refused():
    """All pairs of 20,000 columns are 200 million parameters, which one row cannot tell."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [sys.executable, "-c", WIDE]
    done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr[-300:]


# -- classifiers with a machine that is given --------------------------------------------------------------------------
@pytest.fixture
def separated(rows):
    """Return features, the labels that their first column is, and how often each row occurs."""
    return rows, rows[:, 0], np.random.default_rng(1).integers(1, 4, len(rows))


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@repaired_in_surface(18, raises=AssertionError)
def test_weights_of_a_classifier_count_as_repetition(separated):
    X, y, counts = separated
    weighted = gb.GibbsClassifier(gb.BoltzmannMachine(l2="auto")).fit(X, y, sample_weight=counts)
    repeated = gb.GibbsClassifier(gb.BoltzmannMachine(l2="auto")).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@repaired_in_surface(18, raises=pytest.fail.Exception)
def test_a_classifier_says_that_it_chose_a_penalty(separated):
    X, y, _ = separated
    with pytest.warns(PenaltyWarning):
        gb.GibbsClassifier(gb.BoltzmannMachine(l2="auto")).fit(X, y)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@repaired_in_surface(18, raises=AssertionError)
def test_a_classifier_chooses_a_penalty_by_cross_validation_or_refuses(rows):
    y = np.where(np.random.default_rng(2).random(len(rows)) < 0.2, 1 - rows[:, 0], rows[:, 0])
    try:
        classifier = gb.GibbsClassifier(gb.BoltzmannMachine(l2="cv")).fit(rows, y)
    except GibbsianError:
        return
    assert classifier.result_.provenance["l2"] > 0
