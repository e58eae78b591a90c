"""Fitted estimators that several pictures draw."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from layered_systems import rbm as RBM


@pytest.fixture(scope="module")
def votes() -> gb.Dataset:
    return gb.datasets.load_house_votes().complete_rows()


@pytest.fixture(scope="module")
def machine(votes) -> gb.BoltzmannMachine:
    return gb.BoltzmannMachine(learner="mle", l2=0.01, tol=1e-4).fit(votes)


@pytest.fixture(scope="module")
def small() -> gb.BoltzmannMachine:
    rng = np.random.default_rng(0)
    first = rng.choice([-1, 1], 300)
    rows = np.column_stack([first, first * rng.choice([1, 1, -1], 300), -first * rng.choice([1, 1, 1, -1], 300)])
    return gb.BoltzmannMachine(graph=[(0, 1), (0, 2)], learner="mle").fit(rows)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (60, 6))


@pytest.fixture(scope="module")
def rbm(rows):
    return RBM(5, max_iter=5, validation_fraction=0.2, random_state=0).fit(rows)


@pytest.fixture(scope="module")
def space():
    rows = np.random.default_rng(0).normal(size=(90, 3)) / 2 + 2 * np.eye(3)[np.arange(90) % 3]
    return gb.VonMisesFisherMixture(3, random_state=0).fit(rows), rows


@pytest.fixture(scope="module")
def blobs() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(n, 2)) * s + m for n, s, m in ((60, 0.5, 2), (90, 1.0, 9), (30, 2.0, -9))])
