"""Densities that the nodes of a quadrature rule do not resolve are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import gibbsian as gb
from gibbsian.domain import Continuum
from gibbsian.errors import ArgumentError, GibbsianError
from gibbsian.inference import exact
from gibbsian.inference.quadrature import LARGEST_PEAK, peaks
from gibbsian.models import Quadrature, QuadratureFamily


def squared_difference(theta: float, n_nodes: int = 24, graph: gb.Graph | None = None) -> gb.Model[QuadratureFamily]:
    graph = graph or gb.graphs.complete(2)
    variables = Quadrature.of(Continuum("interval", 0.0, 1.0, n_nodes), graph.n_nodes)
    return gb.Model(QuadratureFamily.build(["squared-difference"], variables, graph), np.array([theta]))


def log_partition_of_squared_difference(theta: float) -> float:
    """Return the log of the integral of ``exp(theta (x - y)^2)`` over the unit square, from the density of x - y."""
    middles = (np.arange(200_000) + 0.5) / 200_000
    return float(np.log(2.0 * np.mean((1.0 - middles) * np.exp(theta * middles**2))))


def test_a_sharp_density_has_its_log_partition_or_is_refused():
    with pytest.raises(ArgumentError, match=r"n_nodes=24 are too few .* 9\d% .* single .*node .* give more of them"):
        exact(squared_difference(-5000.0))
    found = exact(squared_difference(-5000.0, 127)).log_partition
    assert found == pytest.approx(log_partition_of_squared_difference(-5000.0), abs=1e-3)


@pytest.mark.parametrize("n_nodes", [12, 24, 48])
def test_what_is_not_refused_is_an_integral(n_nodes):
    """Between nothing and ten thousand; about half of these are refused by so few nodes."""
    refused = 0
    for theta in -np.geomspace(1.0, 10_000.0, 20):
        try:
            found = exact(squared_difference(theta, n_nodes)).log_partition
        except GibbsianError:
            refused += 1
            continue
        assert found == pytest.approx(log_partition_of_squared_difference(theta), abs=5e-3)
    assert 0 < refused < 15


def test_peaks_are_mean_largest_conditionals(rng):
    model = squared_difference(-30.0, 5, gb.graphs.grid(1, 3))
    factors, codes = model.family.factors(model.theta), rng.integers(0, 5, size=(7, 3)).astype(np.int8)
    expected = np.zeros(3)
    for row in codes:
        for node in range(3):
            rows = np.repeat(row[None], 5, axis=0)
            rows[:, node] = np.arange(5)
            weights = np.exp(factors.log_weights(rows))
            expected[node] += weights.max() / weights.sum() / 7
    np.testing.assert_allclose(peaks(factors, codes), expected, atol=1e-12)
    assert LARGEST_PEAK < 1.0


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
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
