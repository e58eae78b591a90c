"""Every registered expectation, free and clamped, on every kind of model, against sums over all states.

One with the trait ``consistent=False`` makes an error that it cannot report, and says so. Those that begin at complete
rows get the exact law for their rows: chains that start at it stay there, whatever their number of sweeps.
"""

import dataclasses

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends import threads
from gibbsian.backends.threads import limited_threads
from gibbsian.expectations import EXPECTATIONS, Expectation, MixingCheck, Sampled, Samples
from gibbsian.learning.objectives import Likelihood
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.rng import Key
from gibbsian.storage import pack, unpack
from holes import holed
from systems import (
    SPINS,
    all_states,
    dataset_of,
    exact_law,
    models_with_variables,
    name_of,
    random_model_of,
    sampled_data,
    take,
)

# Chains and copies that make standard errors of the means about 0.01 of the range of a statistic.
FREE = {"ais": {"betas": 100}, "pcd": {"n_chains": 3000}, "cd": {"n_chains": 3000}, "smci-pcd": {"copies": 1}}
CLAMPED = {
    "pcd": {"copies": 40, "burn_in": 60},
    "smci-pcd": {"copies": 20, "burn_in": 20},
    "ais": {"n_walkers": 200, "betas": 30, "warn": False},
    "tempering": {"n_chains": 8, "n_draws": 50},
}
# Rows of those that take them one by one.
FEW_ROWS = dict.fromkeys(("ais", "tempering", "forest-smci", "planar-smci", "2-smci", "s2-smci", "1-smci"), 3)
# Those whose number of chains is that of a long run have as many copies as these.
COPIES = 20


def begins_at_rows(name):
    return EXPECTATIONS.create(name).needs_starts


NAMES = EXPECTATIONS.names()
CONSISTENT = [name for name in NAMES if EXPECTATIONS.trait(name, "consistent", True)]
CLAMPS = [name for name in NAMES if EXPECTATIONS.trait(name, "clamps", True)]


@pytest.fixture(params=models_with_variables(5), ids=lambda pair: f"{pair[0]}-{name_of(pair[1])}")
def model(request, rng):
    kind, variables = request.param
    graph = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)
    return random_model_of(kind, graph, rng, variables, scale=0.5 / 1.3)


@pytest.fixture
def system(model, rng):
    """A model and data that hide one column and a third of the other cells."""
    return model, holed(sampled_data(model, 30, rng), rng, 0.3, hidden=[0])


def made(name, clamped=False):
    """Return an expectation, with fewer samples than its own where rows are taken one by one."""
    found = EXPECTATIONS.create(name, **(CLAMPED if clamped else FREE).get(name, {}))
    if clamped and isinstance(found, Sampled) and name not in CLAMPED:
        few = dataclasses.replace(found.source, n_chains=20, n_draws=20, burn_in=50, copies=COPIES, mixing=None)
        return dataclasses.replace(found, source=few)
    return found


def law_of(model):
    """The exact law as rows: whole numbers of each state."""
    states, probabilities, _ = exact_law(model)
    counts = np.maximum(np.rint(3000 * probabilities), 0)
    return Samples(states[counts > 0], repeats=counts[counts > 0])


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


@pytest.mark.parametrize("name", NAMES)
def test_keeps_the_contract(name):
    assert isinstance(EXPECTATIONS.create(name), Expectation)


# -- free --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CONSISTENT)
def test_free_mean_is_within_its_error_of_the_truth(name, model):
    law = law_of(model)
    starts = law if begins_at_rows(name) or name in ("pcd", "smci-pcd") else None
    bound = made(name).bind(model, None, starts)
    state, (low, high) = bound.init(model.theta, Key.of(1)), model.family.statistic_range
    truth = model.family.mean_statistics(*exact_law(model)[:2])
    rounding = 2e-3 * (high - low) if starts is not None else 1e-10  # whole numbers of each state are not quite the law
    for _ in range(2):  # a second call goes on from the first
        estimate, state = bound(model.theta, state)
        assert estimate.value.shape == estimate.monte_carlo_error.shape == model.theta.shape
        assert np.all(np.abs(estimate.value - truth) <= 5 * estimate.monte_carlo_error + rounding)
        assert np.all(estimate.monte_carlo_error < 0.05 * (high - low))
        if "log_partition" in estimate.parts:
            log_z = estimate.parts["log_partition"]
            assert abs(log_z.value - exact_law(model)[2]) <= 5 * log_z.stderr + 1e-10
            assert log_z.stderr < 0.05


