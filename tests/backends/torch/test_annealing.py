"""Walks along temperatures through PyTorch: the weights of Numba's at the same states, and the same distributions."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.backends.device import on_device
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, ReplicaLadder, anneal, variable_path
from systems import BINARY, exact_law, products_of_order, random_model

torch = pytest.importorskip("torch")
annealing = pytest.importorskip("gibbsian.backends.torch.annealing")

POTTS = gb.TablesFamily.potts(gb.graphs.grid(2, 2), Variables.categories((3, 2, 3, 2)))
PRODUCTS = products_of_order(5, 3)
KINDS = {
    "dense": lambda rng: random_model(gb.graphs.complete(5), rng),
    "grid": lambda rng: random_model(gb.graphs.grid(2, 24), rng, BINARY),  # few colours for its size
    "potts": lambda rng: gb.Model(POTTS, rng.normal(0, 0.7, POTTS.n_parameters)),
    "order 3": lambda rng: gb.Model(PRODUCTS, rng.normal(0, 0.5, PRODUCTS.n_parameters)),
}


@pytest.fixture(params=["torch", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


@pytest.fixture(params=list(KINDS))
def model(request):
    return KINDS[request.param](np.random.default_rng(3))


def chains_of(path, n_walkers=60):
    codes = np.random.default_rng(1).integers(0, path.family.variables.sizes, (n_walkers, len(path.family.variables)))
    return path.chains_at(codes.astype(np.int8), Key.of(1))


def test_weights_are_those_of_numba_both_ways(model, device):
    path = variable_path(model)
    kernel, start = path.kernel(), chains_of(path)
    with on_device(device, "float64"):
        moved, up = anneal(path, kernel, start, np.array([0.2, 0.7]))
        back, down = anneal(path, kernel, start, np.array([0.7, 0.2]))
    np.testing.assert_allclose(up, anneal(path, kernel, start, np.array([0.2, 0.7]))[1], atol=1e-10)
    assert (moved.states != start.states).any()
    # on the way back walkers are moved first
    np.testing.assert_allclose(down, -anneal(path, kernel, back, np.array([0.2, 0.7]))[1], atol=1e-10)


def test_walkers_that_start_at_the_exact_distribution_stay_there(model, device):
    n_walkers, rng = 20_000, np.random.default_rng(2)
    path = variable_path(model)
    starts = gb.inference.exact(model).sample(n_walkers, rng)
    with on_device(device):
        chains, _ = anneal(path, path.kernel(), path.chains_at(starts, Key.of(2)), np.ones(3))
        chains, _ = anneal(path, path.kernel(), chains, np.array([1.0, 1.0, 1.0 - 1e-12]))
    ends = path.rows(chains.states)
    if model.n_variables > 5:
        truth = gb.inference.exact(model).moments
        errors = np.sqrt(truth * (1.0 - truth) / n_walkers)
        assert np.abs((model.family.mean_statistics(ends) - truth) / errors).max() < 4.5
        return
    states, shares, _ = exact_law(model)
    found = {state.tobytes(): 0 for state in states}
    for state, count in zip(*np.unique(ends, axis=0, return_counts=True), strict=True):
        found[state.astype(states.dtype).tobytes()] = count
    squares = (np.array(list(found.values())) - n_walkers * shares) ** 2 / (n_walkers * shares)
    df = len(states) - 1
    assert squares.sum() < df + 4.5 * np.sqrt(2 * df)
    assert (ends != starts).any(axis=1).mean() > 0.5


@pytest.mark.parametrize("kind", ["dense", "potts"])
def test_log_partition_by_walks_there_and_back_and_by_columns(kind, device):
    model = KINDS[kind](np.random.default_rng(3))
    truth = gb.inference.exact(model).log_partition
    with on_device(device):
        forward = Annealing(200, 60).forward(model, 0)
        reverse = Annealing(200, 60).reverse(model, gb.inference.exact(model).sample(200, np.random.default_rng(1)))
        path, key = variable_path(model), Key.of(2)
        start = [path.start(32, key.fold(k)) for k in range(3)]
        _, columns = ReplicaLadder(path, np.linspace(0.0, 1.0, 3), start, key).run(20)
    for run in (forward, reverse, columns):
        assert abs(run.log_partition - truth) < 4.5 * run.log_partition_stderr < 0.5


def test_a_walker_depends_on_its_own_stream_only(model, device, monkeypatch):
    path, betas = variable_path(model), np.linspace(0.0, 1.0, 7)
    kernel, start = path.kernel(), chains_of(path)
    with on_device(device):
        one, increases = anneal(path, kernel, start, betas)
        monkeypatch.setattr("gibbsian.sampling.walks.TEMPERATURES_A_CALL", 2)
        monkeypatch.setattr(annealing, "CELLS", 1000)  # few walkers of tables at a time
        parts = [anneal(path, kernel, start.take(part), betas) for part in (slice(0, 23), slice(23, 60))]
    np.testing.assert_array_equal(np.concatenate([part.states for part, _ in parts]), one.states)
    np.testing.assert_allclose(np.concatenate([grown for _, grown in parts]), increases, atol=1e-12)


def test_memory_is_predicted_and_refused(model, monkeypatch):
    def refuse(n_bytes, what, instead):
        raise gb.errors.TooExpensiveError(f"{what} needs {n_bytes}", instead)

    monkeypatch.setattr(annealing, "require_card_memory", refuse)
    path = variable_path(model)
    with on_device("torch"), pytest.raises(gb.errors.TooExpensiveError, match="annealing 60 walkers of"):
        anneal(path, path.kernel(), chains_of(path), np.array([0.0, 1.0]))
