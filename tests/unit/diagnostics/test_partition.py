"""How two estimates of log Z become one."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from gibbsian.diagnostics.partition import LogPartitionInterval, _relative_variance
from gibbsian.samplers.annealing import AnnealedRun


def test_the_relative_variance_of_a_mean():
    log_odds = np.random.default_rng(0).normal(0.5, 2.0, 40)
    values = expit(log_odds)
    assert _relative_variance(log_odds) == pytest.approx(values.var() / values.mean() ** 2 / 40, rel=1e-12)


def test_estimates_are_weighted_by_their_errors():
    rng = np.random.default_rng(1)
    there, back = (
        AnnealedRun(np.ones((50, 1), np.int8), sign * 2.0 + rng.normal(0, 0.3, 50), 10, reverse=sign < 0)
        for sign in (1, -1)
    )
    alone, error = LogPartitionInterval(there, back, "").combined()
    tempered = SimpleNamespace(log_partition=3.0, log_partition_stderr=0.1)
    both, smaller = LogPartitionInterval(there, back, "", tempered=tempered).combined()
    assert both == pytest.approx((alone / error**2 + 3.0 / 0.1**2) / (error**-2 + 0.1**-2))
    assert smaller == pytest.approx((error**-2 + 0.1**-2) ** -0.5)
