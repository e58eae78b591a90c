"""One trial, wherever it runs: on one thread, with a generator of its own, and its warnings kept beside its numbers.

Nothing heavy is imported here before `start_worker` has restricted the numerical libraries to one thread: they read
that once, when they are loaded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import numpy as np

    from gibbsian_reproduction.experiment import Experiment

_THREAD_SETTINGS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Found:
    """What one trial found, the seconds of one core it took, and what it warned of."""

    values: dict[str, np.ndarray]
    seconds: float
    warnings: tuple[str, ...] = ()


def start_worker(parent: Connection) -> None:
    """Prepare a fresh process for trials: one thread, Ctrl-C left to the parent, and no life after the parent's.

    Parameters
    ----------
    parent : Connection
        The reading end of a pipe whose writing end the parent has, and nobody else.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    for setting in _THREAD_SETTINGS:
        os.environ[setting] = "1"


def run_trial(name: str, seed: int, index: int) -> Found:
    """Run trial number `index` of an experiment; the same bits in any process, before or after any other trial."""
    import numpy as np

    trial = _experiment(name).trial
    rng = trial_generator(name, seed, index)
    started = time.process_time()
    with on_one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = trial(rng)
        except Exception as error:
            error.add_note(f"in trial {index} of {name} with seed {seed}")
            raise
    seconds = time.process_time() - started
    values = {key: np.asarray(value, dtype=np.float64) for key, value in found.items()}
    sentences = (" ".join(str(warning.message).split()) for warning in caught)
    return Found(values, seconds, tuple(dict.fromkeys(sentences)))


def trial_generator(name: str, seed: int, index: int) -> np.random.Generator:
    """Return the generator of a trial: it follows from the experiment's name, the seed and the trial's number alone."""
    import numpy as np

    return np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(name.encode()), index]))


@contextlib.contextmanager
def on_one_thread() -> Iterator[None]:
    """Keep the library and BLAS to one thread, as in a worker, and restore them after."""
    from threadpoolctl import threadpool_limits

    from gibbsian.backends.threads import limited_threads

    with limited_threads(1), threadpool_limits(limits=1):
        yield


@cache
def _experiment(name: str) -> Experiment:
    from gibbsian_reproduction.experiment import EXPERIMENTS

    return EXPERIMENTS.create(name)


def _end_with(parent: Connection) -> None:
    """End when the parent closes its end, also by being killed: a worker that waits for work would wait for ever."""
    with contextlib.suppress(EOFError, OSError):
        parent.recv_bytes()
    os._exit(1)
