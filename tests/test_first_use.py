"""First use from several threads of a fresh process: whoever comes second finds what it asks for whole."""

import subprocess
import sys
import threading
import wave

import gibbsian as gb
from gibbsian.startup import defer_imports

ROWS = [[0, 1, 1], [1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]
# Four threads that begin each job at once.
FIRST = f"""
import sys, threading, traceback
import gibbsian as gb

ROWS = {ROWS}
JOBS = [
    lambda: gb.BoltzmannMachine(learner="mle", l2=0.1).fit(ROWS),
    lambda: gb.load(sys.argv[1]).score(ROWS),
    lambda: gb.PottsMachine(l2=0.1).fit(ROWS).sample(3, random_state=0),
    lambda: gb.RestrictedBoltzmannMachine(2, max_iter=2, random_state=0).fit(ROWS).score(ROWS),
]
barrier, failures = threading.Barrier(4), []

def work(first):
    for job in JOBS[first:] + JOBS[:first]:
        barrier.wait()
        try:
            job()
        except Exception:
            failures.append(traceback.format_exc())

threads = [threading.Thread(target=work, args=(int(sys.argv[2]),)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*failures, sep="", end="", file=sys.stderr)
sys.exit(bool(failures))
"""


def test_threads_that_fit_and_load_at_once_in_fresh_processes(tmp_path):
    gb.BoltzmannMachine(learner="mle", l2=0.1).fit(ROWS).save(tmp_path / "machine.gibbs")
    for first in (0, 1, 2, 3, 0):
        command = [sys.executable, "-c", FIRST, str(tmp_path / "machine.gibbs"), str(first)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.stderr, done.returncode) == ("", 0)


def test_modules_are_not_deferred_where_another_thread_could_meet_a_stand_in(monkeypatch):
    monkeypatch.delitem(sys.modules, "wave")
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with defer_imports("wave"):
            import wave as again
    finally:
        done.set()
        thread.join()
    assert type(again) is type(sys)
    assert vars(again).keys() == vars(wave).keys()
