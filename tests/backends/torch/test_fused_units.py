"""The fused kernels of layers against what PyTorch does step by step, with the same random numbers."""

import numpy as np
import pytest

from gibbsian.backends.torch.streams import Stream

torch = pytest.importorskip("torch")
with pytest.MonkeyPatch.context() as patch:
    if not torch.cuda.is_available():
        patch.setenv("TRITON_INTERPRET", "1")  # which Triton's own functions ask for when they are loaded
    pytest.importorskip("triton")
    fused = pytest.importorskip("gibbsian.backends.torch.fused_units")
from gibbsian.backends.torch import layers  # noqa: E402


def stream_at(place: str) -> Stream:
    stream = Stream(place)
    stream.restart(3)
    stream.at_step(2)
    return stream


def compare_draws(place: str) -> None:
    """Go through kinds of units, precisions, and widths that fill strips and quarters or do not."""
    rng = np.random.default_rng(0)
    for low in (0.0, -1.0):
        for dtype, width in ((torch.float64, 11), (torch.float32, 5), (torch.float32, 1030)):
            fields = torch.from_numpy(rng.normal(scale=2.0, size=(3, width))).to(place, dtype)
            mine = fused.draw_two_valued(fields, low, stream_at(place))
            uniform = stream_at(place).uniform(3, width, dtype)
            theirs = torch.where(uniform < torch.sigmoid((1.0 - low) * fields), 1.0, low).to(dtype)
            assert torch.equal(mine, theirs)


def compare_steps(place: str) -> None:
    rng = np.random.default_rng(1)
    for dtype, tolerance in ((torch.float64, 1e-14), (torch.float32, 1e-6)):
        given = [torch.from_numpy(rng.normal(size=2500)).to(place, dtype) for _ in range(3)]
        rate = torch.tensor(0.3, dtype=torch.float64, device=place)
        for l1, l2 in ((0.0, 0.0), (0.5, 0.02)):
            mine, theirs = ([part.clone() for part in given] for _ in range(2))
            fused.momentum_step(*mine, rate, 0.4, l1, l2)
            layers.plain_momentum_step(*theirs, rate, 0.4, l1, l2)
            for one, other in zip(mine, theirs, strict=True):
                torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_by_the_interpreter(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("kernels are compiled for the card of this machine, and tested there")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    compare_draws("cpu")
    compare_steps("cpu")


@pytest.mark.gpu
def test_on_a_card():
    compare_draws("cuda")
    compare_steps("cuda")
