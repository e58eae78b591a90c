"""Do 95% intervals hold the truth? Twelve families of machines whose sums are known exactly: `make coverage`.

For each family: in how many of its machines the interval of log Z held the truth, how many were flagged beforehand (a
`MixingWarning`, or words of trouble), the width in the middle, and seconds a machine. It ends with an error where fewer
than 93 of 100 held or were flagged. ``--expectations`` asks the same of the means of sampled expectations.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import gibbsian as gb
from bench_rbm_quality import SHARED, fit_ours
from gibbsian.answers import answers_about
from gibbsian.errors import MixingWarning
from gibbsian.inference import exact
from gibbsian.models.base import Layered, keeps

MNIST = SHARED / "mnist" / "binarized_packed.npz"
# Least share that is to hold or be flagged: of intervals of log Z, and of all means.
LEAST, LEAST_OF_MEANS = 0.93, 0.92
METHODS = ("monte-carlo", "1-smci", "s2-smci", "forest-smci", "ais", "auto")


def spin_glass(number: int, rng: np.random.Generator, beta: float) -> Any:
    """A dense spin glass of 16 variables, every other one in 0/1 coding."""
    graph = gb.graphs.complete(16)
    model = gb.PairwiseFamily.model(graph, None, beta * rng.normal(size=graph.n_edges) / 4.0)
    return model.family.recode(model.theta, gb.Variables.binary)[0] if number % 2 else model


def ferromagnet(number: int, rng: np.random.Generator, coupling: float) -> Any:
    """A 4x4 lattice, every other one in a small field."""
    return gb.PairwiseFamily.model(gb.graphs.grid(4, 4), [0.1 * (number % 2)] * 16, [coupling] * 24)


def hopfield(number: int, rng: np.random.Generator) -> Any:
    """Three patterns in 16 variables, at temperatures below that of recall."""
    patterns, graph = rng.choice([-1.0, 1.0], (3, 16)), gb.graphs.complete(16)
    i, j = np.array(graph.edges).T
    return gb.PairwiseFamily.model(graph, None, rng.uniform(1.5, 5.0) * (patterns[:, i] * patterns[:, j]).sum(0) / 16)


def potts(number: int, rng: np.random.Generator, q: int) -> Any:
    """Equal neighbours in a 4x4 lattice of q values, around and beyond the transition; random fields in every other."""
    graph, coupling = gb.graphs.grid(4, 4), rng.uniform(0.8, 1.6) * np.log1p(np.sqrt(q))
    fields = 0.2 * (number % 2) * rng.normal(size=(16, q))
    theta = [fields.ravel(), np.tile(coupling * np.eye(q).ravel(), graph.n_edges)]
    return gb.Model(gb.TablesFamily.potts(graph, gb.Variables.categories((q,) * 16)), np.concatenate(theta))


def third_order(number: int, rng: np.random.Generator) -> Any:
    """Sixteen spins in 60 triples and single fields."""
    triples = {tuple(sorted(rng.choice(16, 3, replace=False).tolist())) for _ in range(60)}
    cliques = {(i,): 0.2 * rng.normal() for i in range(16)} | {three: rng.normal() for three in sorted(triples)}
    return gb.ProductsFamily.model(cliques, 16)


def digits(number: int, rng: np.random.Generator) -> Any:
    """A restricted machine learned on 8x8 digits."""
    return learned((load_digits().data >= 8).astype(np.uint8), rng, epochs=int(rng.integers(5, 60)))


def mnist(number: int, rng: np.random.Generator) -> Any:
    """A restricted machine learned on 2,000 rows of MNIST, every other pixel of every other line."""
    rows = np.unpackbits(np.load(MNIST)["train"][:20_000], axis=1)
    rows = rows.reshape(-1, 28, 28)[:, ::2, ::2].reshape(len(rows), -1)
    return learned(rows[rng.choice(len(rows), 2000, replace=False)], rng, epochs=int(rng.integers(5, 20)))


def learned(rows: np.ndarray, rng: np.random.Generator, epochs: int) -> Any:
    """Return the machine of 12 to 20 hidden units after some epochs."""
    return fit_ours(rows, int(rng.integers(12, 21)), epochs, int(rng.integers(2**31)))[0]


FAMILIES: dict[str, Callable[..., Any]] = {
    "spin glass, beta 0.5": lambda *given: spin_glass(*given, beta=0.5),
    "spin glass, beta 3": lambda *given: spin_glass(*given, beta=3.0),
    "spin glass, beta 8": lambda *given: spin_glass(*given, beta=8.0),
    "ferromagnet, J 0.5": lambda *given: ferromagnet(*given, coupling=0.5),
    "ferromagnet, J 1": lambda *given: ferromagnet(*given, coupling=1.0),
    "ferromagnet, J 2": lambda *given: ferromagnet(*given, coupling=2.0),
    "three patterns": hopfield,
    "Potts, q 3": lambda *given: potts(*given, q=3),
    "Potts, q 10": lambda *given: potts(*given, q=10),
    "third order": third_order,
    "restricted, digits": digits,
    "restricted, MNIST": mnist,
}


class Outcome(NamedTuple):
    """What came of one machine: did the interval hold, or what share of them; was it flagged; its width; seconds."""

    held: float
    flagged: bool
    width: float
    seconds: float


def log_partition(family: str, number: int, betas: int) -> Outcome:
    """Bracket log Z of one machine, and compare it with the exact one."""
    model, rng = machine(family, number)
    truth = exact(model).log_partition
    found, flagged, seconds = watched(lambda: answers_about(model).log_partition_interval(rng, 100, betas))
    held = found.lower - 1e-9 <= truth <= found.upper + 1e-9
    return Outcome(float(held), flagged or found.trouble is not None, found.upper - found.lower, seconds)


def expectation(family: str, number: int, method: str) -> Outcome:
    """Estimate all moments of one machine, and compare them with the exact ones: two standard errors are to hold.

    Layers have chains of their own; the other methods see all units as the variables of a pairwise machine.
    """
    model, rng = machine(family, number)
    truth = exact(model).moments
    answers, layered = answers_about(model), keeps(model.family, Layered)
    if layered and method not in ("monte-carlo", "auto"):
        answers = answers_about(answers.joint())
    # as many draws as the others have sweeps; each draw of layers is a chain of a thousand steps
    asked = (method, None) if method != "auto" else ("auto", 5000 if layered else 50_000)
    found, flagged, seconds = watched(lambda: answers.expect(rng, *asked))
    held = np.abs(found.value - truth) <= 2.0 * found.stderr + 1e-9
    return Outcome(float(held.mean()), flagged, float(4.0 * np.median(found.stderr)), seconds)


def machine(family: str, number: int) -> tuple[Any, np.random.Generator]:
    """Return the machine of a number and a generator for what is asked about it; the seeds are their numbers."""
    place = list(FAMILIES).index(family)
    return FAMILIES[family](number, np.random.default_rng([19, place, number])), np.random.default_rng([place, number])


def watched(ask: Callable[[], Any]) -> tuple[Any, bool, float]:
    """Return an answer, whether it came with a warning about mixing, and the seconds it took."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ask()
    return found, any(issubclass(one.category, MixingWarning) for one in caught), time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--machines", type=int, default=100, help="machines of each family")
    parser.add_argument("--betas", type=int, default=2000, help="temperatures of the annealing")
    parser.add_argument(
        "--families", default="", help="only those whose name contains this, or one of some parts, a comma between"
    )
    parser.add_argument("--expectations", action="store_true", help="ask for means instead of log Z")
    parser.add_argument("--methods", default=",".join(METHODS), help="how means are taken, a comma between")
    given = parser.parse_args()
    wanted = given.families.split(",")
    chosen = [name for name in FAMILIES if any(part in name for part in wanted) and _has_data(name)]
    missed = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for name in chosen:
            if not given.expectations:
                missed += report(pool, name, log_partition, given.machines, given.betas)
            else:
                for method in given.methods.split(","):
                    missed += report(pool, name, expectation, given.machines, method)
    if missed:
        sys.exit(f"\nneither held nor flagged often enough: {'; '.join(missed)}")


def report(pool: ProcessPoolExecutor, name: str, ask: Callable[..., Outcome], n_machines: int, how: Any) -> list[str]:
    """Print what came of a family; return its name where the intervals are neither right nor flagged."""
    found = list(pool.map(ask, [name] * n_machines, range(n_machines), [how] * n_machines))
    held, flagged, width, seconds = (np.array(column, float) for column in zip(*found, strict=True))
    right = np.where(flagged > 0, 1.0, held).mean()
    called = name if ask is log_partition else f"{name}, {how}"
    print(
        f"{called:34s} held {held.mean():5.0%}, flagged {flagged.mean():5.0%}, held or flagged {right:5.0%}, "
        f"width {np.median(width):.2g}, {seconds.mean():.2f} s",
        flush=True,
    )
    return [called] if right < (LEAST if ask is log_partition else LEAST_OF_MEANS) else []


def _has_data(name: str) -> bool:
    there = "MNIST" not in name or MNIST.exists()
    if not there:
        print(f"{name}: skipped, there is no {MNIST.name} in the shared data (GIBBSIAN_SHARED_DATA)")
    return there


if __name__ == "__main__":
    main()
