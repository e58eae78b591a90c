"""Annealed importance sampling: both kernels against each other and enumeration, ladders, starts, and messages."""

import pickle
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.backends.parallel import limited_threads
from gibbsian.backends.processes import dealt_by
from gibbsian.diagnostics.partition import LogPartitionInterval, log_partition_interval
from gibbsian.errors import ArgumentError, CodingError, MixingWarning
from gibbsian.models.factors import Factor, FactorGraph
from gibbsian.models.scopes import Scopes
from gibbsian.old_sampling import IndependentVariables, variable_path
from gibbsian.old_sampling.annealing import AnnealedRun, Annealing
from gibbsian.old_sampling.independent import as_independent
from gibbsian.old_sampling.variable_paths import Walkers, _spin_path, _table_path, variables_to_sum_out
from layered_systems import restricted
from systems import BINARY, SPINS, all_states, dataset_of, exact_law, products_of_order, random_model

GRAPHS = {"complete": gb.graphs.complete(5), "grid": gb.graphs.grid(2, 3)}
BASES = ["uniform", "biases"]
FORMS = {"spins": _spin_path, "tables": _table_path}


@dataclass(frozen=True)
class Tables:
    """The least of a model that annealing asks for."""

    product: FactorGraph
    theta: None = None

    @property
    def variables(self):
        return Variables.categories(self.product.cardinalities)

    @property
    def n_variables(self):
        return self.product.n_variables

    @property
    def graph(self):
        return self.product.graph

    @property
    def family(self):
        return self

    def factors(self, theta):
        return self.product


def table_model(rng):
    """A triple, a pair, two factors of the same variable, and a variable with one value, of mixed cardinalities."""
    sizes = (3, 2, 4, 1, 3)
    scopes = [(0, 1, 2), (2, 4), (1,), (1,), (3, 4)]
    factors = tuple(Factor(scope, rng.normal(size=[sizes[i] for i in scope])) for scope in scopes)
    return Tables(FactorGraph(np.array(sizes), factors))


def end_to_end(path, codes):
    """``log f - log p_0`` of states: one step over the whole path, before any sweep."""
    streams = np.arange(1, 4 * len(codes) + 1, dtype=np.uint64).reshape(-1, 4)
    return path.walk(Walkers(codes.copy(), streams), np.array([0.0, 1.0]))


def log_base(base, codes):
    return sum(base.log_probabilities[base.starts[i] + codes[:, i]] for i in range(codes.shape[1]))


# -- one step of the weight -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("form", ["spins", "tables"])
def test_a_step_over_the_whole_path_is_the_ratio_of_the_weights(form, graph, base, rng, scores):
    model = random_model(GRAPHS[graph], rng, scores)
    law = as_independent(base, model)
    make = FORMS[form]
    path = make(model, law, np.zeros(model.n_variables, bool))
    codes = all_states(model.variables)
    expected = model.log_weights(codes) - log_base(law, codes)
    np.testing.assert_allclose(end_to_end(path, codes), expected, atol=1e-12)


@pytest.mark.parametrize("form", ["spins", "tables"])
def test_summing_out_gives_the_marginal_of_every_place_on_the_path(form, rng, scores):
    """Steps of any size from any state of the others: the values of the summed-out variables do not matter."""
    model = random_model(gb.graphs.grid(2, 3), rng, scores)
    law, summed = IndependentVariables.of_biases(model), variables_to_sum_out(model.family.graph)
    make = FORMS[form]
    path = make(model, law, summed)
    codes = all_states(model.variables)
    log_weights, log_start = model.log_weights(codes), log_base(law, codes)
    kept = codes[:, ~summed] @ (1 << np.arange(int((~summed).sum())))

    def log_marginal(beta):
        sums = np.full(kept.max() + 1, -np.inf)
        np.logaddexp.at(sums, kept, beta * log_weights + (1 - beta) * log_start)
        return sums[kept]

    streams = np.ones((len(codes), 4), np.uint64)
    increases = path.walk(Walkers(codes.copy(), streams), np.array([0.3, 0.9]))
    np.testing.assert_allclose(increases, log_marginal(0.9) - log_marginal(0.3), atol=1e-12)


def test_tables_of_mixed_cardinalities_and_their_marginals(rng):
    model = table_model(rng)
    law, codes = IndependentVariables.of_biases(model), all_states(model.variables)
    log_weights = model.product.log_weights(codes)
    plain = _table_path(model, law, np.zeros(5, bool))
    np.testing.assert_allclose(end_to_end(plain, codes), log_weights - log_base(law, codes), atol=1e-12)
    summed = np.array([True, False, False, True, False])
    kept = np.ravel_multi_index(codes[:, ~summed].T, (2, 4, 3))
    sums = np.full(24, -np.inf)
    np.logaddexp.at(sums, kept, log_weights)
    start = sum(law.log_probabilities[law.starts[i] + codes[:, i]] for i in np.flatnonzero(~summed))
    np.testing.assert_allclose(end_to_end(_table_path(model, law, summed), codes), sums[kept] - start, atol=1e-12)


