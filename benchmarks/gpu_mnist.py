"""Handwritten digits on a card: a machine of 500 hidden units, its settings chosen on held-out training rows.

``python gpu_mnist.py FILE SECONDS``: packed bits (``train`` and ``test``), and how long to learn. ``--choose`` learns
from the training rows but 10,000, which it scores; without it all training rows teach, and test rows are scored. Digits
were rounded at random, once, as those of the published figures (Salakhutdinov and Murray 2008): a pixel is black with
the probability of its grey level, here by NumPy's generator of seed 2008, ``rng.random(shape, float32) * 255 < grey``.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from gibbsian.backends.device import on_device
from gibbsian.data import Dataset
from gibbsian.diagnostics.partition import log_partition_interval
from gibbsian.learning import Minibatch
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.run import run
from gibbsian.models.base import Model
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import BinaryUnits
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, ReplicaLadder, layer_path

N_HIDDEN, N_HELD_OUT, PILOT_EPOCHS = 500, 10_000, 8


class Clock(Callback):
    """When each epoch was over."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step(self, run: object) -> None:
        """Look at the clock."""
        self.times.append(time.perf_counter())


def learned(rows: np.ndarray, seconds: float, **settings: object) -> tuple[Model[StackFamily], int, float]:
    """Return a machine that was trained for some time, with epochs and seconds."""
    data, blank = (
        Dataset.of_states(rows, "binary"),
        StackFamily((BinaryUnits(rows.shape[1]), BinaryUnits(N_HIDDEN))).build(),
    )

    def fitted(n_epochs: int) -> tuple[Model[StackFamily], np.ndarray]:
        learner, clock = Minibatch(max_iter=n_epochs, dtype="float32", **settings), Clock()  # type: ignore[arg-type]
        start = learner.start(blank, data, np.random.default_rng(0))
        began = time.perf_counter()
        return run(learner, start, data, 0, [clock], max_iter=n_epochs).model, np.diff([began, *clock.times])

    n_epochs = max(PILOT_EPOCHS, int(seconds / np.median(fitted(PILOT_EPOCHS)[1])))
    model, times = fitted(n_epochs)
    return model, n_epochs, float(times.sum())


def mean_log_weight(model: Model[StackFamily], rows: np.ndarray) -> float:
    """Return the mean of log-probabilities that lack log Z."""
    return float(np.mean([model.family.log_evidence(model.theta, part).mean() for part in np.split(rows, 10)]))


def main() -> None:
    """Learn, and print the log-likelihood by annealing there and back and by tempered columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--chains", type=int, default=500)
    parser.add_argument("--l2", type=float, default=0.0)
    parser.add_argument("--phase", default="pcd")
    parser.add_argument("--rounds", type=int, default=0, help="of tempered columns, besides those of the interval")
    parser.add_argument("--betas", type=int, default=20_000)
    parser.add_argument("--out", help="where the machine is saved")
    given = parser.parse_args()
    with np.load(given.file) as bits:
        train, test = (np.unpackbits(bits[name], axis=1).astype(np.int8) for name in ("train", "test"))
    taught, scored = (train[N_HELD_OUT:], train[:N_HELD_OUT]) if given.choose else (train, test)
    settings = {"learning_rate": given.rate, "n_steps": given.steps, "n_chains": given.chains}
    settings |= {"batch_size": given.batch, "l2": given.l2, "free_phase": given.phase}
    with on_device("cuda"):
        model, n_epochs, took = learned(taught, given.seconds, **settings)
        print(f"{settings}: {n_epochs} epochs in {took:.0f} s", flush=True)
        if given.out:
            np.savez_compressed(given.out, theta=model.theta, n_hidden=N_HIDDEN)
        path, began = layer_path(model, Dataset.of_states(taught, "binary")), time.perf_counter()
        if given.choose:
            estimates = {"forward": Annealing(1000, given.betas).forward(path, 0).log_partition}
        else:
            interval = log_partition_interval(path, annealing=Annealing(1000, given.betas), rng=0, warn=False)
            print(interval.describe(), f"({time.perf_counter() - began:.0f} s)", flush=True)
            estimates = {"lower end": interval.lower, "upper end": interval.upper}
    weights, of_train = mean_log_weight(model, scored), mean_log_weight(model, taught[:10_000])
    for name, log_z in estimates.items():
        print(
            f"log Z {log_z:.3f} ({name}): rows {weights - log_z:.3f}, taught rows {of_train - log_z:.3f} nats",
            flush=True,
        )
    if given.rounds:
        began = time.perf_counter()
        with on_device("cuda"):
            ladder = ReplicaLadder.settled(path, Key.of(1))
            _, longer = ladder.run(given.rounds, 1000)
            words = Annealing(1000, given.betas).reverse(path, longer.states, 2).describe()
        print(f"{longer.describe()}, {longer.warning}; least exchanged {longer.acceptance.min():.2f}", flush=True)
        print(f"from their states {words} ({time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
