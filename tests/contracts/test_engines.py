"""Every exact engine on the price list against sums over all states, for every model that it serves."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from gibbsian.inference import ENGINES, exact, plan_exact, predict_cost
from gibbsian.models import FullSpanModel
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.layers import as_layer
from layered_systems import all_values, random_machine
from systems import exact_law, models_with_domains, random_model_of

GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)


def _flat(name, domain):
    return lambda rng: random_model_of(name, GRAPH, rng, domain, scale=0.8)


def _full_span(rng):
    return FullSpanModel.build((2, 3, 4), [1, 5, 7, 23], rng.normal(size=4))


def _stack(kind, rng):
    layers = [as_layer(unit, size) for unit, size in (("binary", 3), ("spin", 2), ("binary", 2))]
    if kind == "deep":
        zeros = DeepModel.build(layers)
        return zeros.replace(rng.normal(scale=0.8, size=zeros.theta.size))
    machines = [random_machine(lower, upper, rng) for lower, upper in pairwise(layers)]
    return BeliefNetwork.stack(machines)


MODELS = {
    **{f"{name}-{domain.name}": _flat(name, domain) for name, domain in models_with_domains(5)},
    "full-span": _full_span,
    "restricted": lambda rng: random_machine("binary", "categorical", rng),
    "deep": lambda rng: _stack("deep", rng),
    "belief-network": lambda rng: _stack("network", rng),
}
CASES = [
    (engine, name)
    for engine in ENGINES
    for name, build in MODELS.items()
    if ENGINES.factory(engine).price(build(np.random.default_rng(0))) is not None
]
# Layer sums answer log Z, moments and samples only.
WHOLE = [case for case in CASES if ENGINES.trait(case[0], "whole", True)]


def build_engine(case, rng):
    name, model_name = case
    return ENGINES.factory(name)(MODELS[model_name](rng))


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def engine(request, rng):
    return build_engine(request.param, rng)


def visible_law(model):
    """All states of the visible variables, their probabilities, and log Z."""
    if not hasattr(model, "folded"):
        return exact_law(model)
    states = model.visible.decode(all_values(model.visible))
    log_weights = model.log_weights(states)
    log_partition = float(np.logaddexp.reduce(log_weights))
    return states, np.exp(log_weights - log_partition), log_partition


def test_every_engine_serves_some_model_and_every_model_has_an_engine():
    assert {engine for engine, _ in CASES} == set(ENGINES)
    assert {name for _, name in CASES} == set(MODELS)


def test_log_partition_is_the_sum_over_all_states(engine):
    assert engine.log_partition() == pytest.approx(visible_law(engine.model)[2], abs=1e-11)


def test_moments_are_the_slopes_of_log_z(engine, rng):
    model = engine.model
    if isinstance(model, BeliefNetwork):
        with pytest.raises(gb.errors.ArgumentError, match="no moments"):
            engine.moments()
        return
    moments = engine.moments()
    assert moments.log_partition == pytest.approx(engine.log_partition(), abs=1e-12)
    direction, step = rng.normal(size=model.theta.size), 1e-5
    up, down = (visible_law(model.replace(model.theta + s * direction))[2] for s in (step, -step))
    slope = moments.statistics @ direction
    assert slope == pytest.approx((up - down) / (2 * step), abs=1e-7)


def test_samples_have_the_distribution(engine, rng):
    states, probabilities, _ = visible_law(engine.model)
    drawn = engine.sample(20_000, rng)
    counts = [(drawn == state).all(axis=1).sum() for state in states]
    assert sum(counts) == len(drawn)
    assert stats.chisquare(counts, 20_000 * probabilities).pvalue > 1e-4


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: "-".join(case))
def test_marginals_and_the_most_probable_state(case, rng):
    engine = build_engine(case, rng)
    model = engine.model
    states, probabilities, _ = visible_law(model)
    codes = model.domain.to_codes(states)
    table = np.zeros(model.domain.cardinalities(model.n_variables)[[2, 0]])
    np.add.at(table, (codes[:, 2], codes[:, 0]), probabilities)
    np.testing.assert_allclose(engine.marginal([2, 0]), table, atol=1e-12)
    state, log_probability = engine.most_probable()
    assert log_probability == pytest.approx(np.log(probabilities.max()), abs=1e-11)
    assert model.log_weights(state[None])[0] == pytest.approx(model.log_weights(states).max(), abs=1e-11)


def test_the_same_engine_at_other_parameters(engine, rng):
    """What is handed on must not depend on the parameters."""
    engine.log_partition()
    other = engine.model.replace(rng.normal(size=engine.model.theta.size))
    assert engine.at(other).model is other
    assert engine.at(other).log_partition() == type(engine)(other).log_partition()


@pytest.mark.parametrize("name", MODELS)
def test_the_cheapest_is_chosen_and_once(name, rng, monkeypatch):
    model = MODELS[name](rng)
    prices = [ENGINES.factory(engine).price(model) for engine in ENGINES]
    assert predict_cost(model).seconds == min(price.seconds for price in prices if price is not None)
    chosen, plan = exact(model), plan_exact(model)
    assert chosen.cost == predict_cost(model)
    monkeypatch.setattr(sys.modules["gibbsian.inference.choice"], "_offers", None)
    assert type(plan(model)) is type(chosen)
    assert plan(model).log_partition() == chosen.log_partition()