def test_both_forms_take_the_same_steps_from_the_same_states(rng):
    """Steps over the path before any sweep, more walkers than one group of lanes holds."""
    model = random_model(gb.graphs.grid(3, 3), rng)
    law, summed = IndependentVariables.of_biases(model), variables_to_sum_out(model.family.graph)
    codes = rng.integers(0, 2, (77, 9)).astype(np.int8)
    spins, tables = (make(model, law, summed) for make in FORMS.values())
    np.testing.assert_allclose(end_to_end(spins, codes), end_to_end(tables, codes), atol=1e-12)


def test_the_way_back_visits_the_kept_variables_in_reverse_order(rng):
    """The time reversal of a sweep; what is summed out is drawn first both ways, so that the others form a chain."""
    model = random_model(gb.graphs.grid(1, 5), rng)
    path = variable_path(model, "uniform", marginalise=True)
    assert path._sites(backwards=False).tolist() == [0, 2, 4, 1, 3]
    assert path._sites(backwards=True).tolist() == [0, 2, 4, 3, 1]


# -- whole runs -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("marginalise", [False, True])
def test_weights_are_uniform_when_the_target_is_the_base(marginalise, rng, scores):
    model = gb.PairwiseFamily.model(gb.graphs.grid(2, 3), rng.normal(size=6), np.zeros(7), scores)
    truth = exact_law(model)[2]
    annealing, path = Annealing(20, 50), variable_path(model, "biases", marginalise)
    forward = annealing.forward(path, rng=1)
    np.testing.assert_allclose(forward.log_weights, truth, atol=1e-12)
    np.testing.assert_allclose(annealing.reverse(path, forward.states, rng=2).log_weights, -truth, atol=1e-12)
    assert forward.effective_sample_size == pytest.approx(20)
    assert forward.log_partition_stderr < 1e-12
    assert forward.trouble is None


@pytest.mark.parametrize("kind", ["variables", "layers"])
def test_walkers_that_are_dealt_out_go_the_same_way(kind, rng):
    if kind == "variables":
        path = variable_path(random_model(gb.graphs.grid(2, 3), rng))
    else:
        layers = gb.models.BinaryUnits(4), gb.models.BinaryUnits(3)
        machine = restricted(*layers, w=rng.normal(size=(4, 3)))
        path = gb.old_sampling.layer_path(machine, summed="visible", rng=rng)
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
            there = walk.forward(path, rng=1)
            ends.append([there.log_weights, there.states, walk.reverse(path, there.states, rng=2).log_weights])
    assert sum(sizes) == 140
    assert len(sizes) > 3
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("marginalise", [False, True])
def test_walkers_depend_on_the_seed_alone(marginalise, rng):
    model = random_model(gb.graphs.grid(4, 5), rng)
    annealing, path = Annealing(70, 200), variable_path(model, marginalise=marginalise)
    with limited_threads(1):
        one = annealing.forward(path, rng=3)
    with limited_threads(2):
        again = annealing.forward(path, rng=3)
    fewer = replace(annealing, n_walkers=5).forward(path, rng=3)
    assert np.array_equal(one.states, again.states)
    assert np.array_equal(one.log_weights, again.log_weights)
    assert np.array_equal(one.log_weights[:5], fewer.log_weights)
    assert not np.array_equal(one.log_weights, annealing.forward(path, rng=4).log_weights)


@pytest.mark.parametrize("marginalise", [False, True])
@pytest.mark.parametrize("size", [50.0, -50.0])
def test_large_parameters_stay_finite(size, marginalise, scores):
    """A tree of strong couplings: log Z is known, and the states in between are frozen."""
    model = gb.PairwiseFamily.model(gb.graphs.grid(1, 12), np.full(12, 0.1), np.full(11, size), scores)
    run = Annealing(50, 500).forward(variable_path(model, marginalise=marginalise), rng=0)
    assert np.isfinite(run.log_weights).all()
    truth = gb.inference.exact(model).log_partition
    assert run.log_partition == pytest.approx(truth, rel=0.05)


def test_large_tables_stay_finite():
    model = Tables(FactorGraph(np.array([3, 3]), (Factor((0, 1), 800.0 * np.eye(3)),)))
    run = Annealing(50, 2000).forward(variable_path(model, "uniform"), rng=0)
    assert run.log_partition == pytest.approx(800 + np.log(3), abs=1.0)


