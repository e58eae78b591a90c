"""The fused kernel of two-valued units against what PyTorch does step by step, with the same random numbers."""

import numpy as np
import pytest

from gibbsian.backends.device import here, on_device
from gibbsian.learners import Minibatch
from gibbsian.samplers import layer_path
from layered_systems import data_rows, random_machine

torch = pytest.importorskip("torch")
with pytest.MonkeyPatch.context() as patch:
    if not torch.cuda.is_available():
        patch.setenv("TRITON_INTERPRET", "1")  # which Triton's own functions ask for when they are loaded
    pytest.importorskip("triton")
    pytest.importorskip("gibbsian.backends.torch.fused_units")


def outcome(path, start, fused: bool) -> list[np.ndarray]:
    """Log-weights, walkers and means of a short walk."""
    from gibbsian.backends.torch.layers import Walk

    there = Walk(path._units, path._weights, start, 4, 5, here())
    for side in (there.machine.lower, there.machine.upper):
        side.fused = fused
    found = [there(np.linspace(0.0, 1.0, 4)), np.asarray(there)]
    upper, means = there.machine.upper, there.products.clone()
    upper.along, upper.places = False, upper.places[2:3]
    upper.means_and_draws(there.products, there.machine.stream, there.sums.to(means.dtype), means, None)
    return [*found, means.cpu().numpy()]


def epochs(fused: bool) -> list[np.ndarray]:
    """Parameters after two epochs of uneven minibatches with momentum and penalties."""
    from gibbsian.backends.torch import layer_epochs
    from gibbsian.backends.torch.repeated import kept

    rng = np.random.default_rng(1)
    machine = random_machine("binary", "spin", rng, 7, 5)
    learner = Minibatch(batch_size=3, momentum=0.3, l1=0.01, l2=0.02, max_iter=2)
    state = learner.begin(machine, data_rows(rng.integers(0, 2, (5, 7))), rng)
    plan = learner._plan(state.problem, state.progress, np.random.default_rng(0))
    fit = kept(state.problem, here(), lambda: layer_epochs.Fit(state.problem, plan, here()))
    fit.fused = fit.machine.lower.fused = fit.machine.upper.fused = fused
    progress = learner.step(learner.step(state)[0])[0].progress
    return [progress.theta, progress.velocity, progress.memory.free.hidden, progress.memory.offsets.hidden]


def compare(device: str) -> None:
    """Go through kinds of units, precisions, and widths that fill strips and quarters or do not."""
    rng = np.random.default_rng(0)
    for precision, kinds, sizes, tolerance in (
        ("float64", ("binary", "spin"), (11, 6), 1e-10),
        ("float32", ("spin", "binary"), (5, 1030), 1e-4),
    ):
        path = layer_path(random_machine(*kinds, rng, *sizes, scale=0.3), "biases")
        start = path.draw_base(2, rng)
        with on_device(device, precision):
            assert_close([outcome(path, start, fused) for fused in (True, False)], tolerance)
    with on_device(device, "float64"):
        assert_close([epochs(fused) for fused in (True, False)], 1e-10)


def assert_close(pair: list[list[np.ndarray]], tolerance: float) -> None:
    for mine, theirs in zip(*pair, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=tolerance)


def test_by_the_interpreter(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("kernels are compiled for the card of this machine, and tested there")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    compare("torch")


@pytest.mark.gpu
def test_on_a_card():
    compare("cuda")
