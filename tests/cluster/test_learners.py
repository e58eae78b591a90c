"""Learners on two worker processes: what they find in memory, and the same bits after a worker was killed."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import numpy as np
import pandas
import pytest
from sklearn.base import clone

import gibbsian as gb
from gibbsian.cluster import DistributedDataset
from gibbsian.expectations.imputation import fingerprint_of
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.layer_fits import initial_layers, scale_of
from gibbsian.learning.local_sgd import LocalState, epoch_of
from gibbsian.learning.minibatch import EpochFit
from gibbsian.learning.run import run
from gibbsian.rng import Key

pytest.importorskip("distributed")
N = 4
NAMES = list("abcd")


@cache
def spins():
    rng = np.random.default_rng(0)
    graph = gb.graphs.complete(N)
    model = gb.PairwiseFamily.model(graph, rng.normal(0, 0.3, N), rng.normal(0, 0.3, graph.n_edges))
    return pandas.DataFrame(2 * gb.inference.exact(model).sample(300, rng) - 1, columns=NAMES)


@cache
def holed():
    rows = spins().astype(float)
    hole = np.random.default_rng(1).random(rows.shape) < 0.1
    hole[:100] = False  # the first partition is complete
    return rows.mask(hole & ~hole.all(axis=1)[:, None])


def there(client, frame, **how):
    dask_frame = pytest.importorskip("dask.dataframe")
    return DistributedDataset.read(dask_frame.from_pandas(frame, npartitions=3), client=client, **how)


@pytest.fixture(scope="module")
def data(client):
    return there(client, holed())


# -- missing cells ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", ["mple", "rm", "mpf", "smci", "em"])
def test_missing_cells_are_completed_on_the_workers(data, learner):
    """Each partition lists the completions of its own rows under the model of every step."""
    on_cluster, here = (gb.BoltzmannMachine(learner=learner, tol=0.01).fit(rows) for rows in (data, holed()))
    np.testing.assert_allclose(on_cluster.model_.theta, here.model_.theta, rtol=0, atol=1e-12)
    assert on_cluster.result_.n_steps == here.result_.n_steps


CHAINS = {
    "pcd": gb.learning.PCD(n_chains=4000, min_iter=20),
    "pcd, chains": gb.learning.PCD(n_chains=4000, min_iter=20, clamped="pcd"),
    "smci-pcd": gb.learning.as_learner("smci-pcd", min_iter=20),
    "cd": gb.learning.CD(n_steps=5, min_iter=20),
    "mple, chains": gb.learning.MPLE(completions="chains"),
}


def chained(data, name, **more):
    return gb.BoltzmannMachine(learner=CHAINS[name], random_state=0, tol=0.02, max_iter=400, **more).fit(data).model_


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("cd", "pcd, chains") else pytest.mark.long) for name in CHAINS]
)
def test_chains_of_missing_cells_come_near_the_maximum(data, name):
    """Their randomness is another than in memory: they begin anew in every step, where the rows are."""
    best = gb.BoltzmannMachine(learner="mple" if "mple" in name else "mle").fit(holed())
    assert np.abs(chained(data, name).theta - best.model_.theta).max() < 0.1


# -- hidden units, other machines -------------------------------------------------------------------------------------
HIDDEN = gb.HiddenBoltzmannMachine(1, learner="em", l2=0.01, tol=0.02, random_state=0)
MACHINES = {
    "hidden, em": HIDDEN,
    "hidden, mple": gb.HiddenBoltzmannMachine(1, learner="mple", l2=0.01, tol=0.02, random_state=0),
    "higher orders": gb.HigherOrderBoltzmannMachine(learner="mple", l2=0.01, tol=0.01),
    "ordinal": gb.OrdinalMachine(learner="mple", l2=0.01, tol=0.01),
    "logrise": gb.BoltzmannMachine(learner="logrise", l2=0.01, tol=0.01),
}


@pytest.mark.parametrize("name", [*MACHINES])
def test_other_machines_learn_as_in_memory(client, name):
    machine = MACHINES[name]
    rows = there(client, holed(), coding="ordinal" if name == "ordinal" else "auto")
    theta = machine.fit(rows).model_.theta
    np.testing.assert_allclose(theta, machine.fit(holed()).model_.theta, rtol=0, atol=1e-12)


# -- mixtures ---------------------------------------------------------------------------------------------------------
@cache
def numbers():
    rows = np.random.default_rng(2).normal(size=(120, 3)) + 3.0 * (np.arange(120) % 2)[:, None] * [1.0, 1.0, -1.0]
    return pandas.DataFrame(rows, columns=list("xyz"))


@cache
def words():
    chance = np.where(np.arange(200) % 2, 0.9, 0.2)[:, None]
    return pandas.DataFrame(np.where(np.random.default_rng(3).random((200, N)) < chance, 1, -1), columns=NAMES)


MIXTURES = {
    "gaussian": gb.GaussianMixture(2, n_init=2, random_state=0),
    "k-means": gb.HardKMeans(2, n_init=2, random_state=0),
    "soft k-means": gb.SoftKMeans(2, n_init=1, random_state=0),
    "von Mises-Fisher": gb.VonMisesFisherMixture(2, n_init=1, tol=1e-5, random_state=0),
    "columns": gb.MachineMixture(2, n_init=1, tol=1e-3, random_state=0),
    "machines": gb.MachineMixture(
        2, machine=gb.BoltzmannMachine(learner="mle", l2=0.1), n_init=1, tol=0.01, random_state=0
    ),
    "machines, hard": gb.MachineMixture(
        2, machine=gb.BoltzmannMachine(learner="mple", l2=0.1), assignment="hard", n_init=1, tol=0.01, random_state=0
    ),
}


def rows_for(name):
    if "machines" in name or name == "columns":
        return words(), "categorical" if name == "columns" else "auto"
    return numbers(), "real"


@pytest.mark.parametrize("name", [*MIXTURES])
def test_mixtures_add_the_sums_of_their_classes(client, name):
    mixture, (frame, coding) = MIXTURES[name], rows_for(name)
    theta = mixture.fit(there(client, frame, coding=coding)).model_.theta
    np.testing.assert_allclose(theta, mixture.fit(frame).model_.theta, rtol=0, atol=1e-12)


def test_classes_of_rows_on_a_cluster_come_from_their_frame(client):
    """Packed rows have no order, which is said before a fit; the frame's partitions have."""
    frame, mixture = numbers(), clone(MIXTURES["gaussian"])
    lazy, data = (
        pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3),
        there(client, frame, coding="real"),
    )
    for rows in (lazy, data):
        with pytest.raises(gb.errors.ArgumentError, match="partitions of the frame"):
            mixture.fit_predict(rows)
    classes = lazy.map_partitions(mixture.fit(data).predict, meta=(None, "int64"))
    with client.as_current():
        np.testing.assert_array_equal(classes.compute(), clone(mixture).fit_predict(frame))


