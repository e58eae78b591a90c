"""The rate of noisy steps: it falls with the number of interactions of a variable."""

import itertools

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learning import as_learner
from gibbsian.learning.averaging import PolyakMean
from gibbsian.learning.moment_matching import OF_CHAINS, paced_adam
from gibbsian.learning.optimizers import Adam


def test_the_rate_falls_where_variables_have_many_interactions():
    rates = [
        paced_adam(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(n)))).learning_rate for n in (2, 21, 41, 101)
    ]
    np.testing.assert_allclose(rates, [0.05, 0.05, 0.025, 0.01])
    assert paced_adam(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.from_edges([], 3)))) == OF_CHAINS


def test_the_rate_counts_cliques_and_not_edges():
    model = gb.ProductsFamily.model(dict.fromkeys(itertools.combinations(range(12), 3), 0.1), n_variables=12)
    assert paced_adam(model).learning_rate == pytest.approx(1 / 55)  # each variable is in 11 * 10 / 2 triples


@pytest.mark.parametrize("name", ["cd", "pcd", "smci-pcd"])
def test_an_optimizer_of_the_users_own_is_left_alone(name, rng):
    data = gb.Dataset.read(rng.integers(0, 2, (10, 30)))
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(30), data.variables))
    assert as_learner(name).bind(model, data).optimizer.learning_rate == pytest.approx(1 / 29)
    own = Adam(learning_rate=0.05)
    assert as_learner(name, optimizer=own).bind(model, data).optimizer is own


def test_noise_counts_samples_that_repeat_each_other(rng):
    """A gradient of correlated noise about zero: its running mean is as large as the noise says."""
    mean, correlation, state = PolyakMean.start(np.zeros(400)), 0.8, rng.normal(size=400)
    for _ in range(600):
        state = correlation * state + np.sqrt(1 - correlation**2) * rng.normal(size=400)
        mean = mean.add(np.zeros(400), state, np.ones(400))
    rest = np.abs(mean.gradient)
    worst = rest.max() / mean.chain_noise(rest) * np.sqrt(2 * np.log(400))  # late, the noise is so many standard errors
    assert 2.0 < worst < 4.5  # the largest of 400 normal numbers


def test_a_gradient_under_way_is_no_noise(rng):
    mean = PolyakMean.start(np.zeros(50))
    for t in range(300):
        mean = mean.add(np.zeros(50), 1.0 - t / 400 + 0.1 * rng.normal(size=50), np.full(50, 0.1))
    rest = np.abs(mean.gradient)
    assert rest.max() > 5 * mean.chain_noise(rest)
