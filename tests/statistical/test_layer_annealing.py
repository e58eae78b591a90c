"""Annealing of restricted machines against exact log Z, over many seeds: coverage, bounds, unbiased weights."""

import numpy as np
import pytest

from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.inference import exact
from gibbsian.models.layers.units import BinaryUnits, codes_of
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, kernel_for, layer_path
from gibbsian.sampling.walks import Walk, bind_walk
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
    # with few temperatures a rare walker holds much weight, which skews errors and z-scores
    annealing, path = Annealing(60, 600), layer_path(model, summed=summed, random_state=0)
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
    annealing, path = Annealing(2000, 3), layer_path(model, summed=summed, random_state=0)
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
    run = Annealing(2000, 60).forward(layer_path(model, random_state=0), 3)
    v = model.visible.encode(run.states[:, : model.visible.n_units])
    truth = engine.moments[: model.visible.width]
    relative = len(v) * run.weights
    error = np.sqrt(np.mean((relative[:, None] * (v - truth)) ** 2, axis=0) / len(v))
    assert (np.abs(run.weights @ v - truth) < 4.5 * error + 1e-9).all()


def test_machines_too_strong_for_the_ladder_are_bracketed_all_the_same_and_said_to_be():
    """Far apart, each on its side, and no seed passes for settled."""
    model = trained_like(np.random.default_rng(7), strength=1.0)
    engine = exact(model)
    # in one of four modes, to be far from the others
    far = np.concatenate([model.biases[0], np.zeros(model.hidden.width)])
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


@pytest.mark.parametrize("reverse", [False, True])
def test_block_chains_stay_at_the_exact_distribution(model, reverse):
    """From exact draws of all layers: means of all units within their errors."""
    engine, n = exact(model), 20_000
    layers = engine.sample_layers(n, np.random.default_rng(2))
    states = np.hstack([codes_of(layer, part) for layer, part in zip(model.family.layers, layers, strict=True)])
    kernel = kernel_for(model.family)
    chains, _ = kernel.step(model.theta, kernel.init(n, Key.of(2), states), 3, reverse=reverse)
    values = np.hstack(model.family.encode(chains.states))
    truth, spread = engine.moments[: values.shape[1]], values.std(axis=0) / np.sqrt(n)
    assert (np.abs(values.mean(axis=0) - truth) < 4.5 * spread + 1e-9).all()


@pytest.mark.parametrize("held", ["hidden", "visible"])
def test_masked_layers_give_the_conditional_distribution(model, held):
    """Some units of a layer are held: the free ones of the other layer have their conditional means."""
    n, family = 20_000, model.family
    n_visible, side = model.visible.n_units, 0 if held == "hidden" else 1
    mask = np.arange(len(family.variables)) >= n_visible
    mask = mask if held == "hidden" else ~mask
    kernel = kernel_for(family, mask=mask)
    start = kernel_for(family).init(1, Key.of(3)).states
    chains, _ = kernel.step(model.theta, kernel.init(n, Key.of(4), start), 2)
    assert (chains.states[:, mask] == start[:, mask]).all()
    found = family.encode(chains.states)[side]
    truth = family.means(family.split(model.theta), side, family.encode(start))[0]
    assert (np.abs(found.mean(axis=0) - truth) < 4.5 * found.std(axis=0) / np.sqrt(n) + 1e-3).all()


def test_exchange_keeps_the_machine_and_takes_the_same_path_step_by_step(model):
    """The columns of exact draws at the machine stay there; the walk in matrices is that of the kernel in law."""
    engine, n = exact(model), 20_000
    path, betas = layer_path(model, "biases"), np.array([0.999999, 1.0])
    rows = engine.sample(n, np.random.default_rng(0))
    truth = engine.moments[: model.visible.width]
    for walk in (bind_walk(path, path.kernel()), Walk(path, path.kernel())):
        ladder, ratios = walk.exchange(
            [path.chains_at(rows, Key.of(k)) for k in range(2)], betas, range(3), Key.of(1), 1
        )
        assert (ratios.acceptance > 0.99).all()
        v = model.visible.encode(ladder[-1].states[:, : model.visible.n_units])
        assert (np.abs(v.mean(axis=0) - truth) < 4.5 * v.std(axis=0) / np.sqrt(n) + 1e-9).all()
