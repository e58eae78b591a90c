"""Annealed importance sampling: both kernels against each other and enumeration, ladders, starts, and messages."""

import pickle
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.backends.processes import dealt_by
from gibbsian.backends.threads import limited_threads
from gibbsian.diagnostics.partition import LogPartitionInterval, log_partition_interval
from gibbsian.errors import ArgumentError, CodingError, MixingWarning
from gibbsian.models.scopes import Scopes
from gibbsian.rng import Key
from gibbsian.sampling import AnnealedRun, Annealing, Path, variable_path
from gibbsian.sampling.paths import base_log_probabilities
from gibbsian.sampling.walks import Walk, bind_walk
from layered_systems import restricted
from systems import (
    BINARY,
    SPINS,
    all_states,
    dataset_of,
    exact_law,
    models_with_variables,
    name_of,
    products_of_order,
    random_model,
    random_model_of,
)

BASES = ["uniform", "biases"]


def shares_of(model, base, variable):
    """Probabilities of the values of a variable at the beginning of a path."""
    first, last = model.variables.offsets[variable : variable + 2]
    return np.exp(base_log_probabilities(model, base)[first:last])


# -- the path ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("case", models_with_variables(5), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def test_paths_lead_from_independent_variables_to_the_model(case, base, rng):
    model = random_model_of(case[0], gb.graphs.complete(5), rng, case[1], scale=0.5)
    path, codes = variable_path(model, base), all_states(model.variables)
    logs = base_log_probabilities(model, base)
    start = sum(logs[model.variables.offsets[i] + codes[:, i]] for i in range(5))
    np.testing.assert_allclose(np.ptp(path.at(0.0).log_weights(codes) - start), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.ptp(path.at(1.0).log_weights(codes) - model.log_weights(codes)), 0.0, atol=1e-10)
    assert path.log_partition == pytest.approx(np.logaddexp.reduce(path.at(0.0).log_weights(codes)))
    betas = np.array([0.0, 0.3, 1.0, 2.5])
    expected = np.array([path.at(beta).log_weights(codes) for beta in betas])
    found = path.log_weights(codes, betas)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-9)


def test_more_knots_are_a_trajectory(rng):
    """Through another model in the middle: log-weights bend there, and log Z is the same."""
    model = random_model(gb.graphs.complete(5), rng)
    plain = variable_path(model, "uniform")
    middle = rng.normal(size=plain.knots.shape[1])
    path = Path(model, plain.family, np.stack([plain.knots[0], middle, plain.knots[1]]), plain.log_partition)
    np.testing.assert_allclose(path.theta(0.25), 0.5 * (plain.knots[0] + middle))
    np.testing.assert_allclose(path.theta(0.5), middle)
    np.testing.assert_allclose(path.theta(2.0), middle + 3.0 * (plain.knots[1] - middle))
    run = Annealing(2000, 100).forward(path, 0)
    assert abs(run.log_partition - exact_law(model)[2]) < 4 * run.log_partition_stderr < 0.2


