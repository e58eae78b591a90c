"""Where training starts: one rule for the weights of restricted and deep machines."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.learners import Minibatch, Stacking
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, SpinUnits
from layered_systems import data_rows, start_model

ROWS = data_rows(np.random.default_rng(0).integers(0, 2, (50, 60)).astype(np.int8))


def spread_is(weights: np.ndarray, expected: float) -> bool:
    """Whether numbers have a standard deviation, up to four standard errors."""
    return bool(abs(np.std(weights) / expected - 1.0) < 4.0 / np.sqrt(2.0 * weights.size))


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_weights_of_a_restricted_machine(rng, temperature):
    """sqrt(2 / (60 + 20)) = 0.158 times T."""
    start = start_model(BinaryUnits(60), BinaryUnits(20), ROWS, rng, temperature=temperature)
    assert spread_is(start.weights, temperature * np.sqrt(2 / 80))
    assert not start.hidden_biases.any()


def test_categories_count_by_their_columns(rng):
    assert glorot_spread(CategoricalUnits((3, 4, 5)), SpinUnits(6)) == pytest.approx(1 / 3)


def test_every_two_layers_of_a_deep_machine_have_a_spread_of_their_own(rng):
    blank = stack([BinaryUnits(60), BinaryUnits(40), BinaryUnits(10)], temperature=2.0)
    start = Minibatch().start(blank, ROWS, rng)
    assert spread_is(start.weights[0], 2.0 * np.sqrt(2 / 100))
    assert spread_is(start.weights[1], 2.0 * np.sqrt(2 / 50))


def test_a_stack_starts_by_the_same_rule(rng):
    layers = [BinaryUnits(60), BinaryUnits(40), BinaryUnits(10)]
    state = Stacking(alone=Minibatch(max_iter=1)).init(BeliefNetwork.zeros(layers), ROWS, rng)
    assert spread_is(state.progress.alone.theta[100:], np.sqrt(2 / 100))


def test_a_spread_that_is_given_is_taken(rng):
    layers = [BinaryUnits(60), BinaryUnits(40), BinaryUnits(10)]
    assert spread_is(start_model(*layers[:2], ROWS, rng, scale=0.01, temperature=2.0).weights, 0.01)
    assert spread_is(Minibatch().start(stack(layers), ROWS, rng, 0.01).weights[1], 0.01)
