"""Exact samples have the exact law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import gibbsian as gb
from gibbsian.inference import Elimination, Enumeration
from systems import SPINS, ask

ENGINES = [Enumeration, Elimination]


def random_model(graph, seed, scale=0.6, variables=SPINS):
    rng = np.random.default_rng(seed)
    return gb.PairwiseFamily.model(
        graph, scale * rng.normal(size=graph.n_nodes), scale * rng.normal(size=graph.n_edges), variables
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_state_frequencies(engine, scores):
    model = random_model(gb.graphs.grid(2, 3), 1, variables=scores)
    samples = ask(engine, model).sample(50_000, np.random.default_rng(0))
    assert samples.dtype == np.int8
    assert set(np.unique(samples)) == {0, 1}
    numbers = samples @ (1 << np.arange(5, -1, -1))
    expected = ask(Enumeration, model).marginal(range(6)).ravel() * len(samples)
    assert chisquare(np.bincount(numbers, minlength=64), expected).pvalue > 1e-3


def joint_p_value(samples, engine, nodes):
    """Chi-square of the joint states of some spins; unlike scores of single moments, one test with a known law."""
    numbers = samples[:, nodes] @ (1 << np.arange(len(nodes) - 1, -1, -1))
    expected = engine.marginal(nodes).ravel() * len(samples)
    assert expected.min() > 5, "too few draws for the law of chi-square"
    return chisquare(np.bincount(numbers, minlength=expected.size), expected).pvalue


def largest_score(estimates, exact, n_samples):
    """Largest deviation of means of +-1 variables in standard errors."""
    return np.abs((estimates - exact) / np.sqrt((1 - exact**2) / n_samples)).max()


@pytest.mark.parametrize("engine", ENGINES)
def test_thirteen_variables(engine):
    """More than one row: enumeration draws the row (nodes 0 to 2) first and the column second."""
    model = random_model(gb.graphs.random(13, 0.4, random_state=4), 2)
    samples = ask(engine, model).sample(40_000, np.random.default_rng(1))
    exact = ask(Enumeration, model)
    pairs = np.triu_indices(13, 1)
    spins = 2.0 * samples - 1.0
    second = (spins.T @ spins / len(samples))[pairs]
    assert largest_score(second, exact.second_moments[pairs], len(samples)) < 4.5
    assert joint_p_value(samples, exact, [0, 2, 7, 12]) > 1e-3


def test_large_grid():
    model = random_model(gb.graphs.grid(10, 10), 3)
    engine = ask(Elimination, model)
    samples = engine.sample(20_000, np.random.default_rng(2))
    statistics = model.family.mean_statistics(samples)
    assert largest_score(statistics, engine.moments, len(samples)) < 4.5
    assert joint_p_value(samples, engine, [44, 45, 54, 55, 99]) > 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_strong_couplings_draw_only_ground_states(engine):
    model = gb.PairwiseFamily.model(gb.graphs.complete(12), None, np.full(66, 50.0))
    samples = ask(engine, model).sample(4_000, np.random.default_rng(3))
    spins = 2 * samples - 1
    assert (np.abs(spins.sum(axis=1)) == 12).all()
    assert abs(spins[:, 0].mean()) < 4.5 / np.sqrt(4_000)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_generator_decides(engine):
    model = random_model(gb.graphs.grid(3, 4), 5)
    one, again = (ask(engine, model).sample(100, np.random.default_rng(9)) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    assert (one != ask(engine, model).sample(100, np.random.default_rng(10))).any()
    assert ask(engine, model).sample(0, np.random.default_rng(0)).shape == (0, 12)
