"""Parallel tempering of restricted machines: its law, its exchanges, and what it is for."""

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian.models.layers.units import SpinUnits
from gibbsian.old_sampling import BlockGibbs, Tempering, layer_path
from gibbsian.old_sampling.layer_paths import IndependentUnits
from gibbsian.old_sampling.tempering import TemperedState
from layered_systems import Machine, all_values, random_machine, restricted

KINDS = [("binary", "binary"), ("spin", "spin"), ("categorical", "binary")]


def start_at_the_distributions(path, ladder, n_chains, rng) -> TemperedState:
    """Every copy drawn from the distribution of its own inverse temperature."""
    v = all_values(path.stack.family.layers[0])
    copies = []
    for beta in ladder:
        log_weights = path.log_weights(v, path.features(v), beta)
        shares = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        copies.append(v[rng.choice(len(v), n_chains, p=shares)])
    return TemperedState(np.stack(copies), np.array(0))


@pytest.mark.parametrize(("visible", "hidden"), KINDS)
def test_every_temperature_keeps_its_distribution(rng, visible, hidden):
    model = random_machine(visible, hidden, rng, 4, 3, scale=1.0)
    base = IndependentUnits((rng.normal(size=model.visible.width), rng.normal(size=model.hidden.width)))
    sampler = Tempering(betas=np.array([0.0, 0.4, 0.8, 1.0]))
    n_chains = 20_000
    path, v = layer_path(model, base), all_values(model.visible)
    state = start_at_the_distributions(path, sampler.ladder, n_chains, rng)
    state, info = sampler.step(path, state, rng, n_steps=4)
    assert int(state.n_steps) == 4
    assert ((info.swap_rates > 0.1) & (info.swap_rates < 1)).all()
    for copies, beta in zip(state.values, sampler.ladder, strict=True):
        log_weights = path.log_weights(v, path.features(v), beta)
        shares = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        means = shares @ v
        error = np.sqrt((shares @ (v - means) ** 2) / n_chains)
        assert (np.abs(copies.mean(axis=0) - means) < 4.5 * error).all()


def test_swap_rates_are_those_of_the_exact_distributions(rng):
    model = random_machine("spin", "spin", rng, 4, 3, scale=1.0)
    sampler = Tempering(betas=np.array([0.3, 1.0]))
    path, v = layer_path(model, "biases"), all_values(model.visible)
    low, high = (path.log_weights(v, path.features(v), beta) for beta in (0.3, 1.0))
    laws = [np.exp(x - np.logaddexp.reduce(x)) for x in (low, high)]
    gain = high - low
    expected = laws[0] @ np.minimum(1.0, np.exp(gain[:, None] - gain)) @ laws[1]
    state = start_at_the_distributions(path, sampler.ladder, 40_000, rng)
    _, info = sampler.step(path, state, rng)
    assert abs(info.swap_rates[0] - expected) < 4 * np.sqrt(expected * (1 - expected) / 40_000)


def two_modes() -> Machine:
    """All spins up or all down, and nothing between."""
    return restricted(SpinUnits(20), SpinUnits(10), w=np.full((20, 10), 0.35))


def test_crosses_between_modes_where_plain_chains_do_not():
    model, rng = two_modes(), np.random.default_rng(0)
    start = np.ones((200, 20))
    plain = BlockGibbs().step(model, BlockGibbs().init(model, 200, rng, [start]), rng, 300)[0].values[0]
    sampler, path = Tempering(betas=10), layer_path(model, "biases")
    state, info = sampler.step(path, sampler.init(path, 200, rng, start), rng, 300)
    assert (plain.mean(axis=1) > 0).mean() > 0.95
    up = (state.values[-1].mean(axis=1) > 0).mean()
    assert abs(up - 0.5) < 4 * 0.5 / np.sqrt(200)
    assert (info.swap_rates > 0.05).all()


def test_adapted_temperatures_exchange_equally_often():
    model, rng = two_modes(), np.random.default_rng(1)
    sampler, path = Tempering(betas=6), layer_path(model, "biases")
    adapted = sampler.adapted(path, rng)
    rates = []
    for chosen in (sampler, adapted):
        state, _ = chosen.step(path, chosen.init(path, 200, rng), rng, 100)
        rates.append(chosen.step(path, state, rng, 100)[1].swap_rates)
    assert rates[1].min() > rates[0].min()
    assert np.ptp(rates[1]) < np.ptp(rates[0])


def test_stepping_twice_is_stepping_on(rng):
    """The state holds all there is: half the steps twice are all steps at once."""
    model = random_machine("binary", "spin", rng)
    sampler, path = Tempering(betas=4), layer_path(model, "biases")
    start = sampler.init(path, 5, np.random.default_rng(0))
    together, _ = sampler.step(path, start, np.random.default_rng(1), 3)
    generator = np.random.default_rng(1)
    first, _ = sampler.step(path, start, generator, 1)
    second, _ = sampler.step(path, first, generator, 2)
    assert (together.values == second.values).all()


def test_bad_ladders_are_refused():
    for betas in (1, np.array([0.5, 0.2, 1.0]), np.array([0.0, 0.9]), np.array([-0.1, 1.0])):
        with pytest.raises(ArgumentError, match="betas"):
            Tempering(betas=betas)
