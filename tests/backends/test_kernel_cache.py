"""Compiled kernels are few, are kept where site-packages cannot be written, and work where nothing can be."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gibbsian
from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, fast_exp
from gibbsian.startup import gc_disabled

CODE = """
import numpy as np
from gibbsian.backends.numba.math import copy_to
target = np.zeros(3)
copy_to(target, np.array([1.0, 2.0]))
tables = "numba.cpython.printimpl" in __import__("sys").modules  # what Numba compiles with
print(target.tolist(), sum(copy_to.stats.cache_hits.values()), len(copy_to.stats.cache_path) > 0, tables)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the package in which no kernel can be kept: a file stands where the folder would."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(Path(gibbsian.__file__).parent, folder / "gibbsian", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "gibbsian" / "backends" / "numba" / "__pycache__").write_text("")
    return folder


def run(installed, **folders):
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    env |= {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"} | {k: str(v) for k, v in folders.items()}
    return subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=env).stdout


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_kernels_are_kept_elsewhere(installed, tmp_path, variable):
    assert run(installed, **{variable: tmp_path}) == "[1.0, 2.0, 0.0] 0 True True\n"
    assert list(tmp_path.rglob("*copy_to*.nbc"))
    assert run(installed, **{variable: tmp_path}) == "[1.0, 2.0, 0.0] 1 True False\n"


def test_kernels_work_where_no_folder_can_be_written(installed, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "temporary").mkdir()
    env = {"XDG_CACHE_HOME": tmp_path / "file" / "cache", "TMPDIR": tmp_path / "temporary"}
    assert run(installed, **env) == "[1.0, 2.0, 0.0] 0 True True\n"
    assert not list((tmp_path / "temporary").iterdir())


COUNT = """
import numpy, gibbsian
from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    gibbsian.BoltzmannMachine().fit(numpy.random.default_rng(0).integers(0, 2, (200, 6)))
names = [entry.data["dispatcher"].py_func.__name__ for _, entry in compiled.buffer if entry.is_start]
print(len(names), *names)
"""


def test_a_first_small_fit_compiles_little(tmp_path):
    """What six columns need is compiled, in seconds: the exact engine, and not what many columns need beside it."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    number, *names = subprocess.check_output([sys.executable, "-c", COUNT], text=True, env=env).split()
    assert "fold_second_moments" in names
    assert "_fill_sums" not in names
    assert int(number) <= 12, names


@njit(cache=False, fastmath=VECTOR_MATH)
def _exponentials(x):
    for k in range(x.size):
        x[k] = fast_exp(x[k])


@njit(cache=False)
def _inner(x):
    return x + 1.0


@njit(cache=False)
def _outer(x):
    return 2.0 * _inner(x)


def test_exponentials_are_right_to_the_last_place():
    x = np.concatenate([np.linspace(-708.0, 709.0, 100_001), [0.0, -0.0, -1e-300, -1000.0, -np.inf]])
    expected = np.exp(np.maximum(x, -708.0))
    _exponentials(x)
    np.testing.assert_allclose(x, expected, rtol=3e-16)


def test_kernels_that_kernels_call_can_be_called_from_python_too():
    """A way in from Python is compiled when Python calls."""
    assert _outer(1.0) == 4.0
    assert not _inner.overloads
    assert _inner(1.0) == 2.0


def test_garbage_is_looked_for_as_before_once_a_kernel_is_compiled():
    with gc_disabled():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_disabled():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
