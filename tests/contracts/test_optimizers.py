"""Every registered optimiser: reaches the minimum of a convex function, and can be stopped and resumed anywhere."""

import numpy as np
import pytest

from gibbsian.learning.optimizers import OPTIMIZERS, Optimizer
from gibbsian.storage import pack, unpack

SCALES = np.array([1.0, 3.0, 0.5])
TARGET = np.array([0.4, -0.2, 0.7])


class Bowl:
    """A convex function with its Hessian, not quadratic."""

    def __call__(self, theta):
        r = theta - TARGET
        return float(SCALES @ (np.logaddexp(r, -r) - np.log(2))), SCALES * np.tanh(r)

    def hessian(self, theta):
        return np.diag(SCALES / np.cosh(theta - TARGET) ** 2)


@pytest.fixture(params=OPTIMIZERS.names())
def optimizer(request):
    return OPTIMIZERS.create(request.param)


def test_keeps_the_contract(optimizer):
    assert isinstance(optimizer, Optimizer)


def test_reaches_the_minimum(optimizer):
    l1 = np.zeros(3)
    state = optimizer.init(Bowl(), np.zeros(3), l1)
    for _ in range(3000):
        state, info = optimizer.step(Bowl(), state, l1)
        if info.gradient_norm < 1e-6:
            break
    np.testing.assert_allclose(state.theta, TARGET, atol=1e-5)
    value, gradient = Bowl()(state.theta)
    assert info.value == pytest.approx(value, abs=1e-12)
    assert info.gradient_norm == pytest.approx(np.abs(gradient).max(), abs=1e-12)


def test_resumes_from_packed_arrays_to_the_same_bits(optimizer):
    l1 = np.zeros(3)
    state = optimizer.init(Bowl(), np.zeros(3), l1)
    states = [state]
    for _ in range(6):
        state, _ = optimizer.step(Bowl(), state, l1)
        states.append(state)
    resumed = unpack(states[0], pack(states[3]))
    for _ in range(3):
        resumed, _ = optimizer.step(Bowl(), resumed, l1)
    assert np.array_equal(resumed.theta, states[6].theta)
