"""Processes that are killed, full disks, streams that close: nothing lost, nothing half-written, one sentence.

``python -m tools crash --seconds 300 --seed 0`` kills fits of every kind at random moments and resumes them to the same
bits, kills `save`, commands and `gibbsian-reproduce`, and runs commands where nothing can be written. The exit code
says whether anything was lost.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gibbsian as gb
from estimator_samples import small, table
from gibbsian.errors import GibbsianError
from gibbsian.estimators import ESTIMATORS
from gibbsian.storage import Checkpoint

ROWS = "a,b,c\n" + "".join(f"{i % 2},{i // 2 % 2},{i // 3 % 2}\n" for i in range(24))


# -- fits -------------------------------------------------------------------------------------------------------------
def in_child(work):
    """Do work in a fork of this process, which is warm; return the child."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
        code = 0
    finally:
        os._exit(code)


def ended(child, after=None):
    """Wait for a child, killed after some seconds where they are given; return whether it had ended by itself, well."""
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def kinds(folder):
    """Return what is fitted: every registered estimator, and rows on disk."""
    found = {name: (name, {}, table(name)) for name in ESTIMATORS}
    np.save(folder / "rows.npy", table("pairwise", 4000).astype(np.int8))
    stream = gb.data.DataStream.open(folder / "rows.npy")
    for learner in ("online", "minibatch"):
        found[f"stream {learner}"] = "pairwise" if learner == "online" else "rbm", {"learner": learner}, stream
    return found


def killed_fits(folder, rng, seconds):
    """Kill fits again and again, resume them, and compare with one that nobody has touched."""
    end, n_kills, resumed = time.monotonic() + seconds, 0, []
    cases = kinds(folder)
    order = list(cases)
    rng.shuffle(order)
    for name in itertools.cycle(order):
        estimator, settings, rows = cases[name]
        path, answer = folder / "fit.checkpoint", folder / "theta.npy"

        def fit(resume, estimator=estimator, settings=settings, rows=rows, path=path, answer=answer):
            kept = {} if resume is None else {"checkpoint": Checkpoint(path, every=1, resume=resume)}
            np.save(answer, small(estimator, **settings, **kept).fit(rows).model_.theta)

        began = time.monotonic()
        if not ended(in_child(lambda fit=fit: fit(None))):
            yield f"{name}: the fit failed"
            return
        wanted, took = np.load(answer), time.monotonic() - began
        path.unlink(missing_ok=True)
        for _ in range(3):
            n_kills += not ended(in_child(lambda fit=fit: fit(True)), rng.uniform(0.05, 1.2) * took)
        if not ended(in_child(lambda fit=fit: fit(True))):
            yield f"{name}: cannot be resumed"
        elif not np.array_equal(np.load(answer), wanted):
            yield f"{name}: resumed to other bits"
        resumed.append(name)
        if time.monotonic() > end:
            break
    print(f"  {len(resumed)} fits of {len(set(resumed))} kinds, {n_kills} kills")


def shared_checkpoint(folder, rng, seconds):
    """Let two processes keep their progress in one file."""
    path = folder / "shared.checkpoint"
    rows = table("rbm")

    def fit():
        small("rbm", checkpoint=Checkpoint(path, every=1)).fit(rows)

    children = [in_child(fit) for _ in range(2)]
    if not all(ended(child) for child in children):
        yield "two processes on one checkpoint: one failed"
    if not ended(in_child(lambda: small("rbm", checkpoint=Checkpoint(path, resume=True)).fit(rows))):
        yield "two processes on one checkpoint: it is not whole"


def killed_saves(folder, rng, seconds):
    """Kill a process that writes one of two models again and again: the file is one of them."""
    path = folder / "m.gibbs"
    machines = [gb.BoltzmannMachine(l2=l2).fit(table("pairwise")) for l2 in (0.1, 1.0)]
    machines[0].save(path)
    wanted = [machine.model_.theta.tobytes() for machine in machines]

    def save():
        while True:
            for machine in machines:
                machine.save(path)

    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end or not n:
        ended(in_child(save), rng.uniform(0.001, 0.05))
        n += 1
        if gb.load(path).model_.theta.tobytes() not in wanted:
            yield f"save: neither model stands there after {n} kills"
            return
    print(f"  {n} kills of save")


