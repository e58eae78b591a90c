"""Steps that are captured once and replayed."""

import gc
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")
repeated = pytest.importorskip("gibbsian.backends.torch.repeated")


def test_no_garbage_is_collected_during_a_capture(monkeypatch):
    """An older graph in a cycle, freed at that moment, would break it."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: "graph")
    monkeypatch.setattr(torch.cuda, "graph", nullcontext)
    seen = []
    steps = repeated.Repeated(lambda ahead: seen.append(gc.isenabled()), torch.zeros(1))
    assert steps._captured(3) == "graph"
    assert seen == [False] * 3
    assert gc.isenabled()

    def broken(ahead):
        raise ValueError

    with pytest.raises(ValueError):
        repeated.Repeated(broken, torch.zeros(1))._captured(1)
    assert gc.isenabled()
