"""Every registered clamped expectation, on every kind of model, against sums over all completions."""

import dataclasses

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends import threads
from gibbsian.backends.threads import limited_threads
from gibbsian.expectations import CLAMPED, Expectation
from gibbsian.learning.objectives import Likelihood
from gibbsian.storage import pack, unpack
from holes import holed
from systems import SPINS, all_states, dataset_of, models_with_variables, name_of, random_model_of, sampled_data

# Standard errors of the means are 0.0005 to 0.018 of the range of a statistic, where 0.025 is asked.
MANY = {"chains": {"copies": 40, "burn_in": 60}, "spatial": {"copies": 20, "burn_in": 20}}
ROWS = {"spatial": 12}  # regions of most models are summed row by row
FEW = {"chains": {"copies": 10, "burn_in": 20}, "spatial": {"copies": 5, "burn_in": 10}}


@pytest.fixture(params=CLAMPED.names())
def name(request):
    return request.param


@pytest.fixture(params=models_with_variables(5), ids=lambda pair: f"{pair[0]}-{name_of(pair[1])}")
def system(request, rng):
    """A model and data that hide one column and a third of the other cells."""
    kind, variables = request.param
    graph = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)
    model = random_model_of(kind, graph, rng, variables, scale=0.5 / 1.3)
    return model, holed(sampled_data(model, 30, rng), rng, 0.3, hidden=[0])


def phase(expectation, model, data, seed=0):
    return expectation(model, expectation.init(model, data, np.random.default_rng(seed)))


def only(data, kept):
    """Return some of the rows of data."""
    return dataclasses.replace(
        data,
        states=data.states[kept],
        weights=data.weights[kept],
        missing=data.missing[kept],
        row_of=np.searchsorted(kept, data.row_of[np.isin(data.row_of, kept)]),
    )


def by_enumeration(model, data):
    """Mean statistics and log-evidence, row by row and completion by completion."""
    states = all_states(model.variables)
    log_weights = model.log_weights(states)
    mean, evidence = np.zeros_like(model.theta), 0.0
    for row, holes, weight in zip(data.states, data.missing, data.weights / data.total_weight, strict=True):
        fits = ((states == row) | holes).all(axis=1)
        total = np.logaddexp.reduce(log_weights[fits])
        mean += weight * model.family.mean_statistics(states[fits], np.exp(log_weights[fits] - total))
        evidence += weight * total
    return mean, evidence


def test_keeps_the_contract(name):
    assert isinstance(CLAMPED.create(name), Expectation)


def test_mean_is_within_its_error_of_the_sum_over_completions(name, system):
    model, data = system
    data = only(data, np.arange(ROWS.get(name, data.n_states)))
    truth, evidence = by_enumeration(model, data)
    estimate, _ = phase(CLAMPED.create(name, **MANY.get(name, {})), model, data)
    assert estimate.value.shape == estimate.monte_carlo_error.shape == model.theta.shape
    low, high = model.family.statistic_range
    if not CLAMPED.trait(name, "consistent", True):
        # the divergence of the posteriors, which bounds means (Pinsker)
        gap = evidence - estimate.parts["log_partition"].value
        assert 0 < gap < 0.1
        assert (np.abs(estimate.value - truth) <= (high - low) * np.sqrt(gap / 2)).all()
        return
    assert np.all(np.abs(estimate.value - truth) <= 4.5 * estimate.monte_carlo_error + 1e-10)
    assert (estimate.monte_carlo_error < 0.025 * (high - low)).all()
    if "log_partition" in estimate.parts:
        assert estimate.parts["log_partition"].value == pytest.approx(evidence, abs=1e-10)


def test_complete_rows_are_their_own_statistics(name, system):
    model, data = system
    whole = dataclasses.replace(data, missing=None)
    estimate, _ = phase(CLAMPED.create(name), model, whole)
    np.testing.assert_allclose(estimate.value, model.family.mean_statistics(whole.states, whole.weights), atol=1e-12)
    assert not estimate.monte_carlo_error.any()