@pytest.mark.parametrize("case", models_with_variables(5), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def test_compiled_walks_take_the_path_of_the_kernels(case, rng):
    """Up, down and in exchanges: the same states, streams and weights as step by step."""
    model = random_model_of(case[0], gb.graphs.grid(1, 5), rng, case[1], scale=0.5)
    path, up = variable_path(model), np.linspace(0.0, 1.2, 13)
    fast, slow = (walk(path, path.kernel()) for walk in (bind_walk, Walk))
    chains = path.start(70, Key.of(1))
    for betas in (up, up[::-1].copy(), np.full(4, 0.7)):
        (one, grown), (other, expected) = fast.anneal(chains, betas), slow.anneal(chains, betas)
        assert np.array_equal(one.states, other.states)
        assert np.array_equal(one.streams, other.streams)
        assert one.n_sweeps == other.n_sweeps
        np.testing.assert_allclose(grown, expected, atol=1e-9)
    ladder, betas = [path.start(20, Key.of(k)) for k in range(4)], np.linspace(0.1, 1.0, 4)
    ends, ratios = fast.exchange(ladder, betas, range(3, 20), Key.of(9), 2)
    others, expected = slow.exchange(ladder, betas, range(3, 20), Key.of(9), 2)
    assert all(np.array_equal(a.states, b.states) for a, b in zip(ends, others, strict=True))
    np.testing.assert_allclose(ratios.up, expected.up, atol=1e-9)
    np.testing.assert_allclose(ratios.down, expected.down, atol=1e-9)


# -- whole runs -------------------------------------------------------------------------------------------------------
def test_weights_are_uniform_when_the_target_is_the_base(rng, scores):
    model = gb.PairwiseFamily.model(gb.graphs.grid(2, 3), rng.normal(size=6), np.zeros(7), scores)
    truth = exact_law(model)[2]
    annealing, path = Annealing(20, 50), variable_path(model, "biases")
    forward = annealing.forward(path, 1)
    np.testing.assert_allclose(forward.log_weights, truth, atol=1e-12)
    np.testing.assert_allclose(annealing.reverse(path, forward.states, 2).log_weights, -truth, atol=1e-12)
    assert forward.effective_sample_size == pytest.approx(20)
    assert forward.log_partition_stderr < 1e-12
    assert forward.warning is None


@pytest.mark.parametrize("kind", ["variables", "layers"])
def test_walkers_that_are_dealt_out_go_the_same_way(kind, rng):
    if kind == "variables":
        path = variable_path(random_model(gb.graphs.grid(2, 3), rng))
    else:
        layers = gb.models.BinaryUnits(4), gb.models.BinaryUnits(3)
        machine = restricted(*layers, w=rng.normal(size=(4, 3)))
        path = gb.sampling.layer_path(machine, summed="visible", random_state=rng)
    sizes = []

    def deal(function, items):
        for item in items:
            sent = pickle.loads(pickle.dumps((function, item)))  # what is done elsewhere changes nothing here
            found, increases = sent[0](sent[1])
            sizes.append(len(increases))
            yield found, increases

    walk, ends = Annealing(70, betas=20), []
    for where in (nullcontext(), dealt_by(deal)):
        with where:
            there = walk.forward(path, 1)
            ends.append([there.log_weights, there.states, walk.reverse(path, there.states, 2).log_weights])
    assert sum(sizes) == 140
    assert len(sizes) > 3
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


def test_walkers_depend_on_the_seed_alone(rng):
    model = random_model(gb.graphs.grid(4, 5), rng)
    annealing, path = Annealing(70, 200), variable_path(model)
    with limited_threads(1):
        one = annealing.forward(path, 3)
    with limited_threads(2):
        again = annealing.forward(path, 3)
    fewer = replace(annealing, n_walkers=5).forward(path, 3)
    assert np.array_equal(one.states, again.states)
    assert np.array_equal(one.log_weights, again.log_weights)
    assert np.array_equal(one.log_weights[:5], fewer.log_weights)
    assert not np.array_equal(one.log_weights, annealing.forward(path, 4).log_weights)


@pytest.mark.parametrize("size", [50.0, -50.0])
def test_large_parameters_stay_finite(size, scores):
    """A tree of strong couplings: log Z is known, and the states in between are frozen."""
    model = gb.PairwiseFamily.model(gb.graphs.grid(1, 12), np.full(12, 0.1), np.full(11, size), scores)
    run = Annealing(50, 500).forward(variable_path(model), 0)
    assert np.isfinite(run.log_weights).all()
    truth = gb.inference.exact(model).log_partition
    assert run.log_partition == pytest.approx(truth, rel=0.05)


def test_large_tables_stay_finite():
    model = gb.TablesFamily.model({(0, 1): 800.0 * np.eye(3)}, Variables.categories((3, 3)))
    run = Annealing(50, 2000).forward(variable_path(model, "uniform"), 0)
    assert run.log_partition == pytest.approx(800 + np.log(3), abs=1.0)


@pytest.mark.parametrize(
    "family",
    [
        products_of_order(5, 3),
        products_of_order(4, 3, Variables.ordinal([(-1, 0, 1)] * 4)),
        gb.TablesFamily.potts(gb.graphs.grid(2, 3), Variables.categories((3, 2, 4, 2, 3, 2))),
        gb.TablesFamily(Scopes.of_graph(gb.graphs.grid(2, 3)), BINARY),
    ],
    ids=["order 3", "values", "potts", "tables"],
)
def test_every_kind_of_model_has_its_interval(family, rng):
    model = gb.Model(family, rng.normal(0, 0.5, family.n_parameters))
    truth = exact_law(model)[2]
    path = variable_path(model)
    interval = log_partition_interval(path, "gibbs", Annealing(100, 300), rng=1)
    assert interval.lower < truth < interval.upper < interval.lower + 0.1


def test_base_of_biases_is_the_same_by_tables(rng, scores):
    pairwise = random_model(gb.graphs.complete(4), rng, scores)
    twin = gb.Model(products_of_order(4, 2, scores), pairwise.theta)
    expected = base_log_probabilities(pairwise, "biases")
    np.testing.assert_allclose(base_log_probabilities(twin, "biases"), expected, atol=1e-14)


# -- starts -----------------------------------------------------------------------------------------------------------
def test_base_of_biases_does_not_depend_on_the_coding(rng):
    spin = random_model(gb.graphs.complete(4), rng, SPINS)
    binary, _ = spin.family.recode(spin.theta, BINARY)
    expected = 1 / (1 + np.exp(-2 * spin.parts.biases))
    for model in (spin, binary):
        np.testing.assert_allclose([shares_of(model, "biases", i)[1] for i in range(4)], expected)


def test_base_of_data_counts_present_cells_and_one_of_each_value():
    data = gb.Dataset.read([[1, None], [1, 0], [0, 0]], coding="binary", sample_weight=[2.0, 1.0, 1.0])
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), BINARY))
    np.testing.assert_allclose(shares_of(model, data, 0), [2 / 6, 4 / 6])
    np.testing.assert_allclose(shares_of(model, data, 1), [3 / 4, 1 / 4])


