"""Anderson acceleration: a root finder without a value."""

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian.learning.optimizers import Anderson, Ascent

NO_PENALTY = np.zeros(4)


def asymmetric(theta):
    """A field that is the gradient of nothing (its Jacobian is not symmetric), with one root."""
    matrix = np.array([[1.0, 0.4, 0.0, 0.0], [-0.4, 1.0, 0.3, 0.0], [0.0, -0.3, 0.6, 0.2], [0.0, 0.0, -0.2, 0.3]])
    return matrix @ (theta - 1.0) + 0.05 * (theta - 1.0) ** 3


def steps_to(optimizer, tolerance=1e-10):
    theta, state = np.zeros(4), optimizer.init_move(np.zeros(4))
    for step in range(1000):
        gradient = asymmetric(theta)
        if np.abs(gradient).max() < tolerance:
            return step, theta
        theta, state = optimizer.move(theta, gradient, NO_PENALTY, state)
    raise AssertionError("no root found")


def test_finds_the_root_of_a_field_without_potential_far_faster_than_plain_steps():
    plain, root = steps_to(Ascent(learning_rate=0.5))
    fast, same = steps_to(Anderson(learning_rate=0.5))
    np.testing.assert_allclose(root, 1.0, atol=1e-8)
    np.testing.assert_allclose(same, 1.0, atol=1e-8)
    assert fast < plain / 5


def test_from_a_worse_point_it_returns_to_the_best_with_half_the_steps():
    optimizer = Anderson(learning_rate=1.0, memory=3)
    state = optimizer.init_move(np.zeros(4))
    for size in (1.0, 0.25, 0.5):
        _, state = optimizer.move(np.full(4, size), np.full(4, size), NO_PENALTY, state)
    assert len(state.points) == 3
    target, state = optimizer.move(np.ones(4), np.full(4, 10.0), NO_PENALTY, state)
    np.testing.assert_array_equal(state.points, np.full((1, 4), 0.25))
    np.testing.assert_allclose(target, 0.125)  # the plain step from there, halved


def test_steps_that_are_far_too_long_are_cut_down():
    fast, root = steps_to(Anderson(learning_rate=100.0))
    np.testing.assert_allclose(root, 1.0, atol=1e-8)
    assert fast < 100


def test_memory_is_bounded():
    optimizer = Anderson(memory=2)
    theta, state = np.ones(4), optimizer.init_move(np.ones(4))
    for _ in range(6):
        theta, state = optimizer.move(theta, asymmetric(theta), NO_PENALTY, state)
    assert len(state.points) <= 3


def test_penalised_entries_are_exactly_zero():
    l1 = np.array([0.0, 0.0, 0.0, 5.0])
    theta, state = np.zeros(4), Anderson().init_move(np.zeros(4))
    for _ in range(60):
        theta, state = Anderson().move(theta, asymmetric(theta), l1, state)
    assert theta[3] == 0.0
    assert np.abs(asymmetric(theta)[:3]).max() < 1e-8


@pytest.mark.parametrize(("setting", "value"), [("learning_rate", 0.0), ("memory", 0)])
def test_refuses_bad_settings(setting, value):
    with pytest.raises(ArgumentError, match=setting):
        Anderson(**{setting: value})
