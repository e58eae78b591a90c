"""Annealed importance sampling against exact answers, over many seeds: coverage, bounds, law of the walkers."""

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.expectations import AnnealedWalkers, Sampled
from gibbsian.old_sampling import Annealing, IndependentVariables, variable_path
from gibbsian.old_sampling.variable_paths import Walkers, _spin_path, _table_path, variables_to_sum_out
from systems import exact_law, random_model, take

SEEDS = range(20)
SMALLEST_P_VALUE = 1e-4


def rbm_graph(n_visible, n_hidden):
    pairs = [(i, n_visible + j) for i in range(n_visible) for j in range(n_hidden)]
    return gb.graphs.from_edges(pairs, n_visible + n_hidden)


@pytest.fixture(params=["grid", "complete", "rbm"])
def model(request):
    rng = np.random.default_rng(7)
    graph = {"grid": gb.graphs.grid(3, 4), "complete": gb.graphs.complete(8), "rbm": rbm_graph(4, 6)}[request.param]
    return random_model(graph, rng, scale=0.6)


@pytest.mark.parametrize("marginalise", [False, True])
def test_log_partition_is_covered_by_its_errors(model, marginalise):
    """Both ways, 20 seeds: about 19 of 20 within two errors, z-scores neither too wide nor off centre."""
    engine = gb.inference.exact(model)
    truth = engine.log_partition
    annealing, path = Annealing(200, 200), variable_path(model, marginalise=marginalise)
    z = {"forward": [], "reverse": []}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        draws = engine.sample(200, rng)
        for run in (annealing.forward(path, rng), annealing.reverse(path, draws, rng)):
            z["reverse" if run.reverse else "forward"].append((run.log_partition - truth) / run.log_partition_stderr)
    for scores in z.values():
        assert np.count_nonzero(np.abs(scores) < 2) >= 16
        assert np.max(np.abs(scores)) < 4
        assert abs(np.mean(scores)) < 4 / np.sqrt(len(SEEDS))


def test_forward_is_below_and_reverse_above_on_average():
    """Few walkers and few temperatures: the biases stand out of the noise, each on its side."""
    model = gb.PairwiseFamily.model(gb.graphs.grid(4, 4), np.full(16, 0.2), np.full(24, 0.8))
    engine = gb.inference.exact(model)
    truth = engine.log_partition
    annealing, path = Annealing(2, 5), variable_path(model, "uniform")
    below, above = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        below.append(annealing.forward(path, rng).log_partition)
        above.append(annealing.reverse(path, engine.sample(2, rng), rng).log_partition)
    error = np.std(below) / np.sqrt(200), np.std(above) / np.sqrt(200)
    assert np.mean(below) + 3 * error[0] < truth < np.mean(above) - 3 * error[1]


def test_forward_and_reverse_are_each_others_time_reversal(model):
    """Crooks: the reverse weights are distributed as the forward ones tilted by the weight, at any number of steps.

    Bennett's combination rests on it.
    """
    engine = gb.inference.exact(model)
    truth = engine.log_partition
    for marginalise in (False, True):
        annealing, path = Annealing(4000, 3), variable_path(model, marginalise=marginalise)
        rng = np.random.default_rng(1)
        forward = annealing.forward(path, rng)
        reverse = annealing.reverse(path, engine.sample(4000, rng), rng)
        for level in (-0.5, 0.0, 0.5):
            indicator = forward.log_weights - truth < level
            tilted = np.exp(forward.log_weights - truth) * indicator
            found = np.mean(-reverse.log_weights - truth < level)
            error = np.hypot(tilted.std(), np.sqrt(found * (1 - found))) / np.sqrt(4000)
            assert abs(tilted.mean() - found) < 4 * error