@pytest.mark.parametrize("name", [name for name in NAMES if not begins_at_rows(name)])
def test_an_approximation_says_so_and_is_near_where_couplings_are_weak(name, model):
    if name in CONSISTENT:
        pytest.skip(f"{name} is no approximation")
    for scale, error in ((0.1, 0.1), (0.01, 0.01)):
        weak = model.replace(scale * model.theta)
        states, probabilities, log_partition = exact_law(weak)
        estimate = take(EXPECTATIONS.create(name), weak)
        assert not estimate.is_exact
        assert np.abs(estimate.value - weak.family.mean_statistics(states, probabilities)).max() < error
        assert estimate.parts["log_partition"].value == pytest.approx(log_partition, abs=2 * error**2)


# -- clamped -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CLAMPS)
def test_clamped_mean_is_within_its_error_of_the_sum_over_completions(name, system):
    model, data = system
    data = only(data, np.arange(FEW_ROWS.get(name, data.n_states)))
    truth, evidence = by_enumeration(model, data)
    estimate, (low, high) = take(made(name, clamped=True), model, data), model.family.statistic_range
    assert estimate.value.shape == estimate.monte_carlo_error.shape == model.theta.shape
    if name not in CONSISTENT:
        # the divergence of the posteriors, which bounds means (Pinsker)
        gap = abs(evidence - estimate.parts["log_partition"].value)
        assert gap < 0.1
        assert (np.abs(estimate.value - truth) <= (high - low) * np.sqrt(gap / 2 + 1e-3)).all()
        return
    assert np.all(np.abs(estimate.value - truth) <= 5 * estimate.monte_carlo_error + 1e-10)
    assert (estimate.monte_carlo_error < 0.04 * (high - low)).all()
    if "log_partition" in estimate.parts:
        log_evidence = estimate.parts["log_partition"]
        assert abs(log_evidence.value - evidence) <= 5 * log_evidence.stderr + 1e-10


@pytest.mark.parametrize("name", [name for name in NAMES if begins_at_rows(name)])
def test_what_begins_at_rows_holds_no_cells(name, system):
    with pytest.raises(gb.errors.ArgumentError, match="holds the present cells"):
        take(EXPECTATIONS.create(name), *system)


@pytest.mark.parametrize("name", CLAMPS)
def test_complete_rows_are_their_own_statistics(name, system):
    model, data = system
    whole = dataclasses.replace(data, missing=None)
    estimate = take(EXPECTATIONS.create(name), model, whole)
    np.testing.assert_allclose(estimate.value, model.family.mean_statistics(whole.states, whole.weights), atol=1e-12)
    assert not estimate.monte_carlo_error.any()


@pytest.mark.parametrize("name", [name for name in CLAMPS if name not in FEW_ROWS])
def test_rows_of_no_weight_count_for_nothing(name, system):
    model, data = system
    data = only(data, np.arange(6))
    weights = np.where(np.arange(data.n_states) % 3 == 0, 0.0, data.weights)
    with_zeros, without = dataclasses.replace(data, weights=weights), only(data, np.flatnonzero(weights > 0))
    first, second = (take(made(name, clamped=True), model, each) for each in (with_zeros, without))
    noise = np.hypot(first.monte_carlo_error, second.monte_carlo_error)
    assert np.all(np.abs(first.value - second.value) <= 5 * noise + 1e-6)


# -- both --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("clamped", [False, True], ids=["free", "clamped"])
@pytest.mark.parametrize("name", [name for name in CLAMPS if name not in ("ais", "tempering")])
def test_same_key_same_bits_on_any_number_of_threads_and_after_a_checkpoint(name, clamped, system, monkeypatch):
    model, data = system
    few = only(data, np.arange(3)) if clamped else None
    expectation = EXPECTATIONS.create(name)
    if isinstance(expectation, Sampled) and expectation.source.n_draws > 1:
        short = dataclasses.replace(expectation.source, n_chains=10, n_draws=5, burn_in=5, mixing=None)
        expectation = dataclasses.replace(expectation, source=short)
    monkeypatch.setattr(threads, "WORTH_THREADS", 0)
    found = []
    for n_threads in (1, 2):
        with limited_threads(n_threads):
            bound = expectation.bind(model, few)
            _, state = bound(model.theta, bound.init(model.theta, Key.of(4)))
            again = unpack(bound.init(model.theta, Key.of(9)), pack(state)) if n_threads == 2 else state
            found.append(bound(model.theta, again)[0])
    assert np.array_equal(found[0].value, found[1].value)
    assert np.array_equal(found[0].monte_carlo_error, found[1].monte_carlo_error)


