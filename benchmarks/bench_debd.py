"""Test log-likelihood on seven data sets of the density estimation suite, everything chosen on the validation split.

Run with ``python benchmarks/run.py debd``, or ``python benchmarks/bench_debd.py [--device cuda] [NAME ...]`` for some
sets or on a card. The data are expected under ``shared/data/debd`` above the repository, or where
``GIBBSIAN_SHARED_DATA`` says. Candidates are fitted to the training split and judged on the validation split, and every
one is printed. Rows are scored by exact log Z where that is in reach, else by the *upper* end of its interval, which
makes scores too low. Averages of all candidates have shares by EM on the validation rows; of few columns there are
products too, normalised over all states, whose powers make the validation rows most likely. The test split is looked at
once, for the best of each family, the average and the product.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

import gibbsian as gb
from gibbsian.learning import Minibatch, as_learner
from gibbsian.startup import logsumexp, softmax

FOLDER = Path(os.environ.get("GIBBSIAN_SHARED_DATA", Path(__file__).parents[2] / "shared/data")) / "debd"
# Walkers and temperatures of annealing where log Z is not exact: more for what comes first, whose intervals matter.
ANNEALING = {"restricted": (200, 6_000), "restricted, large": (2_000, 15_000)}
OTHERS = 100, 2_000
AVERAGE, PRODUCT = "average of all", "product of all"
# Columns whose states are all scored.
FEW_COLUMNS = 17


def dense(l2: float, growth: float) -> gb.FullSpan:
    """All functions of all columns, larger ones held back more."""
    return gb.FullSpan("span-dense", l2=l2, l2_growth=growth)


def selected(scale: float, **settings: Any) -> gb.FullSpan:
    """Functions that are worth their description length, at a scale."""
    return gb.FullSpan(as_learner("span-newton", tol=1e-6, mdl_scale=scale, **settings))


def pairwise(learner: str, l2: float) -> gb.BoltzmannMachine:
    return gb.BoltzmannMachine(learner=learner, l2=l2, random_state=0)


def classes(n: int, seed: int = 0, smoothing: float = 0.3, steps: int = 200) -> gb.MachineMixture:
    """Independent columns in each of some classes."""
    settings: Any = {"machine": "bernoulli", "n_init": 1, "smoothing": smoothing, "max_iter": steps}
    return gb.MachineMixture(n, random_state=seed, **settings)


def many(n: int, seed: int, smoothing: float, steps: int) -> gb.MachineMixture:
    """Independent columns in so many classes, which begin at rows and lean to the frequencies of all."""
    settings: Any = {"smoothing": smoothing, "max_iter": steps, "n_init": 1, "start": "random"}
    return gb.MachineMixture(n, machine="bernoulli", smooth_to="frequencies", random_state=seed, **settings)


def restricted(n: int, epochs: int, l2: float, *, rate: float = 0.2, seed: int = 0, **settings: Any) -> Any:
    """A machine of so many hidden units, by persistent chains in single precision."""
    settings = {"batch_size": 100, "n_chains": 300, "dtype": "float32", **settings}
    learner = Minibatch(max_iter=epochs, learning_rate=rate, l2=l2, **settings)
    return gb.RestrictedBoltzmannMachine(n, learner=learner, random_state=seed)


def exact(n: int, steps: int, l2: float, seed: int = 0) -> Any:
    """A machine of so many hidden units by its exact likelihood, for few columns; few steps keep it from the noise."""
    settings: Any = {"max_iter": steps, "random_state": seed, "precision": "float64"}
    return gb.RestrictedBoltzmannMachine(n, learner=gb.learning.MLE(l2=l2), **settings)


def two(l2: float) -> list[Any]:
    """Machines of 200 hidden units under two penalties."""
    return [restricted(200, 100, held, seed=seed) for seed, held in enumerate((l2, l2 / 2))]


SMALL: dict[str, list[Any]] = {
    "pairwise": [pairwise("mle", 0.0)],
    "higher order": [gb.HigherOrderBoltzmannMachine(order, learner="mle", l2=1e-4) for order in (3, 4)],
    "mixture": [classes(n) for n in (20, 60, 200)],
}
# What is tried on each data set, by family.
CANDIDATES: dict[str, dict[str, list[Any]]] = {
    "nltcs": {
        "restricted, exact": [
            *(exact(15, 200, 1e-4), exact(30, 200, 3e-5), exact(60, 200, 1e-4)),
            *(exact(60, 100, 1e-5, 1), exact(60, 200, 3e-5, 2), exact(60, 300, 1e-4, 4), exact(30, 200, 1e-4, 5)),
        ],
        **SMALL,
        "mixture": [
            *(*SMALL["mixture"], classes(60, 1, 1.0, 60), classes(100, 2, 1.0, 60)),
            *(many(n, seed, 0.75, 60) for seed, n in enumerate((300, 1000, 2000), 3)),
            many(1000, 6, 0.3, 4),
        ],
        "full span, selected": [selected(1.0), selected(0.3)],
        "full span, hidden": [gb.FullSpan("span-newton", tol=1e-6, n_components=4, max_iter=100, random_state=0)],
        "full span, all": [dense(1e-3, growth) for growth in (6.0, 8.0, 12.0)] + [dense(5e-4, 8.0), dense(2e-3, 12.0)],
        "restricted": [restricted(20, 100, l2, n_chains=100) for l2 in (0.0, 1e-3)],
    },
    "msnbc": {
        **SMALL,
        "restricted, exact": [
            *(
                exact(n, 2500, l2, seed)
                for seed, n, l2 in ((3, 60, 3e-7), (2, 120, 1e-6), (5, 120, 2e-6), (4, 150, 1e-6))
            ),
            *(exact(n, 4000, 1e-6, seed) for seed, n in ((7, 100), (8, 100), (9, 80))),
            *(exact(n, 3000, 3e-7, seed) for seed, n in ((10, 100), (11, 80), (12, 120))),
        ],
        "mixture": [
            *(classes(n) for n in (20, 60, 200, 500)),
            *(classes(200, seed) for seed in (11, 12, 13)),
            *(classes(n, seed, 1.0, 60) for seed, n in enumerate((500, 500, 500, 1000, 1000), 1)),
            *(many(n, seed, 0.5, 4) for seed, n in enumerate((500, 1000, 2000, 3000), 21)),
            *(many(n, seed, 1.0, 20) for seed, n in enumerate((300, 1000, 1000), 25)),
        ],
        "full span, all": [dense(1.5e-3, 2.5), dense(3e-3, 2.5), dense(1e-3, 3.0)],
        "full span, selected": [selected(0.5), selected(0.2)],
        "restricted": [restricted(20, 20, 0.0, batch_size=400)],
    },
    "kdd": {
        "pairwise": [pairwise("mple", l2) for l2 in (1e-5, 1e-4, 1e-3)],
        "mixture": [
            *(classes(n) for n in (30, 100)),
            *(classes(100, seed, smoothing, 60) for seed, smoothing in enumerate((0.3, 0.03, 1.0))),
            *(classes(300, 1, 0.03, 60), classes(300, 2, 1.0, 60), classes(1000, 4, 0.5, 60)),
            *(many(n, seed, 8.0, 30) for seed, n in enumerate((100, 300, 300), 5)),
            *(many(n, seed, 4.0, 8) for seed, n in enumerate((1000, 2000), 8)),
            *(many(n, seed, 1.0, 1) for seed, n in enumerate((1000, 3000, 5000), 10)),
        ],
        "restricted": [restricted(60, 15, 1e-5, rate=2.0, batch_size=400, n_chains=2000)],
    },
    "plants": {
        "pairwise": [pairwise("mple", 1e-4)],
        "mixture": [
            *(many(n, seed, 0.2, 3) for seed, n in enumerate((1000, 2000, 2000, 3000, 4000))),
            *(many(n, seed, 0.1, 3) for seed, n in enumerate((1000, 2000, 3000, 4000, 5000, 6000), 5)),
            *(many(n, seed, 0.05, 1) for seed, n in enumerate((2000, 4000), 11)),
            *(many(n, seed, 0.5, 30) for seed, n in enumerate((200, 300, 500), 13)),
            *(many(n, seed, 0.3, 10) for seed, n in enumerate((700, 1000, 2000), 16)),
            many(8000, 19, 0.1, 6),
        ],
        "restricted": [restricted(100, 100, 1e-4, rate=0.5, n_chains=500)],
    },
    **{
        name: {
            "pairwise": [pairwise("mple", 1e-3)],
            "mixture": [classes(40), *(many(n, seed, 2.0, 20) for seed, n in enumerate((100, 100, 200)))],
            "restricted": two(l2),
        }
        for name, l2 in (("baudio", 1e-3), ("jester", 1e-3), ("bnetflix", 2e-3))
    },
}

# What only a card does in time.
ON_CARD: dict[str, dict[str, list[Any]]] = {
    "msnbc": {
        "restricted, exact, more": [
            exact(n, 5000, l2, 20 + seed)
            for seed, (n, l2) in enumerate([(100, 1e-6), (120, 1e-6), (150, 1e-6), (120, 5e-7)] * 3)
        ]
    },
    "kdd": {
        "restricted, large": [
            restricted(n, epochs, 1e-5, rate=rate, batch_size=400, n_chains=5000, seed=seed)
            for seed, (n, epochs, rate) in enumerate(((200, 40, 2.0), (500, 60, 1.0)))
        ]
    },
    "plants": {
        "restricted, large": [
            restricted(n, 600, l2, rate=0.5, batch_size=200, n_chains=2000, seed=seed)
            for seed, (n, l2) in enumerate(
                [(500, 3e-5)] * 5 + [(500, 1e-4)] * 3 + [(1000, 5e-5)] * 2 + [(300, 1e-5)] * 2
            )
        ]
    },
    **{
        name: {
            "restricted, large": [
                restricted(500, 200, l2, n_chains=1000),
                restricted(500, 200, 2 * l2, n_chains=1000, seed=1),
                restricted(1000, 200, 2 * l2, n_chains=1000, seed=2),
                restricted(500, 400, 1.5 * l2, n_chains=1000, seed=3),
            ]
        }
        for name, l2 in (("baudio", 5e-4), ("jester", 1e-3), ("bnetflix", 1e-3))
    },
}


class Scores(NamedTuple):
    """Log-probabilities of rows, at the low end of what is known, and how far the high end is."""

    valid: np.ndarray
    test: np.ndarray
    states: np.ndarray  # all there are, of few columns
    width: float


def load(name: str) -> dict[str, np.ndarray]:
    """The three splits, and all states of few columns."""
    with np.load(FOLDER / f"{name}.npz") as file:
        splits = {split: file[split].astype(np.int8) for split in ("train", "valid", "test")}
    n = splits["train"].shape[1]
    numbers = np.arange(2**n if n <= FEW_COLUMNS else 0)[:, None]
    return splits | {"states": (numbers >> np.arange(n) & 1).astype(np.int8)}


def scored(machine: Any, splits: dict[str, np.ndarray], annealing: tuple[int, int]) -> Scores:
    """Fit a machine to the training rows, and score the others by the largest log Z that there may be."""
    machine.fit(splits["train"])
    given: dict[str, float] = {}
    width = 0.0
    if hasattr(machine, "log_partition") and not machine.sums_exactly():  # mixtures are normalised
        found: Any = machine.log_partition("auto", *annealing)
        ends = [found.upper, found.lower, found.forward.log_partition, found.reverse.log_partition]
        given["log_partition"], width = max(ends), max(ends) - min(ends)
    parts = (splits[split] for split in ("valid", "test", "states"))
    return Scores(*(machine.score_samples(rows, **given) if len(rows) else np.empty(0) for rows in parts), width)


def kept(path: Path | None, *asked: Any) -> Scores:
    """The same, from a file where an earlier run left one."""
    if path is None or not path.exists():
        found = scored(*asked)
        if path is not None:
            np.savez(path, **found._asdict())
        return found
    with np.load(path) as file:
        return Scores(*(file[field] for field in Scores._fields))


def shares_of(valid: np.ndarray) -> np.ndarray:
    """Shares of a mixture of fixed models (columns) that make rows most likely, by EM: the likelihood is concave."""
    distinct, counts = np.unique(valid, axis=0, return_counts=True)
    likely, shares = softmax(distinct, axis=1), np.full(valid.shape[1], 1.0 / valid.shape[1])
    for _ in range(5000):
        shares = shares * (likely.T @ (counts / (likely @ shares))) / len(valid)
    return shares


def powers_of(valid: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Powers of fixed models (columns) whose product makes rows most likely: convex, as in any exponential family."""
    mean = valid.mean(axis=0)

    def loss(powers: np.ndarray) -> tuple[float, np.ndarray]:
        logs = states @ powers
        total = logsumexp(logs)
        return total - mean @ powers, np.exp(logs - total) @ states - mean

    start = np.full(mean.size, 1.0 / mean.size)
    bounds, options = [(0.0, None)] * mean.size, {"ftol": 1e-10, "maxiter": 500}
    return minimize(loss, start, jac=True, method="SLSQP", bounds=bounds, options=options).x