@pytest.mark.parametrize("marginalise", [False, True])
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
def test_every_kind_of_model_has_its_interval(family, marginalise, rng):
    model = gb.Model(family, rng.normal(0, 0.5, family.n_parameters))
    truth = exact_law(model)[2]
    path = variable_path(model, marginalise=marginalise)
    interval = log_partition_interval(path, "gibbs", Annealing(100, 300), rng=1)
    assert interval.lower < truth < interval.upper < interval.lower + 0.1


def test_base_of_biases_is_the_same_by_tables(rng, scores):
    pairwise = random_model(gb.graphs.complete(4), rng, scores)
    twin = gb.Model(products_of_order(4, 2, scores), pairwise.theta)
    expected = IndependentVariables.of_biases(pairwise).log_probabilities
    np.testing.assert_allclose(IndependentVariables.of_biases(twin).log_probabilities, expected, atol=1e-14)


# -- starts -----------------------------------------------------------------------------------------------------------
def test_base_of_biases_does_not_depend_on_the_coding(rng):
    spin = random_model(gb.graphs.complete(4), rng, SPINS)
    binary, _ = spin.family.recode(spin.theta, BINARY)
    expected = 1 / (1 + np.exp(-2 * spin.parts.biases))
    for model in (spin, binary):
        law = IndependentVariables.of_biases(model)
        np.testing.assert_allclose([law.probabilities(i)[1] for i in range(4)], expected)


def test_base_of_data_counts_present_cells_and_one_of_each_value():
    data = gb.Dataset.read([[1, None], [1, 0], [0, 0]], coding="binary", sample_weight=[2.0, 1.0, 1.0])
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), BINARY))
    law = IndependentVariables.of_data(model, data)
    np.testing.assert_allclose(law.probabilities(0), [2 / 6, 4 / 6])
    np.testing.assert_allclose(law.probabilities(1), [3 / 4, 1 / 4])


def test_starts_have_the_base_rates():
    law = IndependentVariables.from_log_weights([np.log([0.2, 0.5, 0.3]), np.log([0.9, 0.1])])
    streams = np.random.default_rng(0).integers(0, 2**63, (20_000, 4), dtype=np.uint64)
    codes = law.draw_codes(streams)
    np.testing.assert_allclose(np.bincount(codes[:, 0]) / 20_000, [0.2, 0.5, 0.3], atol=0.015)
    np.testing.assert_allclose(codes[:, 1].mean(), 0.1, atol=0.01)


@pytest.mark.parametrize(
    ("graph", "n_summed"),
    [
        (gb.graphs.grid(3, 3), 5),
        (gb.graphs.from_edges([(0, 1), (0, 2), (3, 4), (3, 5), (3, 6)], 7), 5),  # two stars: the leaves of both
        (gb.graphs.from_edges([], 4), 4),
        (gb.graphs.complete(4), 1),
    ],
)
def test_what_is_summed_out_is_independent_and_large(graph, n_summed):
    summed = variables_to_sum_out(graph)
    assert summed.sum() == n_summed
    assert not summed[graph.edges].all(axis=1).any()


# -- ladders ----------------------------------------------------------------------------------------------------------
def test_adapted_ladder_is_a_ladder_and_lowers_the_spread():
    model = gb.PairwiseFamily.model(gb.graphs.grid(4, 4), None, np.full(24, 5.0))
    even = Annealing(200, 300)
    adapted = even.adapted(model, rng=0)
    assert len(adapted.ladder) == 301
    assert np.all(np.diff(adapted.ladder) > 0)
    spreads = [annealing.forward(model, rng=1).log_weights.std() for annealing in (even, adapted)]
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
    with pytest.raises(ArgumentError, match="made for other variables"):
        variable_path(model, IndependentVariables.from_log_weights([np.zeros(3)]))
    with pytest.raises(ArgumentError, match=r"states has shape \(2, 2\): give rows of 3 variables"):
        Annealing().reverse(model, [[1, 1], [1, 0]])
    with pytest.raises(CodingError, match="states holds -1 for variable 1: give its code, from 0 to 1"):
        Annealing().reverse(model, [[1, 1, 0], [1, -1, 1]])
    with pytest.raises(ArgumentError, match="samples='mcmc' is not known"):
        log_partition_interval(model, "mcmc")
    with pytest.raises(ArgumentError, match=r"the data has shape \(1, 2\): give rows of 3 variables"):
        IndependentVariables.of_data(model, np.array([[1, 1]]))


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
    assert run_of([0.0, 0.1, 3.0]).trouble == "one of 3 walkers holds 91% of the weight"
    assert "too heavy a tail" in run_of(3.0 * rng.normal(size=1000)).trouble
    assert run_of(0.3 * rng.normal(size=1000)).trouble is None
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


@pytest.mark.parametrize(("base", "match"), [(np.ones(3), "base=array"), (None, "base=None")])
def test_paths_name_the_base(base, match):
    with pytest.raises(ArgumentError, match=match):
        variable_path(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3))), base)
