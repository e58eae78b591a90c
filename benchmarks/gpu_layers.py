"""Machines of layers on a card: epochs of PCD-1, annealing beside its matrix products, memory beside its prediction."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np

from gibbsian.backends.device import on_device
from gibbsian.data import Dataset
from gibbsian.learning import Minibatch
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.run import run
from gibbsian.models.base import Model
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import BinaryUnits
from gibbsian.sampling import Annealing, layer_path
from timing import best_of

N_VISIBLE, N_HIDDEN, N_ROWS = 784, 500, 60_000


def rows(n_rows: int = N_ROWS) -> Dataset:
    """Rows as sparse as handwritten digits, with dependent columns."""
    rng = np.random.default_rng(0)
    causes = rng.random((n_rows, 20)) < 0.3
    fields = causes @ rng.normal(0.0, 2.0, (20, N_VISIBLE)) - 2.0
    return Dataset.of_states((rng.random(fields.shape) * (1 + np.exp(-fields)) < 1).astype(np.int8), "binary")


def machine(n_hidden: int = N_HIDDEN) -> Model[StackFamily]:
    """Return a machine with weights as they are after learning."""
    rng, layers = np.random.default_rng(1), (BinaryUnits(N_VISIBLE), BinaryUnits(n_hidden))
    parts = rng.normal(-2, 1, N_VISIBLE), rng.normal(0, 1, n_hidden), rng.normal(0, 0.1, (N_VISIBLE, n_hidden))
    return StackFamily(layers).build(parts[:2], parts[2:])


class Clock(Callback):
    """When each epoch was over."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step(self, run: object) -> None:
        """Look at the clock."""
        self.times.append(time.perf_counter())


def epoch_seconds(batch_size: int, n_hidden: int = N_HIDDEN, n_epochs: int = 20) -> float:
    """Median seconds of an epoch, centred, with what is watched, from the end of one to that of the next."""
    data, clock = rows(), Clock()
    learner = Minibatch(max_iter=n_epochs, batch_size=batch_size, learning_rate=0.01, dtype="float32")
    blank = StackFamily((BinaryUnits(N_VISIBLE), BinaryUnits(n_hidden))).build()
    start = learner.start(blank, data, np.random.default_rng(0))
    with on_device("cuda"):
        run(learner, start, data, 0, [*learner.monitors(data, None), clock], max_iter=n_epochs)
    return float(np.median(np.diff(clock.times)))


def annealing_ratio(n_betas: int = 10_000, n_walkers: int = 1000) -> float:
    """Seconds of annealing over those of its matrix products, made in graphs alone."""
    import torch

    path = layer_path(machine(), "biases")
    with on_device("cuda"):
        Annealing(n_walkers, 1000).forward(path, 0)
        seconds = best_of(lambda: Annealing(n_walkers, n_betas).forward(path, 0), 2)
        values, weights = (
            torch.rand(n_walkers, N_VISIBLE, device="cuda"),
            torch.rand(N_VISIBLE, N_HIDDEN, device="cuda"),
        )
        up, graph = values @ weights, torch.cuda.CUDAGraph()
        up @ weights.T
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(100):
                torch.mm(values, weights, out=up)
                torch.mm(up, weights.T, out=values)

        def products() -> None:
            for _ in range(n_betas // 100):
                graph.replay()
            torch.cuda.synchronize()

        bare = best_of(products, 3)
    print(f"    annealing {seconds:.3f} s, its products {bare:.3f} s")
    return seconds / bare


def memory_ratio(n_hidden: int = 4096) -> float:
    """What learning 784 x 4,096 takes of the card over what was predicted."""
    import torch

    from gibbsian.backends.torch import layer_programs

    predicted: list[float] = []
    ask, layer_programs.require_card_memory = (
        layer_programs.require_card_memory,
        lambda size, *_: predicted.append(size),
    )
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    try:
        seconds = epoch_seconds(1000, n_hidden, 3)
    finally:
        layer_programs.require_card_memory = ask
    taken = torch.cuda.max_memory_allocated() - before
    print(
        f"    784 x {n_hidden}: {seconds:.3f} s an epoch, {taken / 2**20:.1f} MiB, predicted {predicted[0] / 2**20:.1f}"
    )
    return taken / predicted[0]


def works() -> list[tuple[str, Callable[[], float], float, str]]:
    """Return what is measured: a name, how, at most which figure, and its unit."""
    return [
        ("RBM 784x500 PCD-1, 60,000 rows, batch 100", lambda: epoch_seconds(100), 0.08, "s an epoch"),
        ("RBM 784x500 PCD-1, 60,000 rows, batch 1,000", lambda: epoch_seconds(1000), 0.016, "s an epoch"),
        ("AIS 784x500, 10,000 temperatures x 1,000 walkers", annealing_ratio, 1.5, "times its products"),
        ("RBM 784x4,096, memory taken", memory_ratio, 1.05, "of the prediction"),
    ]


if __name__ == "__main__":
    for name, figure, ask, unit in works():
        found = figure()
        print(f"{name}: {found:.4g} {unit} (at most {ask:g}){'' if found <= ask else ' MISSED'}", flush=True)