def test_starts_have_the_base_rates():
    family = gb.TablesFamily.potts(gb.graphs.complete(2), Variables.categories((3, 2)))
    path = variable_path(gb.Model.zeros(family), np.log([0.2, 0.5, 0.3, 0.9, 0.1]))
    codes = path.start(20_000, Key.of(0)).states
    np.testing.assert_allclose(np.bincount(codes[:, 0]) / 20_000, [0.2, 0.5, 0.3], atol=0.015)
    np.testing.assert_allclose(codes[:, 1].mean(), 0.1, atol=0.01)


# -- ladders ----------------------------------------------------------------------------------------------------------
def test_adapted_ladder_is_a_ladder_and_lowers_the_spread():
    model = gb.PairwiseFamily.model(gb.graphs.grid(4, 4), None, np.full(24, 5.0))
    even = Annealing(200, 300)
    adapted = even.adapted(model, 0)
    assert len(adapted.ladder) == 301
    assert np.all(np.diff(adapted.ladder) > 0)
    spreads = [annealing.forward(model, 1).log_weights.std() for annealing in (even, adapted)]
    assert spreads[1] < 0.7 * spreads[0]


@pytest.mark.parametrize("betas", [[0.0, 0.5], [0.1, 1.0], [0.0, 0.5, 0.5, 1.0], [0.0, np.nan, 1.0]])
def test_a_ladder_that_does_not_rise_from_0_to_1_is_refused(betas):
    with pytest.raises(ArgumentError, match="betas must rise from 0 to 1"):
        Annealing(betas=betas)