def test_rows_without_direction_are_left_out(client):
    frame = numbers().copy()
    frame.iloc[[3, 100]] = 0.0
    mixture = MIXTURES["von Mises-Fisher"]
    with pytest.warns(gb.errors.MissingValuesWarning, match="2 rows have norm zero"):
        theta = mixture.fit(there(client, frame, coding="real")).model_.theta
    with pytest.warns(gb.errors.MissingValuesWarning, match="row 3"):
        np.testing.assert_allclose(theta, mixture.fit(frame).model_.theta, rtol=0, atol=1e-12)


# -- minibatches ------------------------------------------------------------------------------------------------------
LAYERS = gb.RestrictedBoltzmannMachine(
    3,
    learner=gb.learning.Minibatch(max_iter=4, batch_size=5, learning_rate=0.5, momentum=0.2, curves=True),
    random_state=0,
)


EPOCHS = {
    "restricted": (LAYERS, "log_pseudolikelihood", 5),
    "real numbers": (clone(LAYERS).set_params(visible="gaussian"), "reconstruction_error", 5),
    "deep": (gb.DeepBoltzmannMachine((3, 2), learner=LAYERS.learner, random_state=0), "log_reconstruction", 4),
}


@pytest.mark.parametrize("name", EPOCHS)
def test_epochs_average_what_partitions_have_learned(client, data, name):
    """The rule of docs/cluster.md, followed here partition by partition."""
    machine, figure, n_figures = EPOCHS[name]
    if name == "real numbers":
        data = there(client, numbers(), coding="real")
    machine = clone(machine).fit(data)
    assert machine.result_.reason == "trained for 4 epochs"
    assert {name: len(values) for name, values in machine.history_.items()} == {figure: n_figures}
    rng = np.random.default_rng(0)
    model = initial_layers(machine.model_.replace(0.0 * machine.model_.theta), data, rng)
    key, scale, rows = Key.of(rng), scale_of(model, data), data
    if scale is not None:
        model, rows = scale.from_data(model), scale.standard(data)
    parts, learner = [*rows.partitions()], machine.learner
    shares = [part.total_weight / data.total_weight for part in parts]
    phases = [EpochFit(learner, model, part).init(key.fold(fingerprint_of(part)))[0].phases for part in parts]
    state = LocalState(model.theta, 0.0 * model.theta, (), key, 0, 0)
    for epoch in range(4):
        found = [epoch_of(learner, model, state, data.total_weight, *both) for both in zip(parts, phases, strict=True)]
        theta, velocity, value = (
            sum(share * one[k] / part.total_weight for share, one, part in zip(shares, found, parts, strict=True))
            for k in range(3)
        )
        phases = [one[-1][0] for one in found]
        state = state._replace(theta=theta, velocity=velocity, epoch=epoch + 1)
    learned = model.replace(state.theta)
    learned = learned if scale is None else scale.to_data(learned)
    np.testing.assert_allclose(machine.model_.theta, learned.theta, rtol=0, atol=1e-12)
    assert abs(machine.history_[figure][-1]) == pytest.approx(abs(value), rel=1e-12)


