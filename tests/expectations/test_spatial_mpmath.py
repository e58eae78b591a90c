"""Spatial Monte Carlo integration at couplings of fifty, against sums with fifty digits."""

import itertools

import mpmath
import numpy as np
import pytest

import gibbsian as gb
from gibbsian.expectations import plan_regions, spatial_statistics


def exact_mean(model, codes, clique, region):
    """E[prod x_i of a clique | the codes outside the region], with every weight and sum in fifty digits."""
    mpmath.mp.dps = 50
    total = signed = mpmath.mpf(0)
    weights = dict(zip(model.family.scopes, model.theta.tolist(), strict=True))
    for values in itertools.product((-1, 1), repeat=len(region)):
        x = 2 * codes - 1
        x[list(region)] = values
        weight = mpmath.exp(sum(mpmath.mpf(w) * int(np.prod(x[list(c)])) for c, w in weights.items()))
        total += weight
        signed += weight * int(np.prod(x[list(clique)]))
    return float(signed / total)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("region", [1, 2])
def test_is_right_at_fifty(order, region):
    rng = np.random.default_rng(order)
    graph = gb.graphs.grid(2, 3)
    cliques = [*((i,) for i in range(6)), *map(tuple, graph.edges.tolist()), *([(0, 1, 4)] if order == 3 else [])]
    weights = rng.choice([-50.0, -20.0, 0.3, 20.0, 50.0], len(cliques))
    product = gb.ProductsFamily.model(dict(zip(cliques, weights, strict=True)), 6)
    model = product if order == 3 else gb.Model(gb.PairwiseFamily(graph), weights)
    plan = plan_regions(model, region)
    for codes in rng.integers(0, 2, (4, 6)):
        found = spatial_statistics(model, codes[None], plan=plan).value
        assert np.isfinite(found).all()
        for mean, clique in zip(found, cliques, strict=True):
            inside = clique if region == 1 else sorted({*clique, *model.family.graph.neighbourhood(clique, 1)})
            assert mean == pytest.approx(exact_mean(product, codes, clique, tuple(inside)), abs=1e-12)
