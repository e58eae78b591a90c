"""How well machines of layers are learned, by exact test log-likelihood: digits beside peers, deep machines, and MNIST.

The rate is 0.2 throughout, with about a hundred minibatches an epoch; scikit-learn and rbms also get the best of
several rates, chosen on held-out training rows. rbms is asked where ``make bench-peers`` has installed it, or where
``GIBBSIAN_PEERS`` says.
``bench_rbm_quality.py equal-time`` prints the comparison at equal processor time alone, for digits and MNIST.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM

import gibbsian as gb
from gibbsian.data import Dataset
from gibbsian.diagnostics import log_partition_interval
from gibbsian.diagnostics.likelihood import LogLikelihood
from gibbsian.inference import exact
from gibbsian.learning import Minibatch, run
from gibbsian.models.base import Model
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import BinaryUnits
from gibbsian.sampling import Annealing, layer_path

SHARED = Path(os.environ.get("GIBBSIAN_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
MNIST = SHARED / "mnist" / "binarized_packed.npz"
EPOCHS = (10, 30, 100)
SEEDS = range(3)
SKLEARN_RATES = (0.1, 0.03, 0.01)
MNIST_EPOCHS = 20
LARGE_EPOCHS, LARGE_BETAS = 20, 10_000
PEERS = Path(os.environ.get("GIBBSIAN_PEERS", Path(__file__).parents[1] / ".peers")) / "bin" / "python"
DEFAULTS = {"learning_rate": 0.1, "batch_size": 10}
PEER_RATES = (0.3, 0.1, 0.03)
EQUAL_SIZES, EQUAL_TIMES = (16, 20), (1, 3, 9)
DEEP_EPOCHS = (30, 100)


def main() -> None:
    if sys.argv[1:] != ["equal-time"]:
        for part in (digits, deep, mnist):
            part()
            print()
    at_equal_time("digits 8x8", *split(all_digits(), 0.8), 0.6)
    if MNIST.exists():
        at_equal_time("binarised MNIST", *mnist_rows(), 1.5)


def all_digits() -> np.ndarray:
    return (load_digits().data >= 8).astype(np.uint8)


def at_equal_time(title: str, training: np.ndarray, test: np.ndarray, shortest: float) -> None:
    """Print the rate 0.2, our defaults and rbms in the same seconds of the processor, means of three seeds."""
    for n_hidden in EQUAL_SIZES:
        print(f"{title}, {n_hidden} hidden units: exact mean test log-likelihood in nats (seconds of the processor)")
        print(f"  {'seconds':>8s}{'rate 0.2':>18s}{'defaults':>20s}{'rbms, best rate':>20s}")
        fit_ours(training, n_hidden, 1, 0)  # compile
        paces = [(settings, *pace(training, n_hidden, settings)) for settings in ({}, DEFAULTS)]
        for limit in shortest * np.array(EQUAL_TIMES):
            cells = []
            for settings, first, more in paces:
                epochs = 1 + max(0, round((limit - first) / more))
                fits = [fit_ours(training, n_hidden, epochs, seed, **settings) for seed in SEEDS]
                cells.append(f"{mean_score(fits, test):.2f} ({seconds(fits):.1f})")
            peer = fit_rbms(training, n_hidden, limit, test) if PEERS.exists() else "not installed"
            print(f"  {limit:8.1f}{cells[0]:>18s}{cells[1]:>20s}{peer:>20s}", flush=True)


def pace(states: np.ndarray, n_hidden: int, settings: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds of a first epoch, and of one more."""
    one, four = (min(fit_ours(states, n_hidden, n, 0, **settings)[1] for _ in range(3)) for n in (1, 4))
    return one, (four - one) / 3


def fit_rbms(training: np.ndarray, n_hidden: int, seconds: float, test: np.ndarray) -> str:
    """Return rbms' mean score at the best of several rates, by held-out training rows, and that rate."""
    fitted, held_out = split(training, 0.8)
    tried = _rbms(fitted, n_hidden, seconds, [f"{rate}:0" for rate in PEER_RATES])
    rate = max(tried, key=lambda run: score(tried[run], held_out)).partition(":")[0]
    found = _rbms(training, n_hidden, seconds, [f"{rate}:{seed}" for seed in SEEDS])
    return f"{np.mean([score(model, test) for model in found.values()]):.2f} (rate {rate})"


