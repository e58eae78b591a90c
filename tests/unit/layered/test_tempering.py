"""Parallel tempering of restricted machines: its law, its exchanges, and what it is for."""

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.layered.paths import IndependentUnits, LayerPath
from gibbsian.layered.phases import FREE_PHASES
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.sampling import gibbs_steps
from gibbsian.layered.tempering import TemperedChains, TemperedPhase, TemperedState
from gibbsian.models.layers import SpinLayer
from gibbsian.models.restricted import RestrictedModel
from layered_systems import all_values, random_machine

KINDS = [("binary", "binary"), ("spin", "spin"), ("categorical", "binary")]


def start_at_the_law(model, base, ladder, n_chains, rng) -> TemperedState:
    """Every copy drawn from the law of its own inverse temperature."""
    path = LayerPath(model, base)
    v = all_values(model.visible)
    copies = []
    for beta in ladder:
        log_weights = path.log_weights(v, path.products(v), beta)
        shares = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        copies.append(v[rng.choice(len(v), n_chains, p=shares)])
    return TemperedState(np.stack(copies), base.visible, base.hidden, np.array(0))


@pytest.mark.parametrize(("visible", "hidden"), KINDS)
def test_every_temperature_keeps_its_law(rng, visible, hidden):
    model = random_machine(visible, hidden, rng, 4, 3, scale=1.0, temperature=1.2)
    base = IndependentUnits(rng.normal(size=model.visible.width), rng.normal(size=model.hidden.width))
    sampler = TemperedChains(betas=np.array([0.0, 0.4, 0.8, 1.0]))
    n_chains = 20_000
    state = start_at_the_law(model, base, sampler.ladder, n_chains, rng)
    state, info = sampler.step(model, state, rng, n_steps=4)
    assert int(state.n_steps) == 4
    assert ((info.swap_rates > 0.1) & (info.swap_rates < 1)).all()
    path, v = LayerPath(model, base), all_values(model.visible)
    for copies, beta in zip(state.values, sampler.ladder, strict=True):
        log_weights = path.log_weights(v, path.products(v), beta)
        shares = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        means = shares @ v
        error = np.sqrt((shares @ (v - means) ** 2) / n_chains)
        assert (np.abs(copies.mean(axis=0) - means) < 4.5 * error).all()


def test_swap_rates_are_those_of_the_exact_laws(rng):
    model = random_machine("spin", "spin", rng, 4, 3, scale=1.0)
    base = IndependentUnits.biases(model)
    sampler = TemperedChains(betas=np.array([0.3, 1.0]))
    path, v = LayerPath(model, base), all_values(model.visible)
    low, high = (path.log_weights(v, path.products(v), beta) for beta in (0.3, 1.0))
    laws = [np.exp(x - np.logaddexp.reduce(x)) for x in (low, high)]
    gain = high - low
    expected = laws[0] @ np.minimum(1.0, np.exp(gain[:, None] - gain)) @ laws[1]
    state = start_at_the_law(model, base, sampler.ladder, 40_000, rng)
    _, info = sampler.step(model, state, rng)
    assert abs(info.swap_rates[0] - expected) < 4 * np.sqrt(expected * (1 - expected) / 40_000)


def two_modes() -> RestrictedModel:
    """All spins up or all down, and nothing between."""
    return RestrictedModel.build(SpinLayer(20), SpinLayer(10), weights=np.full((20, 10), 0.35))


def test_crosses_between_modes_where_plain_chains_do_not():
    model, rng = two_modes(), np.random.default_rng(0)
    start = np.ones((200, 20))
    plain = gibbs_steps(model, start, 300, rng)
    sampler = TemperedChains(betas=10, base="biases")
    state, info = sampler.step(model, sampler.init(model, 200, rng, start), rng, 300)
    assert (plain.mean(axis=1) > 0).mean() > 0.95
    up = (state.values[-1].mean(axis=1) > 0).mean()
    assert abs(up - 0.5) < 4 * 0.5 / np.sqrt(200)
    assert (info.swap_rates > 0.05).all()


def test_adapted_temperatures_exchange_equally_often():
    model, rng = two_modes(), np.random.default_rng(1)
    sampler = TemperedChains(betas=6, base="biases")
    adapted = sampler.adapted(model, rng)
    rates = []
    for chosen in (sampler, adapted):
        state, _ = chosen.step(model, chosen.init(model, 200, rng), rng, 100)
        rates.append(chosen.step(model, state, rng, 100)[1].swap_rates)
    assert rates[1].min() > rates[0].min()
    assert np.ptp(rates[1]) < np.ptp(rates[0])


def test_phase_gives_the_moments_of_the_machine():
    model, rng = two_modes(), np.random.default_rng(2)
    phase = FREE_PHASES.create("tempering", n_chains=400, n_steps=5, betas=8)
    assert phase == TemperedPhase(n_steps=5, n_chains=400, betas=8)
    rows = LayerRows(np.array([[1] * 20, [-1] * 20], np.int8))
    state = phase.init(model, rows, rng)
    for _ in range(40):
        moments, state = phase(model, state, rows.states, rng)
    truth = exact(model).moments().statistics
    found = np.concatenate([moments.visible, moments.hidden, moments.products.ravel()])
    assert np.abs(found - truth).max() < 4.5 / np.sqrt(400)


def test_stepping_twice_is_stepping_on(rng):
    """The state holds all there is: half the steps twice are all steps at once."""
    model = random_machine("binary", "spin", rng)
    sampler = TemperedChains(betas=4, base="biases")
    start = sampler.init(model, 5, np.random.default_rng(0))
    together, _ = sampler.step(model, start, np.random.default_rng(1), 3)
    generator = np.random.default_rng(1)
    first, _ = sampler.step(model, start, generator, 1)
    second, _ = sampler.step(model, first, generator, 2)
    assert (together.values == second.values).all()


def test_bad_ladders_are_refused():
    for betas in (1, np.array([0.5, 0.2, 1.0]), np.array([0.0, 0.9]), np.array([-0.1, 1.0])):
        with pytest.raises(ArgumentError, match="betas"):
            TemperedChains(betas=betas)