def test_clamped_less_free_is_the_gradient_of_the_marginal_likelihood(system):
    """YK15's rule, by central differences of the exact marginal likelihood."""
    model, data = system
    clamped, free = (take(gb.expectations.Exact(), model, rows) for rows in (data, None))

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


def test_free_is_one_row_whose_cells_are_all_missing(system):
    model, data = system
    nothing = dataclasses.replace(only(data, np.arange(1)), missing=np.ones((1, model.n_variables), bool))
    for name in ("exact", "mean-field", "bethe"):
        free, clamped = (take(EXPECTATIONS.create(name), model, rows) for rows in (None, nothing))
        np.testing.assert_allclose(free.value, clamped.value, atol=1e-12)
        assert float(free.parts["log_partition"]) == pytest.approx(float(clamped.parts["log_partition"]), abs=1e-12)


def test_completions_are_samples_of_the_posterior(system):
    """Completions by chains, and all of them with their probabilities, have the exact clamped statistics."""
    model, data = system
    truth, _ = by_enumeration(model, data)
    low, high = model.family.statistic_range
    for expectation, error in ((gb.expectations.ListedCompletions(), 1e-10), (made("pcd", clamped=True), 0.05)):
        bound = expectation.bind(model, data)
        _, state = bound(model.theta, bound.init(model.theta, Key.of(0)))
        samples = bound.samples(state)
        assert samples.n_independent == pytest.approx(data.total_weight)
        mean = model.family.mean_statistics(samples.states, samples.shares)
        assert np.all(np.abs(mean - truth) <= error * (high - low))


# -- pairs -------------------------------------------------------------------------------------------------------------
def test_pair_regions_are_summed_exactly_however_strong_the_fields(scores, rng):
    """The model of two missing cells and their present neighbour is the whole region, so nothing is sampled."""
    for scale in (0.5, 4.0, 40.0):
        model = random_model_of("pairwise", gb.graphs.complete(3), rng, scores, scale=scale)
        data = holed(dataset_of(all_states(scores(3)), scores(3)), rng, hidden=[0, 2])
        estimate = take(EXPECTATIONS.create("smci-pcd", copies=2), model, data)
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
    for name in ("pcd", "smci-pcd", "mean-field"):
        first, second = (take(EXPECTATIONS.create(name), model, data).value[:70] for model in (grid, dense))
        np.testing.assert_allclose(first, second, atol=1e-7)


@pytest.mark.parametrize("region", [1, 2, "s2", "forest", "planar", [1, "s2"]], ids=str)
def test_smci_integrates_products_of_spins_whatever_the_scores(region, rng):
    """Over the same rows 0/1 and -1/+1 have the same law: the estimates of one are those of the other, mapped."""
    graph = gb.graphs.grid(2, 3)
    spins = random_model_of("pairwise", graph, rng, SPINS, scale=0.4)
    binary, _ = spins.family.recode(spins.theta, gb.Variables.binary)
    law = law_of(spins)
    few = Samples(law.states[:20], repeats=law.repeats[:20])
    one, other = (
        take(EXPECTATIONS.create("smci", region=region), model, starts=few).value for model in (spins, binary)
    )
    means, (i, j) = (1 + one[:6]) / 2, graph.edges.T
    products = (1 + one[i] + one[j] + one[6:]) / 4
    np.testing.assert_allclose(other, np.concatenate([means, products]), atol=1e-12)


def test_chains_that_disagree_are_told_once(rng):
    model = PairwiseFamily.model(gb.graphs.complete(2), [0.0, 0.0], [20.0])
    with pytest.warns(gb.errors.MixingWarning, match="R-hat"):
        take(EXPECTATIONS.create("monte-carlo", n_chains=10, n_draws=20, burn_in=0), model)
    quiet = EXPECTATIONS.create("monte-carlo", n_chains=10, n_draws=20, burn_in=0, warn=False)
    assert take(quiet, model).parts["r_hat"] > 1.05
    assert MixingCheck().max_r_hat == 1.05