def published(name: str) -> tuple[str, float]:
    """The best published figure, and whose it is."""
    with (FOLDER / "reference_ll.csv").open() as file:
        rows = [row for row in csv.reader(file) if row and row[0] == name]
    best = max(rows, key=lambda row: float(row[2]))
    return best[1], float(best[2])


def run(name: str, device: str, keep: Path | None, until: float) -> str:
    """Fit all candidates of a data set, or those that are begun in time; return its row of the table."""
    splits = load(name)
    print(f"\n{name}: {len(splits['train'])} rows, {splits['train'].shape[1]} columns", flush=True)
    best: dict[str, tuple[float, Scores]] = {}
    members = []
    families = CANDIDATES[name] | (ON_CARD.get(name, {}) if device != "cpu" else {})
    for family, machines in families.items():
        for place, machine in enumerate(machines):
            if time.monotonic() > until:
                print(f"  no time left for {family}: {machine}", flush=True)
                continue
            began = time.process_time()
            machine.set_params(device=device)
            path = None if keep is None else keep / f"{name}-{family.replace(' ', '-')}-{place}.npz"
            scores = kept(path, machine, splits, ANNEALING.get(family, OTHERS))
            valid = float(scores.valid.mean())
            seconds = time.process_time() - began
            print(
                f"  valid {valid:.4f} (interval {scores.width:.3f}) {seconds:6.1f} s  {family}: {machine}", flush=True
            )
            members.append(scores)
            if family not in best or valid > best[family][0]:
                best[family] = valid, scores
    valid_rows, test_rows, states = (np.stack(part, axis=1) for part in list(zip(*members, strict=True))[:3])
    width, shares = max(member.width for member in members), shares_of(valid_rows)
    rows = [logsumexp(part, b=shares, axis=1) for part in (valid_rows, test_rows, states)]
    best[AVERAGE] = float(rows[0].mean()), Scores(*rows, width)
    if len(states):
        powers = powers_of(valid_rows, states)
        rows = [part @ powers - logsumexp(states @ powers) for part in (valid_rows, test_rows, states)]
        best[PRODUCT] = float(rows[0].mean()), Scores(*rows, width)
    chosen = max(best, key=lambda family: best[family][0])
    print("  chosen on the validation split, then looked at on the test split:")
    for family, (valid, scores) in best.items():
        mark = "  <- chosen" if family == chosen else ""
        print(f"    test {scores.test.mean():.4f}  valid {valid:.4f}  {family}{mark}", flush=True)
    whose, figure = published(name)
    test = best[chosen][1].test
    error = test.std() / np.sqrt(test.size)
    single = max((family for family in best if family not in (AVERAGE, PRODUCT)), key=lambda family: best[family][0])
    return (
        f"| {name} | {single} {best[single][1].test.mean():.3f} | {chosen} {test.mean():.3f} ± {error:.3f} "
        f"| {figure:.2f} ({whose}) | {'ahead' if test.mean() > figure else 'behind'} |"
    )


def main(
    names: list[str] | None = None, device: str = "cpu", keep: Path | None = None, seconds: float = float("inf")
) -> None:
    if not FOLDER.exists():
        print(f"no data at {FOLDER}: set GIBBSIAN_SHARED_DATA to the folder that holds debd/")
        return
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # what they say of log Z is in the intervals
    until = time.monotonic() + seconds
    table = [run(name, device, keep, until) for name in names or CANDIDATES]
    print("\n| data | best family, test | chosen, test | best published | |\n| --- | --- | --- | --- | --- |")
    print("\n".join(table))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--keep", type=Path, help="a folder for the scores of candidates, to go on after a stop")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further candidate after so many")
    asked = parser.parse_args()
    main(asked.names, asked.device, asked.keep, asked.seconds)
