"""Every exact engine on the price list against sums over all states, for every model that it serves."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from gibbsian.inference import ENGINES, exact, plan_exact, predict_cost
from gibbsian.models.base import Layered, keeps
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.layers.units import as_units
from layered_systems import all_codes, all_values, network_of, random_machine, stack
from systems import ask, exact_law, models_with_variables, name_of, random_model_of

GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)


def _flat(kind, variables):
    return lambda rng: random_model_of(kind, GRAPH, rng, variables, scale=0.8)


def _full_span(rng):
    functions = dict(zip([1, 5, 7, 23], rng.normal(size=4), strict=True))
    return gb.FullSpanFamily.model(functions, gb.Variables.categories((2, 3, 4)))


def _stack(kind, rng):
    layers = [as_units(unit, size) for unit, size in (("binary", 3), ("spin", 2), ("binary", 2))]
    if kind == "deep":
        zeros = stack(layers)
        return zeros.replace(rng.normal(scale=0.8, size=zeros.theta.size))
    machines = [random_machine(lower, upper, rng) for lower, upper in pairwise(layers)]
    return network_of(machines)


MODELS = {
    **{f"{kind}-{name_of(variables)}": _flat(kind, variables) for kind, variables in models_with_variables(5)},
    "full-span": _full_span,
    "restricted": lambda rng: random_machine("binary", "categorical", rng),
    "deep": lambda rng: _stack("deep", rng),
    "belief-network": lambda rng: _stack("network", rng),
}
CASES = [
    (engine, name)
    for engine in ENGINES
    for name, build in MODELS.items()
    if ENGINES.factory(engine).price(build(np.random.default_rng(0)).family) is not None
]
# Layer sums answer log Z, moments and samples only.
WHOLE = [case for case in CASES if ENGINES.trait(case[0], "whole", True)]


def answers_of(case, rng):
    name, model_name = case
    return ask(ENGINES.factory(name), MODELS[model_name](rng))


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def answers(request, rng):
    return answers_of(request.param, rng)


def visible_law(model):
    """All codes of the visible variables, their probabilities, and log Z."""
    if not keeps(model.family, Layered):
        return exact_law(model)
    visible = model.family.layers[0]
    log_weights = model.family.log_evidence(model.theta, all_values(visible))
    log_partition = float(np.logaddexp.reduce(log_weights))
    return all_codes(visible), np.exp(log_weights - log_partition), log_partition


def test_every_engine_serves_some_model_and_every_model_has_an_engine():
    assert {engine for engine, _ in CASES} == set(ENGINES)
    assert {name for _, name in CASES} == set(MODELS)


def test_log_partition_is_the_sum_over_all_states(answers):
    assert answers.log_partition == pytest.approx(visible_law(answers.model)[2], abs=1e-11)


def test_moments_are_the_slopes_of_log_z(answers, rng):
    model = answers.model
    if isinstance(model.family, BeliefNetworkFamily):
        with pytest.raises(gb.errors.ArgumentError, match="no moments"):
            answers.moments  # noqa: B018
        return
    direction, step = rng.normal(size=model.theta.size), 1e-5
    up, down = (visible_law(model.replace(model.theta + s * direction))[2] for s in (step, -step))
    slope = answers.moments @ direction
    assert slope == pytest.approx((up - down) / (2 * step), abs=1e-7)


def test_samples_have_the_distribution(answers, rng):
    states, probabilities, _ = visible_law(answers.model)
    drawn = answers.sample(20_000, rng)
    counts = [(drawn == state).all(axis=1).sum() for state in states]
    assert sum(counts) == len(drawn)
    assert stats.chisquare(counts, 20_000 * probabilities).pvalue > 1e-4


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: "-".join(case))
def test_marginals_and_the_mode(case, rng):
    answers = answers_of(case, rng)
    model = answers.model
    states, probabilities, _ = visible_law(model)
    table = np.zeros(np.array(model.variables.sizes)[[2, 0]])
    np.add.at(table, (states[:, 2], states[:, 0]), probabilities)
    np.testing.assert_allclose(answers.marginal([2, 0]), table, atol=1e-12)
    state, log_probability = answers.mode
    assert log_probability == pytest.approx(np.log(probabilities.max()), abs=1e-11)
    assert model.log_weights(state[None])[0] == pytest.approx(model.log_weights(states).max(), abs=1e-11)


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: "-".join(case))
def test_means_and_second_moments(case, rng):
    answers = answers_of(case, rng)
    variables = answers.model.variables
    if variables.scores is None:
        with pytest.raises(gb.errors.ArgumentError, match="not numbers"):
            answers.means  # noqa: B018
        return
    states, probabilities, _ = visible_law(answers.model)
    numbers = variables.scores_of(states)
    np.testing.assert_allclose(answers.means, probabilities @ numbers, atol=1e-12)
    np.testing.assert_allclose(answers.second_moments, (numbers.T * probabilities) @ numbers, atol=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if case not in WHOLE], ids=lambda case: "-".join(case))
@pytest.mark.parametrize("question", ["means", "second_moments", "mode"])
def test_what_sums_over_layers_do_not_know_is_refused(case, question, rng):
    with pytest.raises(gb.errors.ArgumentError, match=f"{question} is not known by a sum over"):
        getattr(answers_of(case, rng), question)


def test_one_engine_answers_at_any_parameters(answers, rng):
    """What an engine has planned or computed must not depend on the parameters it was asked at."""
    engine, first = answers.engine, answers.log_partition
    theta = rng.normal(size=answers.theta.size)
    other = engine.at(theta)
    assert other.log_partition == ask(type(engine), answers.model.replace(theta)).log_partition
    one, again = (answers.sample(3, np.random.default_rng(0)) for answers in (other, engine.at(theta)))
    np.testing.assert_array_equal(one, again)
    assert engine.at(answers.theta).log_partition == first


@pytest.mark.parametrize("name", MODELS)
def test_the_cheapest_is_chosen_and_once(name, rng, monkeypatch):
    model = MODELS[name](rng)
    prices = [ENGINES.factory(engine).price(model.family) for engine in ENGINES]
    assert predict_cost(model.family).seconds == min(price.seconds for price in prices if price is not None)
    answers, engine = exact(model), plan_exact(model.family)
    assert engine.cost == predict_cost(model.family)
    monkeypatch.setattr("gibbsian.inference.engine._offers", None)
    assert type(engine) is type(answers.engine)
    assert engine.at(model.theta).log_partition == answers.log_partition
