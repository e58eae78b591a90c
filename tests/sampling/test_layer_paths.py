"""Annealing of restricted machines: its parts, its ends and its errors."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends.parallel import limited_threads
from gibbsian.diagnostics import log_partition_interval
from gibbsian.errors import ArgumentError, MixingWarning
from gibbsian.models.layers.units import BinaryUnits, SpinUnits, codes_of
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, layer_path
from layered_systems import PAIRS, all_values, log_partition, random_machine, restricted


def fields_at_the_beginning(path):
    return path.stack.split(path.knots[0]).biases


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_path_ends_at_the_base_and_at_the_machine(rng, visible, hidden):
    model = random_machine(visible, hidden, rng)
    fields = rng.normal(size=model.visible.width), rng.normal(size=model.hidden.width)
    path = layer_path(model, np.concatenate(fields))
    v = model.draw_visible(np.zeros((6, model.hidden.width)), rng)
    states = path.chains_at(codes_of(model.visible, v), Key.of(0)).states
    start, end = path.log_weights(states, np.array([0.0, 1.0]))
    np.testing.assert_allclose(end, model.log_evidence(v), atol=1e-10)
    hidden_sum = model.hidden.log_normaliser(fields[1][None])[0] + model.visible.log_measure(v)
    np.testing.assert_allclose(start, v @ fields[0] + hidden_sum, atol=1e-10)


@pytest.mark.parametrize("kind", ["binary", "spin", "categorical"])
def test_base_partition_is_a_plain_sum(rng, kind):
    model = random_machine(kind, "spin", rng)
    path = layer_path(model, random_state=rng)
    states = path.chains_at(codes_of(model.visible, all_values(model.visible)), Key.of(0)).states
    assert path.log_partition == pytest.approx(np.logaddexp.reduce(path.log_weights(states, np.zeros(1))[0]))


def test_base_rates_of_data_with_missing_cells():
    model = restricted(BinaryUnits(2), BinaryUnits(1))
    path = layer_path(model, gb.Dataset.read([[1, 1], [1, None], [0, 1], [0, None]], coding="binary"))
    rates = 0.99 * np.array([0.5, 1.0 - 1e-12]) + 0.005
    np.testing.assert_allclose(1 / (1 + np.exp(-fields_at_the_beginning(path)[0])), rates, atol=1e-9)


def test_machine_without_weights_is_met_exactly(rng):
    model = random_machine("binary", "spin", rng)
    model = restricted(model.visible, model.hidden, *model.biases)
    interval = log_partition_interval(
        layer_path(model, "biases"), annealing=Annealing(20, 10), rng=0, burn_in=5, warn=False
    )
    assert interval.forward.log_partition == pytest.approx(log_partition(model), abs=0.5)
    base = np.concatenate(model.biases)
    interval = log_partition_interval(layer_path(model, base), annealing=Annealing(20, 10), rng=0, burn_in=5)
    assert interval.lower == pytest.approx(log_partition(model), abs=1e-10)
    assert interval.upper == pytest.approx(log_partition(model), abs=1e-10)


@pytest.mark.parametrize("start", ["gibbs", "tempering", "exact"])
def test_interval_from_each_start(rng, start):
    model = random_machine("spin", "binary", rng, 10, 6)
    interval = log_partition_interval(model, start, Annealing(100, 300), rng=1, burn_in=100)
    for run in (interval.forward, interval.reverse):
        assert abs(run.log_partition - log_partition(model)) < 4 * run.log_partition_stderr < 0.2


def test_interval_from_data_and_from_given_values(rng):
    model = random_machine("binary", "binary", rng, 6, 4, scale=0.3)
    data = gb.Dataset.read((rng.random((50, 6)) < 0.5).astype(np.int8), coding="binary")
    interval = log_partition_interval(layer_path(model, data), data, Annealing(30, 50), rng=1, warn=False)
    assert "30 rows of the data" in interval.describe()
    interval = log_partition_interval(model, data.states[:7], Annealing(30, 50), rng=1, warn=False)
    assert interval.reverse.n_walkers == 7


def test_results_do_not_depend_on_the_number_of_threads(rng):
    model = random_machine("binary", "spin", rng, 30, 20)
    annealing = Annealing(60, 30)
    runs = []
    for n_threads in (1, 2):
        with limited_threads(n_threads):
            runs.append(annealing.forward(model, 5).log_weights)
    assert (runs[0] == runs[1]).all()


def test_adapted_ladder_narrows_the_errors():
    """All is decided at small inverse temperatures, where an even ladder has few steps."""
    model = restricted(SpinUnits(10), SpinUnits(10), w=np.full((10, 10), 1.0))
    plain, path = Annealing(100, 60), layer_path(model, "biases")
    adapted = plain.adapted(path, 0)
    assert len(adapted.ladder) == 61
    errors = [run.forward(path, 1).log_weights.std() for run in (plain, adapted)]
    assert errors[1] < errors[0]


def test_disagreement_is_told(rng):
    model = random_machine("spin", "spin", rng, 20, 20, scale=2.0)
    with pytest.warns(MixingWarning):
        log_partition_interval(model, "exact", Annealing(10, 3), rng=0)


def test_bad_arguments_are_refused(rng):
    model = random_machine("spin", "spin", rng)
    with pytest.raises(ArgumentError, match="summed='both'"):
        layer_path(model, summed="both")
    with pytest.raises(ArgumentError, match="base='data'"):
        layer_path(model, "data")
    with pytest.raises(ArgumentError, match="fields"):
        layer_path(model, np.zeros(6))
    with pytest.raises(ArgumentError, match="rows of 5 visible units"):
        Annealing(betas=2).reverse(model, np.ones((4, 3)))
    with pytest.raises(ArgumentError, match=r"states holds -1\.0 for unit 0: units take codes 0 and 1"):
        Annealing(betas=2).reverse(model, -np.ones((4, 5)))
    with pytest.raises(ArgumentError, match="samples='chains'"):
        log_partition_interval(model, "chains")
