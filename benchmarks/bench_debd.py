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

from gibbsian.full_span import FullSpanModel, SpanAverage, stack
from gibbsian.full_span.selection import Rows, fit_with, mean_log_likelihood

FOLDER = Path(os.environ.get("GIBBSIAN_SHARED_DATA", Path(__file__).parents[2] / "shared/data")) / "debd"

PLAIN: dict[str, Any] = {"algorithm": "greedy", "epsilon": 1e-6}
NEWTON: dict[str, Any] = {"algorithm": "newton", "epsilon": 1e-6}


def dense(l2: float, growth: float) -> dict[str, Any]:
    return {"algorithm": "dense", "l2": l2, "l2_growth": growth}


CANDIDATES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "nltcs": {
        "selected functions": [
            PLAIN,
            *({**NEWTON, "epsilon": epsilon} for epsilon in (1e-4, 1e-5, 1e-6, 1e-8)),
            *({**NEWTON, "mdl_scale": scale} for scale in (0.6, 0.3, 0.15)),
            *({**NEWTON, "mdl_scale": 0.3, "l2": l2, "l2_growth": 3.0} for l2 in (1e-4, 1e-3)),
            *({**NEWTON, "mdl_scale": 0.3, "l1": l1} for l1 in (1e-3, 3e-3)),
        ],
        "bootstrap average": [
            {**NEWTON, "mdl_scale": scale, "n_fits": 10, "random_state": 0} for scale in (1.0, 0.3, 0.15)
        ],
        "hidden variable": [{**NEWTON, "n_hidden": n, "random_state": 0, "tolerance": 1e-4} for n in (2, 4, 8)],
        "all functions": [dense(l2, growth) for l2 in (3e-4, 1e-3, 2e-3) for growth in (6.0, 8.0, 10.0, 12.0, 16.0)],
    },
    "msnbc": {
        "selected functions": [
            PLAIN,
            *({**NEWTON, "epsilon": epsilon} for epsilon in (1e-4, 1e-5, 1e-6)),
            *({**NEWTON, "mdl_scale": scale} for scale in (0.5, 0.2)),
            {**NEWTON, "mdl_scale": 0.2, "l2": 1e-4, "l2_growth": 2.0},
        ],
        "bootstrap average": [{**NEWTON, "mdl_scale": scale, "n_fits": 10, "random_state": 0} for scale in (0.5, 0.2)],
        "hidden variable": [
            {**NEWTON, "n_hidden": n, "random_state": 0, "tolerance": 1e-3, "max_rounds": 8} for n in (2, 4)
        ],
        "all functions": [
            dense(l2, growth) for l2 in (3e-4, 1e-3, 1.5e-3, 3e-3) for growth in (2.0, 2.5, 2.7, 3.0, 4.0)
        ],
    },
}


def load(name: str) -> dict[str, Rows]:
    """The three splits as distinct rows and counts."""
    with np.load(FOLDER / f"{name}.npz") as file:
        return {split: _counted(file[split]) for split in ("train", "valid", "test")}


def _counted(rows: np.ndarray) -> Rows:
    states, counts = np.unique(rows, axis=0, return_counts=True)
    return states.astype(np.int64), counts


def published(name: str, n_best: int = 5) -> str:
    with (FOLDER / "reference_ll.csv").open() as file:
        rows = [row for row in csv.reader(file) if row and row[0] == name]
    best = sorted(rows, key=lambda row: -float(row[2]))[:n_best]
    return ", ".join(f"{row[1]} {row[2]}" for row in best)


def describe(settings: dict[str, Any]) -> str:
    hidden = ("random_state",)
    return ", ".join(f"{name}={value}" for name, value in settings.items() if name not in hidden)


def run(name: str) -> None:
    splits = load(name)
    cardinalities = (2,) * splits["train"][0].shape[1]
    print(f"\n{name}: {splits['train'][1].sum()} rows, {len(cardinalities)} variables")
    print(f"  published: {published(name)}")
    best: dict[str, tuple[float, dict[str, Any], Any]] = {}
    plain = None
    for family, candidates in CANDIDATES[name].items():
        for settings in candidates:
            start = time.perf_counter()
            model = fit_with(splits["train"], cardinalities, settings)
            seconds = time.perf_counter() - start
            valid = mean_log_likelihood(model, splits["valid"], cardinalities)
            print(f"  valid {valid:.4f}  {seconds:6.1f} s  {family}: {describe(settings)}", flush=True)
            if settings is PLAIN:
                plain = model
            if family not in best or valid > best[family][0]:
                best[family] = valid, settings, model
    members = [entry[2] for entry in best.values() if isinstance(entry[2], FullSpanModel | SpanAverage)]
    stacked = stack(members, *splits["valid"])
    valid = mean_log_likelihood(stacked, splits["valid"], cardinalities)
    best["stacked"] = valid, {"members": len(members)}, stacked
    chosen = max(best, key=lambda family: best[family][0])
    print("  chosen on the validation split, then looked at on the test split:")
    print(f"    test {mean_log_likelihood(plain, splits['test'], cardinalities):.4f}  TA22's algorithm, epsilon 1e-6")
    for family, (valid, settings, model) in best.items():
        test = mean_log_likelihood(model, splits["test"], cardinalities)
        mark = "  <- chosen" if family == chosen else ""
        print(f"    test {test:.4f}  valid {valid:.4f}  {family}: {describe(settings)}{mark}", flush=True)


def main() -> None:
    if not FOLDER.exists():
        print(f"no data at {FOLDER}: set GIBBSIAN_SHARED_DATA to the folder that holds debd/")
        return
    for name in CANDIDATES:
        run(name)


if __name__ == "__main__":
    main()
