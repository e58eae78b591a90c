"""Defects of today that the core issue repairs: strict expected failures, so that a repair is seen at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import gibbsian as gb
from gibbsian.domain import Continuum
from gibbsian.errors import GibbsianError


def repaired_in_core(item: int, **settings: object) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, reason=f"issue 31 item {item}: repaired in the core issue", **settings)


def log_partition_of_squared_difference(theta: float) -> float:
    """Return the log of the integral of ``exp(theta (x - y)^2)`` over the unit square, from the density of x - y."""
    middles = (np.arange(200_000) + 0.5) / 200_000
    return float(np.log(2.0 * np.mean((1.0 - middles) * np.exp(theta * middles**2))))


@repaired_in_core(16, raises=AssertionError)
def test_a_sharp_density_has_its_log_partition_or_is_refused():
    field = gb.models.PotentialField.build(
        ["squared-difference"], gb.graphs.complete(2), Continuum("interval", 0.0, 1.0), theta=[-5000.0]
    )
    try:
        found = gb.inference.exact(field).log_partition
    except GibbsianError:
        return
    assert found == pytest.approx(log_partition_of_squared_difference(-5000.0), abs=1e-3)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@repaired_in_core(16, raises=AssertionError)
def test_a_sharp_density_that_has_a_maximum_is_fitted():
    """The score of the parameter that was found is computed here, because the library's own has the same nodes."""
    rng = np.random.default_rng(0)
    x = rng.random(400)
    rows = np.column_stack([x, np.clip(x + rng.normal(0.0, 0.0141, 400), 0.0, 1.0)])
    square = float(np.mean((rows[:, 0] - rows[:, 1]) ** 2))

    def loss(theta: float) -> float:
        return log_partition_of_squared_difference(theta) - theta * square

    best = minimize_scalar(loss, bounds=(-10_000.0, 0.0), method="bounded")
    assert best.x == pytest.approx(-0.5 / square, rel=0.1)  # a maximum, and well inside
    machine = gb.MarkovRandomFieldMachine("squared-difference", support=(0, 1), learner="mle")
    try:
        (theta,) = machine.fit(rows).model_.theta
    except GibbsianError:
        return
    assert loss(theta) < best.fun + 0.1
