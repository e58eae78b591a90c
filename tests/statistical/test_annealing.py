"""Annealed importance sampling against exact answers, over many seeds: coverage, bounds, law of the walkers."""

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from gibbsian import Variables
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.expectations import AnnealedWalkers, Sampled
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, variable_path
from gibbsian.sampling.walks import Walk, bind_walk
from systems import exact_law, random_model, random_model_of, take

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


def test_log_partition_is_covered_by_its_errors(model):
    """Both ways, 20 seeds: about 19 of 20 within two errors, z-scores neither too wide nor off centre."""
    engine = gb.inference.exact(model)
    truth = engine.log_partition
    annealing, path = Annealing(200, 200), variable_path(model)
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
    path, betas = variable_path(model), np.linspace(0.0, 1.0, 4)
    draws = path.chains_at(engine.sample(4000, np.random.default_rng(1)), Key.of(1))
    for walk in (bind_walk(path, path.kernel()), Walk(path, path.kernel())):
        forward = walk.anneal(path.start(4000, Key.of(0)), betas)[1] + path.log_partition
        reverse = walk.anneal(draws, betas[::-1].copy())[1] - path.log_partition
        for level in (-0.5, 0.0, 0.5):
            tilted = np.exp(forward - truth) * (forward - truth < level)
            found = np.mean(-reverse - truth < level)
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


@pytest.mark.parametrize("walk_of", [bind_walk, Walk], ids=["compiled", "step by step"])
@pytest.mark.parametrize("kind", ["pairwise", "potts"])
def test_walks_keep_every_place_of_the_path(walk_of, kind):
    """Start exactly at an intermediate law, and sweep and exchange there."""
    variables = Variables.spins if kind == "pairwise" else Variables.categories((2,) * 6)
    model = random_model_of(kind, gb.graphs.grid(2, 3), np.random.default_rng(3), variables, scale=0.9)
    path, beta, n = variable_path(model, np.log(np.tile([0.25, 0.75], 6))), 0.6, 20_000
    walk, states = walk_of(path, path.kernel()), exact_law(model)[0]

    def law(beta):
        p = np.exp(path.log_weights(states, np.array([beta]))[0] + path.at(0.0).log_weights(states))
        return p / p.sum()

    def p_value(found, p):
        counts = np.bincount(found @ (1 << np.arange(5, -1, -1)), minlength=64)
        enough = p * n > 5
        observed, expected = np.append(counts[enough], counts[~enough].sum()), np.append(p[enough], p[~enough].sum())
        return stats.chisquare(observed[expected > 0], n * expected[expected > 0]).pvalue

    def draws(beta, seed):
        rng = np.random.default_rng(seed)
        return path.chains_at(states[rng.choice(64, n, p=law(beta))], Key.of(seed))

    chains, increases = walk.anneal(draws(beta, 5), np.full(4, beta))
    assert not increases.any()
    assert p_value(chains.states, law(beta)) > SMALLEST_P_VALUE
    betas = np.array([0.3, beta, 1.0])
    ladder, _ = walk.exchange([draws(b, k) for k, b in enumerate(betas)], betas, range(4), Key.of(1), 1)
    for rung, b in zip(ladder, betas, strict=True):
        assert p_value(rung.states, law(b)) > SMALLEST_P_VALUE


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
