"""Where training starts: one rule for the weights of restricted and deep machines."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.stacking import Stacking
from gibbsian.layered.start import glorot_spread, start_deep, start_model
from gibbsian.layered.training import RestrictedLearner
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.layers import BinaryLayer, CategoricalLayer, SpinLayer

ROWS = LayerRows(np.random.default_rng(0).integers(0, 2, (50, 60)).astype(np.int8))


def spread_is(weights: np.ndarray, expected: float) -> bool:
    """Whether numbers have a standard deviation, up to four standard errors."""
    return bool(abs(np.std(weights) / expected - 1.0) < 4.0 / np.sqrt(2.0 * weights.size))


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_weights_of_a_restricted_machine(rng, temperature):
    """sqrt(2 / (60 + 20)) = 0.158 times T."""
    start = start_model(BinaryLayer(60), BinaryLayer(20), ROWS, rng, temperature=temperature)
    assert spread_is(start.weights, temperature * np.sqrt(2 / 80))
    assert not start.hidden_biases.any()


def test_categories_count_by_their_columns(rng):
    assert glorot_spread(CategoricalLayer((3, 4, 5)), SpinLayer(6)) == pytest.approx(1 / 3)


def test_every_two_layers_of_a_deep_machine_have_a_spread_of_their_own(rng):
    start = start_deep([BinaryLayer(60), BinaryLayer(40), BinaryLayer(10)], ROWS, rng, temperature=2.0)
    assert spread_is(start.weights[0], 2.0 * np.sqrt(2 / 100))
    assert spread_is(start.weights[1], 2.0 * np.sqrt(2 / 50))


def test_a_stack_starts_by_the_same_rule(rng):
    layers = [BinaryLayer(60), BinaryLayer(40), BinaryLayer(10)]
    state = Stacking(RestrictedLearner(n_epochs=1)).init(BeliefNetwork.zeros(layers), ROWS, rng)
    assert spread_is(state.progress.greedy.theta[100:], np.sqrt(2 / 100))


def test_a_spread_that_is_given_is_taken(rng):
    layers = [BinaryLayer(60), BinaryLayer(40), BinaryLayer(10)]
    assert spread_is(start_model(*layers[:2], ROWS, rng, scale=0.01, temperature=2.0).weights, 0.01)
    assert spread_is(start_deep(layers, ROWS, rng, scale=0.01).weights[1], 0.01)
    with pytest.raises(ArgumentError, match=r"scale=-1.0 must be zero or positive"):
        start_model(*layers[:2], ROWS, rng, scale=-1.0)
