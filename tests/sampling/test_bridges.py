"""Tempered columns and the bridges between their places, against closed forms."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.inference import exact
from gibbsian.rng import Key
from gibbsian.sampling import AnnealedRun, BridgeEstimate, ReplicaLadder, bennett, exchange
from gibbsian.storage import pack, unpack
from layered_systems import restricted
from systems import random_model, random_model_of


@pytest.mark.parametrize("sizes", [(4000, 4000), (1000, 9000)])
def test_bennett_finds_the_ratio_of_two_gaussians(rng, sizes):
    # f_0 = exp(-x^2 / 2) and f_1 = exp(-(x - 1)^2 / 0.5): the normalisers are as 1 to 1/2
    def log_ratio(x):
        return x**2 / 2 - (x - 1) ** 2 / 0.5

    x, y = rng.normal(size=sizes[0]), rng.normal(1.0, 0.5, size=sizes[1])
    found = bennett(log_ratio(x), -log_ratio(y))
    assert abs(found - np.log(0.5)) < 0.06
    assert found == pytest.approx(-bennett(-log_ratio(y), log_ratio(x)), abs=1e-9)


def test_bennett_is_exact_where_the_two_differ_by_a_factor():
    assert bennett(np.full(5, 3.25), np.full(7, -3.25)) == pytest.approx(3.25, abs=1e-9)


def paths(rng):
    grid = gb.graphs.grid(2, 3)
    layers = gb.models.BinaryUnits(5), gb.models.SpinUnits(3)
    rbm = restricted(*layers, rng.normal(size=5), rng.normal(size=3), rng.normal(size=(5, 3)))
    return {
        "spins": gb.sampling.variable_path(random_model(grid, rng)),
        "codes": gb.sampling.variable_path(random_model_of("potts", grid, rng, Variables.categories((3,) * 6))),
        "layers": gb.sampling.layer_path(rbm, random_state=rng),
    }


@pytest.mark.parametrize("name", ["spins", "codes", "layers"])
def test_ratios_are_those_of_the_log_weights(name, rng):
    """With equal neighbours every exchange is made, and nothing is gained by it."""
    path, betas = paths(rng)[name], np.array([0.2, 0.2, 1.0])
    start = [path.start(30, Key.of(k)) for k in range(3)]
    ladder, ratios = exchange(path, path.kernel(), start, betas, 1, Key.of(9), 2)
    assert ratios.up.shape == ratios.down.shape == (2, 1, 30)
    np.testing.assert_allclose(ratios.up[0], 0.0, atol=1e-12)
    assert ratios.acceptance[0] == pytest.approx(1.0)
    weights = np.diff(path.log_weights(ladder[2].states, betas[1:]), axis=0)[0]
    np.testing.assert_allclose(-ratios.down[1, 0], weights, rtol=1e-9, atol=1e-9)
    assert [rung.n_sweeps for rung in ladder] == [2, 2, 2]


@pytest.mark.parametrize("name", ["spins", "codes", "layers"])
def test_rounds_may_be_split_over_calls_and_states_stored(name, rng):
    path, betas = paths(rng)[name], np.linspace(0.0, 1.0, 4)
    kernel, start = path.kernel(), [path.start(10, Key.of(k)) for k in range(4)]
    before = [chains.states.copy() for chains in start]
    ladder, _ = exchange(path, kernel, start, betas, 5, Key.of(1))
    again, _ = exchange(path, kernel, start, betas, 5, Key.of(1))
    assert all(np.array_equal(a.states, b.states) for a, b in zip(ladder, again, strict=True))
    assert all(np.array_equal(chains.states, old) for chains, old in zip(start, before, strict=True))
    restored = [unpack(chains, pack(chains)) for chains in ladder]
    one, _ = exchange(path, kernel, ladder, betas, 3, Key.of(2))
    other, _ = exchange(path, kernel, restored, betas, 3, Key.of(2))
    assert all(np.array_equal(a.states, b.states) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", ["spins", "codes", "layers"])
def test_log_partition_by_bridges_and_by_annealing(name, rng):
    path = paths(rng)[name]
    truth = exact(path.model).log_partition
    _, bridges = ReplicaLadder.settled(path, Key.of(0)).run(150)
    forward = gb.sampling.Annealing(200, 300).forward(path, 0)
    reverse = gb.sampling.Annealing(200, 300).reverse(path, bridges.states, 1)
    for run in (bridges, forward, reverse):
        assert abs(run.log_partition - truth) < 4 * run.log_partition_stderr < 0.3
        assert run.warning is None


def test_columns_cross_between_modes_where_plain_chains_do_not():
    units = gb.models.SpinUnits
    model = restricted(units(20), units(10), w=np.full((20, 10), 0.35))
    path = gb.sampling.layer_path(model, "biases")
    chains = path.chains_at(np.ones((200, 20), np.int8), Key.of(0))
    plain, _ = path.kernel().step(model.theta, chains, 300)
    assert (plain.states[:, :20].mean(axis=1) > 0.5).mean() > 0.95
    start = [path.chains_at(np.ones((200, 20), np.int8), Key.of(k)) for k in range(10)]
    ladder, ratios = exchange(path, path.kernel(), start, np.linspace(0.0, 1.0, 10), 300, Key.of(1))
    up = (ladder[-1].states[:, :20].mean(axis=1) > 0.5).mean()
    assert abs(up - 0.5) < 4 * 0.5 / np.sqrt(200)
    assert (ratios.acceptance > 0.05).all()


def test_settled_temperatures_exchange_equally_often():
    units = gb.models.SpinUnits
    path = gb.sampling.layer_path(restricted(units(20), units(10), w=np.full((20, 10), 0.35)), "biases")
    _, run = ReplicaLadder.settled(path, Key.of(1)).run(200)
    assert run.acceptance.min() > 0.4
    assert np.ptp(run.acceptance) < 0.35


def test_a_model_without_interactions_needs_no_luck():
    path = gb.sampling.variable_path(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4))))
    _, run = ReplicaLadder.settled(path, Key.of(0)).run(20)
    assert run.log_partition == pytest.approx(4 * np.log(2), abs=1e-9)
    assert run.log_partition_stderr == pytest.approx(0.0, abs=1e-9)
    assert run.warning is None


def run_of(log_partition=0.0, start=0.0, half=0.0, acceptance=0.5, columns=32):
    noise = np.random.default_rng(0).normal(scale=0.01 / columns, size=(2, columns))
    noise -= noise.mean()
    noise[:, ::2] += start / columns / 4
    noise[:, 1::2] -= start / columns / 4
    noise[0] += half / columns / 2
    noise[1] -= half / columns / 2
    states = np.ones((4, 1), np.int8)
    return BridgeEstimate(np.array([0.0, 0.5, 1.0]), log_partition, noise, np.array([0.6, acceptance]), states)


def test_columns_that_differ_by_their_start_or_in_time_are_seen():
    assert run_of().warning is None
    assert "from random states and from cold ones put log Z 0.19 apart" in run_of(start=0.2).warning
    assert "the two halves of the tempered run" in run_of(half=0.2).warning
    assert "0.5 and 1 hardly exchange" in run_of(acceptance=0.01).warning


def test_methods_that_do_not_agree_are_said_and_both_are_in_the_interval(rng):
    weights = rng.normal(scale=0.1, size=100)
    there, back = (AnnealedRun(np.ones((100, 1), np.int8), weights, 10, way) for way in (False, True))
    agreed = LogPartitionInterval(there, back, "no states", tempered=run_of())
    assert agreed.trouble is None
    for shift, side in ((1.0, "above the reverse"), (-1.0, "below the forward")):
        apart = LogPartitionInterval(there, back, "no states", tempered=run_of(shift))
        assert "two methods do not agree" in apart.trouble
        assert side in apart.trouble
        assert apart.lower < min(0.0, shift)
        assert apart.upper > max(0.0, shift)
