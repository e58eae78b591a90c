"""Several starts as one run: the best is kept, and all that a run can do works across them."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learning import EM, StopRun, run
from gibbsian.learning.bound_mixtures import bound
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.stages import Restarts
from gibbsian.models import GaussianMixtureFamily, KMeansFamily, Model
from gibbsian.rng import Key


@pytest.fixture
def data(rng):
    rows = rng.normal(size=(150, 2)) + 2 * rng.normal(size=(5, 2))[np.arange(150) % 5]
    return gb.Dataset.read(rows, coding="real")


def fit(learner, data, callbacks=(), model=None):
    model = Model.zeros(KMeansFamily(5, 2)) if model is None else model
    return run(learner, model, data, 3, callbacks, max_iter=10**6, tol=0.0)


def test_the_best_start_is_kept(data):
    result = fit(Restarts(EM(), 8, max_iter=300, tol=0.0), data)
    trace = result.trace
    ends = [trace.column("value")[trace.column("start") == start][-1] for start in range(8)]
    assert len(set(np.round(ends, 6))) > 1
    assert trace.column("best")[-1] == np.argmin(ends)
    steps = bound(KMeansFamily(5, 2), data, hard=True)
    assert steps.e_step(steps.adopted(result.model)).free_energy == pytest.approx(min(ends))
    assert result.converged
    assert result.reason.endswith("(the best of 8 starts)")


def test_starts_are_those_of_folded_keys(data):
    model = Model.zeros(KMeansFamily(5, 2))
    trace = fit(Restarts(EM(), 4, max_iter=300, tol=0.0), data).trace
    for start in range(4):
        alone, own = EM().bind(model, data), Key.of(3).fold("start", start)
        state, info = alone.init(own.fold("fit"), model.theta)
        while info.gradient_norm != 0:
            state, info = alone.step(state)
        assert info.value == trace.column("value")[trace.column("start") == start][-1]


def test_a_degenerate_start_is_kept_only_where_there_is_no_other(rng):
    """A class on one point has a likelihood without bound."""
    data = gb.Dataset.read(np.concatenate([np.zeros((3, 2)), rng.normal(size=(60, 2)) + 2]), coding="real")
    model = Model.zeros(GaussianMixtureFamily(2, 2, floor_share=1e-9))
    result = fit(Restarts(EM(), 12, tol=1e-8), data, model=model)
    trace = result.trace
    ends = np.array([trace.column("value")[trace.column("start") == start][-1] for start in range(12)])
    assert not result.warning
    assert trace.column("value")[trace.column("start") == trace.column("best")[-1]][-1] > ends.min()


class Stop(Callback):
    def __init__(self, step):
        self.step = step

    def on_step(self, run):
        if run.n_steps == self.step and not run.done:
            raise StopRun("interrupted: by the test")


def test_an_interrupted_run_keeps_the_best_so_far(data):
    learner = Restarts(EM(), 4, max_iter=300, tol=0.0)
    whole = fit(learner, data)
    second = int(np.flatnonzero(whole.trace.column("start") == 1)[1])
    part = fit(learner, data, [Stop(second)])
    first = part.trace.column("value")[part.trace.column("start") == 0][-1]
    steps = bound(KMeansFamily(5, 2), data, hard=True)
    assert steps.e_step(steps.adopted(part.model)).free_energy == pytest.approx(first)


def test_hidden_units_are_learned_from_several_starts(rng):
    rows = (rng.random((200, 4)) < np.where(np.arange(200) % 2, 0.2, 0.8)[:, None]).astype(int)
    learner = Restarts(EM(l2=0.01), 3, max_iter=200, tol=1e-5)
    machine = gb.HiddenBoltzmannMachine(2, learner=learner, random_state=0).fit(rows)
    trace = machine.result_.trace
    ends = [trace.column("value")[trace.column("start") == start][-1] for start in range(3)]
    assert len(set(ends)) == 3
    assert trace.column("best")[-1] == np.argmin(ends)
    assert machine.result_.converged
