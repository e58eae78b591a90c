"""Block Gibbs chains of restricted machines."""

import numpy as np
import pytest
from scipy import stats

from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.models.layers.units import codes_of
from gibbsian.rng import Key
from gibbsian.sampling import draw_layers, kernel_for
from layered_systems import PAIRS, all_values, log_likelihood, random_machine


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_steps_keep_the_exact_distribution(rng, visible, hidden):
    """Chains that start at the law stay there: moments within their errors."""
    model = random_machine(visible, hidden, rng, 4, 3, scale=0.5)
    engine = exact(model)
    v, hidden_values = engine.sample_layers(20_000, rng)
    states = np.hstack([codes_of(layer, x) for layer, x in zip(model.family.layers, (v, hidden_values), strict=True)])
    kernel = kernel_for(model.family)
    moved = model.family.encode(kernel.step(model.theta, kernel.init(20_000, Key.of(1), states), 3)[0].states)[0]
    h = model.hidden_means(moved)
    found = model.family.statistics_of([moved, h])
    rows = np.concatenate([moved, h, np.einsum("mi,mj->mij", moved, h).reshape(len(v), -1)], axis=1)
    error = rows.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(found - engine.moments) < 4.5 * error + 1e-12).all()


def test_draws_have_the_law(rng):
    model = random_machine("binary", "spin", rng, 3, 2, scale=0.7)
    v, h = draw_layers(model, 20_000, rng, n_chains=2000, burn_in=50, thin=20)
    assert v.shape == (2000, 10, 3)
    assert h.shape == (2000, 10, 2)
    numbers = v.reshape(-1, 3) @ [1, 2, 4]
    expected = np.exp(log_likelihood(model, all_values(model.visible)))
    assert stats.chisquare(np.bincount(numbers.astype(int), minlength=8), 20_000 * expected).pvalue > 1e-3


def test_same_seed_same_draws(rng):
    model = random_machine("spin", "spin", rng)
    first, second = (draw_layers(model, 10, 3, n_chains=5, burn_in=2) for _ in range(2))
    assert all((a == b).all() for a, b in zip(first, second, strict=True))


def test_bad_arguments_are_refused(rng):
    model = random_machine("spin", "spin", rng)
    with pytest.raises(ArgumentError, match="thin=0"):
        draw_layers(model, 5, thin=0)
    with pytest.raises(ArgumentError, match="states has shape"):
        draw_layers(model, 5, n_chains=5, states=np.ones((5, 4)))
