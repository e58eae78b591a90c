"""Test log-likelihood on NLTCS and MSNBC, everything chosen on the validation split.

Run with ``python benchmarks/run.py debd``; it takes some minutes. The data are expected under ``shared/data/debd``
above the repository, or where ``GIBBSIAN_DEBD`` says. Candidates are fitted to the training split and judged on the
validation split, every one of them is printed, and the test split is looked at once, for the last line of each
family and for TA22's algorithm as it is.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.learners import as_learner
from gibbsian.learners import run as learn
from gibbsian.learners.span_ensembles import SpanBagging, mean_log_likelihood, stack
from gibbsian.learners.span_hidden import SpanHidden
from gibbsian.models import FullSpanModel

FOLDER = Path(os.environ.get("GIBBSIAN_SHARED_DATA", Path(__file__).parents[2] / "shared/data")) / "debd"

PLAIN = as_learner("span-greedy", tol=1e-6)


def newton(**settings: Any) -> Any:
    return as_learner("span-newton", **{"tol": 1e-6, **settings})


def dense(l2: float, growth: float) -> Any:
    return as_learner("span-dense", l2=l2, l2_growth=growth)


def bagged(scale: float) -> SpanBagging:
    return SpanBagging(newton(mdl_scale=scale), n_averages=10)


# Learners, with the number of values of a hidden variable and the most rounds where there is one.
CANDIDATES: dict[str, dict[str, list[Any]]] = {
    "nltcs": {
        "selected functions": [
            PLAIN,
            *(newton(tol=tol) for tol in (1e-4, 1e-5, 1e-6, 1e-8)),
            *(newton(mdl_scale=scale) for scale in (0.6, 0.3, 0.15)),
            *(newton(mdl_scale=0.3, l2=l2, l2_growth=3.0) for l2 in (1e-4, 1e-3)),
            *(newton(mdl_scale=0.3, l1=l1) for l1 in (1e-3, 3e-3)),
        ],
        "bootstrap average": [bagged(scale) for scale in (1.0, 0.3, 0.15)],
        "hidden variable": [(SpanHidden(newton(), tol=1e-4), n, 100) for n in (2, 4, 8)],
        "all functions": [dense(l2, growth) for l2 in (3e-4, 1e-3, 2e-3) for growth in (6.0, 8.0, 10.0, 12.0, 16.0)],
    },
    "msnbc": {
        "selected functions": [
            PLAIN,
            *(newton(tol=tol) for tol in (1e-4, 1e-5, 1e-6)),
            *(newton(mdl_scale=scale) for scale in (0.5, 0.2)),
            newton(mdl_scale=0.2, l2=1e-4, l2_growth=2.0),
        ],
        "bootstrap average": [bagged(scale) for scale in (0.5, 0.2)],
        "hidden variable": [(SpanHidden(newton(), tol=1e-3), n, 8) for n in (2, 4)],
        "all functions": [
            dense(l2, growth) for l2 in (3e-4, 1e-3, 1.5e-3, 3e-3) for growth in (2.0, 2.5, 2.7, 3.0, 4.0)
        ],
    },
}


def load(name: str) -> dict[str, Dataset]:
    """The three splits."""
    with np.load(FOLDER / f"{name}.npz") as file:
        return {split: Dataset.read(file[split], coding="binary") for split in ("train", "valid", "test")}


def fitted(candidate: Any, data: Dataset) -> Any:
    """The model of a candidate, a hidden variable summed out."""
    learner, n_values, rounds = candidate if isinstance(candidate, tuple) else (candidate, 1, 100_000)
    hidden = (n_values,) if n_values > 1 else ()
    start = FullSpanModel.build((2,) * data.n_variables + hidden, n_hidden=len(hidden))
    model: Any = learn(learner, start, data, 0, max_iter=rounds).model
    return model.without_hidden()


def published(name: str, n_best: int = 5) -> str:
    with (FOLDER / "reference_ll.csv").open() as file:
        rows = [row for row in csv.reader(file) if row and row[0] == name]
    best = sorted(rows, key=lambda row: -float(row[2]))[:n_best]
    return ", ".join(f"{row[1]} {row[2]}" for row in best)


def run(name: str) -> None:
    splits = load(name)
    print(f"\n{name}: {splits['train'].n_rows} rows, {splits['train'].n_variables} variables")
    print(f"  published: {published(name)}")
    best: dict[str, tuple[float, Any, Any]] = {}
    plain = None
    for family, candidates in CANDIDATES[name].items():
        for settings in candidates:
            start = time.perf_counter()
            model = fitted(settings, splits["train"])
            seconds = time.perf_counter() - start
            valid = mean_log_likelihood(model, splits["valid"])
            print(f"  valid {valid:.4f}  {seconds:6.1f} s  {family}: {settings}", flush=True)
            if settings is PLAIN:
                plain = model
            if family not in best or valid > best[family][0]:
                best[family] = valid, settings, model
    members = [entry[2] for entry in best.values()]
    stacked = stack(members, splits["valid"])
    valid = mean_log_likelihood(stacked, splits["valid"])
    best["stacked"] = valid, f"{len(members)} members", stacked
    chosen = max(best, key=lambda family: best[family][0])
    print("  chosen on the validation split, then looked at on the test split:")
    print(f"    test {mean_log_likelihood(plain, splits['test']):.4f}  TA22's algorithm, tol 1e-6")
    for family, (valid, settings, model) in best.items():
        test = mean_log_likelihood(model, splits["test"])
        mark = "  <- chosen" if family == chosen else ""
        print(f"    test {test:.4f}  valid {valid:.4f}  {family}: {settings}{mark}", flush=True)


def main() -> None:
    if not FOLDER.exists():
        print(f"no data at {FOLDER}: set GIBBSIAN_SHARED_DATA to the folder that holds debd/")
        return
    for name in CANDIDATES:
        run(name)


if __name__ == "__main__":
    main()
