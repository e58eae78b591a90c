"""Runs the trials of experiments on all cores, and keeps each as soon as it is done.

A trial's randomness follows from the experiment's name, the seed and the trial's number, and it has one thread, so
results depend neither on the number of workers nor on the order in which trials end, and a run that was interrupted
goes on to the same bits.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbsian.cluster.connection import guarded, n_threads_of
from gibbsian.errors import ArgumentError, GibbsianError
from gibbsian_reproduction.experiment import EXPERIMENTS, Experiment, Results
from gibbsian_reproduction.trial_files import TrialFile
from gibbsian_reproduction.workers import Found, run_trial, start_worker

AHEAD = 4  # trials that wait for each worker, so that none is idle while results are written down

Progress = Callable[[str, int, int], None]
"""Called after each trial: the experiment, how many of its trials are done, and how many there are."""


class WorkerLostError(GibbsianError, RuntimeError):
    """A process that runs trials was ended from outside."""


@dataclass
class Plan:
    """The trials of one experiment: those on disk, and those still to make."""

    name: str
    experiment: Experiment
    n_trials: int
    seed: int
    file: TrialFile
    progress: Progress | None = None

    def tell(self) -> None:
        """Say how many of its trials are done to whoever wants to know."""
        if self.progress is not None:
            self.progress(self.name, self.n_trials - len(self.open), self.n_trials)

    @property
    def trials_of(self) -> str:
        """The experiment whose trials these are."""
        return self.experiment.shares or self.name

    @property
    def open(self) -> list[int]:
        """The trials still to make; one that shares them may have made some."""
        return [index for index in range(self.n_trials) if index not in self.file.done]

    def results(self) -> Results:
        """Stack the trials that were asked for, in their order."""
        trials = [self.file.done[index] for index in range(self.n_trials)]
        stacked = Results.of_trials([trial.values for trial in trials], self.seed)
        given = Counter(sentence for trial in trials for sentence in trial.warnings)
        warnings = tuple(f"{sentence} ({count} of {self.n_trials} trials)" for sentence, count in given.most_common())
        return Results(stacked.values, self.seed, sum(trial.seconds for trial in trials), warnings)


def run(
    name: str,
    trials: int = 200,
    seed: int = 0,
    out: str | os.PathLike[str] = "results",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run one experiment, or what is missing of it.

    Parameters
    ----------
    name : str
        The experiment, for example ``"y18-fig2a"``.
    trials : int
        How many trials; heavy experiments make fewer (their ``trials_of``). More than last time: only those are made.
    seed : int
        What all randomness follows from.
    out : path-like
        A directory; finished trials are kept in its folder ``.trials``.
    workers : int, optional
        Processes, as many as this one has cores by default; 1 runs in this process. The results do not depend on it.
    progress : callable, optional
        ``progress(name, n_done, n_trials)`` after each trial.

    Returns
    -------
    Results
    """
    ((_, results),) = run_many([name], trials, seed, out, workers, progress)
    return results


def run_many(
    names: Sequence[str],
    trials: int = 200,
    seed: int = 0,
    out: str | os.PathLike[str] = "results",
    workers: int | None = None,
    progress: Progress | None = None,
    client: Any = None,
) -> Iterator[tuple[str, Results]]:
    """Run several experiments with the same workers, and give the results of each as soon as all its trials are done.

    The workers are processes of this machine, or those of a cluster whose `client` is given. Experiments that measure
    times come last, in this process, one trial at a time, when the workers have stopped.
    """
    if trials < 1:
        raise ArgumentError("must be at least 1", argument="trials", value=trials)
    workers = _cores() if workers is None else workers
    if workers < 1:
        raise ArgumentError("must be at least 1", argument="workers", value=workers)
    plans = _plans(names, trials, seed, Path(out), progress)
    for plan in plans:
        plan.tell()
    alone = [plan for plan in plans if plan.experiment.timed]
    shared = [plan for plan in plans if not plan.experiment.timed]
    n_open = sum(len(plan.open) for plan in shared)
    if client is not None:
        yield from _run_in_pool(shared, n_threads_of(client), _pool_of(client))
    elif workers == 1 or n_open <= 1:
        alone = shared + alone
    else:
        yield from _run_in_pool(shared, min(workers, n_open), _pool(min(workers, n_open)))
    yield from _run_here(alone)


def _plans(names: Sequence[str], trials: int, seed: int, out: Path, progress: Progress | None = None) -> list[Plan]:
    """Plan each experiment; those with the same trials have one file."""
    files: dict[str, TrialFile] = {}
    plans = []
    for name in names:
        experiment = EXPERIMENTS.create(name)
        source = experiment.shares or name
        if source not in files:
            files[source] = TrialFile(out, source, seed)
        plans.append(Plan(name, experiment, max(experiment.trials_of(trials), 1), seed, files[source], progress))
    return plans


def count_trials(names: Sequence[str], trials: int, seed: int, out: str | os.PathLike[str]) -> tuple[int, int]:
    """Return how many of the trials that a run would make are on disk, and how many there are."""
    plans = _plans(names, trials, seed, Path(out))
    wanted = {(plan.trials_of, index) for plan in plans for index in range(plan.n_trials)}
    return len(wanted) - len(_to_make(plans)), len(wanted)


def _run_here(plans: list[Plan]) -> Iterator[tuple[str, Results]]:
    for plan in plans:
        for index in plan.open:
            plan.file.append(index, run_trial(plan.trials_of, plan.seed, index))
            plan.tell()
        yield plan.name, plan.results()


def _run_in_pool(
    plans: list[Plan], workers: int, processes: AbstractContextManager[Executor]
) -> Iterator[tuple[str, Results]]:
    if not plans:
        return
    unreported = deque(plans)
    to_make = _to_make(plans)
    with processes as pool:
        in_work: dict[Future[Found], tuple[Plan, int]] = {}
        while unreported:
            while to_make and len(in_work) < AHEAD * workers:
                plan, index = to_make.popleft()
                in_work[pool.submit(run_trial, plan.trials_of, plan.seed, index)] = plan, index
            while unreported and not unreported[0].open:
                plan = unreported.popleft()
                yield plan.name, plan.results()
            if in_work:
                for future in wait(in_work, return_when=FIRST_COMPLETED).done:
                    plan, index = in_work.pop(future)
                    plan.file.append(index, future.result())
                    plan.tell()


def _to_make(plans: list[Plan]) -> deque[tuple[Plan, int]]:
    """List the trials that are missing; of experiments with the same trials the first makes them."""
    missing: dict[tuple[str, int], tuple[Plan, int]] = {}
    for plan in plans:
        for index in plan.open:
            missing.setdefault((plan.trials_of, index), (plan, index))
    return deque(missing.values())


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes anew (a fork would copy threads of this one in the middle of their work)."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)  # workers end when the writer is closed, by us or by our death
    pool = ProcessPoolExecutor(workers, context, initializer=start_worker, initargs=(reader,))
    try:
        yield pool
    except BrokenExecutor:  # the system ends processes that take its memory
        writer.close()
        pool.shutdown(cancel_futures=True)
        raise WorkerLostError(
            "a worker was ended from outside, finished trials are kept",
            "the same command goes on from there, fewer `workers` need less memory",
        ) from None
    except BaseException:  # also Ctrl-C, and a caller that wants no more: trials that nobody waits for are dropped
        writer.close()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
    writer.close()


@contextmanager
def _pool_of(client: Any) -> Iterator[Executor]:
    """Give the workers of a cluster."""
    with guarded(client), client.get_executor(pure=False) as pool:
        yield pool


def _cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
