"""YU20 figure 7: learning with samples fixed to the data, and with samples that follow the model (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from gibbsian.data import Dataset
from gibbsian.learning import as_learner, run
from gibbsian.models import Model, PairwiseFamily
from gibbsian.rng import Key
from gibbsian_reproduction.drawing import lines, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict
from gibbsian_reproduction.kernels import spatial_learning as kernels
from gibbsian_reproduction.tables import Table, mean_table
from gibbsian_reproduction.verdicts import ends_below, ratio_of_means
from gibbsian_reproduction.yu20 import GRID, OURS, PRINTED, Protocol, draw_network

N_ROWS, N_STEPS, RATE, EVERY = 50, 2000, 0.02, 20
COPIES = (1, 5, 10)
# Forests may stay for some steps: couplings move by little.
FOREST_RENEWAL = 50
# the share of the trials in which forests, twenty times as costly as s2-SMCI, learn too
FOREST_SHARE = 0.25
# With 50 rows a finite solution has couplings of about 2 at most; beyond, it is on its way to infinity.
LARGEST = 5.0
SOURCE = "YU20 section 5.2"
STEPS = np.arange(0, N_STEPS + 1, EVERY)
SHOWN = np.array([0, 100, 200, 500, 1000, 1500, 2000])
WIDTHS = {0: 1.3, 1: 0.8, 5: 1.3, 10: 2.0}  # of curves, by chains for each row


class Method(NamedTuple):
    """A curve of the figure: the kind of moments, chains for each row (0: the data stay), and how it is shown."""

    kind: int
    copies: int
    series: Series


def _method(name: str, label: str, kind: int, copies: int, ours: bool = False) -> Method:
    ending = f"e = {copies}" if copies else "fix"
    look = f"{name}+pcd" if copies and kind in (kernels.FIRST, kernels.SEMI_SECOND) else name
    style = {"linewidth": WIDTHS[copies], "markersize": 3.5}
    series = Series(f"{name} {ending.replace(' ', '')}", f"{label} ({ending})", ours, look, style=style)
    return Method(kind, copies, series)


_ALL = (
    *(_method("1-smci", "1-SMCI", kernels.FIRST, copies) for copies in (0, *COPIES)),
    *(_method("s2-smci", "s2-SMCI", kernels.SEMI_SECOND, copies) for copies in (0, *COPIES)),
    *(_method("pcd", "for comparison: PCD", kernels.PLAIN, copies) for copies in COPIES),
    _method("forest-smci", "forest SMCI", kernels.FOREST, 1, ours=True),
)
METHODS = {method.series.key: method for method in _ALL}
SERIES = {name: method.series for name, method in METHODS.items()}
# what is learned once more without model error beside figure 7b, and how many trials it takes to see the difference
COMPARED = {"1-smci fix": 10, "1-smci e=1": 200, "s2-smci fix": 20, "s2-smci e=1": 200}


@EXPERIMENTS.register("yu20-fig7a")
def figure_7a() -> Experiment:
    """Return YU20 Fig. 7a: data from a grid, learned on the same grid."""
    return _figure_7("Fig. 7a", "model matched", _matched_trial)


@EXPERIMENTS.register("yu20-fig7b")
def figure_7b() -> Experiment:
    """Return YU20 Fig. 7b: data from a machine with all pairs, learned on the grid."""
    return _figure_7("Fig. 7b", "model mismatched", _mismatched_trial, *_worse_claims())


@EXPERIMENTS.register("yu20-fig7a-protocol")
def figure_7a_as_printed() -> Experiment:
    """Return YU20 Fig. 7a with data drawn by Gibbs sampling."""
    return _figure_7("Fig. 7a", "model matched", _matched_trial, protocol=PRINTED)


@EXPERIMENTS.register("yu20-fig7b-protocol")
def figure_7b_as_printed() -> Experiment:
    """Return YU20 Fig. 7b with data drawn by Gibbs sampling."""
    return _figure_7("Fig. 7b", "model mismatched", _mismatched_trial, *_worse_claims(), protocol=PRINTED)


def _worse_claims() -> Iterator[Claim]:
    return (
        Claim(f"{SERIES[name].label} ends worse than in the matched case", SOURCE, partial(_worse, name), trials)
        for name, trials in COMPARED.items()
    )


def _figure_7(item: str, case: str, trial: Callable[..., Trial], *more: Claim, protocol: Protocol = OURS) -> Experiment:
    def below(lower: str, upper: str, trials: int, least: float = 1.0, ours: bool = False) -> Claim:
        return ends_below(SERIES[lower], SERIES[upper], SOURCE, trials, least, ours)

    both = ("1-smci", "s2-smci")
    claims = (
        *(below(f"{name} e={copies}", f"{name} fix", 4, least=2.0) for name in both for copies in COPIES),
        *(below(f"{name} e=5", f"{name} e=1", 4) for name in both),
        *(below(f"{name} e=10", f"{name} e=5", 10) for name in both),
        below("s2-smci fix", "1-smci fix", 4, ours=True),
        below("s2-smci e=1", "1-smci e=1", 4, ours=True),
        below("1-smci e=1", "pcd e=10", 4, ours=True),
        below("forest-smci e=1", "s2-smci e=1", 40, ours=True),
        *more,
    )
    return Experiment(
        "YU20",
        item,
        f"learning curves with N = {N_ROWS}, {case}" + ("" if protocol is OURS else ", data by Gibbs sampling"),
        partial(trial, protocol=protocol),
        (_table,),
        panels(lines(STEPS, list(SERIES.values()), "t", "MAE", log="y", legend_at={"ncols": 2, "fontsize": 6.5})),
        claims,
        size=(5.6, 4.2),
        scale="a network and a data set; forests learn in one of four trials; PCD is drawn for comparison",
    )


def _matched_trial(rng: np.random.Generator, protocol: Protocol) -> Trial:
    return _curves(draw_data("grid", rng, protocol), rng)


def _mismatched_trial(rng: np.random.Generator, protocol: Protocol) -> Trial:
    found, data = _curves(draw_data("complete", rng, protocol), rng), draw_data("grid", rng, protocol)
    best = exact_solution(data)
    return found | {f"{name} matched": learn(name, data, best, rng)[-1] for name in COMPARED}


def draw_data(kind: str, rng: np.random.Generator, protocol: Protocol = OURS) -> Dataset:
    """Draw the rows of a new network."""
    return Dataset.of_states(protocol.draw(draw_network(kind, rng), N_ROWS, rng), "spin")


def exact_solution(data: Dataset) -> np.ndarray:
    """Return the couplings of the exact maximum of the likelihood, NaN where it is at infinity."""
    fitted = run(as_learner("mle"), Model.zeros(PairwiseFamily(GRID)), data, np.random.default_rng(0), tol=1e-8)
    couplings = fitted.model.theta[GRID.n_nodes :]
    return couplings if np.abs(fitted.model.theta).max() < LARGEST else np.full(GRID.n_edges, np.nan)


def learn(name: str, data: Dataset, best: np.ndarray, rng: np.random.Generator, n_steps: int = N_STEPS) -> np.ndarray:
    """Return the mean absolute error of the couplings after every `EVERY` steps of a method of the figure.

    The library's learners take the same path, ten times as slowly: their steps are this short.
    """
    method = METHODS[name]
    copies = max(method.copies, 1)
    samples = np.repeat(data.rows()[0], copies, axis=0)
    streams = np.ascontiguousarray(Key.of(rng).chains(len(samples)).T)
    moments = PairwiseFamily(GRID).mean_statistics(data.states, data.weights)
    spins = 2.0 * np.ascontiguousarray(samples.T) - 1.0
    renewal = FOREST_RENEWAL if method.kind == kernels.FOREST else 1
    graph, goal = (*GRID.csr, GRID.edges), np.array(best)  # writeable, so that one compiled kernel serves
    distances, _ = kernels.learning_curve(
        method.kind, moments, spins, streams, method.copies > 0, RATE, n_steps, EVERY, renewal, graph, goal
    )
    return distances


def _curves(data: Dataset, rng: np.random.Generator) -> Trial:
    best, with_forest = exact_solution(data), rng.random() < FOREST_SHARE
    found: Trial = {}
    for name, method in METHODS.items():
        skipped = np.isnan(best).any() or (method.kind == kernels.FOREST and not with_forest)
        found[name] = np.full(len(STEPS), np.nan) if skipped else learn(name, data, best, rng)
    return found


def _table(results: Results) -> Table:
    infinite = results.n_trials - int(results.count("1-smci fix")[-1])
    note = (
        f"{infinite} of {results.n_trials} data sets have their MLE at infinity and are left out; "
        f"forest SMCI learned {int(results.count('forest-smci e=1')[-1])}; it is ours, and PCD stands for comparison"
    )
    title = "mean absolute error of the couplings to the MLE"
    return mean_table(title, "step", SHOWN, list(SERIES.values()), note, SHOWN // EVERY)(results)


def _worse(name: str, results: Results) -> Verdict:
    ratio = ratio_of_means(results[name][:, -1], results[f"{name} matched"])
    return Verdict(ratio.value > 1.0, f"error {ratio} times that of the matched case")
