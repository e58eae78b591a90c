"""TA22's data sets and Table 1: basis sizes and divergences in the paper's range."""

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian.learning.span.moves import refit, refreshed
from gibbsian.models import FullSpanFamily
from gibbsian_reproduction.ta22_data import TA22_NAMES, ising_probabilities, make_ta22, network_probabilities
from span_fits import basis_of, fit, problem_of, table_of

BINARY_20 = (2,) * 20
BITS = 2 ** np.arange(20)


def learned(sample, **settings):
    found = fit(*sample.counted(), BINARY_20, **settings)
    p = table_of(found.model).values
    assert found.converged
    assert sample.empirical_divergence(p) == pytest.approx(found.divergence, abs=1e-9)
    return found.model.family, sample.divergence(p)


# -- the generators ---------------------------------------------------------------------------------------------------
def test_ising_probabilities_are_those_of_the_paper():
    p = ising_probabilities(3, 2)
    states = np.array(list(np.ndindex((2,) * 6)))
    spins = 2.0 * states - 1.0
    edges = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    weights = np.exp(0.5 * sum(spins[:, i] * spins[:, j] for i, j in edges))
    assert np.allclose(p, weights / weights.sum(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("n_parents", [2, 3])
def test_networks_have_terms_of_their_order_and_no_higher(n_parents):
    """log p is a sum of functions of a node and its parents: the Walsh coefficients of all others are zero."""
    n = 8
    p = network_probabilities(n_parents, np.random.default_rng(3), n_variables=n)
    basis = basis_of((2,) * n)
    signs = basis.values(np.arange(2**n), basis.digits(np.arange(2**n)))
    coefficients = signs.T @ np.log(p) / 2**n
    orders = basis.orders(np.arange(2**n))
    assert p.sum() == pytest.approx(1.0)
    assert np.abs(coefficients[orders > n_parents + 1]).max() < 1e-12
    assert np.abs(coefficients[orders == n_parents + 1]).max() > 1e-3
    families = np.count_nonzero(np.abs(coefficients[orders == n_parents + 1]) > 1e-9)
    assert families <= n - n_parents  # one for each node with all its parents


@pytest.mark.parametrize("name", ["Ising5x4L", "BN20-54L"])
def test_rows_come_from_their_distribution(name):
    sample = make_ta22(name, random_state=4)
    assert sample.states.shape == (100_000, 20)
    marginal = sample.probabilities.reshape(2**6, -1).sum(axis=1)
    seen = np.bincount(basis_of((2,) * 6).numbers(sample.states[:, :6]), minlength=64)
    deviations = (seen - 1e5 * marginal) / np.sqrt(1e5 * marginal)
    assert np.sum(deviations**2) < 64 + 5 * np.sqrt(2 * 64)


def test_the_same_seed_gives_the_same_network_to_both_sizes():
    small, large = (make_ta22(f"BN20-37{size}", random_state=2) for size in "SL")
    assert np.array_equal(small.probabilities, large.probabilities)
    assert len(small.states) == 1000
    assert not np.array_equal(small.probabilities, make_ta22("BN20-37S", random_state=3).probabilities)


def test_names_are_checked():
    assert len(TA22_NAMES) == 6
    with pytest.raises(ArgumentError, match="name='BN20-37' must be one of Ising5x4S"):
        make_ta22("BN20-37")


# -- Table 1 ----------------------------------------------------------------------------------------------------------
def grid_edges():
    node = np.arange(20).reshape(4, 5)
    pairs = [*zip(node[:, :-1].ravel(), node[:, 1:].ravel(), strict=True)]
    pairs += zip(node[:-1].ravel(), node[1:].ravel(), strict=True)
    return {tuple(int(i) for i in pair) for pair in pairs}


def test_few_ising_rows_show_the_edges():
    family, divergence = learned(make_ta22("Ising5x4S", random_state=0))
    assert 29 <= family.n_parameters <= 33  # TA22: 31
    assert 0.005 < divergence < 0.03  # TA22: 0.012
    assert len(grid_edges() & set(family.scopes)) >= 29


def test_many_ising_rows_show_exactly_the_edges_at_a_small_tolerance():
    sample = make_ta22("Ising5x4L", random_state=0)
    coarse, coarse_divergence = learned(sample, tol=1e-4)
    fine, fine_divergence = learned(sample, tol=1e-6)
    assert 31 <= coarse.n_parameters <= 55  # TA22: 37
    assert coarse_divergence < 0.012  # TA22: 0.004
    assert set(fine.scopes) == grid_edges()
    assert fine_divergence < 5e-4


@pytest.mark.parametrize(
    ("name", "size", "wanted"), [("BN20-37S", 41, 0.23), ("BN20-54S", 54, 0.49), ("BN20-37L", 103, 0.028)]
)
def test_networks_are_learned_as_well_as_others_of_their_kind_and_better_than_by_pairs(name, size, wanted):
    """Functions and divergences are near the means over four other networks in docs/reproduce.md."""
    sample = make_ta22(name, random_state=0)
    family, divergence = learned(sample)
    assert family.n_parameters == pytest.approx(size, rel=0.2)
    assert wanted / 1.6 < divergence < 1.6 * wanted
    problem = problem_of(*sample.counted(), BINARY_20)
    pairs = np.concatenate([BITS, (BITS[:, None] + BITS)[np.triu_indices(20, 1)]])
    machine = refit(problem, refreshed(problem, problem.new_table(), pairs, np.zeros(210)))
    assert np.allclose(machine.dual[pairs], problem.targets(pairs), rtol=0, atol=1e-7)  # the pairwise maximum
    by_pairs = FullSpanFamily(problem.basis, pairs).probabilities(machine.theta).values
    assert sample.divergence(by_pairs) > 1.2 * divergence