def test_settings_that_cannot_be_used_are_named():
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    with pytest.raises(ArgumentError, match="n_walkers=1 must be at least 2"):
        Annealing(n_walkers=1)
    with pytest.raises(ArgumentError, match="betas=0 must be at least 1"):
        Annealing(betas=0)
    with pytest.raises(ArgumentError, match="base='data' is not known"):
        variable_path(model, "data")
    with pytest.raises(ArgumentError, match="for other variables than those of the model"):
        variable_path(model, np.zeros(3))
    with pytest.raises(ArgumentError, match=r"states has shape \(2, 2\): give rows of 3 variables"):
        Annealing().reverse(model, [[1, 1], [1, 0]])
    with pytest.raises(CodingError, match="states holds -1 for variable 1: give its code, from 0 to 1"):
        Annealing().reverse(model, [[1, 1, 0], [1, -1, 1]])
    with pytest.raises(ArgumentError, match="samples='mcmc' is not known"):
        log_partition_interval(model, "mcmc")
    with pytest.raises(ArgumentError, match=r"the data has shape \(2, 2\): give rows of 3 variables"):
        variable_path(model, gb.Dataset.read(np.array([[1, 1], [0, 1]]), coding="binary"))


# -- what a run says --------------------------------------------------------------------------------------------------
def run_of(log_weights, reverse=False):
    return AnnealedRun(np.ones((len(log_weights), 1), np.int8), np.asarray(log_weights, float), 10, reverse)


def test_log_partition_and_its_error_are_those_of_the_mean_weight(rng):
    weights = rng.gamma(2.0, size=50)
    run = run_of(np.log(weights) + 1000.0)
    assert run.log_partition == pytest.approx(1000 + np.log(weights.mean()))
    assert run.log_partition_stderr == pytest.approx(weights.std(ddof=1) / weights.mean() / np.sqrt(50))
    assert run_of(-np.log(weights) - 1000.0, reverse=True).log_partition == pytest.approx(
        1000 - np.log((1 / weights).mean())
    )


def test_bad_weights_are_told(rng):
    assert run_of([0.0, 0.1, 3.0]).warning == "one of 3 walkers holds 91% of the weight"
    assert "too heavy a tail" in run_of(3.0 * rng.normal(size=1000)).warning
    assert run_of(0.3 * rng.normal(size=1000)).warning is None
    assert np.isnan(run_of([0.0, 1.0]).pareto_k)


def test_interval_warns_when_the_sides_are_apart():
    model = gb.PairwiseFamily.model(gb.graphs.grid(6, 6), np.zeros(36), np.full(60, 2.0))
    with pytest.warns(MixingWarning, match="raise the number of temperatures, betas=3"):
        interval = log_partition_interval(model, "exact", Annealing(50, 3), rng=0)
    assert interval.lower < gb.inference.exact(model).log_partition < interval.upper
    assert "beware" in str(interval)


def test_interval_tells_runs_that_differ_beyond_their_errors(rng):
    noise = 0.1 * rng.normal(size=100)
    apart = LogPartitionInterval(run_of(noise), run_of(-1.0 - noise, reverse=True), "no states")
    assert apart.trouble.startswith("the forward and reverse estimates of log Z are 0.99")
    assert apart.lower < apart.forward.log_partition < apart.reverse.log_partition < apart.upper
    together = LogPartitionInterval(run_of(noise), run_of(-noise, reverse=True), "no states")
    assert together.trouble is None


def test_interval_from_data(rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    states, p, truth = exact_law(model)
    data = dataset_of(states[rng.choice(64, 3000, p=p)], model.variables)
    interval = log_partition_interval(variable_path(model, data), data, Annealing(100, 500), rng=0)
    assert interval.lower < truth < interval.upper
    assert "100 rows of the data" in interval.describe()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"betas": []}, "betas must rise"),
        ({"betas": [[0.0, 1.0]]}, "betas must rise"),
        ({"betas": ["a", "b"]}, "betas must rise"),
        ({"betas": "x"}, "betas='x' must be a whole number"),
        ({"betas": np.nan}, "betas=nan must be a whole number"),
        ({"betas": 1.9}, "betas=1.9 must be a whole number"),
        ({"n_walkers": 2.5}, "n_walkers=2.5 must be a whole number"),
    ],
)
def test_annealing_names_the_setting(settings, match):
    with pytest.raises(ArgumentError, match=match):
        Annealing(**settings)


@pytest.mark.parametrize(("base", "match"), [([1.0], "base="), (None, "base=None")])
def test_paths_name_the_base(base, match):
    with pytest.raises(ArgumentError, match=match):
        variable_path(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3))), base)
