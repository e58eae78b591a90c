"""Learning by spatial Monte Carlo integration: solvers, codings, every kind of model, and when there is no solution."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.learning import MomentMatching, as_learner, run
from gibbsian.learning.optimizers import Anderson, Ascent
from gibbsian.learning.preconditioners import preconditioning
from gibbsian.models.scopes import Scopes
from systems import BINARY, SPINS, dataset_of, exact_law, products_of_order, random_model, sampled_data

GRID = gb.graphs.grid(4, 4)


@pytest.fixture(scope="module")
def grid_data():
    rng = np.random.default_rng(5)
    model = gb.Model(gb.PairwiseFamily(GRID), rng.uniform(-0.3, 0.3, GRID.n_edges + 16))
    return dataset_of(gb.inference.exact(model).sample(1000, rng), model.variables)


def fit(data, learner, graph=GRID, seed=0, **limits):
    start = gb.Model.zeros(gb.PairwiseFamily(graph, data.variables))
    return run(learner, start, data, np.random.default_rng(seed), **limits)


@pytest.mark.parametrize("region", [1, "s2"])
def test_root_finder_lands_where_plain_ascent_does_in_under_20_evaluations(grid_data, region):
    fast = fit(grid_data, as_learner("smci", region=region), tol=1e-8)
    plain = fit(
        grid_data, as_learner("smci", region=region, optimizer=Ascent(learning_rate=0.2), centred=False), tol=1e-8
    )
    assert fast.converged
    assert plain.converged
    assert fast.n_steps < 20 < plain.n_steps
    np.testing.assert_allclose(fast.model.theta, plain.model.theta, atol=1e-6)


def test_larger_regions_come_nearer_the_maximum_likelihood(grid_data):
    best = fit(grid_data, as_learner("mle"), tol=1e-8).model.parts.couplings
    names = {"mple": as_learner("mple"), **{str(r): as_learner("smci", region=r) for r in (1, "s2", 2)}}
    errors = {
        name: np.abs(fit(grid_data, learner).model.parts.couplings - best).mean() for name, learner in names.items()
    }
    assert errors["mple"] > 2 * errors["1"]
    assert errors["1"] > 2 * errors["s2"] > 2 * errors["2"]


def test_whole_system_as_region_is_maximum_likelihood(grid_data):
    small = dataset_of(grid_data.states[:, :6], SPINS(6), grid_data.weights)
    graph = gb.graphs.grid(2, 3)
    everything = {scope: range(6) for scope in [*((i,) for i in range(6)), *map(tuple, graph.edges.tolist())]}
    spatial = fit(small, as_learner("smci", region=everything), graph, tol=1e-9)
    likelihood = fit(small, as_learner("mle"), graph, tol=1e-9)
    np.testing.assert_allclose(spatial.model.theta, likelihood.model.theta, atol=1e-6)


@pytest.mark.parametrize("order", [2, 3])
def test_coding_does_not_change_the_distribution(order):
    rng = np.random.default_rng(3)
    zeros = gb.Model.zeros(products_of_order(5, order))
    truth = zeros.replace(rng.normal(scale=0.25, size=zeros.theta.size))
    data = sampled_data(truth, 2000, rng)
    spin = run(as_learner("smci"), zeros, data, rng, tol=1e-9)
    binary_zeros = gb.Model.zeros(products_of_order(5, order, BINARY))
    binary = run(as_learner("smci"), binary_zeros, data.convert("binary"), rng, tol=1e-9)
    assert binary.converged
    back, _ = binary.model.family.recode(binary.model.theta, SPINS)
    np.testing.assert_allclose(back.theta, spin.model.theta, atol=1e-6)


@pytest.mark.parametrize("region", [1, "s2"])
def test_exact_weights_give_back_many_valued_models(region, rng):
    zeros = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.grid(2, 2), Variables.categories((2, 3, 2, 3))))
    truth = zeros.replace(rng.normal(scale=0.4, size=zeros.theta.size)).canonical()
    states, law, _ = exact_law(truth)
    data = dataset_of(states, truth.variables, law)
    result = run(as_learner("smci", region=region), zeros, data, rng, tol=1e-9)
    assert result.converged
    np.testing.assert_allclose(result.model.canonical().theta, truth.theta, atol=1e-6)


def test_persistent_chains_come_nearer_than_the_data_as_samples(grid_data):
    """YU20 section 5: where the graph is not that of the data, samples that follow the model are needed."""
    rng = np.random.default_rng(1)
    truth = random_model(gb.graphs.complete(16), rng, scale=0.15)
    data = dataset_of(gb.inference.exact(truth).sample(300, rng), truth.variables)
    best = fit(data, as_learner("mle"), tol=1e-8).model.parts.couplings
    fixed = np.abs(fit(data, as_learner("smci")).model.parts.couplings - best).mean()
    follows = np.abs(fit(data, as_learner("smci-pcd"), max_iter=400).model.parts.couplings - best).mean()
    assert follows < fixed / 3


def test_no_solution_is_detected_and_said():
    rng = np.random.default_rng(0)
    graph = gb.graphs.complete(8)
    dense = gb.Model(gb.PairwiseFamily(graph), rng.normal(scale=0.8, size=graph.n_edges + 8))
    data = dataset_of(gb.inference.exact(dense).sample(40, rng), dense.variables)
    result = fit(data, as_learner("smci"), graph)
    assert not result.converged
    assert "smci-pcd" in result.reason
    assert "l2=0.01" in result.reason


def test_the_remedy_helps():
    rng = np.random.default_rng(0)
    graph = gb.graphs.complete(8)
    dense = gb.Model(gb.PairwiseFamily(graph), rng.normal(scale=0.8, size=graph.n_edges + 8))
    data = dataset_of(gb.inference.exact(dense).sample(40, rng), dense.variables)
    assert fit(data, as_learner("smci", l2=0.01), graph).converged


def test_pseudolikelihood_has_the_larger_variance(rng):
    """Y18 theorem 1, by enumeration: v_ij of MPLE is at least that of 1-SMCI, for every edge."""
    for graph in (gb.graphs.complete(5), gb.graphs.grid(2, 3), gb.graphs.random(6, 0.5, random_state=0)):
        model = random_model(graph, rng, scale=0.8)
        states, law, _ = exact_law(model)
        truth = model.family.mean_statistics(states, law)[model.family.layout.n_biases :]
        by_region = np.array([gb.expectations.spatial_statistics(model, state[None]).value for state in states])
        i, j = graph.edges.T
        spins = model.variables.scores_of(states)
        means = np.tanh(model.parts.biases + model.family.layout.coupling_fields(model.theta)(spins))
        by_pseudolikelihood = (spins[:, i] * means[:, j] + spins[:, j] * means[:, i]) / 2  # Y18 eq. 13
        np.testing.assert_allclose(law @ by_pseudolikelihood, truth, atol=1e-12)
        variance = law @ (by_pseudolikelihood - truth) ** 2
        spatial_variance = law @ (by_region[:, model.family.layout.n_biases :] - truth) ** 2
        assert np.all(variance >= spatial_variance - 1e-13)
        assert variance.sum() > 1.2 * spatial_variance.sum()


def test_moment_matching_takes_any_expectation_by_name(grid_data):
    learner = MomentMatching("smci", optimizer=Anderson(learning_rate=1.0), centred=True)
    assert fit(grid_data, learner).converged


def test_centring_of_cliques_is_the_same_machine_and_its_gradient(scores, rng):
    zeros = gb.Model.zeros(products_of_order(4, 3, scores))
    model = zeros.replace(rng.normal(size=zeros.theta.size))
    low, gap = model.variables.lows_and_gaps
    origin = rng.uniform(low, low + gap)
    centring = preconditioning(model.family).centred(origin)
    inner = centring.inwards(model.theta)
    np.testing.assert_allclose(centring.outwards(inner), model.theta, atol=1e-10)
    states, _, _ = exact_law(model)
    u = 2 * (model.variables.scores_of(states) - origin) / gap
    products = np.array([u[:, list(scope)].prod(axis=1) for scope in model.family.scopes])
    energies = model.log_weights(states) - inner @ products
    np.testing.assert_allclose(energies, energies[0], atol=1e-10)  # up to a constant
    slope, h = rng.normal(size=inner.size), 1e-6
    numeric = [slope @ (centring.outwards(inner + h * unit) - model.theta) / h for unit in np.eye(inner.size)]
    np.testing.assert_allclose(centring.gradient(slope), numeric, atol=1e-6)


def test_centring_of_cliques_needs_every_part(rng):
    whole, part = products_of_order(4, 3), gb.ProductsFamily(Scopes([(0, 1, 2)], 3))
    assert preconditioning(whole).centred(np.zeros(4)).inner is not None
    assert preconditioning(part).centred(np.zeros(3)).inner is None
    assert preconditioning(whole).centred(np.zeros(4), l1=True).inner is None  # it would act on mixtures of cliques
