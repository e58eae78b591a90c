"""Spatial Monte Carlo integration against explicit sums over the region, in float and in 60 digits."""

import itertools
import math
from decimal import Decimal, localcontext

import networkx
import numpy as np
import pytest

import gibbsian as gb
from gibbsian import TablesFamily, Variables
from gibbsian.errors import ArgumentError, CodingError, MissingValuesError, TooExpensiveError
from gibbsian.expectations import (
    RestartedPerCall,
    Sampled,
    Samples,
    compiled_regions,
    expect_of,
    plan_regions,
    spatial_statistics,
)
from gibbsian.expectations.compiled_regions import CliquePlan, PairwisePlan
from gibbsian.expectations.regions import as_rule, edge_strengths
from gibbsian.expectations.sources import FixedSamples
from gibbsian.expectations.table_regions import TablePlan, contraction_of, least_squares_coefficients
from systems import BINARY, SPINS, products_of_order, products_on, random_model, random_model_of, sampled_data, take

REGIONS = [0, 1, "s2", 2, "forest"]


def random_region(graph, target):
    """The target and about half of the other variables, connected or not."""
    rng = np.random.default_rng(hash(target) % 2**32)
    return {*target, *np.flatnonzero(rng.random(graph.n_nodes) < 0.5).tolist()}


def with_theta(model, rng, scale=0.7):
    return model.replace(rng.normal(scale=scale, size=model.theta.size))


def models(rng):
    sparse, dense = gb.graphs.grid(2, 4), gb.graphs.random(8, 0.6, random_state=5)
    mixed = Variables.categories((3, 2, 4, 2, 3))
    values = products_of_order(5, 3, Variables.ordinal([(-1, 0, 1)] * 5))
    small = gb.graphs.random(5, 0.6, random_state=1)
    return {
        "pairwise spin": random_model(sparse, rng, SPINS),
        "pairwise binary": random_model(dense, rng, BINARY),
        "pairwise without biases": random_model(dense, rng, SPINS, bias=False),
        "third order spin": random_model_of("products", dense, rng, SPINS, 0.7),
        "third order binary": random_model_of("products", dense, rng, BINARY, 0.7),
        "third order values": with_theta(gb.Model.zeros(values), rng),
        "potts": random_model_of("potts", small, rng, mixed, 0.7),
        "tables": random_model_of("tables", small, rng, mixed, 0.7),
    }


NAMES = list(models(np.random.default_rng(0)))


@pytest.fixture(params=NAMES)
def model(request, rng):
    return models(rng)[request.param]


def random_states(model, n_samples, rng):
    return rng.integers(0, model.variables.sizes, size=(n_samples, model.n_variables))


def strengths_of(model):
    return edge_strengths(model.family, model.family.factors(model.theta))


def explicit_values(model, samples, region_of):
    """Conditional expectations of all statistics, shape (n_samples, n_statistics), by summing over every region."""
    contraction, sizes = contraction_of(model.family), model.variables.sizes
    regions = as_rule(region_of).regions(model.family.graph, contraction.targets, strengths_of(model))
    values = np.empty((len(samples), model.theta.size))
    for places, region in zip(contraction.statistics, regions, strict=True):
        inside = list(region)
        assignments = np.array(list(itertools.product(*(range(sizes[i]) for i in inside))), dtype=np.int8)
        for m, sample in enumerate(samples):
            states = np.repeat(sample[None], len(assignments), axis=0)
            states[:, inside] = assignments
            log_weights = model.log_weights(states)
            values[m, places] = model.family.mean_statistics(states, np.exp(log_weights - log_weights.max()))[places]
    return values


@pytest.mark.parametrize("region", [*REGIONS, random_region], ids=[*map(str, REGIONS), "random"])
def test_equals_the_explicit_sum(model, region, rng):
    states, weights = random_states(model, 6, rng), rng.random(6)
    values = explicit_values(model, states, region)
    estimate = spatial_statistics(model, Samples(states, weights), region)
    shares = weights / weights.sum()
    assert estimate.value == pytest.approx(shares @ values, abs=1e-12)
    worth = 1 / np.sum(shares**2)
    variance = worth / (worth - 1) * (shares**2) @ (values - shares @ values) ** 2
    assert estimate.stderr == pytest.approx(np.sqrt(variance), abs=1e-12)


def test_compiled_plans_are_chosen(rng):
    made = models(rng)
    for region in (1, "s2", "forest"):
        assert isinstance(plan_regions(made["pairwise binary"], region), PairwisePlan)
    for region in (1, "s2"):
        assert isinstance(plan_regions(made["third order binary"], region), CliquePlan)
        assert isinstance(plan_regions(made["third order values"], region), TablePlan)