def test_rows_of_no_weight_count_for_nothing(name, system):
    model, data = system
    data = only(data, np.arange(ROWS.get(name, data.n_states)))
    weights = np.where(np.arange(data.n_states) % 3 == 0, 0.0, data.weights)
    with_zeros, without = dataclasses.replace(data, weights=weights), only(data, np.flatnonzero(weights > 0))
    expectation = CLAMPED.create(name, **FEW.get(name, {}))
    first, second = (phase(expectation, model, each)[0] for each in (with_zeros, without))
    noise = np.hypot(first.monte_carlo_error, second.monte_carlo_error)
    assert np.all(np.abs(first.value - second.value) <= 5 * noise + 1e-6)


def test_same_seed_same_bits_on_any_number_of_threads(name, system, monkeypatch):
    model, data = system
    few = only(data, np.arange(6))
    monkeypatch.setattr(threads, "WORTH_THREADS", 0)
    with limited_threads(2):
        first, _ = phase(CLAMPED.create(name), model, few)
    with limited_threads(1):
        second, _ = phase(CLAMPED.create(name), model, few)
    assert np.array_equal(first.value, second.value)


def test_state_goes_through_a_checkpoint(name, system):
    model, data = system
    expectation, few = CLAMPED.create(name), only(data, np.arange(6))
    _, state = phase(expectation, model, few)
    again = unpack(expectation.init(model, few, np.random.default_rng(9)), pack(state))
    assert np.array_equal(expectation(model, state)[0].value, expectation(model, again)[0].value)


def test_clamped_less_free_is_the_gradient_of_the_marginal_likelihood(system):
    """YK15's rule, by central differences of the exact marginal likelihood."""
    model, data = system
    clamped, _ = phase(CLAMPED.create("exact"), model, data)
    free, _ = gb.expectations.Exact()(model, None)

    def likelihood(theta):
        current = model.replace(theta)
        states = all_states(model.variables)
        return by_enumeration(current, data)[1] - np.logaddexp.reduce(current.log_weights(states))

    steps = 1e-5 * np.eye(model.theta.size)
    slopes = [(likelihood(model.theta + step) - likelihood(model.theta - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose((clamped.value - free.value), slopes, atol=1e-8)
    value, gradient = Likelihood().bind(model, data)(model.theta)
    above, below = (float(each.parts["log_partition"]) for each in (free, clamped))
    assert above - below == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose((free.value - clamped.value), gradient, atol=1e-12)


def test_pair_regions_are_summed_exactly_however_strong_the_fields(scores, rng):
    """The model of two missing cells and their present neighbour is the whole region, so nothing is sampled."""
    for scale in (0.5, 4.0, 40.0):
        model = random_model_of("pairwise", gb.graphs.complete(3), rng, scores, scale=scale)
        data = holed(dataset_of(all_states(scores(3)), scores(3)), rng, hidden=[0, 2])
        estimate, _ = phase(CLAMPED.create("spatial", copies=2), model, data)
        truth, _ = by_enumeration(model, data)
        edge = model.family.graph.edges.tolist().index([0, 2]) + 3
        # the product of the two spins, which is summed exactly whatever the coding of the statistics
        product = ([1.0, 0.0, 0.0] if scores == SPINS else [4.0, -2.0, -2.0]) @ np.array(
            [(mean[edge], mean[0], mean[2]) for mean in (estimate.value, truth)]
        ).T
        assert product[0] == pytest.approx(product[1], abs=1e-10)


def test_chains_on_sparse_and_dense_graphs_take_the_same_path(rng):
    """A grid of 70 variables goes along its edges; as part of the complete graph, through the full matrix."""
    grid = random_model_of("pairwise", gb.graphs.grid(7, 10), rng, scale=0.3)
    full = gb.graphs.complete(70)
    couplings = {tuple(edge): w for edge, w in zip(grid.family.graph.edges.tolist(), grid.parts.couplings, strict=True)}
    dense = gb.PairwiseFamily.model(
        full, grid.parts.biases, [couplings.get(tuple(edge), 0.0) for edge in full.edges.tolist()]
    )
    assert dense.family.graph.is_dense
    assert not grid.family.graph.is_dense
    states = np.where(rng.random((20, 70)) < 0.5, -1.0, 1.0)
    data = holed(gb.Dataset.read(states, coding="spin"), rng, 0.4)
    for name in ("chains", "spatial", "mean-field"):
        first, second = (phase(CLAMPED.create(name), model, data)[0].value[:70] for model in (grid, dense))
        np.testing.assert_allclose(first, second, atol=1e-7)
