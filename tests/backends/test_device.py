"""Devices by name, what is said where there is none, and that the CPU never loads torch."""

import subprocess
import sys

import numpy as np
import pytest

import gibbsian as gb
from cli_runner import run
from gibbsian.backends import device as devices
from gibbsian.backends.device import Device, here, on_device, require_card_memory, resolved, twin
from gibbsian.errors import ArgumentError, TooExpensiveError

ROWS = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "torch:1", "", 3, None])
def test_an_unknown_name_is_refused_with_the_names_there_are(name):
    with pytest.raises(ArgumentError, match="is not a device: set device='cpu'; a card is cuda"):
        gb.BoltzmannMachine(device=name).fit(ROWS)


def test_without_torch_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ArgumentError, match="needs PyTorch, which is not installed: install it with pip"):
        resolved("cuda")
    assert resolved("auto") is None


def test_without_a_card_one_sentence_says_so(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for built, reason in ((None, "a PyTorch built for CUDA"), ("13.0", "a driver and a card of NVIDIA")):
        monkeypatch.setattr(torch.version, "cuda", built)
        with pytest.raises(ArgumentError, match=f"device='cuda' needs {reason}: set device='cpu'"):
            resolved("cuda")
    assert resolved("auto") is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ArgumentError, match="is not there: this machine has 1 card, counted from 0"):
        resolved("cuda:1")
    assert resolved("auto") == Device("cuda:0", "float32")
    assert resolved("cuda", "float64") == Device("cuda:0", "float64")


def test_memory_of_a_card_is_predicted_and_refused_with_the_number(monkeypatch):
    torch = pytest.importorskip("torch")
    card = Device("cuda:0", "float32")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda place: (2**30, 2**31))
    taken = {"reserved_bytes.all.current": 2**30 + 7, "allocated_bytes.all.current": 7}
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda place: taken)
    token = devices._HERE.set(card)
    try:
        require_card_memory(1.8 * 2**30, "a table", "take less")
        with pytest.raises(
            TooExpensiveError, match=r"a table needs 2.0 GiB on cuda:0, where 1.9 GiB may be used: take"
        ):
            require_card_memory(2.0 * 2**30, "a table", "take less")
    finally:
        devices._HERE.reset(token)


def test_a_full_card_is_one_sentence():
    torch = pytest.importorskip("torch")
    with (
        pytest.raises(TooExpensiveError, match=r"the memory of cpu is full \(CUDA out of memory\)"),
        on_device("torch"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")
    assert here() is None


def test_devices_nest_and_are_left():
    pytest.importorskip("torch")
    with on_device("torch"):
        assert twin("flip_losses").__name__ == "gibbsian.backends.torch.flip_losses"
        with on_device("cpu"):
            assert twin("flip_losses") is None
        assert here() == Device("cpu", "float64")
    assert here() is None


@pytest.mark.filterwarnings("ignore::gibbsian.errors.MaximumDoesNotExistWarning")
def test_a_fit_without_a_twin_says_once_that_it_runs_on_the_cpu(monkeypatch):
    torch = pytest.importorskip("torch")
    settings = {"learner": "mean-field", "l2": 0.1}
    with pytest.warns(gb.errors.DeviceWarning, match="device='torch' has no kernels .* runs on the CPU") as said:
        there = gb.BoltzmannMachine(device="torch", **settings).fit(ROWS)
    assert len(said) == 1
    np.testing.assert_array_equal(there.model_.theta, gb.BoltzmannMachine(**settings).fit(ROWS).model_.theta)
    monkeypatch.setattr(devices, "resolved", lambda name, precision: Device("cpu", "float64"))
    gb.BoltzmannMachine(device="auto", **settings).fit(ROWS)  # a card where it can be used
    assert torch is not None


def test_the_cpu_never_imports_torch():
    code = "import sys, gibbsian as gb; gb.BoltzmannMachine(device='cpu').fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)


def test_the_device_is_told_by_the_model_and_left_out_of_its_settings(tmp_path):
    pytest.importorskip("torch")
    bm = gb.BoltzmannMachine(device="torch", learner="mple").fit(ROWS)
    assert bm.result_.provenance["device"] == "torch"
    bm.save(tmp_path / "model.gibbs")
    read = gb.load(tmp_path / "model.gibbs")
    assert read.device == "cpu"
    np.testing.assert_array_equal(read.model_.theta, bm.model_.theta)
    assert "device" not in gb.BoltzmannMachine().fit(ROWS).result_.provenance


def test_the_command_line_has_the_flag(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    (tmp_path / "rows.csv").write_text("a,b\n" + "\n".join(",".join(map(str, row)) for row in ROWS))
    monkeypatch.chdir(tmp_path)
    done = run("fit", "rows.csv", "--learner", "mple", "--device", "torch", "--out", "model.gibbs")
    assert done.exit_code == 0, done.output
    assert gb.load("model.gibbs").result_.provenance["device"] == "torch"
    refused = run("fit", "rows.csv", "--device", "gpu", "--out", "other.gibbs")
    assert refused.exit_code != 0
    assert "--device gpu is not a device: set --device cpu" in " ".join(refused.output.split())


def test_every_command_that_asks_a_model_has_the_flag(tmp_path, monkeypatch):
    """What it prints is what the CPU prints, twins are asked for, and mistakes are said as flags."""
    pytest.importorskip("torch")
    (tmp_path / "rows.csv").write_text("x0,x1\n" + "\n".join(",".join(map(str, row)) for row in ROWS))
    monkeypatch.chdir(tmp_path)
    gb.BoltzmannMachine(learner="mple").fit(ROWS).save("model.gibbs")
    gb.RestrictedBoltzmannMachine(2, random_state=0, max_iter=2).fit(ROWS).save("rbm.gibbs")
    opened = []
    monkeypatch.setattr(devices, "resolved", lambda name, *how: (opened.append(name), resolved(name, *how))[1])
    asking = [
        ["score", "model.gibbs", "rows.csv"],
        ["expect", "model.gibbs"],
        ["show", "model.gibbs", "--method", "exact"],
        ["mode", "model.gibbs"],
        ["query", "model.gibbs", "P(x0=1)"],
        ["divergence", "model.gibbs", "model.gibbs"],
        ["transform", "rbm.gibbs", "rows.csv"],
    ]
    for words in asking:
        one, _ = run(*words), opened.clear()
        other = run(*words, "--device", "torch")
        assert (one.exit_code, one.stdout) == (other.exit_code, other.stdout), other.output
        assert one.exit_code == 0, one.output
        assert set(opened) == {"torch"}
    assert here() is None
    page = run("report", "model.gibbs", "--out", "page.html", "--device", "torch", "--precision", "float64")
    assert page.exit_code == 0, page.output
    refused = run("score", "model.gibbs", "rows.csv", "--device", "gpu")
    assert "--device gpu is not a device: set --device cpu" in " ".join(refused.output.split())
    refused = run("score", "model.gibbs", "rows.csv", "--device", "torch", "--precision", "float8")
    assert refused.exit_code != 0
    assert "--precision" in refused.output
