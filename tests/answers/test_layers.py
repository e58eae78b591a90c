"""log Z and likelihoods of deep machines: annealing brackets the truth, bounds lie below it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from gibbsian.answers import answers_about
from gibbsian.diagnostics.likelihood import LogLikelihoodBound
from gibbsian.diagnostics.partition import LogPartitionInterval, log_partition_interval
from gibbsian.errors import ArgumentError, MissingValuesError, TooExpensiveError
from gibbsian.expectations.layers import mean_field_bounds, recognition_bounds
from gibbsian.inference import exact
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits, codes_of
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, kernel_for, layer_path
from layered_systems import all_codes, all_values, network, restricted, rows_of, stack

STACKS = {
    "binary-3": (BinaryUnits(6), BinaryUnits(5), BinaryUnits(4)),
    "spin-4": (SpinUnits(4), SpinUnits(3), SpinUnits(3), SpinUnits(2)),
    "mixed": (CategoricalUnits((3, 2)), BinaryUnits(3), SpinUnits(3)),
}


def random_machine(layers, seed=0, scale=0.8):
    rng = np.random.default_rng(seed)
    return stack(layers).replace(scale * rng.standard_normal(stack(layers).theta.size))


def random_network(layers, seed=0, scale=0.8):
    rng = np.random.default_rng(seed)
    return network(layers, scale * rng.standard_normal(network(layers).theta.size))


def all_rows(model):
    return rows_of(model.visible, all_codes(model.visible))


def log_likelihood(model, data, exactly=None, **settings):
    return answers_about(model).log_likelihood(data, np.random.default_rng(0), exactly=exactly, **settings)


@pytest.mark.parametrize(("name", "summed"), [("binary-3", "visible"), ("spin-4", "hidden"), ("mixed", "visible")])
def test_annealing_brackets_log_partition_over_twenty_seeds(name, summed):
    model = random_machine(STACKS[name])
    truth = model.family.log_partition(model.parts)
    annealing = Annealing(n_walkers=75, betas=80)
    inside, errors = 0, []
    for seed in range(20):
        path = layer_path(model, summed=summed, random_state=seed)
        interval = log_partition_interval(path, "exact", annealing, rng=seed, warn=False)
        inside += interval.lower <= truth <= interval.upper
        below, above = interval.stderrs
        errors += [(interval.forward.log_partition - truth) / below, (interval.reverse.log_partition - truth) / above]
    # two standard errors on the side of each run: a miss in about twenty
    assert inside >= 17
    assert np.abs(errors).max() < 4.5
    assert abs(np.mean(errors)) < 1.0


def test_annealing_starts_at_the_rates_of_rows():
    model = random_machine(STACKS["binary-3"], seed=1)
    rows = rows_of(model.visible, np.random.default_rng(0).integers(0, 2, (50, 6)))
    interval = answers_about(model).log_partition_interval(np.random.default_rng(1), 100, 300, rows)
    assert interval.lower - 0.05 < model.family.log_partition(model.parts) < interval.upper + 0.05
    assert interval.upper - interval.lower < 0.5


@pytest.mark.parametrize("name", STACKS)
def test_exact_likelihood_sums_to_one(name):
    for model in (random_machine(STACKS[name]), random_network(STACKS[name])):
        found = log_likelihood(model, all_rows(model))
        assert found.exact
        assert logsumexp(found.per_row()) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", STACKS)
def test_mean_field_bound_lies_below_the_likelihood(name):
    model = random_machine(STACKS[name], seed=2)
    rows = all_rows(model)
    truth = log_likelihood(model, rows, True)
    found = log_likelihood(model, rows, False)
    assert isinstance(found, LogLikelihoodBound)
    assert not found.exact
    assert (found.per_row() <= truth.per_row() + 1e-9).all()
    assert found.lower > truth.lower - 2.0
    assert "at least" in found.describe()
    assert "exact log Z" in found.describe()


@pytest.mark.parametrize("name", STACKS)
def test_recognition_bound_lies_below_and_grows_with_the_draws(name):
    network = random_network(STACKS[name], seed=3, scale=0.3)
    rows = all_rows(network)
    truth = network.log_evidence(network.visible.encode(rows.states))
    few = np.mean([recognition_bounds(network, rows.states, 2, rng=seed)[0] for seed in range(100)], axis=0)
    many, errors = recognition_bounds(network, rows.states, 2000, rng=1)
    assert few.mean() < many.mean()
    assert (np.abs(many - truth) < 5 * errors + 1e-3).all()
    found = log_likelihood(network, rows, False)
    assert found.lower < log_likelihood(network, rows, True).lower
    assert "draws a row from the recognition weights" in str(found)


def test_common_random_numbers_leave_rows_alone():
    network = random_network(STACKS["binary-3"], seed=3)
    rows = all_rows(network)
    whole, _ = recognition_bounds(network, rows.states, 20, rng=0, common=True)
    backwards, _ = recognition_bounds(network, rows.states[::-1], 20, rng=0, common=True)
    np.testing.assert_allclose(backwards[::-1], whole, atol=1e-12)


def test_variational_bound_is_right_on_average():
    """The mean of log P(v, h) - log Q(h | v) over Q, by enumeration, is what two draws estimate from below."""
    network = random_network((BinaryUnits(3), BinaryUnits(2), BinaryUnits(2)), seed=4)
    rows = all_rows(network)
    v = network.visible.encode(rows.states)
    hidden = all_values(network.layers[1])
    values = [np.repeat(v, 4, axis=0), np.tile(hidden, (len(v), 1))]
    log_q = network.family.log_recognition(network.theta, values)
    variational = (
        (np.exp(log_q) * (network.family.log_joint(network.theta, values) - log_q)).reshape(len(v), 4).sum(axis=1)
    )
    truth = network.log_evidence(v)
    draws = np.array([recognition_bounds(network, rows.states, 2, rng=seed)[0] for seed in range(300)])
    spread = draws.std(axis=0) / np.sqrt(300)
    assert (variational <= draws.mean(axis=0) + 4 * spread).all()
    assert (draws.mean(axis=0) <= truth + 4 * spread).all()


def test_missing_cells_are_bounded_or_refused():
    model = random_machine(STACKS["binary-3"], seed=5)
    rows = rows_of(model.visible, np.zeros((4, 6), np.int8), missing=np.eye(4, 6, dtype=bool))
    found = log_likelihood(model, rows)
    assert isinstance(found, LogLikelihoodBound)
    ones = np.eye(4, 6)
    truth = np.logaddexp(model.log_evidence(np.zeros((4, 6))), model.log_evidence(ones)) - model.family.log_partition(
        model.parts
    )
    assert (found.per_row() <= truth + 1e-9).all()
    with pytest.raises(MissingValuesError, match="complete rows"):
        log_likelihood(random_network(STACKS["binary-3"]), rows, False)
    with pytest.raises(MissingValuesError, match="without missing cells"):
        log_likelihood(model, rows, True)


def test_gaussian_rows_have_densities():
    model = random_machine((GaussianUnits(1, (0.7,)), BinaryUnits(3), BinaryUnits(2)), seed=6)
    grid = np.linspace(-20, 20, 4001)
    rows = rows_of(model.visible, grid[:, None])
    found = log_likelihood(model, rows, False)
    mass = np.trapezoid(np.exp(found.per_row()), grid)
    assert 0.5 < mass < 1.0
    exactly = log_likelihood(model, rows, True)
    assert np.trapezoid(np.exp(exactly.per_row()), grid) == pytest.approx(1.0, abs=1e-8)


def test_interval_is_reported_where_log_partition_is_out_of_reach():
    layers = (BinaryUnits(30), BinaryUnits(28), BinaryUnits(10))
    rng = np.random.default_rng(0)
    model = stack(layers).replace(0.1 * rng.standard_normal(stack(layers).theta.size))
    rows = rows_of(model.visible, rng.integers(0, 2, (20, 30)))
    found = log_likelihood(model, rows, False, n_samples=50, betas=100)
    assert isinstance(found.log_partition, LogPartitionInterval)
    assert found.lower <= found.pessimistic <= found.optimistic + 1.0
    assert found.upper == np.inf
    assert "too large in expectation" in found.describe()
    with pytest.raises(TooExpensiveError, match="a sum over 28 units of the layers of 30, 28, 10 units"):
        answers_about(model).log_partition()


@pytest.mark.parametrize("name", STACKS)
def test_block_gibbs_keeps_the_exact_distribution(name):
    """Odd and even layers in turn, from exact draws: the moments stay where they are."""
    model = random_machine(STACKS[name], seed=7)
    rng = np.random.default_rng(0)
    n = 20_000
    layers = zip(model.family.layers, exact(model).sample_layers(n, rng), strict=True)
    states, kernel = np.hstack([codes_of(layer, part) for layer, part in layers]), kernel_for(model.family)
    values = model.family.encode(kernel.step(model.theta, kernel.init(n, Key.of(0), states), 3)[0].states)
    # statistics are bounded by 1, so their errors by 1 / sqrt(n)
    assert np.abs(model.family.statistics_of(values) - exact(model).moments).max() < 4.5 / np.sqrt(n)


@pytest.mark.parametrize("name", STACKS)
def test_layers_drawn_from_their_neighbours_keep_the_exact_distribution(name):
    model = random_machine(STACKS[name], seed=8)
    rng = np.random.default_rng(1)
    n = 20_000
    values = exact(model).sample_layers(n, rng)
    for place in (*model.family.sides[1], *model.family.sides[0]):
        values[place] = model.family.draw(model.parts, place, values, rng)
    assert np.abs(model.family.statistics_of(values) - exact(model).moments).max() < 4.5 / np.sqrt(n)


def test_mean_field_bounds_of_blocks_agree():
    model = random_machine(STACKS["binary-3"], seed=9)
    rows = rows_of(model.visible, np.random.default_rng(2).integers(0, 2, (2100, 6)))
    bounds = mean_field_bounds(model, rows)
    some = rows_of(model.visible, rows.states[1500:1510])
    np.testing.assert_allclose(bounds[1500:1510], mean_field_bounds(model, some), atol=1e-4)


@pytest.mark.parametrize("name", STACKS)
def test_answers_agree_with_the_exact_distribution(name):
    """Samples, expectations and intervals."""
    for model in (random_machine(STACKS[name]), random_network(STACKS[name])):
        answers, rng = answers_about(model), np.random.default_rng(0)
        truth = answers.log_partition()
        found = answers.log_partition_interval(rng, 50, 100, warn=False)
        assert found.lower - 0.2 < truth < found.upper + 0.2
        for method in ("exact", "gibbs"):
            states, hidden = answers.sample(5, rng, method)
            assert states.shape == (5, model.visible.n_units)
            assert hidden.shape == (5, sum(layer.n_units for layer in model.layers[1:]))
        with pytest.raises(ArgumentError, match="belong to method='gibbs'"):
            answers.sample(5, rng, "exact", n_steps=3)
        with pytest.raises(ArgumentError, match="method='magic' is not known"):
            answers.sample(5, rng, "magic")


def test_expectations_over_chains_are_within_their_errors():
    model = random_machine(STACKS["binary-3"], seed=4, scale=0.4)
    answers = answers_about(model)
    truth, found = answers.expect(None), answers.expect(np.random.default_rng(0), "gibbs", 4000)
    assert truth.is_exact
    assert (np.abs(found.value - truth.value) < 4.5 * found.stderr + 1e-9).all()
    with pytest.raises(ArgumentError, match="has no moments"):
        answers_about(random_network(STACKS["binary-3"])).expect(None)


def test_a_network_sums_over_the_completions_of_a_row():
    network = random_network(STACKS["binary-3"], seed=5)
    rows = all_rows(network)
    missing = np.array([[True, False, True, False, False, False]])
    holed = rows_of(network.visible, np.zeros((1, 6), np.int8), missing)
    agree = (rows.states[:, [1, 3, 4, 5]] == 0).all(axis=1)
    weights = network.log_evidence(network.visible.encode(rows.states))
    answers = answers_about(network)
    np.testing.assert_allclose(answers.log_evidence(holed), [logsumexp(weights[agree])])
    shares = np.exp(weights[agree] - logsumexp(weights[agree]))
    np.testing.assert_allclose(answers.cell_probabilities(holed, None)[0], shares @ rows.states[agree])


def test_no_expectation_over_chains_has_an_error_of_zero():
    biases = np.full(6, -9.0)  # hardly ever on: no draw differs
    model = restricted(BinaryUnits(6), BinaryUnits(3), b=biases)
    answers = answers_about(model)
    truth, found = answers.expect(None), answers.expect(np.random.default_rng(0), "gibbs", 500)
    assert found.stderr.min() >= 1.5 / 500
    assert (np.abs(found.value - truth.value) <= 2.0 * found.stderr).mean() > 0.9
