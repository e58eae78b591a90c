"""One epoch of a restricted machine as a ratio to its matrix products in BLAS and its random numbers in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.neural_network import BernoulliRBM

from gibbsian.data import Dataset
from gibbsian.learning import Minibatch
from gibbsian.models import BinaryUnits, StackFamily
from gibbsian.rng import Key
from timing import interleaved

N_VISIBLE, N_HIDDEN, BATCH, N_ROWS = 784, 500, 100, 6000


def main() -> None:
    rng = np.random.default_rng(0)
    shares = rng.random(N_VISIBLE) * 0.4
    states = (rng.random((N_ROWS, N_VISIBLE)) < shares).astype(np.uint8)
    print(f"restricted machine {N_VISIBLE}x{N_HIDDEN}, one epoch of {N_ROWS // BATCH} minibatches of {BATCH}")
    print(
        "  times its bare work: five products in BLAS and the random numbers of one step of the chains, same precision"
    )
    print(f"  {'':10s}{'bare work':>12s}{'PCD-1':>8s}{'plain':>8s}{'CD-1':>8s}{'PCD-10':>8s}{'scikit-learn':>14s}")
    for dtype in ("float64", "float32"):
        settings: dict[str, dict] = {
            "PCD-1": {},
            "plain": {"centred": False},
            "CD-1": {"negative_phase": "cd"},
            "PCD-10": {"n_steps": 10},
        }
        runs: dict[str, Callable[[], object]] = {"bare": lambda dtype=dtype: bare_work(dtype)}
        runs |= {name: epoch_of(states, dtype=dtype, **given) for name, given in settings.items()}
        table = states.astype(dtype)
        runs["sklearn"] = lambda table=table: BernoulliRBM(N_HIDDEN, batch_size=BATCH, n_iter=1, random_state=0).fit(
            table
        )
        seconds = interleaved(runs, repeats=5)
        ratios = {name: time / seconds["bare"] for name, time in seconds.items()}
        ours = "".join(f"{ratios[name]:8.2f}" for name in settings)
        print(f"  {dtype:10s}{1000 * seconds['bare']:9.0f} ms{ours}{ratios['sklearn']:14.2f}")


def epoch_of(states: np.ndarray, **settings: object) -> Callable[[], object]:
    """Return a function that makes the same epoch of training again and again."""
    rng, rows = np.random.default_rng(1), Dataset.of_states(states.astype(np.int8), "binary")
    learner = Minibatch(max_iter=1000, batch_size=BATCH, learning_rate=0.05, **settings)  # type: ignore[arg-type]
    blank = StackFamily((BinaryUnits(N_VISIBLE), BinaryUnits(N_HIDDEN))).build()
    fit = learner.bind(learner.start(blank, rows, rng), rows)
    state, _ = fit.init(Key.of(rng))
    return lambda: fit.step(state)


def bare_work(dtype: str) -> None:
    """What PCD-1 cannot do without, minibatch by minibatch."""
    rng = np.random.default_rng(2)
    v = (rng.random((BATCH, N_VISIBLE)) < 0.2).astype(dtype)
    h = (rng.random((BATCH, N_HIDDEN)) < 0.5).astype(dtype)
    w = rng.standard_normal((N_VISIBLE, N_HIDDEN)).astype(dtype)
    for _ in range(N_ROWS // BATCH):
        v @ w
        h @ w.T
        v @ w
        v.T @ h
        v.T @ h
        rng.random((BATCH, N_VISIBLE), dtype=dtype)  # type: ignore[call-overload]
        rng.random((BATCH, N_HIDDEN), dtype=dtype)  # type: ignore[call-overload]


if __name__ == "__main__":
    main()
