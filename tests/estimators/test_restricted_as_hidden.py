"""A restricted machine is a machine with hidden units whose graph comes in layers: the same numbers by either name."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError

pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")


def rows(spin=False, holes=0.0):
    rng = np.random.default_rng(0)
    table = (rng.random((80, 4)) < 0.5).astype(float)
    table[:, 1] = np.where(rng.random(80) < 0.8, table[:, 0], table[:, 1])
    table = 2 * table - 1 if spin else table
    return np.where(rng.random(table.shape) < holes, np.nan, table)


def both(X, **settings):
    settings = {"n_components": 2, "random_state": 3, **settings}
    restricted = gb.RestrictedBoltzmannMachine(**settings).fit(X)
    return restricted, gb.HiddenBoltzmannMachine(graph="restricted", **settings).fit(X)


LEARNERS = {
    "em": "em",
    "mle": "mle",
    "pcd": "pcd",
    "object": gb.learning.Minibatch(max_iter=5, free_phase="cd", batch_size=20),
}


@pytest.mark.parametrize("spin", [False, True], ids=["binary", "spin"])
@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_learner_gives_the_same_numbers(name, spin):
    penalty = {} if name == "object" else {"l2": 0.05}
    X = rows(spin)
    restricted, hidden = both(X, learner=LEARNERS[name], max_iter=20, temperature=1.3, **penalty)
    np.testing.assert_array_equal(restricted.model_.theta, hidden.model_.theta)
    # how to slow down is an argument of the learner itself, which the one has inside another
    reasons = [machine.result_.reason.partition(" (")[0] for machine in (restricted, hidden)]
    assert reasons[0] == reasons[1]
    np.testing.assert_allclose(restricted.score_samples(X), hidden.score_samples(X), rtol=1e-10)
    np.testing.assert_allclose(restricted.transform(X), hidden.transform(X), rtol=1e-10)
    assert restricted.log_partition() == pytest.approx(hidden.log_partition(), rel=1e-12)
    assert restricted.pseudo_score(X) == pytest.approx(hidden.pseudo_score(X), rel=1e-10)


@pytest.mark.parametrize("name", ["em", "pcd"])
def test_missing_cells_too(name):
    X = rows(holes=0.1)
    restricted, hidden = both(X, learner=name, max_iter=10, l2=0.05)
    np.testing.assert_array_equal(restricted.model_.theta, hidden.model_.theta)
    np.testing.assert_allclose(restricted.score_samples(X), hidden.score_samples(X), rtol=1e-10)
    np.testing.assert_allclose(restricted.predict_proba(X), hidden.predict_proba(X), atol=1e-10)


def test_other_graphs_have_no_layers():
    with pytest.raises(ArgumentError, match="set graph='restricted'"):
        gb.HiddenBoltzmannMachine(2, learner=gb.learning.Minibatch(), l2=0.0).fit(rows())


def test_layers_of_other_kinds_are_learned_by_minibatches_only():
    with pytest.raises(ArgumentError, match="layers of spin, binary units"):
        gb.RestrictedBoltzmannMachine(2, learner="em", hidden="binary").fit(rows(spin=True))
    with pytest.raises(ArgumentError, match="no list of values"):
        gb.RestrictedBoltzmannMachine(2, learner="em", visible="gaussian").fit(rows())