def test_combined_estimate_is_covered_and_no_worse_than_either(model):
    engine = gb.inference.exact(model)
    truth = engine.log_partition
    annealing = Annealing(100, 20)
    z, gains = [], []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        forward = annealing.forward(model, rng)
        reverse = annealing.reverse(model, engine.sample(60, rng), rng)  # other numbers of walkers there and back
        found = LogPartitionInterval(forward, reverse, "exact draws").combined()
        estimate, error = found.value, found.stderr
        z.append((estimate - truth) / error)
        gains.append(error / forward.log_partition_stderr)
    assert np.count_nonzero(np.abs(z) < 2) >= 16
    assert np.max(np.abs(z)) < 4
    assert np.mean(gains) < 0.8


@pytest.mark.parametrize("make", [_spin_path, _table_path], ids=["spins", "tables"])
@pytest.mark.parametrize("summed", [False, True])
def test_sweeps_keep_every_place_of_the_path(make, summed):
    """Start exactly at an intermediate law and sweep there: steps of the weight of no size."""
    model = random_model(gb.graphs.grid(2, 3), np.random.default_rng(3), scale=0.9)
    states, _, _ = exact_law(model)
    law, beta = IndependentVariables.of_data(model, np.ones((3, 6), np.int8)), 0.6
    base = sum(law.log_probabilities[law.starts[i] + states[:, i]] for i in range(6))
    p = np.exp(beta * model.log_weights(states) + (1 - beta) * base)
    p /= p.sum()
    path = make(model, law, variables_to_sum_out(model.family.graph) if summed else np.zeros(6, bool))
    rng = np.random.default_rng(5)
    walkers = states[rng.choice(64, 20_000, p=p)].copy()
    streams = rng.integers(1, 2**63, (20_000, 4), dtype=np.uint64)
    increases = path.walk(Walkers(walkers, streams), np.full(4, beta))
    assert not increases.any()
    counts = np.bincount(walkers @ (1 << np.arange(5, -1, -1)), minlength=64)
    enough = p * 20_000 > 5
    observed, expected = np.append(counts[enough], counts[~enough].sum()), np.append(p[enough], p[~enough].sum())
    keep = expected > 0
    assert stats.chisquare(observed[keep], 20_000 * expected[keep]).pvalue > SMALLEST_P_VALUE


@pytest.mark.parametrize("graph", [gb.graphs.grid(4, 5), rbm_graph(8, 12)], ids=["grid", "rbm"])
def test_summing_out_a_side_lowers_the_spread_of_the_weights(graph):
    model = random_model(graph, np.random.default_rng(0), scale=0.5)
    spread = {}
    for marginalise in (False, True):
        path = variable_path(model, marginalise=marginalise)
        spread[marginalise] = Annealing(1000, 500).forward(path, rng=1).log_weights.var()
    assert spread[True] < 0.8 * spread[False]


def test_expectations_are_covered_by_their_errors(model):
    states, p, _ = exact_law(model)
    truth = model.family.mean_statistics(states, p)
    walkers = Sampled(AnnealedWalkers(n_walkers=500, betas=30))
    z = []
    for seed in SEEDS:
        estimate = take(walkers, model, seed=seed)
        z.append((estimate.value - truth) / estimate.stderr)
    assert 0.85 < np.std(z) < 1.15
    assert abs(np.mean(z)) < 0.2


def test_a_way_back_that_ends_below_the_way_there_is_not_taken_for_an_upper_side():
    """Two far modes, and a start that knows the lighter one only: the reverse run misses a part of Z."""
    model = gb.PairwiseFamily.model(gb.graphs.complete(8), [0.4] * 8, [1.0] * 28)
    down = np.zeros((50, 8), np.int8)
    interval = gb.diagnostics.log_partition_interval(
        model, down, Annealing(n_walkers=200, betas=1000), rng=0, warn=False
    )
    truth = gb.inference.exact(model).log_partition
    assert interval.crossed
    assert "log Z may be above both" in interval.trouble
    assert interval.reverse.log_partition < truth - 0.1
    assert interval.lower < truth < interval.upper
    annealing = Annealing(n_walkers=200, betas=1000)
    assert not gb.diagnostics.log_partition_interval(model, "exact", annealing, rng=0).crossed