def full_disk(folder, rng, seconds):
    """Write where there is room for 100 bytes only: one sentence, what stood there stays, nothing is left behind."""
    path = folder / "full.gibbs"
    machine = gb.BoltzmannMachine(l2=0.1).fit(table("pairwise"))
    machine.save(path)
    whole, before = path.read_bytes(), sorted(folder.iterdir())

    def save():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        for call in (
            lambda: machine.save(path),
            lambda: small("rbm", checkpoint=Checkpoint(path, 1)).fit(table("rbm")),
        ):
            with pytest.raises(GibbsianError, match="nothing was changed"):
                call()

    if not ended(in_child(save)) or path.read_bytes() != whole or sorted(folder.iterdir()) != before:
        yield "save and checkpoints on a full disk"


# -- commands ---------------------------------------------------------------------------------------------------------
def command(*words, module="gibbsian", env=(), without=(), **how):
    """Start a command in a process of its own."""
    chosen = {name: value for name, value in (dict(os.environ) | dict(env)).items() if name not in without}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    return subprocess.Popen([sys.executable, "-m", module, *map(str, words)], env=chosen, text=True, **streams)


def wrong_words(what, code, errors, good=(1, 130)):
    """Say what is wrong with how a command ended: it must be one sentence."""
    lines = errors.splitlines()
    if code not in good or len(lines) != 1 or "bug" in errors or "Traceback" in errors:
        yield f"{what}: exit {code}: {errors[-300:]!r}"


def stopped_commands(folder, rng, seconds):
    """Stop commands that write a file, at random moments: the old file or the new one, and nothing beside it."""
    place = folder / "commands"
    place.mkdir()
    (place / "t.csv").write_text(ROWS)
    model, out = place / "m.gibbs", place / "o.csv"
    assert command("fit", place / "t.csv", "--l2", "0.1", "--out", model).wait() == 0
    assert command("sample", model, "-n", 20_000, "--seed", 1, "--out", out).wait() == 0
    wanted, before = out.read_bytes(), sorted(place.iterdir())
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end or n < 3:
        sent = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[n % 3]
        out.write_text("old")
        process = command("sample", model, "-n", 20_000, "--seed", 1, "--out", out)
        time.sleep(rng.uniform(0.3, 1.5))
        process.send_signal(sent)
        errors = process.communicate()[1]
        n += 1
        if out.read_bytes() not in (wanted, b"old"):
            yield f"{sent.name} in sample --out left {out.stat().st_size} bytes"
        if sent is not signal.SIGKILL:
            if process.returncode not in (0, -sent):  # before Python listens it ends as the system has it
                yield from wrong_words(f"{sent.name} in sample", process.returncode, errors)
            if sorted(place.iterdir()) != before:
                yield f"{sent.name} left {sorted(set(place.iterdir()) - set(before))}"
        for left in set(place.iterdir()) - set(before):
            left.unlink()
    print(f"  {n} commands stopped")