def random_parameters(size, rng):
    return rng.choice([-50.0, -31.0, -3.0, 0.0, 0.2, 40.0, 50.0], size=size)


def exact_in_decimals(cliques, theta, variables, sample, region, clique):
    """E[product over a clique | rest] with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        top, bottom, own = Decimal(0), Decimal(0), variables.scores_of(sample[None]).astype(int)[0].tolist()
        for assignment in itertools.product(map(int, variables.scores[0]), repeat=len(region)):
            state = dict(enumerate(own)) | dict(zip(region, assignment, strict=True))
            exponent = sum(
                (Decimal(w) * math.prod(state[i] for i in c) for c, w in zip(cliques, theta.tolist(), strict=True)),
                Decimal(0),
            )
            weight = exponent.exp()
            bottom += weight
            top += weight * math.prod(state[i] for i in clique)
        return float(top / bottom)


@pytest.mark.parametrize("region", [1, "s2", 2, "forest"])
@pytest.mark.parametrize("order", [2, 3])
def test_is_right_for_weights_of_fifty(order, region, scores, rng):
    graph = gb.graphs.random(7, 0.6, random_state=2)
    family = gb.PairwiseFamily(graph, scores) if order == 2 else products_on(graph, scores)
    model, cliques = gb.Model(family, random_parameters(family.n_parameters, rng)), family.scopes
    regions = as_rule(region).regions(family.graph, cliques, strengths_of(model))
    states = random_states(model, 3, rng)
    for state in states:
        estimate = spatial_statistics(model, state[None], region)
        expected = [
            exact_in_decimals(cliques, model.theta, model.variables, state, inside, clique)
            for clique, inside in zip(cliques, regions, strict=True)
        ]
        assert estimate.value == pytest.approx(expected, abs=1e-12)


def test_couplings_that_underflow_are_right(scores):
    model = gb.PairwiseFamily.model(gb.graphs.complete(3), [0.0, 0.0, 0.0], [-900.0, 400.0, 450.0], scores)
    states = random_states(model, 8, np.random.default_rng(3))
    for region in (1, "s2"):
        estimate = spatial_statistics(model, states, region)
        slow = TablePlan.of(model, [as_rule(region)]).statistics(model, Samples(states))
        assert np.isfinite(estimate.value).all()
        assert estimate.value == pytest.approx(slow.value, abs=1e-12)


@pytest.mark.long
def test_hubs_with_thousands_of_neighbours(scores, rng):
    star = gb.graphs.from_edges([(0, i) for i in range(1, 1500)], 1500)
    model = random_model(star, rng, scores, scale=0.05)
    states = random_states(model, 3, rng)
    truth = gb.inference.exact(model).moments
    for region in ("s2", gb.expectations.ForestAround(1500)):
        estimate = spatial_statistics(model, states, region)
        assert estimate.value[0] == pytest.approx(truth[0], abs=1e-10)  # the region is all that matters
        assert np.isfinite(estimate.value).all()


def test_a_region_of_everything_is_exact(model, rng):
    everything = range(model.n_variables)
    estimate = spatial_statistics(model, random_states(model, 4, rng), lambda graph, target: everything)
    assert estimate.value == pytest.approx(gb.inference.exact(model).moments, abs=1e-12)
    assert estimate.stderr == pytest.approx(0.0, abs=1e-13)


def test_a_tree_is_summed_exactly_by_messages(scores, rng):
    tree = gb.graphs.from_networkx(networkx.random_labeled_tree(25, seed=3))
    model = random_model(tree, rng, scores, scale=1.0)
    estimate = spatial_statistics(model, random_states(model, 2, rng), "forest")
    assert estimate.value == pytest.approx(gb.inference.exact(model).moments, abs=1e-12)


# -- samples ----------------------------------------------------------------------------------------------------------
def test_data_with_equal_rows_counts_each_row(rng):
    model = random_model(gb.graphs.grid(2, 2), rng)
    data = sampled_data(model, 60, rng)
    rows = data.states[data.row_of]
    assert len(data.states) < len(rows)
    for region in (1, 2):
        together, apart = spatial_statistics(model, data, region), spatial_statistics(model, rows, region)
        assert together.value == pytest.approx(apart.value, abs=1e-13)
        assert together.stderr == pytest.approx(apart.stderr, abs=1e-13)


@pytest.mark.parametrize("region", [1, "s2", 2])
def test_chains_are_compared_with_each_other(region, rng, monkeypatch):
    monkeypatch.setattr(compiled_regions, "MAX_SAMPLES", 7)  # so that chains are cut by blocks
    model = random_model(gb.graphs.grid(3, 3), rng)
    draws = random_states(model, 5 * 20, rng).reshape(5, 20, 9)
    means = np.array([spatial_statistics(model, chain, region).value for chain in draws])
    estimate = spatial_statistics(model, draws, region)
    assert estimate.value == pytest.approx(means.mean(axis=0), abs=1e-13)
    assert estimate.stderr == pytest.approx(means.std(axis=0, ddof=1) / np.sqrt(5), abs=1e-13)


def test_groups_may_come_in_any_order(rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    states, groups, weights = random_states(model, 30, rng), np.repeat(np.arange(6), 5), rng.random(30)
    order = rng.permutation(30)
    sorted_, shuffled = (
        spatial_statistics(model, Samples(states[o], weights[o], groups[o])) for o in (np.arange(30), order)
    )
    assert shuffled.value == pytest.approx(sorted_.value, abs=1e-14)
    assert shuffled.stderr == pytest.approx(sorted_.stderr, abs=1e-14)


@pytest.mark.parametrize("region", [0, 1, "s2"])
def test_walkers_with_weights(region, rng):
    model = random_model(gb.graphs.grid(2, 3), rng, scale=0.5)
    states = random_states(model, 20_000, rng)  # uniform, so the weights are those of the model
    estimate = spatial_statistics(model, Samples(states, np.exp(model.log_weights(states))), region)
    truth = gb.inference.exact(model).moments
    assert np.all(np.abs(estimate.value - truth) < 5 * estimate.stderr + 1e-12)
    assert estimate.stderr.max() < 0.03


@pytest.mark.parametrize("region", [1, "s2", "forest"])
def test_blocks_and_threads_change_nothing(region, rng, monkeypatch):
    model = random_model(gb.graphs.grid(6, 6), rng)
    states = random_states(model, 1100, rng)
    whole = spatial_statistics(model, states, region)
    with monkeypatch.context() as patch:
        patch.setattr(compiled_regions, "n_threads", lambda: 1)
        alone = spatial_statistics(model, states, region)
    assert np.array_equal(whole.value, alone.value)
    assert np.array_equal(whole.stderr, alone.stderr)
    monkeypatch.setattr(compiled_regions, "MAX_SAMPLES", 100)
    monkeypatch.setattr(compiled_regions, "BATCH_CELLS", 7200)
    blocked = spatial_statistics(model, states, region)
    assert blocked.value == pytest.approx(whole.value, abs=1e-14)
    assert blocked.stderr == pytest.approx(whole.stderr, rel=1e-10)


def test_one_sample_has_no_error(rng):
    model = random_model(gb.graphs.grid(2, 2), rng)
    assert np.isnan(spatial_statistics(model, random_states(model, 1, rng)).stderr).all()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"weights": np.array([1.0, -1.0])}, "zero or positive"),
        ({"weights": np.zeros(2)}, "not all zero"),
        ({"weights": np.ones(3)}, "weights has shape"),
        ({"groups": np.zeros(2), "repeats": np.ones(2)}, "exclude each other"),
    ],
)
def test_unusable_samples_are_refused(settings, match):
    with pytest.raises(ArgumentError, match=match):
        Samples(np.ones((2, 3)), **settings)


def test_samples_must_be_states_of_the_model(rng):
    model = random_model(gb.graphs.grid(2, 2), rng)
    with pytest.raises(ArgumentError, match="rows of 4 variables"):
        spatial_statistics(model, np.ones((5, 3)))
    with pytest.raises(CodingError, match="holds -1 for variable 1"):
        spatial_statistics(model, np.array([[1, -1, 0, 1]]))
    potts = gb.Model.zeros(TablesFamily.potts(gb.graphs.complete(2), Variables.categories((2, 3))))
    with pytest.raises(CodingError):
        spatial_statistics(potts, np.array([[2, 0]]))
    data = gb.Dataset.read([[1, -1, 1, float("nan")], [1, 1, -1, -1]], coding="spin")
    with pytest.raises(MissingValuesError):
        spatial_statistics(model, data)


# -- plans and expectations -------------------------------------------------------------------------------------------
def test_plans_serve_models_of_their_structure_only(rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    plan = plan_regions(model, "s2")
    other = random_model(gb.graphs.complete(6), rng)
    with pytest.raises(ArgumentError, match="another structure"):
        spatial_statistics(other, random_states(other, 3, rng), plan=plan)


@pytest.mark.parametrize("kind", ["pairwise spin", "third order spin", "potts"])
def test_renewed_plans_are_new_plans(kind, rng):
    model = models(rng)[kind]
    changed = with_theta(model, rng, scale=1.0)
    states = random_states(model, 10, rng)
    renewed = spatial_statistics(changed, states, plan=plan_regions(model, "s2").renewed(changed))
    fresh = spatial_statistics(changed, states, "s2")
    assert np.array_equal(renewed.value, fresh.value)


def test_expectation_uses_the_data(rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    data = sampled_data(model, 50, rng)
    estimate = take(Sampled(FixedSamples(), "s2"), model, starts=data)
    assert np.array_equal(estimate.value, spatial_statistics(model, data, "s2").value)
    estimate = take(Sampled(FixedSamples(data.states), "s2"), model)
    assert np.array_equal(estimate.value, spatial_statistics(model, data.states, "s2").value)


def test_too_wide_regions_are_refused_before_any_sum():
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(40)))
    with pytest.raises(TooExpensiveError, match="choose a smaller region"):
        plan_regions(model, 2)


def test_regions_are_cut_to_what_is_connected():
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(1, 6)))
    plan = plan_regions(model, {(0,): (0, 1, 4, 5)})
    assert plan.regions[0][0].region == (0, 1)


# -- any function, several regions ------------------------------------------------------------------------------------
def test_expectations_of_any_function(model, rng):
    nodes = (3, 0, 1)
    marginal = gb.inference.exact(model).marginal(nodes)
    states = gb.inference.exact(model).sample(3000, rng)
    weights = rng.normal(size=marginal.shape)
    if model.variables.scores is not None:
        scores = model.variables.scores
        function = lambda *x: weights[tuple(scores[i].index(v) for i, v in zip(nodes, x, strict=True))]  # noqa: E731
    else:
        function = lambda *x: weights[x]  # noqa: E731
    for region in (0, 1, "s2", [1, "s2", "forest"]):
        estimate = expect_of(model, function, nodes, states, region)
        assert abs(estimate.value - np.sum(weights * marginal)) < 5 * estimate.stderr + 1e-12
        assert estimate.stderr < 0.1


def test_functions_may_return_several_numbers(rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    states = random_states(model, 20, rng)
    both = expect_of(model, lambda x: [x, x * x], 0, states)
    assert both.value.shape == both.stderr.shape == (2,)
    assert both.value[0] == pytest.approx(spatial_statistics(model, states).value[0], abs=1e-14)
    assert (both.value[1], both.stderr[1]) == (1.0, 0.0)


def test_the_best_combination_is_not_worse_than_its_parts(rng):
    model = random_model(gb.graphs.grid(3, 3), rng)
    states = gb.inference.exact(model).sample(2000, rng)
    left, right = {(4,): (3, 4, 5)}, {(4,): (1, 4, 7)}
    identity = lambda x: x  # noqa: E731
    parts = [expect_of(model, identity, 4, states, region).stderr for region in (left, right)]
    combined = expect_of(model, identity, 4, states, [left, right])
    assert combined.stderr < min(parts)
    truth = gb.inference.exact(model).means[4]
    assert abs(combined.value - truth) < 5 * combined.stderr


def test_composite_statistics(rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    states = gb.inference.exact(model).sample(1000, rng)
    truth = gb.inference.exact(model).moments
    estimate = spatial_statistics(model, states, [1, "s2"])
    assert np.all(np.abs(estimate.value - truth) < 5 * estimate.stderr + 1e-12)
    single = spatial_statistics(model, states, "s2")
    assert np.all(estimate.stderr <= single.stderr * 1.01)


def test_singular_covariances_do_no_harm():
    assert least_squares_coefficients(np.zeros((2, 2)), 100).tolist() == [1.0, 0.0]
    assert least_squares_coefficients(np.diag([1.0, 0.0]), 100).tolist() == [0.0, 1.0]
    assert least_squares_coefficients(np.ones((3, 3)), 100) == pytest.approx([1 / 3] * 3)
    assert least_squares_coefficients(np.diag([2.0, 1.0]), 5).tolist() == [0.0, 1.0]  # too few samples
    assert least_squares_coefficients(np.full((2, 2), np.nan), 1).tolist() == [1.0, 0.0]


def test_rows_of_workers_have_the_errors_of_the_same_rows_here(rng):
    model = random_model(gb.graphs.complete(4), rng)
    data = sampled_data(model, 60, rng)
    plan = plan_regions(model, gb.expectations.Neighbourhood(1))
    here = spatial_statistics(model, samples=Samples.of(data), plan=plan)
    there = take(RestartedPerCall(Sampled(FixedSamples(), 1)), model, starts=data)
    np.testing.assert_allclose(there.value, here.value, atol=1e-12)
    np.testing.assert_allclose(there.stderr, here.stderr, rtol=1e-9)
