"""Handwritten digits on a card: a machine of 500 hidden units, its settings chosen on held-out training rows.

``python gpu_mnist.py FILE SECONDS``: packed bits (``train`` and ``test``), and about how long to learn. Digits
are black above half of the scale, which is not the random rounding behind most published figures.
"""

from __future__ import annotations

import sys
import time
from itertools import product

import numpy as np

from gibbsian.backends.device import on_device
from gibbsian.data import Dataset
from gibbsian.diagnostics.partition import log_partition_interval
from gibbsian.learners import Minibatch
from gibbsian.learners.run import run
from gibbsian.models.layers import BinaryLayer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.samplers import Annealing, layer_path

N_HIDDEN, N_HELD_OUT, TRIAL_EPOCHS = 500, 10_000, 60


def learned(rows: np.ndarray, n_epochs: int, rate: float, n_steps: int) -> tuple[RestrictedModel, float]:
    """Return a machine that was trained for some epochs, and the seconds that it took."""
    data, start = Dataset.of_states(rows, "binary"), time.perf_counter()
    settings = {"learning_rate": rate, "n_steps": n_steps, "n_chains": 500, "batch_size": 200, "dtype": "float32"}
    learner = Minibatch(max_iter=n_epochs, **settings)
    blank = RestrictedModel.build(BinaryLayer(rows.shape[1]), BinaryLayer(N_HIDDEN))
    first = learner.start(blank, data, np.random.default_rng(0))
    model = run(learner, first, data, 0, max_iter=n_epochs).model
    return model, time.perf_counter() - start


def likelihood(model: RestrictedModel, rows: np.ndarray, train: np.ndarray) -> tuple[float, float]:
    """Return the mean log-likelihood of rows between two sides, by annealing there and back."""
    path = layer_path(model, Dataset.of_states(train, "binary"))
    found = log_partition_interval(path, annealing=Annealing(1000, 10_000), rng=0, burn_in=5000, warn=False)
    weights = float(np.mean([model.log_weights(part).mean() for part in np.split(rows, 10)]))
    return weights - found.upper, weights - found.lower


def main(path: str, seconds: float) -> None:
    """Choose the settings, learn, and print the interval of the test rows."""
    with np.load(path) as bits:
        train, test = (np.unpackbits(bits[name], axis=1).astype(np.int8) for name in ("train", "test"))
    with on_device("cuda"):
        found = {}
        for rate, n_steps in product((0.1, 0.3), (1, 5)):
            model, took = learned(train[N_HELD_OUT:], TRIAL_EPOCHS, rate, n_steps)
            found[rate, n_steps] = *likelihood(model, train[:N_HELD_OUT], train), took
            print(f"rate {rate}, {n_steps} steps: held out {found[rate, n_steps][:2]}, {took:.1f} s", flush=True)
        chosen = max(found, key=lambda settings: found[settings][0])
        n_epochs = int(seconds / (found[chosen][2] * len(train) / (len(train) - N_HELD_OUT) / TRIAL_EPOCHS))
        model, took = learned(train, n_epochs, *chosen)
        lower, upper = likelihood(model, test, train)
    print(f"chosen {chosen}, {n_epochs} epochs in {took:.0f} s: test rows {lower:.2f} to {upper:.2f} nats")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
