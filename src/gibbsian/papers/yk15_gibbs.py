"""Yuille and Kersten 2015, "Boltzmann Machine": the Gibbs distribution at a temperature, and sampling from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsian.domain import BINARY
from gibbsian.graphs import complete
from gibbsian.inference import exact
from gibbsian.models import PairwiseModel
from gibbsian.papers.drawing import curve, legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.samplers import RandomScanGibbs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_NEURONS = 8
GRAPH = complete(N_NEURONS)
STATES = (np.arange(2**N_NEURONS)[:, None] >> np.arange(N_NEURONS) & 1).astype(float)
TEMPERATURES = np.array([0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0])
SWEEPS = np.array([0, 1, 2, 4, 8, 16, 32])  # after which the chains are looked at
CHAINS = np.array([10, 30, 100, 300, 1000])
N_LAST = int(SWEEPS[-1])


@EXPERIMENTS.register("yk15-gibbs")
def gibbs() -> Experiment:
    """Return temperature and Gibbs sampling (YK15, "Boltzmann Machine: The Gibbs Distribution" and "Inference").

    Examples
    --------
    >>> from gibbsian.papers.yk15_gibbs import gibbs
    >>> gibbs().item
    'Gibbs sampling'
    """
    return Experiment(
        paper="YK15",
        item="Gibbs sampling",
        title=f"a Boltzmann machine of {N_NEURONS} neurons: temperature, and sampling its correlations",
        trial=_trial,
        tables=_tables,
        draw=_draw,
        claims=(
            Claim(
                "at very small T the law is peaked at the state of least energy",
                "Gibbs Distribution",
                _peaked,
                trials=4,
            ),
            Claim("as T increases the law becomes less peaked", "Gibbs Distribution", _flatter, trials=1),
            Claim("as T goes to infinity all states become equally likely", "Gibbs Distribution", _uniform, trials=1),
            Claim("Gibbs sampling converges to samples from P(S)", "Inference", _converges, trials=10),
            Claim("its final states have high probabilities", "Inference", _probable, trials=1),
            Claim(
                "<S_i S_j> is approximated by M samples: the error falls as M grows", "eq. 10", _approximated, trials=4
            ),
        ),
        size=(8.0, 3.6),
        scale=f"random weights between all pairs; chains at T = 1 from random states, {N_LAST} random-scan sweeps",
    )


def _machine(weights: np.ndarray, temperature: float = 1.0) -> PairwiseModel:
    return PairwiseModel.build(GRAPH, None, weights, BINARY, temperature)


def _trial(rng: np.random.Generator) -> Trial:
    weights = rng.normal(size=GRAPH.n_edges)
    peak, entropy = np.array([_peak_and_entropy(_machine(weights, T)) for T in TEMPERATURES]).T
    model = _machine(weights)
    truth = exact(model).moments().statistics
    sampler, errors = RandomScanGibbs(), []
    chains = sampler.init(model, int(CHAINS[-1]), rng)
    for sweeps in np.diff(SWEEPS, prepend=0):
        if sweeps:
            chains, _ = sampler.step(model, chains, n_sweeps=int(sweeps))
        errors.append(_error(model, chains.states, truth))
    log_probabilities = model.log_weights(STATES)
    reached = model.log_weights(chains.states.astype(float)).mean() - np.logaddexp.reduce(log_probabilities)
    return {
        "peak": peak,
        "entropy": entropy,
        "error after sweeps": np.array(errors),
        "error of exact samples": _error(model, exact(model).sample(int(CHAINS[-1]), rng), truth),
        "error of chains": np.array([_error(model, chains.states[:n], truth) for n in CHAINS]),
        "gain": reached - (log_probabilities - np.logaddexp.reduce(log_probabilities)).mean(),
    }


def _peak_and_entropy(model: PairwiseModel) -> tuple[float, float]:
    """Return P(S*) and the entropy over its largest value."""
    log_weights = model.log_weights(STATES)
    logs = log_weights - np.logaddexp.reduce(log_weights)
    return np.exp(logs.max()), -(np.exp(logs) @ logs) / (N_NEURONS * np.log(2.0))


def _error(model: PairwiseModel, states: np.ndarray, truth: np.ndarray) -> float:
    return float(np.abs(model.mean_statistics(states) - truth).mean())


def _tables(results: Results) -> list[Table]:
    import pandas as pd

    def frame(first: str, points: np.ndarray, **columns: str) -> pd.DataFrame:
        told: dict[str, np.ndarray] = {first: points}
        for label, name in columns.items():
            told |= {label: results.mean(name), f"{label} stderr": results.stderr(name)}
        return pd.DataFrame(told)

    return [
        Table("temperature", frame("T", TEMPERATURES, peak="peak", entropy="entropy"), "entropy over N log 2"),
        Table(
            "error of <S_i S_j> by sweeps", frame("sweeps", SWEEPS, error="error after sweeps"), f"{CHAINS[-1]} chains"
        ),
        Table("error of <S_i S_j> by samples", frame("M", CHAINS, error="error of chains"), f"after {N_LAST} sweeps"),
    ]


def _draw(results: Results, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    curve(left, TEMPERATURES, results.mean("peak"), results.stderr("peak"), "P(S*)", method="1-smci")
    curve(left, TEMPERATURES, results.mean("entropy"), results.stderr("entropy"), "entropy / N log 2", method="mple")
    log_axes(left, "T", "", log_y=False)
    legend(left)
    error, floor = results.mean("error after sweeps"), results.mean("error of exact samples")
    curve(right, SWEEPS, error, results.stderr("error after sweeps"), f"{CHAINS[-1]} chains", method="mci")
    right.axhline(float(floor), color="0.4", linestyle=":", linewidth=1.0, label="as many exact samples")
    log_axes(right, "sweeps", "mean absolute error of <S_i S_j>", log_x=False)
    legend(right)


def _peaked(results: Results) -> Verdict:
    peak = results["peak"][:, 0]
    told = f"P(S*) at T = {TEMPERATURES[0]:g}: {np.median(peak):.4f} in the median, {peak.min():.2f} at least"
    return Verdict(bool(np.median(peak) > 0.99), told)


def _flatter(results: Results) -> Verdict:
    steps = np.concatenate([-np.diff(results["peak"], axis=1), np.diff(results["entropy"], axis=1)], axis=1)
    n_falls = int(np.sum(np.all(steps > -1e-12, axis=1)))
    told = f"P(S*) falls and the entropy rises at every T in {n_falls} of {results.n_trials} trials"
    return Verdict(n_falls == results.n_trials, told)


def _uniform(results: Results) -> Verdict:
    peak = results["peak"][:, -1] * len(STATES)
    return Verdict(bool(peak.max() < 1.1), f"P(S*) at most {peak.max():.3f} times 1/2^N at T = {TEMPERATURES[-1]:g}")


def _converges(results: Results) -> Verdict:
    start, end = results.mean("error after sweeps")[[0, -1]]
    ratio = end / results.mean("error of exact samples")
    told = (
        f"mean error {start:.3f} at the start, {end:.4f} after {N_LAST} sweeps, {ratio:.2f} times that of exact samples"
    )
    return Verdict(bool(ratio < 1.3), told)


def _probable(results: Results) -> Verdict:
    gain = results["gain"]
    told = f"e^{gain.mean():.1f} times as probable as random states on average"
    return Verdict(bool((gain > 0).all()), f"{told}, more probable in {(gain > 0).sum()} of {len(gain)} trials")


def _approximated(results: Results) -> Verdict:
    error = results.mean("error of chains")
    slope = np.polyfit(np.log10(CHAINS), np.log10(error), 1)[0]
    told = f"{error[0]:.3f} at M = {CHAINS[0]}, {error[-1]:.4f} at {CHAINS[-1]}: as M to the power {slope:.2f}"
    return Verdict(bool((np.diff(error) < 0).all()), told)
