"""Vectors of an optimiser on a device against those of NumPy."""

import warnings
from functools import partial

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends.device import Device, on_device
from gibbsian.expectations.imputation import present_means
from gibbsian.learning.objectives.centring import LinearMap, pair_centring
from gibbsian.learning.optimizers import LBFGS

torch = pytest.importorskip("torch")
vectors = pytest.importorskip("gibbsian.backends.torch.vectors")
BIPARTITE = np.array([(i, j) for i in range(3) for j in range(3, 7)])
CHANGES = {
    "complete": (6, 15, partial(pair_centring, gb.graphs.complete(6).edges)),
    "grid": (6, 7, partial(pair_centring, gb.graphs.grid(2, 3).edges)),
    "tables": (7, 12, partial(pair_centring, BIPARTITE)),
    "apart": (0, 5, lambda _, scales: LinearMap(scales)),
}


@pytest.fixture(params=["torch", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


@pytest.mark.parametrize("kind", CHANGES)
def test_changes_of_parameters_are_those_of_numpy(kind, device, rng):
    n, n_pairs, build = CHANGES[kind]
    change, vector = build(rng.normal(size=n), rng.uniform(0.5, 2.0, n + n_pairs)), rng.normal(size=n + n_pairs)
    with on_device(device, "float64"):
        there = change.on_device(vectors)
        for way in ("inwards", "outwards", "gradient", "gradient_outwards"):
            found = getattr(there, way)(vectors.put(vector)).cpu().numpy()
            np.testing.assert_allclose(found, getattr(change, way)(vector), rtol=0, atol=1e-13)


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_steps_on_tensors_are_those_on_arrays(l1, device, rng):
    scale, penalties = rng.uniform(0.1, 10.0, 30), np.full(30, l1)

    def valley(theta, scale=scale):
        return ((scale * (theta - 1.0)) @ (theta - 1.0)) / 2, scale * (theta - 1.0)

    host = LBFGS().init(valley, np.zeros(30), penalties)
    with on_device(device, "float64"):
        lift = vectors.Lift()
        there = lift.up(host)
        for _ in range(6):
            host, info = LBFGS().step(valley, host, penalties)
            there, other = LBFGS().step(partial(valley, scale=vectors.put(scale)), there, vectors.put(penalties))
            below = lift.down(there)  # as between two steps of a fit
            assert lift.up(below) is there
            there = vectors.Lift().up(below)  # and after a checkpoint
            assert other.evaluations == info.evaluations
            np.testing.assert_allclose(there.theta.cpu().numpy(), host.theta, rtol=0, atol=1e-10)
        kept = lift.down(there)
        assert kept.moves.shape == host.moves.shape
        np.testing.assert_allclose(np.asarray(kept.changes), host.changes, rtol=0, atol=1e-9)


def most_bytes(work):
    """Return the most that tensors of PyTorch had at a time, with copies of what on the CPU would be shared arrays."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    events = watched.profiler.kineto_results.events()
    return np.cumsum([event.nbytes() for event in events if event.name() == "[memory]"]).max()


def test_memory_of_steps_is_predicted_and_refused(monkeypatch, rng):
    """Vectors of L-BFGS, the change about the mean and the metric: what rows take is nothing here.

    Of fewer than 13,000 parameters more moves are kept than is predicted, some megabytes.
    """
    rows, asked, put = np.where(rng.random((20, 170)) < 0.5, 1, -1), [], Device.put
    machine = gb.BoltzmannMachine(learner="mple", l2=0.01, max_iter=24, tol=1e-14, device="torch", precision="float32")
    monkeypatch.setattr(Device, "put", lambda *given: put(*given).clone())
    monkeypatch.setattr(vectors, "require_card_memory", lambda *given: asked.append(given[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken = most_bytes(lambda: machine.fit(rows))
    kept = 32 * 170 * 169 // 2  # places of couplings, which are there before
    assert taken - kept < asked[0] * 1.02
    assert asked[0] < 1.1 * (taken - kept)

    def refuse(n_bytes, what, instead):
        raise gb.errors.TooExpensiveError(f"{what} needs {n_bytes:.3g}", instead)

    monkeypatch.setattr(vectors, "require_card_memory", refuse)
    with pytest.raises(
        gb.errors.TooExpensiveError, match=r"a step of 14,535 parameters needs 1.53e\+07: set device='cpu'"
    ):
        machine.fit(rows)


@pytest.mark.parametrize("block_cells", [2**27, 20])
def test_means_of_columns_are_those_of_numpy(block_cells, device, rng, monkeypatch):
    monkeypatch.setattr("gibbsian.backends.torch.moments._BLOCK_CELLS", block_cells)
    data = gb.Dataset.read(rng.choice([-1, 1], (30, 5)), sample_weight=rng.uniform(1, 2, 30))
    with on_device(device, "float32"):
        found = present_means(data)
    np.testing.assert_allclose(found, present_means(data), rtol=0, atol=1e-14)
