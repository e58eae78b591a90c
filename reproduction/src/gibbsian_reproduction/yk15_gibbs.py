"""Yuille and Kersten 2015, "Boltzmann Machine": the Gibbs distribution at a temperature, and sampling from it."""

from __future__ import annotations

import numpy as np

from gibbsian.graphs import complete
from gibbsian.inference import exact
from gibbsian.models import Model, PairwiseFamily, Variables
from gibbsian.rng import Key
from gibbsian.sampling import kernel_for
from gibbsian_reproduction.drawing import Axes, lines, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.systems import all_states
from gibbsian_reproduction.tables import mean_table
from gibbsian_reproduction.verdicts import in_every_trial, slope

N_NEURONS = 8
GRAPH = complete(N_NEURONS)
STATES = all_states(N_NEURONS)
TEMPERATURES = np.array([0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0])
SWEEPS = np.array([0, 1, 2, 4, 8, 16, 32])  # after which the chains are looked at
CHAINS = np.array([10, 30, 100, 300, 1000])
N_LAST, MOST_CHAINS = int(SWEEPS[-1]), int(CHAINS[-1])
DISTRIBUTION = "Gibbs Distribution"
PEAKS = (Series("peak", method="1-smci"), Series("entropy", method="mple"))
BY_SWEEPS = (Series("error after sweeps", "error", method="mci"),)
BY_CHAINS = (Series("error of chains", "error"),)


@EXPERIMENTS.register("yk15-gibbs")
def gibbs() -> Experiment:
    """Return temperature and Gibbs sampling (YK15, "Boltzmann Machine: The Gibbs Distribution" and "Inference")."""
    after = f"after {N_LAST} sweeps"
    return Experiment(
        "YK15",
        "Gibbs sampling",
        f"a Boltzmann machine of {N_NEURONS} neurons: temperature, and sampling its correlations",
        _trial,
        (
            mean_table("temperature", "T", TEMPERATURES, PEAKS, "entropy over N log 2"),
            mean_table("error of <S_i S_j> by sweeps", "sweeps", SWEEPS, BY_SWEEPS, f"{MOST_CHAINS} chains"),
            mean_table("error of <S_i S_j> by samples", "M", CHAINS, BY_CHAINS, after),
        ),
        panels(lines(TEMPERATURES, PEAKS, "T", "", log="x"), _errors_by_sweeps),
        (_peaked, _flatter, _uniform, _converges, _probable, _approximated),
        size=(8.0, 3.6),
        scale=f"random weights between all pairs; chains at T = 1 from random states, {N_LAST} random-scan sweeps",
    )


def _machine(weights: np.ndarray) -> Model[PairwiseFamily]:
    return PairwiseFamily.model(GRAPH, None, weights, Variables.binary)


def _trial(rng: np.random.Generator) -> Trial:
    weights = rng.normal(size=GRAPH.n_edges)
    model = _machine(weights)
    peak, entropy = np.array([_peak_and_entropy(model.at(1.0 / T)) for T in TEMPERATURES]).T
    truth = exact(model).moments
    kernel, errors = kernel_for(model.family, "random-scan"), []
    chains = kernel.init(MOST_CHAINS, Key.of(rng))
    for sweeps in np.diff(SWEEPS, prepend=0):
        if sweeps:
            chains, _ = kernel.step(model.theta, chains, int(sweeps))
        errors.append(_error(model, chains.states, truth))
    return {
        "peak": peak,
        "entropy": entropy,
        "error after sweeps": np.array(errors),
        "error of exact samples": _error(model, exact(model).sample(MOST_CHAINS, rng), truth),
        "error of chains": np.array([_error(model, chains.states[:n], truth) for n in CHAINS]),
        "gain": model.log_weights(chains.states).mean() - model.log_weights(STATES).mean(),
    }


def _peak_and_entropy(model: Model[PairwiseFamily]) -> tuple[float, float]:
    """Return P(S*) and the entropy over its largest value."""
    log_weights = model.log_weights(STATES)
    logs = log_weights - np.logaddexp.reduce(log_weights)
    return np.exp(logs.max()), -(np.exp(logs) @ logs) / (N_NEURONS * np.log(2.0))


def _error(model: Model[PairwiseFamily], states: np.ndarray, truth: np.ndarray) -> float:
    return float(np.abs(model.family.mean_statistics(states) - truth).mean())


def _errors_by_sweeps(axes: Axes, results: Results) -> None:
    floor = float(results.mean("error of exact samples"))
    axes.axhline(floor, color="0.4", linestyle=":", linewidth=1.0, label="as many exact samples")
    title = {"title": f"{MOST_CHAINS} chains"}
    lines(SWEEPS, BY_SWEEPS, "sweeps", "mean absolute error of <S_i S_j>", log="y", legend_at=title)(axes, results)


@claim("at very small T the distribution is peaked at the state of least energy", DISTRIBUTION, trials=4)
def _peaked(results: Results) -> Verdict:
    peak = results["peak"][:, 0]
    numbers = f"P(S*) at T = {TEMPERATURES[0]:g}: {np.median(peak):.4f} in the median, {peak.min():.2f} at least"
    return Verdict(np.median(peak) > 0.99, numbers)


@claim("as T increases the distribution becomes less peaked", DISTRIBUTION, trials=1)
def _flatter(results: Results) -> Verdict:
    steps = np.concatenate([-np.diff(results["peak"], axis=1), np.diff(results["entropy"], axis=1)], axis=1)
    return in_every_trial(steps > -1e-12, "P(S*) falls and the entropy rises at every T")


@claim("as T goes to infinity all states become equally likely", DISTRIBUTION, trials=1)
def _uniform(results: Results) -> Verdict:
    peak = results["peak"][:, -1] * len(STATES)
    return Verdict(peak.max() < 1.1, f"P(S*) at most {peak.max():.3f} times 1/2^N at T = {TEMPERATURES[-1]:g}")


@claim("Gibbs sampling converges to samples from P(S)", "Inference", trials=10)
def _converges(results: Results) -> Verdict:
    start, end = results.mean("error after sweeps")[[0, -1]]
    ratio = end / results.mean("error of exact samples")
    errors = f"mean error {start:.3f} at the start, {end:.4f} after {N_LAST} sweeps"
    return Verdict(ratio < 1.3, f"{errors}, {ratio:.2f} times that of exact samples")


@claim("its final states have high probabilities", "Inference", trials=1)
def _probable(results: Results) -> Verdict:
    gain = results["gain"]
    return in_every_trial(gain > 0, f"e^{gain.mean():.1f} times as probable as random states on average")


@claim("<S_i S_j> is approximated by M samples: the error falls as M grows", "eq. 10", trials=4)
def _approximated(results: Results) -> Verdict:
    error = results.mean("error of chains")
    ends = f"{error[0]:.3f} at M = {CHAINS[0]}, {error[-1]:.4f} at {MOST_CHAINS}"
    return Verdict((np.diff(error) < 0).all(), f"{ends}: as M to the power {slope(CHAINS, error):.2f}")
