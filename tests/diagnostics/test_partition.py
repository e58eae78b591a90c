"""How two estimates of log Z become one."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from gibbsian.diagnostics.partition import LogPartitionInterval, _relative_variance
from gibbsian.sampling.annealing import AnnealedRun


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
    alone = LogPartitionInterval(there, back, "").combined()
    tempered = SimpleNamespace(log_partition=3.0, log_partition_stderr=0.1)
    both = LogPartitionInterval(there, back, "", tempered=tempered).combined()
    first, second = alone.stderr**-2, 0.1**-2
    assert both.value == pytest.approx((alone.value * first + 3.0 * second) / (first + second))
    assert both.stderr == pytest.approx((first + second) ** -0.5)


def test_the_error_of_both_runs_is_that_of_their_repetitions():
    """Work that is normal in both directions, as Crooks' theorem has it, about a log Z far from zero."""
    rng, log_z, spread = np.random.default_rng(2), 7.0, 1.2
    found = []
    for _ in range(300):
        there, back = (
            SimpleNamespace(log_weights=rng.normal(sign * log_z - spread**2 / 2, spread, n))
            for sign, n in ((1, 150), (-1, 300))
        )
        found.append(LogPartitionInterval(there, back, "").combined())
    estimates, errors = np.transpose([(one.value, one.stderr) for one in found])
    assert estimates.mean() == pytest.approx(log_z, abs=4 * errors.mean() / np.sqrt(300))
    assert errors.mean() == pytest.approx(estimates.std(), rel=0.15)  # which 300 repetitions know to 4%