def poor_surroundings(folder, rng, seconds):
    """Run commands without a home, caches, room or a reader."""
    place = folder / "poor"
    place.mkdir()
    (place / "t.csv").write_text(ROWS)
    model = place / "m.gibbs"
    nowhere = dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR", "HOME"), "/proc/nowhere")
    fit = ("fit", place / "t.csv", "--l2", "0.1", "--out")
    for what, process in {
        "no HOME": command(*fit, model, without=("HOME",)),
        "caches that cannot be written": command(*fit, model, env=nowhere.items()),
    }.items():
        errors = process.communicate()[1]
        if process.returncode or "Traceback" in errors or "bug" in errors:
            yield f"{what}: exit {process.returncode}: {errors[-300:]!r}"
    for what, words in {
        "a folder that takes no files": (*fit, "/proc/m.gibbs"),
        "a full device": ("sample", model, "-n", 10, "--out", "/dev/full"),
    }.items():
        process = command(*words)
        errors = process.communicate()[1]
        yield from wrong_words(what, process.returncode, errors)
    process = command("sample", model, "-n", 100_000)
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    if process.wait() not in (0, 1) or errors:
        yield f"a reader that leaves: exit {process.returncode}: {errors[-300:]!r}"
    process = command("show", model, stdout=None, preexec_fn=lambda: os.close(1))
    errors = process.communicate()[1]
    if process.returncode not in (0, 1) or "Traceback" in errors or "bug" in errors:
        yield f"closed stdout: exit {process.returncode}: {errors[-300:]!r}"


def stopped_reproduction(folder, rng, seconds):
    """Stop `gibbsian-reproduce`, or kill one of its workers, and go on: the same files but for the times."""
    reproduce = partial(command, module="gibbsian_reproduction")
    words = ("yu20-theorem1", "--trials", 12, "--workers", 2, "--quiet", "--out")
    whole = folder / "whole"
    assert reproduce(*words, whole).wait() == 0
    for how in ("SIGINT", "SIGTERM", "worker"):
        out = folder / how
        process = reproduce(*words, out)
        trials = out / ".trials"
        while process.poll() is None and not (
            trials.exists() and any(p.read_bytes().count(b"\n") > 2 for p in trials.iterdir())
        ):
            time.sleep(0.02)
        if how == "worker":
            listed = subprocess.run(
                ["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True
            )
            workers = [int(line.split()[0]) for line in listed.stdout.splitlines() if "spawn_main" in line]
            for worker in workers[:1]:
                os.kill(worker, signal.SIGKILL)
        else:
            process.send_signal(getattr(signal, how))
        errors = process.communicate()[1]
        if process.returncode:
            yield from wrong_words(f"reproduce, {how}", process.returncode, errors)
        if reproduce(*words, out).wait() != 0:
            yield f"reproduce, {how}: does not go on"
        for path in sorted(whole.rglob("*")):
            if path.is_file() and contents(path) != contents(out / path.relative_to(whole)):
                yield f"reproduce, {how}: {path.relative_to(whole)} differs"
        if extra := {p.relative_to(out) for p in out.rglob("*")} - {p.relative_to(whole) for p in whole.rglob("*")}:
            yield f"reproduce, {how}: left {extra}"


def contents(path):
    """Return what a file of results holds, without times; trials in their order."""
    if path.suffix == ".jsonl":
        lines = [_timeless(json.loads(line)) for line in path.read_text().splitlines()]
        return sorted(lines, key=lambda line: line.get("trial", -1))
    return _timeless(json.loads(path.read_text())) if path.suffix == ".json" else path.read_bytes()


def _timeless(value):
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if "seconds" not in key and "time" not in key}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


PARTS = {
    "fits": (killed_fits, 0.5),
    "shared": (shared_checkpoint, 0.0),
    "saves": (killed_saves, 0.1),
    "full": (full_disk, 0.0),
    "commands": (stopped_commands, 0.3),
    "poor": (poor_surroundings, 0.0),
    "reproduce": (stopped_reproduction, 0.0),
}


def crashes(parts, seconds, seed):
    """Yield the parts with what is wrong in each."""
    for part in parts:
        work, share = PARTS[part]
        with tempfile.TemporaryDirectory() as name:
            yield part, list(work(Path(name), np.random.default_rng(seed), share * seconds))


def main():
    """Crash for some time; the exit code says whether anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", action="append", choices=list(PARTS))
    arguments = parser.parse_args()
    n_wrong = 0
    for part, wrong in crashes(arguments.part or list(PARTS), arguments.seconds, arguments.seed):
        print(f"{part}: {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)
        n_wrong += len(wrong)
    sys.exit(n_wrong > 0)


if __name__ == "__main__":
    main()
