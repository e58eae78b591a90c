"""First use in a new process: seconds with kernels in the cache, and with an empty cache.

Run with ``python benchmarks/bench_start.py``. Every number is of a process of its own, from its start to its end, the
better of a few; processor seconds are told beside them, because other work on the machine does not count in them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

BITS = "x = np.random.default_rng(0).integers(0, 2, (200, 6)); "
NUMBERS = "x = np.random.default_rng(0).normal(size=(200, 3)); "
WORKS = {
    "import numpy, numba": "import numpy, numba",
    "import gibbsian": "import gibbsian",
    "gibbsian fit --help": "from gibbsian.cli.main import main; main(['fit', '--help'])",
    "BoltzmannMachine": BITS + "gb.BoltzmannMachine().fit(x)",
    "  fit and sample": BITS + "gb.BoltzmannMachine().fit(x).sample(10)",
    "  mple": BITS + "gb.BoltzmannMachine(learner='mple').fit(x)",
    "  1-smci": BITS + "gb.BoltzmannMachine(learner='1-smci').fit(x)",
    "  s2-smci": BITS + "gb.BoltzmannMachine(learner='s2-smci').fit(x)",
    "HiddenBoltzmannMachine": BITS + "gb.HiddenBoltzmannMachine().fit(x)",
    "HigherOrderBoltzmannMachine": BITS + "gb.HigherOrderBoltzmannMachine().fit(x)",
    "PottsMachine": "gb.PottsMachine().fit(np.random.default_rng(0).integers(0, 3, (200, 6)))",
    "MarkovRandomFieldMachine": BITS + "gb.MarkovRandomFieldMachine().fit(x)",
    "RestrictedBoltzmannMachine": BITS + "gb.RestrictedBoltzmannMachine(max_iter=3).fit(x)",
    "FullSpan": BITS + "gb.FullSpan().fit(x)",
    "MachineMixture": BITS + "gb.MachineMixture().fit(x)",
    "GibbsClassifier": BITS + "gb.GibbsClassifier().fit(x[:, 1:], x[:, 0])",
    "GaussianMachine": NUMBERS + "gb.GaussianMachine().fit(x)",
    "GaussianMixture": NUMBERS + "gb.GaussianMixture().fit(x)",
    "HardKMeans": NUMBERS + "gb.HardKMeans().fit(x)",
    "SoftKMeans": NUMBERS + "gb.SoftKMeans().fit(x)",
    "VonMisesFisherMixture": NUMBERS + "gb.VonMisesFisherMixture().fit(x)",
}


class Spent(NamedTuple):
    """What a process took."""

    seconds: float
    processor: float

    def __str__(self) -> str:
        return f"{self.seconds:8.2f} s ({self.processor:5.2f})"


def once(work: str, **variables: str) -> Spent:
    code = work if work.startswith(("import", "from")) else f"import numpy as np, gibbsian as gb; {work}"
    env = {**os.environ, **variables, "PYTHONWARNINGS": "ignore"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.DEVNULL, check=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def warm(work: str, repeats: int = 4) -> Spent:
    return Spent(*map(min, zip(*[once(work) for _ in range(repeats + 1)][1:], strict=True)))


def cold(work: str, repeats: int = 2) -> Spent:
    spent = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            spent.append(once(work, NUMBA_CACHE_DIR=folder))
    return Spent(*map(min, zip(*spent, strict=True)))


def main() -> None:
    print(f"{'first use in a new process':30s}{'kernels kept (processor)':>26s}{'none kept (processor)':>26s}")
    for name, work in WORKS.items():
        print(f"{name:30s}{warm(work)!s:>26s}{cold(work)!s:>26s}")


if __name__ == "__main__":
    main()
