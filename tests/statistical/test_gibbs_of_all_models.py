"""Gibbs sampling of every kind of model against enumeration: start at p and stay there; start elsewhere, get there."""

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from gibbsian.rng import Key
from gibbsian.sampling import TRANSITIONS, kernel_for
from systems import exact_law, models_with_variables, name_of, random_model_of

# A wrong kernel is off by far more; with the seed fixed the test is deterministic.
SMALLEST_P_VALUE = 1e-4
N_CHAINS = 4_000
# a triangle, so that there is a term of three, and a pendant
GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], 4)
CASES = [case for case in models_with_variables(4) if case[0] != "pairwise"]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def model(request):
    name, variables = request.param
    return random_model_of(name, GRAPH, np.random.default_rng(3), variables, scale=0.8)


def uniform_states(model, rng):
    """One for each chain, drawn at once: a sampler has a generator for each."""
    return rng.integers(0, model.variables.sizes, (N_CHAINS, model.n_variables)).astype(np.int8)


def _stepped(name, model, start, n_sweeps, mask=None, **how):
    """Return chains from some states, after sweeps."""
    kernel = kernel_for(model.family, name, mask)
    return kernel.step(model.theta, kernel.init(len(start), Key.of(11), start), n_sweeps, **how)[0]


def goodness_of_fit(model, states, p):
    numbers = np.ravel_multi_index(tuple(states.T), model.variables.sizes)
    counts = np.bincount(numbers, minlength=p.size)
    enough = p * len(states) > 5
    observed = np.append(counts[enough], counts[~enough].sum())
    expected = np.append(p[enough], p[~enough].sum()) * len(states)
    return stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue


@pytest.mark.parametrize("name", TRANSITIONS.names())
def test_chains_started_at_the_law_stay_there(name, model):
    states, p, _ = exact_law(model)
    rng = np.random.default_rng(11)
    start = states[rng.choice(p.size, size=N_CHAINS, p=p)]
    chains = _stepped(name, model, start, 3)
    assert goodness_of_fit(model, chains.states, p) > SMALLEST_P_VALUE
    chains = _stepped(name, model, start, 3, reverse=True)
    assert goodness_of_fit(model, chains.states, p) > SMALLEST_P_VALUE
    chains = _stepped(name, model, start, 1, n_updates=7)
    assert goodness_of_fit(model, chains.states, p) > SMALLEST_P_VALUE


@pytest.mark.parametrize("name", TRANSITIONS.names())
def test_chains_started_at_random_reach_the_law(name, model):
    _, p, _ = exact_law(model)
    kernel = kernel_for(model.family, name)
    chains = kernel.init(N_CHAINS, Key.of(2))
    assert goodness_of_fit(model, chains.states, p) < 1e-10  # the uniform start is elsewhere
    # from a uniform start the slowest of these laws is 0.03 away after 40 sweeps in random order, and 0.0002 after 160
    chains, _ = kernel.step(model.theta, chains, 160)
    assert goodness_of_fit(model, chains.states, p) > SMALLEST_P_VALUE


@pytest.mark.parametrize("shape", ["common", "by chain"])
@pytest.mark.parametrize("name", TRANSITIONS.names())
def test_free_variables_follow_the_conditional_law(name, model, shape):
    rng = np.random.default_rng(4)
    nodes = [0, 3]
    start = uniform_states(model, rng)
    start[:, nodes] = start[0, nodes]
    clamped = np.isin(np.arange(model.n_variables), nodes)
    mask = clamped if shape == "common" else np.tile(clamped, (N_CHAINS, 1))
    chains = _stepped(name, model, start, 40, mask)
    assert (chains.states[:, nodes] == start[0, nodes]).all()
    rest, _ = model.given(nodes, start[0, nodes])
    _, p, _ = exact_law(rest)
    assert goodness_of_fit(rest, chains.states[:, ~clamped], p) > SMALLEST_P_VALUE