def _rbms(states: np.ndarray, n_hidden: int, seconds: float, runs: list[str]) -> dict[str, Model[StackFamily]]:
    """Return rbms' machines by their rates and seeds."""
    layers = BinaryUnits(states.shape[1]), BinaryUnits(n_hidden)
    with tempfile.TemporaryDirectory() as folder:
        rows, out = Path(folder) / "rows.npy", Path(folder) / "out.npz"
        np.save(rows, states)
        sizes = n_hidden, batch_size(len(states))
        script = [PEERS, Path(__file__).with_name("peer_digits.py"), rows, out, *sizes, seconds, *runs]
        subprocess.run(list(map(str, script)), check=True)
        with np.load(out) as found:
            parts = {
                run: [found[f"{run} {name}"].astype(float) for name in ("vbias", "hbias", "weight_matrix")]
                for run in runs
            }
    return {run: StackFamily(layers).build(parts[run][:2], parts[run][2:]) for run in runs}


def deep() -> None:
    """Print a restricted machine beside a deep one whose first hidden layer is as large, at equal epochs and time."""
    training, test = split(all_digits(), 0.8)
    print("digits 8x8: exact mean test log-likelihood in nats, mean of 3 seeds (seconds of the processor)")
    print(f"  {'epochs':>8s}{'16 hidden':>18s}{'16 and 8':>18s}{'16 in its time':>18s}")
    for epochs in DEEP_EPOCHS:
        first, both = ([fit_deep(training, n, epochs, seed) for seed in SEEDS] for n in ((16,), (16, 8)))
        longer = round(epochs * seconds(both) / seconds(first))
        again = [fit_deep(training, (16,), longer, seed) for seed in SEEDS]
        cells = [
            f"{np.mean([fit.log_likelihood(test, exact=True).lower for fit, _ in fits]):.2f} ({seconds(fits):.1f})"
            for fits in (first, both, again)
        ]
        print(f"  {epochs:8d}" + "".join(f"{cell:>18s}" for cell in cells), flush=True)


def fit_deep(states: np.ndarray, sizes: tuple[int, ...], epochs: int, seed: int) -> tuple[Any, float]:
    """Return a machine of layers after some epochs, layer by layer and then together where there are several."""
    learner = Minibatch(max_iter=epochs, learning_rate=0.2, batch_size=batch_size(len(states)))
    kind: Any = gb.RestrictedBoltzmannMachine(sizes[0], learner=learner)
    if len(sizes) > 1:
        kind = gb.DeepBoltzmannMachine(sizes, learner=gb.learning.Stacking(alone=learner, together=learner))
    started = time.process_time()
    machine = kind.set_params(random_state=seed).fit(states)
    return machine, time.process_time() - started


def digits() -> None:
    """Print both libraries at equal epochs, and ours cut short at scikit-learn's time."""
    training, test = split(all_digits(), 0.8)
    fitted, held_out = split(training, 0.8)
    fit_ours(fitted, 20, 1, 0)  # compile
    print("digits 8x8, 20 hidden units: exact mean test log-likelihood in nats, mean of 3 seeds (seconds of a fit)")
    print(f"  {'epochs':>8s}{'ours':>18s}{'scikit-learn, default':>26s}{'best rate':>26s}{'ours in its time':>26s}")
    for epochs in EPOCHS:
        rate = max(SKLEARN_RATES, key=lambda r: score(fit_sklearn(fitted, 20, epochs, 0, r)[0], held_out))
        ours = [fit_ours(training, 20, epochs, seed) for seed in SEEDS]
        plain = [fit_sklearn(training, 20, epochs, seed, 0.1) for seed in SEEDS]
        best = [fit_sklearn(training, 20, epochs, seed, rate) for seed in SEEDS]
        share = min(1.0, 0.8 * seconds(best) / seconds(ours))  # well within its time: timings are noisy
        cut = [fit_ours(training, 20, max(1, int(share * epochs)), seed) for seed in SEEDS]
        cells = [f"{mean_score(fits, test):.2f} ({seconds(fits):.2f})" for fits in (ours, plain, best, cut)]
        cells[2] = f"{rate}: {cells[2]}"
        print(f"  {epochs:8d}{cells[0]:>18s}{cells[1]:>26s}{cells[2]:>26s}{cells[3]:>26s}")