@pytest.mark.long
def test_epochs_on_workers_learn_and_resume(client, tmp_path):
    """Two groups of equal columns: at best 2 log 1/2 = -1.39 a row, and -4.16 for independent columns."""
    rows = np.repeat(np.random.default_rng(0).random((300, 2)) < 0.5, 3, axis=1).astype(int)
    frame = pandas.DataFrame(rows, columns=list("abcdef"))
    data, path = there(client, frame), tmp_path / "fit.checkpoint"
    learner = gb.learning.Minibatch(max_iter=15, batch_size=5, learning_rate=0.5, negative_phase="tempering")
    machine = gb.RestrictedBoltzmannMachine(4, learner=learner, random_state=0)
    whole = clone(machine).fit(data)
    assert whole.score(frame) > -2.0

    class Stop(Callback):
        def on_step(self, run):
            if run.n_steps == 6:
                raise gb.errors.ClusterError("the scheduler is lost", "start it again")

    with pytest.raises(gb.errors.ClusterError):
        clone(machine).set_params(checkpoint=path, callbacks=Stop()).fit(data)
    resumed = clone(machine).set_params(checkpoint=gb.storage.Checkpoint(path, resume=True)).fit(data)
    np.testing.assert_array_equal(resumed.model_.theta, whole.model_.theta)


def test_layers_are_learned_by_sums_too(client):
    machine = gb.RestrictedBoltzmannMachine(1, learner="em", l2=0.01, tol=0.02, max_iter=50, random_state=0)
    theta = machine.fit(there(client, spins())).model_.theta
    np.testing.assert_allclose(theta, machine.fit(spins()).model_.theta, rtol=0, atol=1e-12)


# -- deaths -----------------------------------------------------------------------------------------------------------
class AtStep(Callback):
    """Calls a function after a step."""

    def __init__(self, step, function):
        self.step, self.function = step, function

    def on_step(self, run):
        if run.n_steps == self.step:
            self.function()


class KillAt(AtStep):
    """Ends a worker by SIGKILL after two steps."""

    def __init__(self, client):
        super().__init__(2, self.kill)
        self.client, self.victim = client, 0

    def kill(self):
        self.victim = next(iter(self.client.run(os.getpid).values()))
        os.kill(self.victim, signal.SIGKILL)

    def wait_for_another(self):
        """Wait until the scheduler has noticed, which may take longer than the fit, and a worker is in its place."""
        for _ in range(600):
            found = self.client.run(os.getpid, on_error="ignore").values()
            if len(found) == 2 and self.victim not in found:
                return
            time.sleep(0.5)
        raise TimeoutError(f"no worker came in the place of {self.victim}")


def survived(client, fit):
    """Return the parameters of a fit that nothing disturbed, and of one whose worker was killed after two steps."""
    killer = KillAt(client)
    undisturbed, disturbed = fit(()).theta, fit(killer).theta
    assert killer.victim
    killer.wait_for_another()
    return undisturbed, disturbed


FITS = {
    "mple": (gb.learning.MPLE(), "complete"),
    "mple, completions": (gb.learning.MPLE(), "holed"),
    "mple, chains": (CHAINS["mple, chains"], "holed"),
    "cd": (gb.learning.CD(), "complete"),
    "cd, chains": (gb.learning.CD(), "holed"),
    "pcd": (gb.learning.PCD(n_chains=40), "complete"),
    "smci-pcd": (gb.learning.SpatialPCD(), "complete"),
    "minibatches": (LAYERS.learner, "holed"),
}


def test_a_death_in_the_middle_of_many_fits_changes_no_bit(client, data):
    """All begin at once, and a worker is killed when each has made two steps of four."""
    rows, killer = {"complete": there(client, spins()), "holed": data}, KillAt(client)
    together = Barrier(len(FITS), killer.kill)
    pairs, layers = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(N))), LAYERS.fit(data).model_

    def fitted(name, *callbacks):
        learner, kind = FITS[name]
        model = layers if name == "minibatches" else pairs
        return run(learner, model, rows[kind], 0, max_iter=4, tol=0.0, callbacks=callbacks).model.theta

    undisturbed = {name: fitted(name) for name in FITS}
    with ThreadPoolExecutor(len(FITS)) as pool:
        disturbed = list(pool.map(lambda name: fitted(name, AtStep(2, together.wait)), FITS))
    killer.wait_for_another()
    for name, theta in zip(FITS, disturbed, strict=True):
        np.testing.assert_array_equal(theta, undisturbed[name], err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize("name", [*MACHINES, *MIXTURES])
def test_a_death_changes_no_bit_of_machines_and_mixtures(client, name):
    frame, coding = rows_for(name) if name in MIXTURES else (holed(), "ordinal" if name == "ordinal" else "auto")
    data, machine = there(client, frame, coding=coding), {**MACHINES, **MIXTURES}[name]
    fit = lambda callbacks: clone(machine).set_params(callbacks=callbacks).fit(data).model_  # noqa: E731
    np.testing.assert_array_equal(*survived(client, fit))


@pytest.mark.long
@pytest.mark.parametrize("name", [*CHAINS])
def test_a_death_changes_no_bit_of_chains(client, data, name):
    np.testing.assert_array_equal(*survived(client, lambda callbacks: chained(data, name, callbacks=callbacks)))
