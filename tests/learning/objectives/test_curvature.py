"""Second derivatives by differences of a gradient."""

import time

import numpy as np
import pytest

from gibbsian.errors import TooExpensiveError
from gibbsian.models.differences import symmetric_differences

MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])


def test_the_first_call_may_compile():
    """A slow first call is no reason to refuse; a slow second one is."""
    pauses = [0.05]

    def gradient(theta):
        time.sleep(pauses.pop() if pauses else 0.0)
        return MATRIX @ theta

    np.testing.assert_allclose(symmetric_differences(gradient, np.ones(2), 0.1), MATRIX, atol=1e-8)
    pauses[:] = [0.05, 0.05]
    with pytest.raises(TooExpensiveError, match=r"max_seconds=0\.1"):
        symmetric_differences(gradient, np.ones(2), 0.1)
