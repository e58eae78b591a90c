"""Forked, spawned and threaded fits: none hangs or aborts, and all have the same bits."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gibbsian

SOURCES = Path(gibbsian.__file__).parent
# A fit with threads, chains and products; what a child or another thread finds must be what the parent found.
WORK = """
import multiprocessing, os, sys
import numpy as np
import gibbsian as gb
from gibbsian.backends import parallel

parallel.WORTH_THREADS = 0

def work(seed):
    with parallel.limited_threads(3):
        rows = np.random.default_rng(seed).choice([-1, 1], size=(300, 6))
        machine = gb.BoltzmannMachine(learner="pcd", max_iter=3, random_state=seed).fit(rows)
        draws = gb.sampling.draw(machine.model_, 140, seed, n_chains=70, burn_in=2)
        return machine.model_.theta.tobytes() + draws.tobytes()
"""
WAYS = {
    "fork": """
pid = os.fork()
if pid == 0:
    os._exit(0 if work(1) == expected[1] else 3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
from concurrent.futures import ProcessPoolExecutor
from joblib import Parallel, delayed

fork = multiprocessing.get_context("fork")
with fork.Pool(2) as pool:
    assert pool.map(work, [1, 2]) == expected[1:]
with ProcessPoolExecutor(1, fork) as pool:
    assert list(pool.map(work, [1])) == expected[1:2]
assert Parallel(2, backend="multiprocessing")(delayed(work)(seed) for seed in (1, 2)) == expected[1:]
""",
    "spawn": """
with multiprocessing.get_context("spawn").Pool(1) as pool:
    assert pool.map(work, [1]) == expected[1:2]
""",
    "forkserver": """
with multiprocessing.get_context("forkserver").Pool(1) as pool:
    assert pool.map(work, [1]) == expected[1:2]
""",
    "loky": """
from joblib import Parallel, delayed

assert Parallel(2, backend="loky")(delayed(work)(seed) for seed in (1, 2)) == expected[1:]
""",
    "threads, an event loop, a shared machine, a daemon": """
import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info

async def in_a_loop():
    return await asyncio.gather(*(asyncio.to_thread(work, seed) for seed in (1, 2)))

before = [library["num_threads"] for library in threadpool_info()]
with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(work, [1, 2, 1, 2])) == 2 * expected[1:]
assert Parallel(2, backend="threading")(delayed(work)(seed) for seed in (1, 2)) == expected[1:]
assert asyncio.run(in_a_loop()) == expected[1:]
rows = np.random.default_rng(3).choice([-1, 1], size=(300, 6))
machine = gb.BoltzmannMachine(l2=0.1, random_state=0).fit(rows)
asked = machine.score_samples, machine.impute, machine.unusual, lambda rows: machine.sample(20, random_state=1)
alone = [str(ask(rows)) for ask in asked]
with ThreadPoolExecutor(4) as pool:
    assert list(pool.map(lambda ask: str(ask(rows)), 5 * asked)) == 5 * alone
assert [library["num_threads"] for library in threadpool_info()] == before
Thread(target=lambda: [work(seed) for seed in range(10**6)], daemon=True).start()
assert work(1) == expected[1]
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_fits_in_other_processes_and_threads(way, tmp_path):
    if way == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    script = tmp_path / "work.py"
    body = "expected = [work(0), work(1), work(2)]\n" + WAYS[way].strip()
    script.write_text(WORK + "if __name__ == '__main__':\n" + "\n".join(f"    {line}" for line in body.splitlines()))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_no_kernel_uses_threads_of_numba():
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                assert not any(word.arg == "parallel" for word in node.keywords), f"{path}:{node.lineno}"
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            assert name not in ("prange", "get_num_threads", "set_num_threads"), f"{path}:{node.lineno}"


def test_blas_has_its_threads_back_when_the_last_of_two_leaves():
    from threadpoolctl import threadpool_info

    from gibbsian.backends.parallel import one_blas_thread

    before = [library["num_threads"] for library in threadpool_info()]
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {1}
    second.__exit__(None, None, None)
    assert [library["num_threads"] for library in threadpool_info()] == before
