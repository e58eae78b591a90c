"""EM of every kind goes on from any state that a checkpoint has held, and refuses families that it cannot learn."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.estimators.machine_mixture import MachineFits
from gibbsian.learning import EM, GraphicalLasso, OnlineEM, OnlineKMeansRule, run
from gibbsian.models import GaussianMixtureFamily, KMeansFamily, MixtureOfFamily
from gibbsian.rng import Key
from gibbsian.storage.checkpoints import pack, unpack

RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(size=(40, 3)) + 2 * k for k in range(3)])
CELLS = RNG.random(ROWS.shape) < 0.1
NUMBERS, INCOMPLETE = (gb.Dataset.read(rows, coding="real") for rows in (ROWS, np.where(CELLS, np.nan, ROWS)))
LABELS = gb.Dataset.read(np.where(CELLS, np.nan, ROWS > 1))
PAIR = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3), LABELS.variables))
GAUSSIAN = gb.GaussianFamily(gb.graphs.complete(3), np.zeros(3), np.ones(3))


def of_machines(machine, data):
    """EM of a mixture of machines, whose M-step fits them."""
    learner = EM(components=MachineFits(machine, data.coding, data.n_variables))
    return learner, gb.Model.zeros(MixtureOfFamily(2, data.variables)), data


CASES = {
    "k-means": (EM(), gb.Model.zeros(KMeansFamily(4, 3)), NUMBERS),
    "k-means with missing cells": (EM(), gb.Model.zeros(KMeansFamily(4, 3)), INCOMPLETE),
    "gaussians": (EM(placing="random"), gb.Model.zeros(GaussianMixtureFamily(3, 3)), INCOMPLETE),
    "machines of labels": of_machines(gb.BoltzmannMachine(l2=0.1), gb.Dataset.read((ROWS > 1).astype(int))),
    "machines of numbers": of_machines(gb.GaussianMachine(l2=0.1), NUMBERS),
    "a machine": (EM(), PAIR, LABELS),
    "a machine by chains": (EM("pcd"), PAIR, LABELS),
    "graphical lasso": (
        GraphicalLasso(l1=0.1),
        gb.Model(GAUSSIAN, GAUSSIAN.theta_of(np.eye(3), np.zeros(3))),
        INCOMPLETE,
    ),
    "online EM": (OnlineEM(), gb.Model.zeros(GaussianMixtureFamily(3, 3)), INCOMPLETE),
    "online k-means": (OnlineKMeansRule(normalize=False), gb.Model.zeros(KMeansFamily(4, 3)), INCOMPLETE),
}


@pytest.mark.parametrize("name", CASES)
def test_a_crash_after_every_step_changes_no_bit(name):
    learner, start, data = CASES[name]
    key = Key.of(3)
    whole = stopped = learner.bind(start, data)
    state, _ = whole.init(key)
    kept = state
    for _ in range(6):
        state, info = whole.step(state)
        kept, again = stopped.step(kept)
        np.testing.assert_array_equal(again[:5], info[:5])
        stopped = learner.bind(start, data)
        kept = unpack(stopped.init(key)[0], {name: array.copy() for name, array in pack(kept).items()})
    one, other = whole.model(state), stopped.model(kept)
    np.testing.assert_array_equal(one.theta, other.theta)
    if name == "machines of numbers":  # whose units are those of the rows of a class
        x = ROWS[:9]
        np.testing.assert_array_equal(one.family.log_joint(one.theta, x), other.family.log_joint(one.theta, x))


@pytest.mark.parametrize("learner", [GraphicalLasso(l1=0.1), OnlineEM(), OnlineKMeansRule()], ids=repr)
def test_other_families_are_refused_in_one_sentence(learner):
    with pytest.raises(
        ArgumentError, match=r"learner='[a-z-]+' learns \w[\w ]+ families, and a PairwiseFamily is none$"
    ):
        run(learner, PAIR, LABELS)
