"""Every Triton kernel under Triton's interpreter, against the same thing in plain torch."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends.device import on_device

torch = pytest.importorskip("torch")
with pytest.MonkeyPatch.context() as patch:
    if not torch.cuda.is_available():
        patch.setenv("TRITON_INTERPRET", "1")  # which Triton's own functions ask for when they are loaded
    pytest.importorskip("triton")


@pytest.fixture
def interpreted(monkeypatch):
    """Return a function that says whether kernels are Triton's from now on."""
    if torch.cuda.is_available():
        pytest.skip("kernels are compiled for the card of this machine, and tested there")
    return lambda yes: monkeypatch.setenv("TRITON_INTERPRET", "1" if yes else "0")


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("kernel", ["logistic", "squared_sigmoid", "half_exponential"])
def test_fused_losses(kernel, precision, interpreted):
    from gibbsian.backends.numba import flip_losses as kernels
    from gibbsian.models.conditionals import Loss, WeightedRows

    rng = np.random.default_rng(0)
    model, codes = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(7))), rng.integers(0, 2, (50, 7), np.int8)
    theta, found = rng.normal(0, 0.7, model.theta.size), []
    for yes in (False, True):
        interpreted(yes)
        with on_device("torch", precision):
            bound = model.family.conditionals(WeightedRows.of(codes))
            assert (bound._fused(kernel) is None) != yes
            found.append(bound.evaluate(theta, Loss(getattr(kernels, kernel))))
    rtol = 1e-12 if precision == "float64" else 1e-5
    assert found[0][0] == pytest.approx(found[1][0], rel=rtol)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=0, atol=rtol)


@pytest.mark.parametrize("clamped", [None, "all", "each"])
@pytest.mark.parametrize("graph", [gb.graphs.complete(20), gb.graphs.grid(9, 25)], ids=["dense", "grid"])
def test_sweeps_give_the_same_spins(graph, clamped, interpreted):
    rng = np.random.default_rng(1)
    model = gb.PairwiseFamily.model(graph, rng.normal(0, 0.5, graph.n_nodes), rng.normal(0, 0.5, graph.n_edges))
    states = rng.integers(0, 2, (5, graph.n_nodes))
    held = {None: None, "all": rng.random(graph.n_nodes) < 0.3, "each": rng.random(states.shape) < 0.3}[clamped]
    found = []
    for yes in (False, True):
        interpreted(yes)
        with on_device("torch"):
            kernel = gb.sampling.kernel_for(model.family, mask=held)
            found.append(kernel.step(model.theta, kernel.init(5, gb.rng.Key.of(2), states), 2))
    np.testing.assert_array_equal(found[1][0].states, found[0][0].states)
    assert found[1][1] == found[0][1]
    assert (found[0][0].states != states).any()


WALKED = {
    "dense": gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(18))),
    "grid": gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(3, 25))),
    "tables": gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.grid(2, 3), gb.Variables.categories((3, 2, 4, 2, 3, 3)))),
}


@pytest.mark.parametrize("kind", WALKED)
def test_walks_along_temperatures_take_the_same_way(kind, interpreted):
    rng, found = np.random.default_rng(1), []
    model = WALKED[kind].replace(rng.normal(0, 0.5, WALKED[kind].theta.size))
    for yes in (False, True):
        interpreted(yes)
        with on_device("torch"):
            path = gb.sampling.variable_path(model)
            start = path.start(5, gb.rng.Key.of(2))
            chains, increases = gb.sampling.anneal(path, path.kernel(), start, np.array([0.0, 0.3, 0.8]))
            found.append((increases, chains.states))
    np.testing.assert_array_equal(found[1][1], found[0][1])
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-12)


@pytest.mark.parametrize("z", [1, 2, 37, 1024 + 6, 2048])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_full_span_passes(z, dtype, interpreted):
    from gibbsian.backends.torch import span

    rng, found = np.random.default_rng(3), []
    now, data = rng.uniform(-0.5, 0.5, (2, 2**12))
    for yes in (False, True):
        interpreted(yes)
        with on_device("torch"):
            dual, target = span.Table(2**12, dtype), span.Table(2**12, dtype)
            dual[...], target[...] = now, data
            for halves in (6, 11):
                low, high = (torch.linspace(0, 0.01, 2**k).to(dual.values) for k in (halves, 12 - halves))
                tops = span.update(dual, target, (low, high), (z, 0.9, 0.3))
            found.append((np.asarray(dual), tops.numpy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12 if dtype is np.float64 else 1e-6)
