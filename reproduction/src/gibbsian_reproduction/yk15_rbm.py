"""Yuille and Kersten 2015, "The Restricted Boltzmann Machine", on small digits, with exact likelihoods."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.inference import exact
from gibbsian.learning import Minibatch, Run, run
from gibbsian.learning.callbacks import Monitor
from gibbsian.models import BinaryUnits, Model, StackFamily
from gibbsian.rng import Key
from gibbsian.sampling.layers import visible_chains
from gibbsian_reproduction.drawing import Figure, lines
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.systems import all_states
from gibbsian_reproduction.tables import Table, mean_table, with_stderr
from gibbsian_reproduction.verdicts import at_most, in_every_trial

SIDE, N_HIDDEN = 8, 12  # 12 hidden units are few enough to sum over
N_ROWS, N_EPOCHS, EVERY = 1000, 40, 4
RATE, BATCH = 0.3, 20
BRIGHT = 8  # of 16 grey levels
SEEN = np.arange(0, N_EPOCHS + 1, EVERY)
METHODS = (Series("pcd"), Series("cd"))  # chains that go on, and one alternation from the data
ALTERNATIONS = np.array([0, 1, 3, 10, 30, 100])
N_CHAINS = 1000


@EXPERIMENTS.register("yk15-rbm")
def restricted_machine() -> Experiment:
    """Return the restricted machine on digits (YK15)."""
    gap = at_most("factor gap", 1e-12, "largest difference to the enumerated energy")
    return Experiment(
        "YK15",
        "RBM",
        f"a restricted Boltzmann machine of {N_HIDDEN} hidden units on 8 x 8 digits",
        _trial,
        (mean_table("log-likelihood of a new digit, nats (exact)", "epoch", SEEN, METHODS), _table_of_alternations),
        _draw,
        (
            Claim("P(S_o | S_h) and P(S_h | S_o) factorise", "eq. 22", gap, trials=1),
            _alternation,
            _one_is_few,
            _learns,
            _pcd_better,
        ),
        size=(8.0, 4.2),
        trials_of=lambda asked: max(asked // 10, 1),
        scale=f"{N_ROWS} digits to learn from and 797 to test; one trial for every 10 asked",
    )


@cache
def _digits() -> np.ndarray:
    from sklearn.datasets import load_digits

    return (load_digits().data >= BRIGHT).astype(np.int8)


def _trial(rng: np.random.Generator) -> Trial:
    digits = _digits()[rng.permutation(len(_digits()))]
    rows, test = Dataset.of_states(digits[:N_ROWS], "binary"), digits[N_ROWS:]
    blank = StackFamily((BinaryUnits(SIDE**2), BinaryUnits(N_HIDDEN))).build()
    start = Minibatch().start(blank, rows, rng)

    def score(fit: Run) -> dict[str, float]:
        if fit.n_steps % EVERY:
            return {}
        model: Any = fit.fitted()
        evidence = model.family.log_evidence(model.theta, test)
        return {"score": (evidence - exact(model).log_partition).mean()}

    found = {}
    for method in ("pcd", "cd"):
        learner = Minibatch(max_iter=N_EPOCHS, learning_rate=RATE, batch_size=BATCH, free_phase=method)
        found[method] = run(learner, start, rows, rng, [Monitor(score)], max_iter=N_EPOCHS)
    learned: Any = found["pcd"].model
    return {method: fit.history["score"] for method, fit in found.items()} | {
        "filters": learned.parts.weights[0].T.reshape(N_HIDDEN, SIDE, SIDE),
        "moment error": _moment_errors(learned, rng),
        "exact error": _error(exact(learned).sample(N_CHAINS, rng), learned),
        "factor gap": _factor_gap(rng),
    }


def _moment_errors(model: Model[StackFamily], rng: np.random.Generator) -> np.ndarray:
    """Return the error of the visible means of chains that start at random, after some alternations of both layers."""
    rows = (rng.random((N_CHAINS, SIDE**2)) < 0.5).astype(np.int8)
    kernel, chains = visible_chains(model, rows, Key.of(rng))
    errors = []
    for steps in np.diff(ALTERNATIONS, prepend=0):
        chains, _ = kernel.step(model.theta, chains, int(steps))
        errors.append(_error(chains.states[:, : SIDE**2], model))
    return np.array(errors)


def _error(values: np.ndarray, model: Model[StackFamily]) -> float:
    truth = exact(model).moments[: SIDE**2]
    return float(np.abs(values.mean(axis=0) - truth).mean())


def _factor_gap(rng: np.random.Generator) -> float:
    """Return how far a conditional distribution by enumeration of the energy is from the product over its units."""
    n_visible, n_hidden = 5, 3
    family = StackFamily((BinaryUnits(n_visible), BinaryUnits(n_hidden)))
    parts = family.split(rng.normal(size=family.n_parameters))
    every, gaps = [all_states(n_visible), all_states(n_hidden)], []
    for place, states in enumerate(every):
        for other in every[1 - place]:
            both = [states if k == place else np.tile(other, (len(states), 1)) for k in (0, 1)]
            logs = family.log_weights_of_values(parts, both)
            means = family.means(parts, place, [part[:1] for part in both])[0]
            product = np.where(states > 0, means, 1.0 - means).prod(axis=1)
            gaps.append(np.abs(np.exp(logs - np.logaddexp.reduce(logs)) - product).max())
    return max(gaps)


def _table_of_alternations(results: Results) -> Table:
    columns = {"alternations": ALTERNATIONS} | with_stderr("error", results["moment error"])
    note = f"mean absolute error of visible means of {N_CHAINS} chains; as many exact samples: "
    return Table("alternating samples from random states", columns, note + f"{results.mean('exact error'):.4f}")


def _draw(results: Results, figure: Figure) -> None:
    panels: Any = figure.subfigures(1, 2, width_ratios=(1.0, 1.25))
    left, right = panels
    filters = results["filters"][0]
    limit = np.abs(filters).max()
    for axes, weights in zip(left.subplots(4, N_HIDDEN // 4).ravel(), filters, strict=True):
        axes.imshow(weights, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.set_axis_off()
    left.suptitle("weights of the hidden units, trial 0", fontsize=9)
    lines(SEEN, METHODS, "epoch", "log-likelihood of a new digit, nats", log="")(right.subplots(), results)


@claim("alternating samples of both layers converge to P(S_o, S_h)", "RBM", trials=4)
def _alternation(results: Results) -> Verdict:
    error, best = results.mean("moment error"), float(results.mean("exact error"))
    ends = f"error {error[0]:.3f} at random states, {error[-1]:.4f} after {ALTERNATIONS[-1]}"
    return Verdict(error[-1] < 1.5 * best, f"{ends}, exact samples {best:.4f}")


@claim("they must be drawn many times until then: one alternation is not enough", "RBM", trials=1)
def _one_is_few(results: Results) -> Verdict:
    ratio = results.mean("moment error") / results.mean("exact error")
    times = f"{ratio[1]:.1f} times the error of exact samples after one, {ratio[-1]:.2f} after {ALTERNATIONS[-1]}"
    return Verdict(ratio[1] > 2.0 * ratio[-1], times)


@claim("learning by sampling works: the likelihood of new digits rises", "RBM", trials=1)
def _learns(results: Results) -> Verdict:
    first, last = results["pcd"][:, [0, -1]].T
    return in_every_trial(last > first, f"from {first.mean():.1f} nats, of independent pixels, to {last.mean():.1f}")


@claim("chains that go on learn better than one alternation", "methods beyond YK15", trials=4, ours=True)
def _pcd_better(results: Results) -> Verdict:
    better = results["pcd"][:, -1] - results["cd"][:, -1]
    counted = f"better in {(better > 0).sum()} of {len(better)} trials"
    return Verdict(better.mean() > 0, f"{better.mean():+.2f} nats on average, {counted}")
