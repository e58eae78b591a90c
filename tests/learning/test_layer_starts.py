"""Where training starts: one rule for the weights of restricted and deep machines."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.learning import Minibatch, Stacking
from gibbsian.models.layers.stack import glorot_scale
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, SpinUnits
from gibbsian.rng import Key
from layered_systems import data_rows, network, stack, start_model

ROWS = data_rows(np.random.default_rng(0).integers(0, 2, (50, 60)).astype(np.int8))


def spread_is(weights: np.ndarray, expected: float) -> bool:
    """Whether numbers have a standard deviation, up to four standard errors."""
    return bool(abs(np.std(weights) / expected - 1.0) < 4.0 / np.sqrt(2.0 * weights.size))


def test_weights_of_a_restricted_machine(rng):
    """sqrt(2 / (60 + 20)) = 0.158."""
    start = start_model(BinaryUnits(60), BinaryUnits(20), ROWS, rng)
    assert spread_is(start.weights, np.sqrt(2 / 80))
    assert not start.parts.biases[1].any()


def test_categories_count_by_their_columns(rng):
    assert glorot_scale(CategoricalUnits((3, 4, 5)), SpinUnits(6)) == pytest.approx(1 / 3)


def test_every_two_layers_of_a_deep_machine_have_a_spread_of_their_own(rng):
    blank = stack([BinaryUnits(60), BinaryUnits(40), BinaryUnits(10)])
    start = Minibatch().start(blank, ROWS, rng)
    assert spread_is(start.parts.weights[0], np.sqrt(2 / 100))
    assert spread_is(start.parts.weights[1], np.sqrt(2 / 50))


def test_a_stack_starts_by_the_same_rule(rng):
    layers = [BinaryUnits(60), BinaryUnits(40), BinaryUnits(10)]
    state, _ = Stacking(alone=Minibatch(max_iter=1)).bind(network(layers), ROWS).init(Key.of(rng))
    assert spread_is(state.alone.theta[100:], np.sqrt(2 / 100))


def test_a_spread_that_is_given_is_taken(rng):
    layers = [BinaryUnits(60), BinaryUnits(40), BinaryUnits(10)]
    assert spread_is(start_model(*layers[:2], ROWS, rng, scale=0.01).weights, 0.01)
    assert spread_is(Minibatch().start(stack(layers), ROWS, rng, 0.01).parts.weights[1], 0.01)
