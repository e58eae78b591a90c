"""Tempered columns and the bridges between their places, against closed forms."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.old_sampling.annealing import AnnealedRun
from gibbsian.old_sampling.bridges import TemperedColumns, TemperedRun, bennett
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
    pairs = random_model(grid, rng)
    layers = gb.models.BinaryUnits(5), gb.models.SpinUnits(3)
    rbm = restricted(*layers, rng.normal(size=5), rng.normal(size=3), rng.normal(size=(5, 3)))
    return {
        "spins": gb.old_sampling.variable_path(pairs),
        "summed": gb.old_sampling.variable_path(pairs, marginalise=True),
        "codes": gb.old_sampling.variable_path(random_model_of("potts", grid, rng, Variables.categories((3,) * 6))),
        "layers": gb.old_sampling.layer_path(rbm, rng=rng),
    }


@pytest.mark.parametrize("name", ["spins", "summed", "codes", "layers"])
def test_walkers_are_weighed_where_they_stand(name, rng):
    path, places = paths(rng)[name], np.array([0.2, 0.5, 1.0])
    walkers = path.from_base(40, rng)
    moved = np.diff(path.swept(walkers, 0.5, 2, places), axis=0)
    before = path.states_of(walkers)
    weighed = np.diff(path.log_weights_of(walkers, places), axis=0)
    np.testing.assert_allclose(moved, weighed, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(before, path.states_of(walkers))  # weighing moves nobody
    # a walk takes up the same weights, one step after the other, from where it starts
    np.testing.assert_allclose(path.walk(walkers, places[:2]), weighed[0], rtol=1e-9, atol=1e-9)


def test_log_weights_are_those_of_the_model(rng):
    path = paths(rng)["codes"]
    walkers = path.from_base(30, rng)
    states = path.states_of(walkers)
    independent = sum(np.log(path.base.probabilities(i))[states[:, i]] for i in range(6))
    rise = path.log_weights_of(walkers, np.array([0.0, 1.0]))[1]
    np.testing.assert_allclose(rise, path.model.log_weights(states) - independent, rtol=1e-9)


@pytest.mark.parametrize("name", ["spins", "codes", "layers"])
def test_those_that_are_to_exchange_do(name, rng):
    path = paths(rng)[name]
    some, others = path.from_base(40, rng), path.from_base(40, rng)
    before = np.array([path.states_of(some), path.states_of(others)])
    which = rng.random(40) < 0.5
    path.exchange(some, others, which)
    after = np.array([path.states_of(some), path.states_of(others)])
    np.testing.assert_array_equal(after[:, which], before[::-1, which])
    np.testing.assert_array_equal(after[:, ~which], before[:, ~which])


def test_a_model_without_interactions_needs_no_luck(rng):
    run = TemperedColumns.settled(
        gb.old_sampling.variable_path(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4)))), rng
    ).run(20)
    assert run.log_partition == pytest.approx(4 * np.log(2), abs=1e-9)
    assert run.log_partition_stderr == pytest.approx(0.0, abs=1e-9)
    assert run.trouble is None


def run_of(log_partition=0.0, start=0.0, half=0.0, exchanged=0.5, columns=32):
    noise = np.random.default_rng(0).normal(scale=0.01 / columns, size=(2, columns))
    noise -= noise.mean()
    noise[:, ::2] += start / columns / 4
    noise[:, 1::2] -= start / columns / 4
    noise[0] += half / columns / 2
    noise[1] -= half / columns / 2
    states = np.ones((4, 1), np.int8)
    return TemperedRun(np.array([0.0, 0.5, 1.0]), log_partition, noise, np.array([0.6, exchanged]), states)


def test_columns_that_differ_by_their_start_or_in_time_are_seen():
    assert run_of().trouble is None
    assert "from random states and from cold ones put log Z 0.19 apart" in run_of(start=0.2).trouble
    assert "the two halves of the tempered run" in run_of(half=0.2).trouble
    assert "0.5 and 1 hardly exchange" in run_of(exchanged=0.01).trouble


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
