"""First use in a new process: seconds with kernels in the cache, and with an empty cache.

Run with ``python benchmarks/run.py start``. Every number is of a process of its own, from its start to its end, the
best of a few; they are seconds of the processor, because other work on the machine does not count in them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

from timing import asked

# Seconds of the processor for a first fit, kernels in the cache and none there.
MOST_WARM, MOST_COLD = 1.0, 5.0
BITS = "x = np.random.default_rng(0).integers(0, 2, (200, 6)); "
# Rows of two classes: EM takes hundreds of steps where there are none, which is not what is measured here.
CLASSES = "x = (np.random.default_rng(0).random((200, 6)) < np.repeat([[0.1], [0.9]], 100, axis=0)).astype(int); "
NUMBERS = "x = np.random.default_rng(0).normal(size=(200, 3)) + np.repeat([[0], [4]], 100, axis=0); "
WORKS = {
    "import numpy, numba": "import numpy, numba",
    "gibbsian fit --help": "import sys; sys.argv[1:] = ['fit', '--help']; from gibbsian.cli.main import run; run()",
    "BoltzmannMachine": BITS + "gb.BoltzmannMachine().fit(x)",
    "  fit and sample": BITS + "gb.BoltzmannMachine().fit(x).sample(10)",
    "  mple": BITS + "gb.BoltzmannMachine(learner='mple').fit(x)",
    "  rm": BITS + "gb.BoltzmannMachine(learner='rm').fit(x)",
    "  mpf": BITS + "gb.BoltzmannMachine(learner='mpf').fit(x)",
    "  smci": BITS + "gb.BoltzmannMachine(learner='smci').fit(x)",
    "  smci, s2": BITS + "gb.BoltzmannMachine(learner=gb.learning.SMCI(region='s2')).fit(x)",
    "  pcd": BITS + "gb.BoltzmannMachine(learner='pcd').fit(x)",
    "HiddenBoltzmannMachine": BITS + "gb.HiddenBoltzmannMachine().fit(x)",
    "HigherOrderBoltzmannMachine": BITS + "gb.HigherOrderBoltzmannMachine().fit(x)",
    "PottsMachine": "gb.PottsMachine().fit(np.random.default_rng(0).integers(0, 3, (200, 6)))",
    "MarkovRandomFieldMachine": BITS + "gb.MarkovRandomFieldMachine().fit(x)",
    "RestrictedBoltzmannMachine": BITS + "gb.RestrictedBoltzmannMachine(max_iter=3).fit(x)",
    "FullSpan": BITS + "gb.FullSpan().fit(x)",
    "  span-newton": BITS + "gb.FullSpan(learner='span-newton').fit(x)",
    "MachineMixture": CLASSES + "gb.MachineMixture().fit(x)",
    "GibbsClassifier": BITS + "gb.GibbsClassifier().fit(x[:, 1:], x[:, 0])",
    "GaussianMachine": NUMBERS + "gb.GaussianMachine().fit(x)",
    "GaussianMixture": NUMBERS + "gb.GaussianMixture().fit(x)",
    "HardKMeans": NUMBERS + "gb.HardKMeans().fit(x)",
    "SoftKMeans": NUMBERS + "gb.SoftKMeans().fit(x)",
    "VonMisesFisherMixture": NUMBERS + "gb.VonMisesFisherMixture().fit(x)",
}


def once(work: str, **variables: str) -> float:
    """Seconds of the processor for one process."""
    code = work if work.startswith(("import", "from")) else f"import numpy as np, gibbsian as gb; {work}"
    env = {**os.environ, **variables, "PYTHONWARNINGS": "ignore"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def warm(work: str, repeats: int = 3) -> float:
    """The best of some processes that find every kernel in the cache."""
    once(work)
    return min(once(work) for _ in range(repeats))


def cold(work: str) -> float:
    """One process with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        return once(work, NUMBA_CACHE_DIR=folder)


def main() -> None:
    print("First use in a new process, seconds of the processor: kernels in the cache, and none there")
    for name, work in WORKS.items():
        words = asked(f"{name.strip()}, kernels in the cache", warm(work), MOST_WARM, kind="seconds")
        words_cold = asked(f"{name.strip()}, no kernels", cold(work), MOST_COLD, kind="seconds")
        print(f"  {name:30s}{words:32s}{words_cold}", flush=True)


if __name__ == "__main__":
    main()
