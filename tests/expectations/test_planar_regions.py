"""Planar sum regions against enumeration: no bias, less variance, and Pfaffians where tables are too large."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import TooExpensiveError
from gibbsian.expectations import ForestAround, Neighbourhood, PlanarAround, region_sums, spatial_statistics
from gibbsian.expectations.region_sums import conditional_tables, plan_region
from systems import BINARY, SPINS, exact_law, random_model

GRID = gb.graphs.grid(3, 4)


def conditional_values(model, states, rule):
    """The estimates of all statistics from each state alone."""
    values = np.empty((len(states), model.theta.size))
    for places, found in gb.expectations.plan_regions(model, rule).values(model, gb.expectations.Samples.of(states)):
        values[:, places] = found[0]
    return values


@pytest.mark.parametrize("biases", [True, False])
def test_unbiased_and_below_the_regions_inside(biases, rng):
    """YU20 theorem 2: around a corner of a grid, planar regions hold forests and second neighbours."""
    model = random_model(gb.graphs.grid(3, 3), rng, bias=biases)
    states, probabilities, _ = exact_law(model)
    truth = gb.inference.exact(model).moments
    inside = ForestAround(2) if biases else Neighbourhood(1)
    planar = PlanarAround(2, biases)
    variances = []
    for rule in (inside, planar):
        values = conditional_values(model, states, _as_given(rule))
        np.testing.assert_allclose(probabilities @ values, truth, atol=1e-12)
        variances.append(probabilities @ (values - truth) ** 2)
    assert (variances[1] <= variances[0] + 1e-14).all()
    assert variances[1].sum() < 0.9 * variances[0].sum()


def _as_given(rule):
    """The rule with equal strengths, which is what planar regions contain."""
    return lambda graph, target: rule.regions(graph, [target], np.ones(graph.n_edges))[0]


@pytest.mark.parametrize(
    ("model", "region"),
    [
        ("spin without biases", range(12)),
        ("spin without biases", (0, 1, 2, 4, 5, 6, 8, 9, 10)),  # fields on one side
        ("spin", (0, 1, 2, 4, 5, 6)),  # outerplanar
        ("binary", (0, 1, 2, 4, 5, 6)),
    ],
)
def test_pfaffians_are_the_sums_by_elimination(model, region, rng, monkeypatch):
    given = random_model(GRID, rng, BINARY if model == "binary" else SPINS, bias=model != "spin without biases")
    factors, codes = given.family.factors(given.theta), rng.integers(0, 2, size=(12, 20))
    for target in ((5,), (5, 1)):
        tables = conditional_tables(factors, plan_region(factors, target, tuple(region)), codes)
        monkeypatch.setattr(region_sums, "MAX_CELLS", 4)
        plan = plan_region(factors, target, tuple(region))
        assert plan.fields is not None
        np.testing.assert_allclose(conditional_tables(factors, plan, codes), tables, atol=1e-12)
        monkeypatch.undo()


def test_wide_regions_are_summed_and_those_that_are_not_planar_refused(rng, monkeypatch):
    """A region of the whole lattice is exact; with fields inside it cannot be."""
    monkeypatch.setattr(region_sums, "MAX_CELLS", 2**5)
    everything = lambda graph, target: range(graph.n_nodes)  # noqa: E731
    graph = gb.graphs.grid(6, 6)
    model = random_model(graph, rng, bias=False)
    targets = gb.expectations.GivenRegions({(0, 1): range(36)})
    estimate = spatial_statistics(model, rng.integers(0, 2, (3, 36)), targets)
    assert estimate.value[0] == pytest.approx(gb.inference.exact(model).moments[0], abs=1e-12)
    with pytest.raises(TooExpensiveError, match="choose a smaller region"):
        gb.expectations.plan_regions(random_model(graph, rng), everything)
