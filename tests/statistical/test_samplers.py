"""Samplers against enumeration: start exactly at p and stay there; start elsewhere and get there."""

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from gibbsian import Variables
from gibbsian.expectations.sampled import monte_carlo
from gibbsian.rng import Key
from gibbsian.sampling import TRANSITIONS, kernel_for
from systems import take

# A wrong kernel is off by far more; with the seed fixed the test is deterministic.
SMALLEST_P_VALUE = 1e-4

GRAPHS = {
    "dense": gb.graphs.complete(5),
    # a cycle and a pendant node
    "sparse": gb.graphs.from_edges([(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)], 5),
}


@pytest.fixture(params=["dense", "sparse"])
def kind(request, monkeypatch):
    """Which kernels run: small models are dense whatever their graph, so the rule is replaced."""
    monkeypatch.setattr(gb.Graph, "is_dense", request.param == "dense")
    return request.param


def random_model(kind, scores, temperature, seed=3):
    rng = np.random.default_rng(seed)
    graph = GRAPHS[kind]
    biases, couplings = rng.normal(0, 0.5, graph.n_nodes), rng.normal(0, 0.8, graph.n_edges)
    return gb.PairwiseFamily.model(graph, biases, couplings, scores).at(1 / temperature)


def all_states(model):
    return ((np.arange(2**model.n_variables)[:, None] >> np.arange(model.n_variables)) & 1).astype(np.int8)


def enumerate_law(model):
    states = all_states(model)
    weights = model.log_weights(states)
    p = np.exp(weights - weights.max())
    return states, p / p.sum()


def _stepped(name, model, start, n_sweeps, mask=None, **how):
    """Return chains from some states, after sweeps."""
    kernel = kernel_for(model.family, name, mask)
    return kernel.step(model.theta, kernel.init(len(start), Key.of(11), start), n_sweeps, **how)[0]


def goodness_of_fit(model, states, p):
    counts = np.bincount(states @ (1 << np.arange(model.n_variables)), minlength=p.size)
    enough = p * len(states) > 5
    observed = np.append(counts[enough], counts[~enough].sum())
    expected = np.append(p[enough], p[~enough].sum()) * len(states)
    return stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("name", TRANSITIONS.names())
def test_chains_started_at_the_law_stay_there(name, kind, scores, temperature):
    model = random_model(kind, scores, temperature)
    states, p = enumerate_law(model)
    rng = np.random.default_rng(11)
    n_chains = 8_000
    start = states[rng.choice(p.size, size=n_chains, p=p)]
    chains = _stepped(name, model, start, 3)
    assert goodness_of_fit(model, chains.states, p) > SMALLEST_P_VALUE
    chains = _stepped(name, model, start, 3, reverse=True)
    assert goodness_of_fit(model, chains.states, p) > SMALLEST_P_VALUE
    chains = _stepped(name, model, start, 1, n_updates=7)
    assert goodness_of_fit(model, chains.states, p) > SMALLEST_P_VALUE


@pytest.mark.parametrize("name", TRANSITIONS.names())
def test_few_long_chains_visit_states_by_their_probability(name, kind):
    """Few chains take other kernels than many."""
    model = random_model(kind, Variables.spins, 1.0)
    _, p = enumerate_law(model)
    draws = gb.sampling.draw(model, 3_000, 5, name, n_chains=3, burn_in=50, thin=40)
    assert goodness_of_fit(model, draws.reshape(-1, model.n_variables), p) > SMALLEST_P_VALUE


@pytest.mark.parametrize("name", TRANSITIONS.names())
def test_chains_started_at_random_reach_the_law(name, kind):
    model = random_model(kind, Variables.binary, 1.0)
    _, p = enumerate_law(model)
    kernel = kernel_for(model.family, name)
    chains = kernel.init(8_000, Key.of(2))
    assert goodness_of_fit(model, chains.states, p) < 1e-10  # the uniform start is elsewhere
    chains, _ = kernel.step(model.theta, chains, 60)
    assert goodness_of_fit(model, chains.states, p) > SMALLEST_P_VALUE


@pytest.mark.parametrize("shape", ["common", "by chain"])
@pytest.mark.parametrize("name", TRANSITIONS.names())
def test_free_variables_follow_the_conditional_law(name, kind, shape):
    model = random_model(kind, Variables.spins, 1.0)
    n_chains, nodes, values = 8_000, [1, 3], [1, 0]
    rng = np.random.default_rng(4)
    start = rng.choice([0, 1], size=(n_chains, model.n_variables))
    start[:, nodes] = values
    clamped = np.isin(np.arange(model.n_variables), nodes)
    mask = clamped if shape == "common" else np.tile(clamped, (n_chains, 1))
    chains = _stepped(name, model, start, 60, mask)
    assert (chains.states[:, nodes] == values).all()
    rest, _ = model.given(nodes, values)
    _, p = enumerate_law(rest)
    assert goodness_of_fit(rest, chains.states[:, ~clamped], p) > SMALLEST_P_VALUE


def test_monte_carlo_errors_are_honest():
    """Over many runs the z-scores of the mean have the spread of a t distribution."""
    model = random_model("dense", Variables.spins, 3.0)
    states, p = enumerate_law(model)
    exact = model.family.mean_statistics(states, p)
    expectation = monte_carlo(n_chains=50, n_draws=20, burn_in=50, warn=False)
    z = []
    for seed in range(40):
        estimate = take(expectation, model, seed=seed)
        z.append((estimate.value - exact) / estimate.stderr)
    assert 0.85 < np.std(z) < 1.15
    assert abs(np.mean(z)) < 0.2
