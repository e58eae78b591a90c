"""Annealing of restricted machines against exact log Z, over many seeds: coverage, bounds, unbiased weights."""

import numpy as np
import pytest

from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.inference import exact
from gibbsian.models.layers.units import BinaryUnits
from gibbsian.old_sampling import Annealing, layer_path
from gibbsian.old_sampling.layer_paths import IndependentUnits
from layered_systems import Machine, random_machine, restricted

SEEDS = range(20)


def trained_like(rng, strength=0.7) -> Machine:
    """Strong weights in few directions, as learning from patterns leaves them: two patterns and their complements."""
    patterns = rng.choice([-1.0, 1.0], size=(2, 30))
    weights = strength * np.repeat(patterns.T, 5, axis=1) + rng.normal(scale=0.3, size=(30, 10))
    return restricted(BinaryUnits(30), BinaryUnits(10), -0.5 * weights.sum(axis=1), None, weights)


MACHINES = {
    "binary-binary": lambda rng: random_machine("binary", "binary", rng, 12, 8, scale=1.0),
    "spin-spin": lambda rng: random_machine("spin", "spin", rng, 12, 8, scale=0.6),
    "categorical-spin": lambda rng: random_machine("categorical", "spin", rng, 8, 6),
    "gaussian-binary": lambda rng: random_machine("gaussian", "binary", rng, 5, 8, scale=0.7),
    "binary-gaussian": lambda rng: random_machine("binary", "gaussian", rng, 8, 3, scale=0.5),
    "trained-like": trained_like,
}


@pytest.fixture(params=list(MACHINES))
def model(request):
    return MACHINES[request.param](np.random.default_rng(7))


@pytest.mark.parametrize(("name", "summed"), [*((name, "hidden") for name in MACHINES), ("binary-binary", "visible")])
def test_forward_and_reverse_bracket_the_exact_log_partition(name, summed):
    """20 seeds: intervals of two errors hold the truth, and z-scores are neither wide nor off centre."""
    model = MACHINES[name](np.random.default_rng(7))
    engine = exact(model)
    truth = engine.log_partition
    annealing, path = Annealing(60, 150), layer_path(model, summed=summed, rng=0)
    inside = 0
    z: dict[bool, list[float]] = {False: [], True: []}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        runs = annealing.forward(path, rng), annealing.reverse(path, engine.sample(60, rng), rng)
        interval = LogPartitionInterval(*runs, "exact draws")
        inside += interval.lower <= truth <= interval.upper
        for run in runs:
            z[run.reverse].append((run.log_partition - truth) / run.log_partition_stderr)
    assert inside >= 16
    for scores in z.values():
        assert np.count_nonzero(np.abs(scores) < 2) >= 16
        assert np.max(np.abs(scores)) < 4.5
        assert abs(np.mean(scores)) < 4 / np.sqrt(len(SEEDS))


@pytest.mark.parametrize("summed", ["hidden", "visible"])
def test_weights_are_unbiased_however_short_the_ladder(model, summed):
    """The mean of exp(log-weight - log Z) is 1, both ways, with three steps only."""
    engine = exact(model)
    annealing, path = Annealing(2000, 3), layer_path(model, summed=summed, rng=0)
    rng = np.random.default_rng(1)
    # machines whose weights have too heavy a tail for a z-test in three steps get more
    if model.visible.n_units == 30:
        annealing = Annealing(2000, 200)
    forward = annealing.forward(path, rng)
    reverse = annealing.reverse(path, engine.sample(2000, rng), rng)
    for log_ratios in (forward.log_weights - engine.log_partition, reverse.log_weights + engine.log_partition):
        ratios = np.exp(log_ratios)
        assert abs(ratios.mean() - 1.0) < 4 * ratios.std() / np.sqrt(2000)


def test_weighted_walkers_have_the_distribution_of_the_machine(model):
    engine = exact(model)
    run = Annealing(2000, 60).forward(layer_path(model, rng=0), 3)
    v = model.visible.encode(run.states)
    truth = engine.moments[: model.visible.width]
    relative = len(v) * run.weights
    error = np.sqrt(np.mean((relative[:, None] * (v - truth)) ** 2, axis=0) / len(v))
    assert (np.abs(run.weights @ v - truth) < 4.5 * error + 1e-9).all()


def test_machines_too_strong_for_the_ladder_are_bracketed_all_the_same_and_said_to_be():
    """Far apart, each on its side, and no seed passes for settled."""
    model = trained_like(np.random.default_rng(7), strength=1.0)
    engine = exact(model)
    # in one of four modes, to be far from the others
    far = IndependentUnits((model.biases[0], np.zeros(model.hidden.width)))
    annealing, path = Annealing(40, 50), layer_path(model, far)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        runs = annealing.forward(path, rng), annealing.reverse(path, engine.sample(40, rng), rng)
        interval = LogPartitionInterval(*runs, "exact draws")
        assert interval.lower < engine.log_partition < interval.upper
        assert interval.trouble


def test_few_walkers_err_on_their_side():
    """Few walkers and temperatures: forward is below log Z on average, reverse above."""
    model = random_machine("spin", "spin", np.random.default_rng(2), 10, 8, scale=1.0)
    engine = exact(model)
    annealing, path = Annealing(2, 4), layer_path(model, "biases")
    below, above = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        below.append(annealing.forward(path, rng).log_partition)
        above.append(annealing.reverse(path, engine.sample(2, rng), rng).log_partition)
    errors = np.std(below) / np.sqrt(200), np.std(above) / np.sqrt(200)
    assert np.mean(below) + 3 * errors[0] < engine.log_partition < np.mean(above) - 3 * errors[1]
