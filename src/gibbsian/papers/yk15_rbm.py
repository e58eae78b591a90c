"""Yuille and Kersten 2015, "The Restricted Boltzmann Machine", on small digits, with exact likelihoods."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.inference import exact
from gibbsian.learners import Minibatch
from gibbsian.models.layers import BinaryLayer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.papers.drawing import curve, legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.samplers import BlockGibbs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE, N_HIDDEN = 8, 12  # 12 hidden units are few enough to sum over
N_ROWS, N_EPOCHS, EVERY = 1000, 40, 4
RATE, BATCH = 0.3, 20
BRIGHT = 8  # of 16 grey levels
SEEN = np.arange(0, N_EPOCHS + 1, EVERY)
METHODS = {"pcd": "chains that go on (PCD)", "cd": "one alternation from the data (CD-1)"}
ALTERNATIONS = np.array([0, 1, 3, 10, 30, 100])
N_CHAINS = 1000


@EXPERIMENTS.register("yk15-rbm")
def restricted_machine() -> Experiment:
    """Return the restricted machine on digits (YK15).

    Examples
    --------
    >>> from gibbsian.papers.yk15_rbm import restricted_machine
    >>> restricted_machine().trials_of(200)
    20
    """
    return Experiment(
        paper="YK15",
        item="RBM",
        title=f"a restricted Boltzmann machine of {N_HIDDEN} hidden units on 8 x 8 digits",
        trial=_trial,
        tables=_tables,
        draw=_draw,
        claims=(
            Claim("P(S_o | S_h) and P(S_h | S_o) factorise", "eq. 22", _factorise, trials=1),
            Claim("alternating samples of both layers converge to P(S_o, S_h)", "RBM", _alternation, trials=4),
            Claim(
                "they must be drawn many times until then: one alternation is not enough", "RBM", _one_is_few, trials=1
            ),
            Claim("learning by sampling works: the likelihood of new digits rises", "RBM", _learns, trials=1),
            Claim(
                "chains that go on learn better than one alternation",
                "methods beyond YK15",
                _pcd_better,
                trials=4,
                ours=True,
            ),
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
    blank = RestrictedModel.build(BinaryLayer(SIDE**2), BinaryLayer(N_HIDDEN))
    start = Minibatch().start(blank, rows, rng)
    found = {}
    for method in METHODS:
        learner = Minibatch(max_iter=N_EPOCHS, learning_rate=RATE, batch_size=BATCH, free_phase=method)
        state, scores = learner.init(start, rows, rng), []
        for epoch in range(N_EPOCHS + 1):
            if epoch:
                state, _ = learner.step(state)
            if epoch % EVERY == 0:
                model = learner.fitted(start, state)
                scores.append((model.log_weights(test) - exact(model).log_partition()).mean())
        found[method] = np.array(scores)
        if method == "pcd":
            learned = model
    return found | {
        "filters": learned.weights.T.reshape(N_HIDDEN, SIDE, SIDE),
        "moment error": _moment_errors(learned, rng),
        "exact error": _error(exact(learned).sample(N_CHAINS, rng), learned),
        "factor gap": _factor_gap(rng),
    }


def _moment_errors(model: RestrictedModel, rng: np.random.Generator) -> np.ndarray:
    """Return the error of the visible means of chains that start at random, after some alternations of both layers."""
    values, errors, sampler = (rng.random((N_CHAINS, SIDE**2)) < 0.5).astype(float), [], BlockGibbs()
    for steps in np.diff(ALTERNATIONS, prepend=0):
        values = sampler.step(model, sampler.init(model, N_CHAINS, rng, values), rng, int(steps))[0].values
        errors.append(_error(values, model))
    return np.array(errors)


def _error(values: np.ndarray, model: RestrictedModel) -> float:
    truth = exact(model).moments().statistics[: SIDE**2]
    return float(np.abs(values.mean(axis=0) - truth).mean())


def _factor_gap(rng: np.random.Generator) -> float:
    """Return how far a conditional law by enumeration of the energy is from the product of its units' laws."""
    n_visible, n_hidden = 5, 3
    parts = rng.normal(size=n_visible), rng.normal(size=n_hidden), rng.normal(size=(n_visible, n_hidden))
    model = RestrictedModel.build(BinaryLayer(n_visible), BinaryLayer(n_hidden), *parts)
    gaps = []
    for one, given in ((model, _all(n_hidden)), (model.transposed(), _all(n_visible))):
        states = _all(one.visible.n_units)
        for other in given:
            logs = -one.energy(states, np.tile(other, (len(states), 1)))
            means = one.visible_means(other[None])[0]
            product = np.where(states > 0, means, 1.0 - means).prod(axis=1)
            gaps.append(np.abs(np.exp(logs - np.logaddexp.reduce(logs)) - product).max())
    return max(gaps)


