"""One column of docs/baseline.md: what the library costs before it computes anything, and a standard fit.

Run with ``python benchmarks/baseline.py`` on a quiet machine. Every number is of processes of its own, the best of
five; seconds are of the processor, because other work on the machine does not count in them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_start import BITS, cold, once

ROOT = Path(__file__).parents[1]
FIRST_FIT = BITS + "gb.BoltzmannMachine(l2=0.01, learner='mle').fit(x)"
STANDARD_FIT = (
    "import resource; x = np.random.default_rng(0).integers(0, 2, (20_000, 100)); "
    "gb.BoltzmannMachine(l2=0.01, learner='mple').fit(x); "
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
)


def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python and return what it has printed."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)


def import_milliseconds(module: str) -> float:
    """Return what ``-X importtime`` says of a module with all that it loads."""
    lines = printed("-X", "importtime", "-c", f"import {module}").stderr
    (spent,) = re.findall(rf"\|\s*(\d+) \| {re.escape(module)}$", lines, re.MULTILINE)
    return int(spent) / 1000


def wheel_kilobytes() -> float:
    """Build a wheel of a copy of the sources, without a network, and return its size."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder)
        printed("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, folder)
        (wheel,) = Path(folder).glob("*.whl")
        return wheel.stat().st_size / 1000


def peak_megabytes() -> float:
    """Return the peak memory of a process that fits 20,000 rows of 100 columns."""
    return int(printed("-c", f"import numpy as np, gibbsian as gb; {STANDARD_FIT}").stdout) / 1024


ROWS = {
    "import gibbsian, ms": lambda: min(import_milliseconds("gibbsian") for _ in range(5)),
    "import gibbsian.estimators.boltzmann_machine, ms": lambda: min(
        import_milliseconds("gibbsian.estimators.boltzmann_machine") for _ in range(5)
    ),
    "first fit, kernels in the cache, s": lambda: min(once(FIRST_FIT) for _ in range(5)),
    "first fit, no kernels, s": lambda: cold(FIRST_FIT),
    "peak memory, mple of 20,000 x 100, MB": peak_megabytes,
    "wheel, kB": wheel_kilobytes,
}


def main() -> None:
    """Print the column."""
    for name, measure in ROWS.items():
        try:
            print(f"| {name} | {measure():.4g} |", flush=True)
        except subprocess.CalledProcessError as error:
            print(f"| {name} | failed: {error.stderr.strip().splitlines()[-1]} |", flush=True)


if __name__ == "__main__":
    main()
