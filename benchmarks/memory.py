"""Memory that is predicted beside what is taken, each case in a process of its own: ``make memory`` (Linux).

A case is built and run small first, so that code and compiled kernels are there; then the peak of the resident set is
reset, the case is run large, and the largest request to `require_memory` is compared with the growth.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MIB, PART = 2**20, 5000
# Predictions above so many MiB must be within this share of what is taken.
LEAST_MIB, ALLOWED = 100, 0.2
Make = Callable[[int], Callable[[], Any]]
CASES: dict[str, tuple[Make, int, int]] = {}


def case(name: str, small: int, large: int) -> Callable[[Make], Make]:
    """Register a case: from a size to what is run."""

    def registered(make: Make) -> Make:
        CASES[name] = make, small, large
        return make

    return registered


def bits(n_rows: int, n: int) -> np.ndarray:
    """Return rows of fair coins."""
    return np.random.default_rng(0).integers(0, 2, (n_rows, n), dtype=np.int8)


@case("a Gaussian mixture of 500,000 rows", 1000, 500_000)
def gaussian_mixture(n_rows: int) -> Callable[[], Any]:
    import gibbsian as gb

    rows = np.random.default_rng(0).normal(size=(n_rows, 5))
    return lambda: gb.GaussianMixture(5, max_iter=3, random_state=0).fit(rows)


@case("a mixture of machines", 1000, 300_000)
def machine_mixture(n_rows: int) -> Callable[[], Any]:
    import gibbsian as gb

    rows = bits(n_rows, 20)
    return lambda: gb.MachineMixture(3, machine=gb.BoltzmannMachine(l2=0.1), max_iter=2, random_state=0).fit(rows)


@case("Gibbs samples of 60 variables", 1000, 2_000_000)
def gibbs_samples(n_samples: int) -> Callable[[], Any]:
    import gibbsian as gb

    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(60)))
    return lambda: gb.sampling.draw(model, n_samples, 0, n_chains=min(1000, n_samples), burn_in=1)


@case("samples of a fitted machine", 1000, 500_000)
def machine_samples(n_samples: int) -> Callable[[], Any]:
    import gibbsian as gb

    machine = gb.BoltzmannMachine(learner="mple", l2=0.1, max_iter=2, random_state=0).fit(bits(200, 60))
    return lambda: machine.sample(n_samples)


@case("a deep machine", 64, 1200)
def deep_machine(width: int) -> Callable[[], Any]:
    import gibbsian as gb

    rows = bits(3000, width)
    return lambda: gb.DeepBoltzmannMachine((width, width), max_iter=1, random_state=0).fit(rows)


@case("a restricted machine", 64, 2000)
def restricted_machine(width: int) -> Callable[[], Any]:
    import gibbsian as gb

    rows = bits(3000, width)
    return lambda: gb.RestrictedBoltzmannMachine(width, max_iter=1, random_state=0).fit(rows)


def text_file(n_rows: int, cells: Callable[[np.random.Generator, int], Any]) -> Path:
    """Return a file, written a little at a time so that nothing is left to reuse."""
    import pandas as pd

    path, rng = Path(tempfile.mkdtemp()) / "rows.csv", np.random.default_rng(0)
    for start in range(0, n_rows, PART):
        part = pd.DataFrame(cells(rng, min(PART, n_rows - start))).add_prefix("x")
        part.to_csv(path, index=False, header=start == 0, mode="a")
    return path


def words(low: str, high: str, missing: float = 0.0) -> Callable[[np.random.Generator, int], Any]:
    """Return what makes 60 columns of two words, some cells empty."""

    def made(rng: np.random.Generator, n_rows: int) -> np.ndarray:
        cells = np.where(rng.random((n_rows, 60)) < 0.5, low, high).astype(object)
        cells[rng.random(cells.shape) < missing] = ""
        return cells

    return made


def reading(path: Path, **how: Any) -> Callable[[], Any]:
    """Return what reads a file."""
    import gibbsian as gb

    return lambda: gb.Dataset.read(path, **how)


@case("reading CSV of 0 and 1", 1000, 500_000)
def csv_of_numbers(n_rows: int) -> Callable[[], Any]:
    return reading(text_file(n_rows, words("0", "1")))


@case("reading CSV of 0 and 1 with holes", 1000, 500_000)
def csv_with_holes(n_rows: int) -> Callable[[], Any]:
    return reading(text_file(n_rows, words("0", "1", 0.01)))


@case("reading CSV of words with holes", 1000, 500_000)
def csv_of_words(n_rows: int) -> Callable[[], Any]:
    return reading(text_file(n_rows, words("no", "yes", 0.01)))


@case("reading CSV of real numbers", 1000, 300_000)
def csv_of_reals(n_rows: int) -> Callable[[], Any]:
    return reading(text_file(n_rows, lambda rng, n: rng.normal(size=(n, 20))), coding="real")


@case("a full span of 2^21 states", 8, 21)
def full_span(n: int) -> Callable[[], Any]:
    return span(n, "span-greedy")


@case("a full span of 2^22 states, Newton", 8, 22)
def newton_span(n: int) -> Callable[[], Any]:
    return span(n, "span-newton")


def span(n: int, learner: str) -> Callable[[], Any]:
    """Return a fit of all functions of so many columns."""
    import gibbsian as gb

    rows = bits(500, n)
    return lambda: gb.FullSpan(learner=learner, max_iter=5).fit(rows)


@case("ratio matching", 1000, 200_000)
def ratio_matching(n_rows: int) -> Callable[[], Any]:
    return pairwise(n_rows, "rm")


@case("pseudolikelihood", 1000, 400_000)
def pseudolikelihood(n_rows: int) -> Callable[[], Any]:
    return pairwise(n_rows, "mple")


def pairwise(n_rows: int, learner: str) -> Callable[[], Any]:
    """Return a fit of a pairwise machine to data that have been read."""
    import gibbsian as gb

    data = gb.Dataset.read(bits(n_rows, 100))
    return lambda: gb.BoltzmannMachine(learner=learner, l2=0.1, max_iter=3).fit(data)


def measure(name: str) -> None:
    """Run one case and print what was predicted and what was taken, in bytes."""
    from gibbsian import resources

    asked: list[tuple[float, str]] = []
    refuse = resources.require_memory

    def noting(n_bytes: float, what: str, instead: str) -> None:
        asked.append((n_bytes, what))
        refuse(n_bytes, what, instead)

    resources.require_memory = noting  # before any module takes it from there
    warnings.simplefilter("ignore")
    make, small, large = CASES[name]
    make(small)()
    call = make(large)
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    asked.clear()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    kept = call()
    taken = _status("VmHWM") - before
    predicted, what = max(asked, default=(0.0, "nothing was asked for"))
    print(f"{predicted}\t{taken}\t{what}")
    del kept


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def main(names: list[str]) -> int:
    """Print all cases and return how many predictions are off."""
    missed = 0
    print(f"{'case':40} {'predicted':>10} {'taken':>10}  ratio")
    for name in [name for name in CASES if not names or any(part in name for part in names)]:
        run = subprocess.run([sys.executable, __file__, "--measure", name], capture_output=True, text=True, check=False)
        if run.returncode:
            print(f"{name:40} {run.stderr.strip().splitlines()[-1]}")
            missed += 1
            continue
        predicted, taken, what = run.stdout.strip().splitlines()[-1].split("\t")
        p, t = float(predicted) / MIB, float(taken) / MIB
        off = max(p, t) > LEAST_MIB and abs(p / t - 1.0) > ALLOWED
        missed += off
        print(f"{name:40} {p:6.0f} MiB {t:6.0f} MiB  {p / t:5.2f} {'OFF' if off else ''}  ({what})", flush=True)
    return missed


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    else:
        sys.exit(bool(main(sys.argv[1:])))