def _all(n_units: int) -> np.ndarray:
    return (np.arange(2**n_units)[:, None] >> np.arange(n_units) & 1).astype(float)


def _tables(results: Results) -> list[Table]:
    import pandas as pd

    columns: dict[str, np.ndarray] = {"epoch": SEEN}
    for method in METHODS:
        columns |= {method: results.mean(method), f"{method} stderr": results.stderr(method)}
    alternations = pd.DataFrame(
        {
            "alternations": ALTERNATIONS,
            "error": results.mean("moment error"),
            "error stderr": results.stderr("moment error"),
        }
    )
    note = f"mean absolute error of visible means of {N_CHAINS} chains; as many exact samples: "
    return [
        Table("log-likelihood of a new digit, nats (exact)", pd.DataFrame(columns)),
        Table("alternating samples from random states", alternations, note + f"{results.mean('exact error'):.4f}"),
    ]


def _draw(results: Results, figure: Figure) -> None:
    panels: Any = figure.subfigures(1, 2, width_ratios=(1.0, 1.25))
    left, right = panels
    filters = results["filters"][0]
    limit = np.abs(filters).max()
    for axes, weights in zip(left.subplots(4, N_HIDDEN // 4).ravel(), filters, strict=True):
        axes.imshow(weights, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.set_axis_off()
    left.suptitle("weights of the hidden units, trial 0", fontsize=9)
    axes = right.subplots()
    for method, label in METHODS.items():
        curve(axes, SEEN, results.mean(method), results.stderr(method), label, method=method)
    log_axes(axes, "epoch", "log-likelihood of a new digit, nats", log_x=False, log_y=False)
    legend(axes)


def _factorise(results: Results) -> Verdict:
    gap = results["factor gap"].max()
    return Verdict(
        bool(gap < 1e-12), f"largest difference to the enumerated energy {gap:.1e} in {results.n_trials} trials"
    )


def _alternation(results: Results) -> Verdict:
    error, exact = results.mean("moment error"), float(results.mean("exact error"))
    told = f"error {error[0]:.3f} at random states, {error[-1]:.4f} after {ALTERNATIONS[-1]}, exact samples {exact:.4f}"
    return Verdict(bool(error[-1] < 1.5 * exact), told)


def _one_is_few(results: Results) -> Verdict:
    ratio = results.mean("moment error") / results.mean("exact error")
    told = f"{ratio[1]:.1f} times the error of exact samples after one, {ratio[-1]:.2f} after {ALTERNATIONS[-1]}"
    return Verdict(bool(ratio[1] > 2.0 * ratio[-1]), told)


def _learns(results: Results) -> Verdict:
    scores = results["pcd"]
    rises = scores[:, -1] > scores[:, 0]
    told = f"from {scores[:, 0].mean():.1f} nats, of independent pixels, to {scores[:, -1].mean():.1f}"
    return Verdict(bool(rises.all()), f"{told} in {rises.sum()} of {len(rises)} trials")


def _pcd_better(results: Results) -> Verdict:
    better = results["pcd"][:, -1] - results["cd"][:, -1]
    told = f"{better.mean():+.2f} nats on average, better in {(better > 0).sum()} of {len(better)} trials"
    return Verdict(bool(better.mean() > 0), told)
