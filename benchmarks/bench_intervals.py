"""How often 95% intervals of parameters hold the truth, for every kind of model: 300 tables drawn from a known one.

    python benchmarks/bench_intervals.py                        # 20 tables each, as `make bench` does
    python benchmarks/bench_intervals.py --tables 300 potts hidden

A machine is fitted to a small table and taken for the truth; tables drawn from it are fitted again, from there, so that
hidden units and classes keep their numbers. Parameters without an error (those that are given) do not count.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gibbsian as gb

N_ROWS = 2000
BOOTSTRAPS = 100
# Mixtures that do not begin at others; their classes are put in order afterwards.
UNPLACED = ("categorical-mixture",)


def labels(n_values: int) -> np.ndarray:
    """Rows of four related columns."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    noise = rng.integers(0, n_values, (400, 4))
    return np.where(rng.random((400, 4)) < 0.45, group[:, None] * (n_values - 1), noise)


def numbers() -> np.ndarray:
    """Rows of three numbers, in two classes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(400, 3)) + 1.5 * np.where(rng.random((400, 1)) < 0.4, 1.0, -1.0) * [1.0, -1.0, 0.5]


def directions() -> np.ndarray:
    """The same as unit vectors."""
    rows = numbers()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


KINDS: dict[str, tuple[Callable[[], np.ndarray], Callable[..., Any], str]] = {
    "pairwise, mle": (lambda: labels(2), lambda **s: gb.BoltzmannMachine(learner="mle", **s), ""),
    "pairwise, mple": (lambda: labels(2), lambda **s: gb.BoltzmannMachine(learner="mple", **s), ""),
    "pairwise, mcmle": (lambda: labels(2), lambda **s: gb.BoltzmannMachine(learner="mcmle", random_state=0, **s), ""),
    "pairwise, bootstrap": (lambda: labels(2), lambda **s: gb.BoltzmannMachine(learner="mple", **s), "bootstrap"),
    "higher-order, mle": (lambda: labels(2), lambda **s: gb.HigherOrderBoltzmannMachine(learner="mle", **s), ""),
    "higher-order, mple": (lambda: labels(2), lambda **s: gb.HigherOrderBoltzmannMachine(learner="mple", **s), ""),
    "potts, mle": (lambda: labels(3), lambda **s: gb.PottsMachine(learner="mle", **s), ""),
    "potts, mple": (lambda: labels(3), lambda **s: gb.PottsMachine(learner="mple", **s), ""),
    "tables, mle": (lambda: labels(2), lambda **s: gb.MarkovRandomFieldMachine(learner="mle", **s), ""),
    "ordinal, mle": (lambda: labels(3), lambda **s: gb.OrdinalMachine(learner="mle", coding="values", **s), ""),
    "gaussian, mle": (numbers, lambda **s: gb.GaussianMachine(learner="mle", **s), ""),
    "gaussian, sandwich": (numbers, lambda **s: gb.GaussianMachine(learner="mle", **s), "sandwich"),
    "full-span": (lambda: labels(2), lambda **s: gb.FullSpan(**s), ""),
    "hidden, mle": (lambda: labels(2), lambda **s: hidden_machine(**s), ""),
    "hidden, em": (lambda: labels(2), lambda **s: hidden_machine(learner="em", **s), ""),
    "restricted, mle": (
        lambda: labels(2),
        lambda **s: gb.RestrictedBoltzmannMachine(1, learner="mle", max_iter=1000, random_state=0, **s),
        "",
    ),
    "gaussian-mixture": (numbers, lambda **s: gb.GaussianMixture(2, random_state=0, **s), ""),
    "gaussian-mixture, sandwich": (numbers, lambda **s: gb.GaussianMixture(2, random_state=0, **s), "sandwich"),
    "soft-k-means": (numbers, lambda **s: gb.SoftKMeans(2, random_state=0, **s), ""),
    "vmf-mixture": (directions, lambda **s: gb.VonMisesFisherMixture(2, random_state=0, **s), ""),
    "categorical-mixture": (lambda: labels(2), lambda **s: gb.MachineMixture(2, random_state=0, **s), ""),
}


def hidden_machine(learner: str = "mle", **settings: Any) -> Any:
    """Return a machine of one hidden unit that every column couples to, and nothing else."""
    return gb.HiddenBoltzmannMachine(1, graph="restricted", learner=learner, random_state=0, **settings)


def coverage(name: str, n_tables: int) -> tuple[float, float, float, str]:
    """Return the mean, least and largest share of intervals that hold the truth, and a remark."""
    rows, make, kind = KINDS[name]
    truth = make().fit(rows())
    wanted, held, other = truth.model_.canonical().theta, [], 0
    for number in range(n_tables):
        drawn = truth.sample(N_ROWS, random_state=number)
        machine = make(start=truth) if "start" in truth.get_params() and name not in UNPLACED else make()
        machine.fit(drawn)
        if name in UNPLACED:
            wanted = nearest_order(truth.model_, machine.model_)
        if isinstance(truth.model_.family, gb.GaussianFamily):
            wanted = in_units_of(machine.model_, truth.model_)
        if machine.model_.theta.size != wanted.size or not np.array_equal(*map(functions, (machine, truth))):
            other += 1
            continue
        if kind == "bootstrap":
            found = gb.uncertainty.bootstrap(machine, drawn, BOOTSTRAPS, random_state=number).intervals()
        else:
            found = gb.uncertainty.confidence_intervals(machine, drawn, kind=kind or "auto")
        held.append(np.where(found.high > found.low, found.covers(wanted), np.nan))
    shares = np.nanmean(np.array(held)[:, ~np.isnan(held).all(axis=0)], axis=0)
    remark = f"{other} tables gave other functions" if other else ""
    return float(shares.mean()), float(shares.min()), float(shares.max()), remark


def in_units_of(fitted: Any, truth: Any) -> np.ndarray:
    """Return the parameters of a normal distribution in the standard units of a fit."""
    family, given = fitted.family, truth.family
    wider = family.scale / given.scale
    precision = given.precision(truth.theta) * np.outer(wider, wider)
    return family.theta_of(precision, family.standard(given.mean(truth.theta)))


def nearest_order(truth: Any, fitted: Any) -> np.ndarray:
    """Return the parameters of the truth with its two classes in the order of a fit."""
    turned = truth.family.join(*(part[::-1] for part in truth.parts))
    return min((truth.theta, turned), key=lambda theta: float(np.square(theta - fitted.theta).sum()))


def functions(machine: Any) -> np.ndarray:
    """Return which functions a full-span model has chosen; nothing of other models."""
    return getattr(machine.model_.family, "functions", np.empty(0))


def main(given: Sequence[str] = ("--tables", "20")) -> None:
    """Print the coverage of every kind, or of those whose name begins with one of the words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--tables", type=int, default=20)
    asked = parser.parse_args(given)
    warnings.simplefilter("ignore")
    print(
        f"95% intervals that hold the truth, {asked.tables} tables of {N_ROWS} rows: mean, least, most of a parameter"
    )
    for name in KINDS:
        if not asked.kinds or any(name.startswith(kind) for kind in asked.kinds):
            began = time.process_time()
            mean, least, most, remark = coverage(name, asked.tables)
            seconds = time.process_time() - began
            print(f"  {name:28s}{mean:8.3f}{least:8.3f}{most:8.3f}{seconds:8.1f} s  {remark}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
