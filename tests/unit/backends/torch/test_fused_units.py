"""The fused kernel of two-valued units against what PyTorch does step by step, with the same random numbers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gibbsian.backends.device import here, on_device
from gibbsian.samplers import layer_path
from layered_systems import random_machine


def outcome(path, start, fused: bool) -> list[np.ndarray]:
    """Log-weights, walkers and means of a short walk."""
    from gibbsian.backends.torch.layers import Walk

    there = Walk(path._units, path._weights, start, 4, 5, here())
    for side in (there.machine.lower, there.machine.upper):
        side.fused = fused
    found = [there(np.linspace(0.0, 1.0, 4)), np.asarray(there)]
    upper, means = there.machine.upper, there.products.clone()
    upper.along, upper.places = False, upper.places[2:3]
    upper.means(there.products, there.machine.stream, means)
    return [*found, means.cpu().numpy()]


def compare(device: str) -> None:
    """Go through kinds of units, precisions, and widths that fill strips and quarters or do not."""
    rng = np.random.default_rng(0)
    for visible, hidden, sizes in (("binary", "spin", (11, 6)), ("spin", "binary", (5, 1030))):
        path = layer_path(random_machine(visible, hidden, rng, *sizes, scale=0.3, temperature=1.3), "biases")
        start = path.draw_base(3, rng)
        for precision, tolerance in (("float64", 1e-10), ("float32", 1e-4)):
            with on_device(device, precision):
                for mine, theirs in zip(*(outcome(path, start, fused) for fused in (True, False)), strict=True):
                    np.testing.assert_allclose(mine, theirs, atol=tolerance)


def test_by_the_interpreter():
    pytest.importorskip("triton")
    paths = [str(Path(__file__).parent), *sys.path]
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run(
        [sys.executable, "-c", "import test_fused_units as t; t.compare('torch')"], env=environment, check=True
    )


@pytest.mark.gpu
def test_on_a_card():
    compare("cuda")