def mnist() -> None:
    """Print the centred and the plain gradient with the same settings."""
    if not MNIST.exists():
        print(f"MNIST: skipped, there is no {MNIST.name} in the shared data (GIBBSIAN_SHARED_DATA)")
        return
    training, test = mnist_rows()
    print(f"binarised MNIST, 16 hidden units, {MNIST_EPOCHS} epochs: exact mean test log-likelihood in nats")
    for centred, published in ((True, -142.6), (False, -149.1)):
        model, elapsed = fit_ours(training, 16, MNIST_EPOCHS, 0, centred=centred)
        name = "centred" if centred else "plain"
        print(f"  {name:10s}{score(model, test):10.2f}   published {published:8.1f}   ({elapsed:.0f} s)")
    print()
    large_mnist(training, test)


def mnist_rows() -> tuple[np.ndarray, np.ndarray]:
    packed = np.load(MNIST)
    return np.unpackbits(packed["train"], axis=1), np.unpackbits(packed["test"], axis=1)


def large_mnist(training: np.ndarray, test: np.ndarray) -> None:
    """Print the likelihood of 500 hidden units between annealing to the model and back."""
    print(f"binarised MNIST, 500 hidden units, {LARGE_EPOCHS} epochs in float32, {LARGE_BETAS:,} temperatures:")
    model, elapsed = fit_ours(training, 500, LARGE_EPOCHS, 0, dtype="float32")
    started = time.perf_counter()
    double = model.replace(model.theta.astype(np.float64))
    path = layer_path(double, Dataset.of_states(training.astype(np.int8), "binary"))
    interval = log_partition_interval(path, annealing=Annealing(betas=LARGE_BETAS), rng=1, warn=False)
    found = LogLikelihood(double.family.log_evidence(double.theta, test), np.full(len(test), 1.0 / len(test)), interval)
    print(f"  optimistic (forward)  {found.optimistic:8.2f}   published  -84.9")
    print(f"  pessimistic (reverse) {found.pessimistic:8.2f}   published  -96.6 (200 epochs)")
    print(f"  {found.describe()}")
    print(f"  ({elapsed:.0f} s of learning, {time.perf_counter() - started:.0f} s of annealing)")


def split(rows: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(0).permutation(len(rows))
    cut = round(share * len(rows))
    return rows[order[:cut]], rows[order[cut:]]


def fit_ours(
    states: np.ndarray, n_hidden: int, epochs: int, seed: int, **settings: Any
) -> tuple[Model[StackFamily], float]:
    rng, started = np.random.default_rng(seed), time.process_time()
    rows = Dataset.of_states(states.astype(np.int8), "binary")
    settings = {"learning_rate": 0.2, "batch_size": batch_size(len(states)), **settings}
    learner = Minibatch(max_iter=epochs, **settings)
    start = learner.start(StackFamily((BinaryUnits(states.shape[1]), BinaryUnits(n_hidden))).build(), rows, rng)
    model = run(learner, start, rows, rng, max_iter=epochs).model
    return model, time.process_time() - started


def batch_size(n_rows: int) -> int:
    """Return minibatches of which an epoch has a hundred, of 10 to 100 rows."""
    return min(max(n_rows // 100, 10), 100)


def fit_sklearn(
    states: np.ndarray, n_hidden: int, epochs: int, seed: int, rate: float
) -> tuple[Model[StackFamily], float]:
    started = time.process_time()
    rbm = BernoulliRBM(n_hidden, learning_rate=rate, n_iter=epochs, random_state=seed).fit(states.astype(np.float64))
    elapsed = time.process_time() - started
    layers = BinaryUnits(states.shape[1]), BinaryUnits(n_hidden)
    parts = rbm.intercept_visible_, rbm.intercept_hidden_, np.ascontiguousarray(rbm.components_.T)
    return StackFamily(layers).build(parts[:2], parts[2:]), elapsed


def score(model: Model[StackFamily], states: np.ndarray) -> float:
    blocks = np.array_split(states, max(1, len(states) // 1000))
    total = sum(float(model.family.log_evidence(model.theta, block).sum()) for block in blocks)
    return total / len(states) - exact(model).log_partition


def mean_score(fits: list[tuple[Model[StackFamily], float]], states: np.ndarray) -> float:
    return float(np.mean([score(model, states) for model, _ in fits]))


def seconds(fits: list[tuple[Model[StackFamily], float]]) -> float:
    return float(np.mean([elapsed for _, elapsed in fits]))


if __name__ == "__main__":
    main()
