"""The transforms against products with the full matrix of functions."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from gibbsian.backends.numba.axes import normalise, transform
from gibbsian.backends.numba.walsh import aligned_zeros, walsh_hadamard
from gibbsian.backends.threads import limited_threads
from span_reference import all_functions, local_functions


@pytest.mark.parametrize("n_bits", range(12))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_walsh_is_the_hadamard_matrix(n_bits, dtype, rng):
    table = rng.normal(size=2**n_bits).astype(dtype)
    expected = hadamard(2**n_bits) @ table.astype(np.float64)
    walsh_hadamard(table)
    assert np.allclose(table, expected, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_walsh_twice_is_the_table_times_its_size(dtype, rng):
    table = aligned_zeros(2**17, dtype)
    table[:] = rng.normal(size=table.size)
    before = table.copy()
    walsh_hadamard(table)
    walsh_hadamard(table)
    assert np.allclose(table / table.size, before, rtol=0, atol=1e-13 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("cardinalities", [(2,) * 17, (3, 2**10, 5, 3, 7), (2, 3, 5)], ids=["walsh", "mixed", "small"])
def test_pieces_change_nothing(cardinalities, rng, monkeypatch):
    table = rng.normal(size=int(np.prod(cardinalities)))
    whole = table.copy()
    transform(whole, np.array(cardinalities))
    normalise(whole)
    monkeypatch.setattr("gibbsian.backends.threads.WORTH_THREADS", 0)
    with limited_threads(3):
        transform(table, np.array(cardinalities))
        normalise(table)
    assert np.array_equal(table, whole)


@pytest.mark.parametrize(
    "cardinalities", [(3,), (5,), (1, 3, 1), (2, 3, 4), (6, 8, 3), (3, 3, 3, 3, 3), (16, 7), (7, 16), (12, 2, 9, 2)]
)
def test_transform_of_mixed_cardinalities(cardinalities, rng):
    functions = all_functions(cardinalities)
    table = rng.normal(size=len(functions))
    forward, back = table.copy(), table.copy()
    transform(forward, np.array(cardinalities))
    transform(back, np.array(cardinalities), transposed=True)
    assert np.allclose(forward, functions @ table, rtol=0, atol=1e-11)
    assert np.allclose(back, functions.T @ table, rtol=0, atol=1e-11)


def test_transform_of_a_table_larger_than_a_block(rng):
    cardinalities = (5, 4, 3, 2, 9, 3, 7, 6)
    table = rng.normal(size=int(np.prod(cardinalities)))
    expected = table.reshape(cardinalities)
    for axis, q in enumerate(cardinalities):
        expected = np.moveaxis(np.tensordot(local_functions(q), expected, (1, axis)), 0, axis)
    transform(table, np.array(cardinalities))
    assert np.allclose(table, expected.ravel(), rtol=0, atol=1e-9)


def test_large_log_weights_do_not_overflow():
    table = np.array([-3000.0, 900.0, 899.0])
    assert normalise(table) == pytest.approx(900.0 + np.log1p(np.exp(-1)), abs=1e-12)
    assert table[1] == pytest.approx(1 / (1 + np.exp(-1)))
    assert table[2] == pytest.approx(np.exp(-1) / (1 + np.exp(-1)))
    assert 0 <= table[0] < 1e-300
